//! Servers that are preempted, or end with their lease.

use std::time::Duration;

use fleet::{FleetError, Outcome};
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;

use crate::OpenStackFleet;

type Answer = Result<Outcome, FleetError>;

/// Number of times a deleted server is looked for before the step is left pending, and the pause after each.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

impl OpenStackFleet {
    pub(crate) async fn stop_guest(&self, host: HostId, guest: GuestId) -> Answer {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let Some(server) = look.sight.on(look.host()).iter().find(|server| server.id == id) else {
            return Ok(Outcome::Done);
        };
        if look.sight.owner(server, &self.settings) == GuestOwner::Other {
            return Err(somebody_elses(guest, look.host()));
        }
        if look.place.is_none() || self.memory().stopping.contains_key(&guest) {
            return Ok(Outcome::Done);
        }
        self.cloud.stop_server(&id).await?;
        let now = self.clock.now();
        self.memory().note_stopping(guest, !server.is_shut_off(), now);
        Ok(Outcome::Done)
    }

    /// Lets a server stay that was asked to leave. It is started again if it was running when it was asked.
    pub(crate) async fn resume_guest(&self, guest: GuestId) -> Answer {
        let ran = {
            let memory = self.memory();
            if !memory.stopping.contains_key(&guest) {
                return Ok(Outcome::Done);
            }
            memory.stopped_running.contains(&guest)
        };
        let id = guest.to_string();
        if ran && let Some(server) = self.cloud.server(&id).await? {
            // It is being shut down or started.
            if server.is_busy() {
                return Ok(Outcome::Pending);
            }
            if server.is_shut_off() {
                self.cloud.start_server(&id).await?;
                // Only once: a server that can't be started would be started again every second.
                self.memory().stopped_running.remove(&guest);
                return Ok(Outcome::Pending);
            }
        }
        self.memory().forget_stopping(guest);
        Ok(Outcome::Done)
    }

    pub(crate) async fn delete_guest(&self, host: HostId, guest: GuestId) -> Answer {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let Some(server) = look.sight.on(look.host()).iter().find(|server| server.id == id) else {
            return Ok(Outcome::Done);
        };
        if look.sight.owner(server, &self.settings) == GuestOwner::Other {
            return Err(somebody_elses(guest, look.host()));
        }
        if look.place.is_none() {
            return Ok(Outcome::Done);
        }
        self.cloud.delete_server(&id).await?;
        for _ in 0..LOOKS {
            let Some(server) = self.cloud.server(&id).await? else {
                self.memory().forget_stopping(guest);
                return Ok(Outcome::Done);
            };
            // Nova is configured to keep deleted servers for a while, but this one must be gone.
            if server.status == "SOFT_DELETED" {
                self.cloud.force_delete_server(&id).await?;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Outcome::Pending)
    }
}

fn somebody_elses(guest: GuestId, host: &str) -> FleetError {
    FleetError::Refused(format!("server {guest} on host {host} belongs to another user"))
}
