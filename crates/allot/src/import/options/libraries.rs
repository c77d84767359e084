//! Options of Blazar's libraries without a counterpart, by the reason.

/// Options of a section that lack a counterpart for the same reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub section: &'static str,
    pub names: &'static [&'static str],
    /// Reason, and the replacement if there is one.
    pub why: &'static str,
}

const fn group(section: &'static str, names: &'static [&'static str], why: &'static str) -> Group {
    Group { section, names, why }
}

const RPC: &str = "for calls between Blazar's processes; the service is one process";
const ONE_URL: &str = "write all of them as one URL into the file of `message_bus.url_file`: rabbit://USER:PASSWORD@HOST:PORT/VIRTUAL_HOST";
const FIXED_LINES: &str = "log lines have a fixed format; `log.format` is text or json";
const POOL: &str = "there is one connection for publishing and one for listening, not a pool";
const PAUSES: &str = "brokers are tried in turn, with fixed pauses";
const QUEUE_LIMIT: &str = "limit the queue with a policy of RabbitMQ";
const FROM_URL: &str = "Keystone is found at `keystone.auth_url`";
const IN_MEMORY: &str = "validated tokens are cached in memory, for `keystone.cache_time`";
const ONE_PROJECT: &str = "the service's user logs in to the project in `keystone.project`";
const BY_NAME: &str = "the user is set by name: `keystone.username`";

pub(super) const GROUPS: &[Group] = &[
    group("DEFAULT", &["executor_thread_pool_size", "rpc_response_timeout"], RPC),
    group("DEFAULT", &["rpc_ping_enabled"], "see `/healthz`"),
    group(
        "DEFAULT",
        &[
            "rabbit_host",
            "rabbit_hosts",
            "rabbit_password",
            "rabbit_port",
            "rabbit_userid",
            "rabbit_virtual_host",
            "rpc_backend",
        ],
        ONE_URL,
    ),
    group("DEFAULT", &["verbose"], "see `log.level`"),
    group(
        "DEFAULT",
        &["log_config_append"],
        "logging isn't set up by Python: see `log.level` and `log.format`",
    ),
    group(
        "DEFAULT",
        &["log_dir", "log_file", "watch_log_file"],
        "the log goes to standard error; let systemd (`StandardError=append:FILE`) or the container write a file",
    ),
    group("DEFAULT", &["use_stderr"], "the log always goes to standard error"),
    group("DEFAULT", &["use_journal"], "systemd's journal gets what the service writes to standard error"),
    group(
        "DEFAULT",
        &["syslog_log_facility", "use_syslog", "use_syslog_rfc_format"],
        "the log goes to standard error; systemd's journal can forward it (`ForwardToSyslog=`)",
    ),
    group("DEFAULT", &["use_eventlog"], "for Windows"),
    group("DEFAULT", &["log_color"], "lines are colored if standard error is a terminal"),
    group(
        "DEFAULT",
        &[
            "log_rotate_interval",
            "log_rotate_interval_type",
            "log_rotation_type",
            "max_logfile_count",
            "max_logfile_size_mb",
        ],
        "let systemd's journal or logrotate rotate the log",
    ),
    group(
        "DEFAULT",
        &[
            "instance_format",
            "instance_uuid_format",
            "log_date_format",
            "log_format",
            "logging_context_format_string",
            "logging_debug_format_suffix",
            "logging_default_format_string",
            "logging_exception_prefix",
            "logging_user_identity_format",
        ],
        FIXED_LINES,
    ),
    group("DEFAULT", &["default_log_levels"], "levels by module are in `log.level`"),
    group("DEFAULT", &["publish_errors"], "errors are logged, not published"),
    group(
        "DEFAULT",
        &["rate_limit_burst", "rate_limit_except_level", "rate_limit_interval"],
        "the log isn't limited; systemd's journal has `RateLimitBurst=`",
    ),
    group("DEFAULT", &["fatal_deprecations"], "for developers of Blazar"),
    group("keystone_authtoken", &["auth_version"], "Keystone's version 3 is spoken"),
    group("keystone_authtoken", &["interface"], FROM_URL),
    group(
        "keystone_authtoken",
        &["admin_token", "auth_admin_prefix", "auth_host", "auth_port", "auth_protocol"],
        "write Keystone's URL into `keystone.auth_url`, and use a user or an application credential",
    ),
    group("keystone_authtoken", &["region_name"], "`region` is the region of all services"),
    group(
        "keystone_authtoken",
        &["delay_auth_decision"],
        "requests without a valid token are always rejected",
    ),
    group("keystone_authtoken", &["http_request_max_retries"], "a request is repeated once"),
    group(
        "keystone_authtoken",
        &["certfile", "keyfile"],
        "the service has no client certificate; it logs in with a secret",
    ),
    group(
        "keystone_authtoken",
        &[
            "cache",
            "memcache_password",
            "memcache_pool_conn_get_timeout",
            "memcache_pool_dead_retry",
            "memcache_pool_maxsize",
            "memcache_pool_socket_timeout",
            "memcache_pool_unused_timeout",
            "memcache_sasl_enabled",
            "memcache_secret_key",
            "memcache_security_strategy",
            "memcache_tls_allowed_ciphers",
            "memcache_tls_cafile",
            "memcache_tls_certfile",
            "memcache_tls_enabled",
            "memcache_tls_keyfile",
            "memcache_use_advanced_pool",
            "memcache_username",
            "memcached_servers",
        ],
        IN_MEMORY,
    ),
    group("keystone_authtoken", &["include_service_catalog"], "catalogs of clients' tokens aren't used"),
    group("keystone_authtoken", &["enforce_token_bind"], "Keystone no longer binds tokens"),
    group(
        "keystone_authtoken",
        &["service_token_roles", "service_token_roles_required"],
        "service tokens aren't read: a client's token must be valid itself",
    ),
    group(
        "keystone_authtoken",
        &[
            "default_domain_id",
            "default_domain_name",
            "domain_id",
            "domain_name",
            "project_id",
            "system_scope",
        ],
        ONE_PROJECT,
    ),
    group("keystone_authtoken", &["user_id"], BY_NAME),
    group("keystone_authtoken", &["trust_id"], "the service needs no trust"),
    group(
        "service_user",
        &["*"],
        "clients' tokens aren't passed on, so they need no token of a service beside them",
    ),
    group(
        "oslo_policy",
        &["enforce_new_defaults", "enforce_scope"],
        "the defaults are always those of docs/how-to/run-the-service.md (admin, member, reader), and tokens must be for a project",
    ),
    group("oslo_policy", &["policy_default_rule"], "a rule that `policy_file` lacks has its own default"),
    group("oslo_policy", &["policy_dirs"], "there is one policy file: merge them into `policy_file`"),
    group(
        "oslo_policy",
        &[
            "remote_content_type",
            "remote_ssl_ca_crt_file",
            "remote_ssl_client_crt_file",
            "remote_ssl_client_key_file",
            "remote_ssl_verify_server_crt",
            "remote_timeout",
        ],
        "rules can't ask a server; `enforcement.url` asks one about leases",
    ),
    group(
        "oslo_middleware",
        &["enable_proxy_headers_parsing", "secure_proxy_ssl_header"],
        "headers of proxies aren't trusted; set `public_url` to the address that clients use",
    ),
    group("oslo_middleware", &["http_basic_auth_user_file"], "see `auth` and `basic:FILE`"),
    group("oslo_middleware_tracing", &["*"], "traces aren't exported; see `/metrics`"),
    group("oslo_reports", &["*"], "there are no such reports; see `/metrics` and `allot doctor`"),
    group("oslo_messaging_notifications", &["retry"], "a broker that doesn't respond is retried"),
    group(
        "oslo_messaging_rabbit",
        &[
            "rabbit_host",
            "rabbit_hosts",
            "rabbit_password",
            "rabbit_port",
            "rabbit_userid",
            "rabbit_virtual_host",
        ],
        ONE_URL,
    ),
    group(
        "oslo_messaging_rabbit",
        &["ssl_enforce_fips_mode", "ssl_enforce_hostname_verification", "ssl_version"],
        "TLS 1.2 or newer is used, and certificates are always verified",
    ),
    group(
        "oslo_messaging_rabbit",
        &["ssl_cert_file", "ssl_key_file"],
        "the service has no client certificate; it logs in with the user in the URL",
    ),
    group("oslo_messaging_rabbit", &["amqp_auto_delete"], "queues stay when nothing listens to them"),
    group("oslo_messaging_rabbit", &["conn_pool_min_size", "conn_pool_ttl", "rpc_conn_pool_size"], POOL),
    group(
        "oslo_messaging_rabbit",
        &[
            "kombu_failover_strategy",
            "kombu_missing_consumer_retry_timeout",
            "kombu_reconnect_delay",
            "kombu_reconnect_splay",
            "rabbit_interval_max",
            "rabbit_max_retries",
            "rabbit_retry_backoff",
            "rabbit_retry_interval",
        ],
        PAUSES,
    ),
    group("oslo_messaging_rabbit", &["kombu_compression"], "messages aren't compressed"),
    group("oslo_messaging_rabbit", &["rabbit_login_method"], "the service logs in with the method PLAIN"),
    group("oslo_messaging_rabbit", &["rabbit_ha_queues"], "mirror queues with a policy of RabbitMQ"),
    group(
        "oslo_messaging_rabbit",
        &[
            "rabbit_quorum_delivery_limit",
            "rabbit_quorum_max_memory_bytes",
            "rabbit_quorum_max_memory_length",
        ],
        QUEUE_LIMIT,
    ),
    group(
        "oslo_messaging_rabbit",
        &[
            "direct_mandatory_flag",
            "enable_cancel_on_failover",
            "hostname",
            "processname",
            "rabbit_qos_prefetch_count",
            "rabbit_stream_fanout",
            "rabbit_transient_queues_ttl",
            "rabbit_transient_quorum_queue",
            "use_queue_manager",
        ],
        RPC,
    ),
    group(
        "oslo_messaging_rabbit",
        &["heartbeat_in_pthread", "heartbeat_rate", "heartbeat_timeout_threshold"],
        "the interval of heartbeats isn't configurable",
    ),
    group("oslo_messaging_amqp", &["*"], "notifications go to RabbitMQ by AMQP 0-9-1 only"),
    group("oslo_messaging_kafka", &["*"], "notifications go to RabbitMQ only"),
    group("oslo_messaging_metrics", &["*"], "see `/metrics`"),
    group("database", &["*"], "connections to the database aren't configurable"),
    group("oslo_concurrency", &["*"], "the only lock file is the database's, beside it"),
    group(
        "cors",
        &["*"],
        "the console is served from the service's own address, and other sites' scripts have no access",
    ),
    group("healthcheck", &["*"], "see `/healthz` and `/readyz`"),
    group(
        "physical:host",
        &["on_end", "on_start"],
        "hosts are always handed over at the start and taken back at the end",
    ),
    group("manager", &["notify_hours_before_lease_end"], "in hours; set `leases.before_end_lead`"),
];
