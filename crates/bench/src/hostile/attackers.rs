//! Table of attacks: each API operation with its largest legal input, and combinations that were once too expensive.
//!
//! A test compares this table with the API document in the repository. The bench compares it with the document of
//! the service under test.

use serde_json::Value;

use super::bodies;

/// Role of the attacking users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Member of a project with leases, including running ones.
    Member,
    /// Member of a project without any leases.
    Idle,
    Admin,
    /// Client without credentials.
    Nobody,
}

/// A request that clients repeat, together with the setup and cleanup requests that make it repeatable.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Method and path as in the API document. Variables such as `{lease_id}` are defined in [`super::prey`].
    pub operation: &'static str,
    /// Name of an additional attack on the same operation; empty for the first.
    pub variant: &'static str,
    pub who: Who,
    pub query: &'static str,
    pub headers: &'static [(&'static str, &'static str)],
    pub body: Option<fn() -> Value>,
    /// Whether each request needs its own prey instead of the prey that each client creates once.
    pub consumes: bool,
    /// Requests without a body that an administrator sends before each attack and, for `after`, after it.
    pub before: &'static [&'static str],
    pub after: &'static [&'static str],
    /// Status outside 2xx that also counts as success, or 0.
    pub accepts: u16,
    /// Concurrent requests per client.
    pub at_once: usize,
    /// Milliseconds after which clients abort a request; 0 for never.
    pub patience: u64,
    /// Whether clients never read the response body.
    pub unread: bool,
    /// Whether the load spans the start of a minute at which a lease is due.
    pub at_minute: bool,
    /// Whether leases start at once, so that each changes twice.
    pub starts: bool,
}

pub const fn attack(operation: &'static str) -> Attack {
    Attack {
        operation,
        variant: "",
        who: Who::Member,
        query: "",
        headers: &[],
        body: None,
        consumes: matches!(operation.as_bytes()[0], b'D'),
        before: &[],
        after: &[],
        accepts: 0,
        at_once: 1,
        patience: 0,
        unread: false,
        at_minute: false,
        starts: false,
    }
}

/// An attack that was once too expensive. It also runs with all attackers in one project.
const fn known(operation: &'static str, variant: &'static str) -> Attack {
    Attack { variant, at_minute: true, ..attack(operation) }
}

impl Attack {
    const fn admin(self) -> Self {
        Self { who: Who::Admin, ..self }
    }

    const fn idle(self) -> Self {
        Self { who: Who::Idle, ..self }
    }

    const fn nobody(self) -> Self {
        Self { who: Who::Nobody, ..self }
    }

    const fn query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    const fn body(self, body: fn() -> Value) -> Self {
        Self { body: Some(body), ..self }
    }

    const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    const fn variant(self, variant: &'static str) -> Self {
        Self { variant, ..self }
    }

    const fn consumes(self) -> Self {
        Self { consumes: true, ..self }
    }

    const fn before(self, before: &'static [&'static str]) -> Self {
        Self { before, consumes: false, ..self }
    }

    const fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }

    const fn starts(self) -> Self {
        Self { starts: true, ..self }
    }

    const fn accepts(self, accepts: u16) -> Self {
        Self { accepts, ..self }
    }

    const fn at_once(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }

    /// Name in reports and for `--only`.
    pub fn name(&self) -> String {
        match self.variant {
            "" => self.operation.to_owned(),
            variant => variant.to_owned(),
        }
    }

    pub fn method(&self) -> &'static str {
        self.operation.split_once(' ').map_or("", |(method, _)| method)
    }

    pub fn path(&self) -> &'static str {
        self.operation.split_once(' ').map_or("", |(_, path)| path)
    }

    /// Whether it is a placement request.
    pub fn is_question(&self) -> bool {
        self.operation.starts_with("POST /v1/placement/")
    }
}

const SUBJECT: &[(&str, &str)] =
    &[("x-auth-token", "{subject_token}"), ("x-subject-token", "{subject_token}")];
const CONSOLE: &[(&str, &str)] = &[("x-allot-console", "1")];
/// 400 days, the longest range that a calendar or a report accepts.
const YEAR: &str = "start={long_ago}&end={now}";

/// Paths that are attacked although the API document doesn't list them.
pub const UNDOCUMENTED: [&str; 2] = ["GET /openapi.json", "GET /console/assets/{asset}"];

pub const ATTACKS: &[Attack] = &[
    attack("GET /").nobody().accepts(300),
    attack("GET /versions").nobody().accepts(300),
    attack("GET /healthz").nobody(),
    attack("GET /readyz").nobody(),
    attack("GET /metrics").admin(),
    attack("GET /openapi.json").nobody(),
    attack("GET /console/assets/{asset}").nobody().accepts(404),
    attack("GET /identity").nobody().accepts(300),
    attack("GET /identity/v3").nobody(),
    attack("POST /identity/v3/auth/tokens").nobody().body(bodies::login),
    attack("GET /identity/v3/auth/tokens").nobody().headers(SUBJECT),
    attack("DELETE /identity/v3/auth/tokens").nobody().headers(SUBJECT),
    attack("GET /v1/session"),
    attack("POST /v1/session").nobody().headers(CONSOLE).body(bodies::session),
    attack("DELETE /v1/session").headers(CONSOLE),
    attack("GET /v1/settings").admin(),
    attack("GET /v1/names").admin(),
    attack("GET /v1/audit").admin().query("limit=2147483647"),
    // Leases, series, offers, the waitlist and maintenance
    attack("GET /v1/leases"),
    attack("GET /v1/leases").variant("pages of leases").query("limit=1000"),
    attack("POST /v1/leases").body(bodies::large_lease),
    attack("GET /v1/leases/{lease_id}").query("detail=true"),
    attack("PUT /v1/leases/{lease_id}").body(bodies::large_change),
    attack("DELETE /v1/leases/{lease_id}"),
    attack("GET /v1/leases/{lease_id}/plan"),
    attack("GET /v1/leases/{lease_id}/occupancy").query("limit=2147483647"),
    attack("GET /v1/series/{series_id}"),
    attack("DELETE /v1/series/{series_id}"),
    attack("GET /v1/offers"),
    attack("GET /v1/offers/{offer_id}"),
    attack("DELETE /v1/offers/{offer_id}"),
    attack("POST /v1/offers/{offer_id}/accept").consumes(),
    attack("GET /v1/waitlist"),
    attack("GET /v1/waitlist/{waitlist_entry_id}"),
    attack("DELETE /v1/waitlist/{waitlist_entry_id}"),
    attack("GET /v1/hints"),
    attack("POST /v1/maintenance").admin().query("dry_run=true").body(bodies::maintenance),
    // Availability, calendar, usage, energy and notifications
    attack("GET /v1/availability").query("start={far}&end={farther}&resource_properties={expression}"),
    attack("GET /v1/calendar").query("start={soon}&end={in_a_year}&limit=1000&group_by=capability2"),
    attack("GET /v1/calendar")
        .variant("calendar in buckets")
        .query("start={soon}&end={in_a_year}&limit=1000&bucket=300"),
    attack("GET /v1/calendar/changes").at_once(8),
    attack("GET /v1/flavor-instances/availability")
        .query("flavor_id={flavor_id}&start_date={far}&end_date={farther}"),
    attack("GET /v1/usage").query("group_by=lease,user,hour&start={month_ago}&end={now}"),
    attack("GET /v1/usage/billing").query("interval=day&start={month_ago}&end={now}"),
    attack("GET /v1/usage/events").query("limit=2147483647"),
    attack("GET /v1/capacity").query(YEAR),
    attack("GET /v1/energy/hosts").admin(),
    attack("GET /v1/energy/plan").admin().query("horizon=365d"),
    attack("GET /v1/energy/report").admin().query(YEAR),
    attack("GET /v1/notifications").query("limit=2147483647"),
    attack("GET /v1/notifications")
        .variant("clients that wait for notifications")
        .idle()
        .query("after=1000000&wait=60")
        .at_once(32),
    attack("GET /v1/instances"),
    attack("POST /v1/instances").body(bodies::instance).after(&["DELETE /v1/instances/{made}"]),
    attack("GET /v1/instances/{instance_id}"),
    attack("DELETE /v1/instances/{instance_id}"),
    attack("POST /v1/instances/{instance_id}/start").accepts(409),
    attack("POST /v1/instances/filter").admin().body(bodies::filter),
    attack("POST /v1/vendordata").admin().body(bodies::vendordata),
    attack("GET /v1/preemptible").query(YEAR),
    attack("GET /v1/preemptible/projects").admin(),
    attack("PUT /v1/preemptible/projects/{pattern}").admin(),
    attack("DELETE /v1/preemptible/projects/{pattern}")
        .admin()
        .before(&["PUT /v1/preemptible/projects/{pattern}"]),
    // Inventory and drift
    attack("GET /v1/os-hosts").admin(),
    Attack { unread: true, ..attack("GET /v1/os-hosts").admin().variant("hosts without reading the answer") },
    attack("POST /v1/os-hosts").admin().body(bodies::host).after(&["DELETE /v1/os-hosts/{made}"]),
    attack("GET /v1/os-hosts/allocations").admin(),
    attack("GET /v1/os-hosts/properties").admin().query("detail=true&all=true"),
    attack("PATCH /v1/os-hosts/properties/{name}").admin().body(bodies::property),
    attack("GET /v1/os-hosts/{host_id}").admin(),
    attack("PUT /v1/os-hosts/{host_id}").admin().body(bodies::host_change),
    attack("DELETE /v1/os-hosts/{host_id}").admin(),
    attack("GET /v1/os-hosts/{host_id}/allocation").admin(),
    attack("GET /v1/freepools").admin(),
    attack("POST /v1/freepools").admin().body(bodies::free_pool).after(&["DELETE /v1/freepools/{made}"]),
    attack("GET /v1/freepools/{freepool}").admin(),
    attack("PUT /v1/freepools/{freepool}").admin().body(bodies::free_pool_change),
    attack("DELETE /v1/freepools/{freepool}").admin(),
    attack("GET /v1/freepools/{freepool}/hosts").admin(),
    attack("POST /v1/freepools/{freepool}/hosts")
        .admin()
        .body(bodies::host)
        .after(&["DELETE /v1/os-hosts/{made}"]),
    attack("PUT /v1/freepools/{freepool}/hosts/{host_id}").admin(),
    attack("DELETE /v1/freepools/{freepool}/hosts/{host_id}")
        .admin()
        .before(&["PUT /v1/freepools/{freepool}/hosts/{host_id}"]),
    attack("GET /v1/leasepools"),
    attack("POST /v1/leasepools").body(bodies::lease_pool).after(&["DELETE /v1/leasepools/{made}"]).starts(),
    attack("GET /v1/leasepools/{leasepool_id}"),
    attack("PUT /v1/leasepools/{leasepool_id}").body(bodies::lease_pool_change),
    attack("DELETE /v1/leasepools/{leasepool_id}"),
    attack("GET /v1/leasepools/{leasepool_id}/hosts"),
    attack("POST /v1/leasepools/{leasepool_id}/hosts").body(bodies::lease_pool_hosts),
    attack("POST /v1/leasepools/{leasepool_id}/swap").body(bodies::lease_pool_swap),
    attack("GET /v1/floatingips").admin(),
    attack("POST /v1/floatingips")
        .admin()
        .body(bodies::floating_ip)
        .after(&["DELETE /v1/floatingips/{made}"]),
    attack("GET /v1/floatingips/{floatingip_id}").admin(),
    attack("DELETE /v1/floatingips/{floatingip_id}").admin(),
    attack("GET /v1/flavors"),
    attack("POST /v1/flavors").admin().body(bodies::flavor).after(&["DELETE /v1/flavors/{made}"]),
    attack("GET /v1/flavors/{flavor_id}"),
    attack("PUT /v1/flavors/{flavor_id}").admin().body(bodies::flavor_change),
    attack("DELETE /v1/flavors/{flavor_id}").admin(),
    attack("GET /v1/drift").admin(),
    attack("POST /v1/drift/repair").admin(),
    attack("POST /v1/drift/accept-clock").admin(),
    attack("POST /v1/drift/accept-fleet").admin(),
    // Placement requests; one for a cluster that is too large is rejected at its time limit
    attack("GET /v1/placement/clusters").admin(),
    attack("POST /v1/placement/balance").body(bodies::balance).accepts(400),
    attack("POST /v1/placement/drain").body(bodies::drain).accepts(400),
    attack("POST /v1/placement/fit").body(bodies::fit).accepts(400),
    attack("POST /v1/placement/whatif").body(bodies::what_if).accepts(400),
    // Combinations of inputs that were once too expensive
    known("POST /v1/leases", "series of many long expressions").body(bodies::large_series),
    known("POST /v1/leases", "series of many hosts").body(bodies::wide_series),
    known("POST /v1/leases", "dry runs of a series").query("dry_run=true").body(bodies::large_series),
    known("POST /v1/leases", "expressions of many values").body(bodies::many_values),
    known("POST /v1/leases", "comparisons by size")
        .query("dry_run=true")
        .body(bodies::comparisons)
        .accepts(400),
    Attack {
        unread: true,
        ..known("GET /v1/series/{series_id}", "series without reading the answer").at_once(8)
    },
    known("POST /v1/leases", "instances on hosts of their own").body(bodies::distinct_instances),
    known("POST /v1/leases", "more instances than hosts").body(bodies::many_instances),
    known("POST /v1/leases", "all hosts").body(bodies::all_hosts),
    known("POST /v1/leases", "best-effort leases").body(bodies::best_effort),
    known("POST /v1/leases", "refusals that hold offers")
        .query("hold_offers=true")
        .body(bodies::refused)
        .accepts(400),
    known("POST /v1/leases", "requests on the waitlist").body(bodies::waiting).accepts(409),
    Attack {
        patience: 20,
        ..known("POST /v1/leases", "clients that leave at once").body(bodies::distinct_instances)
    },
    known("PUT /v1/leases/{lease_id}", "short changes of a large lease").body(bodies::short_change),
    known("GET /v1/usage", "usage by lease and hour").query("group_by=lease,hour"),
    known("GET /v1/usage/events", "usage events of a member without leases").idle().query("limit=1000"),
    known("GET /v1/notifications", "notifications of a member without any")
        .idle()
        .query("after=0&limit=1")
        .at_once(8),
    known("POST /v1/placement/drain", "a drain of 20,000 nodes").body(bodies::large_drain).accepts(400),
];
