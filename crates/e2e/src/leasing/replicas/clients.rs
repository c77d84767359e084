//! Clients that continuously create, extend, end and delete leases, and remember the answers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use chores::random::Random;

use crate::leasing::acknowledged::Acknowledged;
use crate::leasing::date::Minute;
use crate::leasing::http::{Answer, Caller, text};

/// Number of clients.
const CLIENTS: u64 = 5;
/// Maximum number of leases per client.
const MOST_LEASES: usize = 3;
/// Request timeout.
const ANSWER_LIMIT: Duration = Duration::from_secs(8);
/// Pause between two requests of a client, in milliseconds.
const PAUSE_MILLIS: (i64, i64) = (40, 200);
/// Leases that start with the next minute are requested in the last seconds before it.
const SOON_SECONDS: i64 = 15;

/// The running clients.
#[derive(Debug)]
pub struct Clients {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Acknowledged>>>,
}

impl Clients {
    /// Starts the clients. Each chooses its requests, and the services it sends them to, by its seed.
    pub fn start(urls: &[String], seed: u64) -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for number in 0..CLIENTS {
            let callers: Result<Vec<_>> =
                urls.iter().map(|url| Caller::impatient(url, ANSWER_LIMIT)).collect();
            let client = Client {
                name: format!("of client {number}"),
                callers: callers?,
                random: Random::new(seed.wrapping_add(number)),
                acknowledged: Acknowledged::default(),
                later: BTreeSet::new(),
            };
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || client.work(&over)));
        }
        Ok(Self { over, threads })
    }

    /// Stops the clients, and returns their knowledge.
    pub fn stop(mut self) -> Result<Acknowledged> {
        self.over.store(true, Ordering::SeqCst);
        let mut all = Acknowledged::default();
        for thread in self.threads.drain(..) {
            all.join(thread.join().map_err(|_| anyhow!("a client broke off"))??);
        }
        Ok(all)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct Client {
    /// Name of its leases.
    name: String,
    callers: Vec<Caller>,
    random: Random,
    acknowledged: Acknowledged,
    /// Leases created with a later start. Ending one before its start would be refused.
    later: BTreeSet<String>,
}

impl Client {
    fn work(mut self, over: &AtomicBool) -> Result<Acknowledged> {
        while !over.load(Ordering::SeqCst) {
            self.request()?;
            thread::sleep(Duration::from_millis(self.random.between(PAUSE_MILLIS.0, PAUSE_MILLIS.1) as u64));
        }
        Ok(self.acknowledged)
    }

    /// Sends a random request. A shortage or a missing answer is expected here; the refusal of a request that
    /// must be possible is an error.
    fn request(&mut self) -> Result<()> {
        let caller = self.random.one_of(&self.callers);
        let running = self.acknowledged.running();
        if running.is_empty() || (running.len() < MOST_LEASES && self.random.chance(50)) {
            let soon = Minute::seconds_left() <= SOON_SECONDS && self.random.chance(50);
            let start = if soon { Minute::now().plus(1).sent() } else { "now".to_owned() };
            let hosts = 1 + self.random.below(2);
            // Without an answer, it's unknown whether the lease exists.
            match self.acknowledged.create_named(caller, &self.name, &start, hosts) {
                Ok(Answer { status: 201, body }) if soon => {
                    self.later.insert(text(&body["lease"], "id")?.to_owned());
                }
                Ok(answer) if answer.is_shortage() => self.acknowledged.delete_doubtful(caller, &self.name),
                _ => {}
            }
            return Ok(());
        }
        let id = self.random.one_of(&running).clone();
        match self.random.below(4) {
            0 => self.acknowledged.extend(caller, &id, 10),
            1 if !self.later.contains(&id) => self.acknowledged.end(caller, &id),
            _ => self.acknowledged.delete(caller, &id),
        }
    }
}
