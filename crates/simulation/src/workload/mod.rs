//! Replays of recorded cluster workloads: advance reservations among best-effort jobs.
//!
//! [`replay`] runs a [`Trace`] in simulated time, with the real service, the store in memory and simulated
//! machines without faults, and returns [`Figures`]. A job with its own start is requested as a lease with
//! dates at the time of its submission, any other job as a best-effort lease. An owner whose job finishes
//! early deletes the lease. A [`Variant`] adds options of clients and of the service.
//!
//! Beside leases, [`Arrivals`] of virtual machines can become preemptible instances that fill the gaps
//! ([`Fill`]).
//!
//! `simulation workload --swf FILE --lwf FILE --variant NAME` prints the figures as a line of JSON.

mod arrivals;
mod command;
mod course;
mod figures;
mod filling;
mod ground;
mod guests;
mod replay;
#[cfg(test)]
mod tests;
mod trace;
mod variant;

pub use arrivals::{Arrival, Arrivals};
pub use command::{CommandError, command};
pub use figures::{Answers, Figures, Fill, Share, Spread};
pub use replay::{Pace, ReplayError, replay};
pub use trace::{Field, Job, Start, Trace, TraceError, Wrong};
pub use variant::Variant;
