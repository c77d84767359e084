//! The leasing service without HTTP.
//!
//! A [`Service`] keeps what the store holds in memory, decides with the crate `leases`, commits what was
//! decided, and only then shows it. Its loop ([`Service::run`]) observes the fleet, heals, plans, commits, and
//! carries out the steps that are due, each on its own, so that a slow one delays nobody else.
//!
//! What can be asked of it and done with it is sorted by what it is about, as in `service.leases().create(..)`: a type each,
//! listed in `use_cases`.
//!
//! Who may do what is the server's business: calls here are made on behalf of a [`Caller`] who may.

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
