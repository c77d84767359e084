//! A rack whose hooks are a shell script. The script logs its calls to a file. Guests are files, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ambient::ManualClock;
use async_trait::async_trait;
use fleet::conformance::{self, Subject};
use fleet::hooks::{HooksConfig, HooksFleet};
use fleet::{Fleet, FleetError, Inventory as _, Isolation as _, OperationKey, Outcome, Power as _};
use jiff::Timestamp;
use leases::host::Health;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::instance::{Instance, InstanceKind};
use leases::plan::{Action, GuestOwner, GuestSize, Place, Powered};
use leases::project::{Owner, ProjectId, UserId};
use leases::status::LeaseStatus;

use crate::conductor::{Conductor, address, at, hosts, lease, slots};

const SCRIPT: &str = r#"#!/bin/sh
# Fails as long as there is a file of the moment's name.
cd "$(dirname "$0")" || exit 2
cat > told.json
printf '%s\n' "$ALLOT_USER_ID $ALLOT_START $ALLOT_END $ALLOT_RESOURCE_PROPERTIES" > variables
if [ "$ALLOT_MOMENT" != check ]; then
    echo "$ALLOT_MOMENT $ALLOT_HOST$ALLOT_FLOATING_IP $ALLOT_RESERVATION" >> log
fi
if [ -e "fail-$ALLOT_MOMENT" ]; then
    echo "starting"
    echo "the switch does not answer" >&2
    exit 3
fi
[ "$ALLOT_MOMENT" = check ] || exit 0
printf '{"guests": ['
separator=
for guest in guests/"$ALLOT_HOST_ID"/*; do
    [ -e "$guest" ] || continue
    printf '%s{"id": "%s", "owner": "%s"}' "$separator" "$(basename "$guest")" "$(cat "$guest")"
    separator=,
done
printf ']}\n'
"#;

pub(crate) const HOST: HostId = HostId(1);
pub(crate) const MINE: ReservationId = ReservationId(0xb1);
pub(crate) const THEIRS: ReservationId = ReservationId(0xb2);

pub(crate) struct Rack {
    pub(crate) directory: PathBuf,
    pub(crate) fleet: HooksFleet,
    /// Guests that are starting.
    flying: Mutex<Vec<(HostId, GuestId)>>,
    guests: AtomicU64,
}

pub(crate) fn rack() -> Rack {
    static RACKS: AtomicU64 = AtomicU64::new(0);
    let number = RACKS.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("allot-rack-{}-{number}", std::process::id()));
    fs::create_dir_all(directory.join("guests")).expect("a directory");
    fs::write(directory.join("hook.sh"), SCRIPT).expect("a file");
    let fleet = open(&directory);
    Rack { directory, fleet, flying: Mutex::new(Vec::new()), guests: AtomicU64::new(1) }
}

fn open(directory: &Path) -> HooksFleet {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    HooksFleet::open(&config(directory), clock).expect("a fleet")
}

/// All hooks except `on_adopt`, `on_abandon`, `on_prepare` and `on_finish`.
fn config(directory: &Path) -> HooksConfig {
    config_with(directory, &[])
}

pub(crate) fn config_with(directory: &Path, more: &[&str]) -> HooksConfig {
    let host =
        |id: u64| serde_json::json!({"id": id, "name": format!("node{id}"), "vcpus": 8, "memory_mib": 4096});
    let hook = serde_json::json!({"exec": ["sh", directory.join("hook.sh")]});
    let moments = [
        "on_fence",
        "on_unfence",
        "on_hold",
        "on_release",
        "on_grant",
        "on_withdraw",
        "on_assign",
        "on_unassign",
        "on_start",
        "on_stop",
        "on_resume",
        "on_migrate",
        "on_delete",
        "on_snapshot",
        "on_power_on",
        "on_power_off",
        "check",
    ];
    let hooks: serde_json::Map<_, _> =
        moments.iter().chain(more).map(|m| ((*m).to_owned(), hook.clone())).collect();
    let config = serde_json::json!({
        "state_file": directory.join("state.json"),
        "hosts": [host(1), host(2)],
        "hooks": hooks,
    });
    serde_json::from_value(config).expect("a configuration")
}

impl Rack {
    fn guest_file(&self, host: HostId, guest: GuestId) -> PathBuf {
        self.directory.join(format!("guests/{host}/{guest}"))
    }

    fn put_guest(&self, host: HostId, guest: GuestId, owner: &str) {
        let file = self.guest_file(host, guest);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, owner).expect("a file");
    }

    fn next_guest(&self) -> GuestId {
        GuestId(self.guests.fetch_add(1, Ordering::Relaxed).into())
    }

    pub(crate) fn set_failing(&self, moment: &str, failing: bool) {
        let file = self.directory.join(format!("fail-{moment}"));
        if failing {
            fs::write(file, "").expect("a file");
        } else {
            fs::remove_file(file).expect("no file");
        }
    }

    /// Returns and clears the log of hook calls.
    pub(crate) fn log(&self) -> Vec<String> {
        let file = self.directory.join("log");
        let log = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        log.lines().map(str::trim).map(str::to_owned).collect()
    }

    /// Replaces the process, as after a crash.
    fn restart(&mut self) {
        self.fleet = open(&self.directory);
    }

    async fn place(&self) -> Place {
        self.fleet.observe(&[HOST].into(), &[]).await.expect("an answer").hosts[&HOST].place
    }

    async fn verified(&self) {
        assert_eq!(self.fleet.adopt(HOST).await, Ok(Outcome::Done));
        assert_eq!(self.fleet.fence(HOST, &key(1)).await, Ok(Outcome::Done));
        assert_eq!(self.fleet.verify(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
        self.log();
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A new operation for every call.
pub(crate) fn key(fence: u64) -> OperationKey {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    let number = KEYS.fetch_add(1, Ordering::Relaxed);
    OperationKey { key: format!("call {number}"), fence, lease: Some(LeaseId(0xa1)), facts: None }
}

#[async_trait]
impl Subject for Rack {
    fn fleet(&self) -> &dyn Fleet {
        &self.fleet
    }

    async fn guest_appears(&self, host: HostId, owner: GuestOwner) -> GuestId {
        let guest = self.next_guest();
        let owner = if owner == GuestOwner::Preemptible { "preemptible" } else { "other" };
        self.put_guest(host, guest, owner);
        guest
    }

    async fn guest_sets_out(&self, host: HostId) -> GuestId {
        let guest = self.next_guest();
        self.flying.lock().expect("no panic").push((host, guest));
        guest
    }

    async fn guests_land(&self) {
        for (host, guest) in std::mem::take(&mut *self.flying.lock().expect("no panic")) {
            self.put_guest(host, guest, "preemptible");
        }
    }

    async fn guest_ends(&self, guest: GuestId) {
        for host in [HostId(1), HostId(2)] {
            let _ = fs::remove_file(self.guest_file(host, guest));
        }
    }

    async fn wait(&self) {}
}

#[tokio::test]
async fn a_rack_with_hooks_conforms() {
    conformance::all(|| async { rack() }).await;
}

#[tokio::test]
async fn a_hook_is_called_once_for_what_is_done_once() {
    let rack = rack();
    rack.verified().await;
    for _ in 0..2 {
        assert_eq!(rack.fleet.hold(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), [format!("on_hold node1 {MINE}")]);
    for _ in 0..2 {
        assert_eq!(rack.fleet.release(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}")]);
}

#[tokio::test]
async fn what_one_service_did_to_a_host_another_that_shares_it_sees_and_does_not_do_again() {
    let rack = rack();
    let other = open(&rack.directory);
    rack.verified().await;
    assert_eq!(other.hold(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(rack.place().await, Place::Held(MINE));
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_hold node1 {MINE}")]);
    assert_eq!(rack.fleet.release(HOST, MINE, &key(3)).await, Ok(Outcome::Done));
    assert_eq!(other.release(HOST, MINE, &key(4)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}")]);
    let seen = other.observe(&[HOST].into(), &[]).await.expect("an answer");
    assert_eq!(seen.hosts[&HOST].place, Place::FreePool);
}

#[tokio::test]
async fn services_that_share_hosts_do_not_write_over_what_others_wrote() {
    let rack = rack();
    let other = open(&rack.directory);
    let two = HostId(2);
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    assert_eq!(other.adopt(two).await, Ok(Outcome::Done));
    let ip = conformance::address();
    assert_eq!(rack.fleet.assign(&ip, MINE, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(other.fence(two, &key(1)).await, Ok(Outcome::Done));
    for fleet in [&rack.fleet, &other, &open(&rack.directory)] {
        let seen = fleet.observe(&[HOST, two].into(), &[]).await.expect("an answer");
        assert_eq!(seen.hosts[&HOST].place, Place::FreePool);
        assert_eq!(seen.hosts[&two].place, Place::Fenced { verified_for: None });
        assert_eq!(seen.floating_ips[&ip.id], MINE);
    }
}

#[tokio::test]
async fn two_services_are_not_at_work_on_one_host_at_once() {
    let rack = rack();
    let other = open(&rack.directory);
    rack.verified().await;
    // Both hand the host over, and the second one finds it done.
    let (one, two) = (key(1), key(2));
    let both = tokio::join!(rack.fleet.hold(HOST, MINE, &one), other.hold(HOST, MINE, &two));
    assert_eq!(both, (Ok(Outcome::Done), Ok(Outcome::Done)));
    assert_eq!(rack.log(), [format!("on_hold node1 {MINE}")]);
}

#[tokio::test]
async fn a_hook_that_fails_is_called_again_and_its_last_line_is_the_reason() {
    let rack = rack();
    rack.verified().await;
    rack.set_failing("on_hold", true);
    let failed = rack.fleet.hold(HOST, MINE, &key(1)).await;
    let Err(FleetError::Unavailable(reason)) = failed else { panic!("{failed:?}") };
    assert!(reason.starts_with("hook on_hold: "), "{reason}");
    assert!(reason.ends_with(": the switch does not answer"), "{reason}");
    assert_eq!(rack.place().await, Place::Fenced { verified_for: Some(MINE) });
    rack.set_failing("on_hold", false);
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.place().await, Place::Held(MINE));
    assert_eq!(rack.log().len(), 2);
}

#[tokio::test]
async fn w4_a_hand_over_that_a_crash_interrupted_is_undone_if_nobody_wants_it_any_more() {
    let mut rack = rack();
    rack.verified().await;
    rack.set_failing("on_hold", true);
    assert!(rack.fleet.hold(HOST, MINE, &key(1)).await.is_err());
    rack.restart();
    rack.log();
    assert_eq!(rack.fleet.unfence(HOST, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}"), "on_unfence node1".to_owned()]);
    assert_eq!(rack.place().await, Place::FreePool);
}

#[tokio::test]
async fn w4_a_hand_over_that_a_crash_interrupted_is_undone_before_another_reservation_gets_the_host() {
    let mut rack = rack();
    rack.verified().await;
    rack.set_failing("on_hold", true);
    assert!(rack.fleet.hold(HOST, MINE, &key(1)).await.is_err());
    rack.restart();
    rack.set_failing("on_hold", false);
    rack.log();
    assert_eq!(rack.fleet.verify(HOST, THEIRS, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.hold(HOST, THEIRS, &key(3)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}"), format!("on_hold node1 {THEIRS}")]);
}

#[tokio::test]
async fn w4_a_fence_that_a_crash_interrupted_is_repeated_before_the_host_counts_as_empty() {
    let mut rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    rack.set_failing("on_fence", true);
    assert!(rack.fleet.fence(HOST, &key(1)).await.is_err());
    rack.restart();
    assert_eq!(
        rack.place().await,
        Place::Fenced { verified_for: None },
        "so that it is unfenced if unwanted"
    );
    rack.log();
    assert!(rack.fleet.verify(HOST, MINE, &key(2)).await.is_err());
    rack.set_failing("on_fence", false);
    assert_eq!(rack.fleet.verify(HOST, MINE, &key(3)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_fence node1", "on_fence node1"]);
    assert_eq!(rack.place().await, Place::Fenced { verified_for: Some(MINE) });
}

#[tokio::test]
async fn w4_a_release_that_a_crash_interrupted_is_repeated() {
    let mut rack = rack();
    rack.verified().await;
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    rack.set_failing("on_release", true);
    assert!(rack.fleet.release(HOST, MINE, &key(1)).await.is_err());
    rack.restart();
    assert_eq!(rack.place().await, Place::Releasing(MINE));
    rack.set_failing("on_release", false);
    rack.log();
    assert_eq!(rack.fleet.release(HOST, MINE, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}")]);
    assert_eq!(rack.place().await, Place::FreePool);
}

#[tokio::test]
async fn a_host_whose_release_failed_half_way_is_released_and_handed_over_again_to_who_wants_it_after_all() {
    let rack = rack();
    rack.fleet.adopt(HOST).await.expect("nothing is there yet");
    let mut conductor = Conductor::new([HOST], vec![lease(1, 0, 60, vec![hosts(&[1])])]);
    for _ in 0..5 {
        conductor.turn(&rack.fleet, at(0)).await;
    }
    assert_eq!(conductor.leases[0].status, LeaseStatus::Active);
    let reservation = conductor.leases[0].reservations[0].id;
    // As when healing gives the lease another host and later this one again.
    rack.set_failing("on_release", true);
    assert!(rack.fleet.release(HOST, reservation, &key(100)).await.is_err());
    rack.set_failing("on_release", false);
    rack.log();
    for _ in 0..5 {
        conductor.turn(&rack.fleet, at(60)).await;
    }
    let wanted = [
        format!("on_release node1 {reservation}"),
        "on_fence node1".to_owned(),
        format!("on_hold node1 {reservation}"),
    ];
    assert_eq!(rack.log(), wanted);
    assert_eq!(rack.place().await, Place::Held(reservation));
}

#[tokio::test]
async fn slots_whose_withdrawal_failed_half_way_are_seen_as_none() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.grant(HOST, MINE, 3, &key(1)).await, Ok(Outcome::Done));
    rack.set_failing("on_withdraw", true);
    assert!(rack.fleet.withdraw(HOST, MINE, &key(2)).await.is_err());
    let seen = rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    assert_eq!(seen.hosts[&HOST].slots.get(&MINE), Some(&0), "so that they are granted again or withdrawn");
}

#[tokio::test]
async fn w4_an_address_that_may_have_been_handed_out_is_taken_back() {
    let mut rack = rack();
    let known = conformance::address();
    let ip = known.id;
    rack.set_failing("on_assign", true);
    assert!(rack.fleet.assign(&known, MINE, &key(1)).await.is_err());
    rack.restart();
    let holder = rack.fleet.observe(&[].into(), &[]).await.expect("an answer").floating_ips[&ip];
    assert_ne!(holder, MINE, "it is not certain");
    rack.log();
    assert_eq!(rack.fleet.unassign(ip, None, holder, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_unassign {ip} {MINE}")]);
    assert!(rack.fleet.observe(&[].into(), &[]).await.expect("an answer").floating_ips.is_empty());
}

#[tokio::test]
async fn slots_that_may_have_been_granted_are_seen_as_none() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    rack.set_failing("on_grant", true);
    assert!(rack.fleet.grant(HOST, MINE, 3, &key(1)).await.is_err());
    let seen = rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    assert_eq!(seen.hosts[&HOST].slots.get(&MINE), Some(&0), "so that they are granted again or withdrawn");
}

#[tokio::test]
async fn a_host_is_not_verified_while_its_check_fails_and_its_health_is_unknown() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.fence(HOST, &key(1)).await, Ok(Outcome::Done));
    rack.set_failing("check", true);
    assert!(rack.fleet.verify(HOST, MINE, &key(1)).await.is_err());
    let seen = rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    assert_eq!(seen.hosts[&HOST].health, leases::host::Health::Unknown);
}

#[tokio::test]
async fn guests_of_somebody_else_are_not_stopped_or_deleted() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    let other = rack.guest_appears(HOST, GuestOwner::Other).await;
    let preemptible = rack.guest_appears(HOST, GuestOwner::Preemptible).await;
    rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    rack.log();
    let fleet = rack.fleet();
    assert!(matches!(fleet.stop(HOST, other, false, &key(1)).await, Err(FleetError::Refused(_))));
    assert!(matches!(fleet.delete(HOST, other, false, &key(1)).await, Err(FleetError::Refused(_))));
    assert_eq!(fleet.stop(HOST, preemptible, false, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(fleet.stop(HOST, preemptible, false, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(fleet.delete(HOST, preemptible, false, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_stop node1", "on_delete node1"]);
    let seen = fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    let stopping = seen.hosts[&HOST].guests.iter().find(|guest| guest.id == preemptible);
    assert_eq!(stopping.expect("still there").stopping_since, Some(Timestamp::UNIX_EPOCH));
}

#[tokio::test]
async fn a_guest_that_was_asked_to_leave_in_vain_is_resumed_once_and_may_be_asked_again() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    let guest = rack.guest_appears(HOST, GuestOwner::Preemptible).await;
    rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    rack.log();
    let fleet = rack.fleet();
    assert_eq!(fleet.stop(HOST, guest, false, &key(1)).await, Ok(Outcome::Done));
    for fence in [2, 3] {
        assert_eq!(fleet.resume(HOST, guest, &key(fence)).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), ["on_stop node1", "on_resume node1"]);
    let seen = fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    assert!(seen.hosts[&HOST].guests.iter().all(|guest| guest.stopping_since.is_none()));
}

fn instance(kind: InstanceKind) -> Instance {
    let owner = Owner { project: ProjectId("red".to_owned()), user: UserId("ruth".to_owned()) };
    let size = GuestSize { vcpus: 2, memory_mib: 2048, disk_gib: 10 };
    Instance::new(GuestId(7), "web".to_owned(), owner, kind, size, HOST)
}

#[tokio::test]
async fn the_guest_of_an_instance_is_started_where_its_lease_is_and_nowhere_else() {
    let rack = rack();
    let part = |reservation| instance(InstanceKind::Reserved { lease: LeaseId(0xa1), reservation });
    rack.verified().await;
    let refused = rack.fleet().start(HOST, &part(MINE), &key(1)).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "not yet: {refused:?}");
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    rack.log();
    for other in [part(THEIRS), instance(InstanceKind::Regular)] {
        assert!(matches!(rack.fleet().start(HOST, &other, &key(1)).await, Err(FleetError::Refused(_))));
    }
    assert_eq!(rack.fleet().start(HOST, &part(MINE), &key(1)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_start node1 {MINE}")]);
    let told = fs::read_to_string(rack.directory.join("told.json")).expect("it was told");
    let told: serde_json::Value = serde_json::from_str(&told).expect("an object");
    assert_eq!(
        (&told["guest_name"], &told["guest_kind"], &told["project"], &told["vcpus"]),
        (&"web".into(), &"reserved".into(), &"red".into(), &2.into())
    );
    assert_eq!((&told["memory_mib"], &told["disk_gib"]), (&2048.into(), &10.into()));
    assert_eq!(told["guest"], GuestId(7).to_string());
}

#[tokio::test]
async fn pre_11_a_preemptible_guest_is_started_on_a_host_of_the_lease_that_lets_it_and_of_no_other() {
    let rack = rack();
    rack.verified().await;
    let lease = key(1).lease;
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(1)).await, Ok(Outcome::Done));
    rack.log();
    let own = || OperationKey { lease: None, ..key(1) };
    let on_host_of = |backfills| Instance { backfills, ..instance(InstanceKind::Preemptible) };
    for other in [None, Some(LeaseId(0xa2))] {
        let refused = rack.fleet().start(HOST, &on_host_of(other), &own()).await;
        assert!(matches!(refused, Err(FleetError::Refused(_))), "{other:?}: {refused:?}");
    }
    assert_eq!(rack.fleet().start(HOST, &on_host_of(lease), &own()).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_start node1"]);
    let told = fs::read_to_string(rack.directory.join("told.json")).expect("it was told");
    let told: serde_json::Value = serde_json::from_str(&told).expect("an object");
    assert_eq!((&told["guest_kind"], &told["lease"]), (&"preemptible".into(), &serde_json::Value::Null));
    assert_eq!(told["backfills"], lease.expect("a lease").to_string());
}

#[tokio::test]
async fn of_a_start_and_a_destruction_the_one_of_the_later_claim_counts() {
    let rack = rack();
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    let regular = instance(InstanceKind::Regular);
    let (start, destroy) = (Action::StartGuest(HOST, regular.id), Action::DestroyGuest(HOST, regular.id));
    let late = OperationKey::of(start, 4, None);
    let destroyed = rack.fleet().destroy(HOST, regular.id, &OperationKey::of(destroy, 5, None)).await;
    assert_eq!(destroyed, Ok(Outcome::Done));
    assert_eq!(rack.fleet().start(HOST, &regular, &late).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_delete node1"], "the start came late");
}

#[tokio::test]
async fn a_guest_of_somebody_else_is_moved_from_a_fenced_host_into_the_free_pool() {
    let rack = rack();
    let other_host = HostId(2);
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.adopt(other_host).await, Ok(Outcome::Done));
    let guest = rack.guest_appears(HOST, GuestOwner::Other).await;
    rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer");
    rack.log();
    let migrate = async |fence| rack.fleet().migrate(HOST, guest, other_host, &key(fence)).await;
    assert_eq!(migrate(1).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [""; 0], "nobody is moved from a host that is not fenced");
    assert_eq!(rack.fleet.fence(HOST, &key(1)).await, Ok(Outcome::Done));
    rack.log();
    assert_eq!(migrate(2).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_migrate node1"]);
    let told = fs::read_to_string(rack.directory.join("told.json")).expect("it was told");
    assert!(told.contains(r#""to_host":2"#) && told.contains(&guest.to_string()), "{told}");
    assert_eq!(rack.fleet.fence(other_host, &key(1)).await, Ok(Outcome::Done));
    assert!(matches!(migrate(3).await, Err(FleetError::Refused(_))), "that host is fenced by now");
}

#[tokio::test]
async fn leases_run_on_a_rack_whose_hooks_fail_for_a_while_and_whose_process_crashes() {
    let mut rack = rack();
    for host in [1, 2] {
        rack.fleet.adopt(HostId(host)).await.expect("nothing is there yet");
    }
    let leases = vec![lease(1, 0, 60, vec![hosts(&[1]), slots(2, 2), address(7)])];
    let mut conductor = Conductor::new([HostId(1), HostId(2)], leases);
    // Each hook fails for two minutes, one after another, and the process crashes in between.
    let moments = ["on_fence", "check", "on_grant", "on_assign", "on_hold"];
    let mut minute = 0;
    for moment in moments {
        rack.set_failing(moment, true);
        for _ in 0..2 {
            conductor.turn(&rack.fleet, at(minute * 60)).await;
            rack.restart();
            minute += 1;
        }
        rack.set_failing(moment, false);
    }
    let at_the_end = ["on_release", "on_withdraw", "on_unassign"];
    let mut statuses = Vec::new();
    while minute < 90 {
        if minute == 60 {
            for moment in at_the_end {
                rack.set_failing(moment, true);
            }
        }
        if minute == 70 {
            assert_eq!(conductor.leases[0].status, LeaseStatus::Terminating);
            for moment in at_the_end {
                rack.set_failing(moment, false);
            }
        }
        conductor.turn(&rack.fleet, at(minute * 60)).await;
        statuses.push(conductor.leases[0].status);
        minute += 1;
    }
    assert!(statuses.contains(&LeaseStatus::Active), "{:?}", conductor.leases);
    assert_eq!(statuses.last(), Some(&LeaseStatus::Terminated), "{:?}", conductor.leases);
    let log = rack.log();
    for (last_of_them, other) in
        [("on_release", "on_hold"), ("on_withdraw", "on_grant"), ("on_unassign", "on_assign")]
    {
        let position = |moment: &str| log.iter().rposition(|line| line.starts_with(moment));
        assert!(position(last_of_them) > position(other), "{log:#?}");
    }
}

#[tokio::test]
async fn energy_h_hosts_are_switched_by_hooks_and_checks_may_fail_meanwhile() {
    let mut rack = rack();
    assert!(rack.fleet.switches_hosts());
    rack.fleet.adopt(HOST).await.expect("empty");
    let key = |fence| OperationKey { key: "power host 1".to_owned(), fence, ..OperationKey::default() };
    let fence = OperationKey { key: "fence".to_owned(), fence: 1, ..OperationKey::default() };
    rack.fleet.fence(HOST, &fence).await.expect("fenced");
    rack.set_failing("on_power_off", true);
    assert!(matches!(rack.fleet.power_off(HOST, &key(2)).await, Err(FleetError::Unavailable(_))));
    rack.set_failing("on_power_off", false);
    let _ = rack.log();
    for fence in [3, 4] {
        assert_eq!(rack.fleet.power_off(HOST, &key(fence)).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), ["on_power_off node1"], "once");
    rack.restart();
    rack.set_failing("check", true);
    let seen = rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer").hosts.remove(&HOST);
    let seen = seen.expect("taken on");
    assert_eq!((seen.powered, seen.health), (Powered::Off, Health::Unknown));
    assert_eq!(rack.fleet.power_on(HOST, &key(5)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_power_on node1"]);
    rack.set_failing("check", false);
    let seen = rack.fleet.observe(&[HOST].into(), &[]).await.expect("an answer").hosts.remove(&HOST);
    let seen = seen.expect("taken on");
    assert_eq!((seen.powered, seen.health), (Powered::On, Health::Up));
}

#[tokio::test]
async fn energy_h_a_rack_without_hooks_for_it_cannot_switch_hosts() {
    let rack = rack();
    let mut config = config(&rack.directory);
    config.hooks.retain(|moment, _| !moment.to_string().starts_with("on_power"));
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let fleet = HooksFleet::open(&config, clock).expect("a fleet");
    assert!(!fleet.switches_hosts());
}

#[tokio::test]
async fn a_machine_whose_guests_have_gone_can_be_taken_on() {
    let rack = rack();
    rack.put_guest(HOST, GuestId(9), "other");
    let guests = async || rack.fleet.machines().await.expect("an answer")[0].guests.len();
    assert_eq!(guests().await, 1);
    fs::remove_file(rack.guest_file(HOST, GuestId(9))).expect("a guest");
    assert_eq!(guests().await, 0);
    // A guest that started after the last check is named, too.
    rack.put_guest(HOST, GuestId(8), "other");
    let refused = rack.fleet.adopt(HOST).await.expect_err("a guest").to_string();
    let uuid = GuestId(8);
    assert!(
        refused.ends_with(&format!("[[{{'name': '', 'uuid': '{uuid}'}}]] found for host node1")),
        "{refused}"
    );
    fs::remove_file(rack.guest_file(HOST, uuid)).expect("a guest");
    assert_eq!(rack.fleet.adopt(HOST).await.expect("nobody is there"), Outcome::Done);
}
