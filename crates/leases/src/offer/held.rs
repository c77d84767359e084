//! Offers that are withdrawn so that others can be held.
//!
//! Leases displace held offers at any time ([`super::displaced_by`]). Other offers displace them only here.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::ids::OffersId;

/// Age from which a held offer is withdrawn for a refusal that would otherwise have no alternative.
pub const YIELDS_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of groups withdrawn for one refusal. It prevents one user from withdrawing all offers, and limits the
/// number of searches.
const MOST_YIELDING: usize = 5;

/// The offers of one refusal, while they are held. Ordered by age, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldOffers {
    pub since: Timestamp,
    pub group: OffersId,
}

/// Alternatives to a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives<T> {
    pub found: Vec<T>,
    /// Groups that the search ignored. They must be withdrawn before an alternative that needs their resources is held.
    pub disregarded: BTreeSet<OffersId>,
}

/// Searches for alternatives that leave the `held` offers of other users alone. If there is none, ignores
/// offers that are at least [`YIELDS_AFTER`] old: as few as possible, at most five groups, the oldest first.
///
/// `find` searches for alternatives and ignores the given groups.
pub fn find_alternatives<T>(
    held: impl IntoIterator<Item = HeldOffers>,
    now: Timestamp,
    find: impl Fn(&BTreeSet<OffersId>) -> Vec<T>,
) -> Alternatives<T> {
    let none = BTreeSet::new();
    let found = find(&none);
    let is_old = |held: &HeldOffers| now.duration_since(held.since) >= YIELDS_AFTER;
    if !found.is_empty() {
        return Alternatives { found, disregarded: none };
    }
    let old: BTreeSet<HeldOffers> = held.into_iter().filter(is_old).collect();
    if old.is_empty() {
        return Alternatives { found, disregarded: none };
    }
    let oldest = |count: usize| old.iter().take(count).map(|held| held.group).collect::<BTreeSet<_>>();
    let (mut too_few, mut enough) = (0, old.len().min(MOST_YIELDING));
    let mut best = find(&oldest(enough));
    if best.is_empty() {
        return Alternatives { found, disregarded: none };
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        let found = find(&oldest(middle));
        if found.is_empty() {
            too_few = middle;
        } else {
            (enough, best) = (middle, found);
        }
    }
    Alternatives { found: best, disregarded: oldest(enough) }
}

/// The oldest offers of a user that must be withdrawn before offers of another refusal can be held. `limit`
/// is the maximum number of refusals, at least one.
pub fn beyond_limit(own: impl IntoIterator<Item = HeldOffers>, limit: usize) -> BTreeSet<OffersId> {
    let own: BTreeSet<HeldOffers> = own.into_iter().collect();
    let excess = (own.len() + 1).saturating_sub(limit);
    own.into_iter().take(excess).map(|held| held.group).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing::at;

    /// Offers that were made at these minutes, with the minute as the number of the group.
    fn held(minutes: &[i64]) -> Vec<HeldOffers> {
        let held = |minute: &i64| HeldOffers {
            since: at(*minute),
            group: OffersId(u128::try_from(*minute).expect("not negative")),
        };
        minutes.iter().map(held).collect()
    }

    fn groups(ids: &[u128]) -> BTreeSet<OffersId> {
        ids.iter().copied().map(OffersId).collect()
    }

    /// Alternatives at minute 10. There is one only if the `needed` groups are disregarded.
    fn needing(held_since: &[i64], needed: &[u128]) -> Alternatives<u8> {
        let needed = groups(needed);
        let find =
            |without: &BTreeSet<OffersId>| if needed.is_subset(without) { vec![1] } else { Vec::new() };
        find_alternatives(held(held_since), at(10), find)
    }

    #[test]
    fn no_offer_yields_while_there_is_an_alternative() {
        let times = Cell::new(0);
        let find = |_: &BTreeSet<OffersId>| {
            times.set(times.get() + 1);
            vec![1]
        };
        let found = find_alternatives(held(&[1, 2, 3]), at(10), find);
        assert_eq!((found.disregarded, times.get()), (groups(&[]), 1));
    }

    #[test]
    fn the_oldest_offers_yield_first_and_as_few_as_possible() {
        for (needed, disregarded) in [(1, vec![1]), (3, vec![1, 2, 3]), (5, vec![1, 2, 3, 4, 5])] {
            let found = needing(&[6, 5, 4, 3, 2, 1], &[needed]);
            assert_eq!((found.found, found.disregarded), (vec![1], groups(&disregarded)), "{needed}");
        }
    }

    #[test]
    fn an_offer_yields_when_it_is_a_minute_old_and_never_before() {
        let second = SignedDuration::from_secs(1);
        for (since, yields) in [(at(9), true), (at(9) + second, false), (at(11), false)] {
            let held = [HeldOffers { since, group: OffersId(1) }];
            let find = |without: &BTreeSet<OffersId>| vec![(); without.len()];
            let found = find_alternatives(held, at(10), find);
            assert_eq!(found.found.len(), usize::from(yields), "{since}");
            assert_eq!(found.disregarded.len(), usize::from(yields), "{since}");
        }
    }

    #[test]
    fn offers_stay_if_withdrawing_all_of_them_does_not_help() {
        let found = needing(&[1, 2, 3], &[7]);
        assert_eq!((found.found, found.disregarded), (Vec::new(), groups(&[])));
        assert!(needing(&[], &[1]).found.is_empty());
        assert!(needing(&[1, 2, 3, 4, 5, 6], &[6]).found.is_empty(), "six are too many");
    }

    #[test]
    fn offers_of_one_more_refusal_are_held_instead_of_the_oldest() {
        assert_eq!(beyond_limit(held(&[3, 1, 2]), 5), groups(&[]));
        assert_eq!(beyond_limit(held(&[5, 4, 3, 2]), 5), groups(&[]));
        assert_eq!(beyond_limit(held(&[5, 4, 3, 2, 1]), 5), groups(&[1]));
        assert_eq!(beyond_limit(held(&[3, 1, 2]), 1), groups(&[1, 2, 3]));
    }
}
