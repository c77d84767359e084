//! All settings, with their keys, descriptions and places in the [`Configuration`](super::Configuration),
//! which has their defaults.

use super::notation::{
    AtLeast, Clusters, Forever, Gib, HttpUrl, Lengths, LogLevels, Name, Notation, Parts, Plain, Seconds,
    Unlimited, Within, ZeroForNone, ZeroOrNothing,
};
use super::setting::Setting;

/// Makes the table. A row has the key, what stands for the value in help, and the place; then how the value is written,
/// if not as all of its kind (`as`), and the unit that durations are shown in, if not the largest that will do (`in`).
macro_rules! settings {
    ($(
        $(#[doc = $help:literal])+
        $key:literal $value_name:literal =>
            $part:ident $(. $field:tt)* $(as $notation:ident $(<$($bound:literal),+>)?)? $(in $unit:literal)?;
    )+) => {
        /// The settings, in the order in which they are documented.
        pub(crate) const TABLE: &[Setting] = &[
            $( Setting {
                key: $key,
                value_name: $value_name,
                help: concat!($($help),+),
                unit: unit!($($unit)?),
                read: |configuration, text| {
                    configuration.$part$(.$field)* =
                        <notation!($($notation $(<$($bound),+>)?)?) as Notation<_>>::parse(text)?;
                    Ok(())
                },
                show: |configuration| {
                    <notation!($($notation $(<$($bound),+>)?)?) as Notation<_>>::show(&configuration.$part$(.$field)*)
                },
            }, )+
        ];
    };
}

/// How a value is written.
macro_rules! notation {
    () => { Plain };
    ($notation:ident $(<$($bound:literal),+>)?) => { $notation $(<$($bound),+>)? };
}

/// The unit that durations are shown in.
macro_rules! unit {
    () => {
        None
    };
    ($unit:literal) => {
        Some($unit)
    };
}

settings! {
    /// Address and port to listen on
    "listen" "ADDR:PORT" => server.listen;
    /// URL of the service for clients, used in catalogs and links; without it, the address that the request
    /// was sent to
    "public_url" "URL" => server.public_url as HttpUrl;
    /// Database URL: `sqlite://FILE`, `postgres://USER:PASSWORD@HOST,HOST/DATABASE`, which several services
    /// can share, or `memory`, which is lost when the service stops
    "database" "DATABASE" => database;
    /// Driver of the machines: `simulated`, `openstack`, which uses Nova (see `[openstack]`), or
    /// `hooks:FILE`, which calls the programs and webhooks in the file
    "fleet" "FLEET" => fleet;
    /// Authentication: `none` (every client is the administrator; loopback addresses only), `keystone` (of a
    /// cloud, see `[keystone]`), `tokens:FILE`, `basic:FILE`, `local-keystone:FILE` (the service itself
    /// issues tokens to the users in the file), or several of these, separated by commas
    "auth" "METHOD" => auth;
    /// Lifetime of tokens issued by local-keystone
    "token_lifetime" "DURATION" => server.auth.token_lifetime as AtLeast<1>;
    /// File with keys for signing tokens of local-keystone, one per line: the first signs, and all are
    /// accepted; without it, the service generates keys and keeps them in the database
    "token_key_file" "FILE" => server.auth.token_key_file;
    /// Lifetime of a console session; a session that was started with a token ends no later than the token
    "session_lifetime" "DURATION" => server.auth.session_lifetime as AtLeast<1>;
    /// Access rules that differ from the default, in the format of oslo.policy (YAML)
    "policy_file" "FILE" => server.policy_file;
    /// Name of this service among services that share a database; without it, the host name of the machine
    "name" "NAME" => name;
    /// Region of this service; leases for another region are rejected
    "region" "NAME" => service.rules.region;

    /// Status of responses that report a shortage of capacity: 400, 409 or 500. Azimuth's operator reports
    /// 400 and 500 to its user, and retries forever after any other status; Blazar responds with 500
    "api.shortage_status" "STATUS" => server.shortage_status;

    /// URL of the cloud's Keystone, such as `http://HOST:5000/v3`; with `auth = "keystone"`, its tokens are
    /// accepted
    "keystone.auth_url" "URL" => keystone.login.auth_url as HttpUrl;
    /// User that the service logs in as to validate tokens; it needs the role `service`
    "keystone.username" "NAME" => keystone.login.username;
    /// Domain of the user
    "keystone.user_domain" "NAME" => keystone.login.user_domain as Name;
    /// Project that the user logs in for
    "keystone.project" "NAME" => keystone.login.project as Name;
    /// Domain of the project
    "keystone.project_domain" "NAME" => keystone.login.project_domain as Name;
    /// ID of an application credential to log in with instead of a user name
    "keystone.application_credential" "ID" => keystone.login.application_credential;
    /// File with the password of the user or the secret of the application credential; read at each login
    "keystone.secret_file" "FILE" => keystone.login.secret_file;
    /// CA certificates (PEM) for Keystone; without it, the certificates of the system
    "keystone.ca_file" "FILE" => keystone.login.ca_file;
    /// URL in `WWW-Authenticate`, where clients without a valid token can get one; without it,
    /// `keystone.auth_url`
    "keystone.www_authenticate_uri" "URL" => keystone.www_authenticate_uri as HttpUrl;
    /// Timeout of requests to Keystone
    "keystone.timeout" "DURATION" => keystone.login.timeout as AtLeast<1>;
    /// Time for which valid tokens are cached; a revoked token can be accepted for this time
    "keystone.cache_time" "DURATION" => keystone.validation.cache_time in 's';
    /// Maximum number of valid tokens in the cache, and of invalid ones
    "keystone.cached_tokens" "N" => keystone.validation.cached_tokens;
    /// Additional time for which valid tokens are accepted while Keystone is unreachable
    "keystone.outage_time" "DURATION" => keystone.validation.outage_time;
    /// Maximum number of tokens being validated by Keystone at once
    "keystone.validations_at_once" "N" => keystone.validation.validations_at_once as AtLeast<1>;

    /// URL of the cloud's Keystone, such as `http://HOST:5000/v3`; without it, `keystone.auth_url`
    "openstack.auth_url" "URL" => openstack.login.auth_url as HttpUrl;
    /// User for requests to Nova and Placement; it needs the role `service`, and a role that Nova's policy
    /// treats as an administrator
    "openstack.username" "NAME" => openstack.login.username;
    /// Domain of the user
    "openstack.user_domain" "NAME" => openstack.login.user_domain as Name;
    /// Project that the user logs in for
    "openstack.project" "NAME" => openstack.login.project as Name;
    /// Domain of the project
    "openstack.project_domain" "NAME" => openstack.login.project_domain as Name;
    /// ID of an application credential to log in with instead of a user name
    "openstack.application_credential" "ID" => openstack.login.application_credential;
    /// File with the password of the user or the secret of the application credential; read at each login
    "openstack.secret_file" "FILE" => openstack.login.secret_file;
    /// CA certificates (PEM) for the cloud's services; without it, `keystone.ca_file`
    "openstack.ca_file" "FILE" => openstack.login.ca_file;
    /// Interface of endpoints in the catalog: `public`, `internal` or `admin`
    "openstack.interface" "INTERFACE" => openstack.interface;
    /// Method that keeps other servers off the hosts of a lease: `blazar-filter`, `allot-filter`, `tenant` or
    /// `traits`
    "openstack.fence" "FENCE" => openstack.fence;
    /// Whether servers of any project can run in the free pool, and hosts can be added while they have
    /// servers; only with `allot-filter`
    "openstack.open_pool" "BOOL" => openstack.open_pool;
    /// Flavors, by ID or name, that are copied for the servers of each lease of hosts, separated by commas;
    /// without it, all public flavors that aren't preemptible; only with `traits`
    "openstack.lease_flavors" "LIST" => openstack.lease_flavors;
    /// Name of the free pool's aggregate, as in blazar-nova's `aggregate_freepool_name`; created if it
    /// doesn't exist
    "openstack.free_pool" "NAME" => openstack.driver.free_pool as Name;
    /// Time after a change to an aggregate in which Nova's schedulers can still use the old state; the host
    /// stays closed for this time, and is then observed again
    "openstack.settle" "DURATION" => openstack.driver.settle;
    /// Hooks that switch compute hosts on and off, for `energy.enabled` (TOML; example in docs/how-to/openstack.md)
    "openstack.power_file" "FILE" => openstack.power_file;
    /// Time that a compute service must be down, while most others are up, before its host counts as failed
    /// and is replaced in its leases; `0s` for immediately
    "openstack.failed_after" "DURATION" => openstack.driver.failed_after;
    /// Maximum duration of a live migration started by the service; after that, it is aborted and the server
    /// stays on its host; `0s` for as long as Nova allows
    "openstack.migration_time" "DURATION" => openstack.driver.migration_time;
    /// Maximum time for making images of the servers on one host before they are deleted with their lease, if
    /// that is its end action or its action before the end; tried three times, then the lease continues
    /// without the missing images
    "openstack.image_time" "DURATION" => openstack.driver.image_time as AtLeast<1>;
    /// Timeout of requests to Nova and Placement; a page of 1000 servers can take several seconds
    "openstack.timeout" "DURATION" => openstack.login.timeout as AtLeast<1> in 's';

    /// Certificate chain (PEM); enables HTTPS
    "tls.certificate" "FILE" => tls.certificate;
    /// Private key of the certificate (PEM)
    "tls.key" "FILE" => tls.key;
    /// CA certificates (PEM) that clients' certificates must be issued by; without it, clients need no
    /// certificate
    "tls.client_ca" "FILE" => tls.client_ca;

    /// Number of racks
    "simulated.racks" "N" => simulated.racks as AtLeast<1>;
    /// Machines in each rack
    "simulated.hosts_per_rack" "N" => simulated.hosts_per_rack as AtLeast<1>;
    /// Seed of the random numbers
    "simulated.seed" "N" => simulated.seed;
    /// Duration of operations on the machines: lifelike, or immediate, for measurements of the service alone
    "simulated.timing" "TIMING" => simulated.timing;
    /// Whether guests come and go, so that hosts must be emptied for leases
    "simulated.background_load" "BOOL" => simulated.background_load;
    /// File for the state of the machines; without it, a file beside the database
    "simulated.state_file" "FILE" => simulated.state_file;

    /// Time that a host must be free before and after a lease of the whole host
    "leases.cleaning_time" "DURATION" => service.cleaning_time;
    /// Time for other tenants' guests to shut down before they are deleted from a host that is handed over
    "leases.grace" "DURATION" => service.plan_rules.grace;
    /// Time before the end of a lease at which the warning is sent and the action before the end is taken; 0s
    /// for never
    "leases.before_end_lead" "DURATION" => service.rules.before_end_lead as ZeroForNone in 'm';
    /// Action before the end for leases that don't choose one: nothing or snapshot
    "leases.before_end_action" "ACTION" => service.plan_rules.before_end;
    /// Action for guests at the end, if neither the lease nor the free pool of its hosts sets one: delete,
    /// keep, snapshot or migrate. Blazar deletes them
    "leases.end_action" "ACTION" => service.end_action;
    /// Leases that start within this time get replacements for failed hosts, and failed hosts can only be
    /// leased for later times; 0s for no limit
    "leases.healing_interval" "DURATION" => service.healing_interval.0 as ZeroForNone;
    /// Maximum delay of a lease that starts immediately, until its hosts are ready. If it isn't longer than
    /// leases.grace, such leases get no hosts with preemptible instances
    "leases.immediate_wait" "DURATION" => service.rules.deadlines.immediate as AtLeast<1>;
    /// Maximum wait of a lease that starts as soon as possible, if it doesn't request another
    "leases.best_effort_timeout" "DURATION" => service.rules.deadlines.best_effort as AtLeast<1>;
    /// Maximum wait that a lease that starts as soon as possible can request
    "leases.best_effort_max_timeout" "DURATION" => service.rules.deadlines.longest as AtLeast<1>;
    /// Whether other tenants' guests can be moved to other hosts for leases that start as soon as possible
    "leases.hunts" "BOOL" => service.rules.hunting.enabled;
    /// Whether hunts must leave capacity for the guests of any one host that fails
    "leases.hunt_n_plus_one" "BOOL" => service.rules.hunting.n_plus_one;
    /// Maximum time to clear the hosts of one lease, as estimated
    "leases.hunt_longest" "DURATION" => service.rules.hunting.longest as AtLeast<1>;
    /// Speed of copying guests to other hosts, in MiB per second, for estimates
    "leases.hunt_speed" "N" => service.rules.hunting.mib_per_second as AtLeast<1>;
    /// Maximum number of guests moved at once for one lease
    "leases.moves_at_once" "N" => service.plan_rules.moves_at_once as AtLeast<1>;
    /// Time for which offers are held unless the client asks for another, with a maximum of 15 minutes; 0s
    /// never holds any
    "leases.offer_hold" "DURATION" => service.offer_hold;
    /// Refusals whose offers are held for one user at once; beyond that, the oldest are withdrawn. 0 never
    /// holds any
    "leases.offers_at_once" "N" => service.offer_limits.at_once;
    /// Refusals whose offers are held for one user in an hour; later offers are shown but not held
    "leases.offers_hourly" "N" => service.offer_limits.hourly;
    /// Maximum time ahead of a later start that is offered
    "leases.offers_ahead" "DURATION" => service.offers_ahead;
    /// Leases that start sooner than this keep their hosts; leases that start later can get other hosts to
    /// free capacity
    "leases.replan_notice" "DURATION" => service.replan_notice;
    /// Maximum number of requests of a project on the waitlist
    "leases.waitlist_limit" "N" => service.waitlist_limit;
    /// Longest lease, which can differ by project, flavor and free pool: `14d,pool:gpu=7d,flavor:m1.huge=1d`;
    /// without it, there is no limit
    "leases.max_duration" "DURATION,SCOPE=DURATION,..." => service.rules.enforcement.max_lease_duration as Lengths;
    /// Time before the end in which a lease can be extended, by up to the longest duration again; without it,
    /// at any time, and its total length is limited
    "leases.extension_window" "DURATION" => service.rules.enforcement.extension_window;
    /// Maximum total duration of a project's leases on hosts of one free pool, consecutive or concurrent;
    /// without it, there is no limit
    "leases.max_stack" "DURATION" => service.rules.enforcement.max_stack as AtLeast<1>;
    /// Projects without limits on the length of leases and without quotas of leases, separated by commas
    "leases.exempt_projects" "LIST" => service.rules.enforcement.exempt_projects;
    /// Time for which ended leases are kept; then they are removed like deleted ones, and their usage stays
    /// in reports and billing. `forever` keeps them
    "leases.keep" "DURATION" => service.keep_leases as Forever;

    /// Time after its start at which a lease without instances causes a warning; without it, never
    "housekeeping.unused_warning" "DURATION" => service.housekeeping.unused_warning as AtLeast<1>;
    /// Time after its start at which a lease without instances is ended, with a warning before; without it,
    /// never
    "housekeeping.unused_reclaim" "DURATION" => service.housekeeping.unused_reclaim as AtLeast<1>;
    /// Time before the start and the end of a lease at which its owner is reminded; without it, never
    "housekeeping.reminders" "DURATION" => service.housekeeping.reminder as ZeroOrNothing;
    /// Number of hosts that the owner of a lease can swap
    "housekeeping.swaps" "N" => service.housekeeping.swaps;
    /// Properties of the hosts for requests without requirements, if such hosts exist: `["not", ["==",
    /// "$gpu", "yes"]]`
    "housekeeping.default_properties" "JSON" => service.housekeeping.default_properties;
    /// Project that maintenance of hosts is booked for; without it, maintenance can't be booked
    "housekeeping.maintenance_project" "PROJECT" => service.housekeeping.maintenance_project;

    /// Maximum number of leases of a project that haven't ended, or `unlimited`; without it, 1,000 with
    /// authentication, and ten times as many for users with the role admin or service
    "quota.leases" "N" => service.rules.enforcement.quota.leases as Unlimited;
    /// Maximum number of whole hosts in a project's leases at any one time
    "quota.hosts" "N" => service.rules.enforcement.quota.hosts;
    /// Maximum number of host-hours in a project's leases that haven't ended: hosts times the hours from
    /// start to end
    "quota.host_hours" "N" => service.rules.enforcement.quota.host_hours;
    /// Maximum number of instances reserved in a project's leases at any one time
    "quota.instances" "N" => service.rules.enforcement.quota.instances;

    /// Maximum number of instances of a project outside leases; without it, limited by capacity only.
    /// Preemptible instances count separately
    "instances.quota" "N" => service.quotas.regular.instances;
    /// Maximum total of virtual CPUs of a project's instances outside leases
    "instances.quota_vcpus" "N" => service.quotas.regular.vcpus;
    /// Maximum total of memory of a project's instances outside leases
    "instances.quota_memory_gib" "GIB" => service.quotas.regular.memory_mib as Gib;

    /// Whether instances can be preemptible: they run on hosts of the free pool until the next lease of their
    /// host
    "preemptible.enabled" "BOOL" => service.preemption.allowed;
    /// Projects whose instances are preemptible unless a request says otherwise, separated by commas; `*`
    /// matches any text, `?` any character. In a cloud only with the fences `allot-filter` and `tenant`, by
    /// project ID
    "preemptible.projects" "LIST" => service.preemption.projects;
    /// Parts of a request that can mark its instance as preemptible, separated by commas: its scheduler
    /// `hint`, or the property blazar:preemptible of its `flavor`, its `image` or a `volume`. In a cloud, the
    /// default is all marks that the fence detects; with the fence `traits` only `flavor`
    "preemptible.marks" "LIST" => service.preemption.marks;
    /// Minimum time that a preemptible instance is expected to run where it is placed
    "preemptible.least_lifetime" "DURATION" => service.preemption.least_lifetime;
    /// Maximum time that a preemptible instance can run: it is gone by then, and is asked to leave ahead by
    /// its notice; without it, there is no limit
    "preemptible.max_lifetime" "DURATION" => service.plan_rules.max_lifetime as ZeroOrNothing;
    /// Time before the start of a lease at which its hosts must be free of preemptible instances; they are
    /// asked to leave leases.grace before that
    "preemptible.margin" "DURATION" => preemptible.margin;
    /// Time in which preemptible instances are moved to another gap, if a long enough gap exists, before they
    /// are asked to leave; 0 to never move them
    "preemptible.moving_time" "DURATION" => service.plan_rules.moving_time;
    /// Whether preemptible instances can run on unused hosts of leases whose owners allow it
    "preemptible.backfill" "BOOL" => service.plan_rules.backfill;
    /// Classes of preemptible instances, each with the time to shut down before deletion, separated by
    /// commas: `batch=10m:stop,spot=30s`; with `:stop`, the instance is kept and can be started again;
    /// instances without a class have leases.grace
    "preemptible.classes" "LIST" => service.preemption.classes;
    /// Maximum number of preemptible instances of a project; without it, limited by capacity only
    "preemptible.quota" "N" => service.quotas.preemptible.instances;
    /// Maximum total of virtual CPUs of a project's preemptible instances
    "preemptible.quota_vcpus" "N" => service.quotas.preemptible.vcpus;
    /// Maximum total of memory of a project's preemptible instances
    "preemptible.quota_memory_gib" "GIB" => service.quotas.preemptible.memory_mib as Gib;
    /// Maximum number of core-hours of a project's preemptible instances within the window; beyond that, it
    /// can't start more for a while. Without it, there is no limit
    "preemptible.usage_limit" "N" => preemptible.usage_limit;
    /// Length of the window for `preemptible.usage_limit`
    "preemptible.usage_window" "DURATION" => preemptible.usage_window as AtLeast<60> in 'h';

    /// Retention of past usage and of its events
    "usage.keep" "DURATION" => service.keep_usage as Forever;
    /// Currency of prices, as shown to users
    "usage.currency" "NAME" => service.prices.currency;
    /// Price of a lease, charged once when it starts. This price and the following ones can differ by
    /// project, flavor and free pool: `2,pool:gpu=5,project:staff=0`
    "usage.price_lease" "PRICE,SCOPE=PRICE,..." => service.prices.lease;
    /// Price of a whole host per hour
    "usage.price_host_hour" "PRICE,SCOPE=PRICE,..." => service.prices.host_hour;
    /// Price of a reserved instance per hour, in addition to its CPUs and memory
    "usage.price_slot_hour" "PRICE,SCOPE=PRICE,..." => service.prices.slot_hour;
    /// Price of a CPU of reserved instances per hour
    "usage.price_core_hour" "PRICE,SCOPE=PRICE,..." => service.prices.core_hour;
    /// Price of a GiB of memory of reserved instances per hour
    "usage.price_gib_hour" "PRICE,SCOPE=PRICE,..." => service.prices.gib_hour;
    /// Price of a floating IP per hour
    "usage.price_address_hour" "PRICE,SCOPE=PRICE,..." => service.prices.address_hour;
    /// Price of an instance in a lease per hour, in addition to the lease
    "usage.price_instance_hour" "PRICE,SCOPE=PRICE,..." => service.prices.instance_hour;
    /// Fraction of the prices of CPUs and memory that preemptible instances cost: `0.25`; with 0 they are
    /// free
    "usage.price_preemptible" "PART,SCOPE=PART,..." => service.prices.preemptible as Parts;

    /// Whether unneeded hosts are switched off, and on again in time; the fleet must support it
    "energy.enabled" "BOOL" => energy.enabled;
    /// Whether power saving is only planned, and no host is switched off
    "energy.dry_run" "BOOL" => energy.dry_run;
    /// Number of unneeded hosts of each free pool that stay on
    "energy.spare_hosts" "N" => service.energy.rules.spare_hosts;
    /// Minimum boot time to plan with, even if measured times are shorter; also used for hosts without
    /// measurements
    "energy.boot_time" "DURATION" => service.energy.rules.shortest_boot;
    /// Hosts are switched on early enough to be ready this long before a lease needs them. Half of it is left
    /// to replace a host that doesn't boot
    "energy.margin" "DURATION" => service.energy.rules.margin;
    /// Minimum time that a host must be able to stay off to be switched off
    "energy.shortest_rest" "DURATION" => service.energy.rules.shortest_rest;
    /// Maximum number of times that a host is switched off in a day
    "energy.rests_a_day" "N" => service.energy.rules.rests_a_day as AtLeast<1>;
    /// Maximum number of hosts that boot at the same time
    "energy.boots_at_once" "N" => service.energy.rules.boots_at_once as AtLeast<1>;
    /// Whether leases that haven't started get other hosts if these use less power, at most once a day, and
    /// not within `leases.replan_notice` of their start
    "energy.repack" "BOOL" => energy.repack;
    /// Minimum saving of a change of hosts by `energy.repack`, in watt-hours
    "energy.repack_watt_hours" "N" => energy.repack_watt_hours;
    /// Planning horizon
    "energy.horizon" "DURATION" => service.energy.rules.horizon as AtLeast<3600>;

    /// Filters to apply, by Nova's names, separated by commas; requests for properties that no enabled filter
    /// checks are rejected
    "filters.enabled" "LIST" => service.rules.filters.enabled;
    /// Names of hosts that `IsolatedHostsFilter` excludes from all leases, separated by commas
    "filters.isolated_hosts" "LIST" => service.rules.filters.isolated_hosts;
    /// Custom filters, separated by commas, each a name and an expression that hosts must match:
    /// `LiveHosts=["==", "$stage", "live"]`
    "filters.custom" "LIST" => service.rules.filters.custom;

    /// Scheduler hints that leases can use, separated by commas
    "hints.enabled" "LIST" => service.rules.hints.enabled;
    /// Property of hosts with their location, for the hint `location`
    "hints.location" "NAME" => service.rules.hints.location as Name;
    /// Minimum number of hosts, free or not, that must match the hints of a lease; hints that match fewer are
    /// rejected as too strict
    "hints.least_hosts" "N" => service.rules.hints.least_hosts;
    /// Whether a lease can name a single host
    "hints.single_host" "BOOL" => service.rules.hints.single_host;

    /// Base URL of the external service, to which check-create, check-update and on-end are appended like
    /// relative links; without it, none is asked
    "enforcement.url" "URL" => external_service.base_endpoint as HttpUrl;
    /// URL for checks of new leases, if it differs
    "enforcement.check_create_url" "URL" => external_service.check_create_endpoint as HttpUrl;
    /// URL for checks of changes, if it differs
    "enforcement.check_update_url" "URL" => external_service.check_update_endpoint as HttpUrl;
    /// URL for reports of ended leases, if it differs
    "enforcement.on_end_url" "URL" => external_service.on_end_endpoint as HttpUrl;
    /// File with the token for requests to the external service
    "enforcement.token_file" "FILE" => external_service_token_file;
    /// Timeout of requests to the external service; a timeout counts as a refusal
    "enforcement.timeout" "DURATION" => external_service.timeout as AtLeast<1>;
    /// `auth_url` in requests to the external service
    "enforcement.auth_url" "URL" => external_service.auth_url;
    /// `region_name` in requests to the external service
    "enforcement.region_name" "NAME" => external_service.region_name;

    /// URL that notifications are sent to, one at a time and in order; without it, clients must poll for them
    "notifications.url" "URL" => webhook.url as HttpUrl;
    /// File with the secret for signing notifications (HMAC-SHA256); without it, they aren't signed
    "notifications.secret_file" "FILE" => webhook_secret_file;
    /// Program and its arguments, separated by commas, to run for each notification, with the notification as
    /// JSON on standard input; exit status 0 means that it was accepted
    "notifications.exec" "LIST" => exec;
    /// Timeout for the listener to accept a notification, at most one minute; then the notification is sent
    /// again
    "notifications.timeout" "DURATION" => webhook.timeout as Within<1, 60>;
    /// Retention of notifications that the listener doesn't accept
    "notifications.keep" "DURATION" => service.keep_undelivered as AtLeast<60>;

    /// File with the URL of the cloud's message bus, in the format of OpenStack's `transport_url`:
    /// `rabbit://USER:PASSWORD@HOST:PORT,USER:PASSWORD@HOST:PORT/VIRTUAL_HOST`; notifications are published
    /// there like Blazar's
    "message_bus.url_file" "FILE" => message_bus_url_file;
    /// Whether to use TLS if the URL doesn't have `?ssl=1`
    "message_bus.tls" "BOOL" => message_bus.tls;
    /// CA certificates (PEM) for the brokers; without it, the certificates of the system
    "message_bus.ca_file" "FILE" => message_bus.ca_file;
    /// Exchange that messages are published on
    "message_bus.exchange" "NAME" => message_bus.exchange as Name;
    /// Topics that each message is published to, separated by commas; their queues are called `TOPIC.info`.
    /// Without any, nothing is published
    "message_bus.topics" "LIST" => message_bus.topics;
    /// Publisher ID of messages
    "message_bus.publisher_id" "NAME" => message_bus.publisher_id as Name;
    /// Whether new queues survive a restart of their broker
    "message_bus.durable_queues" "BOOL" => message_bus.durable_queues;
    /// Whether new queues are quorum queues, which are replicated among brokers
    "message_bus.quorum_queues" "BOOL" => message_bus.quorum_queues;
    /// Exchange on which Nova publishes notifications
    "message_bus.nova_exchange" "NAME" => message_bus.nova_exchange as Name;
    /// Topics of Nova's versioned notifications, separated by commas, as `versioned_notifications`: hosts in
    /// a notification are observed immediately. Without any, the service doesn't listen
    "message_bus.nova_topics" "LIST" => message_bus.nova_topics;
    /// Timeout of a broker for connecting and for confirming a message, at most one minute; then the next
    /// broker, or the same one again, is tried
    "message_bus.timeout" "DURATION" => message_bus.timeout as Within<1, 60>;

    /// Maximum size of a request body
    "limits.body_bytes" "BYTES" => server.limits.body_bytes as AtLeast<1024>;
    /// Maximum length in characters of an expression on properties of hosts, or of the hint `query`
    "limits.expression_length" "N" => server.limits.parts.expression_length as AtLeast<64>;
    /// Maximum length in characters of any other text in a request, and of a query parameter
    "limits.value_length" "N" => server.limits.parts.value_length as AtLeast<64>;
    /// Maximum number of entries of a list in a request, and of fields of an object
    "limits.entries" "N" => server.limits.parts.entries as AtLeast<32>;
    /// Maximum number of hosts in a request that filters hosts for an instance, or plans or books maintenance
    "limits.hosts" "N" => server.limits.parts.hosts as AtLeast<1>;
    /// Maximum number of reservations in a lease
    "limits.reservations" "N" => server.limits.parts.reservations as AtLeast<1>;
    /// Maximum number of leases in a series
    "limits.series" "N" => server.limits.parts.series as AtLeast<1>;
    /// Maximum number of hosts, instances or floating IPs in a reservation
    "limits.amount" "N" => server.limits.parts.amount as AtLeast<1>;
    /// Maximum time ahead of a date; 36525d are a hundred years
    "limits.dates_ahead" "DURATION" => server.limits.parts.dates_ahead as AtLeast<3600>;
    /// Maximum time for a client to send a request, and to read a part of a response
    "limits.read_time" "DURATION" => server.limits.read_time as AtLeast<1>;
    /// Maximum number of requests per second of a user, and of failed logins from an address; 0 for no limit.
    /// Without it, 20 per user with authentication, and ten times as many, and as large a burst, for users
    /// with the role admin or service
    "limits.requests_per_second" "N" => server.limits.rate.per_second;
    /// Maximum burst of requests of a client after a pause, if the rate is limited
    "limits.requests_burst" "N" => server.limits.rate.burst as AtLeast<1>;
    /// Maximum number of concurrent requests of a user; more are rejected
    "limits.requests_at_once" "N" => server.limits.requests_at_once as AtLeast<1>;
    /// Maximum number of streams of calendar changes; more are rejected
    "limits.streams" "N" => server.limits.streams;
    /// Maximum number of streams of calendar changes for a user in a project
    "limits.streams_per_user" "N" => server.limits.streams_per_user;
    /// Maximum duration of a stream of calendar changes; then the client must connect again with valid
    /// credentials
    "limits.stream_time" "DURATION" => server.limits.stream_time as AtLeast<1>;
    /// Maximum work of one decision: hosts, bookings and values of expressions that it examines. Requests
    /// that need more are rejected; 30 million take about 0.3 s
    "limits.decision_work" "UNITS" => service.decision_work as AtLeast<10000>;
    /// Maximum number of rows written by a transaction. A request that needs more is rejected; background
    /// work is split
    "limits.transaction_rows" "N" => service.writes.rows as AtLeast<100>;
    /// Maximum number of bytes written by a transaction, likewise
    "limits.transaction_bytes" "N" => service.writes.bytes as AtLeast<65536>;
    /// Maximum number of concurrent decisions and long reads that change nothing, in addition to the one that
    /// changes something; without it, one less than the number of processors, so that leases can start and
    /// end at the same time. Further ones wait, and clients get shares by the work that they request
    "limits.decisions_at_once" "N" => decisions_at_once as AtLeast<1>;
    /// Maximum number of connections; more are closed immediately
    "limits.connections" "N" => server.limits.connections as AtLeast<1>;
    /// Maximum number of connections from one address; increase it for a proxy with many clients
    "limits.connections_per_address" "N" => server.limits.connections_per_address as AtLeast<1>;
    /// Maximum burst of wrong passwords of a user from one address; after it, one is allowed every ten
    /// seconds. Ten times as many for all users from one address; 0 for no limit
    "limits.failed_logins" "N" => server.limits.failed_logins;
    /// Maximum length of a list in one response, if the client asks for a limited one
    "limits.page" "N" => server.limits.page as AtLeast<1>;
    /// Maximum time that a client can wait for notifications
    "limits.notification_wait" "DURATION" => server.limits.wait as Seconds in 's';
    /// Maximum time that a deletion waits for hosts to be released before it is answered
    "limits.delete_wait" "DURATION" => service.delete_wait;
    /// Maximum time for running requests to finish when the service stops
    "limits.stop_time" "DURATION" => server.limits.stop_time as Seconds;
    /// Maximum time for a step of a handover before it is tried again, unless its hooks have a longer limit
    "limits.step_time" "DURATION" => service.step_time as AtLeast<1>;
    /// Maximum number of concurrent steps; without it, 1024 with simulated machines, 256 with hooks, which
    /// can be a process each, and 32 with openstack
    "limits.steps_at_once" "N" => steps_at_once as AtLeast<1>;
    /// Interval between observations of the whole fleet while it is idle
    "limits.observe_interval" "DURATION" => service.observe_interval as AtLeast<1>;
    /// Time without an observation after which the health of hosts counts as unknown
    "limits.unknown_after" "DURATION" => service.unknown_after as AtLeast<1>;
    /// Maximum difference between the service's clock and the database's; a service with a larger one changes
    /// nothing
    "limits.longest_clock_skew" "DURATION" => service.longest_clock_skew as AtLeast<1>;
    /// Maximum age of the newest record of a SQLite database when the service starts; if it is older, the
    /// clock might be wrong, and nothing is changed before `allot doctor --accept clock`
    "limits.longest_absence" "DURATION" => service.longest_absence as AtLeast<3600>;
    /// Retention of notifications, audit records and idempotency keys
    "limits.keep_records" "DURATION" => service.keep_records as AtLeast<60>;

    /// Clusters that questions can name: `NAME=file:PATH`, `NAME=rapi:ADDRESS` or `NAME=luxi:SOCKET`,
    /// separated by commas
    "placement.clusters" "NAME=SOURCE,..." => server.placement.clusters as Clusters;
    /// Maximum size in bytes of a question that contains a cluster
    "placement.cluster_bytes" "N" => server.placement.cluster_bytes as AtLeast<1024>;
    /// Maximum processor time of a question
    "placement.compute_time" "DURATION" => server.placement.compute_time as AtLeast<1>;
    /// Maximum memory of a question, in MiB
    "placement.memory" "N" => server.placement.memory_mib as AtLeast<64>;
    /// Maximum number of questions with long bodies computed at once; eight times as many are accepted, one
    /// per user
    "placement.at_once" "N" => server.placement.at_once as AtLeast<1>;

    /// Log level: error, warn, info, debug or trace, or by module, as info,service=debug
    "log.level" "LEVEL" => log.level as LogLevels;
    /// Log format: text or json
    "log.format" "FORMAT" => log.format;
}

#[cfg(test)]
mod tests;
