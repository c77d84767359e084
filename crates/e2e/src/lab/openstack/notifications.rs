//! The service reacts to Nova's notifications on the message bus immediately.

use std::path::Path;

use anyhow::Result;
use chores::cases::Cases;
use chores::run::write;

use super::site::{Site, ends_well, until};

/// Observation interval, longer than the test runs: changes can only be seen through notifications.
const ROUND: &str = "1h";

/// Uses the settings from the guide.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>, directory: &Path) -> Result<()> {
    let file = directory.join("bus.url");
    write(&file, site.lab.bus_url().as_bytes())?;
    let file = file.display().to_string();
    let bus = ["--message-bus-url-file", &file, "--message-bus-topics", ""];
    let heard = ["--message-bus-nova-topics", "versioned_notifications", "--limits-observe-interval", ROUND];
    let launch = site.launch.clone().with(bus).with(heard);
    let server = launch.start()?;
    let change = |line: &&str| line.contains("host health changed") && line.contains("host3");
    let changes = || launch.said().lines().filter(change).count();
    cases.check("a host that Nova's administrator disables has failed at once, and works again", || {
        until("notifications are not heard", || Ok(launch.said().contains("hearing notifications")))?;
        let before = changes();
        for (word, count) in [("--disable", before + 1), ("--enable", before + 2)] {
            site.admin_client(&["compute", "service", "set", word, "host3", "nova-compute"])?;
            until("no change was counted", || Ok(changes() == count))?;
        }
        Ok(())
    });
    cases.check("the service shuts down cleanly with notifications too", || ends_well(server));
    Ok(())
}
