//! Earlier names of options, which Blazar or its libraries accept or used to accept.

/// An earlier name and today's, each with its section. Sections except `DEFAULT` are in lower case, and names
/// have underscores.
pub(super) struct OldName {
    pub old: (&'static str, &'static str),
    pub today: (&'static str, &'static str),
}

const fn old(old: (&'static str, &'static str), today: (&'static str, &'static str)) -> OldName {
    OldName { old, today }
}

const BUS: &str = "oslo_messaging_notifications";
const RABBIT: &str = "oslo_messaging_rabbit";
const TOKEN: &str = "keystone_authtoken";
const HOST: &str = "physical:host";
const POLICY: &str = "oslo_policy";

pub(super) const OLD_NAMES: &[OldName] = &[
    // Blazar
    old(("DEFAULT", "compute_service"), ("nova", "compute_service")),
    old(("DEFAULT", "image_prefix"), ("nova", "image_prefix")),
    old(("DEFAULT", "nova_client_version"), ("nova", "nova_client_version")),
    old((HOST, "aggregate_freepool_name"), ("nova", "aggregate_freepool_name")),
    old((HOST, "az_aware"), ("nova", "az_aware")),
    old((HOST, "blazar_owner"), ("nova", "blazar_owner")),
    old((HOST, "project_id_key"), ("nova", "project_id_key")),
    old((HOST, "blazar_username"), ("DEFAULT", "os_admin_username")),
    old((HOST, "blazar_password"), ("DEFAULT", "os_admin_password")),
    old((HOST, "blazar_project_name"), ("DEFAULT", "os_admin_project_name")),
    old((HOST, "blazar_project_domain_name"), ("DEFAULT", "os_admin_project_domain_name")),
    old((HOST, "blazar_user_domain_name"), ("DEFAULT", "os_admin_user_domain_name")),
    // keystonemiddleware and keystoneauth
    old((TOKEN, "admin_password"), (TOKEN, "password")),
    old((TOKEN, "admin_tenant_name"), (TOKEN, "project_name")),
    old((TOKEN, "admin_user"), (TOKEN, "username")),
    old((TOKEN, "auth_plugin"), (TOKEN, "auth_type")),
    old((TOKEN, "auth_uri"), (TOKEN, "www_authenticate_uri")),
    old((TOKEN, "identity_uri"), (TOKEN, "auth_url")),
    old((TOKEN, "memcache_servers"), (TOKEN, "memcached_servers")),
    old((TOKEN, "tenant_id"), (TOKEN, "project_id")),
    old((TOKEN, "tenant_name"), (TOKEN, "project_name")),
    old((TOKEN, "user_name"), (TOKEN, "username")),
    // oslo.messaging
    old(("DEFAULT", "notification_driver"), (BUS, "driver")),
    old(("DEFAULT", "notification_topics"), (BUS, "topics")),
    old(("DEFAULT", "notification_transport_url"), (BUS, "transport_url")),
    old(("rpc_notifier2", "topics"), (BUS, "topics")),
    old(("DEFAULT", "amqp_auto_delete"), (RABBIT, "amqp_auto_delete")),
    old(("DEFAULT", "amqp_durable_queues"), (RABBIT, "amqp_durable_queues")),
    old(("DEFAULT", "rabbit_durable_queues"), (RABBIT, "amqp_durable_queues")),
    old(("DEFAULT", "kombu_reconnect_delay"), (RABBIT, "kombu_reconnect_delay")),
    old(("DEFAULT", "rabbit_ha_queues"), (RABBIT, "rabbit_ha_queues")),
    old(("DEFAULT", "rabbit_login_method"), (RABBIT, "rabbit_login_method")),
    old(("DEFAULT", "rabbit_retry_backoff"), (RABBIT, "rabbit_retry_backoff")),
    old(("DEFAULT", "rabbit_use_ssl"), (RABBIT, "ssl")),
    old(("DEFAULT", "rpc_conn_pool_size"), (RABBIT, "rpc_conn_pool_size")),
    old(("DEFAULT", "rpc_thread_pool_size"), ("DEFAULT", "executor_thread_pool_size")),
    old((RABBIT, "kombu_reconnect_timeout"), (RABBIT, "kombu_missing_consumer_retry_timeout")),
    old((RABBIT, "kombu_ssl_ca_certs"), (RABBIT, "ssl_ca_file")),
    old((RABBIT, "kombu_ssl_certfile"), (RABBIT, "ssl_cert_file")),
    old((RABBIT, "kombu_ssl_keyfile"), (RABBIT, "ssl_key_file")),
    old((RABBIT, "kombu_ssl_version"), (RABBIT, "ssl_version")),
    old((RABBIT, "rabbit_use_ssl"), (RABBIT, "ssl")),
    // oslo.log, oslo.policy, oslo.middleware, oslo.concurrency and oslo.db
    old(("DEFAULT", "log_config"), ("DEFAULT", "log_config_append")),
    old(("DEFAULT", "logdir"), ("DEFAULT", "log_dir")),
    old(("DEFAULT", "logfile"), ("DEFAULT", "log_file")),
    old(("DEFAULT", "policy_default_rule"), (POLICY, "policy_default_rule")),
    old(("DEFAULT", "policy_dirs"), (POLICY, "policy_dirs")),
    old(("DEFAULT", "policy_file"), (POLICY, "policy_file")),
    old(("DEFAULT", "max_request_body_size"), ("oslo_middleware", "max_request_body_size")),
    old(("DEFAULT", "osapi_max_request_body_size"), ("oslo_middleware", "max_request_body_size")),
    old(("DEFAULT", "disable_process_locking"), ("oslo_concurrency", "disable_process_locking")),
    old(("DEFAULT", "lock_path"), ("oslo_concurrency", "lock_path")),
    old(("DEFAULT", "db_backend"), ("database", "backend")),
    old(("DEFAULT", "sql_connection"), ("database", "connection")),
    old(("DEFAULT", "sql_idle_timeout"), ("database", "connection_recycle_time")),
    old(("DEFAULT", "sql_max_overflow"), ("database", "max_overflow")),
    old(("DEFAULT", "sql_max_pool_size"), ("database", "max_pool_size")),
    old(("DEFAULT", "sql_max_retries"), ("database", "max_retries")),
    old(("database", "sql_connection"), ("database", "connection")),
    old(("sql", "connection"), ("database", "connection")),
];

/// Today's section and name of an option. `None` if the name isn't an old one.
pub(crate) fn today(section: &str, name: &str) -> Option<(&'static str, &'static str)> {
    // The libraries accept old names with dashes as well, such as `user-name`.
    let name = name.replace('-', "_");
    OLD_NAMES.iter().find(|known| known.old == (section, name.as_str())).map(|known| known.today)
}

/// Sections and names that old names stand for.
#[cfg(test)]
pub(crate) fn todays_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    OLD_NAMES.iter().map(|known| known.today)
}
