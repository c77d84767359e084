//! Users of the service under test. Each user's token is the user's name.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use chores::run::Executable;

use super::attackers::Who;

/// Number of attacking clients, each a different user.
pub const CLIENTS: usize = 16;
/// Number of projects of these users, unless they share one.
const PROJECTS: usize = 4;
/// Ordinary users. The bench measures their latency. Each has its own project.
pub const OTHERS: [&str; 6] = ["filler", "creator", "viewer", "planner", "starter", "asker"];
/// Password of all users.
pub const PASSWORD: &str = "password";

/// Name of the user of this client; `None` without credentials.
pub fn user(who: Who, client: usize) -> Option<String> {
    let name = match who {
        Who::Member => "member",
        Who::Idle => "idle",
        Who::Admin => "admin",
        Who::Nobody => return None,
    };
    Some(format!("{name}{client}"))
}

pub fn project(client: usize, one_project: bool) -> String {
    format!("project{}", if one_project { 0 } else { client % PROJECTS })
}

/// Writes the files of tokens and users, and returns the value of `--auth` for them.
pub fn write(ours: &Executable, directory: &Path, one_project: bool) -> Result<String> {
    let mut tokens = String::new();
    let mut users = String::new();
    let password = hash(ours, "password", PASSWORD)?;
    let mut add = |user: &str, project: &str, role: &str| -> Result<()> {
        let sha256 = hash(ours, "token", user)?;
        let token = format!(
            "[[tokens]]\nsha256 = \"{sha256}\"\nuser = \"{user}\"\nproject = \"{project}\"\nroles = [\"{role}\"]\n"
        );
        let entry = format!(
            "[[users]]\nname = \"{user}\"\npassword_hash = \"{password}\"\nprojects = {{ {project} = [\"{role}\"] }}\n\
             default_project = \"{project}\"\n"
        );
        tokens += &token;
        users += &entry;
        Ok(())
    };
    for client in 0..CLIENTS {
        for (who, role) in [(Who::Member, "member"), (Who::Idle, "member"), (Who::Admin, "admin")] {
            let user = user(who, client).context("no user")?;
            let project = match who {
                Who::Member => project(client, one_project),
                _ => user.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
            };
            add(&user, &project, role)?;
        }
    }
    for other in OTHERS {
        add(other, other, "member")?;
    }
    let (tokens_file, users_file) = (directory.join("tokens.toml"), directory.join("users.toml"));
    fs::write(&tokens_file, tokens)?;
    fs::write(&users_file, users)?;
    Ok(format!("tokens:{},local-keystone:{}", tokens_file.display(), users_file.display()))
}

fn hash(ours: &Executable, kind: &str, text: &str) -> Result<String> {
    let mut command = Command::new(ours.path());
    let child = command.args(["hash", kind]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.context("cannot run allot hash")?;
    child.stdin.take().context("no input")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "allot hash {kind} failed");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
