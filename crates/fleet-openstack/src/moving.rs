//! Moves of servers to other hosts. Running servers are migrated live, and are on their new host when Nova
//! says so. Servers that are shut off are migrated with Nova's mechanism for resizing: on the new host they
//! wait for a confirmation that they work there, and until then the old host keeps their disk and claim.
//!
//! Every look at the cloud confirms the moves that this service's user has requested, even if no lease waits
//! for them anymore. Until Nova has finished, such a server counts as being on its old host.

use std::collections::BTreeSet;

use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::{GuestId, HostId};
use leases::plan::{GuestOwner, Place};
use leases::text::quoted;

use crate::ids::parse_uuid;
use crate::moves::Way;
use crate::sight::Sight;
use crate::wire::{Aggregate, ComputeService, Migration, Server};
use crate::{Look, OpenStackFleet};

impl OpenStackFleet {
    /// Builds the result of a look. `hosts` has the names of the observed hosts, and is `None` for the whole
    /// cloud.
    pub(crate) async fn sight(
        &self,
        services: Vec<ComputeService>,
        aggregates: Vec<Aggregate>,
        mut servers: Vec<Server>,
        hosts: Option<&BTreeSet<&str>>,
    ) -> Result<Sight, FleetError> {
        let moving = servers.iter().any(Server::is_moving);
        let mut migrations = if moving { self.cloud.migrations().await? } else { Vec::new() };
        self.abort_late_moves(&migrations).await?;
        migrations.extend(self.follow_cold_moves(&mut servers, hosts).await?);
        Ok(Sight::new(services, aggregates, servers, migrations))
    }

    /// Aborts live migrations that this service has requested and that take longer than `migration_time`: a
    /// server that writes faster than it is copied might never arrive. Migrations of other users are left
    /// alone. A step that waits for the move finds the server on its old host.
    async fn abort_late_moves(&self, migrations: &[Migration]) -> Result<(), FleetError> {
        let (now, longest) = (self.clock.now(), self.settings.migration_time);
        let is_late = |migration: &&Migration| {
            migration.since().is_some_and(|since| now.duration_since(since) >= longest)
        };
        let mut late = migrations.iter().filter(is_late).peekable();
        if longest.is_zero() || late.peek().is_none() {
            return Ok(());
        }
        let own = self.cloud.own_user().await?;
        for migration in late.filter(|migration| migration.user_id.as_ref() == Some(&own)) {
            let server = &migration.instance_uuid;
            let time = format!("{longest:#}");
            tracing::warn!(
                server = quoted(server),
                migration = migration.id,
                time,
                "live migration too slow"
            );
            // A migration that can't be aborted must not hide the rest of the cloud.
            if let Err(error) = self.cloud.abort_migration(server, migration.id).await {
                tracing::warn!(server = quoted(server), %error, "live migration not aborted");
            }
        }
        Ok(())
    }

    /// Confirms moves of servers that are shut off. While a move is in progress, reports its server on the
    /// old host.
    pub(crate) async fn follow_cold_moves(
        &self,
        servers: &mut Vec<Server>,
        hosts: Option<&BTreeSet<&str>>,
    ) -> Result<Vec<Migration>, FleetError> {
        let now = self.clock.now();
        // Members resize servers too. Don't ask about those one by one.
        if !self.memory().moves.any_waits(now) && !servers.iter().any(Server::is_resizing) {
            return Ok(Vec::new());
        }
        let mut latest = BTreeSet::new();
        let mut migrations = self.cloud.cold_migrations(&self.cloud.own_user().await?).await?;
        migrations.retain(|migration| latest.insert(migration.instance_uuid.clone()));
        let mut under_way = Vec::new();
        for migration in migrations {
            let (Some(guest), Some(from)) =
                (parse_uuid(&migration.instance_uuid).map(GuestId), migration.source_compute.as_deref())
            else {
                continue;
            };
            let is_over = migration.is_over();
            let listed = servers.iter().position(|server| server.id == migration.instance_uuid);
            // Right after a request, Nova's list might not have the new migration yet, but an earlier one of
            // the same server.
            let begins = listed.is_some_and(|at| servers[at].is_resizing());
            {
                let mut memory = self.memory();
                let to = migration.dest_compute.as_ref().and_then(|to| memory.hosts().get(to)).copied();
                memory.moves.note(guest, to, !is_over || begins, now);
            }
            if is_over {
                continue;
            }
            let at = match listed {
                Some(at) => at,
                None if hosts.is_some_and(|hosts| hosts.contains(from)) => {
                    let Some(server) = self.cloud.server(&migration.instance_uuid).await? else { continue };
                    servers.push(server);
                    servers.len() - 1
                }
                None => continue,
            };
            let server = &mut servers[at];
            if !server.is_resizing() {
                continue;
            }
            // A move that can't be confirmed must not hide the rest of the cloud.
            if migration.waits_to_be_confirmed()
                && server.waits_to_be_confirmed()
                && self.memory().moves.confirms(guest, migration.id, now)
                && let Err(error) = self.cloud.confirm_migration(&server.id).await
            {
                self.memory().moves.not_confirmed(guest);
                tracing::warn!(server = quoted(&server.id), %error, "migration not confirmed");
            }
            server.host = Some(from.to_owned());
            under_way.push(migration);
        }
        Ok(under_way)
    }

    pub(crate) async fn move_guest(
        &self,
        host: HostId,
        guest: GuestId,
        to: HostId,
        key: &OperationKey,
    ) -> Result<Outcome, FleetError> {
        let look = self.look_at(host).await?;
        let id = guest.to_string();
        let server = look.sight.on(look.host()).iter().find(|server| server.id == id);
        let Some(server) = server.filter(|server| self.is_to_go(&look, server, key)) else {
            self.memory().moves.end(guest);
            return Ok(Outcome::Done);
        };
        if server.is_moving() || server.is_resizing() {
            return Ok(Outcome::Pending);
        }
        let target = self.look_at(to).await?;
        let begun = self.memory().moves.end(guest);
        if begun.is_some_and(|begun| begun.to == to) {
            return Err(FleetError::Unavailable(format!(
                "Nova has not moved server {guest} to host {}: `openstack server migration list --server {guest}` and the log \
                 of nova-compute say why",
                target.host()
            )));
        }
        let owner = look.sight.owner(server, &self.settings);
        if owner != GuestOwner::Preemptible && !self.settings.fence.moves_all() {
            return Err(FleetError::Refused(format!(
                "server {guest} is not preemptible: the fence lets no other server on hosts of the free pool"
            )));
        }
        if target.place != Some(Place::FreePool) || !target.service.is_enabled() {
            return Err(FleetError::Refused(format!("host {} is not in the free pool", target.host())));
        }
        let Some(way) = Way::of(server) else {
            return Err(FleetError::Unavailable(format!(
                "Nova moves no server as server {guest} is now: {}",
                server.status
            )));
        };
        match way {
            Way::Live => self.cloud.live_migrate(&id, target.host()).await?,
            Way::Cold => self.cloud.migrate(&id, target.host()).await?,
        }
        let now = self.clock.now();
        self.memory().moves.begin(guest, to, way == Way::Cold, now);
        Ok(Outcome::Pending)
    }

    /// Whether a step is allowed to move the server off the host in its current place.
    fn is_to_go(&self, look: &Look, server: &Server, key: &OperationKey) -> bool {
        let owner = look.sight.owner(server, &self.settings);
        let of_lease = key.lease.is_some_and(|lease| owner == GuestOwner::Lease(lease));
        match look.place {
            Some(Place::Fenced { .. }) => true,
            Some(Place::Held(_) | Place::Releasing(_)) => of_lease || owner == GuestOwner::Preemptible,
            Some(Place::FreePool) => owner == GuestOwner::Preemptible,
            None => false,
        }
    }
}
