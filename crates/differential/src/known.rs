//! Intended differences from the reference. No other module forgives a difference.
//!
//! | difference | why | how the differential tests avoid it |
//! | --- | --- | --- |
//! | `-I FILE` counts every instance twice in the reference | plainly broken | never drawn |
//! | surrogate pairs in JSON (`\ud83d\ude00`) break the reference's output | plainly broken | names are written raw |
//! | JSON that starts with blanks is refused by the reference | we read a superset | never drawn |
//! | a message without `nodegroups` is protocol version 2 to us; the reference refuses it | we accept more | [`NEVER_DAMAGED`]; `multi-evacuate` is never drawn |
//! | `--mond` without a file queries every node over the network | no node answers in a test | never drawn |
//! | a change-group without target dumps the reference's own records | free text by its nature | [`normalise`] |
//! | the reference crashes (see [`crashed`]) | valid input; we must not crash | counted as skipped |
//! | `hail -S` after a placement in a named or dedicated group writes that group's nodes only, or crashes | a file that lacks nodes is broken; ours has all | [`same_file`] |
//! | `--simulate` numbers nodes from 1 | visible only in the fields `idx` and `peermap` | standard error not compared |
//! | a drbd instance with the same node twice is accepted in a message | we refuse it, as in text files | never drawn |
//! | an address's password appears in the output and file names of `hscan` | leaks it; ours leaves it out | never drawn |
//! | `hscan` of 3.0.2 saves the memory of KVM nodes as received; ours, like 3.1, the memory that counts | a file of 3.0.2 promises memory that isn't there | [`same_file`] |
//! | the reason why `hscan` couldn't read a cluster | written for people, though on standard output | [`normalise`] |
//! | `harep` crashes on a drbd instance without secondary | valid input; we leave the instance alone | never drawn |
//! | names beyond ASCII are sent to a master daemon as Latin-1 | not valid JSON; we send UTF-8 | never drawn |
//! | a daemon's answer with fewer numbers than jobs is accepted | some job would never be waited for; we report an error | never drawn |
//! | messages after SIGTERM are lost unless they go to a terminal | we print them | tested without the reference |
//! | messages of a failed run | written for people; status and output are compared | standard error not compared |

use crate::generate::model::{Case, Program};
use crate::outcome::Outcome;

/// Members of a message that determine the protocol version for us.
pub const NEVER_DAMAGED: [&str; 1] = ["nodegroups"];

/// Text before the dump of all group records in an answer.
const DUMP: &[u8] = b"all groups: ";

/// Text before the reason why `hscan` couldn't read a cluster.
const DETAILS: &[u8] = b"failed to load data. Details:\n";

/// Removes everything from the output that is allowed to differ.
pub fn normalise(stdout: &[u8]) -> Vec<u8> {
    without(&without(stdout, DUMP, end_of_json_string), DETAILS, end_of_reason)
}

/// Removes the text after each mark. `end` returns the length to remove.
fn without(text: &[u8], mark: &[u8], end: fn(&[u8]) -> usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(mark.len()).position(|w| w == mark) {
        kept.extend_from_slice(&rest[..at + mark.len()]);
        rest = &rest[at + mark.len()..];
        rest = &rest[end(rest)..];
    }
    kept.extend_from_slice(rest);
    kept
}

/// A reason can span several lines. In a comparison, only another error can follow it.
fn end_of_reason(text: &[u8]) -> usize {
    let next = b"\nError for ";
    text.windows(next.len()).position(|w| w == next).unwrap_or(text.len())
}

fn end_of_json_string(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' if !escaped => return at,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Whether standard error must be equal: tables and warnings of a successful run.
pub fn compares_stderr(case: &Case, reference: &Outcome) -> bool {
    let shows_indices =
        case.options.iter().any(|words| words[0].contains("idx") || words[0].contains("peermap"));
    if case.has_option("--simulate") && shows_indices {
        return false;
    }
    // The status of `hcheck` is its finding.
    reference.status == Some(0) || (case.program == Program::Hcheck && !reference.stdout.is_empty())
}

/// Whether two written files are equal, except for allowed differences.
pub fn same_file(name: &str, theirs: &[u8], ours: &[u8]) -> bool {
    if theirs == ours {
        return true;
    }
    if std::path::Path::new(name).extension().is_some_and(|extension| extension == "data") {
        return same_but_node_memory(theirs, ours);
    }
    let mut ours = ours.split(|byte| *byte == b'\n');
    name.ends_with(".post-ialloc")
        && theirs.split(|byte| *byte == b'\n').all(|line| ours.any(|candidate| candidate == line))
}

/// Whether two clusters in the text format differ at most in the memory of the nodes' own systems.
fn same_but_node_memory(theirs: &[u8], ours: &[u8]) -> bool {
    const NODE_SECTION: usize = 1;
    const NODE_MEMORY: usize = 2;
    let lines =
        |text: &[u8]| -> Vec<Vec<u8>> { text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() };
    let (theirs, ours) = (lines(theirs), lines(ours));
    let mut section = 0;
    theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|(theirs, ours)| {
            section += usize::from(theirs.is_empty());
            let mut fields =
                theirs.split(|byte| *byte == b'|').zip(ours.split(|byte| *byte == b'|')).enumerate();
            let number = |line: &[u8]| line.split(|byte| *byte == b'|').count();
            number(theirs) == number(ours)
                && fields.all(|(at, (theirs, ours))| {
                    theirs == ours || (section == NODE_SECTION && at == NODE_MEMORY)
                })
        })
}

/// Whether a run of the reference ended with a Haskell runtime error instead of an answer.
///
/// `hbal` does for a drbd instance without secondary; `--print-instances` and `hcheck` do for an instance
/// with nodes in two groups. `hspace` does if groups are judged separately and an instance is split over two,
/// for `-l 0` without `--machine-readable`, and for instances without memory that the policy allows.
pub fn crashed(reference: &Outcome) -> bool {
    let stderr = String::from_utf8_lossy(&reference.stderr);
    reference.status != Some(0)
        && ["CallStack (from", "Prelude.", "divide by zero"].iter().any(|mark| stderr.contains(mark))
}

/// Whether our program panicked or was ended by a signal, which is never excused.
pub fn panicked(ours: &Outcome) -> bool {
    ours.status.is_none_or(|status| status == 101)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgives_only_the_memory_of_nodes_own_systems() {
        let file = b"g|u|preferred\n\nn1|1024|64|512\n\ni|1|2|3\n";
        let same = |ours: &[u8]| same_file("LOCAL.data", file, ours);
        assert!(same(b"g|u|preferred\n\nn1|1024|4096|512\n\ni|1|2|3\n"));
        assert!(!same(b"g|u|preferred\n\nn1|1024|64|511\n\ni|1|2|3\n"));
        assert!(!same(b"g|u|preferred\n\nn1|1024|64|512\n\ni|1|4|3\n"));
        assert!(!same(b"g|u|preferred\n\nn1|1024|64|512\n"));
    }

    #[test]
    fn forgives_only_the_dump() {
        let ours = br#"[["i","all groups: [1]"],["j"]]"#;
        let theirs = br#"[["i","all groups: [Group {name = \"g\"}]"],["j"]]"#;
        assert_eq!(normalise(ours), normalise(theirs));
        assert_ne!(normalise(ours), normalise(br#"[["i","all groups: [1]"],["k"]]"#));
    }
}
