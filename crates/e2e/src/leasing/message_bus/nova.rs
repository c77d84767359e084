//! Notifications from Nova's services: the service observes the host concerned immediately.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::python::Python;
use chores::run::{Executable, must_run};

use super::broker::{Broker, USER};
use super::{path, until};
use crate::leasing::hooks::Hooks;
use crate::leasing::server::{Launch, Server};

/// Script that publishes as Nova does.
const NOTIFY: &str = include_str!("../../../leasing/notify.py");

/// Nova's topic.
const TOPIC: &str = "versioned_notifications";

/// Log line when the service has subscribed to notifications.
const HEARS: &str = "hearing notifications of the cloud";

/// Log line of each failed attempt to subscribe.
const HEARS_NOT: &str = "notifications of the cloud not heard";

/// Observation interval, longer than the stage: hosts are only observed because of notifications.
const ROUND: &str = "1h";

/// Runs the checks in an empty directory.
pub fn heard(cases: &mut Cases, ours: &Executable, directory: &Path, broker: &mut Broker) -> Result<()> {
    let nova = Nova { directory, url: format!("rabbit://{USER}@{}//", broker.address()) };
    let hooks = Hooks::new(directory, 2)?;
    // A host is unhealthy as long as this file exists.
    let check = format!(
        "\n[hooks.check]\nexec = [\"sh\", \"-c\", \"test ! -e '{}'/$ALLOT_HOST.broken || echo '{{\\\"healthy\\\": false}}'\"]\n",
        directory.display()
    );
    OpenOptions::new().append(true).open(hooks.config())?.write_all(check.as_bytes())?;
    let file = directory.join("bus.url");
    fs::write(&file, &nova.url)?;
    let launch = Launch::new(ours, directory).with_hooks(&hooks).with(["--message-bus-url-file"]);
    let launch = launch.with([path(&file)]).with(["--message-bus-nova-topics", TOPIC]);
    // The service publishes nothing: without a reader, messages would pile up.
    let launch = launch.with(["--message-bus-topics", "", "--limits-observe-interval", ROUND]);
    let server = launch.start()?;
    let hosts = server.caller().post("/v1/os-hosts", &serde_json::json!({"id": "1"}))?.expect(201)?;
    let host = hosts["host"]["service_name"].as_str().context("no name of a host")?.to_owned();
    let broken = directory.join(format!("{host}.broken"));
    cases.check("a missing exchange is reported in the log, and the service keeps asking for it", || {
        until("the log says it", || Ok(launch.said().contains("has no exchange nova")))?;
        nova.says("service.update", "elsewhere")?;
        until("it hears", || Ok(launch.said().contains(HEARS)))
    });
    cases.check("a host that Nova says something of is looked at at once, and no other", || {
        fs::write(&broken, "")?;
        nova.says("service.update", "elsewhere")?;
        until("it is counted", || Ok(server.caller().figure("allot_cloud_notifications_total")? > 0.0))?;
        sleep(Duration::from_secs(2));
        ensure!(failed(&server)? == 0.0, "the host is observed without a notification about it");
        nova.says("service.update", &host)?;
        until("the host has failed", || Ok(failed(&server)? == 1.0))
    });
    cases.check("it hears again once the broker is back", || {
        let before = launch.said().matches(HEARS_NOT).count();
        broker.kill()?;
        until("the log says it", || Ok(launch.said().matches(HEARS_NOT).count() > before))?;
        broker.restart()?;
        // Published repeatedly: the publisher gives up if the broker isn't ready, and the exchange only
        // exists after a publication.
        until("it hears again", || {
            nova.says("service.update", "elsewhere")?;
            Ok(launch.said().matches(HEARS).count() > 1)
        })?;
        fs::remove_file(&broken)?;
        nova.says("instance.delete.end", &host)?;
        until("the host works", || Ok(failed(&server)? == 0.0))
    });
    let status = server.stop()?;
    ensure!(status.success(), "the service ends with {status}");
    Ok(())
}

/// A publisher in place of Nova.
struct Nova<'a> {
    directory: &'a Path,
    url: String,
}

impl Nova<'_> {
    fn says(&self, event_type: &str, host: &str) -> Result<()> {
        let script = self.directory.join("notify.py");
        fs::write(&script, NOTIFY)?;
        let mut command = Python::for_message_bus()?.program("python", self.directory);
        must_run(command.arg(&script).args([&self.url, TOPIC, event_type, host]))
    }
}

fn failed(server: &Server) -> Result<f64> {
    server.caller().figure("allot_failed_hosts")
}
