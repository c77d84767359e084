//! Costs of decisions, and refusal of too costly ones.

use super::*;
use crate::work::{Budget, Stop};

#[test]
fn a_decision_that_costs_too_much_is_refused_as_such_and_says_what_is_large() {
    let cloud = Cloud::new(20);
    let asked = vec![hosts(1, 1), instances(1, 7, Affinity::Any)];
    let terms = Terms::new(window(0, 60), None, asked).expect("terms");
    let budget = Budget::new(10);
    let admission = Admission { budget: &budget, ..cloud.admission(0) };
    let refused = admission.grant(&owner().project, &terms).expect_err("too costly");
    let large = Costly { limit: 10, reservations: 2, number: 7, values: 0 };
    assert_eq!(refused, Refusal::TooCostly(large));
    assert!(refused.to_string().len() <= 200, "{refused}");
    assert!(!refused.is_lack() && !refused.negotiable(), "nothing is known of what there is");
}

#[test]
fn a_decision_whose_client_has_gone_is_canceled_and_not_too_costly() {
    let cloud = Cloud::new(20);
    let terms = Terms::new(window(0, 60), None, vec![hosts(1, 1)]).expect("terms");
    let budget = Budget::new(1);
    budget.cancel();
    let admission = Admission { budget: &budget, ..cloud.admission(0) };
    assert_eq!(admission.grant(&owner().project, &terms), Err(Refusal::Canceled));
    assert_eq!(budget.stopped(), Some(Stop::Canceled));
}

/// The cost of a decision, and its result.
fn costs<T>(cloud: &Cloud, decide: impl Fn(&Admission<'_>) -> T) -> (u64, T) {
    let budget = Budget::unlimited();
    let decided = decide(&Admission { budget: &budget, ..cloud.admission(0) });
    (budget.spent(), decided)
}

fn granted(admission: &Admission<'_>, asked: &[ReservationTerms]) -> Result<Grant, Refusal> {
    let terms = Terms::new(window(0, 60), None, asked.to_vec()).expect("terms");
    admission.grant(&owner().project, &terms)
}

/// An expression that compares with `values` host names that don't exist.
fn long(values: usize) -> Requirement {
    Requirement::one_of("hypervisor_hostname", (0..values).map(|number| format!("no{number}")).collect())
        .expect("well formed")
}

/// Half of the hosts have consecutive leases.
fn busy(hosts: u64, leases: i64) -> Cloud {
    let mut cloud = Cloud::new(hosts);
    for number in 0..leases {
        let ids: Vec<u64> = (1..=hosts / 2).collect();
        let lease = crate::testing::lease(1000 + number as u128, window(number * 20, number * 20 + 15), &ids);
        cloud.calendar.put(&lease, at(0)).expect("free");
    }
    cloud
}

/// Doubling the size at most doubles the cost, with a small tolerance.
fn near_linear(what: &str, cost: impl Fn(u64) -> u64) {
    let (one, two, four) = (cost(1), cost(2), cost(4));
    assert!(one > 0, "{what} costs nothing");
    assert!(two <= one * 5 / 2 && four <= two * 5 / 2, "{what} costs {one}, {two}, {four}");
}

#[test]
fn many_instances_of_any_affinity_cost_little_for_each_host() {
    for hosts in [1000, 5000] {
        let cloud = Cloud::new(hosts);
        for amount in [100, 1000, 5000, 20_000] {
            for affinity in [Affinity::Any, Affinity::OneHost, Affinity::DistinctHosts] {
                let asked = [instances(1, amount, affinity)];
                let (spent, decided) = costs(&cloud, |admission| granted(admission, &asked));
                let fits = match affinity {
                    Affinity::Any => u64::from(amount) <= hosts * 16,
                    Affinity::OneHost => amount <= 16,
                    Affinity::DistinctHosts => u64::from(amount) <= hosts,
                };
                assert_eq!(decided.is_ok(), fits, "{amount} on {hosts}, {affinity:?}: {decided:?}");
                assert!(
                    spent <= 500 * hosts && spent < crate::work::DEFAULT_UNITS / 10,
                    "{amount} on {hosts}, {affinity:?} cost {spent}"
                );
            }
        }
    }
}

#[test]
fn what_a_request_costs_grows_as_the_fleet_and_the_request_do() {
    let any = |admission: &Admission<'_>, asked: &[ReservationTerms]| granted(admission, asked).is_ok();
    for affinity in [Affinity::Any, Affinity::OneHost, Affinity::DistinctHosts] {
        near_linear("a fleet for instances", |size| {
            costs(&Cloud::new(100 * size), |admission| any(admission, &[instances(1, 90, affinity)])).0
        });
        near_linear("instances", |size| {
            let asked = [instances(1, 100 * size as u32, affinity)];
            costs(&Cloud::new(400), |admission| any(admission, &asked)).0
        });
    }
    near_linear("a fleet for hosts", |size| {
        costs(&busy(100 * size, 10), |admission| any(admission, &[hosts(1, 20)])).0
    });
    near_linear("reservations", |size| {
        let asked = vec![hosts(1, 2); 10 * size as usize];
        costs(&Cloud::new(200), |admission| any(admission, &asked)).0
    });
    near_linear("values", |size| {
        let asked = [on_hosts(1, 2, Requirement::negated(long(100 * size as usize)).expect("well formed"))];
        costs(&Cloud::new(100), |admission| any(admission, &asked)).0
    });
    near_linear("offers", |size| {
        let asked = vec![hosts(90 * size as u32, 90 * size as u32)];
        let terms = Terms::new(window(0, 60), None, asked).expect("terms");
        costs(&busy(100 * size, 10), |admission| admission.offers(&owner().project, &terms, at(1000)).len()).0
    });
    near_linear("an update", |size| {
        let mut cloud = Cloud::new(100 * size);
        let lease = cloud.lease(1, window(0, 60), vec![hosts(2, 2), instances(1, 5, Affinity::Any)]);
        costs(&cloud, |admission| admission.update(&lease, &ends(90)).is_ok()).0
    });
}

#[test]
fn each_property_that_must_be_equal_is_paid_for_on_each_host() {
    let cloud = Cloud::new(100);
    let spent = |names: &[&str]| {
        let mut asked = HostsTerms::new(2, 2).expect("a range");
        std::sync::Arc::make_mut(&mut asked.properties).alike =
            names.iter().map(|name| (*name).to_owned()).collect();
        let asked = [ReservationTerms::Hosts(asked)];
        let (spent, granted) = costs(&cloud, |admission| granted(admission, &asked).is_ok());
        assert!(granted);
        spent
    };
    let (none, one, two) = (spent(&[]), spent(&["vcpus"]), spent(&["vcpus", "memory_mb"]));
    assert!(one >= none + 100 * 10 && two >= one + 100 * 10, "{none}, {one}, {two}");
}

#[test]
fn an_expression_is_asked_once_of_each_host_however_many_starts_are_tried() {
    let cloud = busy(100, 40);
    let requirement = Requirement::negated(long(400)).expect("well formed");
    let ReservationTerms::Instances(asked) = instances(16, 60, Affinity::DistinctHosts) else {
        panic!("instances")
    };
    let asked = vec![ReservationTerms::Instances(InstancesTerms { requirement, ..asked })];
    let terms = Terms::new(window(0, 60), None, asked).expect("terms");
    let terms = terms.of_type(LeaseType::BestEffort { deadline: at(2000) });
    let (spent, decided) = costs(&cloud, |admission| admission.grant(&owner().project, &terms));
    assert_eq!(decided.expect("later").terms.window().start(), at(795), "the first 40 times it is refused");
    let asking = 100 * 400;
    assert!(spent < 15 * asking, "it cost {spent}, {asking} of them for asking once");
}

#[test]
fn a_decision_is_the_same_with_every_budget_that_suffices_and_too_costly_with_every_other() {
    let mut cloud = busy(12, 3);
    let lease = cloud.lease(1, window(100, 160), vec![hosts(2, 3), instances(1, 5, Affinity::DistinctHosts)]);
    let best_effort = |deadline| LeaseType::BestEffort { deadline: at(deadline) };
    let terms = |asked: Vec<ReservationTerms>| Terms::new(window(0, 60), None, asked).expect("terms");
    let requests = [
        terms(vec![hosts(3, 5), instances(2, 9, Affinity::Any), hosts(1, 1)]),
        terms(vec![instances(3, 40, Affinity::Any)]),
        terms(vec![instances(3, 9, Affinity::DistinctHosts)]),
        terms(vec![instances(3, 13, Affinity::DistinctHosts)]),
        terms(vec![on_hosts(2, 4, Requirement::negated(long(30)).expect("well formed"))]),
        terms(vec![hosts(9, 9)]).of_type(best_effort(500)),
        terms(vec![hosts(13, 13)]).of_type(best_effort(500)),
    ];
    let changes =
        [ends(190), ends(130), change(&lease, range(8, 8)), change(&lease, range(1, 2)), starts(110)];
    let decide = |admission: &Admission<'_>| {
        let grants = requests.iter().map(|terms| admission.grant(&owner().project, terms).map(|_| ()));
        let updates = changes.iter().map(|changes| admission.update(&lease, changes).map(|_| ()));
        grants.chain(updates).collect::<Vec<_>>()
    };
    for number in 0..requests.len() + changes.len() {
        let one = |budget: &Budget| {
            let admission = Admission { budget, ..cloud.admission(0) };
            if let Some(terms) = requests.get(number) {
                return admission.grant(&owner().project, terms).map(|grant| format!("{grant:?}"));
            }
            let changes = &changes[number - requests.len()];
            admission.update(&lease, changes).map(|updated| format!("{updated:?}"))
        };
        let counted = Budget::unlimited();
        let expected = one(&counted);
        let needed = counted.spent();
        assert_eq!(one(&crate::work::UNLIMITED), expected);
        for units in [needed, needed + 1, needed * 2, crate::work::DEFAULT_UNITS] {
            assert_eq!(one(&Budget::new(units)), expected, "request {number} with {units} of {needed}");
        }
        for units in (0..needed).step_by((needed / 50).max(1) as usize).chain([needed - 1]) {
            let refused = one(&Budget::new(units));
            assert!(matches!(refused, Err(Refusal::TooCostly(_))), "{number} with {units}: {refused:?}");
        }
    }
    // Decisions share a budget, and all are refused once it is used up.
    let budget = Budget::new(1);
    let decided = decide(&Admission { budget: &budget, ..cloud.admission(0) });
    assert!(decided.iter().all(|decided| matches!(decided, Err(Refusal::TooCostly(_)))), "{decided:?}");
}

#[test]
fn no_offer_is_half_decided() {
    let cloud = busy(20, 5);
    let terms = Terms::new(window(0, 60), None, vec![hosts(15, 15)]).expect("terms");
    let (needed, all) = costs(&cloud, |admission| admission.offers(&owner().project, &terms, at(1000)));
    assert!(!all.is_empty());
    for units in (0..needed).step_by((needed / 50).max(1) as usize) {
        let budget = Budget::new(units);
        let admission = Admission { budget: &budget, ..cloud.admission(0) };
        for offer in admission.offers(&owner().project, &terms, at(1000)) {
            assert!(all.contains(&offer), "with {units} of {needed}: {offer:?}");
        }
    }
}
