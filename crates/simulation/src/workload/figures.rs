//! What a replay came to.

use serde::Serialize;

use super::course::{Answer, Course};
use super::trace::{Job, Start};

/// Shorter jobs than this count as so long in slowdowns: otherwise a job of a second that waits for a minute would count
/// sixty times as much as one of a minute.
const SHORTEST_RUN_MS: i64 = 10_000;

/// What a replay came to. Node-hours are those of whole hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Advance reservations.
    pub reservations: Share,
    /// Jobs that start as soon as they can.
    pub best_effort: Share,
    /// How advance reservations were answered, in numbers.
    pub answers: Answers,
    /// Advance reservations that were active later after their start than a hand-over takes, or never.
    pub late_starts: u64,
    /// How long after its start an advance reservation was active at most.
    pub longest_handover_s: f64,
    /// From the first submission to the end of the last lease.
    pub makespan_s: f64,
    /// The part of all host-time until then that was leased.
    pub utilisation: f64,
    /// How long best-effort leases waited for their hosts.
    pub waiting_s: Spread,
    /// How many times as long a best-effort job took as it ran, from submission on; those that run for less than ten
    /// seconds count as so long.
    pub slowdown: Spread,
    /// Guests of others that came.
    pub guests: u64,
    /// Guests that were moved away.
    pub guests_moved: u64,
    /// Leases for which somebody was moved.
    pub hunts: u64,
    /// What preemptible instances came to beside leases.
    pub fill: Fill,
    /// What hosts drew.
    pub used_kwh: f64,
    /// What it saved to have hosts off instead of idle, as the service says.
    pub saved_kwh: f64,
    /// How often a host was switched off.
    pub switched_off: u64,
}

/// What became of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// How many there were.
    pub requests: u64,
    /// How many became leases, as they were asked for or otherwise.
    pub accepted: u64,
    /// How many leases came to nothing: their hosts were not there in time.
    pub failed: u64,
    /// What was asked for.
    pub asked_node_hours: f64,
    /// What was given to those that became leases, if all of them were used to their end.
    pub accepted_node_hours: f64,
}

/// How requests were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// With a lease as it was asked for.
    pub as_asked: u64,
    /// With such a lease, after they had waited.
    pub after_waiting: u64,
    /// With one that starts later.
    pub later: u64,
    /// With a shorter one.
    pub shorter: u64,
    /// With fewer hosts.
    pub fewer_hosts: u64,
    /// With nothing.
    pub refused: u64,
}

/// Many figures in few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The one that half of them do not exceed.
    pub median: f64,
    /// The one that 95 % of them do not exceed.
    pub p95: f64,
    /// The greatest.
    pub most: f64,
}

/// What preemptible instances came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fill {
    /// How many were asked for.
    pub requests: u64,
    /// How many of them ran.
    pub started: u64,
    /// For how many there was no place.
    pub refused: u64,
    /// How many were accepted and could not be started any more: a lease needed their place first.
    pub without_result: u64,
    /// How many ran as long as they wanted to.
    pub done: u64,
    /// How many were preempted for leases.
    pub preempted: u64,
    /// What all of them used, CPUs times hours.
    pub core_hours: f64,
    /// What those of it used that were preempted: lost, unless they kept something.
    pub lost_core_hours: f64,
    /// The part of all CPUs that was leased or used by them.
    pub utilisation: f64,
}

impl Share {
    /// The part of requests that became leases.
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
    /// Of these; nothing of none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        // The smallest that this part of all does not exceed.
        let at = |part: f64| {
            let rank = (part * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        let mean = part(values.iter().sum(), values.len() as f64);
        Self { mean, median: at(0.5), p95: at(0.95), most: at(1.0) }
    }
}

impl Figures {
    /// Of what became of the jobs until `end_ms`, on so many hosts. A hand-over may take `handover_ms`.
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

/// How long hosts were leased, all together.
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
