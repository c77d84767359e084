//! Faults that are injected into the cluster, one after another, under load.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use super::cluster::Cluster;
use super::load::Load;
use crate::leasing::date::Minute;
use crate::leasing::span::{Millis, Span};

/// Leases are due at full minutes. Slow faults begin this many seconds before one, so that some leases are
/// due during the outage.
const BEFORE_THE_MINUTE: i64 = 8;
/// Pause without a fault, to see that the system has recovered.
const REST: Duration = Duration::from_secs(8);
/// Timeout of a statement on an isolated node, in seconds.
const ATTEMPT_SECONDS: u32 = 2;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All processes on the primary's node are killed, and started again later.
    Kill,
    /// The primary's network is cut, and healed later.
    Cut,
    /// The operator promotes the synchronous standby to primary.
    SwitchOver,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "the primary is killed",
            Self::Cut => "the primary is cut off",
            Self::SwitchOver => "planned switchover",
        })
    }
}

/// A fault that was injected.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: Kind,
    /// Primary before the fault.
    pub from: String,
    /// Primary after the fault.
    pub to: String,
    /// From the fault until the cluster was whole again, plus a rest.
    pub window: Span,
    /// Number of writes that an isolated primary acknowledged. Must be 0.
    pub acknowledged_alone: usize,
}

/// Injects a fault, and returns when the cluster is whole again.
pub fn happen(kind: Kind, cluster: &mut Cluster, load: &Load) -> Result<Fault> {
    let lead = if kind == Kind::SwitchOver { 1 } else { BEFORE_THE_MINUTE };
    sleep(Duration::from_secs((Minute::seconds_left() - lead).rem_euclid(60) as u64));
    let from = cluster.leader()?;
    let at = Millis::now();
    let (to, acknowledged_alone) = match kind {
        Kind::Kill => (kill(cluster, load, &from, at)?, 0),
        Kind::Cut => cut(cluster, load, &from, at)?,
        Kind::SwitchOver => (switch_over(cluster, load, &from, at)?, 0),
    };
    cluster.until_whole()?;
    let primary = cluster.leader()?;
    ensure!(primary == to, "{to} took over from {from}, and then {primary} from {to}: commits can be lost");
    sleep(REST);
    Ok(Fault { kind, from, to, window: Span { from: at, to: Millis::now() }, acknowledged_alone })
}

fn kill(cluster: &mut Cluster, load: &Load, primary: &str, at: Millis) -> Result<String> {
    cluster.kill(primary)?;
    let other = cluster.until_other_leader(primary)?;
    load.until_write_after(at)?;
    sleep(REST);
    cluster.revive(primary)?;
    Ok(other)
}

/// Returns the new primary, and the number of writes that the isolated one still acknowledged.
fn cut(cluster: &Cluster, load: &Load, primary: &str, at: Millis) -> Result<(String, usize)> {
    super::network::cut(primary)?;
    let over = AtomicBool::new(false);
    let (other, acknowledged) = thread::scope(|scope| {
        let asking = scope.spawn(|| ask_alone(cluster, primary, &over));
        let other = cluster.until_other_leader(primary);
        let written = load.until_write_after(at);
        sleep(REST);
        over.store(true, Ordering::Relaxed);
        let acknowledged = asking.join().map_err(|_| anyhow!("the client broke off"))?;
        written?;
        Ok::<_, anyhow::Error>((other?, acknowledged?))
    })?;
    let role = cluster.node(primary)?.sql("SELECT pg_is_in_recovery()", ATTEMPT_SECONDS)?;
    let takes_writes = role.status.success() && role.stdout.starts_with(b"f");
    ensure!(
        !takes_writes,
        "{primary} is cut off, {other} is the primary, and {primary} has not stepped down"
    );
    super::network::heal(primary)?;
    Ok((other, acknowledged))
}

/// Attempts writes on the isolated node, from that node itself. Returns the number of acknowledged writes.
fn ask_alone(cluster: &Cluster, primary: &str, over: &AtomicBool) -> Result<usize> {
    let node = cluster.node(primary)?;
    let (mut attempt, mut acknowledged) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        attempt += 1;
        let stamp = Millis::now().0.rem_euclid(1_000_000_000);
        let done = node.sql(&format!("INSERT INTO cut_off VALUES ({stamp})"), ATTEMPT_SECONDS)?;
        acknowledged += usize::from(done.status.success());
        sleep(Duration::from_millis(500));
    }
    ensure!(attempt > 0, "{primary} was not asked");
    Ok(acknowledged)
}

fn switch_over(cluster: &Cluster, load: &Load, primary: &str, at: Millis) -> Result<String> {
    let standby = cluster.synchronous_standby()?;
    cluster.switch_over(primary, &standby)?;
    let other = cluster.until_other_leader(primary)?;
    load.until_write_after(at)?;
    ensure!(other == standby, "{other} became the primary instead of {standby}");
    Ok(other)
}
