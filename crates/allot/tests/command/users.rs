//! `allot user`: the users' file is edited in place, and the service accepts the result.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use crate::first_minutes::typed;
use crate::service::Running;
use crate::shell::{Ran, command, file, fresh, run};

/// Runs `allot user` with these words, this file, and this standard input.
fn user(words: &str, file: &str, input: &str) -> Ran {
    let mut child = command()
        .arg("user")
        .args(words.split_whitespace())
        .args(["--file", file])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A command that fails early doesn't read.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran {
        status: output.status.code().expect("no signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A run that must succeed.
fn done(words: &str, file: &str, input: &str) -> Ran {
    let ran = user(words, file, input);
    assert_eq!(ran.status, 0, "{words}: {}", ran.err);
    ran
}

/// Output of `whoami`. `None` if a service with this file rejects the user and password.
fn accepts(file: &str, name: &str, password: &str) -> Option<String> {
    let service = Running::start("memory", &["--auth", &format!("basic:{file}")]);
    let mut whoami = command();
    whoami.env("ALLOT_USER", name).env("ALLOT_PASSWORD", password).env("ALLOT_URL", &service.url);
    let ran = run(whoami.arg("whoami"));
    assert!(ran.status == 0 || ran.err.contains("rejects"), "{}", ran.err);
    (ran.status == 0).then_some(ran.out)
}

#[test]
fn users_that_are_added_can_log_in_until_they_are_disabled() {
    let path = fresh("users.toml");
    let file = path.to_str().expect("a plain path");
    let added = done("add ann robots vision=reader", file, "open sesame\n");
    assert!(
        added.err.contains("Added user ann") && added.err.contains("systemctl reload allot"),
        "{}",
        added.err
    );
    assert!(added.err.contains("Only you can read the new file"), "{}", added.err);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let generated = done("add ops ops=admin --generate", file, "");
    let password = generated.out.trim_end();
    assert_eq!((password.len(), generated.out.lines().count()), (20, 1));

    let whoami = accepts(file, "ann", "open sesame").expect("ann");
    assert!(whoami.contains("project   robots") && whoami.contains("member, reader"), "{whoami}");
    assert!(accepts(file, "ops", password).is_some_and(|whoami| whoami.contains("admin")));
    assert!(accepts(file, "ann", password).is_none());

    let list = done("list", file, "");
    let words: Vec<&str> = list.out.split_whitespace().skip(3).collect();
    assert_eq!(
        words,
        ["ann", "robots=member", "vision=reader", "no", "ops", "ops=admin", "no"],
        "{}",
        list.out
    );

    let changed = done("roles ann vision=admin robots=reader", file, "");
    assert!(changed.err.starts_with("Changed the roles of user ann in "), "{}", changed.err);
    let whoami = accepts(file, "ann", "open sesame").expect("ann");
    assert!(whoami.contains("project   vision") && whoami.contains("admin"), "{whoami}");

    done("passwd ann", file, "another\n");
    assert!(accepts(file, "ann", "another").is_some() && accepts(file, "ann", "open sesame").is_none());
    assert!(done("disable ann", file, "").err.starts_with("Disabled user ann"));
    assert!(accepts(file, "ann", "another").is_none());
    assert!(done("list", file, "").out.contains("yes"));
    done("enable ann", file, "");
    assert!(accepts(file, "ann", "another").is_some());
}

#[test]
fn an_edit_keeps_comments_mode_and_links_and_a_failed_one_the_file() {
    let path = file("users.toml", "# of the lab\n");
    let link = fresh("link.toml");
    symlink(&path, &link).expect("a link");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("it is ours");
    done("add ann robots", link.to_str().expect("a plain path"), "open sesame");
    let text = fs::read_to_string(&path).expect("there");
    assert!(text.starts_with("# of the lab\n\n[[users]]\nname = \"ann\"\n"), "{text}");
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);

    for (words, input, status, error) in [
        ("add ann robots", "x", 1, "Error: user \"ann\" already exists"),
        ("add bo robots", "", 1, "Error: the password is empty"),
        ("add b:o robots", "x", 1, "Error: invalid name \"b:o\""),
        ("add bo", "x", 2, "Error: the following required arguments"),
        ("add bo robots=", "x", 2, "Error: invalid value"),
        ("roles bo robots", "", 1, "Error: there is no user \"bo\""),
        ("passwd bo", "x", 1, "Error: there is no user \"bo\""),
        ("disable bo", "", 1, "Error: there is no user \"bo\""),
    ] {
        let ran = user(words, &path, input);
        assert!(ran.status == status && ran.err.starts_with(error), "{words}: {} {}", ran.status, ran.err);
        assert_eq!(fs::read_to_string(&path).expect("there"), text, "{words}");
    }
    let wrong = file("users.toml", "[[users]]\nname = \"ann\"\nsecret = \"hunter2\"\n");
    let ran = user("add bo robots", &wrong, "x");
    assert!(
        ran.status == 1 && ran.err.contains("there is an unknown field") && !ran.err.contains("hunter2"),
        "{}",
        ran.err
    );
    let missing = user("list", "/nowhere/users.toml", "");
    assert!(missing.err.starts_with("Error: cannot read /nowhere/users.toml"), "{}", missing.err);
}

#[test]
fn a_new_password_is_typed_twice() {
    let path = fresh("users.toml");
    let words = format!("user add ann robots --file {}", path.display());
    let asked = "New password of ann: ";
    let slip = typed(&words, &[(asked, "open sesame\n"), ("Again: ", "open sesamy\n")]);
    assert!(slip.contains("Error: the two entries differ") && !path.exists(), "{slip}");
    let shown = typed(&words, &[(asked, "open sesame\n"), ("Again: ", "open sesame\n")]);
    assert!(shown.contains("Added user ann") && !shown.contains("sesame"), "{shown}");
}
