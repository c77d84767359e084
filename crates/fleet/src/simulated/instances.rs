//! Guests that the service starts and destroys.

use jiff::Timestamp;
use leases::ids::{GuestId, HostId};
use leases::instance::{Instance, InstanceKind};
use leases::preemption::Class;

use super::state::{Event, Guest, Host, Rules, State};
use super::timing::later;
use crate::site::Site;
use crate::{FleetError, Outcome};

impl State {
    /// Starts an instance's guest, unless it was started or destroyed before.
    pub(super) fn start_instance(
        &mut self,
        rules: &Rules,
        id: HostId,
        instance: &Instance,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        if let Some(lands_at) = self.instances.get(&instance.id) {
            return Ok(if now < *lands_at { Outcome::Pending } else { Outcome::Done });
        }
        if !self.working(id)?.may_have(instance) {
            return Err(FleetError::Refused(format!("instance {} may not run on host {id}", instance.id)));
        }
        // The holder of a host can over-commit it.
        let own = matches!(self.working(id)?.site, Site::Held { .. }) && instance.kind.lease().is_some();
        if !own && self.free_memory_mib(rules, id) < u64::from(instance.size.memory_mib) {
            return Err(FleetError::Refused(format!("host {id} has no room for instance {}", instance.id)));
        }
        if let Some(resumed) = instance.resumes
            && self.kept.remove(&resumed).is_none()
        {
            return Err(FleetError::Refused(format!("nothing is kept of instance {resumed}")));
        }
        let boot = rules.timing.boot.draw(&mut self.draw());
        let guest = Guest {
            name: instance.name.clone(),
            owner: instance.kind.guest_owner(),
            project: Some(instance.owner.project.0.clone()),
            vcpus: instance.size.vcpus,
            memory_mib: instance.size.memory_mib,
            disk_gib: instance.size.disk_gib,
            notice: instance.class.as_ref().map(Class::notice),
            backfills: instance.backfills,
            stopping_since: None,
            shut_off: false,
            kept: instance.is_kept(),
            deleting: false,
            moving_to: None,
        };
        self.instances.insert(instance.id, later(now, boot));
        self.working(id)?.in_flight += 1;
        if boot.is_zero() {
            self.land(id, instance.id, guest, now);
            return Ok(Outcome::Done);
        }
        self.schedule(later(now, boot), Event::Lands { host: id, id: instance.id, guest });
        Ok(Outcome::Pending)
    }

    /// Destroys an instance's guest on any host. Kept state isn't on a host, so it is deleted even if the
    /// guest's last host has failed.
    pub(super) fn destroy(
        &mut self,
        rules: &Rules,
        id: HostId,
        guest: GuestId,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        self.known(id)?;
        if self.instances.get(&guest).is_some_and(|lands_at| now < *lands_at) {
            return Ok(Outcome::Pending);
        }
        self.instances.entry(guest).or_insert(now);
        self.kept.remove(&guest);
        let Some(host) = self.whereabouts(guest) else { return Ok(Outcome::Done) };
        let Some(destroyed) = self.working(host)?.guests.get_mut(&guest) else { return Ok(Outcome::Done) };
        destroyed.kept = false;
        if destroyed.deleting {
            return Ok(Outcome::Pending);
        }
        destroyed.deleting = true;
        Ok(self.begin_deletion(rules, guest, now))
    }
}

impl Host {
    /// Whether the instance's guest can start here.
    fn may_have(&self, instance: &Instance) -> bool {
        match instance.kind {
            InstanceKind::Reserved { lease, reservation } => {
                let slots = self.slots.get(&reservation).is_some_and(|slots| slots.lease == Some(lease));
                slots || matches!(self.site, Site::Held { reservation: holder, .. } if holder == reservation)
            }
            InstanceKind::Regular | InstanceKind::Preemptible => self.site.admits(instance.backfills),
        }
    }
}
