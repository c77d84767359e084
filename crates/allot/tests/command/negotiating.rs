//! Offers by number, and the prompt that asks which one to accept.

use serde_json::json;

use crate::first_minutes::typed;
use crate::service::{Running, database};

/// Numbers of the open offers, and their expiry dates.
fn offers(service: &Running) -> (Vec<Option<u64>>, Vec<String>) {
    let offers = service.json("lease offers")["offers"].clone();
    let offers = offers.as_array().expect("a list");
    let until = offers.iter().map(|offer| offer["expires_at"].as_str().expect("it is held").to_owned());
    (offers.iter().map(|offer| offer["number"].as_u64()).collect(), until.collect())
}

#[test]
fn offers_are_accepted_by_number_and_asked_about_on_a_terminal_only() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01 r1-h02");
    service.says("lease create other --hosts 1 --start +2d --for 1h");
    let create = |name: &str| format!("lease create {name} --hosts 2 --start +2d --for 1h");
    let url = format!("--url {}", service.url);

    let no = typed(&format!("{} {url}", create("never")), &[("Accept? [1/2/n] ", "n\n")]);
    assert!(
        no.contains("Error: Not enough hosts available"),
        "the reason is there before the question: {no}"
    );
    assert_eq!(no.matches("Error").count(), 1, "and not again: {no}");
    assert!(no.contains("Accept one with `allot lease accept 1`."), "{no}");
    let (numbers, terminal) = offers(&service);
    assert_eq!(numbers, [Some(1), Some(2)]);

    let silent = typed(&format!("{} --no-input {url}", create("silent")), &[]);
    assert!(silent.contains("`allot lease accept 1`") && !silent.contains("Accept? ["), "{silent}");

    let refused = service.allot(&create("narrow"));
    assert_eq!(refused.status, 1);
    assert!(!refused.err.contains("Accept? ["), "a pipe isn't asked: {}", refused.err);
    let (numbers, pipe) = offers(&service);
    assert_eq!(numbers, [Some(1), Some(2)], "the latest refusal needs what was offered before");
    assert!(pipe < terminal, "a terminal has longer to decide: {pipe:?} {terminal:?}");

    let accepted = service.says("lease accept 2");
    assert!(accepted.contains("Lease narrow") && accepted.contains("1 host"), "{accepted}");
    let gone = service.allot("lease accept 2");
    assert_eq!((gone.status, gone.err.starts_with("Error: there is no offer 2")), (1, true), "{}", gone.err);

    let answers = [("Accept? [1/n] ", "7\n"), ("Accept? [1/n] ", "1\n")];
    let yes = typed(&format!("{} {url}", create("later")), &answers);
    assert!(yes.contains("Lease later"), "{yes}");
    assert_eq!(service.json("lease offers")["offers"], json!([]));
    service.allot(&create("last"));
    service.says("lease decline 1");
    assert_eq!(service.json("lease offers")["offers"], json!([]));
    for format in ["name", "csv"] {
        let refused = service.allot(&format!("{} -o {format}", create("last")));
        assert_eq!((refused.status, refused.out.as_str()), (1, ""), "an offer is no lease");
    }
    let held = service.allot(&format!("{} -o json", create("last")));
    assert!(held.status == 1 && held.out.contains("\"offers\""), "{}", held.out);
    let expired = service.allot("lease accept 0c7be2d4-7a6f-4d44-8d2f-7a0b5d0c2c11").err;
    assert!(expired.starts_with("Error: there is no offer 0c7be2d4-"), "{expired}");
    assert!(expired.contains("Hint: it may have expired; `allot lease offers` lists yours"), "{expired}");
    assert_eq!(service.stop(), 0);
}
