//! An attacking client. It creates the prey that an attack needs and repeats the attack.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use e2e::leasing::date::Minute;
use e2e::leasing::http::LIMIT;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::attackers::{Attack, Who};
use super::largest::{Largest, Template};
use super::prey::{Found, PREY};
use super::users;

/// Fractions of the maximum list length, tried in this order until the service accepts one.
const SCALES: [f64; 9] = [1.0, 0.5, 0.25, 0.1, 0.04, 0.02, 0.01, 0.005, 0.001];
/// Start times of the attackers' leases, in hours from now. They are later than the ordinary users' leases,
/// and before the limit of a hundred years ahead.
const FIRST_HOUR: i64 = 24 * 400;
const HOURS: i64 = 800_000;
/// Step between the start hours of consecutive requests, so that hours rarely repeat.
const STRIDE: i64 = 37;
/// Length in characters of tokens that no Keystone has issued: about the maximum size of request headers.
const LONG_TOKEN: usize = 8000;
/// Maximum number of unread responses per client.
const UNREAD: usize = 16;
/// Timeout of the first request of an attack. A request that takes longer counts as accepted.
const TRIAL: Duration = Duration::from_secs(20);
/// Pause after a request that was rejected because of a concurrency limit.
const PAUSE: Duration = Duration::from_millis(50);

/// Properties of the service under test that all clients share.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Bound to the runtime on which all attackers run.
    pub http: &'a reqwest::Client,
    pub url: &'a str,
    pub document: &'a Value,
    pub hosts: usize,
    pub asset: &'a str,
    pub one_project: bool,
}

#[derive(Clone, Debug)]
struct Request {
    who: Who,
    method: Method,
    path: Template,
    headers: Vec<(&'static str, Template)>,
    body: Option<Template>,
}

#[derive(Clone, Debug)]
struct Made {
    name: &'static str,
    request: Request,
    found: Found,
}

/// An attack with its expanded bodies.
#[derive(Clone, Debug)]
pub struct Plan {
    attack: Attack,
    /// Prey that each client creates once (`once`), and prey created for each request (`each`).
    once: Vec<Made>,
    each: Vec<Made>,
    before: Vec<Request>,
    request: Request,
    after: Vec<Request>,
    /// Fraction of the maximum list length.
    pub scale: f64,
    /// Hosts, instances and addresses that each lease of a request allocates.
    pub allocations: f64,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    number: usize,
    variables: HashMap<String, String>,
    /// Requests sent so far. Request `n` of this client has the number `n * lanes + lane`, unique among all clients.
    sent: i64,
    lane: i64,
    lanes: i64,
}

/// Number of responses to attackers by status.
pub type Answers = BTreeMap<String, u64>;

impl Plan {
    /// Expands an attack with lists of `scale` times the maximum length. Lists of its prey get `prey_scale`
    /// times the maximum length.
    pub fn new(attack: &Attack, target: &Target, scale: f64, prey_scale: f64) -> Self {
        let allocations = Cell::new(0.0);
        let request = |who, operation: &str, body: Option<fn() -> Value>, scale| {
            let (method, path) = operation.split_once(' ').unwrap_or_default();
            let largest = Largest { document: target.document, hosts: target.hosts, scale };
            let body = body.map(|body| largest.body(operation, &body()));
            allocations.set(body.as_ref().map_or(0.0, allocated).max(allocations.get()));
            let body = body.map(|body| Template::new(&body.to_string()));
            Request {
                who,
                method: method.parse().unwrap_or(Method::GET),
                path: Template::new(path),
                headers: Vec::new(),
                body,
            }
        };
        let plain = |operations: &[&str]| -> Vec<Request> {
            operations.iter().map(|operation| request(Who::Admin, operation, None, 1.0)).collect()
        };
        let mut attacking = request(attack.who, attack.operation, attack.body, scale);
        if !attack.query.is_empty() {
            attacking.path = Template::new(&format!("{}?{}", attack.path(), attack.query));
        }
        attacking.headers =
            attack.headers.iter().map(|(name, value)| (*name, Template::new(value))).collect();
        let mut plan = Self {
            attack: *attack,
            once: Vec::new(),
            each: Vec::new(),
            before: plain(attack.before),
            request: attacking,
            after: plain(attack.after),
            scale,
            allocations: allocations.get(),
        };
        // Walks backwards, since prey is created after the prey that it needs.
        let mut wanted: Vec<String> = plan.request.variables();
        for prey in PREY.iter().rev() {
            let is_wanted = |name: &String| {
                name == prey.name || (prey.name == "lease_id" && name.starts_with("reservation_"))
            };
            if wanted.iter().any(is_wanted) {
                let made = request(prey.who, prey.request, prey.body, prey_scale);
                wanted.extend(made.variables());
                let made = Made { name: prey.name, request: made, found: prey.found };
                let list = if attack.consumes {
                    plan.allocations = allocations.get();
                    &mut plan.each
                } else {
                    &mut plan.once
                };
                list.insert(0, made);
            }
        }
        plan
    }

    /// Finds the largest input that the service accepts. The returned client has already created its prey. If the
    /// service accepts no input, the reason of the first rejection is returned too.
    pub async fn find(attack: &Attack, target: &Target<'_>) -> (Self, Client, Option<String>) {
        let mut refusal = None;
        'prey: for prey_scale in SCALES {
            let mut client = Client::new(target, 0);
            if let Err(error) = client.prepare(&Self::new(attack, target, 1.0, prey_scale)).await {
                refusal.get_or_insert(format!("{error:#}"));
                continue;
            }
            for scale in SCALES {
                let plan = Self::new(attack, target, scale, prey_scale);
                match client.try_once(&plan).await {
                    Ok(()) => return (plan, client, None),
                    Err(Refused::Prey(reason)) => {
                        refusal.get_or_insert(reason);
                        continue 'prey;
                    }
                    Err(Refused::Attack(reason)) => refusal.get_or_insert(reason),
                };
                if attack.body.is_none() {
                    break 'prey;
                }
            }
            break;
        }
        (Self::new(attack, target, 1.0, 1.0), Client::new(target, 0), refusal)
    }

    /// Whether an attack consists of a single request without setup or cleanup.
    pub fn is_single(&self) -> bool {
        self.each.is_empty() && self.before.is_empty() && self.after.is_empty()
    }
}

/// Hosts, instances and addresses that the request allocates per lease.
fn allocated(body: &Value) -> f64 {
    let reservations = body["reservations"].as_array().into_iter().flatten();
    let pool = body["host_count"].as_f64().unwrap_or_default();
    let amount = |one: &Value| one["max"].as_f64().or_else(|| one["amount"].as_f64()).unwrap_or_default();
    pool + reservations.map(amount).sum::<f64>()
}

/// Reason why an attack is impossible: its prey could not be created, or the attack itself was rejected.
enum Refused {
    Prey(String),
    Attack(String),
}

impl Request {
    fn variables(&self) -> Vec<String> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let templates = [&self.path].into_iter().chain(&self.body).chain(headers);
        templates.flat_map(|template| template.variables().map(str::to_owned)).collect()
    }
}

impl Client {
    pub fn new(target: &Target, client: usize) -> Self {
        let member = users::user(Who::Member, client).unwrap_or_default();
        let now = Minute::now();
        let days = |days: i64| now.plus(days * 24 * 60).shown();
        let expression = "%5B%22in%22,%22$capability2%22,%220%22,%221%22,%22a%22,%22b%22,%22c%22%5D";
        let variables = [
            ("user", member.clone()),
            ("member", member),
            ("project", users::project(client, target.one_project)),
            ("machine", (target.hosts + 1 + client).to_string()),
            ("address", format!("203.0.113.{}", 120 + client)),
            ("pattern", format!("pattern{client}*")),
            ("name", format!("capability{client}")),
            ("asset", target.asset.to_owned()),
            ("long_token", "x".repeat(LONG_TOKEN)),
            ("expression", expression.to_owned()),
            ("now", now.shown()),
            ("long_ago", days(-400)),
            ("month_ago", days(-30)),
            ("tomorrow", days(1)),
            ("next_week", days(8)),
            ("soon", days(25)),
            ("in_a_year", days(420)),
            ("far", days(400)),
            ("farther", days(400 + 365)),
        ];
        Self {
            http: target.http.clone(),
            url: target.url.to_owned(),
            number: client,
            variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            sent: 0,
            lane: client as i64,
            lanes: users::CLIENTS as i64,
        }
    }

    /// Clones this client `count` times to send that many requests concurrently.
    pub fn at_once(self, count: usize) -> impl Iterator<Item = Self> {
        let lanes = self.lanes * count as i64;
        (0..count as i64).map(move |number| Self {
            lane: self.lane + number * self.lanes,
            lanes,
            ..self.clone()
        })
    }

    /// Sets the variables of the next request, including a unique number and a start time.
    fn advance(&mut self) {
        let slot = self.sent * self.lanes + self.lane;
        self.sent += 1;
        let start = Minute::now().plus(60 * (FIRST_HOUR + (slot * STRIDE) % HOURS));
        let of_lease = Minute::now().plus(60 * (FIRST_HOUR + HOURS) + self.sent % 60);
        let times =
            [("start", start.sent()), ("end", start.plus(60).sent()), ("end_of_lease", of_lease.sent())];
        for (name, value) in times {
            self.variables.insert(name.to_owned(), value);
        }
        self.variables.insert("n".to_owned(), slot.to_string());
    }

    async fn begin(&self, request: &Request) -> Result<Response> {
        let path = request.path.render(&self.variables)?;
        let mut sent = self.http.request(request.method.clone(), format!("{}{path}", self.url));
        sent = sent.header("accept", "application/json").timeout(LIMIT);
        let own = request.headers.iter().any(|(name, _)| *name == "x-auth-token");
        if let Some(user) = users::user(request.who, self.number).filter(|_| !own) {
            sent = sent.header("x-auth-token", user);
        }
        for (name, value) in &request.headers {
            sent = sent.header(*name, value.render(&self.variables)?);
        }
        if let Some(body) = &request.body {
            sent = sent.header("content-type", "application/json").body(body.render(&self.variables)?);
        }
        Ok(sent.send().await?)
    }

    async fn send(&self, request: &Request) -> Result<Answer> {
        let answer = self.begin(request).await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Answer { status, headers, body: answer.bytes().await?.to_vec() })
    }

    /// Creates prey and stores the names in variables.
    async fn make(&mut self, all: &[Made]) -> Result<()> {
        for made in all {
            let Answer { status, headers, body } = self.send(&made.request).await?;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let name = match made.found {
                Found::Body(pointer) => body.pointer(pointer).and_then(Value::as_str),
                Found::Header(name) => headers.get(name).and_then(|value| value.to_str().ok()),
            };
            let Some(name) = name else {
                bail!("no {}: {status} {}", made.name, shortened(&body.to_string()))
            };
            self.variables.insert(made.name.to_owned(), name.to_owned());
            let reservations = body["lease"]["reservations"].as_array().into_iter().flatten();
            for (number, id) in reservations.filter_map(|one| one["id"].as_str()).enumerate() {
                self.variables.insert(format!("reservation_{number}"), id.to_owned());
            }
        }
        Ok(())
    }

    /// Creates the prey that all requests of this client share.
    pub async fn prepare(&mut self, plan: &Plan) -> Result<()> {
        self.advance();
        self.make(&plan.once).await
    }

    async fn try_once(&mut self, plan: &Plan) -> Result<(), Refused> {
        let prey = |error: anyhow::Error| Refused::Prey(format!("{error:#}"));
        self.advance();
        self.make(&plan.each).await.map_err(prey)?;
        for request in &plan.before {
            self.send(request).await.map_err(prey)?;
        }
        // Streams and long-polling requests don't end by themselves.
        let patience = if plan.attack.at_once > 1 { PAUSE } else { TRIAL };
        let answer = match timeout(patience, self.send(&plan.request)).await {
            Err(_) => return Ok(()),
            Ok(Err(error)) => return Err(Refused::Attack(format!("{error:#}"))),
            Ok(Ok(answer)) => answer,
        };
        self.undo(plan, &answer).await.map_err(prey)?;
        if plan.attack.is_success(answer.status) {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&answer.body);
        Err(Refused::Attack(format!("{} {}", answer.status, shortened(&body))))
    }

    async fn undo(&mut self, plan: &Plan, answer: &Answer) -> Result<()> {
        if plan.after.is_empty() {
            return Ok(());
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let made = body.as_object().and_then(|body| body.values().next()?["id"].as_str().map(str::to_owned));
        let Some(made) = made else { return Ok(()) };
        self.variables.insert("made".to_owned(), made);
        for request in &plan.after {
            self.send(request).await?;
        }
        Ok(())
    }

    /// Sends one attack and calls `around` directly before and after its request. Returns the status, the length of the
    /// request body in bytes, and both results of `around`.
    pub async fn once<T, F: Future<Output = Result<T>>>(
        &mut self,
        plan: &Plan,
        around: impl Fn() -> F,
    ) -> Result<(u16, usize, [T; 2])> {
        self.advance();
        self.make(&plan.each).await?;
        for request in &plan.before {
            self.send(request).await?;
        }
        let before = around().await?;
        let answer = self.send(&plan.request).await?;
        let after = around().await?;
        self.undo(plan, &answer).await?;
        let body = plan.request.body.as_ref().map(|body| body.render(&self.variables)).transpose()?;
        Ok((answer.status, body.map_or(0, |body| body.len()), [before, after]))
    }

    /// Repeats the attack until `until`.
    pub async fn attack(mut self, plan: &Plan, until: Instant) -> Answers {
        let mut answers = Answers::new();
        let mut unread = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return answers;
            }
            self.advance();
            let patience = match plan.attack.patience {
                0 => left,
                patience => left.min(Duration::from_millis(patience)),
            };
            let status = match timeout(left, self.around(plan, patience, &mut unread)).await {
                Ok(Ok(status)) => status,
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "left".to_owned(),
            };
            if status == "429" || unread.len() == UNREAD {
                sleep(PAUSE).await;
            }
            unread.truncate(UNREAD);
            *answers.entry(status).or_default() += 1;
        }
    }

    async fn around(
        &mut self,
        plan: &Plan,
        patience: Duration,
        unread: &mut Vec<Response>,
    ) -> Result<String> {
        if self.make(&plan.each).await.is_err() {
            sleep(PAUSE).await;
            return Ok("no prey".to_owned());
        }
        for request in &plan.before {
            self.send(request).await?;
        }
        let Ok(begun) = timeout(patience, self.begin(&plan.request)).await else {
            return Ok("left".to_owned());
        };
        let mut answer = begun.map_err(|_| anyhow!("no answer"))?;
        let status = answer.status().as_u16();
        let said = if plan.attack.is_success(status) { "ok".to_owned() } else { status.to_string() };
        if plan.attack.unread {
            unread.push(answer);
        } else if plan.after.is_empty() {
            while answer.chunk().await.map_err(|_| anyhow!("broken off"))?.is_some() {}
        } else {
            let (headers, body) = (HeaderMap::new(), answer.bytes().await?.to_vec());
            self.undo(plan, &Answer { status, headers, body }).await?;
        }
        Ok(said)
    }
}

impl Attack {
    pub fn is_success(&self, status: u16) -> bool {
        (200..300).contains(&status) || status == self.accepts
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
