//! Prometheus metrics.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use service::{Service, Statistics};

use crate::connections::Places;

/// Upper bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Outcome of an attempt to push a notification.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Push {
    Delivered,
    /// The push will be retried.
    Failed,
    /// The listener rejected the notification, which is skipped.
    Refused,
}

impl Push {
    const ALL: [Self; 3] = [Self::Delivered, Self::Failed, Self::Refused];

    fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PushLabels {
    listener: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoginLabels {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    outcome: &'static str,
}

/// Counts checks of Keystone tokens by outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenChecks(Family<CheckLabels, Counter>);

impl TokenChecks {
    const OUTCOMES: [&'static str; 5] = ["cached", "valid", "refused", "unchecked", "failed"];

    fn new() -> Self {
        let this = Self::default();
        for outcome in Self::OUTCOMES {
            drop(this.0.get_or_create(&CheckLabels { outcome }));
        }
        this
    }

    fn count(&self, outcome: &'static str) {
        self.0.get_or_create(&CheckLabels { outcome }).inc();
    }

    /// The result was cached, without a request to Keystone.
    pub fn cached(&self) {
        self.count("cached");
    }

    /// Keystone accepted the token.
    pub fn valid(&self) {
        self.count("valid");
    }

    /// Keystone doesn't know the token, or it is of no use for this service.
    pub fn refused(&self) {
        self.count("refused");
    }

    /// Keystone gave no usable response for a client's token.
    pub fn unchecked(&self) {
        self.count("unchecked");
    }

    /// Keystone didn't validate the service's own token.
    pub fn failed(&self) {
        self.count("failed");
    }
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pushes: Family<PushLabels, Counter>,
    heard: Counter,
    failed_logins: Family<LoginLabels, Counter>,
    token_checks: TokenChecks,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Registers metrics of requests, of the service, of its connections, and of the listeners with these
    /// names.
    pub fn new(service: &Arc<Service>, places: &Arc<Places>, listeners: &[&'static str]) -> Self {
        let mut registry = Registry::with_prefix("allot");
        let requests = Family::default();
        registry.register("http_requests", "Requests that were answered", requests.clone());
        let durations: Family<RouteLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register_with_unit(
            "http_request_duration",
            "How long answers took",
            Unit::Seconds,
            durations.clone(),
        );
        let pushes = Family::<PushLabels, Counter>::default();
        // Create all series at the start: an increase is invisible in a series that first appears with it.
        for &listener in listeners {
            for push in Push::ALL {
                drop(pushes.get_or_create(&PushLabels { listener, outcome: push.name() }));
            }
        }
        registry.register(
            "notification_pushes",
            "Attempts to push a notification to a listener: the web hook, the program or the message bus",
            pushes.clone(),
        );
        let heard = Counter::default();
        let help = "Notifications of a cloud's services that were heard on its message bus";
        registry.register("cloud_notifications", help, heard.clone());
        let failed_logins = Family::<LoginLabels, Counter>::default();
        for method in ["basic", "local-keystone", "session", "token"] {
            drop(failed_logins.get_or_create(&LoginLabels { method }));
        }
        let help = "Requests whose password or token was wrong, or tried too often";
        registry.register("logins_failed", help, failed_logins.clone());
        let token_checks = TokenChecks::new();
        let help = "Tokens of the cloud's Keystone: known already, valid, refused, or not checked; failed are validations of the service's own";
        registry.register("keystone_tokens", help, token_checks.0.clone());
        registry.register_collector(Box::new(OfService(Arc::downgrade(service))));
        registry.register_collector(Box::new(OfConnections(Arc::clone(places))));
        Self { registry, requests, durations, pushes, heard, failed_logins, token_checks }
    }

    /// Counters for checks of Keystone tokens.
    pub fn token_checks(&self) -> TokenChecks {
        self.token_checks.clone()
    }

    pub fn served(&self, method: &Method, route: &str, status: StatusCode, elapsed: Duration) {
        // Callers can send made-up methods.
        let known = [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST, Method::PUT, Method::PATCH];
        let known = known.contains(method) || *method == Method::DELETE;
        let method = if known { method.to_string() } else { "other".to_owned() };
        let labels = RouteLabels { method: method.clone(), route: route.to_owned() };
        self.durations.get_or_create(&labels).observe(elapsed.as_secs_f64());
        let labels = RequestLabels { method, route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
    }

    pub fn pushed(&self, listener: &'static str, push: Push) {
        self.pushes.get_or_create(&PushLabels { listener, outcome: push.name() }).inc();
    }

    /// Counts a notification from another service of the cloud.
    pub fn heard(&self) {
        self.heard.inc();
    }

    /// Counts a wrong password or token.
    pub fn login_failed(&self, method: &'static str) {
        self.failed_logins.get_or_create(&LoginLabels { method }).inc();
    }

    /// All metrics in the `OpenMetrics` text format.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// All metrics in Prometheus text format 0.0.4.
    pub fn older_text(&self) -> Result<String, fmt::Error> {
        self.text().map(|text| in_older_format(&text))
    }
}

/// Converts `OpenMetrics` text to Prometheus text format 0.0.4, in which descriptions of counters have the
/// name of the sample (ending in `_total`), and units and the end marker don't exist.
fn in_older_format(text: &str) -> String {
    let name_of_counter =
        |line: &'_ str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_owned());
    let counters: BTreeSet<String> = text.lines().filter_map(name_of_counter).collect();
    let mut older = String::with_capacity(text.len());
    for line in text.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let described = line.strip_prefix("# ").and_then(|rest| {
            let mut words = rest.splitn(3, ' ');
            let (kind, name, rest) = (words.next()?, words.next()?, words.next()?);
            counters.contains(name).then(|| format!("# {kind} {name}_total {rest}"))
        });
        older.push_str(described.as_deref().unwrap_or(line));
        older.push('\n');
    }
    older
}

/// Metrics read from the service at scrape time.
#[derive(Debug)]
struct OfService(Weak<Service>);

impl Collector for OfService {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(service) = self.0.upgrade() else { return Ok(()) };
        let statistics = service.statistics();
        leases_by_status(&mut encoder, &statistics)?;
        records_by_kind(&mut encoder, &statistics)?;
        let gauges = [
            ("hosts", "Hosts that may be leased", statistics.hosts),
            ("failed_hosts", "Hosts that have failed", statistics.failed_hosts),
            ("off_hosts", "Hosts that are switched off to save power", statistics.off_hosts),
            ("degraded_leases", "Leases that have less than they were promised", statistics.degraded_leases),
            (
                "preemptible_instances",
                "Preemptible instances that run or are being started",
                statistics.preemptible_instances,
            ),
            (
                "departing_instances",
                "Preemptible instances that will be preempted for a known lease",
                statistics.departing_instances,
            ),
            ("degraded", "1 if no lease can start or end, as /readyz says; otherwise 0", statistics.degraded),
            ("running_steps", "Steps that are being carried out", statistics.running_steps),
            (
                "database_bytes",
                "Bytes of the database when it was last tidied; 0 if that is not known",
                statistics.sizes.bytes,
            ),
            ("database_free_bytes", "Bytes of these that nothing is in", statistics.sizes.free_bytes),
            ("failing_steps", "Steps that failed and have not succeeded since", statistics.failing_steps),
            ("waiting_writers", "Requests that wait to change something", statistics.waiting_writers),
            (
                "waiting_decisions",
                "Requests that wait to have something decided, or read at length, without a change",
                statistics.waiting_decisions,
            ),
            (
                "last_start_delay_milliseconds",
                "How late the last lease became active",
                statistics.last_start_delay_ms,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value as f64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            ("preempted", "Preemptible instances that were preempted for leases", statistics.preempted),
            ("steps_done", "Steps that were carried out", statistics.steps_done),
            ("steps_failed", "Steps that failed", statistics.steps_failed),
            ("cycles", "Cycles of the loop", statistics.cycles),
            (
                "decisions_too_costly",
                "Decisions that were given up because they cost more than they may",
                statistics.decisions_too_costly,
            ),
            (
                "decisions_canceled",
                "Decisions that were given up because their client had gone",
                statistics.decisions_canceled,
            ),
            (
                "notifications_lost",
                "Notifications that were removed before a listener took them, since their project had too many",
                statistics.notifications_lost,
            ),
            (
                "boots_failed",
                "Hosts that were switched on and did not come up in time",
                statistics.boots_failed,
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

/// Metrics of client connections.
#[derive(Debug)]
struct OfConnections(Arc<Places>);

impl Collector for OfConnections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let open = ConstGauge::new(self.0.taken_now() as f64);
        let help = "Connections of clients";
        open.encode(encoder.encode_descriptor("connections", help, None, open.metric_type())?)?;
        let refused = ConstCounter::new(self.0.turned_away());
        let help = "Connections that were closed at once, because there were too many";
        let descriptor =
            encoder.encode_descriptor("connections_refused", help, None, refused.metric_type())?;
        refused.encode(descriptor)
    }
}

fn records_by_kind(encoder: &mut DescriptorEncoder<'_>, statistics: &Statistics) -> Result<(), fmt::Error> {
    let help = "Records by kind; of journals, estimates of when the database was last tidied";
    let kind = ConstGauge::new(0.0).metric_type();
    let mut family = encoder.encode_descriptor("records", help, None, kind)?;
    let in_memory = [
        ("leases", statistics.leases.values().sum()),
        ("hosts", statistics.hosts),
        ("instances", statistics.instances),
        ("floating_ips", statistics.floating_ips),
    ];
    let journals = statistics.sizes.records.iter().map(|(kind, count)| (*kind, *count));
    for (kind, count) in in_memory.into_iter().chain(journals) {
        let gauge = ConstGauge::new(count as f64);
        gauge.encode(family.encode_family(&[("kind", kind)])?)?;
    }
    Ok(())
}

fn leases_by_status(encoder: &mut DescriptorEncoder<'_>, statistics: &Statistics) -> Result<(), fmt::Error> {
    let help = "Leases by status";
    let kind = ConstGauge::new(0.0).metric_type();
    let mut family = encoder.encode_descriptor("leases", help, None, kind)?;
    for (status, count) in &statistics.leases {
        let gauge = ConstGauge::new(*count as f64);
        gauge.encode(family.encode_family(&[("status", status.name())])?)?;
    }
    Ok(())
}
