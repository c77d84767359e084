//! Properties of the leasing core on random leases, changes and histories.

mod admitting;
mod assigning;
mod availability;
mod calendar;
mod energy;
mod extra_specs;
mod generate;
mod hinting;
mod moving;
mod planning;
mod requirement;
