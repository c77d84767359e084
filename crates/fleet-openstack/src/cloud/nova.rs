//! Requests to Nova.

use std::collections::{BTreeMap, BTreeSet};

use fleet::FleetError;
use openstack::{Api, Call, Microversion};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Cloud, Creation, Link, MOST_BYTES, MOST_PAGES, PAGE, Turn, has_next};
use crate::wire::{Aggregate, ComputeService, Flavor, Hypervisor, Migration, Server};

/// Microversion of all requests without a constant of their own: Train.
const COMPUTE: Api = Api::Compute(Microversion { major: 2, minor: 79 });

/// The last microversion with numeric identifiers of hypervisors, by which Blazar's clients know hosts. Later
/// ones have UUIDs.
const HYPERVISORS: Api = Api::Compute(Microversion { major: 2, minor: 52 });

/// The first microversion that returns the scheduler hints that servers were started with: 2025.2.
const WITH_HINTS: Api = Api::Compute(Microversion { major: 2, minor: 100 });

/// The first microversion that returns the requesting user of a migration: Ussuri. It can also abort
/// migrations that are still being prepared.
const MIGRATIONS: Api = Api::Compute(Microversion { major: 2, minor: 80 });

/// A flavor to create for a reservation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFlavor<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) disk_gib: u32,
    pub(crate) ephemeral_gib: u32,
    pub(crate) swap_mib: u32,
}

impl NewFlavor<'_> {
    /// Whether an existing flavor is private and has this name and size.
    fn is(&self, found: &Flavor) -> bool {
        let size = (self.vcpus, self.memory_mib, self.disk_gib, self.ephemeral_gib, self.swap_mib);
        !found.public
            && found.name == self.name
            && size == (found.vcpus, found.ram, found.disk, found.ephemeral, found.swap)
    }
}

#[derive(Deserialize)]
struct Services {
    services: Vec<ComputeService>,
}

#[derive(Deserialize)]
struct Hypervisors {
    hypervisors: Vec<Hypervisor>,
    #[serde(default)]
    hypervisors_links: Vec<Link>,
}

#[derive(Deserialize)]
struct Aggregates {
    aggregates: Vec<Aggregate>,
}

#[derive(Deserialize)]
struct OneAggregate {
    aggregate: Aggregate,
}

#[derive(Deserialize)]
struct Servers {
    servers: Vec<Server>,
    #[serde(default)]
    servers_links: Vec<Link>,
}

#[derive(Deserialize)]
struct OneServer {
    server: Server,
}

#[derive(Deserialize)]
struct OneFlavor {
    flavor: Flavor,
}

#[derive(Deserialize)]
struct Flavors {
    flavors: Vec<Flavor>,
    #[serde(default)]
    flavors_links: Vec<Link>,
}

#[derive(Deserialize)]
struct FlavorAccess {
    flavor_access: Vec<Access>,
}

#[derive(Deserialize)]
struct Access {
    tenant_id: String,
}

#[derive(Deserialize)]
struct ServerGroups {
    server_groups: Vec<ServerGroup>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ServerGroup {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
}

#[derive(Deserialize)]
struct Migrations {
    migrations: Vec<Migration>,
}

impl Cloud {
    /// Compute services of the whole cloud, or of a single host.
    pub(crate) async fn services(&self, host: Option<&str>) -> Result<Vec<ComputeService>, FleetError> {
        let call = Call::get(COMPUTE, "list compute services", &["os-services"]);
        let call = call.with_query("binary", "nova-compute").at_most(MOST_BYTES);
        let call = if let Some(host) = host { call.with_query("host", host) } else { call };
        self.ask::<Services>(call).await.map(|answer| answer.services)
    }

    /// Enables a compute service, or disables it with a reason.
    pub(crate) async fn set_service(&self, id: &str, disabled: Option<&str>) -> Result<(), FleetError> {
        let call = Call::new(COMPUTE, "set compute service", Method::PUT, &["os-services", id]);
        let body = match disabled {
            Some(reason) => json!({"status": "disabled", "disabled_reason": reason}),
            None => json!({"status": "enabled"}),
        };
        self.send(call.with_body(body)).await.map(drop)
    }

    pub(crate) async fn hypervisors(&self) -> Result<Vec<Hypervisor>, FleetError> {
        let call = Call::get(HYPERVISORS, "list hypervisors", &["os-hypervisors", "detail"]);
        let entries = |page: Hypervisors| (page.hypervisors, has_next(&page.hypervisors_links));
        self.paged(call, entries, |last| last.id.to_string()).await
    }

    pub(crate) async fn aggregates(&self) -> Result<Vec<Aggregate>, FleetError> {
        let call = Call::get(COMPUTE, "list aggregates", &["os-aggregates"]).at_most(MOST_BYTES);
        self.ask::<Aggregates>(call).await.map(|answer| answer.aggregates)
    }

    /// Creates an aggregate in `zone` unless one with that name exists in any zone. The flag is true if this
    /// call created it.
    pub(crate) async fn ensure_aggregate(
        &self,
        name: &str,
        zone: Option<&str>,
    ) -> Result<(Aggregate, bool), FleetError> {
        let _turn = self.turn_for(name).await;
        let call = Call::new(COMPUTE, "create aggregate", Method::POST, &["os-aggregates"]);
        let call = call.with_body(json!({"aggregate": {"name": name, "availability_zone": zone}}));
        let conflict = match self.create(call).await? {
            Creation::Created(answer) => {
                let created: OneAggregate = answer.json().map_err(super::failed)?;
                return Ok((created.aggregate, true));
            }
            Creation::Conflict(error) => error,
        };
        let found = self.aggregates().await?.into_iter().find(|aggregate| aggregate.name == name);
        Ok((found.ok_or(conflict)?, false))
    }

    async fn act_on_aggregate(
        &self,
        id: u64,
        name: &'static str,
        body: Value,
        done: &[u16],
    ) -> Result<(), FleetError> {
        // Nova tells its schedulers the hosts of an aggregate as each request saw them. After two concurrent
        // requests, the schedulers would miss one host.
        let _turn = self.turns.of(Turn::Aggregate(id)).await;
        let call = Call::new(COMPUTE, name, Method::POST, &["os-aggregates", &id.to_string(), "action"])
            .repeatable();
        self.send_unless(call.with_body(body), done).await.map(drop)
    }

    /// Makes Nova send an aggregate to its schedulers again, since another service might have changed it at
    /// the same time.
    pub(crate) async fn tell_schedulers(&self, id: u64) -> Result<(), FleetError> {
        self.set_metadata(id, &BTreeMap::new()).await
    }

    /// Sets metadata keys, and removes keys with the value `None`. Other keys stay.
    pub(crate) async fn set_metadata(
        &self,
        id: u64,
        metadata: &BTreeMap<String, Option<String>>,
    ) -> Result<(), FleetError> {
        let body = json!({"set_metadata": {"metadata": metadata}});
        self.act_on_aggregate(id, "set metadata of an aggregate", body, &[]).await
    }

    /// Adds a host that isn't in the aggregate.
    pub(crate) async fn add_host(&self, id: u64, host: &str) -> Result<(), FleetError> {
        self.act_on_aggregate(id, "add host to aggregate", json!({"add_host": {"host": host}}), &[]).await
    }

    /// Removes a host from an aggregate, if it is there.
    pub(crate) async fn remove_host(&self, id: u64, host: &str) -> Result<(), FleetError> {
        let body = json!({"remove_host": {"host": host}});
        self.act_on_aggregate(id, "remove host from aggregate", body, &[404]).await
    }

    /// Deletes an aggregate. It must not have any hosts.
    pub(crate) async fn delete_aggregate(&self, id: u64) -> Result<(), FleetError> {
        let call =
            Call::new(COMPUTE, "delete aggregate", Method::DELETE, &["os-aggregates", &id.to_string()]);
        self.send_unless(call, &[404]).await.map(drop)
    }

    /// Servers of all projects, or only those on `host`.
    pub(crate) async fn servers(&self, host: Option<&str>) -> Result<Vec<Server>, FleetError> {
        let api = if self.hints { WITH_HINTS } else { COMPUTE };
        let call = Call::get(api, "list servers", &["servers", "detail"]).with_query("all_tenants", "1");
        let call = if let Some(host) = host { call.with_query("host", host) } else { call };
        let entries = |page: Servers| (page.servers, has_next(&page.servers_links));
        self.paged(call, entries, |last: &Server| last.id.clone()).await
    }

    pub(crate) async fn server(&self, id: &str) -> Result<Option<Server>, FleetError> {
        let call = Call::get(COMPUTE, "show server", &["servers", id]);
        let Some(answer) = self.send_unless(call, &[404]).await? else { return Ok(None) };
        let found: OneServer = answer.json().map_err(super::failed)?;
        Ok(Some(found.server))
    }

    pub(crate) async fn delete_server(&self, id: &str) -> Result<(), FleetError> {
        let call = Call::new(COMPUTE, "delete server", Method::DELETE, &["servers", id]);
        self.send_unless(call, &[404]).await.map(drop)
    }

    async fn act_on_server(
        &self,
        id: &str,
        name: &'static str,
        body: Value,
        done: &[u16],
    ) -> Result<(), FleetError> {
        let call = Call::new(COMPUTE, name, Method::POST, &["servers", id, "action"]);
        self.send_unless(call.with_body(body), done).await.map(drop)
    }

    /// Finally deletes a server that Nova keeps for a while after its deletion.
    pub(crate) async fn force_delete_server(&self, id: &str) -> Result<(), FleetError> {
        self.act_on_server(id, "delete server for good", json!({"forceDelete": null}), &[404]).await
    }

    /// Shuts down a server. Does nothing if it isn't running or can't be shut down now.
    pub(crate) async fn stop_server(&self, id: &str) -> Result<(), FleetError> {
        self.act_on_server(id, "stop server", json!({"os-stop": null}), &[404, 409]).await
    }

    /// Starts a server that is shut off. Does nothing if it is running or Nova is busy with it.
    pub(crate) async fn start_server(&self, id: &str) -> Result<(), FleetError> {
        self.act_on_server(id, "start server", json!({"os-start": null}), &[404, 409]).await
    }

    /// Starts a live migration to a host that the scheduler checks.
    pub(crate) async fn live_migrate(&self, id: &str, to: &str) -> Result<(), FleetError> {
        let body = json!({"os-migrateLive": {"host": to, "block_migration": "auto"}});
        self.act_on_server(id, "live-migrate server", body, &[]).await
    }

    /// Starts to move a server that is shut off to a host that the scheduler checks.
    pub(crate) async fn migrate(&self, id: &str, to: &str) -> Result<(), FleetError> {
        self.act_on_server(id, "migrate server", json!({"migrate": {"host": to}}), &[]).await
    }

    /// Confirms a migration. Succeeds if it was already confirmed or the server is gone.
    pub(crate) async fn confirm_migration(&self, id: &str) -> Result<(), FleetError> {
        let body = json!({"confirmResize": null});
        self.act_on_server(id, "confirm migration", body, &[400, 404, 409]).await
    }

    /// Starts making an image of a server. `false` if Nova is busy with the server, so the image must wait.
    pub(crate) async fn create_image(
        &self,
        id: &str,
        name: &str,
        made_for: &str,
    ) -> Result<bool, FleetError> {
        let call = Call::new(COMPUTE, "create image of a server", Method::POST, &["servers", id, "action"]);
        let body = json!({"createImage": {"name": name, "metadata": {super::glance::MADE_FOR: made_for}}});
        self.send_unless(call.with_body(body), &[409]).await.map(|answer| answer.is_some())
    }

    /// Aborts a live migration: the server stays where it was. Succeeds if the migration is over.
    pub(crate) async fn abort_migration(&self, server: &str, migration: u64) -> Result<(), FleetError> {
        let path = ["servers", server, "migrations", &migration.to_string()];
        let call = Call::new(MIGRATIONS, "abort live migration", Method::DELETE, &path);
        self.send_unless(call, &[400, 404, 409]).await.map(drop)
    }

    /// Running live migrations.
    pub(crate) async fn migrations(&self) -> Result<Vec<Migration>, FleetError> {
        let call = Call::get(MIGRATIONS, "list migrations", &["os-migrations"]).at_most(MOST_BYTES);
        let call = call.with_query("migration_type", "live-migration").with_query("status", "running");
        self.ask::<Migrations>(call).await.map(|answer| answer.migrations)
    }

    /// The latest cold migrations that the user has requested, newest first. Nova returns a single page, and
    /// most migrations are over.
    pub(crate) async fn cold_migrations(&self, user: &str) -> Result<Vec<Migration>, FleetError> {
        let call = Call::get(MIGRATIONS, "list migrations", &["os-migrations"]).at_most(MOST_BYTES);
        let call = call.with_query("migration_type", "migration").with_query("user_id", user);
        let call = call.with_query("limit", PAGE.to_string());
        self.ask::<Migrations>(call).await.map(|answer| answer.migrations)
    }

    pub(crate) async fn flavor(&self, id: &str) -> Result<Option<Flavor>, FleetError> {
        let call = Call::get(COMPUTE, "show flavor", &["flavors", id]);
        // Nova answers 400 to a text that can't be an identifier.
        let Some(answer) = self.send_unless(call, &[400, 404]).await? else { return Ok(None) };
        let found: OneFlavor = answer.json().map_err(super::failed)?;
        Ok(Some(found.flavor))
    }

    /// All flavors, including private ones.
    pub(crate) async fn flavors(&self) -> Result<Vec<Flavor>, FleetError> {
        let call = Call::get(COMPUTE, "list flavors", &["flavors", "detail"]).with_query("is_public", "None");
        let entries = |page: Flavors| (page.flavors, has_next(&page.flavors_links));
        self.paged(call, entries, |last: &Flavor| last.id.clone()).await
    }

    /// Projects with access to a private flavor.
    pub(crate) async fn projects_of_flavor(&self, id: &str) -> Result<BTreeSet<String>, FleetError> {
        let call = Call::get(COMPUTE, "list access to a flavor", &["flavors", id, "os-flavor-access"]);
        let Some(answer) = self.send_unless(call, &[404]).await? else { return Ok(BTreeSet::new()) };
        let found: FlavorAccess = answer.json().map_err(super::failed)?;
        Ok(found.flavor_access.into_iter().map(|access| access.tenant_id).collect())
    }

    /// Creates a private flavor with these extra specs. An existing one with this identifier but another name
    /// or size is replaced.
    pub(crate) async fn ensure_flavor(
        &self,
        flavor: NewFlavor<'_>,
        specs: &BTreeMap<String, String>,
    ) -> Result<(), FleetError> {
        let _turn = self.turn_for(flavor.id).await;
        let mut wanted = json!({
            "id": flavor.id, "name": flavor.name, "vcpus": flavor.vcpus, "ram": flavor.memory_mib,
            "disk": flavor.disk_gib, "os-flavor-access:is_public": false,
        });
        for (field, size) in [("OS-FLV-EXT-DATA:ephemeral", flavor.ephemeral_gib), ("swap", flavor.swap_mib)]
        {
            if size > 0 {
                wanted[field] = json!(size);
            }
        }
        let call = Call::new(COMPUTE, "create flavor", Method::POST, &["flavors"]);
        let call = call.with_body(json!({"flavor": wanted}));
        if let Creation::Conflict(error) = self.create(call.clone()).await? {
            let found = self.flavor(flavor.id).await?.ok_or(error)?;
            if !flavor.is(&found) {
                self.delete_flavor(flavor.id).await?;
                let is_there =
                    async || Ok(self.flavor(flavor.id).await?.is_some_and(|found| flavor.is(&found)));
                self.ensure(call, is_there).await?;
            }
        }
        let path = ["flavors", flavor.id, "os-extra_specs"];
        let call = Call::new(COMPUTE, "set extra specs of a flavor", Method::POST, &path).repeatable();
        let has_specs = async || {
            let found = self.flavor(flavor.id).await?;
            Ok(found.is_some_and(|found| {
                specs.iter().all(|(key, value)| found.extra_specs.get(key) == Some(value))
            }))
        };
        self.ensure(call.with_body(json!({"extra_specs": specs})), has_specs).await
    }

    /// Gives a project access to a private flavor.
    pub(crate) async fn allow_flavor(&self, id: &str, project: &str) -> Result<(), FleetError> {
        let _turn = self.turn_for(id).await;
        let call = Call::new(COMPUTE, "grant access to a flavor", Method::POST, &["flavors", id, "action"]);
        let call = call.repeatable().with_body(json!({"addTenantAccess": {"tenant": project}}));
        self.ensure(call, async || Ok(self.projects_of_flavor(id).await?.contains(project))).await
    }

    /// Removes the access of all projects but this one.
    pub(crate) async fn restrict_flavor(&self, id: &str, project: &str) -> Result<(), FleetError> {
        for other in self.projects_of_flavor(id).await?.iter().filter(|other| *other != project) {
            let path = ["flavors", id, "action"];
            let call = Call::new(COMPUTE, "take access to a flavor away", Method::POST, &path).repeatable();
            let body = json!({"removeTenantAccess": {"tenant": other}});
            self.send_unless(call.with_body(body), &[404]).await?;
        }
        Ok(())
    }

    /// The server group with that name in the service's own project. Names of groups are not unique in Nova,
    /// so two services can each create one at the same time: the first in Nova's list stays. `first` means
    /// that no group can exist yet.
    pub(crate) async fn ensure_server_group(
        &self,
        name: &str,
        policy: &str,
        first: bool,
    ) -> Result<String, FleetError> {
        let _turn = self.turn_for(name).await;
        let known = if first { Vec::new() } else { self.server_groups(name).await? };
        if let Some(known) = known.into_iter().next() {
            return Ok(known);
        }
        let call = Call::new(COMPUTE, "create server group", Method::POST, &["os-server-groups"]);
        let call = call.with_body(json!({"server_group": {"name": name, "policy": policy}}));
        let conflict = match self.create(call).await? {
            Creation::Created(_) => None,
            Creation::Conflict(error) => Some(error),
        };
        let mut all = self.server_groups(name).await?.into_iter();
        let missing =
            || FleetError::Unavailable(format!("compute: server group {name} was deleted just now"));
        let stays = all.next().ok_or_else(|| conflict.unwrap_or_else(missing))?;
        for other in all {
            self.delete_server_group(&other).await?;
        }
        Ok(stays)
    }

    /// IDs of the server groups with that name in the service's own project, oldest first.
    pub(crate) async fn server_groups(&self, name: &str) -> Result<Vec<String>, FleetError> {
        let all = self.list_server_groups(false).await?.into_iter();
        Ok(all.filter(|group| group.name == name).map(|group| group.id).collect())
    }

    /// Server groups of all projects. The groups of leases that Blazar made can belong to another project.
    pub(crate) async fn all_server_groups(&self) -> Result<Vec<ServerGroup>, FleetError> {
        self.list_server_groups(true).await
    }

    /// Whether the server group exists in any project.
    pub(crate) async fn has_server_group(&self, id: &str) -> Result<bool, FleetError> {
        let call = Call::get(COMPUTE, "show server group", &["os-server-groups", id]);
        self.send_unless(call, &[404]).await.map(|answer| answer.is_some())
    }

    async fn list_server_groups(&self, of_all: bool) -> Result<Vec<ServerGroup>, FleetError> {
        let mut all = Vec::new();
        for page in 0..MOST_PAGES {
            let call = Call::get(COMPUTE, "list server groups", &["os-server-groups"]).at_most(MOST_BYTES);
            let call = call.with_query("limit", PAGE.to_string());
            let call = call.with_query("offset", (page * PAGE).to_string());
            let call = if of_all { call.with_query("all_projects", "True") } else { call };
            let groups = self.ask::<ServerGroups>(call).await?.server_groups;
            let last = groups.len() < PAGE;
            all.extend(groups);
            if last {
                return Ok(all);
            }
        }
        Err(FleetError::Unavailable(format!(
            "compute: there are more than {MOST_PAGES} pages of server groups"
        )))
    }

    pub(crate) async fn delete_server_group(&self, id: &str) -> Result<(), FleetError> {
        let call = Call::new(COMPUTE, "delete server group", Method::DELETE, &["os-server-groups", id]);
        self.send_unless(call, &[404]).await.map(drop)
    }

    pub(crate) async fn delete_flavor(&self, id: &str) -> Result<(), FleetError> {
        let call = Call::new(COMPUTE, "delete flavor", Method::DELETE, &["flavors", id]);
        self.send_unless(call, &[404]).await.map(drop)
    }
}
