//! Sample records for tests of stores.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::energy::{Power, PowerState};
use leases::extra_specs::ExtraSpecs;
use leases::failure_domain::FailureDomain;
use leases::free_pool::FreePool;
use leases::hints::{GroupPolicy, Hints, Location, OtherLeases};
use leases::host::{FloatingIp, Health, Host, NetworkId};
use leases::housekeeping::Marks;
use leases::hunt::{Cost, Hunt, Move};
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId, ReservationId, SeriesId};
use leases::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use leases::lease::{Allocation, BeforeStart, EndAction, EventStatuses, Lease, Reservation};
use leases::lease_type::LeaseType;
use leases::plan::GuestSize;
use leases::preemption::{Class, EndState};
use leases::project::{Owner, ProjectId, UserId};
use leases::properties::{HostProperties, ImageProperties};
use leases::requirement::{Operator, Requirement};
use leases::resources::{ResourceClass, Resources};
use leases::standing::Standing;
use leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use leases::terms::{
    Affinity, BeforeEndAction, Flavor, FlavorSize, FlavorTerms, FlavorTraits, FloatingIpsTerms, HostsTerms,
    InstanceSize, InstancesTerms, ReservationTerms,
};
use leases::window::Window;

use crate::{
    AuditRecord, Commit, Document, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord,
    IdempotencyRecord, InstanceRecord, LeaseRecord, NewNotification, PreemptibleProjectRecord,
    PropertyRecord, Version, Wording, Write,
};

/// That many minutes after the start of 2030, UTC.
pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_893_456_000 + minute * 60).expect("in range")
}

/// A window from minute to minute, as [`at`] counts them.
pub fn window(start: i64, end: i64) -> Window {
    Window::new(at(start), at(end)).expect("forwards")
}

/// A host of 16 CPUs, 64 GiB of memory, 1000 GiB of disk.
pub fn host(id: u64) -> HostRecord {
    let host = Host::new(HostId(id), format!("node{id}"), 16, 65_536, 1000);
    HostRecord { host, version: Version::FIRST, created_at: at(-100), updated_at: None }
}

/// A host with every field set.
pub fn elaborate_host(id: u64) -> HostRecord {
    let host = Host {
        service_name: "compute".into(),
        other_resources: BTreeMap::from([(ResourceClass("PCPU".into()), 8)]),
        traits: ["HW_CPU_X86_AVX2".to_owned()].into(),
        cpu_info: r#"{"vendor": "Ödland"}"#.into(),
        hypervisor_type: "QEMU".into(),
        hypervisor_version: 2_010_001,
        availability_zone: "az1".into(),
        capabilities: BTreeMap::from([("rack".into(), "r'1\"".into()), ("empty".into(), String::new())]),
        reservable: false,
        health: Health::Unknown,
        power: power(),
        ..host(id).host
    };
    HostRecord { host, version: Version(7), created_at: at(-100), updated_at: Some(at(-50)) }
}

/// Power with every field set.
pub fn power() -> Power {
    let state = PowerState::Booting { since: at(-3), off_since: Some(at(-60)) };
    Power { state, boots: vec![SignedDuration::from_micros(250_000_001)], switched_off_at: vec![at(-61)] }
}

/// The address 10.0.x.y of a network, where x and y are the bytes of `number`.
pub fn floating_ip(number: u16) -> FloatingIpRecord {
    let [high, low] = number.to_be_bytes();
    let floating_ip = FloatingIp {
        id: FloatingIpId(number.into()),
        network: NetworkId("public".into()),
        address: std::net::Ipv4Addr::new(10, 0, high, low).into(),
        reservable: true,
    };
    FloatingIpRecord { floating_ip, subnet: "subnet".into(), created_at: at(-100) }
}

pub fn flavor(id: &str) -> FlavorRecord {
    let instance = InstanceSize::new(2, 2048, 20).expect("a size");
    FlavorRecord {
        id: id.into(),
        name: format!("flavor {id}"),
        size: FlavorSize { instance, ephemeral_gib: 3 },
        swap_mib: 512,
        public: false,
        extra_specs: BTreeMap::from([("hw:boot_menu".into(), "true".into())]),
        created_at: at(-10),
    }
}

pub fn preemptible_project(pattern: &str) -> PreemptibleProjectRecord {
    let Ok(pattern) = pattern.parse();
    PreemptibleProjectRecord { pattern, created_at: at(-7) }
}

/// A private property.
pub fn property(name: &str) -> PropertyRecord {
    let name = name.to_owned();
    PropertyRecord { id: 77, name, private: true, created_at: at(-9), updated_at: Some(at(-8)) }
}

/// Text that is awkward in SQL, in JSON, in patterns, or in the encodings of stores.
const AWKWARD: [&str; 10] = [
    "",
    "a/b c",
    "'; --",
    "\"{}\"",
    "\\",
    "\\u0000\\\\u001a0",
    "\0\0",
    "\u{1a}\u{1a}0\u{1a}1\0\\\0",
    "\u{1f600}e\u{301}\u{7f}\n\u{2028}.",
    "%_*?",
];

/// Plain records of every kind, sorted by kind and identifier, with awkward text and with the largest and
/// smallest numbers.
pub fn documents() -> Vec<Document> {
    let (first, last) =
        (Timestamp::MIN, at(1).checked_add(SignedDuration::from_micros(1)).expect("in range"));
    let size = |amount| FlavorSize {
        instance: InstanceSize::new(amount, amount, amount - 1).expect("a size"),
        ephemeral_gib: amount - 1,
    };
    let mut documents = Vec::new();
    for (text, number) in AWKWARD.into_iter().zip(0_u8..) {
        let even = number.is_multiple_of(2);
        documents.push(Document::Flavor(FlavorRecord {
            name: text.to_owned(),
            size: size(if even { u32::MAX } else { 1 }),
            swap_mib: if even { u32::MAX } else { 0 },
            public: even,
            extra_specs: AWKWARD[usize::from(number)..]
                .iter()
                .map(|key| ((*key).to_owned(), text.to_owned()))
                .collect(),
            created_at: if even { first } else { last },
            ..flavor(text)
        }));
        documents.push(Document::Property(PropertyRecord {
            id: if even { u128::MAX } else { u128::from(number) },
            private: even,
            created_at: if even { last } else { first },
            updated_at: (!even).then_some(last),
            ..property(text)
        }));
        let created_at = if even { first } else { last };
        documents.push(Document::PreemptibleProject(PreemptibleProjectRecord {
            created_at,
            ..preemptible_project(text)
        }));
    }
    documents.sort_by_key(Document::key);
    documents
}

/// The same records with other contents.
pub fn with_other_contents(documents: &[Document]) -> Vec<Document> {
    let other = |document: &Document| match document.clone() {
        Document::Flavor(record) => Document::Flavor(FlavorRecord { id: record.id, ..flavor("g") }),
        Document::Property(record) => {
            Document::Property(PropertyRecord { name: record.name, ..property("size") })
        }
        Document::PreemptibleProject(record) => Document::PreemptibleProject(PreemptibleProjectRecord {
            pattern: record.pattern,
            ..preemptible_project("other")
        }),
    };
    documents.iter().map(other).collect()
}

/// Removes a plain record. `None` if its kind can't be removed.
pub fn removal(document: &Document) -> Option<Write> {
    match document {
        Document::Flavor(record) => Some(Write::RemoveFlavor(record.id.clone())),
        Document::Property(_) => None,
        Document::PreemptibleProject(record) => Some(Write::RemovePreemptibleProject(record.pattern.clone())),
    }
}

/// A free pool with every field set.
pub fn free_pool(number: u128, name: &str) -> FreePoolRecord {
    let pool = FreePool {
        id: FreePoolId(number),
        name: name.to_owned(),
        extra_specs: BTreeMap::from([("rack".into(), "r'1\"\0".into())]),
        end_action: Some(EndAction::KeepGuests),
    };
    FreePoolRecord { pool, version: Version::FIRST, created_at: at(-70), updated_at: None }
}

pub fn add_free_pool(record: &FreePoolRecord) -> Write {
    Write::FreePool { record: Box::new(record.clone()), expected: None }
}

pub fn host_in(id: u64, pool: u128) -> HostRecord {
    let record = host(id);
    HostRecord { host: Host { pool: FreePoolId(pool), ..record.host }, ..record }
}

/// An instance with every field set. `number` also chooses the cause of its departure.
pub fn instance(number: u128, kind: InstanceKind) -> InstanceRecord {
    let causes = [Cause::Lease, Cause::OwnProject, Cause::Holder, Cause::Lifetime];
    let cause = causes[usize::try_from(number % 4).expect("small")];
    let departure = Departure::at_once(cause, at(50), SignedDuration::from_mins(10));
    let instance = Instance {
        id: GuestId(number),
        name: format!("web \0 {number}"),
        owner: owner(),
        kind,
        size: GuestSize { vcpus: 2, memory_mib: 2048, disk_gib: 20 },
        host: HostId(3),
        status: InstanceStatus::Building,
        launched_at: Some(at(1)),
        class: Class::new("batch", SignedDuration::from_mins(9), EndState::Stop).ok(),
        requeue: true,
        resumes: Some(GuestId(8)),
        departure: Some(Departure { moves_to: Some(HostId(7)), ..departure }),
        backfills: Some(LeaseId(number)),
        reason: Some("because".to_owned()),
    };
    InstanceRecord { instance, version: Version(1), created_at: at(-7), updated_at: Some(at(-6)) }
}

pub fn add_instance(record: &InstanceRecord) -> Write {
    Write::Instance { record: Box::new(record.clone()), expected: None }
}

pub fn owner() -> Owner {
    Owner { project: ProjectId("project".into()), user: UserId("user".into()) }
}

/// A pending lease with these allocations, each in a reservation with matching terms.
pub fn lease(number: u128, window: Window, given: Vec<Allocation>) -> LeaseRecord {
    let reservations = given.into_iter().zip(0..).map(|(allocation, position)| Reservation {
        id: ReservationId(number * 100 + position),
        terms: terms(&allocation),
        allocation,
        status: ReservationStatus::Pending,
        missing_resources: false,
        resources_changed: false,
    });
    let lease = Lease {
        id: LeaseId(number),
        name: format!("lease {number}"),
        owner: owner(),
        lease_type: LeaseType::Schedule,
        window,
        before_start: None,
        before_end: None,
        end_action: EndAction::DeleteGuests,
        backfill: false,
        reservations: reservations.collect(),
        standing: Standing::Firm,
        series: None,
        hints: Arc::default(),
        marks: Marks::default(),
        hunt: None,
        status: LeaseStatus::Pending,
        events: EventStatuses::UNDONE,
        reason: None,
    };
    record(lease)
}

fn record(lease: Lease) -> LeaseRecord {
    LeaseRecord {
        lease,
        wording: BTreeMap::new(),
        version: Version::FIRST,
        created_at: at(-1),
        updated_at: None,
    }
}

fn terms(allocation: &Allocation) -> ReservationTerms {
    let amount = u32::try_from(allocation.amount()).unwrap_or(u32::MAX).max(1);
    match allocation {
        Allocation::Hosts(_) => ReservationTerms::Hosts(HostsTerms::new(1, amount).expect("a range")),
        Allocation::Slots(_) => instances(4, amount),
        Allocation::FloatingIps(_) => {
            let terms = FloatingIpsTerms::new(NetworkId("public".into()), amount, []);
            ReservationTerms::FloatingIps(terms.expect("enough"))
        }
    }
}

pub fn instances(vcpus: u32, amount: u32) -> ReservationTerms {
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(vcpus, 1024, 0).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    })
}

pub fn hosts(ids: &[u64]) -> Allocation {
    Allocation::Hosts(ids.iter().map(|id| HostId(*id)).collect())
}

/// Slots of hosts, of 4 CPUs each unless the terms are changed. A sample host has capacity for 4.
pub fn slots(of: &[(u64, u32)]) -> Allocation {
    Allocation::Slots(of.iter().map(|(id, count)| (HostId(*id), *count)).collect())
}

pub fn addresses(numbers: &[u16]) -> Allocation {
    Allocation::FloatingIps(numbers.iter().map(|number| FloatingIpId((*number).into())).collect())
}

/// Sets every property that can be required of hosts.
fn properties() -> HostProperties {
    let specs = [("capabilities:cpu_info:arch", "<or> x86_64 <or> Ö\0"), ("num", ">= 8"), ("hw:x", "")];
    let specs = specs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let image = [("img_hv_type".to_owned(), "qemu".to_owned())];
    HostProperties {
        region: Some("north \0\u{1f600}'".into()),
        availability_zone: Some("az1".into()),
        vcpus: Some(u32::MAX),
        memory_mib: Some(0),
        disk_gib: Some(7),
        homogeneous: true,
        alike: ["cpu_mhz".to_owned(), "r'\0\u{1f600}".to_owned()].into(),
        survives: Some(FailureDomain::Place("rack".to_owned())),
        extra_specs: ExtraSpecs::new(specs).expect("well formed"),
        image: ImageProperties::new(image).expect("not too many"),
    }
}

/// A lease with every field set, on hosts 1 to 3 and floating IP 1.
pub fn elaborate_lease(number: u128, window: Window) -> LeaseRecord {
    let given = vec![hosts(&[1, 2]), slots(&[(3, 2)]), slots(&[(3, 1)]), addresses(&[1])];
    let mut record = lease(number, window, given);
    let reservations = &mut record.lease.reservations;
    let rack = || Requirement::compare(Operator::NotEqual, "rack", "r'2").expect("well formed");
    let mut asked = HostsTerms::new(2, 5).expect("a range").requiring(rack());
    asked.hypervisor = Requirement::negated(rack()).expect("shallow");
    asked.before_end = BeforeEndAction::Snapshot;
    asked.properties = properties().into();
    reservations[0].terms = ReservationTerms::Hosts(asked);
    reservations[0].missing_resources = true;
    reservations[0].status = ReservationStatus::Active;
    let mut resources = Resources { vcpus: 1, memory_mib: 7, ..Resources::default() };
    resources.set("PCPU", 2);
    let traits = FlavorTraits { required: ["A".to_owned()].into(), forbidden: ["B".to_owned()].into() };
    let flavor = Flavor::from_parts("f", resources, traits).expect("it asks for something");
    let amount = NonZeroU32::new(1).expect("some");
    reservations[2].terms = ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives: None });
    reservations[2].resources_changed = true;
    reservations[2].status = ReservationStatus::Error;
    let words = Wording {
        hypervisor_properties: Some(r#"["=", "$rack", "r1"]"#.into()),
        resource_properties: Some("\0\u{1f600}\n".into()),
    };
    record.wording = BTreeMap::from([(reservations[0].id, words)]);
    record.lease.name = "\0\u{1f600}'\u{1a}".into();
    let deadline = at(7).checked_add(SignedDuration::from_micros(3)).expect("in range");
    record.lease.lease_type = LeaseType::BestEffort { deadline };
    record.lease.before_end = Some(window.start());
    record.lease.end_action = EndAction::MoveGuests;
    record.lease.status = LeaseStatus::Starting;
    record.lease.events = EventStatuses {
        start: EventStatus::InProgress,
        before_end: EventStatus::Done,
        end: EventStatus::Error,
    };
    record.lease.series = Some(SeriesId(u128::MAX));
    record.lease.reason = Some("host 3 does not answer".into());
    let (guest, from, to) = (GuestId(u128::MAX), HostId(3), HostId(7));
    record.lease.hunt = Some(Hunt {
        moves: vec![Move { guest, from, to }, Move { guest: GuestId(1), from, to }],
        cost: Cost { memory_mib: 1, disk_gib: 2, downtime_ms: 3, points: u64::MAX },
        allowance: SignedDuration::from_mins(2),
    });
    record.lease.hints = Arc::new(Hints {
        query: Requirement::compare(Operator::Equal, "rack", "\u{1f600}\0").expect("well formed"),
        hosts: ["\0'node".to_owned()].into(),
        same_host: None,
        different_host: Some(OtherLeases {
            leases: [LeaseId(u128::MAX)].into(),
            hosts: [HostId(u64::MAX)].into(),
        }),
        location: Some(Location::Different),
        group: Some(GroupPolicy::SoftAntiAffinity),
    });
    record.lease.before_start =
        Some(BeforeStart { ahead: SignedDuration::from_secs(90), status: EventStatus::InProgress });
    record.lease.marks = Marks {
        used: true,
        unused_warned_at: Some(at(4)),
        reclaimed_at: Some(deadline),
        start_reminded: Some(at(5)),
        end_reminded: Some(at(6)),
        swaps: u32::MAX,
        repacked_at: Some(at(4)),
    };
    record.lease.backfill = true;
    record.updated_at = Some(at(3).checked_add(SignedDuration::from_micros(5)).expect("in range"));
    record
}

pub fn commit(writes: impl IntoIterator<Item = Write>) -> Commit {
    Commit { writes: writes.into_iter().collect(), ..Commit::new(at(0)) }
}

pub fn add(record: &LeaseRecord) -> Write {
    Write::Lease { record: Box::new(record.clone()), expected: None }
}

/// Replaces the lease of `old` and raises its version.
pub fn replace(old: &LeaseRecord, lease: Lease) -> Write {
    let record = LeaseRecord { lease, version: old.version.next(), ..old.clone() };
    Write::Lease { record: Box::new(record), expected: Some(old.version) }
}

pub fn forget(record: &LeaseRecord) -> Write {
    Write::ForgetLease { id: record.lease.id, expected: record.version }
}

pub fn add_host(record: HostRecord) -> Write {
    Write::Host { record: Box::new(record), expected: None }
}

/// Removes a host that is at its first version.
pub fn remove_host(id: u64) -> Write {
    Write::RemoveHost { id: HostId(id), expected: Version::FIRST }
}

pub fn add_hosts(ids: impl IntoIterator<Item = u64>) -> Vec<Write> {
    ids.into_iter().map(|id| add_host(host(id))).collect()
}

pub fn audit(action: &str) -> AuditRecord {
    let Owner { project, user } = owner();
    let (request_id, object) = ("req-1".to_owned(), "7".to_owned());
    AuditRecord { at: at(0), user, project, request_id, action: action.to_owned(), object, protected: false }
}

pub fn notification(event_type: &str) -> NewNotification {
    NewNotification {
        lease: Some(LeaseId(1)),
        project: owner().project,
        event_type: event_type.to_owned(),
        payload: "{}".to_owned(),
    }
}

/// A notification about no lease and of no project.
pub fn of_no_lease(event_type: &str) -> NewNotification {
    NewNotification { lease: None, project: ProjectId(String::new()), ..notification(event_type) }
}

/// The key of a request that created lease 1.
pub fn request(key: &str, at: Timestamp) -> IdempotencyRecord {
    IdempotencyRecord {
        project: owner().project,
        key: key.to_owned(),
        fingerprint: "hash".to_owned(),
        lease: LeaseId(1),
        at,
    }
}
