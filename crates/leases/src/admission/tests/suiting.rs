//! Host properties other than expressions, and the filters that check them (CLS-05 and CLS-07).

use super::*;
use crate::attributes::{Attribute, Attributes};
use crate::extra_specs::ExtraSpecs;
use crate::filters::{CustomFilter, Filter};
use crate::host_facts::{Fact, Guests};
use crate::ids::GuestId;
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost};
use crate::project::ProjectId;
use crate::properties::{HostProperties, ImageProperties, PropertyChange};

fn suiting(min: u32, max: u32, properties: HostProperties) -> ReservationTerms {
    let mut terms = HostsTerms::new(min, max).expect("a range");
    terms.properties = properties.into();
    ReservationTerms::Hosts(terms)
}

/// Requires equal values of these properties.
fn alike(names: &[&str]) -> HostProperties {
    let alike = names.iter().map(|name| (*name).to_owned()).collect();
    HostProperties { alike, ..HostProperties::default() }
}

fn specs(key: &str, value: &str) -> ExtraSpecs {
    ExtraSpecs::new([(key.to_owned(), value.to_owned())]).expect("well formed")
}

/// Hosts of a lease that asks for up to as many hosts as there are.
fn given(cloud: &Cloud, properties: HostProperties) -> Vec<u64> {
    let all = cloud.inventory.hosts().len() as u32;
    let given = cloud.decide(window(0, 60), vec![suiting(1, all, properties)]);
    given.map_or(Vec::new(), |given| given[0].hosts().iter().map(|host| host.0).collect())
}

/// Hint of the refusal if all hosts are requested.
fn complaint(cloud: &Cloud, properties: HostProperties) -> String {
    let all = cloud.inventory.hosts().len() as u32;
    let refused =
        cloud.decide(window(0, 60), vec![suiting(all, all, properties)]).expect_err("not all will do");
    refused.hint().unwrap_or_else(|| refused.to_string())
}

/// Three hosts with 8, 16 and 32 CPUs, GiB of memory and TiB of disk. The last one is in another zone.
fn sizes() -> Cloud {
    let mut cloud = Cloud::new(3);
    for (id, size) in [(1, 8), (2, 16), (3, 32)] {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        (host.vcpus, host.memory_mib, host.disk_gib) = (size, size * 1024, size * 1000);
        host.availability_zone = if id == 3 { "west" } else { "east" }.to_owned();
        host.cpu_info = format!("cpu of {}", if id == 1 { "old" } else { "new" });
    }
    cloud
}

#[test]
fn cls_05_each_property_is_checked_and_a_refusal_names_its_filter() {
    let cloud = sizes();
    let none = HostProperties::default;
    let cases = [
        (
            HostProperties { availability_zone: Some("east".into()), ..none() },
            vec![1, 2],
            "AvailabilityZoneFilter",
        ),
        (HostProperties { vcpus: Some(16), ..none() }, vec![2, 3], "CoreFilter"),
        (HostProperties { memory_mib: Some(16 * 1024 + 1), ..none() }, vec![3], "RamFilter"),
        (HostProperties { disk_gib: Some(9000), ..none() }, vec![2, 3], "DiskFilter"),
        (
            HostProperties { extra_specs: specs("vcpus", "<= 16"), ..none() },
            vec![1, 2],
            "ComputeCapabilitiesFilter",
        ),
        (
            HostProperties { extra_specs: specs("resources:DISK_GB", "32000"), ..none() },
            vec![3],
            "PlacementFilter",
        ),
        (HostProperties { homogeneous: true, ..none() }, vec![2, 3], "homogeneous, alike"),
        (alike(&["cpu_info", "reservable"]), vec![2, 3], "homogeneous, alike"),
    ];
    for (properties, hosts, filter) in cases {
        assert_eq!(given(&cloud, properties.clone()), hosts, "{filter}");
        let removed = 3 - hosts.len();
        let hint = complaint(&cloud, properties);
        assert!(hint.starts_with(&format!("3 hosts needed: {} of 3 hosts left", hosts.len())), "{hint}");
        assert!(hint.contains(&format!(", {removed} ")) && hint.ends_with(&format!("({filter})")), "{hint}");
    }
    assert_eq!(given(&cloud, none()), [1, 2, 3]);
}

#[test]
fn cls_05_what_is_free_counts_for_leases_without_a_date_and_what_there_is_for_those_with_one() {
    let mut cloud = sizes();
    let size = GuestSize { vcpus: 4, memory_mib: 1024, disk_gib: 1 };
    let guest = Guest { size, ..Guest::new(GuestId(1), GuestOwner::Other) };
    let seen = ObservedHost { guests: vec![guest], ..ObservedHost::free() };
    let observed = Observed { hosts: [(HostId(2), seen)].into(), ..Observed::default() };
    cloud.facts.guests = Guests::from(observed).into();
    let none = HostProperties::default;
    for properties in [
        HostProperties { vcpus: Some(13), ..none() },
        HostProperties { memory_mib: Some(15 * 1024 + 1), ..none() },
        HostProperties { disk_gib: Some(16_000), ..none() },
        HostProperties { extra_specs: specs("resources:VCPU", "16"), ..none() },
    ] {
        let terms = Terms::new(window(0, 60), None, vec![suiting(1, 3, properties)]).expect("terms");
        let admission = cloud.admission(0);
        let hosts = |terms: &Terms| {
            let given = admission.grant(&owner().project, terms).expect("some").allocations;
            given[0].hosts().iter().map(|host| host.0).collect::<Vec<_>>()
        };
        assert_eq!(hosts(&terms), [2, 3]);
        assert_eq!(hosts(&terms.clone().of_type(LeaseType::Immediate { deadline: at(1) })), [3]);
        assert_eq!(hosts(&terms.of_type(LeaseType::BestEffort { deadline: at(9) })), [3]);
    }
}

#[test]
fn for_a_date_nobody_works_out_who_is_on_hosts() {
    let mut cloud = sizes();
    cloud.facts.guests = Fact::when_asked(|| panic!("who is on hosts was asked for"));
    cloud.facts.occupied = Fact::when_asked(|| panic!("which hosts are occupied was asked for"));
    let properties = HostProperties { vcpus: Some(1), ..HostProperties::default() };
    let given = cloud.decide(window(10, 60), vec![suiting(1, 3, properties)]).expect("all will do");
    assert_eq!(given, [ids([1, 2, 3])]);
}

#[test]
fn cls_05_a_lease_of_another_region_is_refused() {
    let mut cloud = sizes();
    let asked = HostProperties { region: Some("north".into()), ..HostProperties::default() };
    let text = "Region north is not served here: this service is of no region";
    assert_eq!(complaint(&cloud, asked.clone()), text);
    cloud.rules.region = Some("south".into());
    let text = "Region north is not served here: this service is of region south";
    assert_eq!(complaint(&cloud, asked.clone()), text);
    let terms = Terms::new(window(0, 60), None, vec![suiting(1, 1, asked.clone())]).expect("terms");
    let best_effort = terms.of_type(LeaseType::BestEffort { deadline: at(9) });
    let refused = cloud.admission(0).grant(&owner().project, &best_effort).expect_err("elsewhere");
    assert_eq!(refused.to_string(), text);
    cloud.rules.region = Some("north".into());
    assert_eq!(given(&cloud, asked), [1, 2, 3]);
}

#[test]
fn cls_05_hosts_that_must_be_alike_are_of_one_kind_and_stay_so() {
    let mut cloud = Cloud::new(7);
    for id in 1..=7 {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        host.cpu_info = if id <= 3 { "a" } else { "b" }.to_owned();
    }
    cloud.inventory.host_mut(HostId(7)).expect("there").hypervisor_type = "other".to_owned();
    stays_of_one_kind(cloud, &HostProperties { homogeneous: true, ..HostProperties::default() });
}

#[test]
fn cls_05_properties_that_must_be_equal_are_known_and_equal_on_all_hosts_and_stay_so() {
    for unknown in [None, Some(String::new())] {
        let mut cloud = Cloud::new(7);
        for id in 1..=7 {
            let known = if id <= 3 { "2600" } else { "3200" };
            let mhz = if id == 7 { unknown.clone() } else { Some(known.to_owned()) };
            let host = cloud.inventory.host_mut(HostId(id)).expect("there");
            host.capabilities.extend(mhz.map(|mhz| ("cpu_mhz".to_owned(), mhz)));
        }
        stays_of_one_kind(cloud, &alike(&["cpu_mhz", "vcpus"]));
    }
}

/// Hosts 1 to 3 are alike, and so are hosts 4 to 6.
fn stays_of_one_kind(mut cloud: Cloud, alike: &HostProperties) {
    // Both kinds have three hosts, and the first one is used. No kind has more.
    let lease = cloud.lease(1, window(0, 60), vec![suiting(2, 2, alike.clone())]);
    assert_eq!(lease.reservations[0].allocation, ids([1, 2]));
    let refused = cloud.decide(window(0, 60), vec![suiting(4, 4, alike.clone())]).expect_err("three at most");
    let others = if alike.homogeneous { "2" } else { "1 without a property of alike, 1" };
    let hint = format!(
        "4 hosts needed: 3 of 7 hosts left, {others} unlike the largest group of equal hosts (homogeneous, alike), \
         2 leased at that time"
    );
    assert_eq!(refused.hint(), Some(hint));
    // A started lease only grows by hosts like its own.
    let grown = cloud.update(&started(&lease), &change(&lease, range(3, 3)), 1).expect("host 3 is free");
    assert_eq!(grown.reservations[0].allocation, ids([1, 2, 3]));
    assert!(cloud.update(&started(&lease), &change(&lease, range(4, 4)), 1).is_err());
    let own = if alike.homogeneous { "4" } else { "1 without a property of alike, 3" };
    let own = format!("{own} unlike the lease's other hosts (homogeneous, alike)");
    let active = started(&lease);
    let refused = cloud.admission(1).grow(&active, active.reservations[0].id, 2, ExtraSpecs::default());
    let hint = refused.expect_err("only host 3 is like it").hint().expect("a report");
    assert!(hint.starts_with(&format!("2 hosts needed: 1 of 7 hosts left, {own}")), "{hint}");
    let refused = cloud.update(&lease, &change(&lease, range(4, 4)), 0).expect_err("three at most");
    assert_eq!(refused.hint(), Some(format!("4 hosts needed: 3 of 7 hosts left, {own}")));
    // A failed host is replaced by one like the others.
    cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Failed;
    let healed = cloud.admission(1).heal(&started(&lease), HealingInterval(None)).expect("one has failed");
    assert_eq!(healed.reservations[0].allocation, ids([2, 3]));
    // A lease that has not started can move to another kind.
    let moved = cloud.update(&lease, &change(&lease, range(3, 3)), 0).expect("hosts 4 to 6 are free");
    assert_eq!(moved.reservations[0].allocation, ids([4, 5, 6]));
}

#[test]
fn cls_05_properties_can_be_changed() {
    let mut cloud = sizes();
    let lease = cloud.lease(1, window(10, 60), vec![suiting(1, 1, HostProperties::default())]);
    let to = |change: PropertyChange| {
        let properties = vec![change];
        TermsChange::Hosts(HostsChange { properties, ..HostsChange::default() })
    };
    let changed =
        cloud.update(&lease, &change(&lease, to(PropertyChange::Vcpus(Some(32)))), 0).expect("there is one");
    assert_eq!(changed.reservations[0].allocation, ids([3]));
    let back =
        cloud.update(&changed, &change(&changed, to(PropertyChange::Vcpus(None))), 0).expect("any will do");
    assert_eq!(back.reservations[0].terms, lease.reservations[0].terms);
    let started = started(&lease);
    let refused = cloud.update(&started, &change(&started, to(PropertyChange::Vcpus(Some(32)))), 11);
    assert!(matches!(refused, Err(Refusal::WouldLoseHosts(_))), "{refused:?}");
    let elsewhere = cloud.update(&lease, &change(&lease, to(PropertyChange::Region(Some("x".into())))), 0);
    assert!(matches!(elsewhere, Err(Refusal::Region { .. })));
}

#[test]
fn cls_07_hosts_are_kept_for_projects_by_their_capability() {
    let mut cloud = Cloud::new(3);
    let mut keep = |id, tenants: &str| {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        host.capabilities.insert("filter_tenant_id".into(), tenants.into());
    };
    keep(1, "other");
    keep(2, "other, project");
    assert_eq!(given(&cloud, HostProperties::default()), [2, 3]);
    let hint = complaint(&cloud, HostProperties::default());
    assert!(hint.ends_with("1 for other projects (AggregateMultiTenancyIsolation)"), "{hint}");
    let room =
        cloud.decide(window(0, 60), vec![instances(16, 3, Affinity::Any)]).expect_err("two hosts are left");
    assert!(room.hint().is_some_and(|hint| hint.ends_with("(AggregateMultiTenancyIsolation)")));
    let terms = Terms::new(window(0, 60), None, vec![hosts(2, 3)]).expect("terms");
    let others = cloud.admission(0).decide(&ProjectId("other".into()), &terms).expect("all are for them");
    assert_eq!(others, [ids([1, 2, 3])]);
    cloud.rules.filters.enabled.remove(&Filter::MultiTenancy);
    assert_eq!(given(&cloud, HostProperties::default()), [1, 2, 3]);
}

#[test]
fn cls_07_the_operator_keeps_hosts_from_leases_and_writes_filters() {
    let mut cloud = Cloud::new(4);
    for id in [1, 2] {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        host.capabilities.insert("stage".into(), if id == 1 { "test" } else { "live" }.into());
    }
    cloud.rules.filters.isolated_hosts.insert("node3".into());
    let requirement = Requirement::compare(Operator::Equal, "stage", "live").expect("well formed");
    cloud.rules.filters.custom.push(CustomFilter { name: "LiveHosts".into(), requirement });
    assert_eq!(given(&cloud, HostProperties::default()), [2]);
    let hint = "4 hosts needed: 1 of 4 hosts left, 1 kept from leases (IsolatedHostsFilter), \
                2 against the operator's rules (LiveHosts)";
    assert_eq!(complaint(&cloud, HostProperties::default()), hint);
    cloud.rules.filters.enabled.remove(&Filter::IsolatedHosts);
    cloud.rules.filters.custom.clear();
    assert_eq!(given(&cloud, HostProperties::default()), [1, 2, 3, 4]);
}

#[test]
fn cls_07_without_compute_filter_hosts_that_are_not_heard_of_are_given_and_failed_ones_are_not() {
    let mut cloud = Cloud::new(3);
    cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Unknown;
    cloud.inventory.host_mut(HostId(2)).expect("there").health = Health::Failed;
    assert_eq!(given(&cloud, HostProperties::default()), [3]);
    assert!(complaint(&cloud, HostProperties::default()).ends_with("2 not working (ComputeFilter)"));
    cloud.rules.filters.enabled.remove(&Filter::Compute);
    assert_eq!(given(&cloud, HostProperties::default()), [1, 3]);
}

#[test]
fn cls_07_cores_memory_and_disk_are_overcommitted_as_hosts_say() {
    let mut cloud = sizes();
    let host = cloud.inventory.host_mut(HostId(1)).expect("there");
    for (ratio, value) in
        [("cpu_allocation_ratio", "2.0"), ("ram_allocation_ratio", "1.5"), ("disk_allocation_ratio", "none")]
    {
        host.capabilities.insert(ratio.into(), value.into());
    }
    let none = HostProperties::default;
    assert_eq!(given(&cloud, HostProperties { vcpus: Some(16), ..none() }), [1, 2, 3]);
    assert_eq!(given(&cloud, HostProperties { vcpus: Some(17), ..none() }), [3]);
    assert_eq!(given(&cloud, HostProperties { memory_mib: Some(12 * 1024), ..none() }), [1, 2, 3]);
    assert_eq!(given(&cloud, HostProperties { memory_mib: Some(12 * 1024 + 1), ..none() }), [2, 3]);
    assert_eq!(given(&cloud, HostProperties { disk_gib: Some(8001), ..none() }), [2, 3]);
}

#[test]
fn cls_07_aggregates_and_images_have_filters_of_their_own() {
    let mut cloud = Cloud::new(2);
    let host = cloud.inventory.host_mut(HostId(1)).expect("there");
    host.capabilities.extend([("ssd".into(), "true".into()), ("os_type".into(), "linux".into())]);
    let arch = Attribute::Parts([("arch".to_owned(), Attribute::Text("x86_64".into()))].into());
    host.attributes = Attributes::new([("cpu_info".to_owned(), arch)]);
    let none = HostProperties::default;
    let image = |name: &str, value: &str| {
        let image = ImageProperties::new([(name.to_owned(), value.to_owned())]).expect("not too many");
        HostProperties { image, ..none() }
    };
    let ssd = HostProperties { extra_specs: specs("aggregate_instance_extra_specs:ssd", "true"), ..none() };
    for (properties, hosts, filter) in [
        (ssd, vec![1], "(AggregateInstanceExtraSpecsFilter)"),
        (image("hw_architecture", "x86_64"), vec![1], "(ImagePropertiesFilter)"),
        (image("os_type", "windows"), vec![2], "(AggregateImagePropertiesIsolation)"),
    ] {
        assert_eq!(given(&cloud, properties.clone()), hosts, "{filter}");
        assert!(complaint(&cloud, properties).ends_with(filter));
    }
}

#[test]
fn cls_07_what_no_filter_looks_at_is_not_promised() {
    let none = HostProperties::default;
    let mut image = none();
    image.image = ImageProperties::new([("hw_vm_mode".to_owned(), "hvm".to_owned())]).expect("not too many");
    let mut other = none();
    other.image = ImageProperties::new([("os_type".to_owned(), "linux".to_owned())]).expect("not too many");
    for (filter, properties) in [
        (Filter::AvailabilityZone, HostProperties { availability_zone: Some("east".into()), ..none() }),
        (Filter::Core, HostProperties { vcpus: Some(1), ..none() }),
        (Filter::Ram, HostProperties { memory_mib: Some(1), ..none() }),
        (Filter::Disk, HostProperties { disk_gib: Some(1), ..none() }),
        (Filter::Homogeneous, HostProperties { homogeneous: true, ..none() }),
        (Filter::Homogeneous, alike(&["vcpus"])),
        (
            Filter::ComputeCapabilities,
            HostProperties { extra_specs: specs("capabilities:vcpus", "1"), ..none() },
        ),
        (
            Filter::AggregateExtraSpecs,
            HostProperties { extra_specs: specs("aggregate_instance_extra_specs:ssd", "1"), ..none() },
        ),
        (Filter::Placement, HostProperties { extra_specs: specs("trait:A", "required"), ..none() }),
        (Filter::ImageProperties, image),
        (Filter::AggregateImageProperties, other),
    ] {
        let mut cloud = sizes();
        cloud.rules.filters.enabled.remove(&filter);
        let text = complaint(&cloud, properties);
        assert!(
            text.ends_with(&format!("is not supported here: the operator has left {filter} out")),
            "{text}"
        );
    }
    let mut cloud = sizes();
    cloud.rules.filters.enabled.remove(&Filter::Json);
    let refused = cloud.decide(window(0, 60), vec![on_hosts(1, 1, named("node1"))]);
    assert!(matches!(refused, Err(Refusal::FilterLeftOut { filter: Filter::Json, .. })));
    // For an extra spec without scope, one of two filters is enough.
    cloud.rules.filters.enabled.remove(&Filter::ComputeCapabilities);
    let plain = HostProperties { extra_specs: specs("vcpus", ">= 16"), ..none() };
    assert_eq!(given(&cloud, plain), [2, 3]);
}
