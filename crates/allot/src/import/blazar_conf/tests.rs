//! Translations of configuration files of Blazar.

use std::collections::BTreeMap;
use std::path::Path;

use server::RateLimit;

use super::*;
use crate::config::{ConfigError, Configuration, merge};

fn settings(text: &str) -> BTreeMap<&'static str, String> {
    let translation = translate(text);
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    translation.settings.iter().map(|(key, setting)| (*key, shown(&setting.value))).collect()
}

/// Configuration of a service that starts with the printed settings.
fn configuration(text: &str) -> Configuration {
    started(text).expect("a configuration")
}

fn started(text: &str) -> Result<Configuration, ConfigError> {
    let printed = translate(text).toml();
    let values = merge(&BTreeMap::new(), &|_| None, Path::new("allot.toml"), &printed);
    Configuration::of(&values)
}

fn told(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::told).collect()
}

const CONF: &str = "\
[DEFAULT]
host = 10.0.0.5
port = 1235
cleaning_time = 10
os_auth_protocol = https
os_auth_host = keystone.example.org
os_admin_username = blazar
os_admin_password = top$ecret
os_admin_project_name = service
os_region_name = RegionOne
transport_url = rabbit://user:hidden@bus
[manager]
plugins = physical.host.plugin,
    virtual.instance.plugin
minutes_before_end_lease = 0
[enforcement]
enabled_filters = MaxLeaseDurationFilter, OurFilter
max_lease_duration = 86400
max_lease_duration_exempt_project_ids = a,b
external_service_base_endpoint = https://quota.example.org/
external_service_token = quiet
[nova]
endpoint_type = internalURL
aggregate_freepool_name = free
[physical:host]
before_end = snapshot
blazar_az_prefix = lease_
enable_polling_monitor = True
healing_intervall = 5
[preemptible]
graceful_shutdown_time = 90
[keystone_authtoken]
username = blazar-api
password = more of it
memcached_servers = 10.0.0.9:11211
";

#[test]
fn what_a_blazar_is_told_becomes_settings_of_ours() {
    let settings = settings(CONF);
    let wanted = [
        ("listen", "10.0.0.5:1235"),
        ("fleet", "openstack"),
        ("auth", "keystone"),
        ("region", "RegionOne"),
        ("leases.cleaning_time", "10m"),
        ("leases.before_end_lead", "0m"),
        ("leases.before_end_action", "snapshot"),
        ("leases.max_duration", "86400s"),
        ("leases.exempt_projects", "[\"a\", \"b\"]"),
        ("leases.grace", "90s"),
        ("preemptible.enabled", "true"),
        ("openstack.auth_url", "https://keystone.example.org:5000/v3"),
        ("openstack.username", "blazar"),
        ("openstack.project", "service"),
        ("openstack.secret_file", "/etc/allot/nova.password"),
        ("openstack.interface", "internal"),
        ("openstack.free_pool", "free"),
        ("keystone.auth_url", "https://keystone.example.org:5000/v3"),
        ("keystone.username", "blazar-api"),
        ("keystone.secret_file", "/etc/allot/keystone.password"),
    ];
    assert_eq!(settings, wanted.map(|(key, value)| (key, value.to_owned())).into());
    assert_eq!(configuration(&CONF.replace(", OurFilter", "")).openstack.driver.free_pool, "free");
}

#[test]
fn what_has_no_counterpart_or_is_unknown_is_named_with_its_line_and_no_secret_is_shown() {
    let translation = translate(CONF);
    let printed = translation.toml();
    for wanted in [
        "# line 11, [DEFAULT]transport_url: not taken over: [oslo_messaging_notifications]driver publishes no",
        "\nunresolved = [\"line 17, [enforcement]enabled_filters: not taken over: OurFilter;",
        "# line 20, [enforcement]external_service_base_endpoint: not taken over: ExternalServiceFilter is not",
        "# line 21, [enforcement]external_service_token: not taken over: ExternalServiceFilter is not",
        "# line 27, [physical:host]blazar_az_prefix: not taken over: always as with `blazar_`",
        "# line 29, [physical:host]healing_intervall: no option of Blazar's; did you mean healing_interval?",
        "# put [DEFAULT]os_admin_password, line 8 into this file\nsecret_file = ",
    ] {
        assert!(printed.contains(wanted), "{wanted}:\n{printed}");
    }
    assert!(!printed.contains("enable_polling_monitor"), "it is as it always is");
    for secret in ["top$ecret", "hidden", "more of it", "quiet"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    assert_eq!(
        translation.summary(),
        "20 settings, 6 options without a counterpart, 1 unusual, 1 limit to replace before the service starts"
    );
}

#[test]
fn notifications_go_on_being_published_where_blazar_publishes_them() {
    let text = "[DEFAULT]\ntransport_url = rabbit://user:hidden@bus\ncontrol_exchange = blazar\n\
                [oslo_messaging_notifications]\ndriver = messagingv2\ntopics = notifications,billing\n\
                [oslo_messaging_rabbit]\nssl = True\nrabbit_quorum_queue = 1\n";
    let translation = translate(text);
    let printed = translation.toml();
    assert!(
        printed.contains("# put [DEFAULT]transport_url, line 2 into this file\nurl_file = "),
        "{printed}"
    );
    assert!(!printed.contains("hidden"), "{printed}");
    let read = configuration(text);
    assert_eq!(read.message_bus_url_file.as_deref(), Some(Path::new("/etc/allot/message-bus.url")));
    let bus = &read.message_bus;
    assert_eq!((bus.exchange.as_str(), bus.topics.len()), ("blazar", 2));
    assert!(bus.tls && bus.quorum_queues && !bus.durable_queues);
    let silent = text.replace("driver = messagingv2", "driver = noop");
    let translation = translate(&silent);
    assert!(!translation.toml().contains("url_file"), "{}", translation.toml());
    assert_eq!(translation.notes.len(), 5, "{}", translation.toml());
}

#[test]
fn notifications_of_nova_go_on_being_heard_where_blazar_hears_them() {
    let text = "[DEFAULT]\ntransport_url = rabbit://user:hidden@bus\n[oslo_messaging_notifications]\ntopics = a\n\
                [oslo_messaging_rabbit]\nssl = True\n[physical:host]\nenable_notification_monitor = True\n\
                notification_topics = notifications,versioned\n";
    let read = configuration(text);
    assert!(read.message_bus_url_file.is_some() && read.message_bus.tls);
    assert_eq!(read.message_bus.topics, [""; 0], "nothing was published");
    assert_eq!(read.message_bus.nova_topics, ["notifications", "versioned"]);
    let read = configuration(text.split_once("notification_topics").expect("it is there").0);
    assert_eq!(read.message_bus.nova_topics, ["versioned_notifications"]);
    let translation = translate(&text.replace("monitor = True", "monitor = False"));
    assert!(!translation.toml().contains("message_bus"), "{}", translation.toml());
    assert!(translation.notes.iter().any(|note| note.what.contains("is off")), "{}", translation.toml());
}

#[test]
fn an_empty_file_is_blazars_defaults_where_they_are_not_ours() {
    let settings = settings("");
    for (key, value) in [
        ("listen", "0.0.0.0:1234"),
        ("openstack.username", "admin"),
        ("keystone.username", "admin"),
        ("keystone.project", "admin"),
        ("keystone.secret_file", "/etc/allot/nova.password"),
        ("openstack.auth_url", "http://127.0.0.1:5000/v3"),
    ] {
        assert_eq!(settings.get(key).map(String::as_str), Some(value), "{key}");
    }
    configuration("");
}

#[test]
fn limits_that_blazar_lacks_keep_their_defaults_and_are_named() {
    let text = "[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 86400\n";
    let printed = translate(text).toml();
    for named in ["20 requests", "limits.requests_per_second", "1000 leases", "quota.leases"] {
        assert!(printed.contains(named), "{named}: {printed}");
    }
    let configuration = configuration(text);
    assert_eq!(configuration.server.limits.rate, RateLimit::default());
    assert_eq!(configuration.service.rules.enforcement.quota, leases::quota::LeaseQuota::default());
}

#[test]
fn nothing_in_a_file_gets_out_of_a_comment() {
    let text = "[manager]\nplugins = Ours\n  auth = \"none\"\n[a\tb]\nc\u{7}d = 1\n";
    assert_eq!(configuration(text).auth.len(), 1);
    for text in [text, &text.replace("[manager]\nplugins", "[enforcement]\nenabled_filters")] {
        let printed = translate(text).toml();
        assert!(printed.lines().all(|line| line != "auth = \"none\""), "{printed}");
    }
}

#[test]
fn what_cannot_be_is_unusual_and_stops_nothing_else() {
    for (text, wanted) in [
        (
            "[DEFAULT]\ncleaning_time = soon",
            "line 2, [DEFAULT]cleaning_time: not taken over: soon isn't a whole number",
        ),
        ("[DEFAULT]\ncleaning_time = -1", "line 2, [DEFAULT]cleaning_time: not taken over: it is negative"),
        ("[DEFAULT]\nport = 99999", "line 2, [DEFAULT]port: not taken over: it isn't a port"),
        (
            "[DEFAULT]\nos_region_name = ${where}",
            "line 2, [DEFAULT]os_region_name: not taken over: it refers to $where, which isn't an option that",
        ),
        (
            "[DEFAULT]\nos_auth_host = ${where}",
            "line 2, [DEFAULT]os_auth_host: not taken over: it refers to $where, which isn't an option that",
        ),
        (
            "[nova]\nendpoint_type = any",
            "line 2, [nova]endpoint_type: not taken over: write public, internal or admin",
        ),
        (
            "[DEFAULT]\ncleaning_time = 9999999999999",
            "line 2, [DEFAULT]cleaning_time: not taken over: invalid as leases.cleaning_time: write a dur",
        ),
        ("[DEFAULT]\nhost", "line 2, no option: an option is written as name = value"),
    ] {
        let text = format!("{text}\n[physical:host]\nbefore_end = snapshot\n");
        let translation = translate(&text);
        let unusual = told(&translation.unusual);
        assert!(matches!(unusual.as_slice(), [one] if one.starts_with(wanted)), "{text}: {unusual:?}");
        assert!(translation.settings.contains_key("leases.before_end_action"), "{text}");
        assert!(translation.toml().contains(&format!("\n# Unusual:\n# {wanted}")), "{}", translation.toml());
        configuration(&text);
    }
}

#[test]
fn limits_that_are_not_taken_over_keep_the_service_from_starting() {
    for text in [
        "[enforcement]\nenabled_filters = MaxLeaseDurationFilter, OurFilter\nmax_lease_duration = 60\n",
        "[enforcement]\nenabled_filters = $filters\nmax_lease_duration = 60\n",
        "[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = week\n",
        "[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = -5\n",
        "[enforcement]\nenabled_filters = ExternalServiceFilter\n",
        "[oslo_policy]\npolicy_file = ${dir}/policy.yaml\n",
    ] {
        let translation = translate(text);
        assert_eq!(translation.unresolved.len(), 1, "{text}: {:?}", translation.unresolved);
        assert!(translation.summary().ends_with(", 1 limit to replace before the service starts"), "{text}");
        let refused = started(text).expect_err(text).to_string();
        assert!(refused.contains(", unresolved: ") && refused.lines().count() == 1, "{refused}");
    }
    let unused = "[enforcement]\nmax_lease_duration = week\nexternal_service_base_endpoint = none\n";
    assert_eq!(told(&translate(unused).unresolved), [""; 0], "Blazar has no such limits either");
    configuration(unused);
}

#[test]
fn files_in_the_shape_of_known_sites_are_taken_over_as_far_as_can_be() {
    let chameleon = include_str!("../fixtures/chameleon.conf");
    let stein = include_str!("../fixtures/stein.conf");
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (
            chameleon,
            &[
                "[physical:host]before_end: not taken over: no mail",
                "[network]network_plugin_option: no option",
            ],
            &[],
        ),
        (include_str!("../fixtures/kolla-ansible.conf"), &["[DEFAULT]api_paste_config: no option"], &[]),
        (include_str!("../fixtures/nectar.conf"), &[], &[]),
        (
            include_str!("../fixtures/genestack.conf"),
            &["[DEFAULT]cleaning_time: not taken over: five minutes isn't a whole"],
            &[
                "[enforcement]enabled_filters: not taken over: SiteQuotaFilter;",
                "[enforcement]max_lease_duration: not taken over: 8 days isn't a whole",
            ],
        ),
        (stein, &[], &[]),
        (
            include_str!("../fixtures/odd.conf"),
            &[
                "line 5, [DEFAULT]debug: not taken over: line 6 sets it again",
                "[DEFAULT]cleaning-time: no option of Blazar's; did you mean cleaning_time?",
                "[DEFAULT]os_region_name: not taken over: it refers to $site, which isn't an option",
                "[DEFAULT]site: no option",
                "no option: this indented line",
                "no option: a section is written as [name]",
                "no option: an option stands before any [section]",
                "[nova]aggregate_freepool_name: not taken over: it refers to $az_prefix,",
                "[DEFAULT]os_admin_project_name: not taken over: it refers to $az_prefix,",
                "[oslo_messaging_rabbit]ssl: not taken over: write true or false",
                "[oslo_messaging_rabbit]brand_new_option: no option",
                "[oslo_middleware]max_request_body_size: not taken over: invalid as limits.body_bytes",
                "[oslo_policy]policy_dirs: not taken over: line",
                "[physical:hots]before_end: no option of Blazar's; did you mean [physical:host]before_end?",
                "no option: an option has no name",
                "no option: an option is written as name = value",
            ],
            &[
                "[enforcement]enabled_filters: not taken over: ExternalServiceFilter; no URL",
                "[enforcement]external_service_base_endpoint: not taken over: it has a password,",
            ],
        ),
    ];
    for (text, unusual, unresolved) in cases {
        let translation = translate(text);
        for (notes, wanted) in [(&translation.unusual, unusual), (&translation.unresolved, unresolved)] {
            let told = told(notes);
            assert_eq!(told.len(), wanted.len(), "{told:?}");
            assert!(told.iter().zip(wanted).all(|(told, wanted)| told.contains(wanted)), "{told:?}");
        }
        assert_eq!(started(text).is_ok(), unresolved.is_empty());
        let printed = translation.toml();
        assert!(!printed.contains("secret-") && !printed.contains("base/x"), "{printed}");
    }
    let of_stein = settings(stein);
    for (key, value) in [
        ("openstack.username", "blazar"),
        ("openstack.project", "services"),
        ("openstack.free_pool", "free"),
        ("keystone.auth_url", "https://keystone.example.org:35357"),
        ("keystone.username", "token"),
        ("keystone.project", "service"),
        ("keystone.secret_file", "/etc/allot/keystone.password"),
        ("message_bus.url_file", "/etc/allot/message-bus.url"),
        ("message_bus.topics", "[\"notifications\", \"billing\"]"),
        ("message_bus.tls", "true"),
        ("limits.body_bytes", "200000"),
        ("policy_file", "/etc/blazar/policy.yaml"),
    ] {
        assert_eq!(of_stein.get(key).map(String::as_str), Some(value), "{key}");
    }
    let settings = settings(chameleon);
    for (key, value) in [
        ("leases.max_duration", "604800s"),
        ("leases.exempt_projects", "[\"0123456789abcdef0123456789abcdef\"]"),
        ("leases.extension_window", "172800s"),
        ("enforcement.url", "https://balance.chi.example.org"),
        ("housekeeping.default_properties", "[\"==\", \"$node_type\", \"compute_haswell\"]"),
    ] {
        assert_eq!(settings.get(key).map(String::as_str), Some(value), "{key}");
    }
    let printed = translate(chameleon).toml();
    assert!(
        printed.contains("[manager]plugins: not taken over: network.plugin, device.plugin;"),
        "{printed}"
    );
}

#[test]
fn options_that_become_settings_become_ones_that_there_are() {
    for known in options::all() {
        let (Becomes::Setting(key, _)
        | Becomes::Filter(key, ..)
        | Becomes::Bus(_, key, _)
        | Becomes::Secret(key, _)
        | Becomes::Part(key)) = known.becomes
        else {
            assert!(!known.why.is_empty(), "nothing is said of {}", known.name);
            continue;
        };
        assert!(TABLE.iter().any(|setting| setting.key == key), "{key}");
    }
}

#[test]
fn an_old_name_counts_unless_todays_name_is_there() {
    let text = "[DEFAULT]\nnotification_topics = a\n[rpc_notifier2]\ntopics = b\n\
                [keystone_authtoken]\nuser-name = ann\nusername = ben\n";
    let translation = translate(text);
    assert_eq!(
        told(&translation.renamed),
        [
            "line 2, [DEFAULT]notification_topics: old name of [oslo_messaging_notifications]topics",
            "line 4, [rpc_notifier2]topics: old name of [oslo_messaging_notifications]topics",
            "line 6, [keystone_authtoken]user-name: old name of [keystone_authtoken]username",
        ]
    );
    assert_eq!(
        told(&translation.unusual),
        [
            "line 2, [oslo_messaging_notifications]topics: not taken over: line 4 sets it again",
            "line 6, [keystone_authtoken]username: not taken over: line 7 has it under today's name",
        ]
    );
    assert_eq!(settings(text)["keystone.username"], "ben");
    assert!(translation.toml().contains("\n# From other names and sections:\n# line 2, "));
}

#[test]
fn an_old_name_leads_to_an_option_that_there_is() {
    for known in options::all() {
        let renamed = options::today(known.section, known.name);
        assert!(renamed.is_none(), "{} is an old name and a known option", known.name);
    }
    for (section, name) in options::todays_names() {
        assert!(options::find(section, name).is_some(), "[{section}]{name}");
    }
}

#[test]
fn the_address_of_postgresql_is_taken_over_without_its_password_and_others_are_explained() {
    let of = |address: &str| translate(&format!("[database]\nconnection = {address}\n"));
    for (address, wanted) in [
        ("postgresql+psycopg2://u:hush@h1:5433/b?client_encoding=utf8", "postgres://u@h1:5433/b"),
        ("postgresql://u:hu@sh/x@h1/b?sslmode=verify-full&x=1", "postgres://u@h1/b?sslmode=verify-full"),
        ("postgres://h1/b", "postgres://h1/b"),
    ] {
        let printed = of(address).toml();
        assert!(printed.contains(&format!("\ndatabase = \"{wanted}\"\n")), "{printed}");
        assert!(!printed.contains("hush") && !printed.contains("hu@"), "{printed}");
    }
    for (address, reason) in [
        ("mysql+pymysql://u:hush@h/b", "MySQL has no counterpart"),
        ("sqlite:////var/lib/blazar/hush.db", "Blazar's file has another format"),
        ("postgresql://u:hush$x@h/b", "it refers to other options"),
        ("postgresql:///hush", "its address names no host"),
        ("hush", "it isn't an address"),
    ] {
        let translation = of(address);
        let printed = translation.toml();
        assert!(
            printed.contains(&format!("\n# [database]connection, line 2: {reason}. Without")),
            "{printed}"
        );
        assert!(printed.contains("\n# database = \"sqlite:///var/lib/allot/allot.db\"\n"), "{printed}");
        assert!(!printed.contains("hush") && translation.notes.len() == 1, "{printed}");
    }
    assert!(!translate("").toml().contains("allot.db"), "nothing is said if the option is missing");
}

#[test]
fn an_application_credential_is_taken_over_or_named_with_the_reason() {
    let text = "[keystone_authtoken]\nauth_type = v3applicationcredential\nauth_url = https://k:5000\n\
                application_credential_id = 0123\napplication_credential_secret = hush\n\
                username = ann\nproject_name = p\n";
    let read = settings(text);
    assert_eq!(read["keystone.application_credential"], "0123");
    assert!(!read.contains_key("keystone.username") && !read.contains_key("keystone.project"), "{read:?}");
    let printed = translate(text).toml();
    assert!(
        printed.contains("# put [keystone_authtoken]application_credential_secret, line 5 into"),
        "{printed}"
    );
    assert!(printed.contains("username: not taken over: the application credential has"), "{printed}");
    assert!(!printed.contains("hush"), "{printed}");
    configuration(text);
    let moved = text.replace("[keystone_authtoken]", "[keystone_authtoken]\nauth_section = other\n[other]");
    assert_eq!(settings(&moved)["keystone.application_credential"], "0123");
    for (from, to, wanted) in [
        ("application_credential_id = 0123", "application_credential_name = n", "no identifier of the app"),
        ("= v3applicationcredential", "= v3oidcpassword", "v3oidcpassword isn't supported"),
    ] {
        let text = text.replace(from, to);
        let translation = translate(&text);
        let unusual = told(&translation.unusual);
        assert!(matches!(unusual.as_slice(), [one] if one.contains(wanted)), "{unusual:?}");
        configuration(&text);
    }
}

#[test]
fn references_to_other_options_are_replaced_and_others_named() {
    let with = |value: &str| {
        format!(
            "[DEFAULT]\nos_auth_host = k\nos_admin_password = hush\nos_region_name = {value}\nlog_dir = $log_file\n\
             log_file = $log_dir\n[nova]\nendpoint_type = public\nimage_prefix = a-$os_auth_host\n"
        )
    };
    for (value, wanted) in [
        ("$os_auth_host-${os_auth_host}x", "k-kx"),
        ("$$a \\$b $1 $", "$a $b $1 $"),
        ("$nova.image_prefix", "a-k"),
        ("${nova.endpoint_type}-${DEFAULT.os_auth_host}", "public-k"),
        ("$$$os_auth_host", "$k"),
        ("${os_auth_host", "${os_auth_host"),
    ] {
        assert_eq!(settings(&with(value)).get("region").map(String::as_str), Some(wanted), "{value}");
    }
    let many = "$os_auth_host".repeat(33);
    for (value, wanted) in [
        ("$nope", "it refers to $nope, which isn't an option that the file sets"),
        ("$os_auth_host.", "it refers to $os_auth_host., which isn't"),
        ("$os_admin_password", "it refers to $os_admin_password, which is secret"),
        ("$log_dir", "it refers to too many"),
        (many.as_str(), "it refers to too many"),
    ] {
        let translation = translate(&with(value));
        let unusual = told(&translation.unusual);
        assert!(matches!(unusual.as_slice(), [one] if one.contains(wanted)), "{value}: {unusual:?}");
        assert!(!translation.toml().contains("hush"), "{value}");
    }
}

#[test]
fn a_misspelled_option_is_reported_with_the_one_that_was_meant() {
    for (text, wanted) in [
        ("[DEFAULT]\nCLEANING_TIME = 1", "did you mean cleaning_time?"),
        ("[keystone_authtoken]\nusernam = a", "did you mean username?"),
        ("[oslo_messaging_rabbit]\namqp_durable_queue = 1", "did you mean amqp_durable_queues?"),
        ("[DEFAULT]\nmax_lease_duration = 1", "did you mean [enforcement]max_lease_duration?"),
        ("[default]\nos_region_name = 1", "did you mean [DEFAULT]os_region_name?"),
        ("[enforcment]\nenabled_filter = 1", "did you mean [enforcement]enabled_filters?"),
    ] {
        let unusual = told(&translate(text).unusual);
        assert!(matches!(unusual.as_slice(), [one] if one.ends_with(wanted)), "{text}: {unusual:?}");
    }
}

#[test]
fn a_password_in_an_address_is_not_printed() {
    let text = "[enforcement]\nenabled_filters = ExternalServiceFilter\n\
                external_service_base_endpoint = https://ann:hush@h/\n[keystone_authtoken]\n\
                auth_url = https://ann:hush@k:5000\n";
    let translation = translate(text);
    assert!(!translation.toml().contains("hush"), "{}", translation.toml());
    assert_eq!((translation.unresolved.len(), translation.unusual.len()), (2, 1));
}
