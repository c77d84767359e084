//! Tests of the configuration and of calls. The tests of all drivers cover the states of hosts.

use std::sync::mpsc;

use leases::ids::GuestId;
use leases::plan::Action;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::HookedCall;

fn config(hooks: &str) -> Result<HooksConfig, toml::de::Error> {
    toml::from_str(&format!("state_file = \"state.json\"\nhosts = []\n{hooks}"))
}

fn hooks(text: &str) -> Result<Hooks, HooksError> {
    let config = config(text).expect("a configuration");
    Hooks::new(&config.hooks, &config.pass_environment)
}

async fn call(text: &str) -> Result<String, String> {
    let hooks = hooks(text).expect("hooks");
    let subject = Subject { host: Some(3), host_name: Some("node3".to_owned()), ..Subject::default() };
    let said = hooks.call(Moment::OnHold, &subject).await;
    said.map(|said| String::from_utf8_lossy(&said).trim().to_owned()).map_err(|error| error.to_string())
}

#[test]
fn the_configuration_in_the_documentation_can_be_read() {
    let documentation = include_str!("mod.rs");
    let lines = documentation.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim_start);
    let example: Vec<&str> =
        lines.skip_while(|line| *line != "```toml").skip(1).take_while(|line| *line != "```").collect();
    let config: HooksConfig = toml::from_str(&example.join("\n")).expect("a configuration");
    assert_eq!(config.machines().expect("machines")[&HostId(1)].name, "node1");
    let hooks = Hooks::new(&config.hooks, &[]).expect("hooks");
    assert!(hooks.has(Moment::Check) && hooks.has(Moment::OnRelease) && !hooks.has(Moment::OnFence));
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_with_its_place() {
    for (wrong, said) in [
        ("[hooks.on_hold]", "hooks.on_hold: give either exec, with a program, or webhook"),
        ("[hooks.on_hold]\nexec = []", "hooks.on_hold: give either exec, with a program, or webhook"),
        (
            "[hooks.check]\nexec = [\"true\"]\ntime_limit_seconds = 0",
            "hooks.check: time_limit_seconds must be",
        ),
        ("[hooks.on_hold]\nwebhook = \"ftp://x/\"", "give an address that begins with http:// or https://"),
        (
            "[hooks.on_hold]\nexec = [\"true\"]\nsecret_header = { name = \"X\", file = \"f\" }",
            "hooks.on_hold: secret_header goes with webhook only",
        ),
    ] {
        let error = hooks(wrong).expect_err(wrong).to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
    for unknown in ["[hooks.on_held]\nexec = [\"true\"]", "[hooks.on_hold]\nexecute = \"true\"", "host = 1"] {
        assert!(config(unknown).is_err(), "{unknown}");
    }
    let twice = "hosts = [{ id = 1, name = \"a\", vcpus = 1, memory_mib = 1 },\
                 { id = 1, name = \"b\", vcpus = 1, memory_mib = 1 }]\nstate_file = \"f\"";
    let twice: HooksConfig = toml::from_str(twice).expect("a configuration");
    assert!(matches!(twice.machines(), Err(HooksError::Twice { .. })));
}

#[tokio::test]
async fn a_program_is_told_in_its_environment_and_on_its_input() {
    let text = r#"[hooks.on_hold]
        exec = ["sh", "-c", "printf '%s %s ' $ALLOT_MOMENT $ALLOT_HOST; cat"]"#;
    let said = call(text).await.expect("done");
    let json = said.strip_prefix("on_hold node3 ").expect(&said);
    let told: serde_json::Value = serde_json::from_str(json).expect("an object");
    assert_eq!(told["moment"], "on_hold");
    assert_eq!(told["host"], 3);
    assert!(told["lease"].is_null());
}

#[tokio::test]
async fn a_program_that_fails_is_quoted_with_its_last_line() {
    let text = r#"[hooks.on_hold]
        exec = ["sh", "-c", "echo one >&2; echo ' two ' >&2; echo >&2; exit 7"]"#;
    assert_eq!(call(text).await.expect_err("7"), "hook on_hold: sh: exit status: 7: two");
    let missing = "[hooks.on_hold]\nexec = [\"/nowhere/hook\"]";
    let error = call(missing).await.expect_err("there is none");
    assert!(error.starts_with("hook on_hold: /nowhere/hook: No such file"), "{error}");
}

#[tokio::test]
async fn a_program_that_does_not_end_is_broken_off() {
    let text = "[hooks.on_hold]\nexec = [\"sleep\", \"600\"]\ntime_limit_seconds = 1";
    assert_eq!(call(text).await.expect_err("too long"), "hook on_hold: not done within 1 s");
}

fn limited(moment: &str, seconds: u64) -> String {
    format!("[hooks.{moment}]\nexec = [\"true\"]\ntime_limit_seconds = {seconds}\n")
}

#[test]
fn a_call_may_take_as_long_as_the_hooks_that_it_runs_and_no_longer() {
    let time_for = |call: HookedCall, text: &str| hooks(text).expect("hooks").time_for(call).as_secs();
    let host = HostId(1);
    let reservation = ReservationId(10);
    let hold = HookedCall::Step(Action::Hold(host, reservation));
    let moves = HookedCall::Step(Action::MoveGuest(host, GuestId(7), HostId(2)));
    assert_eq!(time_for(hold, ""), 0);
    assert_eq!(time_for(hold, "[hooks.on_hold]\nexec = [\"true\"]"), 60, "the usual limit");
    let text = [("on_prepare", 30), ("on_hold", 600), ("on_power_off", 604_800), ("check", 5)];
    let text = text.map(|(moment, seconds)| limited(moment, seconds)).concat();
    let off = HookedCall::Step(Action::PowerOff(host));
    let calls = [hold, moves, off, HookedCall::Adopt, HookedCall::Abandon];
    assert_eq!(calls.map(|call| time_for(call, &text)), [630, 0, 604_805, 5, 0]);
    let verification =
        ["on_fence", "on_release", "on_finish", "check"].map(|moment| limited(moment, 5)).concat();
    assert_eq!(time_for(HookedCall::Step(Action::Verify(host, reservation)), &verification), 20);
    let error = hooks(&limited("on_hold", 604_801)).expect_err("more than a week").to_string();
    assert!(error.contains("at least 1 and at most 604800"), "{error}");
}

#[test]
fn hooks_that_switch_hosts_give_no_other_step_more_time() {
    let text = [limited("on_power_on", 60), limited("on_power_off", 300)].concat();
    let config: PowerConfig = toml::from_str(&text).expect("a configuration");
    let power = PowerHooks::new(&config).expect("hooks");
    let host = HostId(1);
    let steps =
        [Action::PowerOn(host), Action::PowerOff(host), Action::MoveGuest(host, GuestId(7), HostId(2))];
    assert_eq!(steps.map(|step| power.time_for(HookedCall::Step(step)).as_secs()), [60, 300, 0]);
}

#[tokio::test]
async fn what_a_program_that_is_broken_off_has_started_ends_with_it() {
    // A reader of the pipe waits until all processes that have it open for writing have ended.
    let pipe = std::env::temp_dir().join(format!("allot-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let text = format!(
        "[hooks.on_hold]\ntime_limit_seconds = 1\n\
         exec = [\"sh\", \"-c\", \"sleep 600 > {0} & sleep 600 > {0}\"]",
        pipe.display()
    );
    let reader = tokio::task::spawn_blocking({
        let pipe = pipe.clone();
        move || std::fs::read(pipe)
    });
    assert_eq!(call(&text).await.expect_err("too long"), "hook on_hold: not done within 1 s");
    assert_eq!(reader.await.expect("no panic").expect("a pipe"), b"");
    std::fs::remove_file(&pipe).expect("it was there");
}

#[tokio::test]
async fn what_a_program_leaves_running_is_not_waited_for() {
    let text = "[hooks.on_hold]\nexec = [\"sh\", \"-c\", \"sleep 5 & echo done\"]";
    assert_eq!(call(text).await.expect("done"), "done");
}

#[tokio::test]
async fn of_endless_output_the_last_is_kept() {
    let text = r#"[hooks.on_hold]
        exec = ["sh", "-c", "head -c 3000000 /dev/zero; echo the end"]"#;
    let said = call(text).await.expect("done");
    assert!(said.len() < 600_000, "{}", said.len());
    assert!(said.ends_with("the end"));
}

/// Serves one request with `answer`. The receiver gets the request.
async fn answer_once(answer: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, told) = mpsc::channel();
    tokio::spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let mut request = Vec::new();
        // The body comes last, and is a JSON object.
        while !request.ends_with(b"}") {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                break;
            }
        }
        let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
        let _ = stream.write_all(answer.as_bytes()).await;
    });
    (port, told)
}

#[tokio::test]
async fn a_web_hook_is_posted_to_with_its_secret() {
    let (port, told) = answer_once("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine").await;
    let secret = std::env::temp_dir().join(format!("allot-secret-{}", std::process::id()));
    std::fs::write(&secret, "Bearer hush\n").expect("a file");
    let text = format!(
        "[hooks.on_hold]\nwebhook = \"http://127.0.0.1:{port}/hold\"\n\
         secret_header = {{ name = \"Authorization\", file = {secret:?} }}"
    );
    assert_eq!(call(&text).await.expect("done"), "fine");
    let request = told.recv().expect("a request");
    assert!(request.starts_with("POST /hold HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer hush\r\n"), "{request}");
    let body = request.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(serde_json::from_str::<serde_json::Value>(body).expect("JSON")["host_name"], "node3");
    std::fs::remove_file(&secret).expect("it was there");
    let error = call(&text).await.expect_err("no secret");
    assert!(error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_web_hook_that_refuses_is_quoted_and_no_redirection_is_followed() {
    let refusal = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 12\r\n\r\nwait\nplease\n";
    let (port, _told) = answer_once(refusal).await;
    let text = |port| format!("[hooks.on_hold]\nwebhook = \"http://127.0.0.1:{port}/\"");
    let error = call(&text(port)).await.expect_err("503");
    assert_eq!(error, "hook on_hold: 503 Service Unavailable: please");
    let (port, _told) = answer_once("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n").await;
    let error = call(&text(port)).await.expect_err("302");
    assert!(error.starts_with("hook on_hold: 302 Found"), "{error}");
}

#[test]
fn energy_h_a_file_that_switches_hosts_has_two_hooks_and_nothing_else() {
    let read = |text: &str| toml::from_str::<PowerConfig>(text).map_err(|error| error.to_string());
    let (off, on) = ("[hooks.on_power_off]\nexec = [\"off\"]\n", "[hooks.on_power_on]\nexec = [\"on\"]\n");
    let both = read(&format!("{off}{on}")).expect("two hooks");
    assert!(PowerHooks::new(&both).is_ok());
    for (text, reason) in [
        (off.to_owned(), "missing field `on_power_on`"),
        (format!("{off}{on}[hooks.on_hold]\nexec = [\"hold\"]\n"), "unknown field `on_hold`"),
        (format!("hosts = []\n{off}{on}"), "unknown field `hosts`"),
    ] {
        let refused = read(&text).expect_err("it is not such a file");
        assert!(refused.contains(reason), "{refused}");
    }
    let neither = read("[hooks]\non_power_off = {}\non_power_on = {}\n").expect("two hooks");
    assert!(matches!(PowerHooks::new(&neither), Err(HooksError::Kind(_))));
}

#[tokio::test]
async fn a_program_gets_no_variable_of_the_service_that_is_not_listed() {
    let names = |said: &str| {
        let names = said.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
        names.collect::<std::collections::BTreeSet<_>>()
    };
    // Cargo sets both for tests.
    let (listed, other) = ("CARGO_PKG_NAME", "CARGO_MANIFEST_DIR");
    assert!(std::env::var_os(listed).is_some() && std::env::var_os(other).is_some());
    let hook = "[hooks.on_hold]\nexec = [\"env\"]";
    let own = names(&call(hook).await.expect("success"));
    let documented = |name: &str| name.starts_with("ALLOT_") || ["PATH", "HOME", "LANG"].contains(&name);
    assert!(own.iter().all(|name| documented(name)), "{own:?}");
    assert!(own.contains("PATH") && own.contains("ALLOT_HOST") && own.contains("ALLOT_GUEST"), "{own:?}");
    let more = names(&call(&format!("pass_environment = [\"{listed}\"]\n{hook}")).await.expect("success"));
    assert_eq!(more.difference(&own).collect::<Vec<_>>(), [listed]);
}

#[test]
fn a_variable_that_the_service_is_configured_with_cannot_be_passed_on() {
    for name in ["ALLOT_DATABASE", "A=B", ""] {
        let error = hooks(&format!("pass_environment = [\"{name}\"]")).expect_err(name).to_string();
        assert!(error.starts_with("pass_environment: "), "{error}");
    }
}
