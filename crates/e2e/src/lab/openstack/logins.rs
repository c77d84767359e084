//! Logins with tokens of every kind, and requests while Keystone is down.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chores::cases::Cases;
use chores::run::{Executable, output_of};
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::{
    Answer, Cloud, OF_ALL, PASSWORD, People, administrator, of_project, password, password_in,
};
use super::{CACHE_TIME, Lab};
use crate::leasing::server::Server;

/// Longer than the service caches a token.
const AFTER_CACHE: Duration = Duration::from_millis(CACHE_TIME * 1000 + 300);

const HOST: &str = "r1-h01";

fn leases(cloud: &Cloud, server: &Server, token: &str) -> Result<Answer> {
    cloud.ask(&Method::GET, &format!("{}/v1/leases", server.url()), token, None)
}

/// Checks the status, and that the error message contains `said`.
fn expect(answer: &Answer, status: u16, said: &str) -> Result<()> {
    ensure!(
        answer.status == status,
        "answered {} where {status} was expected: {}",
        answer.status,
        answer.body
    );
    ensure!(answer.message().contains(said), "it says: {}", answer.message());
    Ok(())
}

/// Sends tokens of every kind, without a client library.
pub fn of_every_kind(cases: &mut Cases, cloud: &Cloud, server: &Server, people: &People) {
    let listed = |token: Result<String>, status: u16, said: &str| {
        let answer = leases(cloud, server, &token?)?;
        expect(&answer, status, said).map(|()| answer)
    };
    let of_lab = json!({"project": {"name": "astronomy", "domain": {"name": "lab"}}});
    cases.check("a member, a reader and a member of another domain can log in", || {
        listed(cloud.token("alice", "physics"), 200, "")?;
        listed(cloud.token("rita", "physics"), 200, "")?;
        let lars = cloud.log_in(&password_in("lab", "lars", OF_ALL), Some(&of_lab));
        listed(lars.map(|(token, _)| token), 200, "")
    });
    cases.check("a lease belongs to the user and project identifiers in Keystone", || {
        let admin = cloud.log_in(&administrator(), Some(&of_project("admin")))?.0;
        let (hosts, leases) =
            (format!("{}/v1/os-hosts", server.url()), format!("{}/v1/leases", server.url()));
        expect(&cloud.ask(&Method::POST, &hosts, &admin, Some(&json!({"name": HOST})))?, 201, "")?;
        let reservation = json!({
            "resource_type": "physical:host", "min": 1, "max": 1,
            "hypervisor_properties": "", "resource_properties": "",
        });
        let wanted = json!({
            "name": "by hand", "start_date": "2040-01-01 00:00", "end_date": "2040-01-02 00:00",
            "reservations": [reservation], "events": [],
        });
        let refused = cloud.ask(&Method::POST, &leases, &cloud.token("rita", "physics")?, Some(&wanted))?;
        expect(&refused, 403, "Policy doesn't allow")?;
        let alice = cloud.token("alice", "physics")?;
        let made = cloud.ask(&Method::POST, &leases, &alice, Some(&wanted))?;
        expect(&made, 201, "")?;
        let lease = &made.body["lease"];
        ensure!(
            lease["user_id"] == people.alice.as_str() && lease["project_id"] == people.physics.as_str(),
            "{lease}"
        );
        let others = cloud.ask(&Method::GET, &leases, &cloud.token("bob", "chemistry")?, None)?;
        ensure!(others.body["leases"] == json!([]), "{}", others.body);
        expect(&cloud.ask(&Method::GET, &hosts, &alice, None)?, 403, "Policy doesn't allow")
    });
    cases.check("a token for no project, for a domain or for the system is refused with the reason", || {
        let domain = json!({"domain": {"name": "Default"}});
        for (identity, scope) in [
            (password("alice"), json!("unscoped")),
            (administrator(), domain),
            (administrator(), json!({"system": {"all": true}})),
        ] {
            let token = cloud.log_in(&identity, Some(&scope)).map(|(token, _)| token);
            listed(token, 401, "is for no project")?;
        }
        Ok(())
    });
    cases.check("a request without a valid token is answered with Keystone's address", || {
        for token in ["", "nonsense"] {
            let answer = leases(cloud, server, token)?;
            expect(&answer, 401, "requires authentication")?;
            ensure!(answer.challenge.starts_with("Keystone uri=\"http://127.0.0.1:"), "{}", answer.challenge);
        }
        Ok(())
    });
    cases.check("a token that is revoked is refused after the time that is set", || {
        let token = cloud.token("alice", "physics")?;
        listed(Ok(token.clone()), 200, "")?;
        cloud.revoke(&token)?;
        sleep(AFTER_CACHE);
        listed(Ok(token), 401, "")
    });
    cases.check("an application credential is limited by its access rules", || {
        let alice = cloud.token("alice", "physics")?;
        let credential =
            |rules: Option<&Value>| cloud.by_application_credential(&alice, &people.alice, rules);
        listed(credential(None), 200, "")?;
        let rule = |service: &str, path: &str| json!([{"service": service, "method": "GET", "path": path}]);
        let narrow = credential(Some(&rule("reservation", "/v1/leases")))?;
        listed(Ok(narrow.clone()), 200, "")?;
        let url = format!("{}/v1/leases", server.url());
        expect(&cloud.ask(&Method::POST, &url, &narrow, Some(&json!({})))?, 403, "access rules")?;
        listed(credential(Some(&rule("compute", "/v2.1/servers"))), 403, "access rules")
    });
    cases.check("a trust is good for the project that it is for", || {
        listed(cloud.by_trust(&cloud.token("alice", "physics")?, people), 200, "")
    });
    cases.check("the service has no login of its own", || {
        for path in ["/identity", "/identity/v3"] {
            let answer = cloud.ask(&Method::GET, &format!("{}{path}", server.url()), "", None)?;
            ensure!(answer.status == 404, "{path} is answered {}", answer.status);
        }
        ensure!(cloud.keystone().ends_with("/v3"), "Keystone is elsewhere");
        Ok(())
    });
}

/// Uses the stock clients, which find the service in the catalog.
pub fn by_stock_clients(cases: &mut Cases, lab: &Lab, ours: &Executable, server: &Server) {
    let openstack = |user: &str, project: &str, words: &[&str]| {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        let mut command = lab.client(&lab.program("openstack"), user, password, project);
        output_of(command.arg("reservation").args(words))
    };
    let names =
        |user: &str, project: &str| openstack(user, project, &["lease", "list", "-f", "value", "-c", "name"]);
    cases.check("openstack reservation makes, lists and deletes a lease", || {
        let reservation = "resource_type=physical:host,min=1,max=1";
        let dates = ["--start-date", "2041-01-01 00:00", "--end-date", "2041-01-02 00:00"];
        openstack(
            "alice",
            "physics",
            &[&["lease", "create", "--reservation", reservation], &dates[..], &["mine"]].concat(),
        )?;
        let listed = names("alice", "physics")?;
        ensure!(listed.lines().any(|line| line.trim() == "mine"), "{listed}");
        openstack("alice", "physics", &["lease", "delete", "mine"]).map(drop)
    });
    cases.check("another project does not see it, and a member does not see hosts", || {
        let listed = names("bob", "chemistry")?;
        ensure!(listed.trim().is_empty(), "{listed}");
        let hosts = openstack("admin", "admin", &["host", "list", "-f", "value"])?;
        ensure!(hosts.contains(HOST), "{hosts}");
        match openstack("alice", "physics", &["host", "list"]) {
            Ok(hosts) if hosts.contains(HOST) => bail!("{hosts}"),
            _ => Ok(()),
        }
    });
    cases.check("allot's own client can log in with the same variables", || {
        let mut command = lab.client(ours.path(), "alice", OF_ALL, "physics");
        let listed = output_of(command.args(["lease", "list"]))?;
        ensure!(listed.contains("by hand"), "{listed}");
        Ok(())
    });
    cases.check("and with variables of an application credential", || {
        let mut make = lab.client(&lab.program("openstack"), "alice", OF_ALL, "physics");
        let made = output_of(make.args(["application", "credential", "create", "-f", "json", "for-allot"]))?;
        let made: Value = serde_json::from_str(&made)?;
        let of = |name: &str| {
            made[name].as_str().or(made[name.to_lowercase()].as_str()).unwrap_or_default().to_owned()
        };
        let mut command = lab.client(ours.path(), "", "", "");
        for unset in ["OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME"] {
            command.env_remove(unset);
        }
        command.env("OS_APPLICATION_CREDENTIAL_ID", of("ID"));
        command.env("OS_APPLICATION_CREDENTIAL_SECRET", of("Secret"));
        let listed = output_of(command.args(["lease", "list"]))?;
        ensure!(listed.contains("by hand"), "{listed}");
        Ok(())
    });
    cases.check("metrics count tokens by outcome", || {
        let figures = server.caller().metrics()?;
        for outcome in ["cached", "valid", "refused"] {
            let line = format!("allot_keystone_tokens_total{{outcome=\"{outcome}\"}} ");
            let count = figures.lines().find_map(|text| text.strip_prefix(&line)).unwrap_or("0");
            ensure!(count != "0", "{outcome}: {count}");
        }
        Ok(())
    });
}

/// Stops Keystone, and starts it again.
pub fn while_keystone_is_away(cases: &mut Cases, lab: &Lab, cloud: &Cloud, server: &Server) {
    let tokens =
        cloud.token("alice", "physics").and_then(|known| Ok((known, cloud.token("bob", "chemistry")?)));
    let Some((known, unknown)) = cases.check("two tokens are issued", || tokens) else { return };
    cases.check("the first token is known, and Keystone stops", || {
        expect(&leases(cloud, server, &known)?, 200, "")?;
        lab.stop("keystone")?;
        sleep(AFTER_CACHE);
        Ok(())
    });
    cases.check(
        "the known token is accepted, and unknown and invalid tokens must be sent again later",
        || {
            for _ in 0..5 {
                expect(&leases(cloud, server, &known)?, 200, "")?;
                for other in [unknown.as_str(), "nonsense"] {
                    let answer = leases(cloud, server, other)?;
                    expect(&answer, 503, "Keystone cannot be asked")?;
                    ensure!(answer.retry_after == "5", "Retry-After: {}", answer.retry_after);
                }
            }
            Ok(())
        },
    );
    cases.check("Keystone restarts, and all tokens are accepted or rejected as before", || {
        lab.up()?;
        let since = Instant::now();
        while leases(cloud, server, &unknown)?.status != 200 {
            ensure!(since.elapsed() < Duration::from_mins(1), "a valid token is still refused");
            sleep(Duration::from_millis(200));
        }
        expect(&leases(cloud, server, "nonsense")?, 401, "")?;
        expect(&leases(cloud, server, &known)?, 200, "")
    });
}
