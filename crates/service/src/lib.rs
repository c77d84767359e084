//! The leasing service without HTTP.
//!
//! A [`Service`] keeps the store's contents in memory, decides with the crate `leases`, commits each
//! decision, and only then makes it visible. Its loop ([`Service::run`]) starts, heals and ends leases.
//!
//! ```text
//! request:  decide ─► commit to the store ─► update memory ─► answer
//! loop:     observe the fleet ─► decide ─► commit ─► claim steps ─► carry them out ─► observe again
//! ```
//!
//! - A service is opened with its [`Parts`] (store, fleet, clock, identifiers, enforcer) and [`Settings`].
//! - Operations are grouped by subject, as in `service.leases().create(..)`. Each group is a type, such as
//!   [`Leases`], [`Hosts`], [`CounterOffers`] or [`Waitlist`]. `use_cases` lists all of them.
//! - [`Execution`] is the loop, cycle by cycle. A cycle never waits for the fleet: each step runs on its own,
//!   so a slow step delays no other one.
//! - Calls are made on behalf of a [`Caller`] and fail with a [`ServiceError`]. The server does the
//!   authorization: here, a caller is assumed to be allowed to make its calls.
//!
//! Invariant: no request is answered with a change, and no machine is touched, before the decision behind it
//! is committed. Services that share a store learn of each other's commits. The store rejects a commit that
//! conflicts with one of these, and then the decision is made again.
//!
//! Start reading with `use_cases`, then `leasing::create` for a request from end to end, `transact` and
//! `writing` for commits, and `execution` for the loop.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod accounting;
mod attributes;
mod audit;
mod availability;
mod calendar;
mod capacity;
mod client;
mod clock_watch;
pub mod cost;
mod decider;
mod deciding;
mod departures;
mod displaced_offers;
mod drift;
mod effects;
mod ended;
mod energy;
mod entries;
mod execution;
mod external_scheduler;
mod flavors;
mod floating_ips;
mod free_pools;
mod guest_facts;
mod held_offers;
mod hints;
mod host_facts;
mod hosts;
mod hosts_now;
mod housekeeping;
mod instance_index;
mod instances;
mod lease_index;
mod lease_pools;
mod leasing;
mod levels;
mod lifetimes;
mod listing;
mod meter;
mod meters;
mod notices;
mod notifications;
mod occupied;
mod offers;
mod other_hosts;
mod payload;
mod places;
mod placing;
mod preemptible_projects;
mod projects;
mod properties;
mod proposals;
mod queue;
mod readiness;
mod refusals;
mod relocation;
mod samples;
mod service;
mod settings;
mod sorted;
mod state;
mod statistics;
mod suspension;
mod tokens;
mod traces;
mod transact;
mod turn;
mod types;
mod usage;
mod use_cases;
mod waiting;
mod waitlist;
mod writing;

pub use audit::Audit;
pub use calendar::{
    Bar, BarKind, CalendarHost, CalendarPage, CalendarQuestion, CalendarRow, CalendarStatus, CalendarView,
    CalendarViewer,
};
pub use capacity::Capacity;
pub use client::{Client, Request};
pub use drift::{Drift, Repairs};
pub use energy::PowerSaving;
pub use execution::{
    ClaimedStep, Cycle, Done, Execution, Look, Looked, PassReport, Performed, StepUnderWay, Task,
};
pub use flavors::Flavors;
pub use floating_ips::FloatingIps;
pub use free_pools::FreePools;
pub use guest_facts::GuestFacts;
pub use held_offers::OfferLimits;
pub use hosts::Hosts;
pub use hosts_now::{GuestNow, HostGroup, HostNow};
pub use housekeeping::Maintenance;
pub use instances::Instances;
pub use lease_pools::{LeasePoolHost, LeasePools};
pub use leasing::Leases;
pub use leasing::series::{Missing, NewSeries, Series};
pub use listing::{Page, Position};
pub use meters::is_for_meters;
pub use notifications::Notifications;
pub use offers::{CounterOffers, Hold, Offers};
pub use preemptible_projects::PreemptibleProjects;
pub use projects::Projects;
pub use properties::{Asked, Shown};
pub use readiness::NotReady;
pub use samples::Samples;
pub use service::{Parts, Service};
pub use settings::{EnergyMode, EnergySettings, Settings};
pub use suspension::Acceptable;
pub use tokens::Tokens;
pub use types::{
    AllocationFilter, Caller, Created, Enforcer, EnforcerVerdict, FreePoolChange, GrantedLease,
    HostAllocation, HostAnswer, HostPower, HostQuestion, HostRefusal, HostSelector, HostUpdate,
    IdempotencyKey, LeaseChanges, LeaseFilter, LeasePoolChange, LeaseUsage, NewFloatingIp, NewFreePool,
    NewInstance, NewLease, NewMaintenance, NotFound, Occupancy, OpenError, OtherInstances, Placing,
    PlannedMaintenance, PreemptibleUsage, Property, ServiceError, Statistics,
};
pub use usage::Usage;
pub use waitlist::Waitlist;
