//! Copying and moving leases, leases with the same name, and confirmation on a terminal.

use jiff::{SignedDuration, Timestamp};

use crate::first_minutes::typed;
use crate::service::{Running, database};

/// Start and length of a lease.
fn period(lease: &str, service: &Running) -> (Timestamp, SignedDuration) {
    let shown = service.json(&format!("lease show {lease}"));
    let date = |name: &str| -> Timestamp {
        let text = shown["lease"][name].as_str().expect("a date");
        format!("{text}Z").parse().expect("a timestamp")
    };
    (date("start_date"), date("end_date").duration_since(date("start_date")))
}

#[test]
fn a_lease_is_copied_and_moved_with_its_length() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01 r1-h02");
    service.says("lease create web --hosts 2 --start +2d --for 90m");
    let (start, length) = period("web", &service);
    assert_eq!(length, SignedDuration::from_mins(90));

    let would = service.says("lease copy web --name next --start +9d --dry-run");
    assert!(would.contains("Lease next") && would.ends_with("Dry run: no changes were made.\n"), "{would}");
    let copied = service.says("lease copy web --name next --start +9d");
    assert!(copied.contains("2 hosts") && !copied.contains("Note:"), "{copied}");
    let (later, same) = period("next", &service);
    let from_start = start + SignedDuration::from_hours(9 * 24);
    assert_eq!((later, same), (from_start, length), "it counts from the start of the copied lease");

    let time = service.allot("lease extend next 2031-12-05");
    assert!(time.err.contains("`allot lease update next --end 2031-12-05`"), "{}", time.err);
    assert_eq!(time.status, 2);
    assert!(service.says("lease extend next +30m --dry-run").contains("lasts 2h"));
    let week = service.allot("lease create wk --hosts 1 --start tuesday --end tue --dry-run").err;
    assert!(
        week.contains("Note: the lease lasts 7d") && week.contains(": --end tue is in the week after"),
        "{week}"
    );

    service.says("lease move next --start +16d --dry-run");
    assert_eq!(period("next", &service), (later, length));
    for (to, is_later) in [("+16d", true), ("+5d", false)] {
        service.says(&format!("lease move next --start {to}"));
        let (moved, same) = period("next", &service);
        assert!((moved > later) == is_later && same == length, "{to}: {moved} {same}");
    }
    assert_eq!(service.stop(), 0);
}

#[test]
fn a_lease_of_the_same_name_is_noted() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01");
    let note = "Note: another lease is called web.";
    assert!(!service.says("lease create web --hosts 1 --start +2d --for 1h").contains("Note:"));
    for copy in ["web-2", "web-3"] {
        let copied = service.says("lease copy web --start +3d --dry-run");
        assert!(copied.contains(&format!("Lease {copy} ")) && !copied.contains(note), "{copied}");
        service.says(&format!("lease copy web --start +{}d", &copy[4..]));
    }
    assert!(service.says("lease copy web-3 --start +1d --dry-run").contains("Lease web-4 "));
    assert!(service.says("lease create web --hosts 1 --start +3d --for 1h").contains(note));
    let json = service.allot("lease create web --hosts 1 --start +7d --for 1h -o json");
    assert_eq!((json.status, json.err.as_str()), (0, ""), "notes are for people");
    let ambiguous = service.allot("lease show web").err;
    assert!(ambiguous.contains("ambiguous\nHint: use an ID: "), "{ambiguous}");
    assert!(ambiguous.contains(" PENDING ") && !ambiguous.contains("use more of"), "{ambiguous}");
    let short = service.allot("lease show abc").err;
    assert!(short.contains("Hint: write at least four characters of an ID"), "{short}");
    assert_eq!(service.stop(), 0);
}

#[test]
fn a_command_that_destroys_something_asks_on_a_terminal_only() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01 r1-h02 r1-h03 r1-h04");
    for name in ["kept", "given-up", "sure", "silent"] {
        service.says(&format!("lease create {name} --hosts 1 --start +2d --for 1h"));
    }
    let reserved = service.allot("host delete r1-h01").err;
    assert!(reserved.starts_with("Error: Can't delete host r1-h01. The host is reserved."), "{reserved}");
    assert!(reserved.contains("Hint: leases of this host: "), "{reserved}");
    let url = format!("--url {}", service.url);
    let no = typed(&format!("lease delete kept {url}"), &[("? [y/N] ", "\n")]);
    let id = service.json("lease show kept")["lease"]["id"].as_str().expect("an identifier")[..8].to_owned();
    assert!(no.contains(&format!("Delete lease kept ({id}, PENDING, starts ")), "{no}");
    assert!(no.contains("Error: not confirmed; no changes were made"), "{no}");
    let unknown = typed(&format!("lease delete 0000 {url}"), &[]);
    assert!(unknown.contains("there is no lease \"0000\"") && !unknown.contains("[y/N]"), "{unknown}");
    let some = typed(&format!("lease delete kept 0000 sure {url}"), &[("? [y/N] ", "n\n")]);
    assert!(some.contains("Delete 2 leases: kept (") && some.contains(", sure ("), "{some}");
    assert!(some.find("there is no lease") < some.find("Delete 2 leases"), "{some}");
    let host = typed(&format!("host delete 4 {url}"), &[("Remove host r1-h04? [y/N] ", "n\n")]);
    assert!(host.contains("not confirmed"), "{host}");
    let yes = typed(&format!("lease delete given-up {url}"), &[("? [y/N] ", "y\n")]);
    assert!(yes.contains("Lease given-up is deleted."), "{yes}");
    for (name, option) in [("sure", "--yes"), ("silent", "--no-input")] {
        let unasked = typed(&format!("lease delete {name} {option} {url}"), &[]);
        assert!(unasked.contains("is deleted.") && !unasked.contains("[y/N]"), "{unasked}");
    }
    let left = service.allot("lease list --no-header --columns name").out;
    assert_eq!(left.trim(), "kept");
    assert_eq!(service.says("lease delete kept"), "Lease kept is deleted.\n", "a pipe isn't asked");
    assert_eq!(service.stop(), 0);
}

#[test]
fn a_lease_whose_hosts_are_still_released_is_being_deleted() {
    let service = Running::start(&database(), &["--limits-delete-wait", "0s"]);
    service.says("host create r1-h01");
    service.says("lease create web --hosts 1 --for 2h --wait");
    assert_eq!(service.says("lease delete web"), "Lease web is being deleted.\n");
    assert_eq!(service.stop(), 0);
}
