//! Which repairs the tags of an instance, its group and the cluster allow (HT-harep).

use crate::number::read_int;

/// What all tags of repairs begin with.
pub(super) const PREFIX: &str = "ganeti:watcher:autorepair:";

/// Kinds of repairs, the least destructive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepairType {
    /// Replace a secondary.
    FixStorage,
    /// Move the instance live.
    Migrate,
    /// Restart the instance on its secondary.
    Failover,
    /// Recreate the instance; its data are lost.
    Reinstall,
}

impl RepairType {
    const ALL: [Self; 4] = [Self::FixStorage, Self::Migrate, Self::Failover, Self::Reinstall];

    /// The word in tags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FixStorage => "fix-storage",
            Self::Migrate => "migrate",
            Self::Failover => "failover",
            Self::Reinstall => "reinstall",
        }
    }

    /// The word in messages.
    pub(super) fn constant(self) -> &'static str {
        match self {
            Self::FixStorage => "ArFixStorage",
            Self::Migrate => "ArMigrate",
            Self::Failover => "ArFailover",
            Self::Reinstall => "ArReinstall",
        }
    }

    /// The kind of that name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What may be done to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairPolicy {
    /// Nobody asked for repairs.
    NotEnabled,
    /// No repairs until somebody removes the tag.
    SuspendedForever,
    /// No repairs until this time, seconds since 1970.
    SuspendedUntil(i64),
    /// Repairs up to this kind.
    Enabled(RepairType),
}

impl RepairPolicy {
    /// The policy at the time `now`, seconds since 1970: the first list of tags that says anything counts.
    /// `levels` are the tags of the instance, of its group and of the cluster.
    pub(super) fn at(now: i64, levels: [&[String]; 3]) -> Self {
        levels.into_iter().find_map(|tags| of_level(tags, now)).unwrap_or(Self::NotEnabled)
    }
}

/// What one list of tags says; a suspension that is over says nothing.
fn of_level(tags: &[String], now: i64) -> Option<RepairPolicy> {
    let words = || tags.iter().filter_map(|tag| tag.strip_prefix(PREFIX));
    if words().any(|word| word == "suspend" || word == "suspend:") {
        return Some(RepairPolicy::SuspendedForever);
    }
    let until = words().filter_map(|word| read_int("", word.strip_prefix("suspend:")?).ok()).max();
    if let Some(until) = until.filter(|until| *until > now) {
        return Some(RepairPolicy::SuspendedUntil(until));
    }
    words().filter_map(RepairType::from_name).min().map(RepairPolicy::Enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now: i64, levels: [&[&str]; 3]) -> RepairPolicy {
        let levels = levels.map(|words| words.iter().map(|w| format!("{PREFIX}{w}")).collect::<Vec<_>>());
        RepairPolicy::at(now, [&levels[0], &levels[1], &levels[2]])
    }

    #[test]
    fn the_nearest_tags_count() {
        let (fix, fail) =
            (RepairPolicy::Enabled(RepairType::FixStorage), RepairPolicy::Enabled(RepairType::Failover));
        assert_eq!(at(0, [&["fix-storage"], &["failover"], &["suspend"]]), fix);
        assert_eq!(at(0, [&[], &["failover"], &["suspend"]]), fail);
        assert_eq!(at(0, [&["foo"], &["suspend:x"], &["suspend"]]), RepairPolicy::SuspendedForever);
        assert_eq!(at(0, [&[], &[], &[]]), RepairPolicy::NotEnabled);
    }

    #[test]
    fn the_least_destructive_kind_counts() {
        for (words, kind) in [
            (["reinstall", "failover"], RepairType::Failover),
            (["migrate", "failover"], RepairType::Migrate),
            (["migrate", "fix-storage"], RepairType::FixStorage),
        ] {
            assert_eq!(at(0, [&words, &[], &[]]), RepairPolicy::Enabled(kind));
        }
    }

    #[test]
    fn suspensions_beat_permissions_until_they_are_over() {
        let words: &[&str] = &["reinstall", "suspend:100", "suspend:200"];
        assert_eq!(at(50, [words, &[], &[]]), RepairPolicy::SuspendedUntil(200));
        assert_eq!(at(199, [words, &[], &[]]), RepairPolicy::SuspendedUntil(200));
        assert_eq!(at(200, [words, &[], &[]]), RepairPolicy::Enabled(RepairType::Reinstall));
        assert_eq!(at(50, [&["suspend:100", "suspend:"], &[], &[]]), RepairPolicy::SuspendedForever);
        assert_eq!(
            at(100, [&["suspend:100"], &["migrate"], &[]]),
            RepairPolicy::Enabled(RepairType::Migrate)
        );
    }
}
