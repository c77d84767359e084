//! The external enforcement service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leases::admission::{Changes, HostsChange, TermsChange};
use leases::housekeeping::HousekeepingRules;
use leases::ids::HostId;
use service::{Caller, Enforcer, EnforcerVerdict, GrantedLease, NewSeries, ServiceError, Settings};
use simulation::caller;

use crate::terms::{
    asking, at, change, dates, hosts, hosts_of, make, minutes, of_first, settings, status, window, world_with,
};

/// Records questions, and gives the configured answers.
#[derive(Debug, Default)]
struct Recorder {
    asked: Mutex<Vec<(String, Vec<HostId>)>>,
    deny: Mutex<Option<String>>,
    silent: Mutex<bool>,
}

impl Recorder {
    fn note(&self, what: &str, lease: &GrantedLease) {
        let hosts = lease.hosts.iter().map(|host| host.host.id).collect();
        self.asked.lock().expect("no panic").push((what.to_owned(), hosts));
    }

    fn asked(&self) -> Vec<(String, Vec<HostId>)> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }

    async fn verdict(&self) -> EnforcerVerdict {
        if *self.silent.lock().expect("no panic") {
            std::future::pending::<()>().await;
        }
        self.deny.lock().expect("no panic").clone().map_or(EnforcerVerdict::Allow, EnforcerVerdict::Deny)
    }
}

#[async_trait]
impl Enforcer for Recorder {
    async fn check_create(&self, _: &Caller, lease: &GrantedLease) -> EnforcerVerdict {
        self.note("create", lease);
        self.verdict().await
    }

    async fn check_update(&self, _: &Caller, now: &GrantedLease, then: &GrantedLease) -> EnforcerVerdict {
        self.note("from", now);
        self.note("to", then);
        self.verdict().await
    }

    async fn on_end(&self, lease: &GrantedLease) {
        self.note("end", lease);
    }
}

async fn enforced(hosts: u32, settings: Settings) -> (simulation::World, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    (world_with(hosts, settings, Some(recorder.clone()), |fleet| fleet).await, recorder)
}

#[tokio::test]
async fn a_lease_is_made_of_exactly_what_was_approved() {
    let (mut world, recorder) = enforced(3, settings()).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(2)])).await.expect("approved");
    assert_eq!(recorder.asked(), [("create".to_owned(), hosts_of(&lease))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_parallel_requests_each_is_asked_about_until_it_can_be_had() {
    let (world, recorder) = enforced(4, settings()).await;
    let requests = (0..4).map(|_| {
        let service = world.service.clone();
        tokio::spawn(async move {
            service.leases().create(&caller("p"), asking(0, 60, vec![hosts(1)]), None).await
        })
    });
    let mut made = Vec::new();
    for answer in futures::future::join_all(requests.collect::<Vec<_>>()).await {
        made.extend(hosts_of(&answer.expect("no panic").expect("there are enough").lease));
    }
    made.sort_unstable();
    assert_eq!(made, [1, 2, 3, 4].map(HostId));
    let asked = recorder.asked();
    assert!(made.iter().all(|host| asked.contains(&("create".to_owned(), vec![*host]))));
}

#[tokio::test]
async fn a_denied_request_has_no_effect_and_says_why() {
    let (mut world, recorder) = enforced(1, settings()).await;
    *recorder.deny.lock().expect("no panic") = Some("no budget".to_owned());
    let denied = make(&mut world, asking(0, 60, vec![hosts(1)])).await;
    assert!(matches!(denied, Err(ServiceError::Denied(why)) if why == "no budget"));
    *recorder.deny.lock().expect("no panic") = None;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("still free");
}

#[tokio::test(start_paused = true)]
async fn w27_an_external_service_that_does_not_answer_denies_and_blocks_nobody() {
    let impatient = Settings { enforcer_timeout: Duration::from_millis(1), ..settings() };
    let (mut world, recorder) = enforced(1, impatient).await;
    *recorder.silent.lock().expect("no panic") = true;
    let denied = make(&mut world, asking(0, 60, vec![hosts(1)])).await;
    let text = "External service enforcement filter denied the request.";
    assert!(matches!(denied, Err(ServiceError::Denied(why)) if why == text));
}

#[tokio::test]
async fn w27_a_change_is_shown_with_the_hosts_before_and_after() {
    let (mut world, recorder) = enforced(3, settings()).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("approved");
    let (id, before) = (lease.lease.id, hosts_of(&lease));
    recorder.asked();
    let grown = HostsChange { max: Some(3), ..HostsChange::default() };
    let changed = change(&mut world, id, of_first(&lease, TermsChange::Hosts(grown)));
    let after = hosts_of(&changed.await.expect("approved"));
    assert_eq!(recorder.asked(), [("from".to_owned(), before), ("to".to_owned(), after)]);
    let renamed = Changes { name: Some("other".to_owned()), ..Changes::default() };
    change(&mut world, id, renamed).await.expect("nobody is asked");
    assert_eq!(recorder.asked(), []);
}

#[tokio::test]
async fn the_external_service_is_told_of_an_end_once() {
    let (mut world, recorder) = enforced(2, settings()).await;
    let ends = make(&mut world, asking(0, 10, vec![hosts(1)])).await.expect("approved");
    let deleted = make(&mut world, asking(20, 30, vec![hosts(1)])).await.expect("approved");
    world.service.leases().delete(&caller("p"), deleted.lease.id).await.expect("deleted");
    world.run_until(at(5)).await;
    change(&mut world, ends.lease.id, dates(None, Some(8))).await.expect("approved");
    tokio::task::yield_now().await;
    recorder.asked();
    world.run_until(at(11)).await;
    world.service.leases().delete(&caller("p"), ends.lease.id).await.expect("deleted");
    tokio::task::yield_now().await;
    assert_eq!(recorder.asked(), [("end".to_owned(), hosts_of(&ends))]);
}

#[tokio::test]
async fn leases_that_recur_are_made_of_exactly_what_was_approved() {
    let (world, recorder) = enforced(2, settings()).await;
    let windows = vec![window(10, 40), window(20, 50)];
    let new = NewSeries { lease: asking(10, 40, vec![hosts(1)]), windows, skips: false };
    let made = world.service.leases().create_series(&caller("p"), &new, None).await.expect("approved");
    let expected: Vec<_> = made.leases.iter().map(|lease| ("create".to_owned(), hosts_of(lease))).collect();
    assert_eq!(recorder.asked(), expected);
    *recorder.deny.lock().expect("no panic") = Some("no more".to_owned());
    let windows = vec![window(60, 90)];
    let denied =
        world.service.leases().create_series(&caller("p"), &NewSeries { windows, ..new }, None).await;
    assert!(matches!(*denied.expect_err("denied").error, ServiceError::Denied(why) if why == "no more"));
}

#[tokio::test]
async fn an_accepted_offer_is_made_of_exactly_what_was_approved() {
    let (mut world, recorder) = enforced(1, settings()).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("approved");
    let new = asking(30, 90, vec![hosts(1)]);
    let offers = world
        .service
        .offers()
        .for_lease(&caller("q"), &new, service::Hold::Default)
        .await
        .expect("the store works");
    recorder.asked();
    let lease =
        world.service.offers().accept(&caller("q"), offers.offers[0].lease.id).await.expect("approved");
    assert_eq!(recorder.asked(), [("create".to_owned(), hosts_of(&lease))]);
}

#[tokio::test]
async fn nobody_is_asked_when_an_owner_keeps_a_lease_without_instances() {
    let housekeeping = HousekeepingRules {
        unused_warning: Some(minutes(60)),
        unused_reclaim: Some(minutes(90)),
        ..HousekeepingRules::default()
    };
    let (mut world, recorder) = enforced(1, Settings { housekeeping, ..settings() }).await;
    let id = make(&mut world, asking(0, 500, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(70)).await;
    *recorder.deny.lock().expect("no panic") = Some("no budget is left".to_owned());
    let same = Changes { name: Some("a lease".to_owned()), ..Changes::default() };
    change(&mut world, id, same).await.expect("nobody is asked");
    world.run_until(at(400)).await;
    assert_eq!(status(&world, id), "ACTIVE");
}
