//! The days before the demo: leases are requested, start and end, all through the service itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use ambient::{Clock, ManualClock};
use api::v1::{LeaseRequest, Limits};
use fleet::simulated::{Layout, SimulatedFleet};
use jiff::{SignedDuration, Timestamp};
use leases::free_pool::FreePool;
use leases::host::NetworkId;
use leases::ids::HostId;
use leases::instance::LeaseHint;
use leases::plan::GuestSize;
use leases::preemption::{Mark, Marked};
use leases::project::{ProjectId, UserId};
use leases::terms::{FlavorSize, InstanceSize};
use serde_json::json;
use service::{
    Caller, HostSelector, LeaseFilter, NewFloatingIp, NewInstance, NewLease, Placing, Service, ServiceError,
};
use store::FlavorRecord;

use super::DemoError;
use super::scenario::{BOOKINGS, Booking};

/// Maximum number of consecutive cycles without time passing. More would mean that the service never becomes
/// idle.
const MOST_CYCLES: usize = 10_000;

/// Service, fleet and clock of the simulated past.
pub(super) struct Past<'a> {
    pub service: &'a Arc<Service>,
    pub fleet: &'a SimulatedFleet,
    pub clock: &'a ManualClock,
}

impl Past<'_> {
    /// Simulates the past until `present`.
    pub(super) async fn pass(
        &self,
        layout: &Layout,
        hosts: u64,
        present: Timestamp,
    ) -> Result<(), DemoError> {
        self.stock(layout, hosts).await?;
        for booking in &BOOKINGS {
            self.advance(hours(present, booking.asked)).await?;
            self.book(booking, present).await?;
        }
        self.advance(present).await
    }

    /// Adds hosts, floating IPs and flavors.
    async fn stock(&self, layout: &Layout, hosts: u64) -> Result<(), DemoError> {
        let operator = caller("admin", "operator");
        for host in (1..=hosts).map(HostId) {
            let capabilities = layout.capabilities(host).into_iter().collect();
            self.service
                .hosts()
                .add(&operator, HostSelector::Id(host), capabilities, FreePool::DEFAULT)
                .await?;
        }
        for last in 110..118 {
            let address = IpAddr::V4(Ipv4Addr::new(203, 0, 113, last));
            let new = NewFloatingIp { network: NetworkId("public".to_owned()), address };
            self.service.floating_ips().add(&operator, new).await?;
        }
        for (name, vcpus, memory_mib, disk_gib) in
            [("m1.small", 2, 4096, 20), ("m1.large", 8, 32_768, 80), ("c1.huge", 48, 131_072, 200)]
        {
            let instance = InstanceSize::new(vcpus, memory_mib, disk_gib)
                .map_err(|error| DemoError::Scenario(error.to_string()))?;
            let flavor = FlavorRecord {
                id: name.to_owned(),
                name: name.to_owned(),
                size: FlavorSize { instance, ephemeral_gib: 0 },
                swap_mib: 0,
                public: true,
                extra_specs: BTreeMap::new(),
                created_at: self.clock.now(),
            };
            self.service.flavors().put(&operator, flavor).await?;
        }
        Ok(())
    }

    /// Requests a lease as a client would.
    async fn book(&self, booking: &Booking, present: Timestamp) -> Result<(), DemoError> {
        let date = |at| hours(present, at).strftime("%Y-%m-%d %H:%M").to_string();
        let body = json!({
            "name": booking.name,
            "start_date": date(booking.start),
            "end_date": date(booking.end),
            "reservations": [booking.what.reservation()],
        });
        let flavors = |id: &str| self.service.flavors().get(id).map(|flavor| FlavorRecord::clone(&flavor));
        let asked_at = self.clock.now();
        let request = LeaseRequest::read(
            &body,
            asked_at,
            &self.service.leases().deadlines(),
            &flavors,
            &Limits::default(),
        )
        .map_err(|error| DemoError::Scenario(format!("{}: {error}", booking.name)))?;
        let new = NewLease {
            asked_at,
            name: request.name,
            terms: request.terms,
            wording: request.wording,
            end_action: request.end_action,
            waits: request.waits,
        };
        let created = self.service.leases().create(&caller(booking.project, booking.user), new, None).await;
        created.map(drop).map_err(|error| DemoError::Scenario(format!("{}: {error}", booking.name)))
    }

    /// Advances the clock to `until`, stopping at each event on the way to run cycles.
    async fn advance(&self, until: Timestamp) -> Result<(), DemoError> {
        let mut cycles = 0;
        loop {
            let cycle = self.service.execution().cycle().await;
            let idle = cycle.tasks.is_empty();
            for task in cycle.tasks {
                let done = self.service.execution().perform(task).await;
                self.service.execution().note(done);
            }
            let now = self.clock.now();
            let next = self.fleet.next_event().map_or(cycle.wake_at, |event| event.min(cycle.wake_at));
            cycles += 1;
            if cycles > MOST_CYCLES {
                return Err(DemoError::Scenario(format!("the service does not finish its work at {now}")));
            }
            if idle && next > now {
                if next >= until {
                    self.clock.set(until.max(now));
                    return Ok(());
                }
                self.clock.set(next);
                cycles = 0;
            }
        }
    }
}

/// Starts the instances of the present: two in a running lease, and four preemptible ones. The next leases on
/// their hosts preempt them.
pub(super) async fn start_instances(service: Arc<Service>) {
    let lease = service.leases().all(&LeaseFilter::default()).into_iter();
    let lease = lease.map(|record| record.lease.clone()).find(|lease| lease.name == "lattice");
    let lease = lease.map(|lease| lease.id);
    let wanted = [
        ("physics", "ann", "solver-1", lease.map(LeaseHint::Lease)),
        ("physics", "ann", "solver-2", lease.map(LeaseHint::Lease)),
        ("ml", "cy", "sweep-1", None),
        ("ml", "cy", "sweep-2", None),
        ("course", "eve", "homework-1", None),
        ("course", "eve", "homework-2", None),
    ];
    for (project, user, name, hint) in wanted {
        let marks = if hint.is_none() { vec![(Mark::Hint, true)] } else { Vec::new() };
        let requeue = hint.is_none();
        let size = Some(GuestSize { vcpus: 4, memory_mib: 8192, disk_gib: 20 });
        let placing = Placing { size, hint, marked: Marked(marks), ..Placing::default() };
        let new = NewInstance { name: name.to_owned(), placing, requeue };
        if let Err(error) = start(&service, &caller(project, user), new).await {
            tracing::warn!(instance = name, %error, "instance not started");
        }
    }
}

/// Starts an instance. Retries for about 10 seconds, because no host can accept it until the first
/// observation, shortly after the service starts.
async fn start(service: &Service, caller: &Caller, new: NewInstance) -> Result<(), ServiceError> {
    const ATTEMPTS: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(250);
    for _ in 1..ATTEMPTS {
        match service.instances().create(caller, new.clone()).await {
            Err(ServiceError::NoHost(_)) => tokio::time::sleep(PAUSE).await,
            done => return done.map(drop),
        }
    }
    service.instances().create(caller, new).await.map(drop)
}

fn hours(from: Timestamp, hours: f64) -> Timestamp {
    from.checked_add(SignedDuration::from_mins((hours * 60.0).round() as i64)).unwrap_or(from)
}

fn caller(project: &str, user: &str) -> Caller {
    Caller {
        user: UserId(user.to_owned()),
        project: ProjectId(project.to_owned()),
        request_id: "req-demo".to_owned(),
        administrator: false,
    }
}
