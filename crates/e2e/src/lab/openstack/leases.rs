//! Leases on a real Nova, made and used with the stock clients.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::run::{Executable, must_run, output_of};
use serde_json::json;

use super::cloud::{Cloud, OF_ALL, PASSWORD, People, administrator, of_project};
use super::site::{FREE_POOL, HOST_LEASE, Site, first_reservation, text_of, until};
use super::watcher::{self, STAYS, Stay};
use super::{
    ADDRESSES, ALLOT_FILTER, BLAZAR_FILTER, CLIENTS, DRIFT, FAILURES, FILTERS, IMAGES, Lab, METERING,
    NOTIFICATIONS, POWER, REPLICAS, SCENARIO, TENANT, TRAITS, VENDORDATA, addresses, drift, empty, failures,
    filter, filters, images, metering, notifications, power, ratios, replicas, scenario, site, staying,
    tenant, traits, vendordata,
};
use crate::lab::clients;
use crate::leasing::server::Server;

/// Runs the driver tests that need a cloud.
pub fn tests_of_the_driver(cases: &mut Cases, lab: &Lab) {
    cases.check("the driver keeps the promises of all drivers", || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["test", "--offline", "--workspace", "--test", "cloud", "--", "--ignored"]);
        command.args(["--test-threads", "1"]);
        command.env("ALLOT_LAB_KEYSTONE", format!("http://127.0.0.1:{}/v3", lab.port));
        must_run(command.env("ALLOT_LAB_PASSWORD", PASSWORD))
    });
}

/// Leases hosts of the cloud with each fence in turn.
pub fn on_nova(
    cases: &mut Cases,
    lab: &Lab,
    ours: &Executable,
    cloud: &Cloud,
    people: &People,
) -> Result<()> {
    let directory = lab.root.join("allot-nova");
    empty(&directory)?;
    let launch = site::launch(lab, ours, &directory, people, "keystone")?;
    let mut server = launch.start()?;
    let admin = cloud.log_in(&administrator(), Some(&of_project("admin")))?.0;
    let mut site = Site { lab, ours, cloud, launch, admin };
    cases.check("hosts are taken on, and are in the free pool of Nova", || {
        for host in ["host1", "host2", "host3"] {
            site.admin_client(&["reservation", "host", "create", host])?;
        }
        ensure!(site.members(FREE_POOL)?.len() == 3, "{:?}", site.members(FREE_POOL)?);
        let shown = site.admin_client(&["reservation", "host", "list", "-f", "value"])?;
        ensure!(shown.contains("host3") && shown.contains("8192"), "{shown}");
        Ok(())
    });
    if lab.wants(BLAZAR_FILTER) {
        server = with_blazar_filter(cases, &site, people, server)?;
    }
    if lab.wants(ADDRESSES) {
        lab.tell("addresses");
        addresses::of_neutron(cases, &site);
    }
    if lab.wants(IMAGES) {
        lab.tell("images");
        images::of_servers(cases, &site, people);
    }
    cases.check("the service on Nova shuts down cleanly", || site::ends_well(server));
    let scenarios = |cases: &mut Cases, site: &Site<'_>, fence: &str| -> Result<()> {
        if lab.wants(SCENARIO) {
            let launch = site::launch(lab, ours, &directory, people, &filter::tokens(&directory)?)?;
            scenario::with_fence(cases, site, people, launch, fence)?;
        }
        Ok(())
    };
    scenarios(cases, &site, BLAZAR_FILTER)?;
    if lab.wants(POWER) {
        lab.tell("power");
        power::on_nova(cases, &site)?;
    }
    if lab.wants(REPLICAS) {
        lab.tell("two services");
        replicas::on_nova(cases, &site)?;
    }
    if lab.wants(FAILURES) {
        lab.tell("failures");
        failures::on_nova(cases, &site)?;
    }
    if lab.wants(DRIFT) {
        lab.tell("drift");
        drift::on_nova(cases, &site)?;
    }
    if lab.wants(FILTERS) {
        lab.tell("filters");
        filters::on_nova(cases, &site, people)?;
    }
    if lab.wants(NOTIFICATIONS) {
        lab.tell("notifications");
        notifications::on_nova(cases, &site, &directory)?;
    }
    if lab.wants(METERING) {
        lab.tell("metering");
        metering::on_nova(cases, &site, &directory)?;
    }
    if lab.wants(CLIENTS) {
        lab.tell("clients");
        clients_of_openstack(cases, &site)?;
    }
    if lab.wants(VENDORDATA) {
        lab.tell("vendordata");
        vendordata::on_nova(cases, &site)?;
    }
    if lab.wants(ALLOT_FILTER) {
        lab.tell("the fence allot-filter");
        site.launch = site::launch(lab, ours, &directory, people, &filter::tokens(&directory)?)?;
        filter::on_nova(cases, &mut site)?;
    }
    scenarios(cases, &site, ALLOT_FILTER)?;
    if lab.wants(TENANT) {
        lab.tell("the fence tenant");
        site.launch = site::launch(lab, ours, &directory, people, "keystone")?;
        tenant::on_nova(cases, &mut site, people)?;
    }
    scenarios(cases, &site, TENANT)?;
    // Must run before the part `traits`, which returns the hosts at its end.
    scenarios(cases, &site, TRAITS)?;
    if lab.wants(TRAITS) {
        lab.tell("the fence traits");
        site.launch = site::launch(lab, ours, &directory, people, "keystone")?;
        traits::on_nova(cases, &mut site)?;
    }
    cases.check("no password and no token is in the log", || {
        let log = fs::read(directory.join("serve.log"))?;
        for secret in cloud.secrets().iter().map(String::as_str).chain([PASSWORD, OF_ALL]) {
            ensure!(!log.windows(secret.len()).any(|part| part == secret.as_bytes()), "there is one");
        }
        Ok(())
    });
    Ok(())
}

/// Runs Heat and the dashboard. They register hosts themselves, so the service's hosts are deleted first.
fn clients_of_openstack(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let server = site.launch.start()?;
    let hosts = ["host1", "host2", "host3"];
    for host in hosts {
        site.allot("admin", "admin", &["host", "delete", host])?;
    }
    let url = format!("http://127.0.0.1:{}/v3", site.lab.port);
    let login = clients::Login { url: &url, user: "admin", password: PASSWORD, project: "admin" };
    clients::of_openstack(cases, login, "host1")?;
    for host in hosts {
        site.admin_client(&["reservation", "host", "create", host])?;
    }
    cases.check("the service shuts down cleanly with Heat and the dashboard too", || site::ends_well(server));
    Ok(())
}

/// Leases of hosts and of instances with Blazar's filter, while services fail.
fn with_blazar_filter(
    cases: &mut Cases,
    site: &Site<'_>,
    people: &People,
    mut server: Server,
) -> Result<Server> {
    let lab = site.lab;
    watcher::check(cases, site, "preempt", Stay::AtMost(STAYS));
    cases.check("a preemptible server runs in the free pool, any other nowhere", || {
        site.boot("bob", "chemistry", "spot", &["--flavor", "preempt"])?;
        site.refused("bob", "chemistry", "refused", &["--flavor", "small"])
    });
    let mine = cases.check("a lease of all hosts starts once the preemptible server has left", || {
        let reservation =
            site.lease("alice", "physics", "mine", "resource_type=physical:host,min=3,max=3")?;
        let pool = site.aggregate(&reservation)?.context("no aggregate")?;
        ensure!(pool["availability_zone"] == format!("blazar_{reservation}"), "{pool}");
        ensure!(pool["metadata"]["blazar:owner"] == people.physics.as_str(), "{pool}");
        ensure!(pool["metadata"]["filter_lease_id"] == site.alices("mine")?["id"], "{pool}");
        ensure!(site.members(&reservation)?.len() == 3 && site.members(FREE_POOL)?.is_empty(), "{pool}");
        ensure!(!site.servers("bob", "chemistry")?.contains("spot"), "the preemptible server is still there");
        Ok(reservation)
    });
    if let Some(reservation) = mine {
        let hint = format!("reservation={reservation}");
        let words = ["--flavor", "small", "--hint", hint.as_str()];
        cases.check(
            "the owner's server runs there, another project's server with the same hint does not",
            || {
                site.boot("alice", "physics", "guest", &words)?;
                site.refused("bob", "chemistry", "foreign", &words)
            },
        );
        let killed = cases.check("it ends although the service is killed in the middle", || {
            let mut deleting = site.command("alice", "physics", &["reservation", "lease", "delete", "mine"]);
            let mut deleting = deleting.spawn().context("cannot run the client")?;
            until("no host was taken back", || Ok(site.closed()? > 0))?;
            let ended = server.kill();
            deleting.wait()?;
            ended?;
            let started = site.launch.start()?;
            until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
            until("services stay disabled", || Ok(site.closed()? == 0))?;
            // The aggregate is deleted last, once the hosts are back.
            until("the aggregate stays", || Ok(site.aggregate(&reservation)?.is_none()))?;
            ensure!(!site.servers("alice", "physics")?.contains("guest"), "the server is still there");
            Ok(started)
        });
        server = match killed {
            Some(server) => server,
            None => site.launch.start()?,
        };
    }
    cases.check("a lease that is made while Nova is away starts when it is back", || {
        lab.stop("nova-api")?;
        let make = site.command("alice", "physics", &Site::lease_words("late", HOST_LEASE));
        output_of(&mut { make })?;
        sleep(Duration::from_secs(5));
        lab.up()?;
        site.until_active("late")?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "late"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    hosts_that_leave_the_free_pool(cases, site);
    cases.check("a lease of instances has a flavor that starts as many servers as were leased", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=None";
        let reservation = site.lease("alice", "physics", "room", wanted)?;
        for name in ["room-1", "room-2"] {
            site.boot("alice", "physics", name, &["--flavor", &reservation])?;
        }
        site.refused("alice", "physics", "room-3", &["--flavor", &reservation])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "room"])?;
        until("the aggregate stays", || Ok(site.aggregate(&reservation)?.is_none()))?;
        let left = site.servers("alice", "physics")?;
        ensure!(!left.contains("room"), "{left}");
        Ok(())
    });
    what_nova_has_for_reservations(cases, site);
    ratios::of_placement(cases, site);
    let hinted = |reservation: &str| {
        ["--flavor", "small", "--hint", &format!("reservation={reservation}")].map(str::to_owned).to_vec()
    };
    staying::at_the_end(cases, site, staying::Ways { words: hinted, preemptible: "preempt", alone: true });
    Ok(server)
}

/// An administrator removes a host from the free pool in Nova without telling the service.
fn hosts_that_leave_the_free_pool(cases: &mut Cases, site: &Site<'_>) {
    let take_out = || site.admin_client(&["aggregate", "remove", "host", FREE_POOL, "host2"]);
    let is_in = || Ok(site.members(FREE_POOL)?.contains(&"host2".to_owned()));
    cases.check("a host that leaves the free pool at Nova is taken on again, and leased", || {
        take_out()?;
        until("the host stays out", is_in)?;
        site.lease("alice", "physics", "whole", "resource_type=physical:host,min=3,max=3")?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "whole"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    cases.check("a host that is disabled in Nova stays out until it is enabled", || {
        let service = |word| site.admin_client(&["compute", "service", "set", word, "host2", "nova-compute"]);
        service("--disable")?;
        take_out()?;
        // Longer than the interval between passes.
        sleep(Duration::from_secs(45));
        ensure!(!is_in()?, "it was taken on again");
        service("--enable")?;
        until("the host stays out", is_in)
    });
}

/// Responses name a reservation's aggregates, flavors and server groups.
fn what_nova_has_for_reservations(cases: &mut Cases, site: &Site<'_>) {
    cases.check("the answer to a request for instances names Nova's flavor and group for its owner", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=False";
        let answer = site.answer_to("spread", wanted)?;
        let text = |field: &str| answer[field].as_str().with_context(|| format!("no {field}: {answer}"));
        let (flavor, group) = (text("flavor_id")?, text("server_group_id")?);
        let aggregate = site.aggregate(flavor)?.context("no aggregate")?;
        ensure!(aggregate["id"] == answer["aggregate_id"], "{aggregate} {answer}");
        site.until_active("spread")?;
        let mut hosts = Vec::new();
        for name in ["spread-1", "spread-2"] {
            site.boot("alice", "physics", name, &["--flavor", flavor])?;
            let words =
                ["server", "list", "--all-projects", "--long", "--name", name, "-f", "value", "-c", "Host"];
            hosts.push(site.admin_client(&words)?);
        }
        ensure!(hosts[0] != hosts[1], "{hosts:?}");
        let made = site.nova(&format!("os-server-groups/{group}"))?;
        ensure!(made["server_group"]["policies"] == json!(["anti-affinity"]), "{made}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "spread"])?;
        until("the aggregate stays", || Ok(site.aggregate(flavor)?.is_none()))?;
        let left = site.nova(&format!("os-server-groups/{group}"))?;
        ensure!(left["itemNotFound"].is_object(), "{left}");
        let left = site.nova(&format!("flavors/{flavor}"))?;
        ensure!(left["itemNotFound"].is_object(), "{left}");
        Ok(())
    });
    cases.check("a flavor of Nova can be leased, but not an unknown flavor", || {
        let answer = site.answer_to("small", "resource_type=flavor:instance,flavor_id=small,amount=1")?;
        let flavor = answer["flavor_id"].as_str().with_context(|| answer.to_string())?;
        let made = site.nova(&format!("flavors/{flavor}"))?;
        let small = site.nova("flavors/small")?;
        ensure!(made["flavor"]["ram"] == small["flavor"]["ram"], "{made} {small}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "small"])?;
        match site.answer_to("none", "resource_type=flavor:instance,flavor_id=nowhere,amount=1") {
            Ok(made) => bail!("{made}"),
            Err(error) => ensure!(error.to_string().contains("nowhere"), "{error}"),
        }
        Ok(())
    });
    cases.check("a lease that starts later has its aggregate within two seconds", || {
        site.client("alice", "physics", &[&Site::lease_words("later", HOST_LEASE)[..], &LATER].concat())?;
        sleep(Duration::from_secs(2));
        let shown =
            site.client("alice", "physics", &["reservation", "lease", "show", "later", "-f", "json"])?;
        let reservation = first_reservation(&shown)?;
        let aggregate = site.aggregate(reservation["id"].as_str().context("no reservation")?)?;
        let aggregate = aggregate.with_context(|| format!("no aggregate: {reservation}"))?;
        ensure!(reservation["aggregate_id"] == aggregate["id"] && aggregate["id"].is_u64(), "{reservation}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "later"])?;
        until("the aggregate stays", || Ok(site.aggregate(&text_of(&aggregate["name"]))?.is_none()))
    });
}

/// Dates far in the future.
const LATER: [&str; 4] = ["--start-date", "2040-01-01 10:00", "--end-date", "2040-01-01 12:00"];
