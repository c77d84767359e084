//! Replays recorded exchanges with a real Nova, Placement, Neutron and Glance: the driver must send the same
//! requests and reach the same results. The stand-in's answers are compared with the recorded ones, so that
//! no test relies on an answer that no cloud gives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use fleet::conformance::{self, facts};
use fleet::{About, Fleet, FleetError, Network, OperationKey, Outcome, perform};
use leases::host::FloatingIp;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::{Action, GuestOwner, Place};
use leases::project::ProjectId;
use leases::terms::{Affinity, InstanceSize};
use serde_json::{Value, json};

use crate::handing_over::seen;
use crate::lab::{self, Admin};
use crate::promises::guest;
use crate::standin::{Exchange, Standin, token};

const RECORDING: &str = "tests/cloud/exchanges/nova-34.json";

const HOSTS: ReservationId = ReservationId(0x5f0c_4a39_6f0e_4c52_9d5a_0b1c_c07e_91a1);
const SLOTS: ReservationId = ReservationId(0x6f0c_4a39_6f0e_4c52_9d5a_0b1c_c07e_91a2);
const LEASE: LeaseId = LeaseId(0x7f0c_4a39_6f0e_4c52_9d5a_0b1c_c07e_91a3);

/// Takes the first of two hosts through everything that can be done to it. `boot` starts a server there and
/// returns its identifier. The server belongs to the lease's project if the lease holds the host, and is
/// preemptible otherwise. `meanwhile` lets time pass, and completes images like a hypervisor.
async fn walk(
    fleet: &dyn Fleet,
    [host, other]: [HostId; 2],
    project: &str,
    boot: impl AsyncFn(Option<ReservationId>) -> String,
    meanwhile: impl AsyncFn(),
) {
    let networks = fleet.networks().await.expect("networks");
    let holds = |network: &&Network| {
        network.subnets.iter().any(|subnet| subnet.cidr.0 == IpAddr::from([203, 0, 113, 0]))
    };
    let network = networks.iter().find(holds).expect("an external network").id.clone();
    let ip = FloatingIp { network, ..conformance::address() };
    let mut fence = 0;
    let mut step = async |action: Action| -> Result<Outcome, FleetError> {
        fence += 1;
        let size = InstanceSize::new(1, 512, 1).expect("a size");
        let facts = facts(action, ProjectId(project.to_owned()), size, Affinity::DistinctHosts);
        let key = OperationKey::of(action, fence, Some(LEASE)).with_facts(Some(facts));
        loop {
            match perform(fleet, action, About { address: Some(&ip), ..About::default() }, &key).await {
                Ok(Outcome::Pending) if matches!(action, Action::Snapshot(..) | Action::MoveGuest(..)) => {
                    meanwhile().await;
                }
                Ok(Outcome::Pending) => {}
                other => return other,
            }
        }
    };
    let done = Ok(Outcome::Done);
    let (machines, before) = fleet.survey(&[host].into(), &[]).await.expect("a round");
    let machine = machines.into_iter().find(|machine| machine.id == host).expect("the host");
    assert!((machine.vcpus, machine.memory_mib) == (10, 8192) && machine.traits.contains("COMPUTE_NODE"));
    assert!(before.hosts.is_empty());
    for host in [host, other] {
        assert_eq!(fleet.adopt(host).await, done);
    }
    let server = guest(&boot(None).await);
    assert_eq!(step(Action::Fence(host)).await, done);
    let there = seen(fleet, host).await;
    assert_eq!((there.place, there.guests.len()), (Place::Fenced { verified_for: None }, 1));
    assert_eq!((there.guests[0].id, there.guests[0].owner), (server, GuestOwner::Preemptible));
    assert_eq!(step(Action::StopGuest(host, server)).await, done);
    while seen(fleet, host).await.guests[0].mobility.is_none() {
        meanwhile().await;
    }
    for action in [Action::MoveGuest(host, server, other), Action::DeleteGuest(other, server)] {
        assert_eq!(step(action).await, done, "{action}");
    }
    assert_eq!(fleet.abandon(other).await, done);
    for action in [Action::Verify(host, HOSTS), Action::Hold(host, HOSTS)] {
        assert_eq!(step(action).await, done, "{action}");
    }
    assert_eq!(seen(fleet, host).await.place, Place::Held(HOSTS));
    let ratios = Ratios { cpu: Ratio::new(3.0), ram: None };
    assert_eq!(step(Action::SetRatios(host, HOSTS, ratios)).await, done);
    let told = seen(fleet, host).await.overcommit.and_then(|told| told.cpu).expect("it was told");
    assert!(told.ratio == ratios.cpu && told.before != Ratio::new(3.0).expect("a ratio"), "{told:?}");
    assert!(fleet.overruled(&[host].into()).await.expect("an answer").is_empty());
    let own = guest(&boot(Some(HOSTS)).await);
    for action in [Action::Snapshot(host, HOSTS), Action::DeleteGuest(host, own)] {
        assert_eq!(step(action).await, done, "{action}");
    }
    for action in [Action::Release(host, HOSTS), Action::Finish(HOSTS), Action::Prepare(SLOTS)] {
        assert_eq!(step(action).await, done, "{action}");
    }
    let made = fleet.observe(&BTreeSet::new(), &[]).await.expect("an answer").reservations;
    assert!(made[&SLOTS].complete.is_some() && made[&SLOTS].server_group.is_some(), "{made:?}");
    assert!(!made.contains_key(&HOSTS), "{made:?}");
    for slots in [2, 1] {
        assert_eq!(step(Action::Grant(host, SLOTS, slots)).await, done);
        assert_eq!(seen(fleet, host).await.slots[&SLOTS], slots);
    }
    for action in [Action::Withdraw(host, SLOTS), Action::Finish(SLOTS)] {
        assert_eq!(step(action).await, done, "{action}");
    }
    let holder = async || {
        let seen = fleet.observe(&BTreeSet::new(), std::slice::from_ref(&ip)).await.expect("an answer");
        seen.floating_ips.get(&ip.id).copied()
    };
    assert_eq!(step(Action::Assign(ip.id, HOSTS)).await, done);
    assert_eq!(holder().await, Some(HOSTS));
    assert_eq!(step(Action::Unassign(ip.id, HOSTS)).await, done);
    assert_eq!(holder().await, None);
    let there = seen(fleet, host).await;
    assert_eq!((there.place, there.slots.len()), (Place::FreePool, 0));
    assert_eq!(fleet.abandon(host).await, done);
    assert!(fleet.observe(&[host].into(), &[]).await.expect("an answer").hosts.is_empty());
}

/// A server that answers with a function, and logs in every client as that user.
async fn serve<F, A>(user: String, answer: F) -> String
where
    F: Fn(Exchange) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = (u16, Value)> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let handler = async |State((url, user, answer)): State<(String, String, F)>,
                         method: Method,
                         uri: Uri,
                         headers: HeaderMap,
                         body: Bytes|
           -> Response {
        if uri.path() == "/v3/auth/tokens" {
            return (StatusCode::CREATED, [("x-subject-token", "token")], token(&url, &user).to_string())
                .into_response();
        }
        let version = headers.get("openstack-api-version").and_then(|value| value.to_str().ok());
        let asked = Exchange {
            method: method.to_string(),
            path: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            version: version.unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            status: 0,
            answer: Value::Null,
        };
        let (status, body) = answer(asked).await;
        let text = if body.is_null() { String::new() } else { body.to_string() };
        (StatusCode::from_u16(status).expect("a status"), text).into_response()
    };
    let app = Router::new().fallback(handler).with_state((url.clone(), user, answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn recording() -> Value {
    serde_json::from_str(include_str!("exchanges/nova-34.json")).expect("the recording is JSON")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn exchanges(recording: &Value) -> Vec<Exchange> {
    let all = recording["exchanges"].as_array().expect("a list");
    let exchange = |one: &Value| Exchange {
        method: text(&one["method"]),
        path: text(&one["path"]),
        version: text(&one["version"]),
        body: one["body"].clone(),
        status: one["status"].as_u64().and_then(|status| status.try_into().ok()).expect("a status"),
        answer: one["answer"].clone(),
    };
    all.iter().map(exchange).collect()
}

#[tokio::test]
async fn the_driver_walks_through_a_recorded_cloud() {
    let recording = recording();
    let mut answers: BTreeMap<String, VecDeque<Exchange>> = BTreeMap::new();
    let key = |asked: &Exchange| format!("{} {} {} {}", asked.method, asked.path, asked.version, asked.body);
    for exchange in exchanges(&recording) {
        answers.entry(key(&exchange)).or_default().push_back(exchange);
    }
    let answers = Arc::new(Mutex::new(answers));
    let url = serve(text(&recording["user"]), move |asked| {
        let mut answers = answers.lock().expect("no panic");
        let found = answers.get_mut(&key(&asked));
        let found =
            found.and_then(|queue| if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() });
        let answer = match found {
            Some(exchange) => (exchange.status, exchange.answer),
            None => (418, json!({"error": {"message": format!("never asked: {}", key(&asked))}})),
        };
        async { answer }
    })
    .await;
    let fleet = crate::standin::driver(&url);
    let hosts = ["host", "other_host"].map(|name| HostId(recording[name].as_u64().expect("a number")));
    let booted = async |holder: Option<ReservationId>| {
        text(&recording[if holder.is_some() { "own_server" } else { "server" }])
    };
    walk(&fleet, hosts, recording["project"].as_str().expect("a project"), booted, async || {}).await;
}

/// The kind of a request, without identifiers: `POST /compute/servers/*/action os-stop`.
fn kind(exchange: &Exchange) -> String {
    let (path, query) = exchange.path.split_once('?').unwrap_or((&exchange.path, ""));
    let part = |part: &str| {
        let number = part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty();
        let identifier = part.len() == 36 && part.bytes().filter(|byte| *byte == b'-').count() == 4;
        let custom = part.starts_with("CUSTOM_");
        if number || identifier || custom { "*".to_owned() } else { part.to_owned() }
    };
    let path: Vec<String> = path.split('/').map(part).collect();
    let names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    let action = exchange.body.as_object().filter(|_| path.last().is_some_and(|last| last == "action"));
    let action = action.and_then(|body| body.keys().next()).map_or("", String::as_str);
    format!("{} {} {} {action} {}", exchange.method, path.join("/"), names.join("&"), exchange.status)
}

/// The first part of the stand-in's answer that the cloud's answers don't have.
fn strange(place: &str, ours: &Value, theirs: &[&Value]) -> Option<String> {
    /// Objects with user-defined keys.
    const CHOSEN: [&str; 5] = ["metadata", "allocations", "inventories", "extra_specs", "cpu_info"];
    let theirs: Vec<&Value> = theirs.iter().copied().filter(|value| !value.is_null()).collect();
    match ours {
        _ if theirs.is_empty() => None,
        Value::Null => None,
        Value::Object(fields) if !CHOSEN.iter().any(|name| place.ends_with(name)) => {
            fields.iter().find_map(|(name, value)| {
                let same: Vec<&Value> = theirs.iter().filter_map(|other| other.get(name)).collect();
                let place = format!("{place}.{name}");
                if same.is_empty() { Some(place) } else { strange(&place, value, &same) }
            })
        }
        Value::Array(items) => {
            let others: Vec<&Value> = theirs.iter().filter_map(|other| other.as_array()).flatten().collect();
            items.iter().find_map(|item| strange(&format!("{place}[]"), item, &others))
        }
        _ => {
            let same =
                theirs.iter().any(|other| std::mem::discriminant(*other) == std::mem::discriminant(ours));
            (!same).then(|| format!("{place} is {ours}"))
        }
    }
}

#[tokio::test]
async fn the_stand_in_answers_as_the_cloud_did() {
    let mut recorded: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
    for exchange in exchanges(&recording()) {
        recorded.entry(kind(&exchange)).or_default().push(exchange);
    }
    let cloud = Standin::start(2).await;
    // As in the recording, the lease belongs to the service's own project.
    let boot = async |holder: Option<ReservationId>| {
        let project = if holder.is_some() { "p1" } else { "another" };
        cloud.state().boot("host1", project, holder.is_none())
    };
    walk(&cloud.fleet(), [HostId(1), HostId(2)], "p1", boot, async || {}).await;
    let mut differences = Vec::new();
    let ours = cloud.exchanges();
    assert!(ours.len() > 40);
    for exchange in ours {
        let kind = kind(&exchange);
        match recorded.get(&kind) {
            None => differences.push(format!("{kind}: the cloud never answered so")),
            Some(theirs) => {
                let theirs: Vec<&Value> = theirs.iter().map(|other| &other.answer).collect();
                differences.extend(strange(&kind, &exchange.answer, &theirs));
            }
        }
    }
    differences.sort_unstable();
    differences.dedup();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[tokio::test]
#[ignore = "needs a cloud: `cargo xtask lab openstack` has one; writes the recording again"]
async fn a_real_cloud_is_walked_through_and_recorded() {
    let keystone = std::env::var("ALLOT_LAB_KEYSTONE").expect("ALLOT_LAB_KEYSTONE");
    let session = lab::session(&keystone);
    let admin = Admin::new(session.clone()).await;
    admin.reset().await;
    let exchanges: Arc<Mutex<Vec<Exchange>>> = Arc::default();
    let (written, cloud) = (exchanges.clone(), Arc::new(lab::Direct::log_in(&keystone).await));
    let url = serve(admin.user().to_owned(), move |asked| {
        let (written, cloud) = (written.clone(), cloud.clone());
        async move {
            let (status, answer) = cloud.ask(&asked).await;
            written.lock().expect("no panic").push(Exchange { status, answer: answer.clone(), ..asked });
            (status, answer)
        }
    })
    .await;
    let fleet = crate::standin::driver(&url);
    let machines = fleet::Inventory::machines(&fleet).await.expect("machines");
    let [machine, other] = &machines[..2] else { panic!("too few machines") };
    exchanges.lock().expect("no panic").clear();
    // A driver without memory, so that the recording includes all of its requests.
    let (fleet, booted) = (crate::standin::driver(&url), Mutex::new(Vec::new()));
    let boot = async |holder: Option<ReservationId>| {
        let zone = holder.map_or_else(|| "nova".to_owned(), |reservation| format!("blazar_{reservation}"));
        let id = admin.boot_in(&zone, &machine.service_name, holder.is_none()).await;
        booted.lock().expect("no panic").push(id.clone());
        id
    };
    let meanwhile = async || {
        admin.fill_images().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    walk(&fleet, [machine.id, other.id], admin.project(), boot, meanwhile).await;
    admin.reset().await;
    if std::env::var_os("ALLOT_RECORD").is_none() {
        return;
    }
    let (all, booted) = (exchanges.lock().expect("no panic"), booted.into_inner().expect("no panic"));
    let all: Vec<Value> = all
        .iter()
        .map(|one| {
            json!({
                "method": one.method, "path": one.path, "version": one.version, "body": one.body,
                "status": one.status, "answer": one.answer,
            })
        })
        .collect();
    let recording = json!({
        "what": "Exchanges with Nova 34, Placement 16, Neutron 29 and Glance 33, recorded; tokens are left out",
        "host": machine.id.0, "other_host": other.id.0, "user": admin.user(), "project": admin.project(),
        "server": booted[0], "own_server": booted[1],
        "exchanges": all,
    });
    let text = serde_json::to_string_pretty(&recording).expect("JSON");
    std::fs::write(RECORDING, text.replace("  ", " ") + "\n").expect("a file");
}
