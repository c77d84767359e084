//! Choice of the instances to preempt if a lease needs only part of a host (PRE-06).
//!
//! The smallest set wins; then, among sets of equal size, the least work lost; then the spread over more
//! owners. The search is exact for the numbers of instances usual on one host. If there are too many for
//! that, the search stops early and uses a good set instead of the best.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::GuestId;
use crate::plan::GuestSize;
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::work::{Budget, UNLIMITED};

/// Maximum number of sets to examine, partly or completely. Takes some milliseconds.
const PATIENCE: u32 = 200_000;
/// Cost of examining a set, in units of [`Budget`].
const LOOK: u64 = 3;
/// CPUs, memory, disk.
const DIMENSIONS: usize = 3;

/// A preemptible instance on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub id: GuestId,
    /// Resources freed if it is preempted.
    pub size: GuestSize,
    /// Work lost if it is preempted: vCPUs times the minutes that it will have run by then.
    pub work: u64,
    /// The owner. An unknown owner counts as one without other instances.
    pub project: Option<&'a ProjectId>,
    /// Preempted in any case.
    pub leaves: bool,
}

type Amounts = [u64; DIMENSIONS];

/// Chooses candidates to preempt so that the remaining ones fit into `room`.
pub fn victims(candidates: &[Candidate<'_>], room: &Resources) -> BTreeSet<GuestId> {
    victims_within(candidates, room, &UNLIMITED)
}

/// Like [`victims`], and charges the budget for each set examined.
pub(crate) fn victims_within(
    candidates: &[Candidate<'_>],
    room: &Resources,
    budget: &Budget,
) -> BTreeSet<GuestId> {
    let (leave, mut stay): (Vec<_>, Vec<_>) = candidates.iter().partition(|candidate| candidate.leaves);
    // Least work first.
    stay.sort_by_key(|candidate: &&Candidate<'_>| (candidate.work, candidate.id));
    let mut lack = Amounts::default();
    for candidate in &stay {
        add(&mut lack, amounts(candidate.size));
    }
    for (lack, room) in lack.iter_mut().zip([room.vcpus, room.memory_mib, room.disk_gib]) {
        *lack = lack.saturating_sub(room);
    }
    let (chosen, looks) = Search::new(stay).run(lack);
    budget.charge(LOOK * (looks + candidates.len()) as u64);
    leave.into_iter().map(|candidate| candidate.id).chain(chosen).collect()
}

fn amounts(size: GuestSize) -> Amounts {
    [size.vcpus.into(), size.memory_mib.into(), size.disk_gib.into()]
}

fn add(sum: &mut Amounts, more: Amounts) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Cost of a set, apart from its size: work lost; unevenness over owners; and identifiers, to make the best
/// set unique.
type Cost = (u64, usize, Vec<GuestId>);

struct Search<'a> {
    /// Sorted by work.
    stay: Vec<&'a Candidate<'a>>,
    /// `most[position][count]`: upper bound of the resources freed if `count` candidates from `position` on
    /// leave.
    most: Vec<Vec<Amounts>>,
    chosen: Vec<usize>,
    best: Option<Cost>,
    patience: u32,
}

impl<'a> Search<'a> {
    fn new(stay: Vec<&'a Candidate<'a>>) -> Self {
        let most = (0..=stay.len()).map(|from| largest(&stay[from..])).collect();
        Self { stay, most, chosen: Vec::new(), best: None, patience: PATIENCE }
    }

    /// The best of the smallest sets, and the number of sets examined.
    fn run(mut self, lack: Amounts) -> (Vec<GuestId>, usize) {
        let chosen = self.best_of_smallest(lack);
        (chosen, (PATIENCE - self.patience) as usize)
    }

    fn best_of_smallest(&mut self, lack: Amounts) -> Vec<GuestId> {
        let enough = |count: &usize| self.most[0][*count].iter().zip(lack).all(|(most, lack)| *most >= lack);
        // Even preempting all candidates wouldn't free enough.
        let Some(fewest) = (0..=self.stay.len()).find(enough) else { return self.all() };
        for count in fewest..=self.stay.len() {
            self.choose(0, count, lack, 0);
            if let Some((_, _, ids)) = self.best.take() {
                return ids;
            }
            if self.patience == 0 {
                return self.greedily(lack);
            }
        }
        self.all()
    }

    fn all(&self) -> Vec<GuestId> {
        self.stay.iter().map(|candidate| candidate.id).collect()
    }

    /// Tries sets with `count` more candidates from position `from` on.
    fn choose(&mut self, from: usize, count: usize, lack: Amounts, work: u64) {
        if self.patience == 0 {
            return;
        }
        self.patience -= 1;
        if count == 0 {
            if lack == Amounts::default() {
                let cost = self.cost(work);
                if self.best.as_ref().is_none_or(|best| cost < *best) {
                    self.best = Some(cost);
                }
            }
            return;
        }
        for next in from..=self.stay.len().saturating_sub(count) {
            let most = self.most[next][count];
            if most.iter().zip(lack).any(|(most, lack)| *most < lack) {
                return;
            }
            let least: u64 = self.stay[next..next + count].iter().map(|candidate| candidate.work).sum();
            if self.best.as_ref().is_some_and(|(best, ..)| work + least > *best) {
                return;
            }
            let candidate = self.stay[next];
            let mut left = lack;
            left.iter_mut()
                .zip(amounts(candidate.size))
                .for_each(|(lack, free)| *lack = lack.saturating_sub(free));
            self.chosen.push(next);
            self.choose(next + 1, count - 1, left, work + candidate.work);
            self.chosen.pop();
        }
    }

    fn cost(&self, work: u64) -> Cost {
        let chosen = || self.chosen.iter().map(|position| self.stay[*position]);
        let mut owners: BTreeMap<&ProjectId, usize> = BTreeMap::new();
        let known = chosen().filter_map(|candidate| candidate.project);
        known.for_each(|project| *owners.entry(project).or_insert(0) += 1);
        let unknown = chosen().filter(|candidate| candidate.project.is_none()).count();
        let mut ids: Vec<GuestId> = chosen().map(|candidate| candidate.id).collect();
        ids.sort();
        (work, owners.values().map(|count| count * count).sum::<usize>() + unknown, ids)
    }

    /// Preempts one candidate after another, always picking the candidate that frees most of the remaining
    /// lack.
    fn greedily(&mut self, mut lack: Amounts) -> Vec<GuestId> {
        let mut leaving = Vec::new();
        while lack != Amounts::default() && !self.stay.is_empty() {
            // Share of the lack that the candidate frees, summed over resources, in thousandths of each
            // resource's lack.
            let frees = |candidate: &&Candidate<'_>| -> u64 {
                let parts = lack.iter().zip(amounts(candidate.size)).filter(|(lack, _)| **lack > 0);
                parts.map(|(lack, free)| free.min(*lack).saturating_mul(1000) / lack).sum()
            };
            let best = (0..self.stay.len())
                .max_by_key(|position| (frees(&self.stay[*position]), std::cmp::Reverse(*position)));
            let candidate = self.stay.remove(best.unwrap_or(0));
            lack.iter_mut()
                .zip(amounts(candidate.size))
                .for_each(|(lack, free)| *lack = lack.saturating_sub(free));
            leaving.push(candidate.id);
        }
        leaving
    }
}

/// For each number of candidates, an upper bound of the resources that become free if that many leave: the
/// sum of the largest amounts of each resource.
fn largest(of: &[&Candidate<'_>]) -> Vec<Amounts> {
    let mut sums = vec![Amounts::default(); of.len() + 1];
    for dimension in 0..DIMENSIONS {
        let mut sizes: Vec<u64> = of.iter().map(|candidate| amounts(candidate.size)[dimension]).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        for (position, size) in sizes.into_iter().enumerate() {
            sums[position + 1][dimension] = sums[position][dimension] + size;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room(vcpus: u64, memory_mib: u64) -> Resources {
        Resources { vcpus, memory_mib, disk_gib: 1000, ..Resources::default() }
    }

    /// Candidates with these CPUs, memory, work and owner. Identifiers count from 1.
    fn of<'a>(given: &[(u32, u32, u64, usize)], projects: &'a [ProjectId]) -> Vec<Candidate<'a>> {
        let candidate = |(id, (vcpus, memory_mib, work, owner)): (u128, &(u32, u32, u64, usize))| Candidate {
            id: GuestId(id),
            size: GuestSize { vcpus: *vcpus, memory_mib: *memory_mib, disk_gib: 1 },
            work: *work,
            project: projects.get(*owner),
            leaves: false,
        };
        (1..).zip(given).map(candidate).collect()
    }

    fn projects() -> [ProjectId; 3] {
        ["p", "q", "r"].map(|name| ProjectId(name.into()))
    }

    fn chosen(given: &[(u32, u32, u64, usize)], room: &Resources) -> Vec<u128> {
        victims(&of(given, &projects()), room).into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn pre_06_as_few_are_preempted_as_can_then_those_who_lose_least_then_of_several_owners() {
        let four = [(4, 10, 50, 0), (2, 10, 9, 0), (2, 10, 9, 1), (8, 90, 99, 1)];
        assert_eq!(chosen(&four, &room(16, 120)), [] as [u128; 0]);
        assert_eq!(chosen(&four, &room(15, 120)), [2], "any would do; it has done least");
        assert_eq!(chosen(&four, &room(13, 120)), [1], "one is fewer than two");
        assert_eq!(chosen(&four, &room(16, 119)), [2]);
        assert_eq!(chosen(&four, &room(16, 80)), [4], "all of the others would be three");
        assert_eq!(chosen(&four, &room(0, 0)), [1, 2, 3, 4]);
        let alike = [(2, 10, 9, 0), (2, 10, 9, 0), (2, 10, 9, 1)];
        assert_eq!(chosen(&alike, &room(2, 100)), [1, 3], "one of each");
        let alike = [(2, 10, 9, 0), (2, 10, 9, 0), (2, 10, 9, 7), (2, 10, 9, 8)];
        assert_eq!(chosen(&alike, &room(4, 100)), [1, 3], "whose the last two are nobody knows");
    }

    #[test]
    fn pre_06_whoever_leaves_anyway_counts_first() {
        let projects = projects();
        let mut candidates = of(&[(4, 10, 50, 0), (2, 10, 9, 0)], &projects);
        candidates[0].leaves = true;
        assert_eq!(victims(&candidates, &room(4, 100)), [GuestId(1)].into());
        assert_eq!(victims(&candidates, &room(1, 100)), [GuestId(1), GuestId(2)].into());
    }

    #[test]
    fn pre_06_very_many_are_not_searched_for_ever() {
        let many: Vec<_> = (0..200).map(|n| (1 + n % 7, 100 + n * 13 % 50, u64::from(n), 0)).collect();
        let room = room(400, 10_000);
        let projects = projects();
        let candidates = of(&many, &projects);
        let leaving = victims(&candidates, &room);
        let stay = candidates.iter().filter(|candidate| !leaving.contains(&candidate.id));
        let mut used = Resources::default();
        stay.for_each(|candidate| used.add(1, &candidate.size.resources()));
        assert!(used.fits_into(&room), "{used:?}");
    }

    proptest! {
        #[test]
        fn pre_06_no_other_set_is_better(
            given in prop::collection::vec((1_u32..5, 1_u32..5, 0_u64..6, 0_usize..3), 0..9),
            (vcpus, memory) in (0_u64..20, 0_u64..20),
        ) {
            let (projects, room) = (projects(), room(vcpus, memory));
            let candidates = of(&given, &projects);
            // Cost of a set if it is sufficient: its size, work, spread and identifiers.
            let cost = |set: u32| {
                let (out, stay): (Vec<_>, Vec<_>) = (0..).zip(&candidates).partition(|(n, _)| set & (1 << n) != 0);
                let mut used = Resources::default();
                for (_, candidate) in stay {
                    used.add(1, &candidate.size.resources());
                }
                let mut owners: BTreeMap<&ProjectId, usize> = BTreeMap::new();
                for (_, candidate) in &out {
                    *owners.entry(candidate.project.expect("known")).or_insert(0) += 1;
                }
                let work: u64 = out.iter().map(|(_, candidate)| candidate.work).sum();
                let spread: usize = owners.values().map(|count| count * count).sum();
                let ids: Vec<GuestId> = out.iter().map(|(_, candidate)| candidate.id).collect();
                used.fits_into(&room).then_some((out.len(), work, spread, ids))
            };
            let best = (0..1 << candidates.len()).filter_map(cost).min().expect("all of them are enough");
            prop_assert_eq!(Vec::from_iter(victims(&candidates, &room)), best.3);
        }
    }
}
