//! Recurring leases (CLS-10).

use leases::admission::Refusal;
use leases::project::Owner;
use service::{Caller, Client, IdempotencyKey, Missing, NewSeries, Request, Series, ServiceError, Settings};
use simulation::{World, caller};

use crate::terms::{asking, at, hosts, make, settings, status, window, world, world_with};

async fn series(world: &mut World, starts: &[i64], skips: bool) -> Result<Series, Missing> {
    let windows = starts.iter().map(|start| window(*start, start + 30)).collect();
    let new = NewSeries { lease: asking(0, 30, vec![hosts(1)]), windows, skips };
    let made = world.service.leases().create_series(&caller("p"), &new, None).await;
    world.touched();
    made
}

fn windows(series: &Series) -> Vec<leases::window::Window> {
    series.leases.iter().map(|record| record.lease.window).collect()
}

#[tokio::test]
async fn cls_10_h_leases_that_recur_are_made_together_and_run_each_in_its_time() {
    let mut world = world(1).await;
    let made = series(&mut world, &[10, 60, 110], false).await.expect("free");
    assert_eq!(windows(&made), [window(10, 40), window(60, 90), window(110, 140)]);
    let ids: Vec<_> = world.service.leases().series(made.id).iter().map(|record| record.lease.id).collect();
    assert_eq!(ids, made.leases.iter().map(|record| record.lease.id).collect::<Vec<_>>());
    assert!(make(&mut world, asking(50, 70, vec![hosts(1)])).await.is_err(), "all of them are booked");
    world.run_until(at(61)).await;
    assert_eq!((status(&world, ids[0]), status(&world, ids[1])), ("TERMINATED", "ACTIVE"));
    assert_eq!(status(&world, ids[2]), "PENDING");
}

#[tokio::test]
async fn cls_10_h_one_date_that_cannot_be_had_has_all_refused_or_is_left_out() {
    let mut world = world(1).await;
    make(&mut world, asking(70, 80, vec![hosts(1)])).await.expect("free");
    let refused = series(&mut world, &[10, 60, 110], false).await.expect_err("the second is taken");
    assert_eq!(refused.window, window(60, 90));
    assert_eq!(world.service.leases().all(&service::LeaseFilter::default()).len(), 1, "nothing is made");
    let made = series(&mut world, &[10, 60, 110], true).await.expect("two are free");
    assert_eq!(windows(&made), [window(10, 40), window(110, 140)]);
    assert_eq!(made.skipped.iter().map(|(window, _)| *window).collect::<Vec<_>>(), [window(60, 90)]);
    assert!(series(&mut world, &[60, 70], true).await.is_err(), "none is left");
}

#[tokio::test]
async fn cls_10_h_leases_that_recur_do_not_take_hosts_from_each_other() {
    let mut world = world(2).await;
    let made = series(&mut world, &[10, 20], false).await.expect("two hosts");
    let given: Vec<_> = made.leases.iter().map(|record| crate::terms::hosts_of(record)).collect();
    assert_ne!(given[0], given[1]);
    let refused = series(&mut world, &[100, 110, 120], false).await.expect_err("three overlap");
    assert!(refused.overlaps, "nobody else has the hosts");
    make(&mut world, asking(200, 210, vec![hosts(2)])).await.expect("free");
    let refused = series(&mut world, &[180, 190], false).await.expect_err("another lease has the hosts");
    assert!(!refused.overlaps);
}

#[tokio::test]
async fn cls_10_h_a_series_may_take_the_work_of_several_decisions_but_of_no_more_than_sixteen() {
    const WORK: u64 = 4000;
    let settings = Settings { decision_work: WORK, ..settings() };
    let mut world = world_with(10, settings, None, |fleet| fleet).await;
    let starts = |count: i64| (1..=count).map(|number| number * 100).collect::<Vec<_>>();
    let Caller { project, user, .. } = caller("p");
    let owner = Owner { project, user };
    let request = Request { owner, operation: "POST /v1/leases".into(), body: 0, privileged: false };
    let made =
        Client::new(request).scope(series(&mut world, &starts(20), false)).await.expect("several parts");
    assert_eq!(made.leases.len(), 20);
    assert!(world.service.charged(&caller("p").project) > 2 * WORK, "one budget would not do");
    let refused = series(&mut world, &starts(100), false).await.expect_err("too many parts");
    assert!(matches!(*refused.error, ServiceError::Refused(Refusal::TooCostly(_))), "{:?}", refused.error);
    let all = world.service.leases().all(&service::LeaseFilter::default());
    assert_eq!(all.len(), 20, "the refused series has no leases");
}

#[tokio::test]
async fn cls_10_h_a_repeated_request_for_a_series_makes_no_second_one() {
    let mut world = world(1).await;
    let key = IdempotencyKey { key: "k".to_owned(), fingerprint: "f".to_owned() };
    let windows = vec![window(10, 40), window(60, 90)];
    let new = NewSeries { lease: asking(0, 30, vec![hosts(1)]), windows, skips: false };
    let once = world.service.leases().create_series(&caller("p"), &new, Some(&key)).await.expect("free");
    let again = world.service.leases().create_series(&caller("p"), &new, Some(&key)).await.expect("the same");
    world.touched();
    assert_eq!((once.id, once.leases.len()), (again.id, again.leases.len()));
    assert_eq!(world.service.leases().all(&service::LeaseFilter::default()).len(), 2);
}

#[tokio::test]
async fn cls_10_h_who_gives_up_a_series_keeps_what_has_started() {
    let mut world = world(1).await;
    let made = series(&mut world, &[10, 60, 110], false).await.expect("free");
    let ids: Vec<_> = made.leases.iter().map(|record| record.lease.id).collect();
    world.run_until(at(11)).await;
    world.service.leases().delete(&caller("p"), ids[1]).await.expect("there");
    for _ in 0..2 {
        // The second time, no lease is left to delete.
        world.service.leases().delete_series(&caller("p"), made.id).await.expect("there");
        world.touched();
        world.settle().await;
        let left: Vec<_> =
            world.service.leases().series(made.id).iter().map(|record| record.lease.id).collect();
        assert_eq!((left, status(&world, ids[0])), (vec![ids[0]], "ACTIVE"));
    }
    world.run_until(at(41)).await;
    assert_eq!(status(&world, ids[0]), "TERMINATED");
}
