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
    /// Address and port where requests are taken
    "listen" "ADDR:PORT" => server.listen;
    /// Address that clients reach the service at, for catalogues and links; without it, the one that they asked
    "public_url" "URL" => server.public_url as HttpUrl;
    /// Where leases are kept: `sqlite://FILE`, `postgres://USER:PASSWORD@HOST,HOST/DATABASE`, which several
    /// services may share, or `memory`, which forgets all at the end
    "database" "DATABASE" => database;
    /// What runs the machines: `simulated`, `openstack`, which drives Nova (see `[openstack]`), or `hooks:FILE`, which
    /// calls programs and web hooks as the file says
    "fleet" "FLEET" => fleet;
    /// Who may come in: `none` (everybody is the administrator; loopback addresses only), or `keystone` (a cloud's, see
    /// `[keystone]`), `tokens:FILE`, `basic:FILE`, `local-keystone:FILE` (users of a file get tokens of the service
    /// itself), or several of these with commas between them
    "auth" "METHOD" => auth;
    /// How long a token that local-keystone issues is valid
    "token_lifetime" "DURATION" => server.auth.token_lifetime as AtLeast<1>;
    /// File with keys that these tokens are signed with, one a line, of which the first signs and all are accepted;
    /// without it, the service makes keys and keeps them in the database
    "token_key_file" "FILE" => server.auth.token_key_file;
    /// How long a session of the console lasts; one that was begun with a token ends no later than the token
    "session_lifetime" "DURATION" => server.auth.session_lifetime as AtLeast<1>;
    /// Rules of access that differ from the default, as oslo.policy writes them (YAML)
    "policy_file" "FILE" => server.policy_file;
    /// Name of this service among those that share a database; without it, that of the machine
    "name" "NAME" => name;
    /// Name of the region that this service is of; leases that name another are refused
    "region" "NAME" => service.rules.region;

    /// Status of answers that say that there is not enough of what is asked for: 400, 409 or 500. Azimuth's operator
    /// shows 400 and 500 to its user and asks again forever after any other; Blazar answers 500
    "api.shortage_status" "STATUS" => server.shortage_status;

    /// Address of the cloud's Keystone, as `http://HOST:5000/v3`; with `auth = "keystone"`, its tokens are good here
    "keystone.auth_url" "URL" => keystone.login.auth_url as HttpUrl;
    /// Name of the user that the service logs in as, to ask what tokens stand for; it needs the role `service`
    "keystone.username" "NAME" => keystone.login.username;
    /// Domain of that user
    "keystone.user_domain" "NAME" => keystone.login.user_domain as Name;
    /// Project that the user logs in for
    "keystone.project" "NAME" => keystone.login.project as Name;
    /// Domain of that project
    "keystone.project_domain" "NAME" => keystone.login.project_domain as Name;
    /// Identifier of an application credential to log in with instead of a user's name
    "keystone.application_credential" "ID" => keystone.login.application_credential;
    /// File with the user's password, or with the secret of the application credential; read at each login
    "keystone.secret_file" "FILE" => keystone.login.secret_file;
    /// Authorities (PEM) that Keystone's certificate is of; without it, those of the system
    "keystone.ca_file" "FILE" => keystone.login.ca_file;
    /// Where clients without a valid token are told to get one (`WWW-Authenticate`); without it, `keystone.auth_url`
    "keystone.www_authenticate_uri" "URL" => keystone.www_authenticate_uri as HttpUrl;
    /// How long a request waits for Keystone
    "keystone.timeout" "DURATION" => keystone.login.timeout as AtLeast<1>;
    /// How long a valid token is not asked about again: as long as one that was revoked goes on
    "keystone.cache_time" "DURATION" => keystone.validation.cache_time in 's';
    /// How many valid tokens are remembered, and how many wrong ones
    "keystone.cached_tokens" "N" => keystone.validation.cached_tokens;
    /// How much longer tokens that were valid go on while Keystone cannot be reached
    "keystone.outage_time" "DURATION" => keystone.validation.outage_time;
    /// How many tokens Keystone is asked about at once
    "keystone.validations_at_once" "N" => keystone.validation.validations_at_once as AtLeast<1>;

    /// Address of the cloud's Keystone, as `http://HOST:5000/v3`; without it, `keystone.auth_url`
    "openstack.auth_url" "URL" => openstack.login.auth_url as HttpUrl;
    /// Name of the user that Nova and Placement are asked as; it needs the role `service`, and one that Nova's policy treats as an administrator
    "openstack.username" "NAME" => openstack.login.username;
    /// Domain of that user
    "openstack.user_domain" "NAME" => openstack.login.user_domain as Name;
    /// Project that the user logs in for
    "openstack.project" "NAME" => openstack.login.project as Name;
    /// Domain of that project
    "openstack.project_domain" "NAME" => openstack.login.project_domain as Name;
    /// Identifier of an application credential to log in with instead of a user's name
    "openstack.application_credential" "ID" => openstack.login.application_credential;
    /// File with the user's password, or with the secret of the application credential; read at each login
    "openstack.secret_file" "FILE" => openstack.login.secret_file;
    /// Authorities (PEM) that the certificates of the cloud's services are of; without it, `keystone.ca_file`
    "openstack.ca_file" "FILE" => openstack.login.ca_file;
    /// Which addresses of the catalog are used: `public`, `internal` or `admin`
    "openstack.interface" "INTERFACE" => openstack.interface;
    /// What keeps others off the hosts of a lease: `blazar-filter`, `allot-filter`, `tenant` or `traits`
    "openstack.fence" "FENCE" => openstack.fence;
    /// Whether servers of anybody may run in the free pool, and hosts are taken on with servers; only with
    /// `allot-filter`
    "openstack.open_pool" "BOOL" => openstack.open_pool;
    /// Flavors, by identifier or name, that each lease of hosts gets copies of to start servers with, separated by commas;
    /// without it, all public ones that are not preemptible; only with `traits`
    "openstack.lease_flavors" "LIST" => openstack.lease_flavors;
    /// Name of the free pool's aggregate, as in blazar-nova's `aggregate_freepool_name`; it is made if there is none
    "openstack.free_pool" "NAME" => openstack.driver.free_pool as Name;
    /// How long Nova's schedulers may go by what they have read before an aggregate changed: so long a host stays
    /// closed after it, and is looked at again
    "openstack.settle" "DURATION" => openstack.driver.settle;
    /// Hooks that switch compute hosts on and off, for `energy.enabled` (TOML; docs/openstack.md has one)
    "openstack.power_file" "FILE" => openstack.power_file;
    /// How long a compute service has to be down, while most others are up, before its host counts as failed and its leases
    /// get another one; `0s` for at once
    "openstack.failed_after" "DURATION" => openstack.driver.failed_after;
    /// How long a live migration that the service has asked for may take before it is aborted and its server stays where it
    /// is; `0s` for as long as Nova lets it
    "openstack.migration_time" "DURATION" => openstack.driver.migration_time;
    /// How long it may take to make images of the servers on one host before they are deleted with their lease, if that is
    /// its end action or the one before its end; tried three times, then the lease goes on without those that are missing
    "openstack.image_time" "DURATION" => openstack.driver.image_time as AtLeast<1>;
    /// How long a request of the service waits for Nova or Placement; a page of 1000 servers may take some seconds
    "openstack.timeout" "DURATION" => openstack.login.timeout as AtLeast<1> in 's';

    /// Certificate and those that vouch for it (PEM); with it, HTTPS is spoken
    "tls.certificate" "FILE" => tls.certificate;
    /// Private key of the certificate (PEM)
    "tls.key" "FILE" => tls.key;
    /// Authorities (PEM) of which clients have to have a certificate; without it, they need none
    "tls.client_ca" "FILE" => tls.client_ca;

    /// Racks of machines
    "simulated.racks" "N" => simulated.racks as AtLeast<1>;
    /// Machines in each rack
    "simulated.hosts_per_rack" "N" => simulated.hosts_per_rack as AtLeast<1>;
    /// What chance is drawn from
    "simulated.seed" "N" => simulated.seed;
    /// How long things take on the machines: lifelike, or immediate, for measurements of the service alone
    "simulated.timing" "TIMING" => simulated.timing;
    /// Whether guests come and go, so that hosts have something to be emptied of
    "simulated.background_load" "BOOL" => simulated.background_load;
    /// Where it is kept what is on the machines; without it, in a file beside the database
    "simulated.state_file" "FILE" => simulated.state_file;

    /// How long a host must be free before and after a lease of the whole host
    "leases.cleaning_time" "DURATION" => service.cleaning_time;
    /// How long guests of others have to shut down before they are deleted from a host that is handed over
    "leases.grace" "DURATION" => service.plan_rules.grace;
    /// How long before its end a lease is warned, and the action before the end is taken; 0s for never
    "leases.before_end_lead" "DURATION" => service.rules.before_end_lead as ZeroForNone in 'm';
    /// What is done before the end where a lease does not say: nothing or snapshot
    "leases.before_end_action" "ACTION" => service.plan_rules.before_end;
    /// What becomes of guests at the end where neither a lease nor the free pool of its hosts says: delete, keep,
    /// snapshot or migrate. Blazar deletes them
    "leases.end_action" "ACTION" => service.end_action;
    /// Leases that start within this time get other hosts for failed ones, and failed hosts can only be leased for later
    /// times; 0s for no limit
    "leases.healing_interval" "DURATION" => service.healing_interval.0 as ZeroForNone;
    /// Maximum delay of a lease that is to start at once, until its hosts are ready. If it isn't longer than leases.grace,
    /// such leases get no hosts with preemptible instances
    "leases.immediate_wait" "DURATION" => service.rules.deadlines.immediate as AtLeast<1>;
    /// How long a lease that is to start as soon as possible may wait for its start where it does not say
    "leases.best_effort_timeout" "DURATION" => service.rules.deadlines.best_effort as AtLeast<1>;
    /// The longest that it may say
    "leases.best_effort_max_timeout" "DURATION" => service.rules.deadlines.longest as AtLeast<1>;
    /// Whether guests of others may be moved to other hosts for leases that are to start as soon as possible
    "leases.hunts" "BOOL" => service.rules.hunting.enabled;
    /// Whether that leaves room for the guests of any one host that is lost
    "leases.hunt_n_plus_one" "BOOL" => service.rules.hunting.n_plus_one;
    /// The longest that it may take to clear hosts for one lease
    "leases.hunt_longest" "DURATION" => service.rules.hunting.longest as AtLeast<1>;
    /// How fast guests are copied to other hosts, MiB per second, to say how long it takes
    "leases.hunt_speed" "N" => service.rules.hunting.mib_per_second as AtLeast<1>;
    /// How many guests are moved at once for one lease
    "leases.moves_at_once" "N" => service.plan_rules.moves_at_once as AtLeast<1>;
    /// Time for which offers are held unless the client asks for another, with a maximum of 15 minutes; 0s never holds any
    "leases.offer_hold" "DURATION" => service.offer_hold;
    /// Refusals whose offers are held for one user at once; beyond that, the oldest are withdrawn. 0 never holds any
    "leases.offers_at_once" "N" => service.offer_limits.at_once;
    /// Refusals whose offers are held for one project in an hour; those of further ones are said and not held
    "leases.offers_hourly" "N" => service.offer_limits.hourly;
    /// How far ahead a later start is looked for, to offer it
    "leases.offers_ahead" "DURATION" => service.offers_ahead;
    /// Leases that start sooner than this keep their hosts; later ones may get others, to make room
    "leases.replan_notice" "DURATION" => service.replan_notice;
    /// How many requests of a project may be on the waitlist
    "leases.waitlist_limit" "N" => service.waitlist_limit;
    /// Longest lease, which can differ by project, flavor and free pool: `14d,pool:gpu=7d,flavor:m1.huge=1d`; without it,
    /// there is no limit
    "leases.max_duration" "DURATION,SCOPE=DURATION,..." => service.rules.enforcement.max_lease_duration as Lengths;
    /// How long before its end a lease may be extended, by up to the longest duration again; without it, at any
    /// time, and its whole length is limited
    "leases.extension_window" "DURATION" => service.rules.enforcement.extension_window;
    /// How long leases of a project on hosts of one free pool may last together, one after another or at the same time;
    /// without it, there is no limit
    "leases.max_stack" "DURATION" => service.rules.enforcement.max_stack as AtLeast<1>;
    /// Projects without limits on the length of leases and without quotas of leases, separated by commas
    "leases.exempt_projects" "LIST" => service.rules.enforcement.exempt_projects;
    /// How long leases are kept after they have ended; then they are gone as if they were deleted, and what they used
    /// stays in usage and billing. `forever` keeps them
    "leases.keep" "DURATION" => service.keep_leases as Forever;

    /// How long after its start a lease without any instance is warned of; without it, never
    "housekeeping.unused_warning" "DURATION" => service.housekeeping.unused_warning as AtLeast<1>;
    /// How long after its start such a lease ends, warned of before; without it, never
    "housekeeping.unused_reclaim" "DURATION" => service.housekeeping.unused_reclaim as AtLeast<1>;
    /// How long before the start and the end of a lease its owner is reminded; without it, never
    "housekeeping.reminders" "DURATION" => service.housekeeping.reminder as ZeroOrNothing;
    /// How many hosts of a lease its owner may have exchanged
    "housekeeping.swaps" "N" => service.housekeeping.swaps;
    /// Properties of the hosts that requests without requirements get, if there are such hosts:
    /// `["not", ["==", "$gpu", "yes"]]`
    "housekeeping.default_properties" "JSON" => service.housekeeping.default_properties;
    /// Project that maintenance of hosts is booked for; without it, none is
    "housekeeping.maintenance_project" "PROJECT" => service.housekeeping.maintenance_project;

    /// How many leases that are not over a project may have, or `unlimited`; without it, 1,000 where there is
    /// authentication, and ten times as many by users with the role admin or service
    "quota.leases" "N" => service.rules.enforcement.quota.leases as Unlimited;
    /// How many whole hosts these may have at any one time
    "quota.hosts" "N" => service.rules.enforcement.quota.hosts;
    /// How many host-hours these may have: hosts times the hours from start to end
    "quota.host_hours" "N" => service.rules.enforcement.quota.host_hours;
    /// For how many instances these may have room at any one time
    "quota.instances" "N" => service.rules.enforcement.quota.instances;

    /// How many instances a project may have beside leases; without it, as many as there is room for. Preemptible ones
    /// are counted apart
    "instances.quota" "N" => service.quotas.regular.instances;
    /// How many virtual CPUs these may have together
    "instances.quota_vcpus" "N" => service.quotas.regular.vcpus;
    /// How much memory these may have together
    "instances.quota_memory_gib" "GIB" => service.quotas.regular.memory_mib as Gib;

    /// Whether instances may be preemptible: they run on hosts of the free pool until the next lease of their host
    "preemptible.enabled" "BOOL" => service.preemption.allowed;
    /// Projects whose instances are preemptible unless a request says otherwise, separated by commas; `*` stands for
    /// anything, `?` for any character. In a cloud only with the fences `allot-filter` and `tenant`, by their identifiers
    "preemptible.projects" "LIST" => service.preemption.projects;
    /// What of a request may say that its instance is preemptible, separated by commas: its scheduler `hint`, or the
    /// property blazar:preemptible of its `flavor`, its `image` or a `volume`. In a cloud the default means the marks that
    /// its fence sees; with the fence `traits` only `flavor`
    "preemptible.marks" "LIST" => service.preemption.marks;
    /// How long a preemptible instance is to have its place at least
    "preemptible.least_lifetime" "DURATION" => service.preemption.least_lifetime;
    /// How long a preemptible instance may run: it is gone by then, and asked to leave its notice before that; without it,
    /// there is no limit
    "preemptible.max_lifetime" "DURATION" => service.plan_rules.max_lifetime as ZeroOrNothing;
    /// How long before a lease starts its hosts are to be empty of preemptible instances; they are asked to leave
    /// leases.grace before that
    "preemptible.margin" "DURATION" => preemptible.margin;
    /// How long before that preemptible instances are moved to another gap, if there is one that is long enough; 0 for
    /// not at all
    "preemptible.moving_time" "DURATION" => service.plan_rules.moving_time;
    /// Whether they may run on hosts of leases that do not use them, if whoever has the lease allows it
    "preemptible.backfill" "BOOL" => service.plan_rules.backfill;
    /// Classes of preemptible instances, with how long each has to shut down before it is deleted, separated by commas:
    /// `batch=10m:stop,spot=30s`; with `:stop` it is kept then, to be started again; those of no class have
    /// leases.grace
    "preemptible.classes" "LIST" => service.preemption.classes;
    /// How many preemptible instances a project may have; without it, as many as there is room for
    "preemptible.quota" "N" => service.quotas.preemptible.instances;
    /// How many virtual CPUs these may have together
    "preemptible.quota_vcpus" "N" => service.quotas.preemptible.vcpus;
    /// How much memory these may have together
    "preemptible.quota_memory_gib" "GIB" => service.quotas.preemptible.memory_mib as Gib;
    /// How many core-hours preemptible instances of a project may use within the window; then it may start no more of
    /// them for a while. Without it, as many as there are
    "preemptible.usage_limit" "N" => preemptible.usage_limit;
    /// How far back that is counted
    "preemptible.usage_window" "DURATION" => preemptible.usage_window as AtLeast<60> in 'h';

    /// How long usage that is over is kept, and what happened
    "usage.keep" "DURATION" => service.keep_usage as Forever;
    /// What prices are in, as it is to be shown
    "usage.currency" "NAME" => service.prices.currency;
    /// Price of a lease, once, when it starts. This price and the following ones can differ by project, flavor and free
    /// pool: `2,pool:gpu=5,project:staff=0`
    "usage.price_lease" "PRICE,SCOPE=PRICE,..." => service.prices.lease;
    /// Price of a whole host for an hour
    "usage.price_host_hour" "PRICE,SCOPE=PRICE,..." => service.prices.host_hour;
    /// Price of room for one instance for an hour, beside its CPUs and memory
    "usage.price_slot_hour" "PRICE,SCOPE=PRICE,..." => service.prices.slot_hour;
    /// Price of a CPU of room for instances for an hour
    "usage.price_core_hour" "PRICE,SCOPE=PRICE,..." => service.prices.core_hour;
    /// Price of a GiB of memory of room for instances for an hour
    "usage.price_gib_hour" "PRICE,SCOPE=PRICE,..." => service.prices.gib_hour;
    /// Price of an address for an hour
    "usage.price_address_hour" "PRICE,SCOPE=PRICE,..." => service.prices.address_hour;
    /// Price of an instance in a lease for an hour, beside what the lease costs
    "usage.price_instance_hour" "PRICE,SCOPE=PRICE,..." => service.prices.instance_hour;
    /// Part of the prices of CPUs and memory that preemptible instances cost: `0.25`; with 0 they are free
    "usage.price_preemptible" "PART,SCOPE=PART,..." => service.prices.preemptible as Parts;

    /// Whether hosts that nobody needs are switched off, and on again in time; the fleet has to be able to
    "energy.enabled" "BOOL" => energy.enabled;
    /// Whether it is only planned, and no host is switched off
    "energy.dry_run" "BOOL" => energy.dry_run;
    /// How many hosts of each free pool stay on although nobody needs them
    "energy.spare_hosts" "N" => service.energy.rules.spare_hosts;
    /// How long hosts count as booting at least, whatever was measured, and those that were never measured
    "energy.boot_time" "DURATION" => service.energy.rules.shortest_boot;
    /// Hosts are switched on so early that they are ready this long before a lease needs them. Half of it is left to replace
    /// a host that doesn't come up
    "energy.margin" "DURATION" => service.energy.rules.margin;
    /// A host is switched off only if it can stay off for so long
    "energy.shortest_rest" "DURATION" => service.energy.rules.shortest_rest;
    /// How often a host is switched off within a day at most
    "energy.rests_a_day" "N" => service.energy.rules.rests_a_day as AtLeast<1>;
    /// How many hosts boot at the same time at most
    "energy.boots_at_once" "N" => service.energy.rules.boots_at_once as AtLeast<1>;
    /// Whether leases that have not started are given other hosts if these draw less, once a day at most; not within
    /// `leases.replan_notice` of their start
    "energy.repack" "BOOL" => energy.repack;
    /// How many watt-hours that has to save
    "energy.repack_watt_hours" "N" => energy.repack_watt_hours;
    /// How far ahead is planned
    "energy.horizon" "DURATION" => service.energy.rules.horizon as AtLeast<3600>;

    /// Those that are applied, by Nova's names, separated by commas; what a lease asks for that none of them looks
    /// at is refused
    "filters.enabled" "LIST" => service.rules.filters.enabled;
    /// Names of hosts that `IsolatedHostsFilter` keeps from all leases, separated by commas
    "filters.isolated_hosts" "LIST" => service.rules.filters.isolated_hosts;
    /// Filters of your own, separated by commas, each a name and what hosts must be like:
    /// `LiveHosts=["==", "$stage", "live"]`
    "filters.custom" "LIST" => service.rules.filters.custom;

    /// Scheduler hints that leases may give, separated by commas
    "hints.enabled" "LIST" => service.rules.hints.enabled;
    /// Property of hosts that says where they are, for the hint `location`
    "hints.location" "NAME" => service.rules.hints.location as Name;
    /// So many hosts have to match the hints of a lease, free or not; hints that fewer match are too strict
    "hints.least_hosts" "N" => service.rules.hints.least_hosts;
    /// Whether a lease may name a single host
    "hints.single_host" "BOOL" => service.rules.hints.single_host;

    /// Its address, which check-create, check-update and on-end are joined to as links are; without it, nobody
    /// is asked
    "enforcement.url" "URL" => external_service.base_endpoint as HttpUrl;
    /// Where to ask about new leases, if not there
    "enforcement.check_create_url" "URL" => external_service.check_create_endpoint as HttpUrl;
    /// Where to ask about changes, if not there
    "enforcement.check_update_url" "URL" => external_service.check_update_endpoint as HttpUrl;
    /// Where to tell of ends, if not there
    "enforcement.on_end_url" "URL" => external_service.on_end_endpoint as HttpUrl;
    /// File with the token to show it
    "enforcement.token_file" "FILE" => external_service_token_file;
    /// How long it may take to answer; then it counts as a refusal
    "enforcement.timeout" "DURATION" => external_service.timeout as AtLeast<1>;
    /// The `auth_url` that it is told
    "enforcement.auth_url" "URL" => external_service.auth_url;
    /// The `region_name` that it is told
    "enforcement.region_name" "NAME" => external_service.region_name;

    /// Address that notifications are pushed to, one by one in their order; without it, they can only be asked for
    "notifications.url" "URL" => webhook.url as HttpUrl;
    /// File with the secret that they are signed with (HMAC-SHA256); without it, they are not
    "notifications.secret_file" "FILE" => webhook_secret_file;
    /// Program with its arguments, separated by commas, that is run for each notification and gets it as JSON on its
    /// standard input; exit status 0 means that it has taken it
    "notifications.exec" "LIST" => exec;
    /// How long the listener may take to answer, a minute at most; then it is told again
    "notifications.timeout" "DURATION" => webhook.timeout as Within<1, 60>;
    /// How long notifications are kept for a listener that does not take them
    "notifications.keep" "DURATION" => service.keep_undelivered as AtLeast<60>;

    /// File with the address of the cloud's message bus, as `transport_url` of OpenStack's services:
    /// `rabbit://USER:PASSWORD@HOST:PORT,USER:PASSWORD@HOST:PORT/VIRTUAL_HOST`; notifications are published there as
    /// Blazar's are
    "message_bus.url_file" "FILE" => message_bus_url_file;
    /// Whether TLS is spoken, if the address does not say so with `?ssl=1`
    "message_bus.tls" "BOOL" => message_bus.tls;
    /// Authorities (PEM) that the brokers' certificates are of; without it, those of the system
    "message_bus.ca_file" "FILE" => message_bus.ca_file;
    /// Exchange that messages are published on
    "message_bus.exchange" "NAME" => message_bus.exchange as Name;
    /// Topics that each message is published to, separated by commas; their queues are called `TOPIC.info`. Without any,
    /// nothing is published
    "message_bus.topics" "LIST" => message_bus.topics;
    /// Who messages are said to be of
    "message_bus.publisher_id" "NAME" => message_bus.publisher_id as Name;
    /// Whether queues that do not exist yet are made to outlive a restart of their broker
    "message_bus.durable_queues" "BOOL" => message_bus.durable_queues;
    /// Whether queues that do not exist yet are made as quorum queues, which several brokers have
    "message_bus.quorum_queues" "BOOL" => message_bus.quorum_queues;
    /// Exchange on which Nova publishes notifications
    "message_bus.nova_exchange" "NAME" => message_bus.nova_exchange as Name;
    /// Topics of Nova's versioned notifications, separated by commas, as `versioned_notifications`: hosts that something
    /// is said of are looked at at once. Without any, nothing is heard
    "message_bus.nova_topics" "LIST" => message_bus.nova_topics;
    /// How long a broker may take to let the service in and to confirm a message, a minute at most; then the next one, or
    /// it again, is told
    "message_bus.timeout" "DURATION" => message_bus.timeout as Within<1, 60>;

    /// Longest body of a request
    "limits.body_bytes" "BYTES" => server.limits.body_bytes as AtLeast<1024>;
    /// Most characters of an expression on properties of hosts, or of the hint `query`
    "limits.expression_length" "N" => server.limits.parts.expression_length as AtLeast<64>;
    /// Most characters of any other text in a request, and of an option in its address
    "limits.value_length" "N" => server.limits.parts.value_length as AtLeast<64>;
    /// Most entries of a list in a request, and fields of an object
    "limits.entries" "N" => server.limits.parts.entries as AtLeast<32>;
    /// Most hosts that a question which hosts may have an instance, or their maintenance, may name
    "limits.hosts" "N" => server.limits.parts.hosts as AtLeast<1>;
    /// Most reservations of a lease
    "limits.reservations" "N" => server.limits.parts.reservations as AtLeast<1>;
    /// Most leases that recur together
    "limits.series" "N" => server.limits.parts.series as AtLeast<1>;
    /// Largest number of hosts, instances or addresses that a reservation may ask for
    "limits.amount" "N" => server.limits.parts.amount as AtLeast<1>;
    /// How far in the future a date may be; 36525d are a hundred years
    "limits.dates_ahead" "DURATION" => server.limits.parts.dates_ahead as AtLeast<3600>;
    /// How long a client may take to send a request, or to take any of an answer
    "limits.read_time" "DURATION" => server.limits.read_time as AtLeast<1>;
    /// How many requests per second a user may send, and whoever fails to log in from an address; 0 for no limit.
    /// Without it, 20 of a user where there is authentication, and ten times as many, and as large a burst, of users
    /// with the role admin or service
    "limits.requests_per_second" "N" => server.limits.rate.per_second;
    /// How many requests of a client are answered at once after a silence, where their number is limited
    "limits.requests_burst" "N" => server.limits.rate.burst as AtLeast<1>;
    /// How many requests of a user may be under way at once; more are refused
    "limits.requests_at_once" "N" => server.limits.requests_at_once as AtLeast<1>;
    /// How many streams of changes of the calendar there may be; more are refused
    "limits.streams" "N" => server.limits.streams;
    /// How many of them a user may have, in a project
    "limits.streams_per_user" "N" => server.limits.streams_per_user;
    /// How long such a stream lasts; its client asks again then, and has to be somebody still
    "limits.stream_time" "DURATION" => server.limits.stream_time as AtLeast<1>;
    /// How much work one decision may cost: looks at hosts, bookings and values of expressions. What would cost more is
    /// refused; 30 million take about 0.3 s
    "limits.decision_work" "UNITS" => service.decision_work as AtLeast<10000>;
    /// Most rows that a transaction writes. A request that needs more is rejected; work of the service goes on in parts
    "limits.transaction_rows" "N" => service.writes.rows as AtLeast<100>;
    /// Most bytes that a transaction writes, likewise
    "limits.transaction_bytes" "N" => service.writes.bytes as AtLeast<65536>;
    /// How many decisions and long readings that change nothing are made at once, beside the one that changes
    /// something; without it, one less than there are processors, since leases start and end meanwhile. More wait, and
    /// clients share by the work that they ask for
    "limits.decisions_at_once" "N" => decisions_at_once as AtLeast<1>;
    /// How many connections there may be; more are closed at once
    "limits.connections" "N" => server.limits.connections as AtLeast<1>;
    /// How many of them from one address; more than that for a proxy that many clients are behind
    "limits.connections_per_address" "N" => server.limits.connections_per_address as AtLeast<1>;
    /// How many passwords of a user may be wrong at once from one address, before it is one every ten seconds; ten
    /// times as many of all users from one address; 0 for no limit
    "limits.failed_logins" "N" => server.limits.failed_logins;
    /// Longest list that is answered at once, if a client asks for a limited one
    "limits.page" "N" => server.limits.page as AtLeast<1>;
    /// How long a client may wait for notifications
    "limits.notification_wait" "DURATION" => server.limits.wait as Seconds in 's';
    /// How long a deletion waits for hosts to be taken back before it is answered
    "limits.delete_wait" "DURATION" => service.delete_wait;
    /// How long running requests may take when the service stops
    "limits.stop_time" "DURATION" => server.limits.stop_time as Seconds;
    /// How long a step of a hand-over may take before it is tried again, unless its hooks may take longer
    "limits.step_time" "DURATION" => service.step_time as AtLeast<1>;
    /// How many steps are carried out at once; without it, 256 by hooks, which may be a process each, and 1024
    /// simulated
    "limits.steps_at_once" "N" => steps_at_once as AtLeast<1>;
    /// How often the whole fleet is looked at when nothing else is to be done
    "limits.observe_interval" "DURATION" => service.observe_interval as AtLeast<1>;
    /// After how long without an observation the health of hosts counts as unknown
    "limits.unknown_after" "DURATION" => service.unknown_after as AtLeast<1>;
    /// How far the clock may be from the database's; a service whose clock is further off changes nothing
    "limits.longest_clock_skew" "DURATION" => service.longest_clock_skew as AtLeast<1>;
    /// How old the newest record of a SQLite database may be at the start; if it is older, the clock may be wrong, and
    /// nothing is changed before `allot doctor --accept clock`
    "limits.longest_absence" "DURATION" => service.longest_absence as AtLeast<3600>;
    /// How long notifications, audit records and keys of requests are kept
    "limits.keep_records" "DURATION" => service.keep_records as AtLeast<60>;

    /// Clusters that may be asked about by name: `NAME=file:PATH`, `NAME=rapi:ADDRESS` or `NAME=luxi:SOCKET`, separated
    /// by commas
    "placement.clusters" "NAME=SOURCE,..." => server.placement.clusters as Clusters;
    /// Longest body of a question that has a cluster in it, in bytes
    "placement.cluster_bytes" "N" => server.placement.cluster_bytes as AtLeast<1024>;
    /// How much time of a processor a question may take
    "placement.compute_time" "DURATION" => server.placement.compute_time as AtLeast<1>;
    /// How much memory a question may take, in MiB
    "placement.memory" "N" => server.placement.memory_mib as AtLeast<64>;
    /// How many questions with long bodies are computed at once; eight times as many are taken on, one of each user
    "placement.at_once" "N" => server.placement.at_once as AtLeast<1>;

    /// What is logged: error, warn, info, debug or trace, or by module, as info,service=debug
    "log.level" "LEVEL" => log.level as LogLevels;
    /// How: text or json
    "log.format" "FORMAT" => log.format;
}

#[cfg(test)]
mod tests;
