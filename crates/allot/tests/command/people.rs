//! Users of a service that requires a login: an administrator, a member and a reader.

use crate::first_minutes::typed;
use crate::service::{Running, hashed};
use crate::shell::{Ran, command, file, run};

/// A service with users (password "secret") and a token ("open sesame").
pub fn service() -> Running {
    let tokens = format!(
        "[[tokens]]\nsha256 = \"{}\"\nuser = \"tom\"\nproject = \"physics\"\nroles = [\"member\"]\n",
        hashed("token", "open sesame")
    );
    let hash = hashed("password", "secret\n");
    let user = |name: &str, projects: &str| {
        format!("[[users]]\nname = \"{name}\"\npassword_hash = \"{hash}\"\nprojects = {{ {projects} }}\n")
    };
    let users = user("ada", "ops = [\"admin\"]")
        + &user("ann", "physics = [\"member\"], vision = [\"member\"]")
        + "default_project = \"physics\"\n"
        + &user("rea", "physics = [\"reader\"]");
    let auth = format!("tokens:{},basic:{}", file("tokens.toml", &tokens), file("users.toml", &users));
    Running::start("memory", &["--auth", &auth, "--limits-requests-per-second", "0"])
}

/// Runs a command with the user's name and password in the environment.
fn by(user: &str, words: &str, service: &Running) -> Ran {
    let mut command = command();
    command.env("ALLOT_USER", user).env("ALLOT_PASSWORD", "secret").env("ALLOT_URL", &service.url);
    run(command.env("TZ", "UTC").args(words.split_whitespace()))
}

/// Output and notes of a command that must succeed.
fn said(user: &str, words: &str, service: &Running) -> String {
    let ran = by(user, words, service);
    assert_eq!(ran.status, 0, "{user}: {words}: {}", ran.err);
    ran.out + &ran.err
}

#[test]
fn wrong_and_missing_credentials_are_told_apart() {
    let service = service();
    let refused = |words: &str, status: i32, error: &str| {
        let ran = service.allot(words);
        assert!(ran.status == status && ran.err.starts_with(error), "{words}: {} {}", ran.status, ran.err);
    };
    refused("lease list", 1, "Error: The service requires a login\nHint: log in with --user");
    refused("lease list --user ann", 2, "Error: no password for user ann: set ALLOT_PASSWORD or --password");
    refused("--user ann whoami", 2, "Error: no password for user ann: set ALLOT_PASSWORD or --password");
    refused("lease list --user ann --password wrong", 1, "Error: The service rejects user ann with this");
    refused("lease list --token wrong", 1, "Error: The service rejects the token\n");
    let elsewhere = by("ann", "lease list --project ops", &service);
    assert!(elsewhere.err.contains("for project ops\nHint: check the name"), "{}", elsewhere.err);
}

#[test]
fn a_login_that_the_service_ignores_is_noted() {
    let service = Running::start("memory", &[]);
    let ran = by("ann", "lease list", &service);
    assert!(ran.status == 0 && ran.err.starts_with("Note: your login is ignored: "), "{}", ran.err);
    assert!(!service.allot("lease list").err.contains("Note"));
}

#[test]
fn a_password_is_asked_for_on_a_terminal() {
    let service = service();
    let line = format!("whoami --user ann --url {}", service.url);
    let shown = typed(&line, &[("Password of ann: ", "secret\n")]);
    assert!(shown.contains("user      ann") && !shown.contains("secret"), "{shown}");
}

#[test]
fn users_are_told_who_they_are_and_choose_a_project() {
    let service = service();
    let whoami = said("ann", "whoami", &service);
    let wanted = format!(
        "user      ann\nproject   physics\nprojects  physics, vision\nroles     member, reader\nlogin     password\nservice   {}\n",
        service.url
    );
    assert_eq!(whoami, wanted);
    assert!(said("ann", "whoami --project vision", &service).contains("project   vision"));
    said("ada", "host create r1-h01", &service);
    said("ann", "lease create seen --hosts 1 --for 1h --project vision", &service);
    for (user, error) in [
        ("ann", "Error: there is no lease \"seen\" in project physics\n"),
        ("ada", "Error: there is no lease \"sen\"\n"),
    ] {
        let words = if user == "ann" { "lease show seen" } else { "lease show sen" };
        let ran = by(user, words, &service);
        assert!(ran.status == 1 && ran.err.starts_with(error), "{user}: {}", ran.err);
    }
    assert!(said("ada", "lease list --of-project vision", &service).contains("seen"));
    let audit = said("ada", "audit --object seen --action lease.create", &service);
    assert!(audit.contains("lease.create") && audit.contains("vision"), "{audit}");
    let none = said("ada", "audit --object 0000aaaa", &service);
    assert!(none.starts_with("No matching changes.\nUse the full ID"), "{none}");
    assert_eq!(said("ann", "lease list", &service), "There are no leases.\n");
    // A token in the environment is used instead of the user.
    let mut token = command();
    token.env("ALLOT_USER", "ann").env("ALLOT_TOKEN", "open sesame").env("ALLOT_URL", &service.url);
    let ran = run(token.arg("whoami"));
    assert!(ran.out.starts_with("user      tom\n") && ran.out.contains("login     token"), "{}", ran.err);
}

#[test]
fn usage_is_of_everyone_and_not_of_the_user_that_logs_in() {
    let service = service();
    said("ada", "host create r1-h01", &service);
    assert_eq!(by("ann", "lease create seen --hosts 1 --for 1h --wait", &service).status, 0);
    assert!(said("ada", "usage --by user", &service).contains("ann"));
    assert!(said("ada", "usage --by user --of-user ann", &service).contains("ann"));
    assert!(said("ada", "usage --by user --of-user rea", &service).contains("No reservations or usage"));
}

#[test]
fn members_and_readers_see_the_calendar() {
    let service = service();
    said("ada", "host create r1-h01 r1-h02 --set rack=r1", &service);
    said("ann", "lease create own --hosts 1 --for 5d", &service);
    said("ann", "lease create secret --hosts 1 --for 5d --project vision", &service);
    let whole = said("ada", "calendar --by rack", &service);
    assert!(whole.contains("r1-h01 [own=") && whole.contains("r1-h02 [secret="), "{whole}");
    for user in ["ann", "rea"] {
        let chart = said(user, "calendar --by rack", &service);
        assert!(chart.contains("r1-h01 [own=") && chart.contains("host 2 [(another project)="), "{chart}");
        assert!(!chart.contains("secret") && !chart.contains("r1-h02"), "{chart}");
    }
    assert!(said("rea", "calendar --json", &service).contains("\"mine\": true"));
}

#[test]
fn a_calendar_names_other_groups_only_where_the_group_is_the_problem() {
    let service = service();
    let without_hosts = said("ada", "calendar --by rack", &service);
    assert!(!without_hosts.contains("grouped by"), "{without_hosts}");
    said("ada", "host create r1-h01 --set rack=r1", &service);
    let unknown = said("ada", "calendar --by rak", &service);
    let others = "hosts can be grouped by pool, availability_zone, rack";
    assert!(unknown.contains(&format!("No host has a property rak; {others}.")), "{unknown}");
    said("ada", "host properties --hide free_pool", &service);
    let refused = by("ann", "calendar --by pool", &service);
    let others = "hosts can be grouped by availability_zone, rack\n";
    assert!(refused.status == 1 && refused.err.contains(others), "{}", refused.err);
    let long = by("ann", "calendar --by rack --to +500d", &service);
    assert!(long.err.contains("400 days at most") && !long.err.contains("grouped by"), "{}", long.err);
}

#[test]
fn leases_are_extended_and_ended_and_a_name_means_the_one_that_is_not_over() {
    let service = service();
    said("ada", "host create r1-h01 r1-h02", &service);
    said("ann", "lease create later --hosts 1 --start +2d --for 2h", &service);
    assert!(said("ann", "lease extend later 12h", &service).contains("lasts 14h"));
    let pending = by("ann", "lease end later", &service);
    assert!(pending.status == 1 && pending.err.contains("Hint: `allot lease delete`"), "{}", pending.err);
    for _ in 0..2 {
        let made = by("ann", "lease create web --hosts 1 --for 2h --wait --json", &service).out;
        let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
        let id = made["lease"]["id"].as_str().expect("an identifier");
        assert_eq!(said("ann", "lease end web", &service), "Lease web ends now.\n");
        assert_eq!(by("ann", &format!("lease wait {id} --status terminated"), &service).status, 0);
    }
    let both = by("ann", "lease show web", &service);
    assert!(both.err.contains("lease \"web\" is ambiguous"), "{}", both.err);
    said("ann", "lease create web --hosts 1 --start +1d --for 2h", &service);
    assert!(said("ann", "lease show web", &service).contains("PENDING"));
}

#[test]
fn refusals_say_what_to_use_instead() {
    let service = service();
    for (user, words, error) in [
        (
            "ann",
            "host list",
            "Only administrators may list hosts (rule blazar:oshosts:get)\nHint: `allot availability`",
        ),
        ("ann", "settings", "Only administrators may read settings (rule blazar:settings:get)\nHint: ask"),
        (
            "rea",
            "lease create x --hosts 1 --for 1h",
            "Only members of the project may create leases (rule blazar:",
        ),
    ] {
        let ran = by(user, words, &service);
        assert!(ran.status == 1 && ran.err.starts_with(&format!("Error: {error}")), "{words}: {}", ran.err);
    }
}
