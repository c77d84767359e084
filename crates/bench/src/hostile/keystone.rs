//! Unauthenticated clients with long tokens that make Keystone or its proxy close the connection.

use std::fs;

use anyhow::Result;
use e2e::leasing::http::{Caller, LIMIT};
use e2e::leasing::server::Launch;
use serde_json::{Value, json};

use super::Options;
use super::attackers::{Attack, Who, attack};
use super::client::{Client, Plan, Target};
use super::cost::Process;
use super::fake::{self, Request, Response};
use super::load::Load;
use super::report::Row;
use super::users::CLIENTS;
use crate::leases::cloud::Cloud;

const NAME: &str = "tokens too long for Keystone";
const HOSTS: usize = 6;
/// Longest token, in bytes, that the fake Keystone answers.
const LONGEST: usize = 4090;
const ATTACK: Attack =
    Attack { who: Who::Nobody, headers: &[("x-auth-token", "{n}{long_token}")], ..attack("GET /v1/leases") };

pub fn run(options: &Options) -> Result<Option<Row>> {
    if !options.wants(NAME) {
        return Ok(None);
    }
    let keystone = fake::serve(answer)?;
    let directory = tempfile::tempdir()?;
    let secret = directory.path().join("secret");
    fs::write(&secret, "password")?;
    let launch = Launch::new(&options.ours, directory.path()).with_machines(HOSTS).with_auth("keystone");
    let server = launch.with([
        format!("--keystone-auth-url=http://{keystone}/v3"),
        format!("--keystone-secret-file={}", secret.display()),
        "--keystone-username=allot".to_owned(),
        // Cache tokens only briefly, so that the tokens of ordinary users are validated again during the
        // attack.
        "--keystone-cache-time=1s".to_owned(),
        "--keystone-outage-time=1s".to_owned(),
    ]);
    let server = server.start()?;
    Cloud::new(HOSTS).take_on_hosts(&Caller::impatient(server.url(), LIMIT)?.with_token("admin0"))?;
    let target = Target {
        http: &options.attacking.http,
        url: server.url(),
        document: &Value::Null,
        hosts: HOSTS,
        asset: "",
        one_project: false,
    };
    let plan = Plan::new(&ATTACK, &target, 1.0, 1.0);
    let process = Process::new(server.process(), server.url(), &directory.path().join("allot.db"))?;
    let [memory, _] = process.memory()?;
    process.forget_peak()?;
    let clients = (0..CLIENTS).map(|client| Client::new(&target, client)).collect();
    let load = Load { url: server.url(), lasts: options.lasts, minute: None, question: false };
    let (others, answers) = load.run(&options.attacking.runtime, clients, &plan)?;
    let [_, peak] = process.memory()?;
    server.kill()?;
    Ok(Some(Row {
        fleet: "other services".to_owned(),
        name: NAME.to_owned(),
        others,
        answers,
        memory: peak - memory,
        ..Row::default()
    }))
}

fn answer(request: &Request) -> Option<Response> {
    let token = request.header("x-subject-token");
    if token.len() > LONGEST {
        return None;
    }
    if request.line.starts_with("POST") {
        let headers = "x-subject-token: of-the-service\r\n".to_owned();
        return Some(Response { headers, ..Response::new(201, &described("allot", "service")) });
    }
    if request.line.contains("/auth/tokens") {
        let role = if token.starts_with("admin") { "admin" } else { "member" };
        return Some(Response::new(200, &described(token, role)));
    }
    Some(Response::new(200, &json!({"version": {"id": "v3.14", "status": "stable", "links": []}})))
}

/// Keystone's description of a token. The user and the project have the token's name.
fn described(name: &str, role: &str) -> Value {
    let named = json!({"id": name, "name": name, "domain": {"id": "default", "name": "Default"}});
    json!({"token": {
        "methods": ["password"], "user": named, "project": named, "catalog": [],
        "roles": [{"id": role, "name": role}, {"id": "reader", "name": "reader"}],
        "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099-01-01T00:00:00.000000Z",
    }})
}
