//! Creating leases.

use leases::admission::Refusal;
use service::{Created, IdempotencyKey, LeaseFilter, ServiceError};
use simulation::{StoreFault, caller};

use crate::terms::{addresses, asking, between, hosts, hosts_of, make, slots, status, world};

fn key(key: &str, fingerprint: &str) -> IdempotencyKey {
    IdempotencyKey { key: key.to_owned(), fingerprint: fingerprint.to_owned() }
}

fn not_enough<T>(answer: &Result<T, ServiceError>) -> bool {
    matches!(answer, Err(ServiceError::Refused(Refusal::NotEnough { .. })))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w1_of_parallel_requests_for_the_same_hosts_one_is_accepted() {
    let world = world(8).await;
    let requests = (0..10).map(|_| {
        let service = world.service.clone();
        tokio::spawn(async move {
            service.leases().create(&caller("p"), asking(10, 20, vec![hosts(8)]), None).await
        })
    });
    let answers = futures::future::join_all(requests.collect::<Vec<_>>()).await;
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("no panic")).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(answers.iter().filter(|answer| not_enough(answer)).count(), 9);
}

#[tokio::test]
async fn w1_of_two_services_on_one_store_the_slower_decides_again() {
    let mut world = world(2).await;
    let other = world.beside().await.expect("opens");
    let first = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    let second = other.leases().create(&caller("p"), asking(10, 20, vec![hosts(1)]), None).await;
    let second = second.expect("the other host is free").lease;
    assert_ne!(hosts_of(&first), hosts_of(&second));
    assert!(not_enough(&make(&mut world, asking(15, 16, vec![hosts(1)])).await));
}

#[tokio::test]
async fn w2_slots_are_counted_one_by_one() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 20, vec![slots(2, 8)])).await.expect("fits");
    assert!(not_enough(&make(&mut world, asking(19, 30, vec![slots(1, 1)])).await));
}

#[tokio::test]
async fn w14_all_hosts_that_are_free_are_given_up_to_the_maximum() {
    let mut world = world(8).await;
    make(&mut world, asking(10, 20, vec![hosts(7)])).await.expect("free");
    let lease = make(&mut world, asking(20, 30, vec![between(1, 4)])).await.expect("free");
    assert_eq!(hosts_of(&lease).len(), 4);
}

#[tokio::test]
async fn w16_leases_of_instances_follow_each_other_without_a_gap() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 20, vec![slots(2, 8)])).await.expect("fits");
    make(&mut world, asking(20, 30, vec![slots(2, 8)])).await.expect("fits");
    make(&mut world, asking(30, 40, vec![hosts(1)])).await.expect("free");
    make(&mut world, asking(40, 50, vec![slots(16, 1)])).await.expect("fits");
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_behind() {
    let mut world = world(2).await;
    let commits = world.store.commits();
    assert!(not_enough(&make(&mut world, asking(10, 20, vec![hosts(1), hosts(2)])).await));
    assert!(matches!(
        make(&mut world, asking(-1, 20, vec![hosts(1)])).await,
        Err(ServiceError::Refused(Refusal::StartInPast))
    ));
    assert!(not_enough(&make(&mut world, asking(10, 20, vec![addresses(1)])).await));
    assert_eq!(world.store.commits(), commits);
    assert!(world.service.leases().all(&LeaseFilter::default()).is_empty());
}

#[tokio::test]
async fn a_repeated_request_with_a_key_makes_one_lease() {
    let world = world(2).await;
    let ask =
        async |key| world.service.leases().create(&caller("p"), asking(10, 20, vec![hosts(1)]), key).await;
    let first = ask(Some(key("k", "f"))).await.expect("free");
    let again = ask(Some(key("k", "f"))).await.expect("served before");
    assert!(!first.repeated && again.repeated);
    assert_eq!(first.lease.lease.id, again.lease.lease.id);
    assert!(matches!(ask(Some(key("k", "other"))).await, Err(ServiceError::KeyReused(_))));
    let stranger = world
        .service
        .leases()
        .create(&caller("q"), asking(10, 20, vec![hosts(1)]), Some(key("k", "f")))
        .await;
    assert!(matches!(stranger, Ok(Created { repeated: false, .. })), "keys are a project's own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_repetitions_of_a_request_make_one_lease() {
    let world = world(8).await;
    let requests = (0..8).map(|_| {
        let service = world.service.clone();
        let ask = async move {
            service.leases().create(&caller("p"), asking(10, 20, vec![hosts(1)]), Some(key("k", "f"))).await
        };
        tokio::spawn(ask)
    });
    let answers = futures::future::join_all(requests.collect::<Vec<_>>()).await;
    let made: Vec<Created> = answers.into_iter().map(|a| a.expect("no panic").expect("served")).collect();
    assert_eq!(made.iter().filter(|created| !created.repeated).count(), 1);
    assert!(made.iter().all(|created| created.lease.lease.id == made[0].lease.lease.id));
    assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 1);
}

#[tokio::test]
async fn w7_a_lease_whose_commit_was_not_heard_of_is_found_again() {
    let mut world = world(1).await;
    world.store.plan([Some(StoreFault::After)]);
    let lost = world
        .service
        .leases()
        .create(&caller("p"), asking(10, 20, vec![hosts(1)]), Some(key("k", "f")))
        .await;
    assert!(matches!(lost, Err(ServiceError::Store(_))));
    let again = world
        .service
        .leases()
        .create(&caller("p"), asking(10, 20, vec![hosts(1)]), Some(key("k", "f")))
        .await;
    let again = again.expect("made the first time");
    assert!(again.repeated);
    world.run_until(crate::terms::at(11)).await;
    assert_eq!(status(&world, again.lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_call_that_is_given_up_half_way_leaves_no_doubt_behind() {
    let world = world(1).await;
    world.store.set_slow(true);
    // A client that closes its connection drops the call at an arbitrary await.
    let mut made = 0;
    for polls in 0..10 {
        let client = caller("p");
        let request = asking(10 * polls, 10 * polls + 10, vec![hosts(1)]);
        let mut call = Box::pin(world.service.leases().create(&client, request, None));
        for _ in 0..polls {
            if futures::poll!(&mut call).is_ready() {
                break;
            }
        }
        drop(call);
        let kept = world.store.contents().await.leases.len();
        world.service.hosts().set_property_private(&client, "rack", true).await.expect("works");
        assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), kept, "after {polls} polls");
        made += usize::from(kept > made);
    }
    assert!(made > 5, "{made}");
}
