//! Repairs allowed by the tags of an instance, its group and the cluster (HT-harep).

use crate::number::read_int;

/// Prefix of all tags about repairs.
pub(super) const PREFIX: &str = "ganeti:watcher:autorepair:";

/// Kinds of repairs, least destructive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepairType {
    /// Replace the secondary.
    FixStorage,
    /// Migrate the instance live.
    Migrate,
    /// Restart the instance on its secondary.
    Failover,
    /// Recreate the instance. Its data is lost.
    Reinstall,
}

impl RepairType {
    const ALL: [Self; 4] = [Self::FixStorage, Self::Migrate, Self::Failover, Self::Reinstall];

    /// The name in tags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FixStorage => "fix-storage",
            Self::Migrate => "migrate",
            Self::Failover => "failover",
            Self::Reinstall => "reinstall",
        }
    }

    /// The name in messages.
    pub(super) fn constant(self) -> &'static str {
        match self {
            Self::FixStorage => "ArFixStorage",
            Self::Migrate => "ArMigrate",
            Self::Failover => "ArFailover",
            Self::Reinstall => "ArReinstall",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Repairs allowed for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairPolicy {
    /// No tag enables repairs.
    NotEnabled,
    /// No repairs until the tag is removed.
    SuspendedForever,
    /// No repairs until this time, in seconds since 1970.
    SuspendedUntil(i64),
    /// Repairs up to this kind are allowed.
    Enabled(RepairType),
}

impl RepairPolicy {
    /// The policy at the time `now`, in seconds since 1970. `levels` are the tags of the instance, its group
    /// and the cluster; the first level with a policy decides.
    pub(super) fn at(now: i64, levels: [&[String]; 3]) -> Self {
        levels.into_iter().find_map(|tags| of_level(tags, now)).unwrap_or(Self::NotEnabled)
    }
}

/// Policy of one level. Expired suspensions are ignored.
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
