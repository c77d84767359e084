//! Images of servers, made before the servers are deleted with their lease. Nova's fake driver has Glance
//! create an entry for each image but never uploads the data, so these tests upload it.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::run::{output_of, write};

use super::Lab;
use super::cloud::{PASSWORD, People};
use super::site::{FREE_POOL, Site, until};

/// Runs all checks of images.
pub fn of_servers(cases: &mut Cases, site: &Site<'_>, people: &People) {
    cases.check("a lease that ends with images waits for them, and they are its owner's", || {
        let words = ["lease", "create", "shot", "--hosts", "1", "--for", "1h", "--end-action", "snapshot"];
        site.allot("alice", "physics", &words)?;
        let hint = format!("reservation={}", site.until_active("shot")?);
        for name in ["first", "second"] {
            site.boot("alice", "physics", name, &["--flavor", "small", "--hint", &hint])?;
        }
        site.end_soon("shot")?;
        // Images are made one after another.
        let mut made = Vec::new();
        for left in [1, 0] {
            until("no image is begun", || Ok(begun(site)?.len() == 1))?;
            let [(id, name)] = &begun(site)?[..] else { return Err(anyhow::anyhow!("two at once")) };
            ensure!(
                site.is_there("first")? && site.is_there("second")?,
                "a server is gone, {left} images left"
            );
            fill(site.lab, id)?;
            made.push(name.clone());
        }
        made.sort_unstable();
        ensure!(made == ["reserved_first", "reserved_second"], "{made:?}");
        until("the lease is not over", || Ok(site.alices("shot")?["status"] == "TERMINATED"))?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        ensure!(!site.is_there("first")? && !site.is_there("second")?, "a server is still there");
        for name in made {
            belongs_to(site, &name, people)?;
        }
        Ok(())
    });
    cases.check("images that Blazar's clients ask for are made ahead of the end", || {
        let wanted = "resource_type=physical:host,min=1,max=1,before_end=snapshot";
        let hint = format!("reservation={}", site.lease("alice", "physics", "early", wanted)?);
        // Boots from such an image. Nova copies its properties to the new image.
        let words = ["server", "create", "--image", "reserved_first", "--nic", "none", "--wait", "third"];
        site.client("alice", "physics", &[&words[..], &["--flavor", "small", "--hint", &hint]].concat())?;
        site.end_soon("early")?;
        until("no image is begun", || Ok(begun(site)?.len() == 1))?;
        let (id, name) = begun(site)?.pop().context("no image")?;
        ensure!(name == "reserved_third", "{name}");
        fill(site.lab, &id)?;
        until("the lease is not over", || Ok(site.alices("early")?["status"] == "TERMINATED"))?;
        let events = site.alices("early")?["events"].clone();
        let events = events.as_array().context("no events")?;
        let before_end = events.iter().find(|event| event["event_type"] == "before_end_lease");
        ensure!(before_end.is_some_and(|event| event["status"] == "DONE"), "{before_end:?}");
        until("the server is still there", || Ok(!site.is_there("third")?))?;
        belongs_to(site, "reserved_third", people)
    });
}

/// Identifiers and names of images that Nova has begun.
fn begun(site: &Site<'_>) -> Result<Vec<(String, String)>> {
    let words = ["image", "list", "--status", "queued", "-f", "value", "-c", "ID", "-c", "Name"];
    let shown = site.admin_client(&words)?;
    let pairs = shown.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(id, name)| (id.to_owned(), name.to_owned())).collect())
}

/// Uploads an image's data, as a hypervisor would.
fn fill(lab: &Lab, id: &str) -> Result<()> {
    let content = lab.root.join("image");
    write(&content, &[0; 1024])?;
    let words = ["image", "set", "--disk-format", "raw", "--container-format", "bare", id];
    output_of(lab.client(&lab.program("openstack"), "admin", PASSWORD, "admin").args(words))?;
    let mut upload = lab.client(&lab.program("glance"), "admin", PASSWORD, "admin");
    output_of(upload.args(["image-upload", "--file"]).arg(&content).arg(id)).map(drop)
}

/// Checks that the image belongs to alice's project and is usable by her.
fn belongs_to(site: &Site<'_>, name: &str, people: &People) -> Result<()> {
    let words = ["image", "show", "-f", "value", "-c", "owner", "-c", "status", "-c", "visibility", name];
    let shown = site.client("alice", "physics", &words)?;
    let fields: Vec<&str> = shown.split_whitespace().collect();
    ensure!(fields == [people.physics.as_str(), "active", "private"], "{fields:?}");
    Ok(())
}
