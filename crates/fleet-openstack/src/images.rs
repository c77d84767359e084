//! Images of servers, made before the servers are deleted with their lease. A property of the image
//! identifies the server and the lease, so the next attempt finds it. Once an image is ready, it is given to
//! the server's project.

use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::{GuestId, HostId, ReservationId};
use leases::plan::{GuestOwner, Place};
use leases::text::quoted;

use crate::OpenStackFleet;
use crate::ids::parse_uuid;
use crate::imaging::{Imaging, Stage};
use crate::wire::{Image, Server};

type Answer = Result<Outcome, FleetError>;

/// Prefix of the names of images, the same as Blazar's.
const PREFIX: &str = "reserved_";

/// Glance's limit, characters.
const LONGEST_NAME: usize = 255;

impl OpenStackFleet {
    /// Makes images of the lease's servers on a host, one at a time to spare the host's disk. Keeps waiting
    /// while a service doesn't answer, since the servers are deleted without images once this is given up.
    pub(crate) async fn make_images(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        let look = self.look_at(host).await?;
        if look.place != Some(Place::Held(reservation)) {
            return Ok(Outcome::Done);
        }
        let (Some(lease), Some(facts)) = (key.lease, &key.facts) else {
            return Err(FleetError::Refused("the lease is not known any more".to_owned()));
        };
        let (now, moment) = (self.clock.now(), facts.images_for);
        let before = self.memory().imaging.get(&host).cloned();
        let before = before.filter(|work| (work.reservation, work.moment) == (reservation, moment));
        let mut work = before.unwrap_or_else(|| Imaging::new(reservation, moment, now));
        let own = |server: &&Server| {
            look.sight.owner(server, &self.settings) == GuestOwner::Lease(lease)
                && !["DELETED", "SOFT_DELETED"].contains(&server.status.as_str())
        };
        let waits = self.go_on(&mut work, look.sight.on(look.host()).iter().filter(own)).await;
        let late = now.duration_since(work.since) >= self.settings.image_time;
        if waits && !late {
            self.memory().imaging.insert(host, work);
            return Ok(Outcome::Pending);
        }
        let too_long = || {
            let time = self.settings.image_time;
            FleetError::Unavailable(format!(
                "images of servers on host {} take longer than {time:#}",
                look.host()
            ))
        };
        let late = waits.then(|| work.said.take().unwrap_or_else(too_long));
        let Some(error) = work.conclude(late) else {
            self.memory().imaging.remove(&host);
            return Ok(Outcome::Done);
        };
        work.since = now;
        self.memory().imaging.insert(host, work);
        Err(error)
    }

    /// Continues with the servers' images. Returns whether an image is in progress or can't be made now.
    async fn go_on(&self, work: &mut Imaging, servers: impl Iterator<Item = &Server>) -> bool {
        let mut waits = false;
        for server in servers {
            let Some(guest) = parse_uuid(&server.id).map(GuestId) else { continue };
            let before = work.servers.get(&guest).cloned();
            if matches!(before, Some(Stage::Ready | Stage::Failed(_))) {
                continue;
            }
            let asked = before == Some(Stage::Asked);
            let stage = match self.image_of(server, &work.made_for(server), asked).await {
                Ok(stage) => stage,
                Err(error @ FleetError::Refused(_)) => Stage::Failed(error),
                Err(error @ FleetError::Unavailable(_)) => {
                    if work.said.as_ref() != Some(&error) {
                        tracing::warn!(server = quoted(&server.id), %error, "image of a server has to wait");
                    }
                    work.said = Some(error);
                    return true;
                }
            };
            waits |= matches!(stage, Stage::Asked | Stage::Busy);
            let under_way = stage == Stage::Asked;
            work.servers.insert(guest, stage);
            if under_way {
                break;
            }
        }
        // The obstacle is gone.
        work.said = None;
        waits
    }

    /// Continues with a server's image. `asked`: Nova has been asked for it.
    async fn image_of(&self, server: &Server, made_for: &str, asked: bool) -> Result<Stage, FleetError> {
        let images = self.cloud.images(made_for, &server.tenant_id).await?;
        if let Some(ready) = images.iter().find(|image| image.is_ready()) {
            self.give(ready, server).await?;
            return Ok(Stage::Ready);
        }
        if images.iter().any(Image::is_being_made) {
            return Ok(Stage::Asked);
        }
        if asked {
            // Nova deletes images that it cannot make.
            let error = format!("Nova has made no image of server {} ({})", server.id, server.name);
            return Ok(Stage::Failed(FleetError::Refused(error)));
        }
        if server.is_busy() {
            return Ok(Stage::Busy);
        }
        if !server.can_be_imaged() {
            let (id, status) = (&server.id, &server.status);
            let error = format!("Nova makes no image of server {id} in status {status}");
            return Ok(Stage::Failed(FleetError::Refused(error)));
        }
        let name: String = format!("{PREFIX}{}", server.name).chars().take(LONGEST_NAME).collect();
        let begun = self.cloud.create_image(&server.id, name.trim_end(), made_for).await?;
        Ok(if begun { Stage::Asked } else { Stage::Busy })
    }

    /// Gives an image to the server's project, if Glance lets the service do so.
    async fn give(&self, image: &Image, server: &Server) -> Result<(), FleetError> {
        let project = &server.tenant_id;
        if image.owner != *project && !self.cloud.give_image(&image.id, project).await? {
            let reason = "Glance does not let the service give it away";
            let (image, project) = (quoted(&image.id), quoted(project));
            tracing::warn!(image, project, reason, "image stays in the service's project");
        }
        Ok(())
    }
}
