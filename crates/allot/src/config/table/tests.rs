//! Defaults, places and limits of settings.

use super::super::Configuration;
use super::*;

fn texts(configuration: &Configuration) -> Vec<String> {
    TABLE.iter().map(|setting| setting.text(configuration)).collect()
}

#[test]
fn every_section_has_a_heading() {
    for setting in TABLE {
        assert_ne!(setting.heading(), "Others", "of {}: add it to HEADINGS in setting.rs", setting.section());
    }
}

#[test]
fn zero_is_accepted_only_where_it_means_something() {
    // Zero means no caching, no waiting, no limit, none allowed, or immediately.
    let meaningful = [
        "keystone.cache_time keystone.cached_tokens keystone.outage_time openstack.settle openstack.failed_after",
        "openstack.migration_time simulated.seed leases.cleaning_time leases.grace leases.before_end_lead",
        "leases.healing_interval leases.offer_hold leases.offers_at_once leases.offers_hourly leases.offers_ahead",
        "leases.replan_notice leases.waitlist_limit leases.extension_window leases.keep housekeeping.reminders",
        "housekeeping.swaps quota.leases quota.hosts quota.host_hours quota.instances instances.quota",
        "instances.quota_vcpus instances.quota_memory_gib preemptible.least_lifetime preemptible.max_lifetime",
        "preemptible.margin",
        "preemptible.moving_time preemptible.quota preemptible.quota_vcpus preemptible.quota_memory_gib",
        "preemptible.usage_limit usage.keep energy.spare_hosts energy.boot_time energy.margin",
        "energy.shortest_rest energy.repack_watt_hours hints.least_hosts limits.requests_per_second",
        "limits.streams limits.streams_per_user limits.failed_logins limits.notification_wait limits.delete_wait",
        "limits.stop_time",
    ];
    let meaningful: Vec<&str> = meaningful.iter().flat_map(|keys| keys.split(' ')).collect();
    let counted = ["DURATION", "N", "BYTES", "UNITS", "GIB"];
    let first = |setting: &Setting| setting.value_name.split(',').next().unwrap_or_default();
    let numeric = TABLE.iter().filter(|setting| counted.contains(&first(setting)));
    let accepting = numeric.filter(|setting| ["0", "0s"].iter().any(|zero| setting.check(zero).is_ok()));
    assert_eq!(accepting.map(|setting| setting.key).collect::<Vec<_>>(), meaningful);
}

#[test]
fn every_default_as_it_is_shown_is_read_as_what_it_is() {
    let defaults = format!("{:?}", Configuration::default());
    for setting in TABLE {
        let mut read = Configuration::default();
        let text = setting.text(&read);
        assert_eq!((setting.read)(&mut read, &text), Ok(()), "{}", setting.key);
        assert_eq!(format!("{read:?}"), defaults, "{} = {text}", setting.key);
    }
}

#[test]
fn every_setting_has_a_place_of_its_own() {
    // For each setting, one of these is valid and differs from the default.
    const OTHERS: [&str; 26] = [
        "5h",
        "37s",
        "37",
        "0.37",
        "true",
        "false",
        "[::1]:37",
        "409",
        "memory",
        "keystone",
        "admin",
        "traits",
        "immediate",
        "snapshot",
        "json",
        "[\"==\",\"$a\",\"b\"]",
        "a=[\"==\",\"$a\",\"b\"]",
        "a=37s:stop",
        "a=file:/a",
        "host",
        "hint",
        "openstack",
        "RamFilter",
        "debug",
        "70000",
        "https://a",
    ];
    let before = texts(&Configuration::default());
    for (number, setting) in TABLE.iter().enumerate() {
        let read = OTHERS.iter().find_map(|text| {
            let mut read = Configuration::default();
            (setting.read)(&mut read, text).ok()?;
            (setting.text(&read) == *text && *text != before[number]).then_some((read, *text))
        });
        let (read, text) = read.expect(setting.key);
        let mut wanted = before.clone();
        wanted[number] = text.to_owned();
        assert_eq!(texts(&read), wanted, "{} = {text}", setting.key);
    }
}
