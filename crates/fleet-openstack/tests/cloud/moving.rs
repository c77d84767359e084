//! Servers of other projects that are moved out of a lease's way.

use std::collections::BTreeSet;
use std::sync::Arc;

use ambient::ManualClock;
use fleet::{FleetError, Inventory as _, Isolation as _, Outcome};
use fleet_openstack::{Fence, OpenStackFleet};
use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::plan::{Action, Guest, Place};

use crate::handing_over::{MINE, ONE, done, seen, step};
use crate::promises::guest;
use crate::standin::{Confirmations, MIGRATION_TIME, Migration, OWN_USER, Standin, migrations};

const TWO: HostId = HostId(2);
const OPEN: Fence = Fence::AllotFilter { open_pool: true, projects: Vec::new() };

/// A cloud with two adopted hosts and an open pool, and a server of another project in that state on the
/// first one.
async fn with_server(status: &'static str) -> (Standin, OpenStackFleet, String) {
    let cloud = Standin::with(2, OPEN).await;
    let server = cloud.state().boot("host1", "another", false);
    cloud.state().servers.get_mut(&server).expect("a server").status = status;
    let fleet = cloud.fleet();
    for host in [ONE, TWO] {
        assert_eq!(fleet.adopt(host).await, Ok(Outcome::Done));
    }
    (cloud, fleet, server)
}

fn away(server: &str) -> Action {
    Action::MoveGuest(ONE, guest(server), TWO)
}

async fn on(fleet: &OpenStackFleet, host: HostId) -> Vec<Guest> {
    seen(fleet, host).await.guests
}

/// Repeats the step until the server is moved, as a lease does.
async fn until_moved(fleet: &OpenStackFleet, server: &str) {
    for _ in 0..20 {
        if step(fleet, away(server)).await.expect("it is moved") == Outcome::Done {
            return;
        }
        // From one list, since the move can progress between two.
        let all = fleet.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer").1.hosts;
        let there: usize = all.values().map(|host| host.guests.len()).sum();
        assert_eq!(there, 1, "it is on one host at a time: {all:?}");
        assert!(all[&ONE].guests.iter().all(|moving| moving.moving_to == Some(TWO)), "{all:?}");
    }
    panic!("it is not moved: {:?}", on(fleet, ONE).await);
}

#[tokio::test]
async fn a_server_that_is_shut_off_is_moved_and_confirmed_before_its_host_is_handed_over() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(on(&fleet, ONE).await[0].mobility.as_ref().expect("it can be moved").downtime_ms, 0);
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    done(&fleet, &[Action::Verify(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None }, "it is not confirmed");
    until_moved(&fleet, &server).await;
    assert_eq!(on(&fleet, TWO).await[0].id, guest(&server));
    done(&fleet, &[Action::Verify(ONE, MINE), Action::Hold(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Held(MINE));
    let state = cloud.state();
    assert_eq!((state.servers[&server].host.as_str(), state.servers[&server].status), ("host2", "SHUTOFF"));
    assert_eq!(state.migrations[0].status, "confirmed");
}

#[tokio::test]
async fn a_server_that_was_moved_before_is_followed_also_while_nova_has_no_migration_of_the_next_move() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    {
        let mut state = cloud.state();
        let (from, to) = ("host2".to_owned(), "host1".to_owned());
        state.migrations.push(Migration {
            kind: "migration",
            server: server.clone(),
            user: OWN_USER,
            from,
            to,
            status: "confirmed",
        });
        state.migrations_late = true;
    }
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending), "there is the earlier one only");
    cloud.state().migrations_late = false;
    until_moved(&fleet, &server).await;
    let became: Vec<_> = cloud.state().migrations.iter().map(|migration| migration.status).collect();
    assert_eq!(became, ["confirmed", "confirmed"]);
}

#[tokio::test]
async fn a_move_that_nobody_waits_for_any_more_is_confirmed_by_the_next_service_as_well() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    drop(fleet);
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let next = cloud.fleet_by(clock.clone());
    for became in ["finished", "confirmed"] {
        for _ in 0..6 {
            let all = next.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer").1.hosts;
            let there: usize = all.values().map(|host| host.guests.len()).sum();
            assert_eq!(there, 1, "{all:?}");
        }
        assert_eq!(cloud.state().migrations[0].status, became, "the service that began it goes first");
        clock.advance(SignedDuration::from_mins(1));
    }
    assert_eq!(cloud.state().migrations[0].status, "confirmed");
    assert_eq!(on(&next, TWO).await[0].id, guest(&server));
    // From now on, migrations are no longer listed.
    cloud.exchanges();
    next.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer");
    let asked = cloud.exchanges();
    assert!(!asked.iter().any(|exchange| exchange.path.contains("os-migrations")), "{asked:?}");
}

/// Nova can accept two concurrent confirmations, and the second one leaves the server in ERROR.
#[tokio::test]
async fn a_move_is_confirmed_once_however_many_looks_see_it_and_again_if_nova_did_not_take_it() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    cloud.state().confirmations = Confirmations::Refused;
    let (first, second, both) = (BTreeSet::from([ONE]), BTreeSet::from([TWO]), BTreeSet::from([ONE, TWO]));
    let look = async || {
        let looks = [&first, &second, &both].map(|hosts| fleet.observe(hosts, &[]));
        for seen in futures::future::join_all(looks).await {
            seen.expect("an answer");
        }
    };
    let confirmed = || {
        let asked = cloud.exchanges();
        asked.iter().filter(|asked| asked.body.get("confirmResize").is_some()).count()
    };
    for _ in 0..3 {
        look().await;
    }
    assert!(confirmed() > 1, "it is tried again");
    cloud.state().confirmations = Confirmations::Late;
    for _ in 0..3 {
        look().await;
    }
    assert_eq!(confirmed(), 1);
    {
        let mut state = cloud.state();
        state.confirmations = Confirmations::AtOnce;
        assert_eq!(state.migrations[0].status, "finished");
        state.migrations[0].status = "confirming";
    }
    until_moved(&fleet, &server).await;
}

#[tokio::test]
async fn what_others_have_moved_or_resized_is_left_to_them() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    {
        let mut state = cloud.state();
        let moved = state.servers.get_mut(&server).expect("a server");
        (moved.host, moved.status) = ("host2".to_owned(), "VERIFY_RESIZE");
        let (from, to) = ("host1".to_owned(), "host2".to_owned());
        state.migrations.push(Migration {
            kind: "migration",
            server: server.clone(),
            user: "operator",
            from,
            to,
            status: "finished",
        });
        // A server that was resized by its owner has no migration of this kind.
        let resized = state.boot("host1", "another", false);
        state.servers.get_mut(&resized).expect("a server").status = "VERIFY_RESIZE";
    }
    done(&fleet, &[Action::Fence(ONE)]).await;
    for _ in 0..3 {
        fleet.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer");
    }
    let (waiting, moved) = (on(&fleet, ONE).await, on(&fleet, TWO).await);
    assert_eq!((waiting.len(), waiting[0].mobility.clone(), moved[0].id), (1, None, guest(&server)));
    assert_eq!(cloud.state().migrations[0].status, "finished");
    let confirmed = cloud.exchanges().into_iter().any(|asked| asked.body.get("confirmResize").is_some());
    assert!(!confirmed);
}

#[tokio::test]
async fn a_move_that_fails_in_nova_is_told_and_begun_again() {
    let (cloud, fleet, server) = with_server("SHUTOFF").await;
    cloud.state().migrations_fail = true;
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    let failed = step(&fleet, away(&server)).await;
    assert!(
        matches!(&failed, Err(FleetError::Unavailable(why)) if why.contains("migration list")),
        "{failed:?}"
    );
    cloud.state().migrations_fail = false;
    until_moved(&fleet, &server).await;
    let state = cloud.state();
    let became: Vec<_> = state.migrations.iter().map(|migration| migration.status).collect();
    assert_eq!(became, ["error", "confirmed"]);
}

#[tokio::test]
async fn a_live_migration_that_takes_too_long_is_aborted_and_told() {
    let (cloud, _, server) = with_server("ACTIVE").await;
    cloud.state().live_migrations_hang = true;
    let began: Timestamp = format!("{}Z", migrations::BEGAN).parse().expect("an instant");
    let clock = Arc::new(ManualClock::new(began));
    let fleet = cloud.fleet_by(clock.clone());
    let look = async || fleet.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer").1.hosts;
    look().await;
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    clock.advance(MIGRATION_TIME - SignedDuration::from_secs(1));
    let moving = look().await[&ONE].guests[0].clone();
    assert_eq!((moving.moving_to, moving.copied_percent), (Some(TWO), Some(43)));
    assert_eq!(cloud.state().migrations[0].status, "running");
    // Another user's migration continues, regardless of its duration.
    let theirs = cloud.state().boot("host2", "another", false);
    migrations::begin_live(&mut cloud.state(), &theirs, "host1", "somebody");
    clock.advance(SignedDuration::from_secs(1));
    look().await;
    let became: Vec<_> = cloud.state().migrations.iter().map(|migration| migration.status).collect();
    assert_eq!(became, ["cancelled", "running"]);
    let error = step(&fleet, away(&server)).await.expect_err("it has not been moved");
    assert!(
        matches!(&error, FleetError::Unavailable(why) if why.contains("has not moved server")),
        "{error:?}"
    );
    // The next attempt has a time limit of its own, even for a service that knows nothing of the first.
    assert_eq!(step(&fleet, away(&server)).await, Ok(Outcome::Pending));
    let another = cloud.fleet_by(clock.clone());
    another.survey(&BTreeSet::from([ONE, TWO]), &[]).await.expect("an answer");
    let became: Vec<_> = cloud.state().migrations.iter().map(|migration| migration.status).collect();
    assert_eq!(became, ["cancelled", "running", "cancelled"], "all began at the same time here");
}

#[tokio::test]
async fn which_servers_move_depends_on_their_state_and_on_what_their_flavor_asks_for() {
    let (cloud, fleet, server) = with_server("ACTIVE").await;
    done(&fleet, &[Action::Fence(ONE)]).await;
    let specs: [(&str, &str, &[&str]); 9] = [
        ("", "", &["ACTIVE", "PAUSED", "SHUTOFF"]),
        ("hw:cpu_policy", "dedicated", &["ACTIVE", "PAUSED", "SHUTOFF"]),
        ("pci_passthrough:alias", "gpu:1", &["SHUTOFF"]),
        ("resources1:VGPU", "1", &["SHUTOFF"]),
        ("resources:VGPU", "1", &["SHUTOFF"]),
        ("accel:device_profile", "fpga", &["SHUTOFF"]),
        ("hw:mem_encryption", "True", &["SHUTOFF"]),
        ("hw:mem_encryption", "false", &["ACTIVE", "PAUSED", "SHUTOFF"]),
        ("hw:tpm_version", "2.0", &[]),
    ];
    let states = ["ACTIVE", "PAUSED", "SHUTOFF", "SUSPENDED", "RESCUE", "ERROR", "SHELVED", "VERIFY_RESIZE"];
    for (spec, value, move_in) in specs {
        for status in states {
            {
                let mut state = cloud.state();
                let server = state.servers.get_mut(&server).expect("a server");
                server.status = status;
                server.specs = [(spec.to_owned(), value.to_owned())].into();
            }
            let moves = on(&fleet, ONE).await[0].mobility.is_some();
            assert_eq!(moves, move_in.contains(&status), "{spec}={value}, {status}");
        }
    }
    let mut busy = cloud.state().servers[&server].clone();
    (busy.status, busy.task, busy.specs) = ("ACTIVE", Some("powering-off"), [].into());
    cloud.state().servers.insert(server.clone(), busy);
    assert_eq!(on(&fleet, ONE).await[0].mobility, None);
    assert!(step(&fleet, away(&server)).await.is_err());
}
