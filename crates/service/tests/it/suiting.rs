//! Requirements on hosts. Tests are named by the criteria of CLS.

use leases::extra_specs::ExtraSpecs;
use leases::ids::HostId;
use leases::properties::HostProperties;
use leases::terms::{HostsTerms, ReservationTerms};
use service::ServiceError;
use simulation::operator;

use crate::terms::{asking, at, hosts, hosts_of, make, settings, status, world, world_with};

fn specs(key: &str, value: &str) -> HostProperties {
    let extra_specs = ExtraSpecs::new([(key.to_owned(), value.to_owned())]).expect("well formed");
    HostProperties { extra_specs, ..HostProperties::default() }
}

fn suiting(properties: HostProperties) -> ReservationTerms {
    let mut terms = HostsTerms::new(1, 1).expect("one");
    terms.properties = properties.into();
    ReservationTerms::Hosts(terms)
}

#[tokio::test]
async fn cls_05_properties_survive_a_restart_and_hold_for_replacements() {
    let mut world = world(3).await;
    let change = vec![("ssd".to_owned(), Some("yes".to_owned()))];
    for id in [1, 3] {
        world.service.hosts().update(&operator(), HostId(id), change.clone()).await.expect("free");
    }
    let lease =
        make(&mut world, asking(10, 60, vec![suiting(specs("ssd", "yes"))])).await.expect("two have one");
    assert_eq!(hosts_of(&lease), [HostId(1)]);
    world.restart().await.expect("it starts");
    assert_eq!(world.service.leases().get(lease.lease.id).expect("there").lease, lease.lease);
    world.run_until(at(1)).await;
    world.fleet.fail(HostId(1));
    world.run_until(at(12)).await;
    let healed = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((hosts_of(&healed), status(&world, lease.lease.id)), (vec![HostId(3)], "ACTIVE"));
}

#[tokio::test]
async fn cls_05_a_capability_that_an_extra_spec_names_cannot_be_changed() {
    let mut world = world(1).await;
    let change = |value: &str| vec![("ssd".to_owned(), Some(value.to_owned()))];
    world.service.hosts().update(&operator(), HostId(1), change("yes")).await.expect("free");
    make(&mut world, asking(10, 60, vec![suiting(specs("capabilities:ssd", "yes"))]))
        .await
        .expect("there is one");
    let refused = world.service.hosts().update(&operator(), HostId(1), change("no")).await;
    assert!(matches!(refused, Err(ServiceError::Conflict(_))), "{refused:?}");
}

#[tokio::test]
async fn cls_06_what_cpu_info_describes_can_be_asked_for() {
    let mut world = world(1).await;
    let of = |arch: &str| suiting(specs("capabilities:cpu_info:arch", &format!("<or> {arch} <or> ppc64")));
    assert!(make(&mut world, asking(10, 60, vec![of("aarch64")])).await.is_err());
    make(&mut world, asking(10, 60, vec![of("x86_64")])).await.expect("simulated machines are of that kind");
}

#[tokio::test]
async fn cls_07_a_host_that_is_kept_from_leases_is_given_to_nobody() {
    let mut settings = settings();
    settings.rules.filters.isolated_hosts.insert("r1-h01".to_owned());
    let mut world = world_with(2, settings, None, |fleet| fleet).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("the other one");
    assert_eq!(hosts_of(&lease), [HostId(2)]);
    assert!(make(&mut world, asking(10, 60, vec![hosts(1)])).await.is_err());
}
