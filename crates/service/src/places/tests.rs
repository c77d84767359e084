//! Tests of the scheduling order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::cost::FLAT;
use crate::levels::LEAD;

type Wait = Pin<Box<dyn Future<Output = Place>>>;

/// A user in a project of the same name.
fn user(name: &str) -> Who {
    member(name, name)
}

fn member(project: &str, name: &str) -> Who {
    asks(project, name, "POST /v1/leases")
}

fn asks(project: &str, name: &str, operation: &str) -> Who {
    let owner = Owner { project: ProjectId(project.into()), user: UserId(name.into()) };
    Who::Client(Some((owner, operation.into())))
}

fn wait(places: &Arc<Places>, kind: Kind, who: Who) -> Wait {
    wait_with(places, kind, who, 0)
}

fn wait_with(places: &Arc<Places>, kind: Kind, who: Who, expected: u64) -> Wait {
    let places = Arc::clone(places);
    let mut wait: Wait = Box::pin(async move { places.enter(kind, who, expected).await });
    assert!(poll(&mut wait).is_none(), "the place is taken");
    wait
}

fn poll(wait: &mut Wait) -> Option<Place> {
    match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(place) => Some(place),
        Poll::Pending => None,
    }
}

fn taken(places: &Arc<Places>, kind: Kind) -> Place {
    let places = Arc::clone(places);
    poll(&mut (Box::pin(async move { places.enter(kind, Who::Loop, 0).await }) as Wait)).expect("it is free")
}

/// Order in which the requests get the place, as positions in `waiting`.
fn order(first: Place, mut waiting: Vec<Wait>) -> Vec<usize> {
    let (mut place, mut order) = (Some(first), Vec::new());
    let mut served = vec![false; waiting.len()];
    while order.len() < waiting.len() {
        drop(place.take());
        let mut all = waiting.iter_mut().enumerate().filter(|(position, _)| !served[*position]);
        let (next, got) =
            all.find_map(|(position, wait)| Some((position, poll(wait)?))).expect("one is next");
        place = Some(got);
        served[next] = true;
        order.push(next);
    }
    order
}

#[test]
fn the_loop_goes_before_clients_who_came_before_it() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Write);
    let waiting = [user("a"), Who::Client(None), Who::Loop];
    let waiting = waiting.map(|who| wait(&places, Kind::Write, who)).into();
    assert_eq!(order(held, waiting), [2, 0, 1]);
}

#[test]
fn whoever_has_used_the_least_goes_first_and_each_in_their_order() {
    let places = Places::new(1);
    places.charge(&user("greedy"), 1_000_000);
    places.charge(&user("modest"), 10);
    let held = taken(&places, Kind::Read);
    let waiting = ["greedy", "greedy", "modest", "modest", "new"];
    let waiting = waiting.map(|name| wait(&places, Kind::Read, user(name))).into();
    assert_eq!(order(held, waiting), [4, 2, 3, 0, 1]);
}

#[test]
fn clients_that_have_used_the_same_take_turns() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Write);
    let waiting = ["a", "a", "a", "b", "b"];
    let waiting = waiting.map(|name| wait(&places, Kind::Write, user(name))).into();
    assert_eq!(order(held, waiting), [0, 3, 1, 4, 2]);
}

/// Number of requests at flat cost that the lead pays for.
const LED: usize = (LEAD / FLAT) as usize;

/// Otherwise, newcomers would lock out a client that made many leases on a quiet day.
#[test]
fn who_was_alone_does_not_pay_for_what_they_used_then() {
    let places = Places::new(1);
    for _ in 0..1000 {
        places.queues().let_in(&user("early"));
        places.charge(&user("early"), 10 * FLAT);
    }
    let held = taken(&places, Kind::Write);
    let mut waiting = vec![wait(&places, Kind::Write, user("early"))];
    waiting.extend((0..LED + 100).map(|_| wait(&places, Kind::Write, user("late"))));
    let order = order(held, waiting);
    // `late` can use its lead, plus the cost of the last and of the next request of `early`.
    let turn = order.iter().position(|who| *who == 0).expect("they had it");
    assert!((LED + 20..=LED + 22).contains(&turn), "{turn}");
}

#[test]
fn who_was_away_has_saved_nothing_but_the_lead() {
    let places = Places::new(1);
    for _ in 0..1000 {
        places.queues().let_in(&user("here"));
    }
    let held = taken(&places, Kind::Write);
    let mut waiting = vec![wait(&places, Kind::Write, user("here"))];
    waiting.extend((0..LED + 10).map(|_| wait(&places, Kind::Write, user("away"))));
    let turn = order(held, waiting).iter().position(|who| *who == 0).expect("they had it");
    assert!((LED..=LED + 2).contains(&turn), "{turn}");
}

#[test]
fn who_asks_for_little_waits_for_one_of_many_costly_requests() {
    let places = Places::new(1);
    let costly = |number: usize| user(&format!("costly {number}"));
    // One earlier request of each makes their usual cost known.
    (0..8).for_each(|number| places.charge(&costly(number), 1_000_000));
    let held = taken(&places, Kind::Write);
    let mut waiting: Vec<Wait> = (0..8).map(|number| wait(&places, Kind::Write, costly(number))).collect();
    let mut place = Some(held);
    for round in 0..100 {
        // The first one is admitted and writes a lot.
        drop(place.take());
        let mut first = waiting.remove(0);
        place = Some(poll(&mut first).expect("it has the lowest level and came first"));
        places.charge(&costly(round % 8), 1_000_000);
        waiting.push(wait(&places, Kind::Write, costly(round % 8)));
        let mut little = wait(&places, Kind::Write, user("little"));
        drop(place.take());
        place = Some(poll(&mut little).expect("none of the costly ones goes before it"));
        places.charge(&user("little"), 5 * FLAT);
    }
}

/// Position in which a client with cheap requests is served when eight other clients return at the same time.
/// `asked` are the costs of each one's earlier requests, in order.
fn turn_of_little(asked: &[u64]) -> usize {
    let places = Places::new(1);
    let costly = |number: usize| user(&format!("costly {number}"));
    for number in 0..8 {
        for work in asked {
            places.charge(&costly(number), *work);
        }
    }
    // This lowers the level of the eight to the floor.
    for _ in 0..10_000 {
        places.queues().let_in(&user("little"));
        places.charge(&user("little"), LEAD / 10);
    }
    let held = taken(&places, Kind::Write);
    let mut waiting: Vec<Wait> = (0..8).map(|number| wait(&places, Kind::Write, costly(number))).collect();
    waiting.push(wait(&places, Kind::Write, user("little")));
    order(held, waiting).iter().position(|who| *who == 8).expect("it had it")
}

#[test]
fn who_asks_for_little_does_not_wait_for_all_who_come_back_and_ask_for_much() {
    assert_eq!(turn_of_little(&[10 * LEAD]), 0);
    assert_eq!(turn_of_little(&[10 * LEAD, 1, 1]), 0, "cheap requests do not hide a costly one");
    assert_eq!(turn_of_little(&[10 * LEAD; 100]), 0);
    let mut better = vec![10 * LEAD];
    better.extend([1; 10]);
    assert_eq!(turn_of_little(&better), 8, "who has long asked for little is like all who do");
}

#[test]
fn a_costly_request_is_served_though_cheaper_ones_keep_arriving() {
    let places = Places::new(1);
    places.charge(&user("costly"), 7 * LEAD);
    let mut place = Some(taken(&places, Kind::Read));
    let mut costly = wait(&places, Kind::Read, user("costly"));
    let names = ["a", "b"];
    let mut cheap = names.map(|name| wait(&places, Kind::Read, user(name)));
    let turn = (0..1000).position(|_| {
        drop(place.take());
        place = poll(&mut costly);
        if place.is_some() {
            return true;
        }
        let served = cheap.iter_mut().zip(names).find_map(|(cheap, name)| {
            place = poll(cheap);
            place.is_some().then(|| {
                places.charge(&user(name), LEAD);
                *cheap = wait(&places, Kind::Read, user(name));
            })
        });
        assert!(served.is_some(), "one is next");
        false
    });
    // Each cheap client first uses as much as the costly client has used, and part of the estimated cost of
    // its next request.
    assert!(turn.is_some_and(|turn| (20..=24).contains(&turn)), "{turn:?}");
}

#[test]
fn what_is_known_to_cost_much_does_not_go_first_though_its_client_is_new() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Write);
    places.charge(&user("here"), 5 * FLAT);
    let mut waiting: Vec<Wait> =
        (0..8).map(|number| wait_with(&places, Kind::Write, user(&format!("new {number}")), LEAD)).collect();
    waiting.push(wait(&places, Kind::Write, user("here")));
    assert_eq!(order(held, waiting)[0], 8);
}

#[test]
fn requests_of_one_client_go_in_the_order_in_which_they_came_whatever_they_ask_for() {
    let places = Places::new(1);
    let mut place = Some(taken(&places, Kind::Write));
    let mut cheap: VecDeque<Wait> = (0..3).map(|_| wait(&places, Kind::Write, user("a"))).collect();
    let mut costly = wait_with(&places, Kind::Write, user("a"), 2000);
    // A new cheap request arrives whenever one was served, so one is always waiting.
    for _ in 0..3 {
        drop(place.take());
        place = Some(poll(&mut cheap.pop_front().expect("one waits")).expect("it came first"));
        places.charge(&user("a"), 200);
        cheap.push_back(wait(&places, Kind::Write, user("a")));
    }
    drop(place.take());
    assert!(poll(&mut costly).is_some(), "the others came later");
}

#[test]
fn who_stops_waiting_leaves_the_queue_and_the_place_goes_to_the_next() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Write);
    let gone: Vec<Wait> = (0..100).map(|_| wait(&places, Kind::Write, user("a"))).collect();
    let mut stays = wait(&places, Kind::Write, user("b"));
    assert_eq!(places.waiting(), (101, 0));
    drop(gone);
    assert_eq!(places.waiting(), (1, 0));
    drop(held);
    assert!(poll(&mut stays).is_some());
    drop(stays);
    assert!(places.waiting() == (0, 0) && places.is_free(Kind::Write));
}

#[test]
fn a_place_that_was_granted_to_who_has_gone_goes_to_the_next() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Write);
    let first = wait(&places, Kind::Write, user("a"));
    let mut second = wait(&places, Kind::Write, user("b"));
    drop(held);
    assert!(poll(&mut second).is_none(), "the first has it");
    drop(first);
    assert!(poll(&mut second).is_some());
}

#[test]
fn readers_do_not_wait_for_the_writer_nor_it_for_them() {
    let places = Places::new(2);
    let _writer = taken(&places, Kind::Write);
    let _readers = (taken(&places, Kind::Read), taken(&places, Kind::Read));
    let _waits = wait(&places, Kind::Read, user("a"));
    assert_eq!(places.waiting(), (0, 1));
}

#[test]
fn reads_of_the_store_take_no_place_of_decisions() {
    let places = Places::new(1);
    let _reads: Vec<Place> = (0..STORE_READS).map(|_| taken(&places, Kind::Store)).collect();
    let _more: Vec<Wait> = (0..16).map(|_| wait(&places, Kind::Store, user("a"))).collect();
    let _decision = taken(&places, Kind::Read);
    let _writer = taken(&places, Kind::Write);
    assert_eq!(places.waiting(), (0, 0));
}

#[test]
fn a_project_that_reads_the_store_for_long_decides_later_than_others() {
    let places = Places::new(1);
    let reads = asks("p", "a", "GET /v1/usage");
    places.charge(&reads, 3 * LEAD);
    let held = taken(&places, Kind::Read);
    let waiting = vec![
        wait(&places, Kind::Read, asks("p", "a", "GET /v1/calendar")),
        wait_with(&places, Kind::Read, asks("q", "b", "GET /v1/calendar"), LEAD),
    ];
    assert_eq!(order(held, waiting), [1, 0]);
}

#[test]
fn sixteen_users_of_a_project_get_as_much_as_one_user_of_another() {
    let places = Places::new(1);
    let held = taken(&places, Kind::Store);
    let _other = taken(&places, Kind::Store);
    let names: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let mut waiting: Vec<Wait> =
        names.iter().map(|name| wait(&places, Kind::Store, member("many", name))).collect();
    waiting.extend((0..3).map(|_| wait(&places, Kind::Store, member("one", "alone"))));
    let order = order(held, waiting);
    let of_one: Vec<usize> = (0..order.len()).filter(|turn| order[*turn] >= names.len()).collect();
    assert_eq!(of_one, [1, 3, 5], "they take turns: {order:?}");
}

#[test]
fn users_of_a_project_share_it_whatever_one_of_them_has_used() {
    let places = Places::new(1);
    places.charge(&member("p", "greedy"), 10 * LEAD);
    places.charge(&member("q", "other"), 20 * LEAD);
    let held = taken(&places, Kind::Write);
    let waiting = [("p", "greedy"), ("p", "greedy"), ("p", "modest"), ("p", "modest"), ("q", "other")];
    let waiting = waiting.map(|(project, name)| wait(&places, Kind::Write, member(project, name))).into();
    assert_eq!(order(held, waiting), [2, 3, 0, 1, 4]);
}

#[test]
fn a_request_is_expected_to_cost_what_others_of_its_kind_cost_its_project() {
    let places = Places::new(1);
    let (costly, cheap) = ("POST /v1/leases", "GET /v1/offers");
    for project in ["p", "q"] {
        places.charge(&asks(project, "a", costly), LEAD);
    }
    let held = taken(&places, Kind::Write);
    // Both projects have the same level, and this user has sent nothing before.
    let waiting = [("p", costly), ("q", cheap)];
    let waiting = waiting.map(|(project, kind)| wait(&places, Kind::Write, asks(project, "b", kind))).into();
    assert_eq!(order(held, waiting), [1, 0]);
}

#[test]
fn a_paused_decision_goes_after_cheap_requests_and_before_expensive_ones() {
    let places = Places::new(1);
    places.charge(&user("paused"), 10 * LEAD);
    places.charge(&user("expensive"), MAX_ESTIMATE);
    let held = taken(&places, Kind::Read);
    assert!(!places.is_outranked(Kind::Read, &user("paused")), "no request waits");
    let mut waiting = vec![wait(&places, Kind::Read, user("expensive"))];
    assert!(!places.is_outranked(Kind::Read, &user("paused")), "expensive requests pause nothing");
    waiting.push(wait(&places, Kind::Read, user("cheap")));
    assert!(places.is_outranked(Kind::Read, &user("paused")));
    assert!(!places.is_outranked(Kind::Read, &user("other")), "it has used nothing");
    let again = Arc::clone(&places);
    let mut again: Wait = Box::pin(async move { again.reenter(Kind::Read, user("paused")).await });
    assert!(poll(&mut again).is_none(), "the place is taken");
    waiting.push(again);
    assert_eq!(order(held, waiting), [1, 2, 0]);
}

#[test]
fn users_of_one_project_pause_decisions_of_each_other() {
    let places = Places::new(1);
    places.charge(&member("p", "costly"), 10 * LEAD);
    let _held = taken(&places, Kind::Read);
    let _cheap = wait(&places, Kind::Read, asks("p", "cheap", "GET /v1/calendar"));
    assert!(places.is_outranked(Kind::Read, &member("p", "costly")));
    assert!(!places.is_outranked(Kind::Read, &member("p", "cheap")));
}
