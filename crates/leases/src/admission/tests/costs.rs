//! What decisions cost, and what becomes of those that cost more than they may.

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
    let large = Costly { limit: 10, reservations: 2, position: 1, number: 7, values: 0 };
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
