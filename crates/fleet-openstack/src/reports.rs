//! Compute services that no longer report, and the conclusions for their hosts.
//!
//! Nova considers a service down if it hasn't reported for `service_down_time`. Services report through the
//! message bus and Nova's conductors. When these fail, all services are down while hosts and servers are
//! fine, and when they recover, services report again one by one. Replacing the hosts of leases in such a
//! case would delete healthy servers. So a host counts as failed only after its service was down for some
//! time while most services were up. Until then its health is unknown.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::closure::Closure;
use crate::pools;
use crate::wire::ComputeService;

/// Tracks services that don't report.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Start of the time in which a service was down while most services were up, by host.
    silent: BTreeMap<String, Timestamp>,
    /// Hosts with services that have been down for long enough.
    failed: BTreeSet<String>,
}

impl Reports {
    /// Records the current state of all services of the cloud. A host has failed if its service has been down
    /// for `failed_after`.
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

    pub(crate) fn failed(&self) -> &BTreeSet<String> {
        &self.failed
    }
}

/// Whether it says anything about the cloud if a service is down. It doesn't for services that an operator
/// has disabled or forced down, and for hosts that are switched off.
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

    /// A cloud with this number of hosts. `down` hosts are down.
    fn cloud(hosts: usize, down: &[usize]) -> Vec<ComputeService> {
        let state = |number| if down.contains(&number) { "down" } else { "up" };
        (1..=hosts).map(|number| service(&format!("host{number}"), state(number), None)).collect()
    }

    /// Hosts that have failed after these moments, each with its second and the hosts that are down then.
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
