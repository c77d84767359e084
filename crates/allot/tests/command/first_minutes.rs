//! A user's first contact with the command: help, mistakes, and messages while waiting.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::service::{Running, database};
use crate::shell::{allot, command, file, run};

/// Commands that a help text lists.
fn commands_of(help: &str) -> Vec<String> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Long descriptions continue in lines that are indented further.
    let commands = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    commands.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn help_explains_every_command_that_it_lists() {
    let general = allot(&["help"]);
    assert_eq!((general.status, general.err.as_str()), (0, ""));
    assert_eq!(general.out, allot(&["--help"]).out);
    let named = general.out.lines().filter_map(|line| line.strip_prefix("  "));
    let names: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    for name in ["lease", "usage", "energy", "preemptible", "maintenance", "database", "hbal", "drain"] {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{name}");
    }
    for name in names.iter().filter(|name| !["help", "version"].contains(name)) {
        let own = allot(&[name, "--help"]);
        assert_eq!((own.status, own.err.as_str()), (0, ""), "{name}");
        explains(&[name], &own.out);
        let usage = own.out.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
        let named = usage.starts_with(&format!("Usage: allot {name}"))
            || usage.starts_with(&format!("Usage: {name} "));
        assert!(named, "{name}: {usage}");
        for part in commands_of(&own.out) {
            let of_part = allot(&[name, &part, "--help"]).out;
            assert!(!of_part.is_empty());
            explains(&[name, &part], &of_part);
            assert_eq!(allot(&["help", name, &part]).out, allot(&[name, "help", &part]).out, "{name} {part}");
        }
    }
    assert_eq!(allot(&["lease", "help"]).out, allot(&["help", "lease"]).out);
}

/// `allot help` must have everything that `--help` shows for a command.
fn explains(command: &[&str], screen: &str) {
    let ran = allot(&[&["help"], command].concat());
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{command:?}");
    let usage = screen.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
    assert!(ran.out.contains(usage), "{command:?}: {usage}\n{}", ran.out);
    for option in screen.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = option.split(['=', '[']).next().unwrap_or(option);
        let shared = ["--url", "--user"].iter().any(|shared| option.starts_with(shared));
        assert!(shared || ran.out.contains(option), "{command:?}: {option}\n{}", ran.out);
    }
}

#[test]
fn a_topic_explains_the_options_that_all_commands_share() {
    let topic = allot(&["help", "connecting"]);
    assert_eq!((topic.status, topic.err.as_str()), (0, ""));
    assert!(
        topic.out.contains("\nPrecedence:\n") && topic.out.contains("--os-auth-url <URL>  OS_AUTH_URL\n")
    );
    for help in ["-h", "--help"] {
        let screen = allot(&["lease", "show", help]).out;
        assert!(screen.contains("\n\nExamples:\n  allot lease show exp\n"), "{screen}");
        assert!(screen.ends_with("(-o, --url, --user, ...): `allot help connecting`\n"), "{screen}");
        assert!(!screen.contains("--os-auth-url") && !screen.contains("--columns"), "{screen}");
    }
}

#[test]
fn mistakes_take_two_lines_and_name_what_was_meant() {
    for (words, wrong, hint) in [
        ("leases list", "there is no command `leases`", "did you mean `lease`? `allot help`"),
        ("calender", "there is no command `calender`", "did you mean `calendar`?"),
        ("xyzzy", "there is no command `xyzzy`", "`allot help` lists all commands"),
        ("lease creat web", "unrecognized subcommand 'creat'", "did you mean `create`? `allot lease --help`"),
        ("lease create", "<NAME>", "`allot lease create --help`"),
        ("lease create web --host 1", "'--host'", "did you mean `--hosts`? `allot lease create --help`"),
        ("lease create web --hosts", "'--hosts", "`allot lease create --help`"),
        (
            "lease create web --hosts 1 --type now",
            "schedule, immediate, best-effort",
            "`allot lease create --help`",
        ),
        ("lease list --status waiting", "'waiting' for '--status", "`allot lease list --help`"),
        ("demo --sped 3", "'--sped'", "did you mean `--speed`? `allot demo --help`"),
        ("serve --lisen 1", "'--lisen'", "did you mean `--listen`? `allot serve --help`"),
        ("database copi a b", "'copi'", "did you mean `copy`? `allot database --help`"),
        ("reserve", "`reserve`", "did you mean `lease create`?"),
        ("list", "`list`", "did you mean `lease list`?"),
        ("extend web 2h", "`extend`", "did you mean `lease extend`?"),
        ("lease extend web --by 12h", "'--by'", "did you mean `allot lease extend LEASE 12h`?"),
        (
            "lease move web --move-by 1d",
            "'--move-by'",
            "did you mean `allot lease update LEASE --move-by 1d`?",
        ),
        ("node list", "`node`", "did you mean `host`?"),
        ("login", "`login`", "did you mean `whoami`?"),
        ("useradd ann", "`useradd`", "did you mean `user`?"),
        ("clone web", "`clone`", "did you mean `lease copy`?"),
        ("lease reschedule web", "'reschedule'", "did you mean `move`?"),
        ("lease cancel web", "'cancel'", "did you mean `delete`? `allot lease --help`"),
        ("lease get web", "'get'", "did you mean `show`?"),
        ("host add r1", "'add'", "did you mean `create`?"),
        ("lease update web --for 2h", "'--for'", "did you mean `--end`?"),
        ("lease update web --extend-by -2h", "'-2'", "did you mean `--shorten-by`?"),
        ("lease extend web -2h", "'-2'", "did you mean `allot lease extend LEASE -- -2h`?"),
        (
            "lease copy web --start +7d --end +2d",
            "'--end'",
            "did you mean `allot lease create NAME --like LEASE",
        ),
        ("demo --user ann", "'--user'", "did you mean `allot demo --login`?"),
        ("serve --port 1", "'--port'", "did you mean `--listen`?"),
        ("drain", "<NODE>", "`allot drain --help`"),
        ("hash tokn", "'tokn'", "did you mean `token`? `allot hash --help`"),
        ("help leases", "there is no command `leases`", "did you mean `lease`?"),
    ] {
        let ran = allot(&words.split(' ').collect::<Vec<_>>());
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{words}: {}", ran.err);
        let lines: Vec<&str> = ran.err.lines().collect();
        assert_eq!(lines.len(), 2, "{words}: {}", ran.err);
        assert!(lines[0].starts_with("Error: ") && lines[0].contains(wrong), "{words}: {}", ran.err);
        assert!(lines[1].starts_with("Hint: ") && lines[1].contains(hint), "{words}: {}", ran.err);
    }
}

#[test]
fn a_lease_without_a_length_is_asked_for_one() {
    let secret = run(command()
        .env("ALLOT_URL", "http://127.0.0.1:1")
        .env("ALLOT_TOKEN", "t")
        .args(["lease", "create", "web", "--hosts", "1"]));
    assert_eq!(
        (secret.status, secret.err.as_str()),
        (2, "Error: the duration is missing: set --for or --end\n")
    );
}

#[test]
fn addresses_without_a_scheme_and_variables_set_to_nothing_are_fine() {
    let service = Running::start(&database(), &[]);
    let bare = service.url.strip_prefix("http://").expect("no TLS");
    for url in [bare.to_owned(), format!("{bare}/v1/"), service.url.clone()] {
        let ran = run(command().env("ALLOT_URL", &url).args(["lease", "list"]));
        assert_eq!((ran.status, ran.err.as_str()), (0, "There are no leases.\n"), "{url}: {}", ran.out);
    }
    let mut empty = command();
    for name in
        ["ALLOT_CA_FILE", "OS_CACERT", "ALLOT_CLIENT_CERTIFICATE", "ALLOT_TOKEN", "ALLOT_USER", "OS_AUTH_URL"]
    {
        empty.env(name, "");
    }
    let ran = run(empty.env("ALLOT_URL", bare).args(["lease", "list"]));
    assert_eq!((ran.status, ran.err.as_str()), (0, "There are no leases.\n"), "{}", ran.out);
    assert_eq!(service.stop(), 0);
}

#[test]
fn who_waits_is_told_what_for() {
    let service = Running::start(&database(), &["--simulated-timing", "immediate"]);
    service.says("host create r1-h01");
    let late = service.allot("lease create later --hosts 1 --start +2d --for 1h");
    assert_eq!((late.status, late.err.as_str()), (0, "Times are UTC.\n"));
    let waited = service.allot("lease wait later --timeout 0m");
    assert_eq!(waited.status, 1);
    let first = waited.err.lines().next().unwrap_or_default();
    assert!(first.starts_with("lease later is PENDING and waits for 20"), "{}", waited.err);
    let ready = service.allot("lease create now --hosts 1 --for 1h --wait");
    assert_eq!(ready.status, 0, "{}", ready.err);
    assert_eq!(service.stop(), 0);
}

#[test]
fn odd_times_are_noted_and_unknown_zones_are_warned_of() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01");
    let create = |zone: &str, start: &str| {
        let words = ["lease", "create", "t", "--hosts", "1", "--start", start, "--for", "1h", "--dry-run"];
        run(command().env("ALLOT_URL", &service.url).env("TZ", zone).args(words))
    };
    let gap = create("America/New_York", "2027-03-14 02:30");
    assert!(
        gap.err.starts_with("Note: clocks skip 2027-03-14 02:30 ")
            && gap.err.contains("using 2027-03-14 03:30"),
        "{}",
        gap.err
    );
    let fold = create("America/New_York", "2027-11-07 01:30");
    assert!(
        fold.out.contains("2027-11-07 01:30-04:00") && fold.out.contains("2027-11-07 01:30-05:00"),
        "{}",
        fold.out
    );
    assert!(fold.err.contains("twice"), "{}", fold.err);
    let bad = create("Nowhere/Bad", "2027-11-07 01:30");
    let warning = "Warning: unknown time zone TZ=Nowhere/Bad; times are UTC\n";
    assert_eq!(bad.err, format!("{warning}Times are UTC.\nDry run: no changes were made.\n"));
    assert_eq!(service.stop(), 0);
}

#[test]
fn programs_get_names_values_and_documents_and_nothing_else() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01 r1-h02");
    let made = service.allot("lease create web --hosts 1 --start +2d --for 1d -o name");
    let id = made.out.trim_end();
    assert_eq!((id.len(), made.err.as_str()), (36, ""), "{}", made.out);
    assert_eq!(service.allot("lease list -o name").out.trim_end(), id);
    assert_eq!(service.allot("host list -o name").out, "r1-h01\nr1-h02\n");
    let csv = service.allot("host list -o csv --no-header --columns name,vcpus");
    assert_eq!(csv.out, "r1-h01,64\nr1-h02,64\n");
    assert!(service.allot("lease list -o yaml").out.contains("name: web\n"));
    let table = service.allot("lease list --no-header");
    assert!(table.out.starts_with(" web ") && table.out.lines().count() == 1, "{}", table.out);
    assert_eq!(table.err, "Times are UTC.\n");
    assert_eq!(service.says(&format!("lease show {} -o name", &id[..4])).trim_end(), id);
    let refused = service.allot("lease show nosuch -o json");
    let error: serde_json::Value = serde_json::from_str(&refused.err).expect("JSON");
    assert_eq!(error["error"]["message"], "there is no lease \"nosuch\"");
    assert_eq!((error["error"]["http_status"].as_u64(), refused.status), (Some(404), 1));
    assert_eq!(service.allot("calendar -o csv").status, 2);
    assert_eq!(service.stop(), 0);
}

#[test]
fn columns_of_tables_can_be_chosen() {
    let service = Running::start(&database(), &[]);
    service.says("host create r1-h01");
    let chosen = service.says("host list --columns name,id");
    assert_eq!(chosen.split_whitespace().collect::<Vec<_>>(), ["NAME", "ID", "r1-h01", "1"]);
    let unknown = service.allot("host list --columns color");
    assert_eq!(unknown.status, 2);
    assert!(unknown.err.contains("--columns color: this table has ID, NAME, VCPUS"), "{}", unknown.err);
    assert_eq!(
        service.json("host list"),
        serde_json::from_str::<serde_json::Value>(&service.says("host list -o json")).expect("JSON")
    );
    assert_eq!(service.stop(), 0);
}

#[test]
fn the_shell_completes_the_links_of_ganetis_programs_as_well() {
    assert_eq!(completed("/usr/local/lib/allot/hbal", "--text", ""), "--text-data\n");
    assert_eq!(completed("hspace -t x", "--disk-t", ""), "--disk-template\n");
}

/// Completions of `word` in bash, after these words and with this service.
fn completed(words: &str, word: &str, url: &str) -> String {
    let script = file("completions.bash", &allot(&["completions", "bash"]).out);
    let line = format!(
        ". {script}; COMP_WORDS=({words} '{word}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _allot; echo \"${{COMPREPLY[@]}}\""
    );
    let allot = std::path::Path::new(env!("CARGO_BIN_EXE_allot"));
    let mut path = allot.parent().expect("a directory").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &line]).env("PATH", path).env("ALLOT_URL", url).env("HTOOLS", "hail");
    run(bash.env_remove("OS_AUTH_URL").env_remove("ALLOT_USER").env_remove("ALLOT_TOKEN")).out
}

#[test]
fn the_shell_completes_names_of_leases_and_hosts() {
    let service = Running::start(&database(), &["--simulated-timing", "immediate"]);
    service.says("host create r1-h01 r1-h02");
    for name in ["exp", "experiment", "'$(touch x)'"] {
        service.says(&format!(
            "lease create {name} --instances 1 --vcpus 1 --memory 1G --disk 1 --start +1d --for 1d"
        ));
    }
    assert_eq!(completed("allot lease show", "exp", &service.url), "exp experiment\n");
    assert_eq!(completed("allot lease delete exp", "", &service.url), "exp experiment\n");
    assert_eq!(completed("allot host close", "r1-", &service.url), "r1-h01 r1-h02\n");
    assert_eq!(completed(&format!("allot lease show --url {}", service.url), "ex", ""), "exp experiment\n");
    assert_eq!(service.stop(), 0);
    // Without a service, and with a missing password.
    assert_eq!(completed("allot lease show", "exp", "http://127.0.0.1:1"), "\n");
    let ran = allot(&["__complete", "bash", "--", "allot", "lease", "show", "--user", "ann", ""]);
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

/// Runs a command on its own terminal, types each line after its prompt, and returns all output.
pub fn typed(arguments: &str, lines: &[(&str, &str)]) -> String {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_allot"));
    let mut terminal = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux's script makes a terminal");
    let (mut input, mut output) =
        (terminal.stdin.take().expect("piped"), terminal.stdout.take().expect("piped"));
    let mut shown = Vec::new();
    for (asked, line) in lines {
        while !String::from_utf8_lossy(&shown).ends_with(asked) {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap_or_else(|_| panic!("{asked:?} was not asked: {shown:?}"));
            shown.push(byte[0]);
        }
        input.write_all(line.as_bytes()).expect("it is read");
    }
    output.read_to_end(&mut shown).expect("it ends");
    terminal.wait().expect("it ends");
    String::from_utf8(shown).expect("text")
}

#[test]
fn a_password_is_asked_for_twice_and_not_shown() {
    let shown = typed("hash password", &[("Password: ", "open sesame\n"), ("Again: ", "open sesame\n")]);
    assert!(shown.contains("$argon2id$") && !shown.contains("sesame"), "{shown}");
    let shown = typed("hash password", &[("Password: ", "open sesame\n"), ("Again: ", "open sesamy\n")]);
    assert!(shown.contains("Error: the two entries differ") && !shown.contains("$argon2id$"), "{shown}");
    let shown = typed("hash token", &[("Token: ", "abc\n")]);
    assert!(shown.contains("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "{shown}");
}
