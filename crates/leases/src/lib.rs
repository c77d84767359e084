//! The leasing core: who may have which hosts, or room on them, from when to when, and how hosts change hands.
//!
//! This crate is pure. It performs no input or output, reads no clock and no environment, draws no random
//! numbers, and knows neither JSON nor a database. Time and identifiers are arguments; results are values.
//!
//! ```text
//! Terms ──admission──► Allocations ──► Lease ──► Calendar         what is promised
//!                                        │
//! Observed hosts, history ───────────────┴─plan──► changes of leases, next steps, when to look again
//! ```
//!
//! - A [`lease::Lease`] has a window of time and reservations: whole hosts, room for instances, addresses. What
//!   may be asked for is in [`terms`], what hosts are like in [`host`] and [`attributes`], what they must be like in
//!   [`requirement`] (Blazar's expressions), [`properties`] and [`extra_specs`] (Nova's words).
//! - The [`calendar`] knows what is taken when. [`admission`] decides about new leases and changed ones, and
//!   heals those whose hosts fail; it returns what to commit, or a refusal that says what to change. Room for
//!   instances is found by the placement core (crate `placement`).
//! - [`host_facts`] is what decisions know of hosts at the moment: who is on them, and which are off.
//! - [`occupancy`] says how much of a host is reserved, span by span.
//! - [`occupants`] records which instances were seen on the hosts of a lease, and when nothing was seen.
//! - A [`lease_type`] says whether a lease starts at its date, at once, or as soon as it can.
//! - An [`instance`] is started in a lease, or beside all leases, through the service itself.
//! - [`hints`] say where the hosts of a lease are to be, and how its instances are spread over them.
//! - A [`hunt`] makes room for a lease by moving guests of others away.
//! - A [`shortage`] says how much was missing for a refused request.
//! - An [`offer`] says what could be had instead of what was refused. A [`standing`] tells what is only offered, or
//!   waits for its turn, from leases.
//! - [`housekeeping`] reminds owners, and ends leases that nobody uses; [`maintenance`] finds times for it.
//! - [`enforcement`] holds the operator's limits, [`filters`] has those that the operator has chosen and counts what
//!   ruled hosts out. A [`length_limit`] on leases, and prices, can differ by project, flavor and free pool ([`scoped`]).
//! - A [`reason`] says why something does not get on, to owners and to administrators.
//! - [`status`] has the statuses of leases, reservations and events, and which may follow which. They are
//!   Blazar's, as its clients know them.
//! - [`energy`] says which hosts may be off when, and has them on again in time.
//! - [`text`] quotes what clients wrote, escapes what a terminal would obey, and finds lines of mistakes.
//! - [`usage`] says what leases hold and what runs in them, for sums over time and for bills.
//! - The planner, [`plan`], compares what leases want now with what was observed and says what to do next. It
//!   remembers nothing: after a crash it goes on from what is there.
//!
//! What always holds: windows are half-open and in UTC. Two leases never have the same host at the same instant,
//! and slots never use more than their host has. A refusal changes nothing. A lease that has started loses
//! nothing by a change. A host is held only after it was fenced, drained and verified, and a lease is ACTIVE only
//! when it holds all it was given. Every lease ends.
//!
//! What is not here: the store decides last whether a booking stands, and serialises decisions on one calendar;
//! the fleet performs steps; the server reads requests, cuts dates to minutes and asks external services.
//!
//! Identifiers such as `CLS-03`, `PRE-06` or `W5` are those of `docs/features.md`, which says of each what it asks for
//! and which tests prove it.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod admission;
pub mod attributes;
pub mod calendar;
mod end_action;
pub mod energy;
pub mod enforcement;
pub mod extra_specs;
pub mod failure_domain;
pub mod filters;
pub mod free_pool;
pub mod hints;
pub mod host;
pub mod host_facts;
pub mod housekeeping;
pub mod hunt;
pub mod ids;
pub mod instance;
pub mod lease;
pub mod lease_pool;
pub mod lease_type;
pub mod length_limit;
pub mod maintenance;
pub mod occupancy;
pub mod occupants;
pub mod offer;
pub mod plan;
pub mod preemption;
pub mod project;
pub mod properties;
pub mod quota;
pub mod reason;
pub mod requirement;
pub mod resources;
pub mod scarcity;
pub mod scoped;
pub mod shortage;
pub mod standing;
pub mod status;
pub mod terms;
#[cfg(test)]
mod testing;
pub mod text;
pub mod unseen;
pub mod usage;
pub mod window;
pub mod work;
