//! The rules that the service asks for, and what they are unless a file says otherwise (API-policy).

/// Rules that others are made of.
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
        /// A rule that the service asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $($(#[$doc])* $variant),* }

        impl Rule {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name in a policy file and in answers.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What it is unless a file says otherwise.
            pub fn default(self) -> &'static str {
                match self { $(Self::$variant => $default),* }
            }
        }
    };
}

rules! {
    /// Seeing leases.
    LeasesGet "blazar:leases:get" READER;
    /// Making leases.
    LeasesPost "blazar:leases:post" MEMBER;
    /// Changing leases.
    LeasesPut "blazar:leases:put" MEMBER;
    /// Deleting leases.
    LeasesDelete "blazar:leases:delete" MEMBER;
    /// Giving instances of a lease extra specs: Nova leaves those of flavors to its operators as well.
    LeasesExtraSpecs "blazar:leases:extra_specs" ADMIN;
    /// Seeing hosts.
    HostsGet "blazar:oshosts:get" ADMIN;
    /// Entering hosts.
    HostsPost "blazar:oshosts:post" ADMIN;
    /// Changing hosts.
    HostsPut "blazar:oshosts:put" ADMIN;
    /// Giving hosts back.
    HostsDelete "blazar:oshosts:delete" ADMIN;
    /// Seeing what is reserved of hosts.
    HostsGetAllocations "blazar:oshosts:get_allocations" ADMIN;
    /// Seeing properties of hosts: names and values that requirements may use. Whoever may lease hosts has to know them.
    HostsGetProperties "blazar:oshosts:get_resource_properties" READER;
    /// Hiding and showing properties of hosts.
    HostsUpdateProperties "blazar:oshosts:update_resource_properties" ADMIN;
    /// Seeing free pools.
    FreePoolsGet "blazar:freepools:get" ADMIN;
    /// Making free pools, and putting hosts into them.
    FreePoolsPost "blazar:freepools:post" ADMIN;
    /// Changing free pools.
    FreePoolsPut "blazar:freepools:put" ADMIN;
    /// Removing free pools, and taking hosts out of them.
    FreePoolsDelete "blazar:freepools:delete" ADMIN;
    /// Seeing lease pools.
    LeasePoolsGet "blazar:leasepools:get" READER;
    /// Making lease pools.
    LeasePoolsPost "blazar:leasepools:post" MEMBER;
    /// Changing lease pools, and adding hosts to them.
    LeasePoolsPut "blazar:leasepools:put" MEMBER;
    /// Ending the leases of lease pools.
    LeasePoolsDelete "blazar:leasepools:delete" MEMBER;
    /// Seeing floating IPs.
    FloatingIpsGet "blazar:floatingips:get" READER;
    /// Entering floating IPs.
    FloatingIpsPost "blazar:floatingips:post" ADMIN;
    /// Taking floating IPs away.
    FloatingIpsDelete "blazar:floatingips:delete" ADMIN;
    /// Seeing flavors.
    FlavorsGet "blazar:flavors:get" READER;
    /// Entering flavors.
    FlavorsPost "blazar:flavors:post" ADMIN;
    /// Changing flavors.
    FlavorsPut "blazar:flavors:put" ADMIN;
    /// Taking flavors away.
    FlavorsDelete "blazar:flavors:delete" ADMIN;
    /// Seeing instances.
    InstancesGet "blazar:instances:get" READER;
    /// Starting instances.
    InstancesPost "blazar:instances:post" MEMBER;
    /// Starting instances again that are kept.
    InstancesStart "blazar:instances:start" MEMBER;
    /// Destroying instances.
    InstancesDelete "blazar:instances:delete" MEMBER;
    /// Asking which hosts may have an instance.
    InstancesFilter "blazar:instances:filter" ADMIN;
    /// Asking, as Nova does, what a server may know of itself.
    VendordataPost "blazar:vendordata:post" ADMIN;
    /// Reading the list of projects whose instances are preemptible.
    PreemptibleProjectsGet "blazar:preemptible_projects:get" ADMIN;
    /// Adding a project to that list.
    PreemptibleProjectsPut "blazar:preemptible_projects:put" ADMIN;
    /// Removing a project from that list.
    PreemptibleProjectsDelete "blazar:preemptible_projects:delete" ADMIN;
    /// Seeing notifications.
    NotificationsGet "blazar:notifications:get" READER;
    /// Seeing who did what.
    AuditGet "blazar:audit:get" ADMIN;
    /// Seeing usage and what it costs.
    UsageGet "blazar:usage:get" READER;
    /// Seeing which requests were refused for lack of capacity.
    CapacityGet "blazar:capacity:get" READER;
    /// Seeing how much is free when.
    AvailabilityGet "blazar:availability:get" READER;
    /// Seeing the calendar of all hosts: when they are taken, and by what of the caller's own project.
    CalendarGet "blazar:calendar:get" READER;
    /// Seeing there what is of other projects.
    CalendarGetNames "blazar:calendar:get_names" ADMIN;
    /// Asking about a Ganeti cluster that is sent along.
    PlacementPost "blazar:placement:post" MEMBER;
    /// Asking about clusters that the operator has named, and seeing their names.
    PlacementClusters "blazar:placement:clusters" ADMIN;
    /// Asking the same about the hosts of the service's own fleet and what runs there.
    PlacementFleet "blazar:placement:fleet" ADMIN;
    /// Seeing how power is saved.
    EnergyGet "blazar:energy:get" ADMIN;
    /// Booking maintenance of hosts.
    MaintenancePost "blazar:maintenance:post" ADMIN;
    /// Seeing where store and fleet differ.
    DriftGet "blazar:drift:get" ADMIN;
    /// Setting such differences right, and accepting a clock or a fleet.
    DriftRepair "blazar:drift:repair" ADMIN;
    /// Seeing what the operator has set.
    SettingsGet "blazar:settings:get" ADMIN;
    /// Seeing what people call users and projects.
    NamesGet "blazar:names:get" ADMIN;
}

/// The rule whose name has most in common with that.
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
