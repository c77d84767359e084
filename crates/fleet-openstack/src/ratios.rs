//! Notes on allocation ratios in reservations' aggregates: the lease's ratio, and Placement's previous ratio.

use leases::lease_pool::Ratio;
use leases::plan::{Overcommit, Told};

use crate::pools::{Membership, Pool};

/// Placement's class, the prefix of the note's metadata key, which the host follows, and the option of
/// `nova.conf`.
pub(crate) const CPU: [&str; 3] = ["VCPU", "allot:vcpu_ratio:", "cpu_allocation_ratio"];
pub(crate) const RAM: [&str; 3] = ["MEMORY_MB", "allot:memory_ratio:", "ram_allocation_ratio"];

/// The note on a ratio of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Note {
    /// The lease's ratio. `None` while it is being changed.
    pub(crate) ratio: Option<Ratio>,
    /// The ratio in Placement before the lease.
    pub(crate) before: f64,
}

impl Note {
    pub(crate) fn of(pool: &Pool<'_>, key: &str, host: &str) -> Option<Self> {
        Self::read(pool.aggregate.metadata.get(&format!("{key}{host}"))?)
    }

    fn read(text: &str) -> Option<Self> {
        let (ratio, before) = text.split_once(' ')?;
        let ratio = if ratio == UNFINISHED { None } else { Some(ratio.parse().ok().and_then(Ratio::new)?) };
        let before = before.parse().ok().filter(|before: &f64| before.is_finite() && *before > 0.0)?;
        Some(Self { ratio, before })
    }

    pub(crate) fn text(self) -> String {
        let ratio = self.ratio.map_or_else(|| UNFINISHED.to_owned(), |ratio| ratio.get().to_string());
        format!("{ratio} {}", self.before)
    }

    fn told(self) -> Told {
        Told { ratio: self.ratio, before: Ratio::nearest(self.before) }
    }
}

/// Written instead of a ratio that is being changed. It shows that the step was not finished.
const UNFINISHED: &str = "?";

/// Ratios that Placement was told for the reservation that holds the host.
pub(crate) fn told(membership: &Membership<'_>, host: &str) -> Overcommit {
    let Some(pool) = &membership.holder else { return Overcommit::default() };
    let told = |[_, key, _]: [&str; 3]| Note::of(pool, key, host).map(Note::told);
    Overcommit { cpu: told(CPU), ram: told(RAM) }
}

pub(crate) fn has_notes(pool: &Pool<'_>) -> bool {
    let is_note = |name: &String| [CPU, RAM].iter().any(|[_, key, _]| name.starts_with(key));
    pool.aggregate.metadata.keys().any(is_note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        for (ratio, before) in [(None, 16.0), (Ratio::new(1.5), 1.1), (Ratio::new(0.001), 4.0)] {
            let note = Note { ratio, before };
            assert_eq!(Note::read(&note.text()), Some(note));
        }
        for wrong in ["", "2", "2 ", "2 0", "2 x", "x 2", "0 1", "2 inf", "2 NaN"] {
            assert_eq!(Note::read(wrong), None, "{wrong}");
        }
    }
}
