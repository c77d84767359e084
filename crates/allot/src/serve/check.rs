//! `allot serve --check`: reports every mistake in the configuration, and starts nothing.

use std::path::Path;
use std::sync::Arc;

use ambient::{RandomIds, SystemClock};
use fleet::Inventory as _;
use fleet::hooks::{HooksConfig, HooksError, Moment, PowerConfig};
use fleet::simulated::SimulatedFleet;
use leases::text::lines;
use openstack::{Cloud, ErrorKind, Login, Session};
use serde::de::DeserializeOwned;
use server::ExternalService;
use store_postgres::{OpenError, PostgresStore};

use super::assembly::{check_lifetime, methods, tls};
use super::fleet::{POWER_FILE, check_power, cloud, fence, state_file};
use super::hooks_file::HooksFile;
use super::{files, keystone, listeners};
use crate::config::{Configuration, DatabaseChoice, FleetChoice, Mistake, Values};

/// Settings that say where and as whom the service logs in to a cloud, without the section of the cloud.
const LOGIN: [&str; 5] = ["auth_url", "username", "application_credential", "secret_file", "ca_file"];

/// Further settings that a login depends on.
const LOGIN_DETAILS: [&str; 5] = ["user_domain", "project", "project_domain", "timeout", "interface"];

/// Findings of a check.
pub(super) struct Report {
    pub mistakes: Vec<String>,
    /// Warnings of a start, as far as the settings tell.
    pub warnings: Vec<String>,
}

/// Finds mistakes in the settings, in the files that they name, and in access to the database and the cloud,
/// which are only read, and to the message bus, where it only logs in. A check is skipped only if it depends on a setting that a mistake leaves unknown. The
/// address to listen on isn't tried, since the service may be running.
pub(super) async fn report(values: &Values) -> Report {
    let (configuration, wrong) = Configuration::read(values);
    let mut found = Mistakes { values, wrong: &wrong, found: Vec::new(), warnings: Vec::new() };
    found.add(&lines(&wrong));
    found.of_server(&configuration);
    found.of_fleet(&configuration).await;
    found.of_database(&configuration.database).await;
    found.of_keystone(&configuration).await;
    found.of_message_bus(&configuration).await;
    let of_start = files::warnings(&configuration, values, |settings| found.knows(settings));
    let Mistakes { found: mistakes, mut warnings, .. } = found;
    warnings.extend(of_start);
    let warnings = warnings.iter().map(|warning| values.located(warning)).collect();
    Report { mistakes, warnings }
}

struct Mistakes<'a> {
    values: &'a Values,
    /// Mistakes in the settings themselves.
    wrong: &'a [Mistake],
    found: Vec<String>,
    /// Warnings about users and tokens.
    warnings: Vec<String>,
}

impl Mistakes<'_> {
    /// Adds an error with one mistake per line. Each mistake is added once, even if several checks find it:
    /// the message bus, for example, has two uses.
    fn add(&mut self, error: &dyn std::fmt::Display) {
        for mistake in error.to_string().lines().map(|line| self.values.located(line)) {
            if !self.found.contains(&mistake) {
                self.found.push(mistake);
            }
        }
    }

    fn note<T, E: std::error::Error>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(&error)).ok()
    }

    /// Whether the values of these settings are known. A section stands for all of its settings.
    fn knows(&self, settings: &[&str]) -> bool {
        !settings.iter().any(|setting| self.wrong.iter().any(|mistake| mistake.affects(setting)))
    }

    fn knows_of(&self, section: &str, names: &[&str]) -> bool {
        names.iter().all(|name| self.knows(&[format!("{section}.{name}").as_str()]))
    }

    /// Whether the settings of a login are known, apart from those in [`LOGIN`].
    fn knows_details(&self, section: &str) -> bool {
        self.knows_of(section, &LOGIN_DETAILS) && self.knows(&["region"])
    }

    /// Checks certificates, the files of users, tokens and rules, the receivers of notifications, and the
    /// external service.
    fn of_server(&mut self, configuration: &Configuration) {
        let mut config = configuration.server.clone();
        if self.knows(&["tls"]) {
            config.tls = self.note(tls(&configuration.tls)).flatten();
        }
        if self.knows(&["preemptible.max_lifetime", "preemptible.classes", "leases.grace"]) {
            self.note(check_lifetime(configuration));
        }
        config.auth.methods.clear();
        if self.knows(&["auth"]) {
            self.note(methods(&mut config.auth, configuration));
        }
        // Without the secret, the address can still be checked.
        let webhook = self.note(listeners::webhook(configuration));
        config.webhook = webhook.unwrap_or_else(|| Some(configuration.webhook.clone()));
        config.exec = listeners::exec(configuration);
        if self.knows(&["message_bus"]) {
            config.message_bus = self.note(listeners::message_bus(configuration)).flatten().map(Box::new);
        }
        self.add(&lines(&server::mistakes(&config)));
        self.warnings = server::warnings(&config);
        if self.knows(&["enforcement.url"]) {
            let service = &configuration.external_service;
            let asked = self.note(listeners::external_service(configuration));
            let asked = asked.unwrap_or_else(|| Some(service.clone()));
            let asked = asked.filter(|asked| !asked.base_endpoint.is_empty());
            self.note(asked.as_ref().map(ExternalService::new).transpose());
        }
    }

    async fn of_fleet(&mut self, configuration: &Configuration) {
        if !self.knows(&["fleet"]) {
            return;
        }
        match &configuration.fleet {
            FleetChoice::Simulated => {
                let named = configuration.simulated.state_file.is_some();
                let file = state_file(configuration).filter(|_| named || self.knows(&["database"]));
                if let Some(Err(error)) = file.as_deref().map(SimulatedFleet::check_file) {
                    self.add(&format!("simulated.state_file: {error}"));
                }
            }
            FleetChoice::Hooks(path) => {
                let config =
                    self.of_hooks("fleet", path, "docs/tutorials/own-machines.md", HooksConfig::mistakes);
                if let Some(config) = config.filter(|_| self.knows(&["energy.enabled"])) {
                    let switches = [Moment::OnPowerOn, Moment::OnPowerOff];
                    let switches = switches.iter().all(|moment| config.hooks.contains_key(moment));
                    self.note(check_power(configuration, switches));
                }
            }
            FleetChoice::OpenStack => self.of_cloud(configuration).await,
        }
    }

    async fn of_cloud(&mut self, configuration: &Configuration) {
        let power_file = configuration.openstack.power_file.as_ref();
        if let Some(path) = power_file {
            self.of_hooks(POWER_FILE, path, "docs/how-to/openstack.md", PowerConfig::mistakes);
        }
        if self.knows(&["energy.enabled", POWER_FILE]) {
            self.note(check_power(configuration, power_file.is_some()));
        }
        let fence_settings =
            ["openstack.fence", "openstack.open_pool", "openstack.lease_flavors", "preemptible"];
        let fenced = self.knows(&fence_settings) && self.note(fence(configuration)).is_some();
        if !self.knows_of("openstack", &LOGIN) || !self.knows(&["keystone.auth_url", "keystone.ca_file"]) {
            return;
        }
        let Some(login) = self.note(keystone::nova(configuration)) else { return };
        let of_section = configuration.openstack.login.auth_url.is_some();
        let address = if of_section { "openstack.auth_url" } else { "keystone.auth_url" };
        if self.knows_details("openstack")
            && self.of_login("openstack", address, login).await
            && fenced
            && let Ok(cloud) = cloud(configuration, Arc::new(SystemClock))
            && let Err(error) = cloud.machines().await
        {
            self.add(&format!("openstack: {error}"));
        }
    }

    /// Mistakes in a file of hooks that a setting names. Returns the configuration if its form is right.
    fn of_hooks<T: DeserializeOwned>(
        &mut self,
        setting: &'static str,
        path: &Path,
        example: &str,
        mistakes: impl Fn(&T) -> Vec<HooksError>,
    ) -> Option<T> {
        let (file, malformed) = self.note(HooksFile::read_all(setting, path, example))?;
        self.add(&lines(&malformed));
        let file = file?;
        for mistake in mistakes(&file.config).iter().filter(|mistake| !file.is_explained(mistake)) {
            self.add(&file.located(mistake));
        }
        // A hook may be missing because of a mistake in it.
        malformed.is_empty().then_some(file.config)
    }

    async fn of_database(&mut self, choice: &DatabaseChoice) {
        if !self.knows(&["database"]) {
            return;
        }
        let checked = match choice {
            DatabaseChoice::Memory => Ok(()),
            DatabaseChoice::Sqlite(path) if path.exists() => {
                store_sqlite::check(path).await.map(drop).map_err(|error| error.to_string())
            }
            DatabaseChoice::Sqlite(path) => {
                // The service creates the file.
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let missing = directory.filter(|directory| !directory.is_dir());
                missing
                    .map_or(Ok(()), |directory| Err(format!("there is no directory {}", directory.display())))
            }
            DatabaseChoice::Postgres(servers) => match PostgresStore::open_as_it_is(servers.clone()).await {
                Ok(store) => {
                    store.close();
                    Ok(())
                }
                // The service brings the schema up to date.
                Err(OpenError::Older { .. }) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        };
        if let Err(error) = checked {
            self.add(&format!("database: {error}"));
        }
    }

    async fn of_keystone(&mut self, configuration: &Configuration) {
        if self.knows(&["auth"])
            && self.knows_of("keystone", &LOGIN)
            && let Some(Some(config)) = self.note(keystone::of(configuration))
            && self.knows_details("keystone")
        {
            let _ = self.of_login("keystone", "keystone.auth_url", config.cloud).await;
        }
    }

    /// Connects to the brokers of the message bus. If any broker works, failures are only warnings.
    async fn of_message_bus(&mut self, configuration: &Configuration) {
        if !self.knows(&["message_bus"]) {
            return;
        }
        let Ok(Some(config)) = listeners::message_bus(configuration) else { return };
        let tried = server::try_brokers(&config).await;
        let works = tried.iter().any(Result::is_ok);
        for reason in tried.into_iter().filter_map(Result::err) {
            let failure = format!("message_bus.url_file: {reason}");
            if works {
                self.warnings.push(failure);
            } else {
                self.add(&failure);
            }
        }
    }

    /// Logs in. Returns whether that worked. `address` is the setting with Keystone's URL.
    async fn of_login(&mut self, section: &str, address: &str, cloud: Cloud) -> bool {
        let (url, is_user) = (cloud.identity.clone(), matches!(cloud.login, Login::Password { .. }));
        let session = match Session::new(cloud, Arc::new(RandomIds)) {
            Ok(session) => session,
            Err(error) => {
                self.add(&format!("{section}: {error}"));
                return false;
            }
        };
        let Err(error) = session.own_token().await else { return true };
        match &error.kind {
            ErrorKind::Secret(reason) => self.add(&format!("{section}.secret_file: {reason}")),
            ErrorKind::LoginRefused(_) => {
                let user = if is_user { "username" } else { "application_credential" };
                self.add(&format!("{section}.{user}: {error}"));
            }
            _ => self.add(&format!("{address}: cannot log in at {url}: {error}")),
        }
        false
    }
}
