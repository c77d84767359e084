//! Which compute services do not report any more, and what that says of their hosts.
//!
//! Nova takes a service for down that has not reported for `service_down_time`, and services report by its message bus and its
//! conductors. When these fail all services are down, and hosts and servers are as well as ever; when they are back,
//! services are up again one after the other. If leases were given other hosts by that, servers would be deleted that
//! nothing is wrong with. So a host has failed once its service has been down for a while during which most others were
//! up; before that nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::closure::Closure;
use crate::pools;
use crate::wire::ComputeService;

/// What is known of services that do not report.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Since when they are down and most others up.
    silent: BTreeMap<String, Timestamp>,
    /// Those that have been for long enough.
    failed: BTreeSet<String>,
}

impl Reports {
    /// Notes how all services of the cloud are now. One has failed that is down for so long.
    pub(crate) fn note(&mut self, services: &[ComputeService], now: Timestamp, failed_after: SignedDuration) {
        let (up, silent): (Vec<_>, Vec<_>) =
            services.iter().filter(|service| is_to_report(service)).partition(|service| service.is_up());
        let silent: BTreeSet<&str> = silent.into_iter().map(|service| service.host.as_str()).collect();
        self.failed.retain(|host| silent.contains(host.as_str()));
        if silent.len() > up.len() {
            self.silent.clear();
            return;
        }
        self.silent.retain(|host, _| silent.contains(host.as_str()));
        for host in silent {
            let since = *self.silent.entry(host.to_owned()).or_insert(now);
            if now.duration_since(since) >= failed_after {
                self.failed.insert(host.to_owned());
            }
        }
    }

    /// The hosts of services that have been down for long enough.
    pub(crate) fn failed(&self) -> &BTreeSet<String> {
        &self.failed
    }
}

/// Whether it says something of the cloud that a service is down. Of those that an operator has disabled or declared
/// down, and of hosts that are switched off, it does not.
fn is_to_report(service: &ComputeService) -> bool {
    let is_off = pools::closure(service) == Some(Closure::Saving);
    !service.forced_down && !is_off && pools::is_in_use(service)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

    fn service(host: &str, state: &str, disabled: Option<&str>) -> ComputeService {
        let status = if disabled.is_some() { "disabled" } else { "enabled" };
        let service = json!({
            "id": host, "binary": "nova-compute", "host": host, "state": state, "status": status,
            "disabled_reason": disabled, "forced_down": false,
        });
        serde_json::from_value(service).expect("a service")
    }

    /// So many hosts of which these are down.
    fn cloud(hosts: usize, down: &[usize]) -> Vec<ComputeService> {
        let state = |number| if down.contains(&number) { "down" } else { "up" };
        (1..=hosts).map(|number| service(&format!("host{number}"), state(number), None)).collect()
    }

    /// What has failed after these moments, each with its second and what is down.
    fn failed_after(hosts: usize, moments: &[(i64, &[usize])]) -> Vec<String> {
        let mut reports = Reports::default();
        for (second, down) in moments {
            let now = Timestamp::from_second(*second).expect("a moment");
            reports.note(&cloud(hosts, down), now, PATIENCE);
        }
        reports.failed().iter().cloned().collect()
    }

    #[test]
    fn a_host_has_failed_when_its_service_is_down_for_a_while_and_most_others_are_up() {
        assert!(failed_after(3, &[(0, &[]), (10, &[1]), (69, &[1])]).is_empty());
        assert_eq!(failed_after(3, &[(10, &[1]), (70, &[1])]), ["host1"]);
        assert_eq!(failed_after(2, &[(10, &[1]), (70, &[1])]), ["host1"]);
        assert_eq!(failed_after(4, &[(0, &[1, 2]), (60, &[1, 2])]), ["host1", "host2"], "one of two racks");
        assert!(failed_after(3, &[(0, &[1]), (50, &[]), (60, &[1]), (110, &[1])]).is_empty(), "it was up");
        assert!(failed_after(3, &[(0, &[1]), (60, &[1]), (70, &[])]).is_empty(), "it is up again");
    }

    #[test]
    fn when_most_are_down_it_is_the_cloud_and_time_is_counted_once_most_are_up_again() {
        let all: &[usize] = &[1, 2, 3, 4, 5];
        assert!(failed_after(5, &[(0, all), (3600, all)]).is_empty());
        assert!(
            failed_after(5, &[(0, all), (3600, &[1, 2]), (3659, &[1])]).is_empty(),
            "one after the other"
        );
        assert_eq!(failed_after(5, &[(0, all), (3600, &[1, 2]), (3660, &[1])]), ["host1"]);
        assert_eq!(failed_after(5, &[(0, &[1]), (60, &[1]), (70, all)]), ["host1"], "it was dead before");
        assert!(failed_after(1, &[(0, &[1]), (3600, &[1])]).is_empty(), "there is no other to tell");
    }

    #[test]
    fn hosts_that_are_not_to_report_say_nothing_of_the_cloud() {
        let mut services = cloud(3, &[1]);
        for (host, reason) in [("m1", "maintenance"), ("m2", "maintenance"), ("off", "allot: saving power")] {
            services.push(service(host, "down", Some(reason)));
        }
        let declared = ComputeService { forced_down: true, ..service("f", "down", None) };
        services.push(declared);
        let mut reports = Reports::default();
        for second in [0, 60] {
            reports.note(&services, Timestamp::from_second(second).expect("a moment"), PATIENCE);
        }
        assert_eq!(reports.failed().iter().collect::<Vec<_>>(), ["host1"]);
    }
}
