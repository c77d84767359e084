//! Queue of hosts named in notifications, to be observed soon.

use std::collections::BTreeSet;
use std::ops::Bound;

use leases::ids::HostId;

/// Number of these hosts per look. Small, because they are observed one by one.
const AT_ONCE: usize = 4;

/// Hosts that were reported and not observed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    hosts: BTreeSet<HostId>,
    /// Last host of the previous turn.
    last: Option<HostId>,
    /// Whether the next turn is due.
    pub due: bool,
}

impl Heard {
    /// Adds hosts and makes the next turn due. Returns whether it takes more than one turn.
    pub fn add(&mut self, hosts: impl Iterator<Item = HostId>) -> bool {
        self.hosts.extend(hosts);
        self.due = !self.hosts.is_empty();
        self.hosts.len() > AT_ONCE
    }

    /// Hosts of the next turn, if it is due. Hosts rotate, so that a host reported once isn't stuck behind
    /// hosts that are reported all the time.
    pub fn take_turn(&mut self) -> Option<BTreeSet<HostId>> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.hosts.range((after, Bound::Unbounded));
        let in_turn: Vec<HostId> = later.chain(&self.hosts).copied().take(AT_ONCE).collect();
        self.last = in_turn.last().copied();
        let hosts: BTreeSet<HostId> = in_turn.into_iter().collect();
        self.hosts.retain(|host| !hosts.contains(host));
        Some(hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_take_turns_however_often_others_are_heard_of() {
        let mut heard = Heard::default();
        assert!(!heard.add([].into_iter()) && heard.take_turn().is_none(), "there is nothing to look at");
        let often = || (1..=4).map(HostId);
        let (mut more, mut turns) = (heard.add((1..=9).map(HostId)), Vec::new());
        while let Some(turn) = heard.take_turn() {
            turns.push(turn.into_iter().map(|host| host.0).collect::<Vec<_>>());
            assert!(heard.take_turn().is_none(), "not before it is time");
            if turns.len() < 4 {
                assert!(more, "{turns:?}");
                more = heard.add(often());
            }
        }
        assert_eq!(turns, [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![1, 2, 3, 9], vec![1, 2, 3, 4]]);
    }
}
