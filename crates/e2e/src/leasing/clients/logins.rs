//! Login methods of the stock clients, other than no login.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::python::Python;
use chores::run::Executable;
use chores::tally::Tally;
use serde_json::json;

use super::shell::{Kind, Loaded, Shell};
use super::values::{is, members, same};
use crate::leasing::fleet::MACHINES;
use crate::leasing::server::{Launch, Server};

/// Public, so only usable in these tests.
pub(super) const TOKEN: &str = "a-token-only-for-tests";
pub const PASSWORD: &str = "only for tests";

const TOKENS: &str = r#"
[[tokens]]
sha256 = "54b2060ef2dc4dbdb77e44b8204cae81e8e9a260f3e2e08b2ed80cba5c7cd318"
user = "tester"
project = "tests"
roles = ["admin"]
"#;

const USERS: &str = r#"
[[users]]
name = "tester"
password_hash = "$argon2id$v=19$m=19456,t=2,p=1$ON3Z1waznVoMNCbCMLocTg$mSfhD/K1vTNiLAA5hjMq6gcjkK7ISiIdX8dLjWpDk2U"
projects = { tests = ["admin"] }
"#;

/// A login method.
#[derive(Clone, Copy, Debug)]
enum Login {
    Token,
    Basic,
    Keystone,
}

impl Login {
    const ALL: [Self; 3] = [Self::Token, Self::Basic, Self::Keystone];

    /// The clients' name for the method (`--os-auth-type`).
    fn name(self) -> &'static str {
        match self {
            Self::Token => "admin_token",
            Self::Basic => "http_basic",
            Self::Keystone => "password",
        }
    }

    /// The service's authentication method, and the content of its file.
    fn served(self) -> (&'static str, &'static str) {
        match self {
            Self::Token => ("tokens", TOKENS),
            Self::Basic => ("basic", USERS),
            Self::Keystone => ("local-keystone", USERS),
        }
    }

    /// Options of the clients that log in with `secret`.
    fn options(self, server: &Server, secret: &str) -> Vec<String> {
        let endpoint = format!("{}/v1", server.url());
        let keystone = format!("{}/identity/v3", server.url());
        let own: Vec<&str> = match self {
            Self::Token => vec!["--os-token", secret, "--os-endpoint", &endpoint],
            Self::Basic => {
                vec!["--os-username", "tester", "--os-password", secret, "--os-endpoint", &endpoint]
            }
            Self::Keystone => vec![
                "--os-auth-url",
                &keystone,
                "--os-username",
                "tester",
                "--os-password",
                secret,
                "--os-project-name",
                "tests",
                "--os-user-domain-name",
                "Default",
                "--os-project-domain-name",
                "Default",
            ],
        };
        ["--os-auth-type", self.name()].into_iter().chain(own).map(str::to_owned).collect()
    }

    fn secret(self) -> &'static str {
        match self {
            Self::Token => TOKEN,
            Self::Basic | Self::Keystone => PASSWORD,
        }
    }
}

/// Tries each method with both shells.
pub fn run(ours: &Executable, python: &Python) -> Result<Tally> {
    let mut cases = Cases::new("clients, logins");
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let shells = [
        Loaded::new(Kind::ALL[0], python, homes[0].path())?,
        Loaded::new(Kind::ALL[1], python, homes[1].path())?,
    ];
    for login in Login::ALL {
        let directory = tempfile::tempdir()?;
        let server = start(ours, login, directory.path())?;
        for loaded in &shells {
            let shell = |secret: &str| {
                let options = login.options(&server, secret);
                loaded.with_login(&options.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let program = shell("").kind.program();
            cases.check(&format!("{program} works with {}", login.name()), || works(&shell(login.secret())));
            cases.check(&format!("{program} is refused with a wrong secret for {}", login.name()), || {
                let ran = shell("wrong").run("lease-list", &[])?;
                ensure!(ran.status() != 0, "it succeeds");
                ensure!(
                    ran.stderr().contains("requires authentication") || ran.stderr().contains("401"),
                    "{}",
                    ran.stderr()
                );
                Ok(())
            });
        }
        cases.check(
            &format!("a client that does not log in is refused if {} is required", login.name()),
            || {
                let answer = server.caller().get("/v1/leases")?.expect(401)?;
                let message = "The request you have made requires authentication.";
                same(answer, json!({"error": {"code": 401, "title": "Unauthorized", "message": message}}))
            },
        );
    }
    Ok(cases.tally())
}

fn start(ours: &Executable, login: Login, directory: &Path) -> Result<Server> {
    let (method, content) = login.served();
    let file = directory.join("auth.toml");
    fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
    Launch::new(ours, directory).with_auth(&format!("{method}:{}", file.display())).start()
}

/// Starts a service that requires tokens and accepts [`TOKEN`].
pub(super) fn with_tokens(ours: &Executable, directory: &Path) -> Result<Server> {
    start(ours, Login::Token, directory)
}

/// Starts a service with a local Keystone, where `tester` has the password [`PASSWORD`]. It also accepts
/// [`TOKEN`].
pub fn with_keystone_and_tokens(ours: &Executable, directory: &Path) -> Result<Server> {
    let methods = [Login::Keystone, Login::Token].map(|login| {
        let (method, content) = login.served();
        let file = directory.join(format!("{method}.toml"));
        let written = fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()));
        written.map(|()| format!("{method}:{}", file.display()))
    });
    let methods = methods.into_iter().collect::<Result<Vec<_>>>()?.join(",");
    Launch::new(ours, directory).with_auth(&methods).start()
}

/// Creates and deletes a host and a lease.
fn works(shell: &Shell<'_>) -> Result<()> {
    shell.text("host-create", &[MACHINES[0]])?;
    let reservation = ["--start-date", "2040-01-01 00:00", "--end-date", "2040-01-02 00:00"];
    let created = shell.json(
        "lease-create",
        &[&reservation[..], &["--reservation", "resource_type=physical:host,min=1,max=1", "mine"]].concat(),
    )?;
    is(&created, "user_id", "tester")?;
    is(&created, "project_id", "tests")?;
    same(members(&shell.list("lease-list", &[])?, "name"), ["mine"])?;
    shell.text("lease-delete", &["mine"])?;
    shell.text("host-delete", &[MACHINES[0]]).map(drop)
}
