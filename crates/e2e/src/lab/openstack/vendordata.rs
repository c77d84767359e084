//! Servers read about their leases from Nova's metadata service, which asks ours.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::run::output_of;
use serde_json::{Value, json};

use super::cloud::PASSWORD;
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, text_of, until};
use super::{Lab, RESERVATION, empty};
use crate::leasing::date::Minute;

/// Port of the metadata service, as an offset from Keystone's. It's above all ports that the lab's scripts
/// use.
const METADATA: u16 = 20;

/// Secret that the proxy in front of the metadata service signs with.
const SECRET: &str = "between the lab and Nova's metadata service";

/// Sends the request that the proxy sends for a server.
const ASK: &str = "
import hashlib, hmac, sys, urllib.request
url, secret, server, project = sys.argv[1:]
signature = hmac.new(secret.encode(), server.encode(), hashlib.sha256).hexdigest()
headers = {'X-Instance-ID': server, 'X-Tenant-ID': project, 'X-Instance-ID-Signature': signature,
           'X-Forwarded-For': '10.0.0.1'}
request = urllib.request.Request(url + '/openstack/latest/vendor_data2.json', headers=headers)
print(urllib.request.urlopen(request, timeout=30).read().decode())
";

/// Starts a separate metadata service with the settings from the guide.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let server = site.launch.start()?;
    let metadata = Metadata::start(site.lab)?;
    read_by_servers(cases, site, &metadata);
    drop(metadata);
    cases.check("the service shuts down cleanly with vendordata too", || ends_well(server));
    Ok(())
}

fn read_by_servers(cases: &mut Cases, site: &Site<'_>, metadata: &Metadata<'_>) {
    cases.check("a server of a lease reads of the lease", || {
        let reservation = site.lease("alice", "physics", "told", HOST_LEASE)?;
        let hint = format!("reservation={reservation}");
        site.boot("alice", "physics", "guest", &["--flavor", "small", "--hint", &hint])?;
        let (read, lease) = (metadata.read_by(site, "guest")?, site.alices("told")?);
        for field in ["id", "name", "status"] {
            ensure!(
                !lease[field].is_null() && read["lease"][field] == lease[field],
                "{field}: {read} {lease}"
            );
        }
        for field in ["start_date", "end_date"] {
            let told = Minute::read(&text_of(&read["lease"][field]))?;
            ensure!(told == Minute::read(&text_of(&lease[field]))?, "{field}: {read} {lease}");
        }
        ensure!(read["lease"]["reservation_id"] == reservation.as_str(), "{read}");
        ensure!(read["preemptible"] == false && read["gone_date"].is_null(), "{read}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "told"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    cases.check("a server on no host of the service reads nothing", || {
        site.allot("admin", "admin", &["host", "delete", "host3"])?;
        site.boot("bob", "chemistry", "regular", &["--flavor", "small"])?;
        let read = metadata.read_by(site, "regular")?;
        ensure!(read == json!({}), "{read}");
        site.delete_all_servers()?;
        site.admin_client(&["reservation", "host", "create", "host3"]).map(drop)
    });
    cases.check("a preemptible server reads when it is preempted, once that is known", || {
        site.boot("bob", "chemistry", "spot", &["--flavor", "preempt"])?;
        let read = metadata.read_by(site, "spot")?;
        ensure!(read == json!({"preemptible": true}), "{read}");
        let (start, end) = (Minute::now().plus(24 * 60), Minute::now().plus(25 * 60));
        let reservation = ["--reservation", "resource_type=physical:host,min=3,max=3"];
        let (from, until) = (start.sent(), end.sent());
        let dates = ["--start-date", &from, "--end-date", &until, "tomorrow"];
        let words = [&["reservation", "lease", "create"][..], &reservation, &dates].concat();
        site.client("alice", "physics", &words)?;
        let read = metadata.read_by(site, "spot")?;
        // The server is asked to shut down at the start of the lease, and then has its grace time.
        ensure!(Minute::read(&text_of(&read["shutdown_date"]))? == start, "{read}");
        ensure!(Minute::read(&text_of(&read["gone_date"]))? > start, "{read}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "tomorrow"])?;
        site.delete_all_servers()
    });
}

/// Nova's metadata service. Dropping it kills the process.
struct Metadata<'a> {
    lab: &'a Lab,
    child: Child,
    url: String,
}

impl<'a> Metadata<'a> {
    fn start(lab: &'a Lab) -> Result<Self> {
        let directory = lab.root.join("metadata");
        empty(&directory)?;
        let etc = lab.state.join("etc");
        fs::copy(etc.join("api-paste.ini"), directory.join("api-paste.ini"))
            .context("no settings of Nova")?;
        let settings = fs::read_to_string(etc.join("nova.conf")).context("no settings of Nova")?;
        let (keystone, ours) = (lab.port, lab.port + RESERVATION);
        let more = format!(
            "[api]\nvendordata_providers=StaticJSON,DynamicJSON\n\
             vendordata_dynamic_targets=allot@http://127.0.0.1:{ours}/v1/vendordata\n\
             vendordata_dynamic_failure_fatal=true\nmetadata_cache_expiration=0\n\
             [neutron]\nservice_metadata_proxy=true\nmetadata_proxy_shared_secret={SECRET}\n\
             [vendordata_dynamic_auth]\nauth_type=password\nauth_url=http://127.0.0.1:{keystone}/v3\n\
             username=admin\npassword={PASSWORD}\nproject_name=admin\n\
             user_domain_name=Default\nproject_domain_name=Default\n"
        );
        chores::run::write(&directory.join("nova.conf"), format!("{settings}\n{more}").as_bytes())?;
        let log = directory.join("log");
        let written = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let address = format!("127.0.0.1:{}", lab.port + METADATA);
        let mut command = Command::new(lab.program("uwsgi"));
        command.args(["--http-socket", &address, "--module", "nova.wsgi.metadata:application"]);
        command.args(["--threads", "2", "--buffer-size", "65535", "--need-app", "--disable-logging"]);
        command.env("OS_NOVA_CONFIG_DIR", &directory).current_dir(&directory).stdin(Stdio::null());
        command.stdout(written.try_clone()?).stderr(written);
        let child = command.spawn().context("cannot run uwsgi")?;
        let started = Self { lab, child, url: format!("http://{address}") };
        until("Nova's metadata service does not listen", || {
            Ok(std::net::TcpStream::connect(&address).is_ok())
        })?;
        Ok(started)
    }

    /// Vendordata from our service, as that server reads it.
    fn read_by(&self, site: &Site<'_>, name: &str) -> Result<Value> {
        let server = site.server(name)?;
        let (id, project) = (text_of(&server["id"]), text_of(&server["tenant_id"]));
        let mut ask = Command::new(self.lab.program("python"));
        ask.args(["-c", ASK, &self.url, SECRET, &id, &project]).env("no_proxy", "127.0.0.1");
        let said = output_of(&mut ask)?;
        let all: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
        Ok(all["allot"].clone())
    }
}

impl Drop for Metadata<'_> {
    fn drop(&mut self) {
        // `drop` can't report an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
