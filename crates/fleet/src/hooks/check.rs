//! Parses the output of the hook `check`.

use std::collections::{BTreeMap, BTreeSet};

use leases::host::Health;
use leases::ids::{GuestId, LeaseId};
use leases::plan::{GuestOwner, GuestSize, Mobility, Powered};
use leases::project::ProjectId;
use serde::Deserialize;

use super::ledger::{Record, Seen, SeenGuest};
use crate::saved::{id, id_or_none};
use crate::site::Site;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default = "yes")]
    healthy: bool,
    /// `None` if the hook doesn't report guests.
    #[serde(default)]
    guests: Option<Vec<AnsweredGuest>>,
    #[serde(default)]
    power: Option<AnsweredPower>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnsweredPower {
    On,
    Off,
}

impl From<AnsweredPower> for Powered {
    fn from(answered: AnsweredPower) -> Self {
        match answered {
            AnsweredPower::On => Self::On,
            AnsweredPower::Off => Self::Off,
        }
    }
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnsweredGuest {
    #[serde(with = "id")]
    id: GuestId,
    #[serde(default)]
    name: String,
    owner: AnsweredOwner,
    #[serde(default, with = "id_or_none")]
    lease: Option<LeaseId>,
    #[serde(default)]
    project: Option<String>,
    #[serde(default)]
    vcpus: u32,
    #[serde(default)]
    memory_mib: u32,
    #[serde(default)]
    disk_gib: u32,
    #[serde(default)]
    movable: Option<AnsweredMobility>,
}

/// Requirements and cost of moving a guest.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AnsweredMobility {
    copied_disk_gib: u32,
    downtime_ms: u32,
    priority: u32,
    requires: BTreeSet<String>,
    apart: BTreeSet<String>,
}

impl Default for AnsweredMobility {
    fn default() -> Self {
        let Mobility { copied_disk_gib, downtime_ms, priority, requires, apart } = Mobility::default();
        Self { copied_disk_gib, downtime_ms, priority, requires, apart }
    }
}

impl From<AnsweredMobility> for Mobility {
    fn from(answered: AnsweredMobility) -> Self {
        let AnsweredMobility { copied_disk_gib, downtime_ms, priority, requires, apart } = answered;
        Self { copied_disk_gib, downtime_ms, priority, requires, apart }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnsweredOwner {
    Preemptible,
    Lease,
    Other,
}

/// Parses the output of `check` for a host. No output means that the host works and that no guests are known
/// to run there.
pub(super) fn read(said: &[u8], record: &Record) -> Result<Seen, serde_json::Error> {
    if said.trim_ascii().is_empty() {
        return Ok(Seen::default());
    }
    let answer: Answer = serde_json::from_slice(said)?;
    let guest = |guest: AnsweredGuest| {
        let owner = match guest.owner {
            AnsweredOwner::Preemptible => GuestOwner::Preemptible,
            // A guest of an unknown lease isn't touched.
            AnsweredOwner::Lease => {
                guest.lease.or_else(|| holder(record)).map_or(GuestOwner::Other, GuestOwner::Lease)
            }
            AnsweredOwner::Other => GuestOwner::Other,
        };
        let size = GuestSize { vcpus: guest.vcpus, memory_mib: guest.memory_mib, disk_gib: guest.disk_gib };
        let (project, mobility) = (guest.project.map(ProjectId), guest.movable.map(Mobility::from));
        (guest.id, SeenGuest { name: guest.name, owner, project, size, mobility })
    };
    let reports_guests = answer.guests.is_some();
    let guests: BTreeMap<_, _> = answer.guests.into_iter().flatten().map(guest).collect();
    let health = if answer.healthy { Health::Up } else { Health::Failed };
    Ok(Seen { health, guests, reports_guests, powered: answer.power.map(Powered::from) })
}

/// The lease that holds the host, or that has all granted slots on it.
fn holder(record: &Record) -> Option<LeaseId> {
    if let Site::Held { lease, .. } = record.site {
        return lease;
    }
    let mut leases = record.slots.values().map(|granted| granted.lease);
    let first = leases.next()?;
    leases.all(|lease| lease == first).then_some(first)?
}

#[cfg(test)]
mod tests {
    use leases::ids::ReservationId;

    use super::*;

    #[test]
    fn silence_is_not_a_report_of_guests() {
        for (said, reports) in [
            ("", false),
            ("{}", false),
            (r#"{"healthy": true, "guests": null}"#, false),
            (r#"{"guests": []}"#, true),
        ] {
            let seen = read(said.as_bytes(), &Record::default()).expect("well formed");
            assert_eq!((seen.reports_guests, seen.guests.len()), (reports, 0), "{said}");
        }
    }

    #[test]
    fn silence_means_that_nothing_runs_there() {
        let seen = read(b" \n", &Record::default()).expect("fine");
        assert_eq!((seen.health, seen.guests.len()), (Health::Up, 0));
    }

    #[test]
    fn a_guest_without_a_lease_is_that_of_who_holds_the_host() {
        let said = br#"{"healthy": false, "guests": [
            {"id": "00000000-0000-0000-0000-000000000001", "owner": "lease"},
            {"id": "00000000-0000-0000-0000-000000000002", "owner": "preemptible", "name": "batch"}]}"#;
        let lease = Some(LeaseId(5));
        let held = Record { site: Site::Held { reservation: ReservationId(1), lease }, ..Record::default() };
        let seen = read(said, &held).expect("fine");
        assert_eq!(seen.health, Health::Failed);
        assert_eq!(seen.guests[&GuestId(1)].owner, GuestOwner::Lease(LeaseId(5)));
        assert_eq!(seen.guests[&GuestId(2)].owner, GuestOwner::Preemptible);
        let free = read(said, &Record::default()).expect("fine");
        assert_eq!(free.guests[&GuestId(1)].owner, GuestOwner::Other);
    }

    #[test]
    fn an_answer_that_is_not_understood_is_none() {
        for said in [r#"{"health": "good"}"#, "all is well", r#"{"guests": [{"id": "1", "owner": "other"}]}"#]
        {
            assert!(read(said.as_bytes(), &Record::default()).is_err(), "{said}");
        }
    }
}
