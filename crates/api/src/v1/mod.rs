//! Version 1 of the API: Blazar's (API).

mod audit;
mod availability;
pub mod body;
mod calendar;
mod capacity;
mod date;
mod drift;
mod end_action;
mod energy;
mod error;
mod error_body;
mod fields;
mod flavor;
mod floating_ip;
mod free_pool;
mod hints;
mod host;
mod host_properties;
mod id;
mod instance;
mod lease;
mod lease_dates;
mod lease_pool;
mod lease_request;
pub mod limits;
mod maintenance;
mod notification;
mod occupancy;
mod offer;
mod placement;
mod plan;
mod preemptible;
mod python;
mod repeat;
mod requirement;
mod reservation_request;
mod sent_back;
mod session;
mod settings;
mod usage;
mod vendordata;

pub use audit::AuditEntry;
pub use availability::{Availability, FlavorAvailability, FlavorStep, FreeStep, Span};
pub use calendar::{Calendar, CalendarBar, CalendarChange, CalendarHost, CalendarLease};
pub use capacity::{MetBy, RefusedRequests};
pub use date::{Written, created_at, date, minute, read_written, rfc_3339};
pub use drift::DriftEntry;
pub use end_action::end_action_from_name;
pub use energy::{EnergyHost, EnergyNeed, EnergyPool, EnergyPoolReport, EnergyRest, horizon};
pub use error::RequestError;
pub use error_body::ErrorBody;
pub use fields::{UnknownFields, ignored_names};
pub use flavor::{Flavor, FlavorRequest};
pub use floating_ip::{FloatingIp, FloatingIpRequest};
pub use free_pool::{FreePool, FreePoolRequest};
pub use hints::{OfferedHint, OfferedHints, SchedulerHints};
pub use host::{
    AllocatedReservation, Allocation, Host, HostChanges, HostName, HostRequest, Property, ResourceProperty,
    read_property_update,
};
pub use id::{floating_ip_id, host_id, instance_id, lease_id, reservation_id, series_id};
pub use instance::{
    HostAnswer, HostsAnswer, HostsQuestionRequest, Instance, InstanceRequest, PlacingRequest,
};
pub use lease::{Event, Instances, Lease, Names, Reservation, Resource, reservation_properties};
pub use lease_dates::read_length;
pub use lease_pool::{
    LeasePool, LeasePoolHost, LeasePoolInstance, LeasePoolRequest, MoreHosts, lease_of_pool, swapped_host,
};
pub use lease_request::{LeaseRequest, LeaseUpdate};
pub use limits::Limits;
pub use maintenance::{Maintenance, MaintenanceRequest};
pub use notification::Notification;
pub use occupancy::OccupancyInterval;
pub use offer::{Offer, WaitlistEntry, read_hold};
pub use placement::{
    AskedCluster, BalanceQuestion, DrainQuestion, FitQuestion, PlacementQuestion, PlacementRequest,
    RapiDocuments, WhatifQuestion,
};
pub use plan::{Plan, PlanSummary, PlannedMove};
pub use preemptible::{PreemptibleProject, PreemptibleUsage, hours};
pub use repeat::{Repeat, Series, Skipped};
pub use requirement::read_requirement;
pub use reservation_request::{FindFlavor, asked_flavor, read_asked, read_reserved};
pub use session::SessionOf;
pub use settings::{KnownNames, SettingOf};
pub use usage::{BillingLine, Cost, LeaseUsage, Reserved, Usage, UsageEvent, Used};
pub use vendordata::{Vendordata, VendordataLease, read_vendordata_request};
