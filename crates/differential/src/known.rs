//! Where we differ from the reference on purpose: the only place that forgives a difference.
//!
//! | difference | why | how the differential tests avoid it |
//! | --- | --- | --- |
//! | `-I FILE` counts every instance twice in the reference | plainly broken | never drawn |
//! | surrogate pairs in JSON (`\ud83d\ude00`) break the reference's output | plainly broken | names are written raw |
//! | JSON that starts with blanks is refused by the reference | we read a superset | never drawn |
//! | a message without `nodegroups` is protocol version 2 to us; the reference refuses it | more is understood | [`NEVER_DAMAGED`]; `multi-evacuate` is never drawn |
//! | `--mond` without a file asks every node over the network | nothing answers in a test | never drawn |
//! | a change-group without target dumps the reference's own records | free text by its nature | [`normalise`] |
//! | the reference crashes (see [`crashed`]) | valid input; we must not crash | counted as skipped |
//! | `hail -S` after a placement in a named or dedicated group writes that group's nodes only, or crashes | a file that lacks nodes is broken; ours has all | [`same_file`] |
//! | `--simulate` numbers nodes from 1 | shows only in the fields `idx` and `peermap` | standard error not compared |
//! | a drbd instance with the same node twice is accepted in a message | refused as in text files | never drawn |
//! | an address's password in `hscan`'s output and names of files | leaks it; ours leaves it out | never drawn |
//! | `hscan` of 3.0.2 saves the memory of KVM nodes as received; ours, as 3.1's, what counts | a file of 3.0.2 promises room that is not there | [`same_file`] |
//! | why `hscan` could not read a cluster | addressed to people, though on standard output | [`normalise`] |
//! | `harep` crashes on a drbd instance without secondary | valid input; we leave the instance alone | never drawn |
//! | names beyond ASCII are sent to a master daemon as Latin-1 | no JSON; we send UTF-8 | never drawn |
//! | fewer numbers than jobs in a daemon's answer are taken for granted | some job would never be waited for; an error | never drawn |
//! | what SIGTERM makes a program say is lost if it is not said to a terminal | it is printed | tested without the reference |
//! | messages of a run that fails | addressed to people; status and output are compared | standard error not compared |

use crate::generate::model::{Case, Program};
use crate::outcome::Outcome;

/// Members of a message that decide which dialect of the protocol it is for us.
pub const NEVER_DAMAGED: [&str; 1] = ["nodegroups"];

/// What starts the dump of all group records in an answer.
const DUMP: &[u8] = b"all groups: ";

/// What starts the reason why `hscan` could not read a cluster.
const DETAILS: &[u8] = b"failed to load data. Details:\n";

/// The output with everything removed that may differ.
pub fn normalise(stdout: &[u8]) -> Vec<u8> {
    without(&without(stdout, DUMP, end_of_json_string), DETAILS, end_of_reason)
}

/// The text without what follows each mark, as far as `end` says.
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

/// A reason may have several lines; nothing but another error follows it in a comparison.
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

/// Whether standard error of that run must be equal: tables and warnings of a run that worked.
pub fn compares_stderr(case: &Case, reference: &Outcome) -> bool {
    let shows_indices =
        case.options.iter().any(|words| words[0].contains("idx") || words[0].contains("peermap"));
    if case.has_option("--simulate") && shows_indices {
        return false;
    }
    // `hcheck` tells with its status what it found.
    reference.status == Some(0) || (case.program == Program::Hcheck && !reference.stdout.is_empty())
}

/// Whether a file that both wrote is the same, as far as it must be.
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

/// Whether a run of the reference ended in its language's own error instead of an answer.
///
/// It does for a drbd instance without secondary (`hbal`), and for `--print-instances` and `hcheck` with an
/// instance whose nodes are in two groups. `hspace` does where groups are judged by themselves and an instance is
/// split over two, for `-l 0` without `--machine-readable`, and for instances without memory that the policy allows.
pub fn crashed(reference: &Outcome) -> bool {
    let stderr = String::from_utf8_lossy(&reference.stderr);
    reference.status != Some(0)
        && ["CallStack (from", "Prelude.", "divide by zero"].iter().any(|mark| stderr.contains(mark))
}

/// Whether a run of ours ended in a panic or by a signal, which nothing excuses.
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
