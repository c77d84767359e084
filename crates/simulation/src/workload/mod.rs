//! Workloads of clusters, replayed: advance reservations among jobs that start as soon as they can.
//!
//! [`replay`] goes through a [`Trace`] in simulated time, with the real service, the store in memory and simulated
//! machines on which nothing goes wrong, and says what that came to ([`Figures`]). A job with a start of its own is asked
//! for as a lease with dates at the moment of its submission, any other as a best-effort lease. An owner whose job is
//! done before its time deletes the lease. A [`Variant`] says what clients and the service do beside that.
//!
//! Beside leases, [`Arrivals`] of virtual machines may be preemptible instances that fill the gaps ([`Fill`]).
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
