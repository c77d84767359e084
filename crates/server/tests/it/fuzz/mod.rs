//! Sends random requests, many of them damaged. Checks that no response is a server error, that rejected requests change
//! nothing, that accepted changes are visible and last, and that nothing is allocated twice.
//!
//! `SEEDS=17..18` runs that seed instead, `cargo xtask fuzz leases` fresh ones.

mod bodies;
mod damage;
mod known;
mod requests;
mod watch;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use jiff::SignedDuration;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scratch_postgres::ScratchPostgres;
use store::Store;
use store::memory::MemoryStore;
use store_postgres::PostgresStore;
use store_sqlite::SqliteStore;
use tokio::time::error::Elapsed;

use self::known::Known;
use self::requests::Drawn;
use crate::site::{Answer, Site};

/// Number of requests per seed.
const REQUESTS: usize = 260;
/// Timeout for a response.
const PATIENCE: Duration = Duration::from_mins(1);

/// Seeds in the environment variable `SEEDS`, by default `usual`.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(chosen) = std::env::var("SEEDS") else { return usual };
    let (from, to) = chosen.split_once("..").expect("SEEDS is like 0..500");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Sends the requests of a seed and checks the responses.
async fn go_through(seed: u64, store: Arc<dyn Store>) -> Tried {
    let mut rng = SmallRng::seed_from_u64(seed);
    let site = Site::still(Arc::clone(&store)).await;
    site.add_hosts_as("admin", 3).await;
    let mut tried = Tried::default();
    let mut stored = watch::stored(&*store).await;
    for number in 0..REQUESTS {
        let drawn = requests::draw(&Known::of(&site.service), &mut rng);
        let Some(request) = drawn.request() else { continue };
        let waits = drawn.waits_for_a_start();
        let answer = if waits { start(&site, request).await } else { wait_for(site.send(request)).await };
        let checked = match answer {
            // Time has passed in between, so the stored state changed.
            Ok(answer) if waits => {
                stored = watch::stored(&*store).await;
                sound(&answer).and_then(|()| watch::check_bookings(&site.service))
            }
            Ok(answer) => check(&site, &*store, &drawn, &answer, &mut stored, &mut tried).await,
            Err(_) => Err("is not answered".to_owned()),
        };
        if let Err(why) = checked {
            panic!("seed {seed}, request {number}: {why}\n{drawn}");
        }
        if rng.random_bool(0.1) {
            site.pass(SignedDuration::from_mins(rng.random_range(1..90))).await;
            stored = watch::stored(&*store).await;
        }
    }
    // A service that starts now must find the same state.
    let again = Site::still_at(store, site.now()).await;
    assert_eq!(watch::shown(&again).await, watch::shown(&site).await, "seed {seed}");
    tried
}

async fn wait_for(answer: impl Future<Output = Answer>) -> Result<Answer, Elapsed> {
    tokio::time::timeout(PATIENCE, answer).await
}

/// Lets time pass while the request waits for a lease to start.
async fn start(site: &Site, request: Request<Body>) -> Result<Answer, Elapsed> {
    let answered = Cell::new(false);
    let answer = async {
        let answer = wait_for(site.send(request)).await;
        answered.set(true);
        answer
    };
    let time = async {
        while !answered.get() {
            site.pass(SignedDuration::from_secs(10)).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(answer, time).0
}

/// Number of requests by outcome.
#[derive(Debug, Default)]
struct Tried {
    changed: usize,
    refused: usize,
}

/// Fails if the response is a server error.
fn sound(answer: &Answer) -> Result<(), String> {
    if answer.status.is_server_error() {
        return Err(format!("is answered {}: {}", answer.status, answer.text));
    }
    Ok(())
}

/// Checks the response, and its effect on the stored state.
async fn check(
    site: &Site,
    store: &dyn Store,
    drawn: &Drawn,
    answer: &Answer,
    stored: &mut String,
    tried: &mut Tried,
) -> Result<(), String> {
    sound(answer)?;
    let before = std::mem::replace(stored, watch::stored(store).await);
    if watch::took_effect(drawn, answer.status) {
        tried.changed += 1;
        watch::check_told(site, drawn, answer).await?;
        return watch::check_bookings(&site.service);
    }
    tried.refused += usize::from(answer.status.is_client_error());
    if *stored == before {
        Ok(())
    } else {
        Err(format!("is answered {}, and has changed something", answer.status))
    }
}

fn many(tried: &[Tried]) {
    let sum = |of: fn(&Tried) -> usize| tried.iter().map(of).sum::<usize>();
    let (changed, refused) = (sum(|one| one.changed), sum(|one| one.refused));
    println!("{} seeds: {changed} requests with an effect, {refused} refused", tried.len());
    assert!(
        changed > 5 * tried.len() && refused > 20 * tried.len(),
        "what is sent is too sound or too broken"
    );
}

#[tokio::test]
async fn whatever_is_sent_harms_nothing() {
    let mut tried = Vec::new();
    for seed in seeds(0..40) {
        tried.push(go_through(seed, Arc::new(MemoryStore::new())).await);
    }
    many(&tried);
}

#[tokio::test]
async fn whatever_is_sent_harms_nothing_in_sqlite() {
    let mut tried = Vec::new();
    for seed in seeds(1000..1006) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(directory.path().join("allot.db")).await.expect("a store");
        tried.push(go_through(seed, Arc::new(store)).await);
    }
    many(&tried);
}

#[tokio::test]
async fn whatever_is_sent_harms_nothing_in_postgresql() {
    let server = ScratchPostgres::start().unwrap_or_else(|error| panic!("{error}"));
    let mut tried = Vec::new();
    for seed in seeds(2000..2006) {
        let url = server.database(None).expect("a database");
        let store = PostgresStore::open(url.parse().expect("an address")).await.expect("a store");
        tried.push(go_through(seed, Arc::new(store)).await);
    }
    many(&tried);
}
