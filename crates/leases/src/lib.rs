//! Leasing decisions: which project uses which hosts, instances and addresses, and when.
//!
//! The crate is pure: no I/O, clock, environment, random numbers, JSON or database. Callers pass the time and new
//! identifiers as arguments, and commit the values that are returned.
//!
//! ```text
//! Terms ──admission──► Allocations ──► Lease ──► Calendar
//!                                        │
//! Observed hosts, history ───────────────┴─plan──► lease changes, next steps, time of the next run
//! ```
//!
//! Start with these modules:
//!
//! - [`lease`] and [`terms`]: a [`lease::Lease`] has a window of time and reservations of whole hosts, instances or
//!   addresses. [`host`] describes hosts, [`requirement`] evaluates Blazar's expressions, and [`extra_specs`] Nova's.
//! - [`calendar`]: bookings of each host over time.
//! - [`admission`]: decides on requests to create or change a lease, and replaces failed hosts. The result is a lease
//!   to commit, or a refusal that says what to change. Crate `placement` places instances.
//! - [`plan`]: compares leases with observed hosts and returns the next steps. It keeps no state, so a restarted
//!   service continues from what it observes.
//!
//! The other modules by purpose:
//!
//! - Alternatives to a refusal: [`offer`], [`shortage`], [`standing`] (offers and waiting requests), [`hunt`] (best-effort
//!   leases that move other instances away).
//! - Limits: [`enforcement`], [`filters`], [`quota`], [`length_limit`], and [`scoped`] limits by project, flavor and pool.
//! - Instances: [`instance`], [`hints`], [`preemption`], [`occupants`] (which instances were seen on leased hosts).
//! - Operation: [`host_facts`], [`housekeeping`], [`maintenance`], [`energy`], [`usage`].
//! - Messages: [`status`] (Blazar's names), [`reason`] (why a lease makes no progress), [`text`] (quoting and escaping).
//!
//! Invariants: windows are half-open, in UTC. No two leases have the same host at the same time, and instances never
//! exceed their host. A refusal changes nothing. A change never takes anything from a lease that has started. A lease
//! gets a host only after the host was fenced, drained and verified, and is ACTIVE only with all of its resources.
//! Every lease ends.
//!
//! The store enforces bookings and orders commits, the fleet carries out steps, and the server parses requests.
//! Identifiers such as `CLS-03` or `PRE-06` refer to `docs/reference/features.md`.

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
