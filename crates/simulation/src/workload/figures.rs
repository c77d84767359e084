//! Results of a replay.

use serde::Serialize;

use super::course::{Answer, Course};
use super::trace::{Job, Start};

/// Minimum run time in slowdowns. Otherwise, a job of a second that waits for a minute would weigh sixty
/// times as much as a job of a minute.
const SHORTEST_RUN_MS: i64 = 10_000;

/// Results of a replay. A node-hour is an hour of a whole host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Advance reservations.
    pub reservations: Share,
    /// Jobs that start as soon as they can.
    pub best_effort: Share,
    /// Answers to requests for advance reservations.
    pub answers: Answers,
    /// Advance reservations that never became active, or did so later after their start than a handover
    /// takes.
    pub late_starts: u64,
    /// Maximum delay between an advance reservation's start and its becoming active.
    pub longest_handover_s: f64,
    /// Time from the first submission to the end of the last lease.
    pub makespan_s: f64,
    /// Fraction of all host-time within the makespan that was leased.
    pub utilisation: f64,
    /// Time that best-effort leases waited for their hosts.
    pub waiting_s: Spread,
    /// Turnaround of best-effort jobs, from submission on, divided by their run time. Run times below ten
    /// seconds count as ten seconds.
    pub slowdown: Spread,
    /// Guests of other tenants that arrived.
    pub guests: u64,
    pub guests_moved: u64,
    /// Leases that hunted.
    pub hunts: u64,
    /// Results of preemptible instances.
    pub fill: Fill,
    /// Energy used by hosts.
    pub used_kwh: f64,
    /// Energy saved by having hosts off instead of idle, as reported by the service.
    pub saved_kwh: f64,
    /// Number of times a host was switched off.
    pub switched_off: u64,
}

/// Results of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    pub requests: u64,
    /// Requests that became leases, as requested or otherwise.
    pub accepted: u64,
    /// Leases that never became active because they didn't get their hosts in time.
    pub failed: u64,
    /// Node-hours of all requests.
    pub asked_node_hours: f64,
    /// Node-hours of the resulting leases, as if all were used to their end.
    pub accepted_node_hours: f64,
}

/// Numbers of requests by their answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// The lease that was requested.
    pub as_asked: u64,
    /// The lease that was requested, after waiting.
    pub after_waiting: u64,
    /// A lease that starts later.
    pub later: u64,
    /// A shorter lease.
    pub shorter: u64,
    /// A lease of fewer hosts.
    pub fewer_hosts: u64,
    /// No lease.
    pub refused: u64,
}

/// Summary of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    /// Smallest value that half of the values don't exceed.
    pub median: f64,
    /// Smallest value that 95 % of the values don't exceed.
    pub p95: f64,
    /// The maximum.
    pub most: f64,
}

/// Results of preemptible instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fill {
    pub requests: u64,
    /// Instances that ran.
    pub started: u64,
    /// Requests that no host had capacity for.
    pub refused: u64,
    /// Accepted instances that never started because a lease needed their place first.
    pub without_result: u64,
    /// Instances that ran to completion.
    pub done: u64,
    /// Instances preempted for leases.
    pub preempted: u64,
    /// Core-hours used by all instances.
    pub core_hours: f64,
    /// Core-hours used by preempted instances. This work is lost unless they saved it.
    pub lost_core_hours: f64,
    /// Fraction of all CPUs that was leased or used by these instances.
    pub utilisation: f64,
}

impl Share {
    /// Fraction of requests that became leases.
    pub fn accepted_part(&self) -> f64 {
        part(self.accepted as f64, self.requests as f64)
    }

    fn count(&mut self, course: &Course) {
        self.requests += 1;
        self.asked_node_hours += hours(course.job.asked_s * 1000) * f64::from(course.job.nodes);
        if let Some(promise) = &course.promise {
            self.accepted += 1;
            self.accepted_node_hours += hours(promise.length_ms) * f64::from(promise.hosts);
            self.failed += u64::from(course.started_ms.is_none());
        }
    }
}

impl Answers {
    fn count(&mut self, answer: Answer) {
        *match answer {
            Answer::AsAsked => &mut self.as_asked,
            Answer::AfterWaiting => &mut self.after_waiting,
            Answer::Later => &mut self.later,
            Answer::Shorter => &mut self.shorter,
            Answer::FewerHosts => &mut self.fewer_hosts,
            Answer::Refused | Answer::None => &mut self.refused,
        } += 1;
    }
}

impl Spread {
    /// Summarizes these values. All fields are zero for an empty list.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        // The smallest value that this fraction of the values doesn't exceed.
        let at = |part: f64| {
            let rank = (part * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        let mean = part(values.iter().sum(), values.len() as f64);
        Self { mean, median: at(0.5), p95: at(0.95), most: at(1.0) }
    }
}

impl Figures {
    /// Figures of the jobs until `end_ms` on that many hosts. Starts are late if a handover takes longer than
    /// `handover_ms`.
    pub(super) fn of(courses: &[Course], hosts: u32, end_ms: i64, handover_ms: i64) -> Self {
        let mut figures = Self::default();
        let (mut waited, mut slowed) = (Vec::new(), Vec::new());
        for course in courses {
            let Job { start, submit_s, runs_s, .. } = course.job;
            if start == Start::WhenPossible {
                figures.best_effort.count(course);
                if let Some(started_ms) = course.started_ms {
                    let wait_ms = started_ms - submit_s * 1000;
                    let run_ms = runs_s.min(course.job.asked_s) * 1000;
                    waited.push(seconds(wait_ms));
                    let turnaround_ms = (wait_ms + run_ms) as f64;
                    slowed.push((turnaround_ms / run_ms.max(SHORTEST_RUN_MS) as f64).max(1.0));
                }
                continue;
            }
            figures.reservations.count(course);
            figures.answers.count(course.answer);
            if let Some(promise) = &course.promise {
                let after = course.started_ms.map(|started_ms| started_ms - promise.start_ms);
                figures.late_starts += u64::from(after.is_none_or(|after| after > handover_ms));
                let after = seconds(after.unwrap_or(0));
                figures.longest_handover_s = figures.longest_handover_s.max(after);
            }
        }
        let begin_ms = courses.iter().map(|course| course.job.submit_s * 1000).min().unwrap_or(end_ms);
        figures.makespan_s = seconds(end_ms - begin_ms);
        let leased = leased_node_ms(courses) as f64;
        figures.utilisation = part(leased, f64::from(hosts) * (end_ms - begin_ms) as f64);
        figures.waiting_s = Spread::of(waited);
        figures.slowdown = Spread::of(slowed);
        figures
    }
}

/// Total time that hosts were leased.
pub(super) fn leased_node_ms(courses: &[Course]) -> i64 {
    let leased = |course: &Course| {
        let (Some(promise), Some(started_ms), Some(ended_ms)) =
            (&course.promise, course.started_ms, course.ended_ms)
        else {
            return 0;
        };
        (ended_ms - started_ms).max(0) * i64::from(promise.hosts)
    };
    courses.iter().map(leased).sum()
}

fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

pub(super) fn hours(ms: i64) -> f64 {
    seconds(ms) / 3600.0
}
