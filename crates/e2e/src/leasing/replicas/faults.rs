//! Faults, injected one after another: services die or are stopped, the database restarts, connections break.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use chores::random::Random;

use super::cluster::{Cluster, NAMES};
use super::proxy::Line;
use super::verdict::Killed;
use crate::leasing::hooks::Log;
use crate::leasing::span::{Millis, Span};

/// Duration of a hook: usually, and while a service is being stopped.
pub const USUAL_HOOK: Duration = Duration::from_millis(300);
pub const LONG_HOOK: Duration = Duration::from_millis(1500);
/// Maximum wait until some service hands over a host.
const UNTIL_BUSY: Duration = Duration::from_mins(1);
/// Range of the time for which a service or a connection is gone, in milliseconds.
const GONE_MILLIS: (i64, i64) = (500, 4000);
/// Number of times that connections are ended in a row.
const BREAKS: usize = 4;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A service is killed during a handover, and started again after a while.
    Kill,
    /// All services are killed at once.
    KillAll,
    /// A service is stopped during a handover, which it must complete.
    Stop,
    /// The database is restarted in good order.
    Restart,
    /// The database is restarted as after a power loss.
    Crash,
    /// The database ends all connections, several times.
    Terminate,
    /// The connection between a service and the database is cut for a while.
    Cut,
    /// The connection stays open, but nothing gets through for a while.
    HoldUp,
}

impl Fault {
    /// All kinds, in the order of a round.
    pub const ALL: [Self; 8] = [
        Self::Kill,
        Self::Stop,
        Self::Terminate,
        Self::Restart,
        Self::Cut,
        Self::KillAll,
        Self::HoldUp,
        Self::Crash,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "a service is killed",
            Self::KillAll => "all services are killed",
            Self::Stop => "a service is told to stop",
            Self::Restart => "the database is started again",
            Self::Crash => "the database crashes",
            Self::Terminate => "the database ends all connections",
            Self::Cut => "the line of a service to the database is cut",
            Self::HoldUp => "nothing gets through on the line of a service to the database",
        })
    }
}

/// The faults so far.
#[derive(Debug, Default)]
pub struct Faults {
    pub outages: Vec<Span>,
    pub killed: Vec<Killed>,
}

impl Faults {
    /// Injects a fault, waits until everything works again, and returns how long that took.
    pub fn happen(&mut self, fault: Fault, cluster: &mut Cluster, random: &mut Random) -> Result<Duration> {
        let mut which = random.below(NAMES.len());
        let gone = Duration::from_millis(random.between(GONE_MILLIS.0, GONE_MILLIS.1) as u64);
        if matches!(fault, Fault::Kill | Fault::KillAll | Fault::Stop) {
            which = until_one_is_busy(cluster, which)?;
        }
        let from = Millis::now();
        match fault {
            Fault::Kill => self.kill(cluster, &[which], gone)?,
            Fault::KillAll => self.kill(cluster, &[0, 1, 2], Duration::ZERO)?,
            Fault::Stop => stop(cluster, which)?,
            Fault::Restart => cluster.postgres.restart_in_order().map_err(|error| anyhow!(error))?,
            Fault::Crash => cluster.postgres.restart().map_err(|error| anyhow!(error))?,
            Fault::Terminate => terminate(cluster, random)?,
            Fault::Cut => hold(cluster, which, Line::Cut, gone),
            Fault::HoldUp => hold(cluster, which, Line::HeldUp, gone),
        }
        cluster.until_all_work()?;
        let outage = Span { from, to: Millis::now() };
        self.outages.push(outage);
        Ok(Duration::from_millis(outage.millis().max(0) as u64))
    }

    fn kill(&mut self, cluster: &mut Cluster, which: &[usize], gone: Duration) -> Result<()> {
        let from = Millis::now();
        for &number in which {
            cluster.replicas[number].kill()?;
        }
        sleep(gone);
        for &number in which {
            let replica = &mut cluster.replicas[number];
            replica.start_again()?;
            let dead = Span { from, to: Millis::now() };
            self.killed.push(Killed { service: replica.name.to_owned(), dead });
        }
        Ok(())
    }
}

/// Stops a service, and checks that it completes its running calls before it exits.
fn stop(cluster: &mut Cluster, which: usize) -> Result<()> {
    cluster.hooks.take(LONG_HOOK)?;
    let which = until_one_is_busy(cluster, which)?;
    let broken_off =
        |log: Log| log.broken_off.into_iter().filter(|call| call.service == NAMES[which]).count();
    let before = broken_off(cluster.hooks.log()?);
    let gave_up_before = cluster.replicas[which].steps_given_up();
    let stopped = cluster.replicas[which].stop();
    cluster.hooks.take(USUAL_HOOK)?;
    stopped?;
    let log = cluster.hooks.log()?;
    let left = log.running.iter().find(|call| call.service == NAMES[which]);
    ensure!(left.is_none(), "the service has ended, but its hook still runs: {left:?}");
    let (killed, gave_up) =
        (broken_off(log) - before, cluster.replicas[which].steps_given_up() - gave_up_before);
    ensure!(killed <= gave_up, "it gave up {gave_up} steps in time, and killed {killed} hooks when it ended");
    cluster.replicas[which].start_again()
}

/// Waits until a service is handing over or taking back a host, and returns its number. Prefers `which` if
/// several are.
fn until_one_is_busy(cluster: &Cluster, which: usize) -> Result<usize> {
    let started = Instant::now();
    loop {
        let log = cluster.hooks.log()?;
        let mut services = (0..NAMES.len()).map(|offset| (which + offset) % NAMES.len());
        if let Some(busy) =
            services.find(|service| log.running.iter().any(|call| call.service == NAMES[*service]))
        {
            return Ok(busy);
        }
        if started.elapsed() > UNTIL_BUSY {
            bail!("no host was handed over for {} s", UNTIL_BUSY.as_secs());
        }
        sleep(Duration::from_millis(10));
    }
}

fn terminate(cluster: &Cluster, random: &mut Random) -> Result<()> {
    for _ in 0..BREAKS {
        let ended = cluster.postgres.run(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'allot'",
        );
        ended.map_err(|error| anyhow!(error))?;
        sleep(Duration::from_millis(random.between(20, 300) as u64));
    }
    Ok(())
}

fn hold(cluster: &Cluster, which: usize, line: Line, gone: Duration) {
    let proxy = &cluster.replicas[which].proxy;
    proxy.set(line);
    sleep(gone);
    proxy.set(Line::Whole);
}
