//! Runs an attack and measures the latency of ordinary users' requests.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use e2e::leasing::acknowledged::of_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Answer, Http, LIMIT};
use futures::future::{join, join_all, join4};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::bodies;
use super::client::{Answers, Client, Plan};

/// Pause between two requests of the same user.
const EVERY: Duration = Duration::from_millis(100);
/// Interval at which a due lease is polled.
const LOOK: Duration = Duration::from_millis(20);
/// Head start of ordinary users before the attack, so that connection setup isn't measured.
const EARLIER: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub struct Load<'a> {
    pub url: &'a str,
    pub lasts: Duration,
    /// The start of a minute that the load spans.
    pub minute: Option<Minute>,
    /// Whether another user sends placement requests too.
    pub question: bool,
}

/// Latencies of a kind of request, and the responses that count as failures.
#[derive(Debug, Default)]
pub struct Waits {
    pub times: Vec<Duration>,
    pub refused: Vec<String>,
}

impl Waits {
    pub fn worst(&self) -> Option<Duration> {
        self.times.iter().max().copied()
    }

    /// Records a response. A shortage of hosts doesn't count as a failure.
    fn add(&mut self, began: Instant, answer: Result<Answer>, expected: u16) -> Option<Value> {
        self.times.push(began.elapsed());
        match answer {
            Ok(answer) if answer.status == expected => return Some(answer.body),
            Ok(answer) if answer.is_shortage() => {}
            Ok(answer) => self.refused.push(format!("{} {}", answer.status, answer.message())),
            Err(error) => self.refused.push(format!("{error:#}")),
        }
        None
    }
}

/// Latencies of ordinary users during an attack.
#[derive(Debug, Default)]
pub struct Others {
    pub creation: Waits,
    pub calendar: Waits,
    pub dry_run: Waits,
    pub readyz: Waits,
    /// Delay from a lease's start time until it is active.
    pub start: Waits,
    /// An additional measurement: its name, its limit and its latencies.
    pub more: Option<(&'static str, Duration, Waits)>,
}

/// Maximum latency of a placement request for a small cluster while large ones are computed.
const QUESTION: Duration = Duration::from_secs(5);

impl Load<'_> {
    /// Runs the attackers on their own runtime, so that ordinary users don't wait while attackers read
    /// responses.
    pub fn run(&self, attacking: &Runtime, clients: Vec<Client>, plan: &Plan) -> Result<(Others, Answers)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let due = runtime.block_on(self.due())?;
        let until = Instant::now() + EARLIER + self.lasts;
        thread::scope(|scope| {
            let attackers = scope.spawn(|| -> Answers {
                thread::sleep(EARLIER);
                let attacks = clients.into_iter().map(|client| client.attack(plan, until));
                let mut all = Answers::new();
                for (status, count) in attacking.block_on(join_all(attacks)).into_iter().flatten() {
                    *all.entry(status).or_default() += count;
                }
                all
            });
            let asked = join4(self.create(until), self.look(until), self.plan(until), self.ready(until));
            let more = join(self.started(until, due), self.ask(until));
            let ((creation, calendar, dry_run, readyz), (start, question)) =
                runtime.block_on(join(asked, more));
            let answers = attackers.join().map_err(|_| anyhow!("the thread of the attackers panicked"))?;
            let others = Others {
                creation: creation?,
                calendar: calendar?,
                dry_run: dry_run?,
                readyz: readyz?,
                start: start?,
                more: question?.map(|waits| ("question", QUESTION, waits)),
            };
            Ok((others, answers))
        })
    }

    fn http(&self, user: &str) -> Result<Http> {
        Ok(Http::new(self.url, LIMIT)?.with_token(user))
    }

    /// Creates and deletes simple leases, each at a different time.
    async fn create(&self, until: Instant) -> Result<Waits> {
        let http = self.http("creator")?;
        let mut waits = Waits::default();
        while Instant::now() < until {
            let start = Minute::now().plus(60 * 24 * 25 + 61 * i64::try_from(waits.times.len())?);
            let body = of_hosts(&start.sent(), 1, &start.plus(60).sent());
            let began = Instant::now();
            let answer = http.send(Method::POST, "/v1/leases", Some(&body)).await;
            if let Some(id) = waits.add(began, answer, 201).as_ref().and_then(id) {
                http.send(Method::DELETE, &format!("/v1/leases/{id}"), None).await?;
            }
            sleep(EVERY).await;
        }
        Ok(waits)
    }

    async fn repeat(
        &self,
        user: &str,
        until: Instant,
        request: (Method, &str, Option<&Value>),
    ) -> Result<Waits> {
        let http = self.http(user)?;
        let (method, path, body) = request;
        let mut waits = Waits::default();
        while Instant::now() < until {
            let began = Instant::now();
            let answer = http.send(method.clone(), path, body).await;
            waits.add(began, answer, 200);
            sleep(EVERY).await;
        }
        Ok(waits)
    }

    async fn look(&self, until: Instant) -> Result<Waits> {
        self.repeat("viewer", until, (Method::GET, "/v1/calendar?limit=50", None)).await
    }

    async fn plan(&self, until: Instant) -> Result<Waits> {
        let start = Minute::now().plus(60 * 24 * 30);
        let body = of_hosts(&start.sent(), 1, &start.plus(60).sent());
        self.repeat("planner", until, (Method::POST, "/v1/leases?dry_run=true", Some(&body))).await
    }

    async fn ready(&self, until: Instant) -> Result<Waits> {
        self.repeat("viewer", until, (Method::GET, "/readyz", None)).await
    }

    async fn ask(&self, until: Instant) -> Result<Option<Waits>> {
        if !self.question {
            return Ok(None);
        }
        let question = bodies::small_drain();
        self.repeat("asker", until, (Method::POST, "/v1/placement/drain", Some(&question))).await.map(Some)
    }

    /// Creates the lease that starts at `minute`.
    async fn due(&self) -> Result<Option<(String, Timestamp)>> {
        let Some(minute) = self.minute else { return Ok(None) };
        let body = of_hosts(&minute.sent(), 1, &minute.plus(2).sent());
        let answer = self.http("starter")?.send(Method::POST, "/v1/leases", Some(&body)).await?;
        Ok(id(&answer.body).map(|id| (id, minute.instant())))
    }

    /// Measures the start of the lease that is due at `minute`. Without one, creates leases that start immediately.
    async fn started(&self, until: Instant, due: Option<(String, Timestamp)>) -> Result<Waits> {
        let http = self.http("starter")?;
        let mut waits = Waits::default();
        if let Some((id, instant)) = due {
            waits.until_active(&http, &id, instant).await?;
            return Ok(waits);
        }
        while Instant::now() < until {
            let end = Minute::now().plus(10);
            let answer = http.send(Method::POST, "/v1/leases", Some(&of_hosts("now", 1, &end.sent()))).await;
            let mut made = Waits::default();
            let id = made.add(Instant::now(), answer, 201).as_ref().and_then(id);
            waits.refused.append(&mut made.refused);
            if let Some(id) = id {
                waits.until_active(&http, &id, Timestamp::now()).await?;
                http.send(Method::DELETE, &format!("/v1/leases/{id}"), None).await?;
            }
            sleep(EVERY).await;
        }
        Ok(waits)
    }
}

impl Waits {
    async fn until_active(&mut self, http: &Http, id: &str, due: Timestamp) -> Result<()> {
        while Timestamp::now() < due {
            sleep(LOOK).await;
        }
        loop {
            let lease = http.send(Method::GET, &format!("/v1/leases/{id}"), None).await?;
            let waited = Timestamp::now().duration_since(due).unsigned_abs();
            if lease.body["lease"]["status"] == "ACTIVE" || waited > LIMIT {
                self.times.push(waited);
                return Ok(());
            }
            sleep(LOOK).await;
        }
    }
}

fn id(answer: &Value) -> Option<String> {
    answer["lease"]["id"].as_str().map(str::to_owned)
}
