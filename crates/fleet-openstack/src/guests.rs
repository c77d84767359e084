//! Servers that are preempted, or end with their lease.

use std::time::Duration;

use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::{GuestId, HostId};
use leases::plan::{GuestOwner, Place};

use crate::OpenStackFleet;

type Answer = Result<Outcome, FleetError>;

/// How often and after which pauses a server is looked for that was deleted, before the step is asked about again.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

impl OpenStackFleet {
    pub(crate) async fn stop_guest(&self, host: HostId, guest: GuestId) -> Answer {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let Some(server) = look.sight.on(look.host()).iter().find(|server| server.id == id) else {
            return Ok(Outcome::Done);
        };
        if look.sight.owner(server, &self.settings.fence) == GuestOwner::Other {
            return Err(somebody_elses(guest, look.host()));
        }
        if look.place.is_none() || self.memory().stopping.contains_key(&guest) {
            return Ok(Outcome::Done);
        }
        self.cloud.stop_server(&id).await?;
        let now = self.clock.now();
        self.memory().stopping.insert(guest, now);
        Ok(Outcome::Done)
    }

    pub(crate) async fn delete_guest(&self, host: HostId, guest: GuestId) -> Answer {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let Some(server) = look.sight.on(look.host()).iter().find(|server| server.id == id) else {
            return Ok(Outcome::Done);
        };
        if look.sight.owner(server, &self.settings.fence) == GuestOwner::Other {
            return Err(somebody_elses(guest, look.host()));
        }
        if look.place.is_none() {
            return Ok(Outcome::Done);
        }
        self.cloud.delete_server(&id).await?;
        for _ in 0..LOOKS {
            let Some(server) = self.cloud.server(&id).await? else {
                self.memory().stopping.remove(&guest);
                return Ok(Outcome::Done);
            };
            // Nova is set to keep deleted servers for a while: this one has to go.
            if server.status == "SOFT_DELETED" {
                self.cloud.force_delete_server(&id).await?;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Outcome::Pending)
    }

    pub(crate) async fn move_guest(
        &self,
        host: HostId,
        guest: GuestId,
        to: HostId,
        key: &OperationKey,
    ) -> Answer {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let Some(server) = look.sight.on(look.host()).iter().find(|server| server.id == id) else {
            return Ok(Outcome::Done);
        };
        let owner = look.sight.owner(server, &self.settings.fence);
        let of_lease = key.lease.is_some_and(|lease| owner == GuestOwner::Lease(lease));
        let goes = match look.place {
            Some(Place::Fenced { .. }) => true,
            Some(Place::Held(_) | Place::Releasing(_)) => of_lease || owner == GuestOwner::Preemptible,
            Some(Place::FreePool) => owner == GuestOwner::Preemptible,
            None => false,
        };
        if !goes || server.is_moving() {
            return Ok(if goes { Outcome::Pending } else { Outcome::Done });
        }
        if owner != GuestOwner::Preemptible && !self.settings.fence.moves_all() {
            return Err(FleetError::Refused(format!(
                "server {guest} is not preemptible: the fence lets no other server on hosts of the free pool"
            )));
        }
        let target = self.look_at(to).await?;
        if target.place != Some(Place::FreePool) || !target.service.is_enabled() {
            return Err(FleetError::Refused(format!("host {} is not in the free pool", target.host())));
        }
        self.cloud.live_migrate(&id, target.host()).await?;
        Ok(Outcome::Pending)
    }
}

fn somebody_elses(guest: GuestId, host: &str) -> FleetError {
    FleetError::Refused(format!("server {guest} on host {host} is somebody else's"))
}
