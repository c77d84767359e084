//! All settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use api::v1::SettingOf;
use leases::filters::{CustomFilter, Filter};
use leases::hints::Hint;
use leases::lease::EndAction;
use leases::preemption::{Class, Mark};
use leases::terms::BeforeEndAction;
use leases::usage::Decimal;
use openstack::Interface;
use server::ShortageStatus;

use super::error::ConfigError;
use super::setting::Setting;
use super::value::{
    AuthChoice, Clusters, DatabaseChoice, FenceChoice, FleetChoice, Kept, LogFormat, Properties, Span,
    TimingChoice, Value,
};
use super::values::Values;

/// Makes the table and the struct that it is read into.
macro_rules! settings {
    ($( $(#[doc = $help:literal])+ $key:literal $field:ident: $kind:ty = $default:literal as $value_name:literal; )+) => {
        /// The settings, read.
        #[derive(Clone, Debug)]
        pub(crate) struct Configuration {
            $( $(#[doc = $help])+ pub $field: $kind, )+
            /// All of them as administrators see them.
            pub shown: Vec<SettingOf>,
        }

        impl Configuration {
            /// What these values mean; `shown` is what administrators see of them.
            pub(super) fn read(values: &Values, shown: Vec<SettingOf>) -> Result<Self, ConfigError> {
                Ok(Self { $( $field: values.get($key, $default)?, )+ shown })
            }
        }

        /// The settings, in the order in which they are documented.
        pub(crate) const TABLE: &[Setting] = &[
            $( Setting {
                key: $key,
                value_name: $value_name,
                default: $default,
                help: concat!($($help),+),
                check: |text| <$kind as Value>::parse(text).map(drop),
            }, )+
        ];
    };
}

settings! {
    /// Address and port where requests are taken
    "listen" listen: SocketAddr = "127.0.0.1:1234" as "ADDR:PORT";
    /// Address that clients reach the service at, for catalogues and links; without it, the one that they asked
    "public_url" public_url: Option<String> = "" as "URL";
    /// Where leases are kept: `sqlite://FILE`, `postgres://USER:PASSWORD@HOST,HOST/DATABASE`, which several
    /// services may share, or `memory`, which forgets all at the end
    "database" database: DatabaseChoice = "sqlite://allot.db" as "DATABASE";
    /// What runs the machines: `simulated`, `openstack`, which drives Nova (see `[openstack]`), or `hooks:FILE`, which
    /// calls programs and web hooks as the file says
    "fleet" fleet: FleetChoice = "simulated" as "FLEET";
    /// Who may come in: `none` (everybody is the administrator; loopback addresses only), or `keystone` (a cloud's, see
    /// `[keystone]`), `tokens:FILE`, `basic:FILE`, `local-keystone:FILE` (users of a file get tokens of the service
    /// itself), or several of these with commas between them
    "auth" auth: Vec<AuthChoice> = "none" as "METHOD";
    /// How long a token that local-keystone issues is valid
    "token_lifetime" token_lifetime: Span = "1h" as "DURATION";
    /// File with keys that these tokens are signed with, one a line, of which the first signs and all are accepted;
    /// without it, the service makes keys and keeps them in the database
    "token_key_file" token_key_file: Option<PathBuf> = "" as "FILE";
    /// How long a session of the console lasts; one that was begun with a token ends no later than the token
    "session_lifetime" session_lifetime: Span = "12h" as "DURATION";
    /// Rules of access that differ from the default, as oslo.policy writes them (YAML)
    "policy_file" policy_file: Option<PathBuf> = "" as "FILE";
    /// Name of this service among those that share a database; without it, that of the machine
    "name" name: Option<String> = "" as "NAME";
    /// Name of the region that this service is of; leases that name another are refused
    "region" region: Option<String> = "" as "NAME";

    /// Status of answers that say that there is not enough of what is asked for: 400, 409 or 500. Azimuth's operator
    /// shows 400 and 500 to its user and asks again forever after any other; Blazar answers 500
    "api.shortage_status" shortage_status: ShortageStatus = "400" as "STATUS";

    /// Address of the cloud's Keystone, as `http://HOST:5000/v3`; with `auth = "keystone"`, its tokens are good here
    "keystone.auth_url" keystone_auth_url: Option<String> = "" as "URL";
    /// Name of the user that the service logs in as, to ask what tokens stand for; it needs the role `service`
    "keystone.username" keystone_username: Option<String> = "" as "NAME";
    /// Domain of that user
    "keystone.user_domain" keystone_user_domain: String = "Default" as "NAME";
    /// Project that the user logs in for
    "keystone.project" keystone_project: String = "service" as "NAME";
    /// Domain of that project
    "keystone.project_domain" keystone_project_domain: String = "Default" as "NAME";
    /// Identifier of an application credential to log in with instead of a user's name
    "keystone.application_credential" keystone_application_credential: Option<String> = "" as "ID";
    /// File with the user's password, or with the secret of the application credential; read at each login
    "keystone.secret_file" keystone_secret_file: Option<PathBuf> = "" as "FILE";
    /// Authorities (PEM) that Keystone's certificate is of; without it, those of the system
    "keystone.ca_file" keystone_ca_file: Option<PathBuf> = "" as "FILE";
    /// Where clients without a valid token are told to get one (`WWW-Authenticate`); without it, `keystone.auth_url`
    "keystone.www_authenticate_uri" keystone_www_authenticate_uri: Option<String> = "" as "URL";
    /// How long a request waits for Keystone
    "keystone.timeout" keystone_timeout: Span = "5s" as "DURATION";
    /// How long a valid token is not asked about again: as long as one that was revoked goes on
    "keystone.cache_time" keystone_cache_time: Span = "60s" as "DURATION";
    /// How many valid tokens are remembered, and how many wrong ones
    "keystone.cached_tokens" keystone_cached_tokens: usize = "10000" as "N";
    /// How much longer tokens that were valid go on while Keystone cannot be reached
    "keystone.outage_time" keystone_outage_time: Span = "5m" as "DURATION";
    /// How many tokens Keystone is asked about at once
    "keystone.validations_at_once" keystone_validations_at_once: usize = "16" as "N";

    /// Address of the cloud's Keystone, as `http://HOST:5000/v3`; without it, `keystone.auth_url`
    "openstack.auth_url" openstack_auth_url: Option<String> = "" as "URL";
    /// Name of the user that Nova and Placement are asked as; it needs the role `admin`
    "openstack.username" openstack_username: Option<String> = "" as "NAME";
    /// Domain of that user
    "openstack.user_domain" openstack_user_domain: String = "Default" as "NAME";
    /// Project that the user logs in for
    "openstack.project" openstack_project: String = "service" as "NAME";
    /// Domain of that project
    "openstack.project_domain" openstack_project_domain: String = "Default" as "NAME";
    /// Identifier of an application credential to log in with instead of a user's name
    "openstack.application_credential" openstack_application_credential: Option<String> = "" as "ID";
    /// File with the user's password, or with the secret of the application credential; read at each login
    "openstack.secret_file" openstack_secret_file: Option<PathBuf> = "" as "FILE";
    /// Authorities (PEM) that the certificates of the cloud's services are of; without it, `keystone.ca_file`
    "openstack.ca_file" openstack_ca_file: Option<PathBuf> = "" as "FILE";
    /// Which addresses of the catalog are used: `public`, `internal` or `admin`
    "openstack.interface" openstack_interface: Interface = "internal" as "INTERFACE";
    /// What keeps others off the hosts of a lease: `blazar-filter`, `allot-filter`, `tenant` or `traits`
    "openstack.fence" openstack_fence: FenceChoice = "blazar-filter" as "FENCE";
    /// Whether servers of anybody may run in the free pool, and hosts are taken on with servers; only with
    /// `allot-filter`
    "openstack.open_pool" openstack_open_pool: bool = "false" as "BOOL";
    /// Flavors, by identifier or name, that each lease of hosts gets copies of to start servers with, separated by commas;
    /// without it, all public ones that are not preemptible; only with `traits`
    "openstack.lease_flavors" openstack_lease_flavors: Vec<String> = "" as "LIST";
    /// Name of the free pool's aggregate, as in blazar-nova's `aggregate_freepool_name`; it is made if there is none
    "openstack.free_pool" openstack_free_pool: String = "freepool" as "NAME";
    /// How long Nova's schedulers may go by what they have read before an aggregate changed: so long a host stays
    /// closed after it, and is looked at again
    "openstack.settle" openstack_settle: Span = "1s" as "DURATION";
    /// Hooks that switch compute hosts on and off, for `energy.enabled` (TOML; docs/openstack.md has one)
    "openstack.power_file" openstack_power_file: Option<PathBuf> = "" as "FILE";
    /// How long a compute service has to be down, while most others are up, before its host counts as failed and its leases
    /// get another one; `0s` for at once
    "openstack.failed_after" openstack_failed_after: Span = "1m" as "DURATION";
    /// How long a live migration that the service has asked for may take before it is aborted and its server stays where it
    /// is; `0s` for as long as Nova lets it
    "openstack.migration_time" openstack_migration_time: Span = "1h" as "DURATION";
    /// How long it may take to make images of the servers on one host before they are deleted with their lease, if that is
    /// its end action or the one before its end; tried three times, then the lease goes on without those that are missing
    "openstack.image_time" openstack_image_time: Span = "1h" as "DURATION";
    /// How long a request of the service waits for Nova or Placement; a page of 1000 servers may take some seconds
    "openstack.timeout" openstack_timeout: Span = "60s" as "DURATION";

    /// Certificate and those that vouch for it (PEM); with it, HTTPS is spoken
    "tls.certificate" tls_certificate: Option<PathBuf> = "" as "FILE";
    /// Private key of the certificate (PEM)
    "tls.key" tls_key: Option<PathBuf> = "" as "FILE";
    /// Authorities (PEM) of which clients have to have a certificate; without it, they need none
    "tls.client_ca" tls_client_ca: Option<PathBuf> = "" as "FILE";

    /// Racks of machines
    "simulated.racks" simulated_racks: u32 = "2" as "N";
    /// Machines in each rack
    "simulated.hosts_per_rack" simulated_hosts_per_rack: u32 = "4" as "N";
    /// What chance is drawn from
    "simulated.seed" simulated_seed: u64 = "1" as "N";
    /// How long things take on the machines: lifelike, or immediate, for measurements of the service alone
    "simulated.timing" simulated_timing: TimingChoice = "lifelike" as "TIMING";
    /// Whether guests come and go, so that hosts have something to be emptied of
    "simulated.background_load" simulated_background_load: bool = "false" as "BOOL";
    /// Where it is kept what is on the machines; without it, in a file beside the database
    "simulated.state_file" simulated_state_file: Option<PathBuf> = "" as "FILE";

    /// How long a host must be free before and after a lease of the whole host
    "leases.cleaning_time" cleaning_time: Span = "0s" as "DURATION";
    /// How long guests of others have to shut down before they are deleted from a host that is handed over
    "leases.grace" grace: Span = "1m" as "DURATION";
    /// How long before its end a lease is warned, and the action before the end is taken; 0s for never
    "leases.before_end_lead" before_end_lead: Span = "60m" as "DURATION";
    /// What is done before the end where a lease does not say: nothing or snapshot
    "leases.before_end_action" before_end_action: BeforeEndAction = "nothing" as "ACTION";
    /// What becomes of guests at the end where neither a lease nor the free pool of its hosts says: delete, keep,
    /// snapshot or migrate. Blazar deletes them
    "leases.end_action" end_action: EndAction = "delete" as "ACTION";
    /// How far ahead failed hosts are replaced; 0s for all the time to come
    "leases.healing_interval" healing_interval: Span = "1h" as "DURATION";
    /// How long a lease that is to start at once may take to; longer than leases.grace, or it does not start where
    /// preemptible guests are
    "leases.immediate_wait" immediate_wait: Span = "90s" as "DURATION";
    /// How long a lease that is to start as soon as possible may wait for its start where it does not say
    "leases.best_effort_timeout" best_effort_timeout: Span = "1h" as "DURATION";
    /// The longest that it may say
    "leases.best_effort_max_timeout" best_effort_max_timeout: Span = "7d" as "DURATION";
    /// Whether guests of others may be moved to other hosts for leases that are to start as soon as possible
    "leases.hunts" hunts: bool = "true" as "BOOL";
    /// Whether that leaves room for the guests of any one host that is lost
    "leases.hunt_n_plus_one" hunt_n_plus_one: bool = "true" as "BOOL";
    /// The longest that it may take to clear hosts for one lease
    "leases.hunt_longest" hunt_longest: Span = "1h" as "DURATION";
    /// How fast guests are copied to other hosts, MiB per second, to say how long it takes
    "leases.hunt_speed" hunt_speed: u32 = "1000" as "N";
    /// How many guests are moved at once for one lease
    "leases.moves_at_once" moves_at_once: usize = "2" as "N";
    /// How long what is offered instead of what was refused is kept free for who wants it held; 0s for not at all
    "leases.offer_hold" offer_hold: Span = "1m" as "DURATION";
    /// Refusals whose offers are held for one project at once; those of further ones are said and not held
    "leases.offers_at_once" offers_at_once: usize = "5" as "N";
    /// Refusals whose offers are held for one project in an hour; those of further ones are said and not held
    "leases.offers_hourly" offers_hourly: usize = "60" as "N";
    /// How far ahead a later start is looked for, to offer it
    "leases.offers_ahead" offers_ahead: Span = "90d" as "DURATION";
    /// Leases that start sooner than this keep their hosts; later ones may get others, to make room
    "leases.replan_notice" replan_notice: Span = "10m" as "DURATION";
    /// How many requests of a project may be on the waitlist
    "leases.waitlist_limit" waitlist_limit: usize = "100" as "N";
    /// Longest lease; without it, there is no limit
    "leases.max_duration" max_duration: Option<Span> = "" as "DURATION";
    /// How long before its end a lease may be extended, by up to the longest duration again; without it, at any
    /// time, and its whole length is limited
    "leases.extension_window" extension_window: Option<Span> = "" as "DURATION";
    /// How long leases of a project on hosts of one free pool may last together, one after another or at the same time;
    /// without it, there is no limit
    "leases.max_stack" max_stack: Option<Span> = "" as "DURATION";
    /// Projects without limits on the length of leases and without quotas of leases, separated by commas
    "leases.exempt_projects" exempt_projects: Vec<String> = "" as "LIST";
    /// How long leases are kept after they have ended; then they are gone as if they were deleted, and what they used
    /// stays in usage and billing. `forever` keeps them
    "leases.keep" keep_leases: Kept = "90d" as "DURATION";

    /// How long after its start a lease without any instance is warned of; without it, never
    "housekeeping.unused_warning" unused_warning: Option<Span> = "" as "DURATION";
    /// How long after its start such a lease ends, warned of before; without it, never
    "housekeeping.unused_reclaim" unused_reclaim: Option<Span> = "" as "DURATION";
    /// How long before the start and the end of a lease its owner is reminded; without it, never
    "housekeeping.reminders" reminders: Option<Span> = "" as "DURATION";
    /// How many hosts of a lease its owner may have exchanged
    "housekeeping.swaps" swaps: u32 = "0" as "N";
    /// What hosts are like that are given to who asks for nothing in particular, unless there are none:
    /// `["!=", "$gpu", "yes"]`
    "housekeeping.default_properties" default_properties: Option<Properties> = "" as "JSON";
    /// Project that maintenance of hosts is booked for; without it, none is
    "housekeeping.maintenance_project" maintenance_project: Option<String> = "" as "PROJECT";

    /// How many leases that are not over a project may have; without it, there is no limit
    "quota.leases" quota_leases: Option<u64> = "" as "N";
    /// How many whole hosts these may have at any one time
    "quota.hosts" quota_hosts: Option<u64> = "" as "N";
    /// How many host-hours these may have: hosts times the hours from start to end
    "quota.host_hours" quota_host_hours: Option<u64> = "" as "N";
    /// For how many instances these may have room at any one time
    "quota.instances" quota_instances: Option<u64> = "" as "N";

    /// How many instances a project may have beside leases; without it, as many as there is room for. Preemptible ones
    /// are counted apart
    "instances.quota" instance_quota: Option<u64> = "" as "N";
    /// How many virtual CPUs these may have together
    "instances.quota_vcpus" instance_quota_vcpus: Option<u64> = "" as "N";
    /// How much memory these may have together
    "instances.quota_memory_gib" instance_quota_memory: Option<u64> = "" as "GIB";

    /// Whether instances may be preemptible: they run on hosts of the free pool until the next lease of their host
    "preemptible.enabled" preemptible: bool = "false" as "BOOL";
    /// Projects whose instances are preemptible unless a request says otherwise, separated by commas; `*` stands for
    /// anything, `?` for any character. In a cloud only with the fence `tenant`, and then by their identifiers
    "preemptible.projects" preemptible_projects: Vec<String> = "" as "LIST";
    /// What of a request may say that its instance is preemptible, separated by commas: its scheduler `hint`, or the
    /// property blazar:preemptible of its `flavor`, its `image` or a `volume`
    "preemptible.marks" preemptible_marks: BTreeSet<Mark> = "hint,flavor,image,volume" as "LIST";
    /// How long a preemptible instance is to have its place at least
    "preemptible.least_lifetime" least_lifetime: Span = "10m" as "DURATION";
    /// How long before a lease starts its hosts are to be empty of preemptible instances; they are asked to leave
    /// leases.grace before that
    "preemptible.margin" preemptible_margin: Span = "30s" as "DURATION";
    /// How long before that preemptible instances are moved to another gap, if there is one that is long enough; 0 for
    /// not at all
    "preemptible.moving_time" preemptible_moving_time: Span = "5m" as "DURATION";
    /// Whether they may run on hosts of leases that do not use them, if whoever has the lease allows it
    "preemptible.backfill" preemptible_backfill: bool = "false" as "BOOL";
    /// Classes of preemptible instances, with how long each has to shut down before it is deleted, separated by commas:
    /// `batch=10m:stop,spot=30s`; with `:stop` it is kept then, to be started again; those of no class have
    /// leases.grace
    "preemptible.classes" preemptible_classes: Vec<Class> = "" as "LIST";
    /// How many preemptible instances a project may have; without it, as many as there is room for
    "preemptible.quota" preemptible_quota: Option<u64> = "" as "N";
    /// How many virtual CPUs these may have together
    "preemptible.quota_vcpus" preemptible_quota_vcpus: Option<u64> = "" as "N";
    /// How much memory these may have together
    "preemptible.quota_memory_gib" preemptible_quota_memory: Option<u64> = "" as "GIB";
    /// How many core-hours preemptible instances of a project may use within the window; then it may start no more of
    /// them for a while. Without it, as many as there are
    "preemptible.usage_limit" preemptible_usage_limit: Option<u64> = "" as "N";
    /// How far back that is counted
    "preemptible.usage_window" preemptible_usage_window: Span = "24h" as "DURATION";

    /// How long usage that is over is kept, and what happened
    "usage.keep" keep_usage: Kept = "forever" as "DURATION";
    /// What prices are in, as it is to be shown
    "usage.currency" currency: String = "" as "NAME";
    /// Price of a lease, once, when it starts
    "usage.price_lease" price_lease: Decimal = "0" as "PRICE";
    /// Price of a whole host for an hour
    "usage.price_host_hour" price_host_hour: Decimal = "0" as "PRICE";
    /// Price of a CPU of room for instances for an hour
    "usage.price_core_hour" price_core_hour: Decimal = "0" as "PRICE";
    /// Price of a GiB of memory of room for instances for an hour
    "usage.price_gib_hour" price_gib_hour: Decimal = "0" as "PRICE";
    /// Price of an address for an hour
    "usage.price_address_hour" price_address_hour: Decimal = "0" as "PRICE";
    /// Price of an instance in a lease for an hour, beside what the lease costs
    "usage.price_instance_hour" price_instance_hour: Decimal = "0" as "PRICE";

    /// Whether hosts that nobody needs are switched off, and on again in time; the fleet has to be able to
    "energy.enabled" energy: bool = "false" as "BOOL";
    /// Whether it is only planned, and no host is switched off
    "energy.dry_run" energy_dry_run: bool = "false" as "BOOL";
    /// How many hosts of each free pool stay on although nobody needs them
    "energy.spare_hosts" energy_spare_hosts: u32 = "1" as "N";
    /// How long hosts count as booting at least, whatever was measured, and those that were never measured
    "energy.boot_time" energy_boot_time: Span = "5m" as "DURATION";
    /// How much earlier than it must be a host is there; half of it is for doing without one that does not come up
    "energy.margin" energy_margin: Span = "2m" as "DURATION";
    /// A host is switched off only if it can stay off for so long
    "energy.shortest_rest" energy_shortest_rest: Span = "1h" as "DURATION";
    /// How often a host is switched off within a day at most
    "energy.rests_a_day" energy_rests_a_day: u32 = "3" as "N";
    /// How many hosts boot at the same time at most
    "energy.boots_at_once" energy_boots_at_once: u32 = "10" as "N";
    /// Whether leases that have not started are given other hosts if these draw less, once a day at most; not within
    /// `leases.replan_notice` of their start
    "energy.repack" energy_repack: bool = "false" as "BOOL";
    /// How many watt-hours that has to save
    "energy.repack_watt_hours" energy_repack_watt_hours: u32 = "100" as "N";
    /// How far ahead is planned
    "energy.horizon" energy_horizon: Span = "7d" as "DURATION";

    /// Those that are applied, by Nova's names, separated by commas; what a lease asks for that none of them looks
    /// at is refused
    "filters.enabled" filters: BTreeSet<Filter> = "AllHostsFilter,ComputeFilter,IsolatedHostsFilter,\
    AggregateMultiTenancyIsolation,AvailabilityZoneFilter,CoreFilter,RamFilter,DiskFilter,JsonFilter,\
    ComputeCapabilitiesFilter,AggregateInstanceExtraSpecsFilter,PlacementFilter,TrustedFilter,\
    NUMATopologyFilter,PciPassthroughFilter,ImagePropertiesFilter,AggregateImagePropertiesIsolation,HomogeneousHostsFilter" as "LIST";
    /// Names of hosts that `IsolatedHostsFilter` keeps from all leases, separated by commas
    "filters.isolated_hosts" isolated_hosts: Vec<String> = "" as "LIST";
    /// Filters of your own, separated by commas, each a name and what hosts must be like:
    /// `LiveHosts=["==", "$stage", "live"]`
    "filters.custom" custom_filters: Vec<CustomFilter> = "" as "LIST";

    /// Scheduler hints that leases may give, separated by commas
    "hints.enabled" hints: BTreeSet<Hint> = "query,host,same_host,different_host,location,group" as "LIST";
    /// Property of hosts that says where they are, for the hint `location`
    "hints.location" hint_location: String = "rack" as "NAME";
    /// So many hosts have to match the hints of a lease, free or not; hints that fewer match are too strict
    "hints.least_hosts" least_hosts: u32 = "0" as "N";
    /// Whether a lease may name a single host
    "hints.single_host" single_host: bool = "true" as "BOOL";

    /// Its address, which check-create, check-update and on-end are joined to as links are; without it, nobody
    /// is asked
    "enforcement.url" enforcement_url: Option<String> = "" as "URL";
    /// Where to ask about new leases, if not there
    "enforcement.check_create_url" check_create_url: Option<String> = "" as "URL";
    /// Where to ask about changes, if not there
    "enforcement.check_update_url" check_update_url: Option<String> = "" as "URL";
    /// Where to tell of ends, if not there
    "enforcement.on_end_url" on_end_url: Option<String> = "" as "URL";
    /// File with the token to show it
    "enforcement.token_file" enforcement_token_file: Option<PathBuf> = "" as "FILE";
    /// How long it may take to answer; then it counts as a refusal
    "enforcement.timeout" enforcement_timeout: Span = "10s" as "DURATION";
    /// The `auth_url` that it is told
    "enforcement.auth_url" enforcement_auth_url: Option<String> = "" as "URL";
    /// The `region_name` that it is told
    "enforcement.region_name" enforcement_region_name: Option<String> = "" as "NAME";

    /// Address that notifications are pushed to, one by one in their order; without it, they can only be asked for
    "notifications.url" notifications_url: Option<String> = "" as "URL";
    /// File with the secret that they are signed with (HMAC-SHA256); without it, they are not
    "notifications.secret_file" notifications_secret_file: Option<PathBuf> = "" as "FILE";
    /// How long the listener may take to answer, a minute at most; then it is told again
    "notifications.timeout" notifications_timeout: Span = "10s" as "DURATION";
    /// How long notifications are kept for a listener that does not take them
    "notifications.keep" keep_undelivered: Span = "90d" as "DURATION";

    /// File with the address of the cloud's message bus, as `transport_url` of OpenStack's services:
    /// `rabbit://USER:PASSWORD@HOST:PORT,USER:PASSWORD@HOST:PORT/VIRTUAL_HOST`; notifications are published there as
    /// Blazar's are
    "message_bus.url_file" message_bus_url_file: Option<PathBuf> = "" as "FILE";
    /// Whether TLS is spoken, if the address does not say so with `?ssl=1`
    "message_bus.tls" message_bus_tls: bool = "false" as "BOOL";
    /// Authorities (PEM) that the brokers' certificates are of; without it, those of the system
    "message_bus.ca_file" message_bus_ca_file: Option<PathBuf> = "" as "FILE";
    /// Exchange that messages are published on
    "message_bus.exchange" message_bus_exchange: String = "openstack" as "NAME";
    /// Topics that each message is published to, separated by commas; their queues are called `TOPIC.info`. Without any,
    /// nothing is published
    "message_bus.topics" message_bus_topics: Vec<String> = "notifications" as "LIST";
    /// Who messages are said to be of
    "message_bus.publisher_id" message_bus_publisher_id: String = "blazar.lease" as "NAME";
    /// Whether queues that do not exist yet are made to outlive a restart of their broker
    "message_bus.durable_queues" message_bus_durable_queues: bool = "false" as "BOOL";
    /// Whether queues that do not exist yet are made as quorum queues, which several brokers have
    "message_bus.quorum_queues" message_bus_quorum_queues: bool = "false" as "BOOL";
    /// Exchange on which Nova publishes notifications
    "message_bus.nova_exchange" message_bus_nova_exchange: String = "nova" as "NAME";
    /// Topics of Nova's versioned notifications, separated by commas, as `versioned_notifications`: hosts that something
    /// is said of are looked at at once. Without any, nothing is heard
    "message_bus.nova_topics" message_bus_nova_topics: Vec<String> = "" as "LIST";
    /// How long a broker may take to let the service in and to confirm a message, a minute at most; then the next one, or
    /// it again, is told
    "message_bus.timeout" message_bus_timeout: Span = "10s" as "DURATION";

    /// Longest body of a request
    "limits.body_bytes" body_bytes: usize = "1048576" as "BYTES";
    /// Most characters of an expression on properties of hosts, or of the hint `query`
    "limits.expression_length" expression_length: usize = "16384" as "N";
    /// Most characters of any other text in a request, and of an option in its address
    "limits.value_length" value_length: usize = "255" as "N";
    /// Most entries of a list in a request, and fields of an object
    "limits.entries" entries: usize = "500" as "N";
    /// Most hosts that a question which hosts may have an instance, or their maintenance, may name
    "limits.hosts" hosts_named: usize = "10000" as "N";
    /// Most reservations of a lease
    "limits.reservations" reservations: usize = "50" as "N";
    /// Most leases that recur together
    "limits.series" series: u32 = "200" as "N";
    /// Largest number of hosts, instances or addresses that a reservation may ask for
    "limits.amount" amount: u32 = "1000000" as "N";
    /// How far in the future a date may be; 36525d are a hundred years
    "limits.dates_ahead" dates_ahead: Span = "36525d" as "DURATION";
    /// How long a client may take to send a request, or to take any of an answer
    "limits.read_time" read_time: Span = "30s" as "DURATION";
    /// How often a user may ask, and whoever fails to log in from an address; 0 for no limit
    "limits.requests_per_second" requests_per_second: u32 = "0" as "N";
    /// How many requests of a client are answered at once after a silence, where their number is limited
    "limits.requests_burst" requests_burst: u32 = "100" as "N";
    /// How many requests of a user may be under way at once; more are refused
    "limits.requests_at_once" requests_at_once: usize = "256" as "N";
    /// How many streams of changes of the calendar there may be; more are refused
    "limits.streams" streams: usize = "512" as "N";
    /// How many of them a user may have, in a project
    "limits.streams_per_user" streams_per_user: usize = "8" as "N";
    /// How long such a stream lasts; its client asks again then, and has to be somebody still
    "limits.stream_time" stream_time: Span = "10m" as "DURATION";
    /// How much work one decision may cost: looks at hosts, bookings and values of expressions. What would cost more is
    /// refused; 30 million take about 0.3 s
    "limits.decision_work" decision_work: u64 = "30000000" as "UNITS";
    /// How many decisions and long readings that change nothing are made at once, beside the one that changes
    /// something; without it, one less than there are processors, since leases start and end meanwhile. More wait, and
    /// clients share by the work that they ask for
    "limits.decisions_at_once" decisions_at_once: Option<usize> = "" as "N";
    /// How many connections there may be; more are closed at once
    "limits.connections" connections: usize = "4096" as "N";
    /// How many of them from one address; more than that for a proxy that many clients are behind
    "limits.connections_per_address" connections_per_address: usize = "1024" as "N";
    /// How many passwords of a user may be wrong at once from one address, before it is one every ten seconds; ten
    /// times as many of all users from one address; 0 for no limit
    "limits.failed_logins" failed_logins: u32 = "10" as "N";
    /// Longest list that is answered at once, if a client asks for a limited one
    "limits.page" page: u32 = "1000" as "N";
    /// How long a client may wait for notifications
    "limits.notification_wait" notification_wait: Span = "60s" as "DURATION";
    /// How long a deletion waits for hosts to be taken back before it is answered
    "limits.delete_wait" delete_wait: Span = "5s" as "DURATION";
    /// How long running requests may take when the service stops
    "limits.stop_time" stop_time: Span = "30s" as "DURATION";
    /// How long a step of a hand-over may take before it is tried again
    "limits.step_time" step_time: Span = "2m" as "DURATION";
    /// How many steps are carried out at once; without it, 256 by hooks, which may be a process each, and 1024
    /// simulated
    "limits.steps_at_once" steps_at_once: Option<usize> = "" as "N";
    /// How often the whole fleet is looked at when nothing else is to be done
    "limits.observe_interval" observe_interval: Span = "30s" as "DURATION";
    /// After how long without an observation the health of hosts counts as unknown
    "limits.unknown_after" unknown_after: Span = "3m" as "DURATION";
    /// How far the clock may be from the database's; a service whose clock is further off changes nothing
    "limits.longest_clock_skew" longest_clock_skew: Span = "5s" as "DURATION";
    /// How old the newest record of a SQLite database may be at the start; if it is older, the clock may be wrong, and
    /// nothing is changed before `allot doctor --accept clock`
    "limits.longest_absence" longest_absence: Span = "400d" as "DURATION";
    /// How long notifications, audit records and keys of requests are kept
    "limits.keep_records" keep_records: Span = "30d" as "DURATION";

    /// Clusters that may be asked about by name: `NAME=file:PATH`, `NAME=rapi:ADDRESS` or `NAME=luxi:SOCKET`, separated
    /// by commas
    "placement.clusters" clusters: Clusters = "" as "NAME=SOURCE,...";
    /// Longest body of a question that has a cluster in it, in bytes
    "placement.cluster_bytes" cluster_bytes: usize = "8388608" as "N";
    /// How much time of a processor a question may take
    "placement.compute_time" compute_time: Span = "20s" as "DURATION";
    /// How much memory a question may take, in MiB
    "placement.memory" placement_memory: u32 = "1024" as "N";
    /// How many questions are computed at once; eight times as many are taken on, one of each user
    "placement.at_once" placements_at_once: usize = "1" as "N";

    /// What is logged: error, warn, info, debug or trace, or by module, as info,service=debug
    "log.level" log_level: String = "info" as "LEVEL";
    /// How: text or json
    "log.format" log_format: LogFormat = "text" as "FORMAT";
}
