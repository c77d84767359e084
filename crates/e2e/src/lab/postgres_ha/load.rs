//! Clients that create, watch and delete leases during faults, and record their observations.
//!
//! A request without a final answer is repeated, at the next service, with the same `Idempotency-Key`. So in
//! the end each client knows every lease it has; any other lease was created twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::outages::Begun;
use crate::leasing::acknowledged::whole_hosts;
use crate::leasing::date::Minute;
use crate::leasing::http::{Answer, Http, text};
use crate::leasing::span::Millis;

/// Number of clients that only write, to find out when writes succeed.
const WRITERS: usize = 3;
/// Number of clients that repeatedly lease a host, starting now.
const TENANTS: usize = 4;
/// Number of clients that repeatedly lease a host, starting with the next minute.
const PLANNERS: usize = 6;
/// Twice the maximum number of leases, because some hosts are still on their way back to the free pool.
pub const HOSTS: usize = 2 * (TENANTS + PLANNERS);

/// Request timeout. After that, the client asks another service.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Time after which a client gives up. Longer than any outage.
const PATIENCE: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_millis(150);
/// Time for which a client keeps a lease.
const STAY: Duration = Duration::from_secs(2);

/// Observations of all clients.
#[derive(Debug, Default)]
pub struct Journal {
    /// Times at which writes were acknowledged.
    pub writes: Vec<Millis>,
    /// Leases that started.
    pub begun: Vec<Begun>,
    /// Violations: leases that were lost, are stuck, or were refused for another reason than a shortage.
    pub complaints: Vec<String>,
    /// Number of repeated requests.
    pub repeated: usize,
    /// Number of refused leases: hosts were still on their way back to the free pool.
    pub refused: usize,
}

/// The running clients.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    journal: Mutex<Journal>,
}

impl Shared {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Load {
    /// Starts all clients against the services at these URLs.
    pub fn start(services: &[String]) -> Result<Self> {
        let services: Vec<Http> =
            services.iter().map(|url| Http::new(url, ANSWER_LIMIT)).collect::<Result<_>>()?;
        let shared = Arc::new(Shared::default());
        let clients = clients(&services, &shared);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("no runtime")?.block_on(try_join_all(clients)).map(drop)
        });
        Ok(Self { shared, thread })
    }

    /// Waits until a write is acknowledged after `instant`.
    pub fn until_write_after(&self, instant: Millis) -> Result<()> {
        let started = Instant::now();
        while !self.shared.journal().writes.iter().any(|write| *write > instant) {
            if self.thread.is_finished() || started.elapsed() > PATIENCE {
                bail!("nothing could be written for {} s", started.elapsed().as_secs());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Has all clients end their leases, and returns their observations.
    pub fn stop(self) -> Result<Journal> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the clients broke off"))??;
        let journal = std::mem::take(&mut *self.shared.journal());
        Ok(journal)
    }
}

/// All clients, distributed over the services.
fn clients(services: &[Http], shared: &Arc<Shared>) -> Vec<BoxFuture<'static, Result<()>>> {
    let client = |number: usize| Client {
        number,
        services: services.to_vec(),
        next: number,
        shared: Arc::clone(shared),
        asked: 0,
    };
    let writers = (0..WRITERS).map(|number| client(number).write().boxed());
    let tenants = (0..TENANTS).map(|number| client(WRITERS + number).lease(false).boxed());
    let planners = (0..PLANNERS).map(|number| client(WRITERS + TENANTS + number).lease(true).boxed());
    writers.chain(tenants).chain(planners).collect()
}

struct Client {
    number: usize,
    services: Vec<Http>,
    /// Index of the service to ask next, modulo their number.
    next: usize,
    shared: Arc<Shared>,
    /// Number of leases requested so far. Part of their names.
    asked: usize,
}

/// An answer, and whether the request was sent more than once.
struct Answered {
    answer: Answer,
    repeated: bool,
}

impl Client {
    /// Creates leases without reservations, 30 days ahead, and deletes them.
    async fn write(mut self) -> Result<()> {
        while !self.shared.is_over() {
            let start = Minute::now().plus(60 * 24 * 30);
            if let Some(id) = self.create(&start.sent(), &start.plus(1).sent(), json!([])).await? {
                sleep(PAUSE).await;
                self.delete(&id).await?;
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Creates leases of a host that start now, or with the next minute if `planned`. Waits for the start of
    /// each, then deletes it.
    async fn lease(mut self, planned: bool) -> Result<()> {
        let host = json!([whole_hosts(1, 1)]);
        while !self.shared.is_over() {
            let (start, due) = if planned {
                let start = Minute::now().plus(1);
                (start.sent(), Millis(start.instant().as_millisecond()))
            } else {
                ("now".to_owned(), Millis::now())
            };
            match self.create(&start, &Minute::now().plus(30).sent(), host.clone()).await? {
                Some(id) => {
                    self.watch(&id, due.max(Millis::now())).await?;
                    self.delete(&id).await?;
                }
                None => sleep(STAY).await,
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until a lease is ACTIVE, and then for [`STAY`].
    async fn watch(&mut self, id: &str, due: Millis) -> Result<()> {
        let mut waited_since = Instant::now();
        loop {
            if Millis::now() < due {
                if self.shared.is_over() {
                    return Ok(());
                }
                waited_since = Instant::now();
            }
            let path = format!("/v1/leases/{id}");
            let Answered { answer, .. } = self.insist(Method::GET, &path, None).await?;
            let status = answer.body["lease"]["status"].as_str().unwrap_or_default();
            if status == "ACTIVE" {
                let begun = Begun { lease: id.to_owned(), due, active: Millis::now() };
                self.shared.journal().begun.push(begun);
                sleep(STAY).await;
                return Ok(());
            }
            if !["PENDING", "STARTING"].contains(&status) || waited_since.elapsed() > PATIENCE {
                let complaint = format!("the lease {id} was acknowledged and does not begin: {answer:?}");
                self.shared.journal().complaints.push(complaint);
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    /// Creates a lease, and returns its identifier. `None` if it was refused.
    async fn create(&mut self, start: &str, end: &str, reservations: Value) -> Result<Option<String>> {
        self.asked += 1;
        let name = format!("client-{}-{}", self.number, self.asked);
        let body = json!({"name": name, "start_date": start, "end_date": end, "reservations": reservations});
        let Answered { answer, .. } = self.insist(Method::POST, "/v1/leases", Some((&body, &name))).await?;
        let mut journal = self.shared.journal();
        if answer.status == 201 {
            journal.writes.push(Millis::now());
            return Ok(Some(text(&answer.body["lease"], "id")?.to_owned()));
        }
        journal.refused += 1;
        if !answer.message().starts_with("Not enough ") {
            journal.complaints.push(format!("{name} was refused: {answer:?}"));
        }
        Ok(None)
    }

    /// Deletes a lease, which must exist.
    async fn delete(&mut self, id: &str) -> Result<()> {
        let Answered { answer, repeated } =
            self.insist(Method::DELETE, &format!("/v1/leases/{id}"), None).await?;
        let mut journal = self.shared.journal();
        match answer.status {
            204 => journal.writes.push(Millis::now()),
            // An earlier attempt can have deleted it.
            404 if repeated => {}
            404 => journal.complaints.push(format!("the lease {id} was acknowledged, and is lost")),
            _ => journal.complaints.push(format!("the lease {id} cannot be deleted: {answer:?}")),
        }
        Ok(())
    }

    /// Asks one service after another, until one answers with a status below 500.
    async fn insist(&mut self, method: Method, path: &str, body: Option<(&Value, &str)>) -> Result<Answered> {
        let started = Instant::now();
        let mut repeated = false;
        loop {
            let service = &self.services[self.next % self.services.len()];
            let sent = match body {
                Some((body, key)) => service.send_once(method.clone(), path, body, key).await,
                None => service.send(method.clone(), path, None).await,
            };
            let said = match sent {
                Ok(answer) if answer.status < 500 => return Ok(Answered { answer, repeated }),
                Ok(answer) => format!("{answer:?}"),
                Err(error) => format!("{error:#}"),
            };
            if started.elapsed() > PATIENCE {
                bail!("{method} {path} got no answer in {} s: {said}", PATIENCE.as_secs());
            }
            repeated = true;
            self.shared.journal().repeated += 1;
            self.next += 1;
            sleep(PAUSE).await;
        }
    }
}
