//! Rules that the service checks, and their defaults (API-policy).

/// Building blocks of other rules.
pub(super) const SHARED: [(&str, &str); 4] = [
    ("admin", "is_admin:True or role:admin"),
    ("admin_or_owner", "rule:admin or project_id:%(project_id)s"),
    ("project_reader_or_admin", "rule:admin or (role:reader and project_id:%(project_id)s)"),
    ("project_member_or_admin", "rule:admin or (role:member and project_id:%(project_id)s)"),
];

const READER: &str = "rule:project_reader_or_admin";
const MEMBER: &str = "rule:project_member_or_admin";
const ADMIN: &str = "rule:admin";

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $name:literal $default:ident;)*) => {
        /// A policy rule that the service checks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $($(#[$doc])* $variant),* }

        impl Rule {
            /// All rules.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Name in policy files and in the API.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Default definition, unless a policy file overrides it.
            pub fn default(self) -> &'static str {
                match self { $(Self::$variant => $default),* }
            }
        }
    };
}

rules! {
    LeasesGet "blazar:leases:get" READER;
    LeasesPost "blazar:leases:post" MEMBER;
    LeasesPut "blazar:leases:put" MEMBER;
    LeasesDelete "blazar:leases:delete" MEMBER;
    /// Setting extra specs for instances of a lease. Nova reserves the extra specs of flavors for its
    /// operators, too.
    LeasesExtraSpecs "blazar:leases:extra_specs" ADMIN;
    HostsGet "blazar:oshosts:get" ADMIN;
    HostsPost "blazar:oshosts:post" ADMIN;
    HostsPut "blazar:oshosts:put" ADMIN;
    HostsDelete "blazar:oshosts:delete" ADMIN;
    HostsGetAllocations "blazar:oshosts:get_allocations" ADMIN;
    /// Listing host properties: names and values for requirements. Users who lease hosts need them.
    HostsGetProperties "blazar:oshosts:get_resource_properties" READER;
    /// Hiding and showing host properties.
    HostsUpdateProperties "blazar:oshosts:update_resource_properties" ADMIN;
    FreePoolsGet "blazar:freepools:get" ADMIN;
    /// Creating free pools, and adding hosts to them.
    FreePoolsPost "blazar:freepools:post" ADMIN;
    FreePoolsPut "blazar:freepools:put" ADMIN;
    /// Deleting free pools, and removing hosts from them.
    FreePoolsDelete "blazar:freepools:delete" ADMIN;
    LeasePoolsGet "blazar:leasepools:get" READER;
    LeasePoolsPost "blazar:leasepools:post" MEMBER;
    /// Changing lease pools, and adding hosts to them.
    LeasePoolsPut "blazar:leasepools:put" MEMBER;
    /// Ending the leases of a lease pool.
    LeasePoolsDelete "blazar:leasepools:delete" MEMBER;
    FloatingIpsGet "blazar:floatingips:get" READER;
    FloatingIpsPost "blazar:floatingips:post" ADMIN;
    FloatingIpsDelete "blazar:floatingips:delete" ADMIN;
    FlavorsGet "blazar:flavors:get" READER;
    FlavorsPost "blazar:flavors:post" ADMIN;
    FlavorsPut "blazar:flavors:put" ADMIN;
    FlavorsDelete "blazar:flavors:delete" ADMIN;
    InstancesGet "blazar:instances:get" READER;
    InstancesPost "blazar:instances:post" MEMBER;
    /// Starting a kept instance again.
    InstancesStart "blazar:instances:start" MEMBER;
    InstancesDelete "blazar:instances:delete" MEMBER;
    /// Asking which hosts can accept an instance.
    InstancesFilter "blazar:instances:filter" ADMIN;
    /// Requesting vendor data for a server, as Nova does.
    VendordataPost "blazar:vendordata:post" ADMIN;
    /// Listing projects whose instances are preemptible.
    PreemptibleProjectsGet "blazar:preemptible_projects:get" ADMIN;
    PreemptibleProjectsPut "blazar:preemptible_projects:put" ADMIN;
    PreemptibleProjectsDelete "blazar:preemptible_projects:delete" ADMIN;
    NotificationsGet "blazar:notifications:get" READER;
    AuditGet "blazar:audit:get" ADMIN;
    /// Seeing usage and its cost.
    UsageGet "blazar:usage:get" READER;
    /// Seeing requests that were rejected for lack of capacity.
    CapacityGet "blazar:capacity:get" READER;
    /// Seeing free capacity over time.
    AvailabilityGet "blazar:availability:get" READER;
    /// Seeing the calendar of all hosts: when they are reserved, with details for the caller's own project
    /// only.
    CalendarGet "blazar:calendar:get" READER;
    /// Seeing details of other projects in the calendar.
    CalendarGetNames "blazar:calendar:get_names" ADMIN;
    /// Asking about a Ganeti cluster that the request describes.
    PlacementPost "blazar:placement:post" MEMBER;
    /// Listing the operator's named clusters, and asking about them.
    PlacementClusters "blazar:placement:clusters" ADMIN;
    /// Asking about the hosts and guests of the service's own fleet.
    PlacementFleet "blazar:placement:fleet" ADMIN;
    /// Seeing power-saving plans, reports and states.
    EnergyGet "blazar:energy:get" ADMIN;
    /// Booking maintenance of hosts.
    MaintenancePost "blazar:maintenance:post" ADMIN;
    /// Seeing differences between store and fleet.
    DriftGet "blazar:drift:get" ADMIN;
    /// Repairing such differences, and accepting a clock or a fleet.
    DriftRepair "blazar:drift:repair" ADMIN;
    /// Seeing the operator's settings.
    SettingsGet "blazar:settings:get" ADMIN;
    /// Seeing display names of users and projects.
    NamesGet "blazar:names:get" ADMIN;
}

/// The rule whose name has the most letter pairs in common with `name`, for hints about typos.
pub(super) fn nearest(name: &str) -> Rule {
    let pairs = |text: &str| text.as_bytes().windows(2).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let wanted = pairs(name);
    let likeness = |rule: &Rule| {
        let known = pairs(rule.name());
        let common = wanted.iter().filter(|pair| known.contains(pair)).count();
        (common * 2).saturating_sub(known.len().abs_diff(wanted.len()))
    };
    Rule::ALL.into_iter().rev().max_by_key(likeness).unwrap_or(Rule::LeasesGet)
}
