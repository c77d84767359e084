//! Reasons against a hunt, worded for the lease's owner.

use std::fmt;

use jiff::SignedDuration;
use placement::clear;

use super::scene::{MEMORY, VCPUS};

/// Reason why moving guests of other tenants doesn't help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HuntRefusal {
    /// Not enough hosts can be cleared.
    Impossible(clear::Refusal),
    /// The hunt would end after the lease's timeout.
    PastTimeout {
        /// Estimated duration of the hunt.
        takes: SignedDuration,
        /// Time left until the timeout.
        left: SignedDuration,
    },
    /// The hunt would exceed the operator's maximum duration.
    TooLong {
        /// Estimated duration of the hunt.
        takes: SignedDuration,
        longest: SignedDuration,
    },
}

impl From<clear::Refusal> for HuntRefusal {
    fn from(refusal: clear::Refusal) -> Self {
        Self::Impossible(refusal)
    }
}

impl fmt::Display for HuntRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(refusal) => {
                write!(f, "moving guests of others away does not help: {}", impossible(refusal))
            }
            Self::PastTimeout { takes, left } => write!(
                f,
                "moving guests away takes {takes:#}, the timeout is {:#}; ask for a timeout of {takes:#} or more",
                rounded(*left)
            ),
            Self::TooLong { takes, longest } => {
                write!(
                    f,
                    "moving guests away takes {takes:#}, the operator allows {longest:#} at most; ask for fewer hosts"
                )
            }
        }
    }
}

/// Rounds down to whole minutes, as the client requested them: timeouts end on a full minute. Uses seconds
/// below one minute.
fn rounded(left: SignedDuration) -> SignedDuration {
    match left.as_mins() {
        0 => SignedDuration::from_secs(left.as_secs()),
        minutes => SignedDuration::from_mins(minutes),
    }
}

fn impossible(refusal: &clear::Refusal) -> String {
    match refusal {
        clear::Refusal::TooFewCandidates { wanted, clearable, others } => {
            let counts = [
                (others.not_candidates, "cannot be had at all"),
                (others.unmovable, "with guests that may not be moved"),
                (others.without_destination, "with guests that fit on no other host"),
            ];
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
            let others = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
            format!("of {} that are needed {clearable} can be cleared{others}", hosts(*wanted))
        }
        clear::Refusal::NoRoom { wanted, shortages } if shortages.is_empty() => {
            format!("whichever {} are cleared, not all of their guests fit elsewhere", hosts(*wanted))
        }
        clear::Refusal::NoRoom { shortages, .. } => {
            let lack = |shortage: &clear::Shortage| {
                let unit = match (shortage.dimension, shortage.lacking) {
                    (VCPUS, 1) => "vCPU",
                    (VCPUS, _) => "vCPUs",
                    (MEMORY, _) => "MiB of memory",
                    _ => "GiB of disk",
                };
                format!("{} {unit}", shortage.lacking)
            };
            let lacks: Vec<String> = shortages.iter().map(lack).collect();
            format!("their guests would lack {} elsewhere", lacks.join(" and "))
        }
        clear::Refusal::SearchExhausted { wanted, found } => {
            let most = if *found > 0 { format!(", {found} at most") } else { String::new() };
            format!("no way was found to clear {}{most}; ask for fewer hosts", hosts(*wanted))
        }
        clear::Refusal::Malformed(malformed) => malformed.to_string(),
    }
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_speak_of_hosts_and_units_and_leave_zeros_out() {
        let shortages =
            [(0, 8), (1, 1024)].map(|(dimension, lacking)| clear::Shortage { dimension, lacking });
        let refusal = HuntRefusal::from(clear::Refusal::NoRoom { wanted: 5, shortages: shortages.to_vec() });
        let said = refusal.to_string();
        assert!(said.ends_with("their guests would lack 8 vCPUs and 1024 MiB of memory elsewhere"), "{said}");
        let shortages = vec![clear::Shortage { dimension: 0, lacking: 1 }];
        let said = HuntRefusal::from(clear::Refusal::NoRoom { wanted: 5, shortages }).to_string();
        assert!(said.ends_with("their guests would lack 1 vCPU elsewhere"), "{said}");
        let others = clear::Unclearable { not_candidates: 15, ..clear::Unclearable::default() };
        let refusal = clear::Refusal::TooFewCandidates { wanted: 24, clearable: 9, others };
        let said = HuntRefusal::from(refusal).to_string();
        assert!(
            said.ends_with("of 24 hosts that are needed 9 can be cleared (15 cannot be had at all)"),
            "{said}"
        );
    }

    #[test]
    fn a_hunt_that_takes_too_long_says_how_long_it_takes() {
        let (takes, left) = (SignedDuration::from_mins(2), SignedDuration::from_millis(75_511));
        let said = HuntRefusal::PastTimeout { takes, left }.to_string();
        assert_eq!(said, "moving guests away takes 2m, the timeout is 1m; ask for a timeout of 2m or more");
    }
}
