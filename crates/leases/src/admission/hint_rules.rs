//! Validation of hints against the requested reservations.

use std::collections::BTreeSet;

use crate::hints::{Hint, HintError, HintRules, Hints};
use crate::terms::ReservationTerms;

impl HintRules {
    /// Checks hints against the operator's rules, each other, and the types of the reservations. The number
    /// of matching hosts isn't checked here.
    pub(crate) fn check(&self, hints: &Hints, asked: &[ReservationTerms]) -> Result<(), HintError> {
        let given: BTreeSet<Hint> = hints.given().collect();
        for &hint in &given {
            if !self.enabled.contains(&hint) {
                return Err(HintError::LeftOut(hint));
            }
            if let Some(other) = hint.excludes().iter().find(|other| given.contains(other)) {
                return Err(HintError::Together(hint, *other));
            }
            let whole = |terms: &ReservationTerms| matches!(terms, ReservationTerms::Hosts(_));
            let on_hosts = |terms: &ReservationTerms| whole(terms) || terms.slots().is_some();
            let (wanted, served) = if hint.needs_whole_hosts() {
                ("whole hosts", asked.iter().any(whole) && !asked.iter().any(|terms| terms.slots().is_some()))
            } else {
                ("hosts, or of room on them", asked.iter().any(on_hosts))
            };
            if !served {
                return Err(HintError::Meaningless { hint, wanted });
            }
        }
        if !self.single_host && hints.hosts.len() == 1 { Err(HintError::SingleHost) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::OtherLeases;
    use crate::terms::HostsTerms;

    #[test]
    fn cls_11_b_hints_that_do_not_go_together_or_are_left_out_are_refused() {
        let hosts = [ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"))];
        let mut rules = HintRules::default();
        let mut hints = Hints { hosts: ["node1".to_owned()].into(), ..Hints::default() };
        assert_eq!(rules.check(&hints, &hosts), Ok(()));
        assert!(matches!(rules.check(&hints, &[]), Err(HintError::Meaningless { hint: Hint::Host, .. })));
        rules.single_host = false;
        assert_eq!(rules.check(&hints, &hosts), Err(HintError::SingleHost));
        hints.same_host = Some(OtherLeases::default());
        assert_eq!(rules.check(&hints, &hosts), Err(HintError::Together(Hint::Host, Hint::SameHost)));
        rules.enabled.remove(&Hint::Host);
        assert_eq!(rules.check(&hints, &hosts), Err(HintError::LeftOut(Hint::Host)));
    }
}
