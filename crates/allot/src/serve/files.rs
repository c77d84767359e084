//! The limit on open files, and files with secrets that other users can read.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fleet::hooks::{HookConfig, HooksConfig, Moment, PowerConfig};
use rustix::process::{Resource, getrlimit};
use serde::de::DeserializeOwned;

use super::hooks_file;
use crate::config::{AuthChoice, Configuration, FleetChoice, Values};

/// Maximum number of files that the database, hooks and the log need. If the process can only open few files,
/// these get five eighths.
const OTHERS: usize = 128;

/// Data that could be read or changed on the network between clients and the service.
#[derive(Debug, PartialEq, Eq)]
enum Exposure<'a> {
    /// Keystone is reached without encryption.
    Keystone(&'a str),
    /// Links use the host name from each request, unchecked.
    Links,
    /// Clients reach the service without encryption.
    Connections,
}

fn exposures(configuration: &Configuration) -> Vec<Exposure<'_>> {
    let keystone = configuration.keystone.login.auth_url.as_deref().filter(|url| in_the_clear(url));
    let local = configuration.server.listen.ip().to_canonical().is_loopback();
    let links = !local && configuration.server.public_url.is_none();
    let secrets = configuration.auth != [AuthChoice::None];
    // With one of certificate and key, the service doesn't start.
    let encrypted = configuration.tls.certificate.is_some() || configuration.tls.key.is_some();
    let connections = !local && secrets && !encrypted;
    let found = [
        keystone.map(Exposure::Keystone),
        links.then_some(Exposure::Links),
        connections.then_some(Exposure::Connections),
    ];
    found.into_iter().flatten().collect()
}

impl Exposure<'_> {
    /// Settings and sections that it depends on.
    fn settings(&self) -> &'static [&'static str] {
        match self {
            Self::Keystone(_) => &["keystone.auth_url"],
            Self::Links => &["listen", "public_url"],
            Self::Connections => &["listen", "auth", "tls"],
        }
    }

    /// Key of the setting that prevents the exposure, and the reason to do so.
    fn reason(&self) -> (&'static str, &'static str) {
        match self {
            Self::Keystone(_) => (
                "keystone.auth_url",
                "tokens of clients and the secret of the service's user can be read on their way; use https",
            ),
            Self::Links => {
                ("public_url", "links and catalogs name the host that a request names; set public_url")
            }
            Self::Connections => (
                "listen",
                "passwords and tokens can be read on their way; set tls.certificate and tls.key, or listen on \
                 a loopback address behind a proxy",
            ),
        }
    }
}

/// Warnings of a start: exposures and files with secrets. Each warning begins with a setting or a file.
/// `knows` says whether the values of settings are known, or are left unknown by a mistake, which is reported instead.
pub(super) fn warnings(
    configuration: &Configuration,
    values: &Values,
    knows: impl Fn(&[&str]) -> bool,
) -> Vec<String> {
    let exposures = exposures(configuration).into_iter().filter(|exposure| knows(exposure.settings()));
    let exposures = exposures.map(|exposure| {
        let (setting, reason) = exposure.reason();
        format!("{setting}: {reason}")
    });
    let files = open_secrets(configuration, values).into_iter().map(|(path, mode)| {
        let path = path.display();
        format!("{path}: secrets open to others, mode {mode:04o}; `chmod o-rwx {path}` keeps them private")
    });
    exposures.chain(files).collect()
}

/// Logs a warning about each exposure.
pub(super) fn warn_of_exposure(configuration: &Configuration) {
    let listen = configuration.server.listen;
    for exposure in exposures(configuration) {
        let (_, reason) = exposure.reason();
        match exposure {
            Exposure::Keystone(auth_url) => tracing::warn!(auth_url, reason, "Keystone not encrypted"),
            Exposure::Links => tracing::warn!(%listen, reason, "public URL not set"),
            Exposure::Connections => tracing::warn!(%listen, reason, "connections not encrypted"),
        }
    }
}

/// Whether requests to this URL leave the machine without encryption.
fn in_the_clear(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    url.scheme() == "http" && host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
}

/// Logs a warning about each file with secrets that users other than the owner and the group can read or
/// change.
pub(super) fn warn_of_modes(configuration: &Configuration, values: &Values) {
    for (path, mode) in open_secrets(configuration, values) {
        let (path, mode) = (path.display(), format!("{mode:04o}"));
        tracing::warn!(%path, mode, "secrets open to others");
    }
}

/// The file of hooks, if there is one.
pub(super) fn of_hooks(configuration: &Configuration) -> Option<&Path> {
    match &configuration.fleet {
        FleetChoice::Hooks(path) => Some(path.as_ref()),
        FleetChoice::OpenStack => configuration.openstack.power_file.as_deref(),
        FleetChoice::Simulated => None,
    }
}

/// Files with secrets that other users can read or change, with their modes.
fn open_secrets(configuration: &Configuration, values: &Values) -> Vec<(PathBuf, u32)> {
    let auth = configuration.auth.iter().filter_map(|choice| match choice {
        AuthChoice::None | AuthChoice::Keystone => None,
        AuthChoice::Tokens(path) | AuthChoice::Basic(path) | AuthChoice::LocalKeystone(path) => Some(path),
    });
    let power = configuration.openstack.power_file.as_deref();
    let (hooks, headers) = match &configuration.fleet {
        FleetChoice::Hooks(path) => secrets_of_hooks(path.as_ref(), |config: HooksConfig| config.hooks),
        FleetChoice::OpenStack => power.map_or_else(Default::default, |path| {
            secrets_of_hooks(path, |config: PowerConfig| config.by_moment())
        }),
        FleetChoice::Simulated => (None, Vec::new()),
    };
    let others = [
        configuration.server.auth.token_key_file.as_ref(),
        configuration.keystone.login.secret_file.as_ref(),
        configuration.openstack.login.secret_file.as_ref(),
        configuration.tls.key.as_ref(),
        configuration.webhook_secret_file.as_ref(),
        configuration.message_bus_url_file.as_ref(),
        configuration.external_service_token_file.as_ref(),
    ];
    let paths = auth.chain(others.into_iter().flatten()).map(AsRef::as_ref);
    let hooks = hooks.iter().chain(&headers).map(AsRef::as_ref);
    let mut paths: Vec<&Path> = paths.chain(hooks).chain(values.file_with_password()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().filter_map(|path| Some((path.to_owned(), open_to_others(path)?))).collect()
}

/// The path of a file of hooks if it must be protected: it contains a secret, or commands for the service to run. Also
/// returns the files of secrets that it names. Malformed values are ignored here, and reported when the fleet is opened.
fn secrets_of_hooks<T: DeserializeOwned>(
    path: &Path,
    hooks: impl Fn(T) -> BTreeMap<Moment, HookConfig>,
) -> (Option<PathBuf>, Vec<PathBuf>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (config, _) = hooks_file::parse::<T>(&text);
    let hooks = config.map(|(config, _)| hooks(config)).unwrap_or_default();
    let hooks = hooks.values();
    let headers = hooks.clone().filter_map(|hook| Some(hook.secret_header.as_ref()?.file.clone())).collect();
    let urls = hooks.filter_map(|hook| hook.webhook.as_deref()?.parse::<reqwest::Url>().ok());
    let mut secret = urls.filter(|url| url.password().is_some() || url.query().is_some());
    let changed_by_others = open_to_others(path).is_some_and(|mode| mode & 0o002 != 0);
    ((secret.next().is_some() || changed_by_others).then(|| path.to_owned()), headers)
}

/// Mode of a file that other users can read or change. `None` if they can't.
fn open_to_others(path: &Path) -> Option<u32> {
    let mode = path.metadata().ok()?.mode() & 0o7777;
    (mode & 0o006 != 0).then_some(mode)
}

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connections {
    /// From all addresses.
    pub most: usize,
    pub per_address: usize,
}

impl Connections {
    /// Lowers the limits to the number of files that the process can open. With more connections than that,
    /// no client could connect any more, no matter which one holds them.
    pub fn that_fit(self) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        let fitting =
            self.within(files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX)));
        if fitting != self {
            let Self { most, per_address } = fitting;
            tracing::info!(most, per_address, "connection limit lowered, few open files allowed");
        }
        fitting
    }

    fn within(self, files: usize) -> Self {
        let room = files.saturating_sub(OTHERS.min(files / 8 * 5)).max(2);
        if self.most <= room {
            return self;
        }
        Self { most: room, per_address: self.per_address.min(room / 2) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::merge;

    #[test]
    fn only_what_leaves_the_machine_in_the_clear_is_warned_of() {
        for clear in ["http://keystone:5000/v3", "http://192.0.2.1", "http://[2001:db8::1]:5000"] {
            assert!(in_the_clear(clear), "{clear}");
        }
        for other in [
            "https://keystone:5000",
            "http://127.0.0.1:5000/v3",
            "http://[::1]:5000",
            "http://localhost/v3",
            "",
        ] {
            assert!(!in_the_clear(other), "{other}");
        }
    }

    #[test]
    fn a_service_that_others_reach_says_what_they_could_read_or_change() {
        let exposed = |file: &str| {
            let values = merge(&BTreeMap::new(), &|_| None, Path::new("allot.toml"), file);
            let configuration = Configuration::of(&values).expect("a configuration");
            exposures(&configuration).iter().map(|exposure| format!("{exposure:?}")).collect::<Vec<_>>()
        };
        let beyond = "listen = \"192.0.2.1:1234\"\nauth = \"tokens:t\"\n";
        let named = format!("{beyond}public_url = \"https://allot.example\"\n");
        let encrypted = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
        assert_eq!(exposed(beyond), ["Links", "Connections"]);
        assert_eq!(exposed(&beyond.replace("192.0.2.1", "[::]")), ["Links", "Connections"]);
        assert_eq!(exposed(&named), ["Connections"]);
        assert!(exposed(&format!("{named}{encrypted}")).is_empty());
        for local in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(exposed(&beyond.replace("192.0.2.1", local)).is_empty(), "{local}");
        }
    }

    #[test]
    fn a_file_of_hooks_is_secret_if_there_is_a_secret_in_it_and_so_are_the_files_that_it_names() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("hooks.toml");
        let secrets = |hooks: &str, mode: u32| {
            let text = format!("state_file = \"s\"\nhosts = []\n[hooks]\n{hooks}\n");
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("ours");
            let (file, headers) = secrets_of_hooks(&path, |config: HooksConfig| config.hooks);
            (file.is_some(), headers)
        };
        let header = "on_hold = { webhook = \"https://h/\", secret_header = { name = \"A\", file = \"f\" } }";
        assert_eq!(secrets("on_hold = { exec = [\"true\"] }", 0o644), (false, vec![]));
        assert_eq!(secrets(header, 0o644), (false, vec!["f".into()]));
        assert_eq!(secrets("on_hold = { webhook = \"https://u:p@h/\" }", 0o644), (true, vec![]));
        assert_eq!(secrets("on_hold = { webhook = \"https://h/?token=t\" }", 0o644), (true, vec![]));
        assert_eq!(
            secrets("on_hold = { exec = [\"true\"] }", 0o646),
            (true, vec![]),
            "anybody may change it"
        );
        let misspelled = "on_hold = { webhook = \"https://u:p@h/\", timeout = 1 }";
        assert_eq!(secrets(misspelled, 0o644), (true, vec![]), "the rest is known");
        for malformed in ["on_hold = { exce = [\"true\"] }", "what is this"] {
            assert_eq!(secrets(malformed, 0o644), (false, vec![]), "{malformed}");
            assert_eq!(secrets(malformed, 0o646), (true, vec![]), "{malformed}");
        }
    }

    #[test]
    fn there_are_no_more_connections_than_files_and_one_address_has_half_of_them() {
        let wanted = Connections { most: 4096, per_address: 1024 };
        assert_eq!(wanted.within(524_288), wanted);
        assert_eq!(wanted.within(1024), Connections { most: 896, per_address: 448 });
        assert_eq!(wanted.within(64), Connections { most: 24, per_address: 12 });
        assert_eq!(wanted.within(0), Connections { most: 2, per_address: 1 }, "one address is not all");
        let few = Connections { most: 10, per_address: 10 };
        assert_eq!(few.within(1024), few);
    }
}
