//! `allot serve --check`: reports every mistake in the configuration, and starts nothing.

use std::path::Path;
use std::sync::Arc;

use ambient::{Clock, RandomIds, SystemClock};
use fleet::Inventory as _;
use fleet::hooks::{HooksConfig, PowerConfig};
use fleet::simulated::{Layout, SimulatedFleet};
use openstack::{Cloud, Session};
use server::{AuthConfig, ExternalService};
use service::{Parts, Service};
use store::memory::MemoryStore;
use store_postgres::{OpenError, PostgresStore};

use super::assembly::{authentication, server_config, settings, tls};
use super::fleet::{cloud, hooks};
use super::{keystone, listeners};
use crate::config::{Configuration, DatabaseChoice, FleetChoice};

/// Checks a configuration whose values are valid: the files that it names, and access to its database and cloud. Databases and
/// clouds are only read. The address to listen on isn't tried, since the service may be running.
pub(super) async fn mistakes(configuration: &Configuration) -> Vec<String> {
    let mut found = Mistakes::default();
    found.note(tls(&configuration.tls));
    found.note(authentication(&mut AuthConfig::default(), configuration));
    found.note(listeners::webhook(configuration));
    found.note(listeners::message_bus(configuration));
    match listeners::external_service(configuration) {
        Ok(asked) => found.note(asked.as_ref().map(ExternalService::new).transpose()),
        Err(error) => found.add(&error),
    }
    found.of_server(configuration).await;
    found.of_fleet(configuration).await;
    found.of_database(&configuration.database).await;
    if let Ok(Some(config)) = keystone::of(configuration) {
        found.of_login("keystone", config.cloud).await;
    }
    found.0
}

#[derive(Default)]
struct Mistakes(Vec<String>);

impl Mistakes {
    /// Adds a mistake once, even if several checks find it: the message bus, for example, has two uses.
    fn add(&mut self, error: &dyn std::error::Error) {
        let mistake = error.to_string();
        if !self.0.contains(&mistake) {
            self.0.push(mistake);
        }
    }

    fn note<T, E: std::error::Error>(&mut self, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(&error);
        }
    }

    /// Files of users, tokens, rules and certificates. The server is built for a service that has nothing.
    async fn of_server(&mut self, configuration: &Configuration) {
        let config = match server_config(configuration) {
            Ok(config) => config,
            Err(error) => return self.add(&error),
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let fleet = Arc::new(SimulatedFleet::new(Arc::clone(&clock), 1, &Layout::default()));
        let ids = Arc::new(RandomIds);
        let parts =
            Parts { store: Arc::new(MemoryStore::new()), fleet, clock, ids: ids.clone(), enforcer: None };
        match Service::open(parts, settings(configuration)).await {
            Ok(service) => {
                for mistake in server::mistakes(service, ids, config) {
                    self.add(&mistake);
                }
            }
            Err(error) => self.add(&error),
        }
    }

    async fn of_fleet(&mut self, configuration: &Configuration) {
        match &configuration.fleet {
            FleetChoice::Simulated => {}
            FleetChoice::Hooks(path) => self.of_hooks(path, "docs/machines.md", HooksConfig::mistakes),
            FleetChoice::OpenStack => {
                if let Some(path) = &configuration.openstack.power_file {
                    self.of_hooks(path, "docs/openstack.md", PowerConfig::mistakes);
                }
                match cloud(configuration, Arc::new(SystemClock)) {
                    Ok(cloud) => {
                        if let Err(error) = cloud.machines().await {
                            self.0.push(format!("openstack: {error}"));
                        }
                    }
                    Err(error) => self.add(&error),
                }
            }
        }
    }

    fn of_hooks<T: serde::de::DeserializeOwned>(
        &mut self,
        path: &Path,
        example: &str,
        mistakes: impl Fn(&T) -> Vec<fleet::hooks::HooksError>,
    ) {
        match hooks::<T>(path, example) {
            Ok(config) => {
                let named = |mistake| format!("{}: {mistake}", path.display());
                self.0.extend(mistakes(&config).into_iter().map(named));
            }
            Err(error) => self.add(&error),
        }
    }

    async fn of_database(&mut self, choice: &DatabaseChoice) {
        match choice {
            DatabaseChoice::Memory => {}
            DatabaseChoice::Sqlite(path) if path.exists() => self.note(store_sqlite::check(path).await),
            DatabaseChoice::Sqlite(path) => {
                // The service creates the file.
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
                    self.0.push(format!("database: there is no directory {}", directory.display()));
                }
            }
            DatabaseChoice::Postgres(servers) => match PostgresStore::open_as_it_is(servers.clone()).await {
                Ok(store) => store.close(),
                // The service brings the schema up to date.
                Err(OpenError::Older { .. }) => {}
                Err(error) => self.add(&error),
            },
        }
    }

    async fn of_login(&mut self, section: &str, cloud: Cloud) {
        let session = match Session::new(cloud, Arc::new(RandomIds)) {
            Ok(session) => session,
            Err(error) => return self.0.push(format!("{section}: {error}")),
        };
        if let Err(error) = session.own_token().await {
            self.0.push(format!("{section}: {error}"));
        }
    }
}
