//! How many connections there can be with as many open files as the process may have.

use rustix::process::{Resource, getrlimit};

/// What the database, hooks and the log need.
const OTHERS: usize = 128;

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connections {
    /// All of them.
    pub most: usize,
    /// From one address.
    pub per_address: usize,
}

impl Connections {
    /// As many as the process can have. If there were more, nobody could connect any more, whoever it is that
    /// has them all.
    pub fn that_fit(self) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        let fitting =
            self.within(files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX)));
        if fitting != self {
            let Self { most, per_address } = fitting;
            tracing::info!(
                most,
                per_address,
                "fewer connections are taken, since few open files are allowed"
            );
        }
        fitting
    }

    fn within(self, files: usize) -> Self {
        let room = files.saturating_sub(OTHERS).max(1);
        if self.most <= room {
            return self;
        }
        Self { most: room, per_address: self.per_address.min(room.div_ceil(2)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_connections_than_files_and_one_address_has_half_of_them() {
        let wanted = Connections { most: 4096, per_address: 1024 };
        assert_eq!(wanted.within(524_288), wanted);
        assert_eq!(wanted.within(1024), Connections { most: 896, per_address: 448 });
        assert_eq!(wanted.within(10), Connections { most: 1, per_address: 1 });
        let few = Connections { most: 10, per_address: 10 };
        assert_eq!(few.within(1024), few);
    }
}
