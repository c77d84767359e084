//! Properties of the leasing core on random leases, changes and histories.

mod admitting;
mod calendar;
mod generate;
mod planning;
mod requirement;
