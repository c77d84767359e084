//! The service on the model store and a simulated fleet, in simulated time.
//!
//! Tests named `w1_...` check for mistakes that Blazar was seen to make (W).

mod adoption;
mod backfill;
mod bounds;
mod capacity;
mod changing;
mod creating;
mod deleting;
mod drift;
mod elsewhere;
mod energy;
mod enforcing;
mod faults;
mod forgetting;
mod free_pools;
mod hosts;
mod housekeeping;
mod hunts;
mod instances;
mod journals;
mod metering;
mod moving;
mod negotiating;
mod observing;
mod occupancy;
mod preemptible;
mod readiness;
mod recurring;
mod relocating;
mod reservations;
mod running;
mod sharing;
mod sparing;
mod stopped_instances;
mod suiting;
mod suspension;
mod telling;
mod terms;
mod timing;
mod types;
mod usage;
mod waiting;
