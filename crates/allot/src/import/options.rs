//! Options of `blazar.conf`, and how each is translated. `docs/how-to/replace-blazar.md` has the table.
//!
//! Names and defaults come from the lists that a running Blazar 18 and earlier releases of its libraries give
//! of themselves, from Chameleon's Blazar, and from the specification of preemptible instances.

mod libraries;
mod old_names;

use self::libraries::{GROUPS, Group};

pub(super) use self::old_names::today;
#[cfg(test)]
pub(super) use self::old_names::todays_names;

/// Translation of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    /// Becomes this setting.
    Setting(&'static str, Kind),
    /// Becomes this setting if this filter is enabled.
    Filter(&'static str, Kind, &'static str),
    /// Becomes this setting if Blazar uses the message bus for this.
    Bus(Use, &'static str, Kind),
    /// Becomes this setting together with other options.
    Part(&'static str),
    /// Belongs in a file: first the setting that names it, then its path.
    Secret(&'static str, &'static str),
    /// The service always behaves as with this value. Any other value is reported.
    Fixed(&'static str),
    /// Plugins for types of reservations. Those in [`PLUGINS`] are always there, and others are reported.
    Plugins,
    /// Has no counterpart.
    Nothing,
}

/// Purpose of Blazar's message bus, other than Blazar's internal calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Publishing notifications.
    Publishes,
    /// Listening to Nova's notifications.
    Hears,
    Either,
}

/// Format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Minutes,
    /// -1 means that the option isn't set. Other negative values are invalid.
    Seconds,
    List,
    Switch,
    /// Interface in the service catalog: public, internal or admin.
    Interface,
    /// Action before the end of a lease.
    BeforeEnd,
}

/// An option of `blazar.conf`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub section: &'static str,
    /// `*`, in a [`Group`], matches all other options of the section.
    pub name: &'static str,
    pub becomes: Becomes,
    /// Remark for the operator, possibly empty.
    pub why: &'static str,
}

const fn known(section: &'static str, name: &'static str, becomes: Becomes, why: &'static str) -> Known {
    Known { section, name, becomes, why }
}

use Becomes::{Bus, Filter, Fixed, Nothing, Part, Plugins, Secret, Setting};
use Kind::{BeforeEnd, Interface, List, Minutes, Number, Seconds, Switch, Text};
use Use::{Either, Hears, Publishes};

/// Files in which operators must put the secrets.
pub(super) const OF_NOVA: &str = "/etc/allot/nova.password";
pub(super) const OF_KEYSTONE: &str = "/etc/allot/keystone.password";
pub(super) const OF_BUS: &str = "/etc/allot/message-bus.url";
const OF_SERVICE: &str = "/etc/allot/enforcement.token";

/// Names of filters in `enabled_filters`.
pub(super) const DURATION: &str = "MaxLeaseDurationFilter";
pub(super) const EXTERNAL: &str = "ExternalServiceFilter";

const AUTH_URL: Becomes = Part("openstack.auth_url");
const IF_USED: &str =
    "if Blazar publishes notifications (`driver` has to be messagingv2 or messaging) or hears Nova's";
const BUS_URL: Becomes = Part("message_bus.url_file");
const CATALOG: &str = "Keystone is set by its URL";

/// Blazar's plugins for the types of reservations that the service has.
pub(super) const PLUGINS: [&str; 4] = [
    "physical.host.plugin",
    "virtual.instance.plugin",
    "flavor.instance.plugin",
    "virtual.floatingip.plugin",
];

const OPTIONS: &[Known] = &[
    known("DEFAULT", "host", Part("listen"), "a name is omitted, since `listen` takes an IP address"),
    known("DEFAULT", "port", Part("listen"), ""),
    known("DEFAULT", "auth_strategy", Fixed("keystone"), "see `auth` for a service without logins"),
    known("DEFAULT", "enable_v1_api", Fixed("true"), "there is always v1, and no v2"),
    known("DEFAULT", "cleaning_time", Setting("leases.cleaning_time", Minutes), ""),
    known("DEFAULT", "os_auth_protocol", AUTH_URL, ""),
    known("DEFAULT", "os_auth_host", AUTH_URL, ""),
    known("DEFAULT", "os_auth_port", AUTH_URL, ""),
    known("DEFAULT", "os_auth_prefix", AUTH_URL, ""),
    known("DEFAULT", "os_auth_version", Fixed("v3"), "Keystone's version 3 is spoken"),
    known("DEFAULT", "os_admin_username", Setting("openstack.username", Text), ""),
    known("DEFAULT", "os_admin_password", Secret("openstack.secret_file", OF_NOVA), ""),
    known("DEFAULT", "os_admin_project_name", Setting("openstack.project", Text), ""),
    known("DEFAULT", "os_admin_user_domain_name", Setting("openstack.user_domain", Text), ""),
    known("DEFAULT", "os_admin_project_domain_name", Setting("openstack.project_domain", Text), ""),
    known("DEFAULT", "cafile", Setting("openstack.ca_file", Text), ""),
    known("DEFAULT", "os_region_name", Setting("region", Text), ""),
    known("DEFAULT", "identity_service", Nothing, CATALOG),
    known("DEFAULT", "endpoint_type", Nothing, CATALOG),
    known("DEFAULT", "keystone_client_version", Nothing, "Keystone's version 3 is spoken"),
    known("DEFAULT", "log_exchange", Nothing, "bodies of requests are never logged"),
    known("DEFAULT", "db_driver", Nothing, "see `database`"),
    known(
        "DEFAULT",
        "command",
        Nothing,
        "for `blazar-db-manage`; `allot database migrate` creates and upgrades the schema",
    ),
    known("DEFAULT", "state_path", Nothing, "files have paths of their own, such as in `database`"),
    known("DEFAULT", "debug", Part("log.level"), ""),
    known("DEFAULT", "use_json", Part("log.format"), ""),
    known("DEFAULT", "transport_url", BUS_URL, IF_USED),
    known("DEFAULT", "control_exchange", Bus(Publishes, "message_bus.exchange", Text), ""),
    known("api", "api_v2_controllers", Nothing, "there is no v2, which no client uses"),
    known(
        "manager",
        "rpc_topic",
        Nothing,
        "for calls between Blazar's processes; the service is one process",
    ),
    known(
        "manager",
        "plugins",
        Plugins,
        "reservations of hosts, instances, flavors and floating IPs are always available, and no others",
    ),
    known("manager", "minutes_before_end_lease", Setting("leases.before_end_lead", Minutes), ""),
    known("manager", "event_max_retries", Nothing, "failed steps are retried until the lease ends"),
    known(
        "enforcement",
        "enabled_filters",
        Part("leases.max_duration"),
        "custom filters aren't run: the service doesn't start until you have replaced them",
    ),
    known(
        "enforcement",
        "max_lease_duration",
        Filter("leases.max_duration", Seconds, DURATION),
        "-1 means no limit; as in Blazar, the filter must be enabled",
    ),
    known(
        "enforcement",
        "max_lease_duration_exempt_project_ids",
        Filter("leases.exempt_projects", List, DURATION),
        "they are exempt from quotas of leases as well",
    ),
    known(
        "enforcement",
        "exempt_projects",
        Filter("leases.exempt_projects", List, DURATION),
        "unless `max_lease_duration_exempt_project_ids` is set; the option isn't Blazar's",
    ),
    known(
        "enforcement",
        "reservation_extension_window",
        Filter("leases.extension_window", Seconds, DURATION),
        "the option is Chameleon's",
    ),
    known(
        "enforcement",
        "external_service_base_endpoint",
        Filter("enforcement.url", Text, EXTERNAL),
        "as in Blazar, the filter must be enabled",
    ),
    known(
        "enforcement",
        "external_service_check_create_endpoint",
        Filter("enforcement.check_create_url", Text, EXTERNAL),
        "",
    ),
    known(
        "enforcement",
        "external_service_check_update_endpoint",
        Filter("enforcement.check_update_url", Text, EXTERNAL),
        "",
    ),
    known(
        "enforcement",
        "external_service_on_end_endpoint",
        Filter("enforcement.on_end_url", Text, EXTERNAL),
        "",
    ),
    known("enforcement", "external_service_token", Secret("enforcement.token_file", OF_SERVICE), ""),
    known("notifications", "publisher_id", Bus(Publishes, "message_bus.publisher_id", Text), ""),
    known("nova", "endpoint_type", Setting("openstack.interface", Interface), ""),
    known("nova", "aggregate_freepool_name", Setting("openstack.free_pool", Text), ""),
    known("nova", "nova_client_version", Nothing, "each request has a fixed microversion"),
    known(
        "nova",
        "compute_service",
        Fixed("compute"),
        "services are found in the catalog by their usual types",
    ),
    known("nova", "image_prefix", Nothing, "names of images begin with `reserved_`, Blazar's default"),
    known("nova", "project_id_key", Nothing, "the filter of blazar-nova uses `blazar:owner`"),
    known("nova", "blazar_owner", Fixed("blazar:owner"), "set the same in nova.conf"),
    known("nova", "az_aware", Fixed("true"), "aggregates of leases always have a zone"),
    known("neutron", "endpoint_type", Nothing, "`openstack.interface` is for all services"),
    known("placement", "endpoint_type", Nothing, "`openstack.interface` is for all services"),
    known("keystone", "endpoint_type", Nothing, CATALOG),
    known("physical:host", "blazar_az_prefix", Fixed("blazar_"), "set the same in nova.conf"),
    known("physical:host", "before_end", Setting("leases.before_end_action", BeforeEnd), ""),
    known(
        "physical:host",
        "healing_interval",
        Setting("leases.healing_interval", Minutes),
        "0 means no limit",
    ),
    known("physical:host", "polling_interval", Setting("limits.observe_interval", Seconds), ""),
    known(
        "physical:host",
        "enable_polling_monitor",
        Fixed("true"),
        "hosts are always monitored, and replaced when they fail",
    ),
    known(
        "physical:host",
        "enable_notification_monitor",
        Part("message_bus.nova_topics"),
        "without it, the service doesn't listen",
    ),
    known(
        "physical:host",
        "notification_topics",
        Bus(Hears, "message_bus.nova_topics", List),
        "only versioned notifications are understood",
    ),
    known(
        "physical:host",
        "randomize_host_selection",
        Nothing,
        "hosts are chosen to leave the most for other leases",
    ),
    known(
        "physical:host",
        "default_resource_properties",
        Setting("housekeeping.default_properties", Text),
        "the option is Chameleon's",
    ),
    known(
        "physical:host",
        "display_default_resource_properties",
        Nothing,
        "leases are shown as they were requested; the option is Chameleon's",
    ),
    known(
        "physical:host",
        "retry_allocation_without_defaults",
        Fixed("true"),
        "a lease that gets no hosts with the default properties is retried without them; the option is Chameleon's",
    ),
    known(
        "physical:host",
        "enable_polling_monitor_dry_run",
        Fixed("false"),
        "failed hosts are always replaced; the option is Chameleon's",
    ),
    known(
        "preemptible",
        "graceful_shutdown_time",
        Setting("leases.grace", Seconds),
        "`preemptible.enabled` becomes true; the option is from the specification of preemptible instances, and was never in Blazar",
    ),
    known(
        "keystone_authtoken",
        "auth_url",
        Setting("keystone.auth_url", Text),
        "without it, the `os_auth_...` of `[DEFAULT]`",
    ),
    known("keystone_authtoken", "www_authenticate_uri", Setting("keystone.www_authenticate_uri", Text), ""),
    known(
        "keystone_authtoken",
        "username",
        Setting("keystone.username", Text),
        "without it, `os_admin_username`",
    ),
    known("keystone_authtoken", "password", Secret("keystone.secret_file", OF_KEYSTONE), ""),
    known("keystone_authtoken", "project_name", Setting("keystone.project", Text), ""),
    known("keystone_authtoken", "user_domain_name", Setting("keystone.user_domain", Text), ""),
    known("keystone_authtoken", "project_domain_name", Setting("keystone.project_domain", Text), ""),
    known(
        "keystone_authtoken",
        "user_domain_id",
        Fixed("default"),
        "name another domain in `keystone.user_domain`",
    ),
    known(
        "keystone_authtoken",
        "project_domain_id",
        Fixed("default"),
        "name another domain in `keystone.project_domain`",
    ),
    known(
        "keystone_authtoken",
        "auth_type",
        Part("keystone.username"),
        "password or v3applicationcredential; other ways to log in aren't supported",
    ),
    known(
        "keystone_authtoken",
        "auth_section",
        Part("keystone.username"),
        "options of that section are read like those of `[keystone_authtoken]`",
    ),
    known(
        "keystone_authtoken",
        "application_credential_id",
        Setting("keystone.application_credential", Text),
        "if it is used to log in, instead of user and project",
    ),
    known(
        "keystone_authtoken",
        "application_credential_name",
        Nothing,
        "write the identifier into `keystone.application_credential`",
    ),
    known(
        "keystone_authtoken",
        "application_credential_secret",
        Part("keystone.secret_file"),
        "put it into `/etc/allot/keystone.password`, if an application credential is used to log in",
    ),
    known(
        "keystone_authtoken",
        "service_type",
        Fixed("reservation"),
        "access rules of application credentials must name this type",
    ),
    known("keystone_authtoken", "cafile", Setting("keystone.ca_file", Text), ""),
    known("keystone_authtoken", "insecure", Fixed("false"), "certificates are always verified"),
    known("keystone_authtoken", "http_connect_timeout", Setting("keystone.timeout", Seconds), ""),
    known(
        "keystone_authtoken",
        "token_cache_time",
        Setting("keystone.cache_time", Seconds),
        "-1 means no cache",
    ),
    known(
        "oslo_policy",
        "policy_file",
        Setting("policy_file", Text),
        "in YAML; rules have Blazar's names; a relative path starts at the working directory of the service",
    ),
    known(
        "database",
        "connection",
        Part("database"),
        "an address of PostgreSQL, without the password; MySQL and Blazar's SQLite files have no counterpart",
    ),
    known(
        "database",
        "slave_connection",
        Nothing,
        "`database` can name several servers; the one that accepts writes is used",
    ),
    known("oslo_middleware", "max_request_body_size", Setting("limits.body_bytes", Number), ""),
    known(
        "oslo_messaging_notifications",
        "driver",
        BUS_URL,
        "without messagingv2 or messaging, nothing is published",
    ),
    known("oslo_messaging_notifications", "transport_url", BUS_URL, "precedes the option in `[DEFAULT]`"),
    known("oslo_messaging_notifications", "topics", Bus(Publishes, "message_bus.topics", List), ""),
    known("oslo_messaging_rabbit", "ssl", Bus(Either, "message_bus.tls", Switch), ""),
    known("oslo_messaging_rabbit", "ssl_ca_file", Bus(Either, "message_bus.ca_file", Text), ""),
    known(
        "oslo_messaging_rabbit",
        "amqp_durable_queues",
        Bus(Publishes, "message_bus.durable_queues", Switch),
        "",
    ),
    known(
        "oslo_messaging_rabbit",
        "rabbit_quorum_queue",
        Bus(Publishes, "message_bus.quorum_queues", Switch),
        "",
    ),
];

/// The option of that name, or the `*` of its section.
pub(super) fn find(section: &str, name: &str) -> Option<Known> {
    named(section, name).or_else(|| named(section, "*"))
}

/// The option of exactly that name.
pub(super) fn named(section: &str, name: &str) -> Option<Known> {
    all().find(|known| known.section == section && known.name == name)
}

/// All options, those without a counterpart last.
pub(super) fn all() -> impl Iterator<Item = Known> {
    let of_group = |group: &'static Group| {
        group.names.iter().map(move |name| known(group.section, name, Nothing, group.why))
    };
    OPTIONS.iter().copied().chain(GROUPS.iter().flat_map(of_group))
}

/// Whether the value must not be printed, by the name of the option.
pub(super) fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 6] = ["password", "secret", "secret_key", "token", "connection", "transport_url"];
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Sections, options and descriptions for the table of all options. Options of the libraries without a
/// counterpart share a row by the reason.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>, String)> {
    let rows = OPTIONS.iter().map(|known| (known.section, vec![known.name], said(known)));
    rows.chain(GROUPS.iter().map(|group| (group.section, group.names.to_vec(), group.why.to_owned())))
}

/// Description of an option's translation, for the table and for comments in the settings file.
pub(super) fn said(known: &Known) -> String {
    let setting = |key: &str, kind: Kind| match kind {
        Kind::Minutes => format!("`{key}`, from minutes"),
        Kind::Seconds => format!("`{key}`, from seconds"),
        _ => format!("`{key}`"),
    };
    let first = match known.becomes {
        Setting(key, kind) | Filter(key, kind, _) => setting(key, kind),
        Bus(used, key, kind) => {
            let used = match used {
                Publishes => "publishes notifications",
                Hears => "hears Nova's notifications",
                Either => "publishes or hears notifications",
            };
            format!("{}, if Blazar {used}", setting(key, kind))
        }
        Part(key) => format!("part of `{key}`"),
        Secret(key, file) => format!("`{key}`: put it into `{file}`"),
        Fixed(value) => format!("always as with `{value}`"),
        Plugins | Nothing => return known.why.to_owned(),
    };
    if known.why.is_empty() { first } else { format!("{first}; {}", known.why) }
}
