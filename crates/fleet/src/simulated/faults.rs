//! Faults between a caller and a simulated fleet.

use leases::ids::HostId;
use leases::plan::Action;
use rand::Rng;
use rand::rngs::SmallRng;

use super::apply::Call;
use super::timing::Between;

/// A fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The fleet rejects the call, without any effect.
    Refuse,
    /// The call is lost: it has no effect, and the caller gets an error.
    TimeOutBefore,
    /// The response is lost: the call takes effect, but the caller gets an error.
    TimeOutAfter,
    /// The caller gets an error, and the call takes effect some time later.
    Late,
    /// The call succeeds and arrives again some time later.
    Duplicate,
    /// The driver panics, without any effect.
    Panic,
}

/// Probability of each fault per call, from 0 to 1. A call has at most one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// [`Fault::Refuse`].
    pub refuse: f64,
    /// [`Fault::TimeOutBefore`].
    pub time_out_before: f64,
    /// [`Fault::TimeOutAfter`].
    pub time_out_after: f64,
    /// [`Fault::Late`].
    pub late: f64,
    /// [`Fault::Duplicate`].
    pub duplicate: f64,
    /// Delay of late calls and duplicates.
    pub late_by: Between,
    /// Probability that a query about the fleet gets no response.
    pub unanswered: f64,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self {
        refuse: 0.0,
        time_out_before: 0.0,
        time_out_after: 0.0,
        late: 0.0,
        duplicate: 0.0,
        late_by: Between::ZERO,
        unanswered: 0.0,
    };

    /// All faults with the same probability. Delays are 1 second to 10 minutes.
    pub const fn each(probability: f64) -> Self {
        Self {
            refuse: probability,
            time_out_before: probability,
            time_out_after: probability,
            late: probability,
            duplicate: probability,
            late_by: Between::secs(1, 600),
            unanswered: probability,
        }
    }

    pub(super) fn draw(&self, rng: &mut SmallRng) -> Option<Fault> {
        let mut number: f64 = rng.random();
        let likely = [
            (self.refuse, Fault::Refuse),
            (self.time_out_before, Fault::TimeOutBefore),
            (self.time_out_after, Fault::TimeOutAfter),
            (self.late, Fault::Late),
            (self.duplicate, Fault::Duplicate),
        ];
        for (probability, fault) in likely {
            if number < probability {
                return Some(fault);
            }
            number -= probability;
        }
        None
    }
}

/// Kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Fence,
    Unfence,
    Verify,
    Hold,
    Release,
    Grant,
    Withdraw,
    Assign,
    Unassign,
    Stop,
    Resume,
    Delete,
    Snapshot,
    Adopt,
    Abandon,
    Migrate,
    Start,
    Destroy,
    PowerOn,
    PowerOff,
    Prepare,
    Finish,
    SetRatios,
}

/// A fault that certainly happens: to `times` matching calls, after `after` matching calls have succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// `None` matches any kind of call.
    pub verb: Option<Verb>,
    /// `None` matches any host.
    pub host: Option<HostId>,
    /// Number of matching calls that succeed first.
    pub after: u32,
    /// Number of matching calls that fail then.
    pub times: u32,
    pub fault: Fault,
}

impl PlannedFault {
    /// A fault of the next such call for the host.
    pub const fn next(verb: Verb, host: HostId, fault: Fault) -> Self {
        Self { verb: Some(verb), host: Some(host), after: 0, times: 1, fault }
    }
}

/// Returns the planned fault of a call. Removes faults that have happened `times` times.
pub(super) fn planned(plan: &mut Vec<PlannedFault>, call: &Call) -> Option<Fault> {
    let (verb, host) = about(call);
    let concerned = |planned: &PlannedFault| {
        planned.verb.is_none_or(|v| v == verb) && planned.host.is_none_or(|h| Some(h) == host)
    };
    let mut fault = None;
    for planned in plan.iter_mut().filter(|planned| concerned(planned)) {
        if planned.after > 0 {
            planned.after -= 1;
        } else if fault.is_none() && planned.times > 0 {
            planned.times -= 1;
            fault = Some(planned.fault);
        }
    }
    plan.retain(|planned| planned.times > 0);
    fault
}

/// Kind and host of a call.
pub(super) fn about(call: &Call) -> (Verb, Option<HostId>) {
    match call {
        Call::Adopt(host) => (Verb::Adopt, Some(*host)),
        Call::Abandon(host) => (Verb::Abandon, Some(*host)),
        Call::Start(host, ..) => (Verb::Start, Some(*host)),
        Call::Act(action, _) => match *action {
            Action::Fence(host) => (Verb::Fence, Some(host)),
            Action::Unfence(host) => (Verb::Unfence, Some(host)),
            Action::Verify(host, _) => (Verb::Verify, Some(host)),
            Action::Hold(host, _) => (Verb::Hold, Some(host)),
            Action::Release(host, _) => (Verb::Release, Some(host)),
            Action::Grant(host, ..) => (Verb::Grant, Some(host)),
            Action::Withdraw(host, _) => (Verb::Withdraw, Some(host)),
            Action::Assign(..) => (Verb::Assign, None),
            Action::Unassign(..) => (Verb::Unassign, None),
            Action::StopGuest(host, _) => (Verb::Stop, Some(host)),
            Action::ResumeGuest(host, _) => (Verb::Resume, Some(host)),
            Action::MoveGuest(host, ..) => (Verb::Migrate, Some(host)),
            Action::DeleteGuest(host, _) => (Verb::Delete, Some(host)),
            // `StartGuest` doesn't occur here: starts are `Call::Start`.
            Action::StartGuest(host, _) | Action::DestroyGuest(host, _) => (Verb::Destroy, Some(host)),
            Action::Snapshot(host, _) => (Verb::Snapshot, Some(host)),
            Action::PowerOn(host) => (Verb::PowerOn, Some(host)),
            Action::PowerOff(host) => (Verb::PowerOff, Some(host)),
            Action::Prepare(_) => (Verb::Prepare, None),
            Action::Finish(_) => (Verb::Finish, None),
            Action::SetRatios(host, ..) => (Verb::SetRatios, Some(host)),
        },
    }
}
