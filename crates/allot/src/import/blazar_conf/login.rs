//! Keystone's address, and the service's users.

use leases::text::quoted;

use super::file::{File, LOGIN};
use super::translation::{Translation, note, origin, wrong};
use crate::import::options;

const CREDENTIAL: &str = "keystone.application_credential";

impl Translation {
    /// Keystone's address and the service's users.
    pub(super) fn identity(&mut self, file: &File) {
        let part =
            |name: &str, otherwise: &str| file.get("DEFAULT", name).unwrap_or_else(|| otherwise.to_owned());
        let host = part("os_auth_host", "127.0.0.1");
        let host = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host };
        let prefix = part("os_auth_prefix", "");
        let prefix = Some(prefix.trim_matches('/')).filter(|prefix| !prefix.is_empty());
        let prefix = prefix.map(|prefix| format!("/{prefix}")).unwrap_or_default();
        let (scheme, port) = (part("os_auth_protocol", "http"), part("os_auth_port", "5000"));
        self.text(
            "openstack.auth_url",
            format!("{scheme}://{host}:{port}{prefix}/v3"),
            "[DEFAULT]os_auth_...",
        );
        for (key, name, standard) in [
            ("openstack.username", "os_admin_username", "admin"),
            ("openstack.project", "os_admin_project_name", "admin"),
            ("openstack.secret_file", "os_admin_password", options::OF_NOVA),
        ] {
            if !self.settings.contains_key(key) {
                self.text(key, standard, format!("[DEFAULT]{name}, by Blazar's default"));
            }
        }
        // If tokens aren't validated as a separate user, it's the same user at the same Keystone.
        for (key, other) in
            [("keystone.auth_url", "openstack.auth_url"), ("keystone.ca_file", "openstack.ca_file")]
        {
            self.copy(key, other);
        }
        self.credential(file);
        let logs_in = ["keystone.username", "keystone.application_credential"];
        if !logs_in.iter().any(|key| self.settings.contains_key(key)) {
            for (key, other) in [
                ("keystone.username", "openstack.username"),
                ("keystone.secret_file", "openstack.secret_file"),
                ("keystone.project", "openstack.project"),
                ("keystone.user_domain", "openstack.user_domain"),
                ("keystone.project_domain", "openstack.project_domain"),
            ] {
                self.settings.remove(key);
                self.copy(key, other);
            }
        } else if !self.settings.contains_key("keystone.secret_file") {
            self.text(
                "keystone.secret_file",
                options::OF_KEYSTONE,
                "the secret is missing in [keystone_authtoken]",
            );
        }
        if file.get(LOGIN, "token_cache_time").as_deref() == Some("-1")
            && let Some(given) = file.given(LOGIN, "token_cache_time")
        {
            self.text("keystone.cache_time", "0s", origin(given));
        }
    }

    /// Decides whether tokens are validated as a user or with an application credential.
    fn credential(&mut self, file: &File) {
        let kind = file.get(LOGIN, "auth_type").unwrap_or_default();
        let id = file.given(LOGIN, "application_credential_id");
        let is_credential = match kind.as_str() {
            "v3applicationcredential" => true,
            "" => id.is_some() && file.given(LOGIN, "username").is_none(),
            "password" | "v3password" => false,
            _ => {
                let reason = format!(
                    "{} isn't supported: the service logs in with a password or an application credential",
                    quoted(&kind)
                );
                self.unusual.extend(file.given(LOGIN, "auth_type").map(|given| wrong(given, reason)));
                false
            }
        };
        if !is_credential {
            self.settings.remove(CREDENTIAL);
            let others = ["application_credential_id", "application_credential_secret"];
            let others = others.into_iter().filter_map(|name| file.given(LOGIN, name));
            let why = "not taken over: a user name and a password are used to log in";
            self.notes.extend(others.map(|given| note(given, why)));
            return;
        }
        if !self.settings.contains_key(CREDENTIAL) {
            let named = file.given(LOGIN, "application_credential_name");
            let reason = "no identifier of the application credential is imported: set keystone.application_credential";
            self.unusual.extend(named.or(file.given(LOGIN, "auth_type")).map(|given| wrong(given, reason)));
        }
        // It stands for a user and a project.
        for (key, name) in [
            ("keystone.username", "username"),
            ("keystone.project", "project_name"),
            ("keystone.user_domain", "user_domain_name"),
            ("keystone.project_domain", "project_domain_name"),
        ] {
            if self.settings.remove(key).is_some() {
                let why = "not taken over: the application credential has its user and project";
                self.notes.extend(file.given(LOGIN, name).map(|given| note(given, why)));
            }
        }
        self.settings.remove("keystone.secret_file");
        if let Some(secret) = file.given(LOGIN, "application_credential_secret") {
            let origin = format!("put {} into this file", origin(secret));
            self.text("keystone.secret_file", options::OF_KEYSTONE, origin);
        }
    }

    /// Sets `key` to the value of `other`, unless `key` is set.
    fn copy(&mut self, key: &'static str, other: &'static str) {
        if let Some(setting) = self.settings.get(other).filter(|_| !self.settings.contains_key(key)) {
            let setting = setting.clone();
            self.settings.insert(key, setting);
        }
    }
}
