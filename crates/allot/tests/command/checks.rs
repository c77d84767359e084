//! `allot serve --check`.

use std::fs;

use crate::shell::{command, file, fresh, run};

#[test]
fn serve_check_reports_every_mistake_and_starts_nothing() {
    let hash = "password_hash = \"sesame\"\nprojects = { p = [\"member\"] }\n";
    let users = format!("[[users]]\nname = \"ann\"\n{hash}[[users]]\nname = \"ben\"\n{hash}");
    let users = file("users.toml", &users);
    let hooks = file("hooks.toml", "state_file = \"state\"\nhosts = []\nhooks.on_hold.exec = [\"./hold\"]\n");
    let policy = file("policy.yaml", "\"blazar:leases:get\": \"role:\"\n");
    let settings = format!(
        "database = \"sqlite:///no/such/directory/allot.db\"\nauth = \"basic:{users}\"\nfleet = \"hooks:{hooks}\"\n\
         policy_file = \"{policy}\"\n[notifications]\nexec = [\"./tell\", \"--mail\"]\n\
         [tls]\ncertificate = \"/no/certificate\"\nkey = \"/no/key\"\n"
    );
    let ran = run(command().args(["serve", "--check", "--config", &file("allot.toml", &settings)]));
    assert_eq!((ran.status, &*ran.out), (1, ""), "{}", ran.err);
    let expected = [
        format!("{users}, line 1: user ann: "),
        format!("{users}, line 5: user ben: "),
        format!("{hooks}: hooks.on_hold: ./hold: no such file"),
        format!("{policy}, line 1: "),
        "notifications.exec: ./tell: no such file".to_owned(),
        "tls: ".to_owned(),
        "database: there is no directory /no/such/directory".to_owned(),
    ];
    for mistake in &expected {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), expected.len(), "{}", ran.err);
    assert!(!ran.err.contains("sesame"), "{}", ran.err);
}

#[test]
fn serve_check_reports_a_mistake_once() {
    let bus = file("bus.url", "nonsense://host");
    let arguments = ["--message-bus-url-file", &bus, "--message-bus-nova-topics", "versioned_notifications"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    assert_eq!((ran.status, ran.err.lines().count()), (1, 1), "{}", ran.err);
}

#[test]
fn serve_check_reports_addresses_of_an_enforcer_that_nobody_would_ask() {
    let arguments = ["--enforcement-check-create-url", "http://127.0.0.1:1/"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    assert!(ran.status == 1 && ran.err.contains("need enforcement.url"), "{}", ran.err);
}

#[test]
fn serve_check_reports_all_wrong_settings() {
    let config = file("allot.toml", "listn = 1\n[log]\nformat = \"xml\"\n");
    let ran = run(command().args(["serve", "--check", "--config", &config, "--limits-page", "many"]));
    assert_eq!((ran.status, ran.err.lines().count()), (1, 3), "{}", ran.err);
}

#[test]
fn serve_check_of_a_valid_configuration_creates_no_file() {
    let directory = fresh("valid");
    fs::create_dir(&directory).expect("it is new");
    let ran = run(command().args(["serve", "--check"]).current_dir(&directory));
    assert_eq!((ran.status, &*ran.out), (0, "The configuration is valid.\n"), "{}", ran.err);
    assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 0);
}
