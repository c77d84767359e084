//! Samples that Ceilometer's agent makes from the service's notifications, with the meters that we ship.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::places;
use chores::python::Python;
use chores::run::write;
use serde_json::Value;

use super::empty;
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, text_of, until};

/// Python packages to install in addition to the cloud's.
const REQUIREMENTS: &str = include_str!("../../../lab/clients/ceilometer.txt");

/// Writes the samples of all meters to a file, one per line.
const PIPELINE: &str = "
sources: [{name: all, meters: ['*'], sinks: [file]}]
sinks: [{name: file, publishers: ['file://SAMPLES?json']}]
";

/// Checks the samples of a lease and of a server in it, from start to end.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>, directory: &Path) -> Result<()> {
    let python = Python::with("python-ceilometer", REQUIREMENTS)?;
    let file = directory.join("bus.url");
    write(&file, site.lab.bus_url().as_bytes())?;
    let file = file.display().to_string();
    let server = site.launch.clone().with(["--message-bus-url-file", &file]).start()?;
    let agent = Agent::start(&python, &directory.join("ceilometer"), &site.lab.bus_url())?;
    cases.check("Ceilometer's agent writes samples of a lease and of the server in it", || {
        let reservation = site.lease("alice", "physics", "metered", HOST_LEASE)?;
        let hint = format!("reservation={reservation}");
        site.boot("alice", "physics", "counted", &["--flavor", "small", "--hint", &hint])?;
        let shown = site.alices("metered")?;
        let (lease, owner) = (text_of(&shown["id"]), text_of(&shown["project_id"]));
        let guest = text_of(&site.server("counted")?["id"]);
        let of_start = [("lease.start", &lease), ("lease.instance.start", &guest)];
        agent.until_written(&of_start)?;
        for meter in ["blazar.reservation.hosts", "blazar.reservation.vcpus", "blazar.reservation.memory"] {
            agent.until_written(&[(meter, &reservation)])?;
            let samples = agent.samples_of(meter, &reservation)?;
            let volume = samples[0]["volume"].as_u64().unwrap_or_default();
            let is_right = if meter.ends_with("hosts") { volume == 1 } else { volume > 0 };
            ensure!(is_right && samples[0]["project_id"] == owner.as_str(), "{samples:?}");
        }
        site.end_soon("metered")?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        let of_end = [("lease.end", &lease), ("lease.instance.end", &guest)];
        agent.until_written(&of_end)?;
        for (meter, resource) in of_start.into_iter().chain(of_end) {
            let samples = agent.samples_of(meter, resource)?;
            let [sample] = &samples[..] else { bail!("{meter}: {samples:?}") };
            ensure!(sample["volume"] == 1 && sample["project_id"] == owner.as_str(), "{sample}");
            if meter.contains("instance") {
                let of = &sample["resource_metadata"];
                ensure!(
                    of["lease_id"] == lease.as_str() && of["reservation_id"] == reservation.as_str(),
                    "{of}"
                );
            }
        }
        Ok(())
    });
    drop(agent);
    cases.check("the service shuts down cleanly with Ceilometer too", || ends_well(server));
    Ok(())
}

/// Ceilometer's notification agent. Dropping it ends the process.
struct Agent {
    process: Child,
    samples: PathBuf,
    log: PathBuf,
}

impl Agent {
    fn start(python: &Python, directory: &Path, bus: &str) -> Result<Self> {
        empty(directory)?;
        let (samples, log) = (directory.join("samples"), directory.join("agent.log"));
        let pipeline = directory.join("pipeline.yaml");
        write(&pipeline, PIPELINE.replace("SAMPLES", &samples.display().to_string()).as_bytes())?;
        let settings = [
            "[DEFAULT]".to_owned(),
            format!("transport_url = {bus}"),
            format!("pipeline_cfg_file = {}", pipeline.display()),
            "[notification]".to_owned(),
            format!("messaging_urls = {bus}"),
            "notification_control_exchanges = openstack".to_owned(),
            "workers = 1".to_owned(),
            "[meter]".to_owned(),
            format!("meter_definitions_dirs = {}", places::root().join("contrib/ceilometer").display()),
        ];
        let file = directory.join("ceilometer.conf");
        write(&file, settings.join("\n").as_bytes())?;
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = python.program("ceilometer-agent-notification", directory);
        command.arg("--config-file").arg(&file).stdout(out.try_clone()?).stderr(out);
        let process = command.spawn().context("cannot run Ceilometer's agent")?;
        Ok(Self { process, samples, log })
    }

    /// Waits until each of these meters has a sample for its resource.
    fn until_written(&self, wanted: &[(&str, &String)]) -> Result<()> {
        let written = until("samples are missing", || {
            let missing =
                |(meter, resource): &(&str, &String)| Ok(self.samples_of(meter, resource)?.is_empty());
            let missing = wanted.iter().map(missing).collect::<Result<Vec<bool>>>()?;
            Ok(!missing.contains(&true))
        });
        written.with_context(|| {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            format!("{:?}, and the agent says {last:?}", self.counts())
        })
    }

    fn samples_of(&self, meter: &str, resource: &str) -> Result<Vec<Value>> {
        let all = self.samples()?.into_iter();
        Ok(all.filter(|sample| sample["name"] == meter && sample["resource_id"] == resource).collect())
    }

    fn samples(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(&self.samples).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for sample in self.samples().unwrap_or_default() {
            *counts.entry(text_of(&sample["name"])).or_default() += 1;
        }
        counts
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SIGTERM instead of SIGKILL, so that the agent ends its workers too.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
