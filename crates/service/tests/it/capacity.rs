//! Refused requests are counted, and the loop writes the counts.

use leases::project::ProjectId;
use leases::shortage::Unmet;
use leases::window::Window;
use service::{NewLease, NewSeries};
use simulation::{World, caller};
use tokio::sync::watch;

use crate::terms::{addresses, asking, hosts, make, minutes, slots, window, world};

/// Minutes of a day.
const DAY: i64 = 24 * 60;

async fn refused(world: &World, project: Option<&str>) -> Vec<Unmet> {
    let project = project.map(|name| ProjectId(name.to_owned()));
    world.service.capacity().refused(project.as_ref(), Window::ALWAYS).await.expect("works")
}

/// Lets the loop write its counts.
async fn written(world: &mut World) {
    world.touched();
    let soon = world.now() + minutes(3);
    world.run_until(soon).await;
}

fn of_hosts(refused: u64, met_by: &[(u32, u64)]) -> Unmet {
    let resource_type = "physical:host".to_owned();
    Unmet { resource_type, kind: String::new(), refused, met_by: met_by.to_vec() }
}

/// A series of half-hour windows.
fn series(starts: &[i64]) -> NewSeries {
    let windows = starts.iter().map(|start| window(*start, start + 30)).collect();
    NewSeries { lease: asking(0, 30, vec![hosts(1)]), windows, skips: false }
}

#[tokio::test]
async fn a_request_is_counted_once_with_its_dry_runs_and_repetitions() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 40, vec![hosts(1)])).await.expect("free");
    let again = asking(20, 50, vec![hosts(1)]);
    world.service.leases().preview(&caller("p"), &again).await.expect_err("taken");
    for _ in 0..3 {
        make(&mut world, again.clone()).await.expect_err("taken");
    }
    world.service.leases().preview(&caller("p"), &again).await.expect_err("taken");
    make(&mut world, asking(20, 50, vec![hosts(3)])).await.expect_err("taken");
    world.service.leases().create(&caller("q"), again, None).await.expect_err("taken");
    written(&mut world).await;
    assert_eq!(refused(&world, Some("p")).await, [of_hosts(2, &[(1, 1), (3, 2)])]);
    assert_eq!(refused(&world, Some("q")).await, [of_hosts(1, &[(1, 1)])]);
    assert_eq!(refused(&world, None).await, [of_hosts(3, &[(1, 2), (3, 3)])]);
    let today = world.service.capacity().refused(None, window(1, 2)).await.expect("works");
    assert_eq!(today, refused(&world, None).await, "all of the day");
    for other in [window(DAY, 2 * DAY), window(-DAY, -DAY / 2), window(5, 5)] {
        assert_eq!(world.service.capacity().refused(None, other).await.expect("works"), []);
    }
}

#[tokio::test]
async fn a_series_is_counted_once_and_not_for_overlaps_of_its_own_leases() {
    let mut world = world(1).await;
    make(&mut world, asking(60, 150, vec![hosts(1)])).await.expect("free");
    let taken = series(&[10, 60, 110]);
    world.service.leases().preview_series(&caller("q"), &taken).await.expect_err("taken");
    world.service.leases().create_series(&caller("q"), &taken, None).await.expect_err("taken");
    let overlapping = series(&[200, 210]);
    world.service.leases().create_series(&caller("r"), &overlapping, None).await.expect_err("they overlap");
    written(&mut world).await;
    assert_eq!(refused(&world, None).await, [of_hosts(1, &[(1, 1)])]);
}

#[tokio::test]
async fn only_refusals_for_lack_of_capacity_count() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 40, vec![hosts(1)])).await.expect("free");
    let waits = NewLease { waits: true, ..asking(10, 40, vec![hosts(1)]) };
    world.service.leases().preview(&caller("p"), &waits).await.expect_err("taken");
    make(&mut world, waits).await.expect("it waits");
    make(&mut world, asking(-20, -10, vec![hosts(1)])).await.expect_err("it is over");
    written(&mut world).await;
    assert_eq!(refused(&world, None).await, []);
}

#[tokio::test]
async fn instances_and_addresses_are_kinds_as_well() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 40, vec![slots(3, 12)])).await.expect_err("room for one");
    make(&mut world, asking(10, 40, vec![addresses(7)])).await.expect_err("there are none");
    written(&mut world).await;
    let found = refused(&world, None).await;
    let found: Vec<_> = found.iter().map(|of| (of.resource_type.as_str(), of.met_by.as_slice())).collect();
    assert_eq!(found, [("virtual:floatingip", &[(7, 1)][..]), ("virtual:instance", &[(2, 1)][..])]);
}

#[tokio::test]
async fn a_crash_loses_no_counts_but_those_that_are_not_written() {
    let mut world = world(1).await;
    let too_many = asking(10, 40, vec![hosts(2)]);
    make(&mut world, too_many.clone()).await.expect_err("one host");
    world.restart().await.expect("opens");
    written(&mut world).await;
    assert_eq!(refused(&world, None).await, []);
    make(&mut world, too_many.clone()).await.expect_err("one host");
    written(&mut world).await;
    world.restart().await.expect("opens");
    assert_eq!(refused(&world, None).await, [of_hosts(1, &[(1, 1)])]);
    // After the crash, the service doesn't know that this request was counted.
    make(&mut world, too_many).await.expect_err("one host");
    written(&mut world).await;
    assert_eq!(refused(&world, None).await, [of_hosts(2, &[(1, 2)])]);
}

#[tokio::test]
async fn counts_are_written_before_a_service_stops() {
    let mut world = world(1).await;
    let begun = world.now();
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    // More than one cycle writes.
    for number in 2..402 {
        make(&mut world, asking(10, 40, vec![hosts(number)])).await.expect_err("one host");
        tokio::task::yield_now().await;
    }
    stop.send_replace(true);
    running.await.expect("no panic");
    assert_eq!(world.now(), begun, "no time has passed");
    let counted = refused(&world, None).await;
    assert_eq!(counted.iter().map(|kind| kind.refused).collect::<Vec<_>>(), [400]);
}
