//! The load of a scenario, and what others see meanwhile.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use e2e::leasing::acknowledged::of_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Http, LIMIT, text};
use futures::future::{join_all, join3};
use jiff::Timestamp;
use reqwest::Method;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::scenarios::{Ask, Scenario};

/// How often a plain lease is made, and how often it is asked whether the service is ready.
const EVERY: Duration = Duration::from_millis(100);
/// How often it is asked whether the lease that is due has started.
const LOOK: Duration = Duration::from_millis(20);
/// How long it is waited for that.
const PATIENCE: Duration = Duration::from_mins(1);

/// What runs the requests of one thread.
fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// What is going on at once.
pub struct Load<'a> {
    pub url: &'a str,
    pub scenario: &'a Scenario,
    /// When a lease starts.
    pub start: Minute,
    pub lasts: Duration,
}

/// What was seen of it.
#[derive(Debug)]
pub struct Measured {
    /// How long plain creations took.
    pub created: Vec<Duration>,
    /// How long it took to be told that the service is ready.
    pub ready: Vec<Duration>,
    /// How late the lease started; none if it did not.
    pub late: Option<Duration>,
    /// How many requests waited at most when that was looked at.
    pub most_waiting: u64,
    /// How members were answered, and how often.
    pub answers: BTreeMap<String, u64>,
}

impl Load<'_> {
    /// Has these members ask, in a thread of their own: what others are answered is not to wait until members have read
    /// what they are answered.
    pub fn run(&self, members: &[&str]) -> Result<Measured> {
        let runtime = runtime()?;
        let due = runtime.block_on(self.due())?;
        let until = Instant::now() + self.lasts;
        thread::scope(|scope| {
            let members = scope.spawn(|| self.members(members, until));
            let (created, probed, late) =
                runtime.block_on(join3(self.create(until), self.probe(until), self.started(&due)));
            let (ready, most_waiting) = probed?;
            let answers = members.join().map_err(|_| anyhow!("the thread of the members panicked"))??;
            Ok(Measured { created: created?, ready, late: late?, most_waiting, answers })
        })
    }

    /// Has all members ask. How they were answered, and how often.
    fn members(&self, members: &[&str], until: Instant) -> Result<BTreeMap<String, u64>> {
        let asking = join_all(members.iter().map(|member| self.ask(member, until)));
        let mut all = BTreeMap::new();
        for answers in runtime()?.block_on(asking) {
            for (status, count) in answers? {
                *all.entry(status).or_default() += count;
            }
        }
        Ok(all)
    }

    fn http(&self, token: &str, patience: Duration) -> Result<Http> {
        Ok(Http::new(self.url, patience)?.with_token(token))
    }

    /// Makes the lease that is due while there is load.
    async fn due(&self) -> Result<String> {
        let body = of_hosts(&self.start.sent(), 1, &self.start.plus(2).sent());
        let made = self.http("plain", LIMIT)?.send(Method::POST, "/v1/leases", Some(&body)).await?;
        Ok(text(&made.expect(201)?["lease"], "id")?.to_owned())
    }

    async fn started(&self, due: &str) -> Result<Option<Duration>> {
        let (http, path) = (self.http("plain", LIMIT)?, format!("/v1/leases/{due}"));
        let until = self.start.instant() + PATIENCE;
        while Timestamp::now() < until {
            if Timestamp::now() >= self.start.instant() {
                let lease = http.send(Method::GET, &path, None).await?;
                if lease.body["lease"]["status"] == "ACTIVE" {
                    return Ok(Some(Timestamp::now().duration_since(self.start.instant()).unsigned_abs()));
                }
            }
            sleep(LOOK).await;
        }
        Ok(None)
    }

    /// Makes plain leases, one after the other.
    async fn create(&self, until: Instant) -> Result<Vec<Duration>> {
        let http = self.http("plain", LIMIT)?;
        let mut times = Vec::new();
        while Instant::now() < until {
            let start = Minute::now().plus(60 * 24 * 20 + 61 * i64::try_from(times.len())?);
            let body = of_hosts(&start.sent(), 1, &start.plus(60).sent());
            let began = Instant::now();
            http.send(Method::POST, "/v1/leases", Some(&body)).await?;
            times.push(began.elapsed());
            sleep(EVERY).await;
        }
        Ok(times)
    }

    /// Asks whether the service is ready, and how many requests wait.
    async fn probe(&self, until: Instant) -> Result<(Vec<Duration>, u64)> {
        let http = self.http("operator", LIMIT)?;
        let (mut times, mut most) = (Vec::new(), 0);
        while Instant::now() < until {
            let began = Instant::now();
            http.send(Method::GET, "/readyz", None).await?;
            times.push(began.elapsed());
            let (_, figures) = http.fetch(Method::GET, "/metrics", None).await?;
            most = most.max(waiting(&String::from_utf8_lossy(&figures)));
            sleep(EVERY).await;
        }
        Ok((times, most))
    }

    /// Asks as one member, again and again. How it was answered, and how often.
    async fn ask(&self, member: &str, until: Instant) -> Result<BTreeMap<String, u64>> {
        let http = self.http(member, self.scenario.patience)?;
        let mut answers = BTreeMap::new();
        let mut unread = Vec::new();
        for number in 0.. {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let Ask { method, path, body } = (self.scenario.ask)(number);
            let status = if self.scenario.reads {
                match timeout(left, http.fetch(method, &path, body.as_ref())).await {
                    Ok(Ok((status, _))) => status.to_string(),
                    Ok(Err(_)) | Err(_) => "left".to_owned(),
                }
            } else {
                unread.push(self.begin(member, &path).context("no connection")?);
                sleep(EVERY).await;
                "unread".to_owned()
            };
            *answers.entry(status).or_default() += 1;
        }
        Ok(answers)
    }

    /// Asks for something, and takes nothing of the answer.
    fn begin(&self, member: &str, path: &str) -> Result<TcpStream> {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        let words = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nx-auth-token: {member}\r\n\r\n");
        stream.write_all(words.as_bytes())?;
        Ok(stream)
    }
}

/// What one of a hundred exceeds, and the worst.
pub fn worst(times: &[Duration]) -> [Duration; 2] {
    let mut times = times.to_vec();
    times.sort_unstable();
    let worst = times.last().copied().unwrap_or_default();
    let rare = times.len() / 100 + 1;
    [times.len().checked_sub(rare).map_or(worst, |position| times[position]), worst]
}

/// How many requests wait, as the figures say.
pub fn waiting(figures: &str) -> u64 {
    sum(figures, &["allot_waiting_writers ", "allot_waiting_decisions "])
}

/// How many leases there are, ended ones too, as the figures say.
pub fn leases(figures: &str) -> u64 {
    sum(figures, &["allot_records{kind=\"leases\"} "])
}

fn sum(figures: &str, names: &[&str]) -> u64 {
    let figure = |line: &str| {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.trim().parse::<f64>().ok()
    };
    figures.lines().filter_map(figure).sum::<f64>() as u64
}
