//! Settings with a choice of alternatives, and the words for each.

use std::path::PathBuf;

use openstack::Interface;
use store_postgres::{AddressError, Servers};

use super::value::{Value, list};

/// Reads and shows kinds that have a few values, each with a name.
macro_rules! names {
    ($kind:ident: $($name:literal = $value:ident),+; $wrong:literal) => {
        impl Value for $kind {
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $( $name => Ok(Self::$value), )+
                    _ => Err($wrong.to_owned()),
                }
            }

            fn show(&self) -> String {
                let name = match self { $( Self::$value => $name, )+ };
                name.to_owned()
            }
        }
    };
}

/// Storage of the service's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseChoice {
    /// An `SQLite` file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, on one server or several.
    Postgres(Servers),
    /// Memory only: all data is lost when the service stops.
    Memory,
}

impl Value for DatabaseChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite://") {
            _ if text == "memory" => Ok(Self::Memory),
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ if text.starts_with("postgres") => {
                text.parse().map(Self::Postgres).map_err(|error: AddressError| error.to_string())
            }
            _ => Err("write sqlite://FILE, postgres://USER@HOST/DATABASE, or memory".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(servers) => servers.to_string(),
            Self::Memory => "memory".to_owned(),
        }
    }
}

/// Driver of the machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FleetChoice {
    Simulated,
    /// Programs and web hooks, described in this file.
    Hooks(PathBuf),
    /// The compute hosts of a cloud.
    OpenStack,
}

impl Value for FleetChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("hooks:") {
            _ if text == "simulated" => Ok(Self::Simulated),
            _ if text == "openstack" => Ok(Self::OpenStack),
            Some(path) if !path.is_empty() => Ok(Self::Hooks(PathBuf::from(path))),
            _ => Err("write simulated, openstack, or hooks:FILE".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Simulated => "simulated".to_owned(),
            Self::Hooks(path) => format!("hooks:{}", path.display()),
            Self::OpenStack => "openstack".to_owned(),
        }
    }
}

/// Mechanism that keeps other projects off the hosts of a lease in a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceChoice {
    /// `BlazarFilter` of blazar-nova.
    BlazarFilter,
    /// The filter in `contrib/nova`.
    AllotFilter,
    /// Nova's isolation of tenants.
    Tenant,
    /// Nova's isolated aggregates.
    Traits,
}

names!(
    FenceChoice: "blazar-filter" = BlazarFilter, "allot-filter" = AllotFilter, "tenant" = Tenant, "traits" = Traits;
    "write blazar-filter, allot-filter, tenant or traits"
);

// Interface of a cloud's endpoints.
names!(Interface: "public" = Public, "internal" = Internal, "admin" = Admin; "write public, internal or admin");

/// Duration of operations on simulated machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingChoice {
    /// As long as on real machines.
    Lifelike,
    /// No time at all, for measurements of the service alone.
    Immediate,
}

names!(TimingChoice: "lifelike" = Lifelike, "immediate" = Immediate; "write lifelike or immediate");

/// Authentication method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthChoice {
    /// No authentication: every client is an administrator.
    None,
    /// Tokens from this file.
    Tokens(PathBuf),
    /// User names and passwords from this file, sent with each request.
    Basic(PathBuf),
    /// User names and passwords from this file, which the service exchanges for tokens of its own.
    LocalKeystone(PathBuf),
    /// Tokens of a cloud's Keystone.
    Keystone,
}

impl Value for Vec<AuthChoice> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|method| auth(method.trim())).collect()
    }

    fn show(&self) -> String {
        list(self.iter().map(|method| match method {
            AuthChoice::None => "none".to_owned(),
            AuthChoice::Keystone => "keystone".to_owned(),
            AuthChoice::Tokens(path) => format!("tokens:{}", path.display()),
            AuthChoice::Basic(path) => format!("basic:{}", path.display()),
            AuthChoice::LocalKeystone(path) => format!("local-keystone:{}", path.display()),
        }))
    }
}

fn auth(text: &str) -> Result<AuthChoice, String> {
    let wrong = || "write none, or one or more of keystone, tokens:FILE, basic:FILE and local-keystone:FILE, separated by commas";
    match text {
        "none" => return Ok(AuthChoice::None),
        "keystone" => return Ok(AuthChoice::Keystone),
        _ => {}
    }
    let (method, path) = text.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or_else(wrong)?;
    match method {
        "tokens" => Ok(AuthChoice::Tokens(path.into())),
        "basic" => Ok(AuthChoice::Basic(path.into())),
        "local-keystone" => Ok(AuthChoice::LocalKeystone(path.into())),
        // Name of `local-keystone` until November 2026.
        "keystone" => Err(format!(
            "keystone is the Keystone of a cloud, and takes no file; for users in a file write local-keystone:{path}"
        )),
        _ => Err(wrong().to_owned()),
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// JSON for programs, one object per line.
    Json,
}

names!(LogFormat: "text" = Text, "json" = Json; "write text or json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_file_a_server_or_memory() {
        assert_eq!(DatabaseChoice::parse("memory"), Ok(DatabaseChoice::Memory));
        assert_eq!(DatabaseChoice::parse("sqlite://a"), Ok(DatabaseChoice::Sqlite("a".into())));
        let servers = DatabaseChoice::parse("postgres://u:secret@h1,h2/db").expect("an address");
        assert!(!format!("{servers:?}").contains("secret"));
        for wrong in ["", "sqlite://", "mysql://h/db", "postgres://h", "postgres://u:secret@h:x/db"] {
            let reason = DatabaseChoice::parse(wrong).expect_err(wrong);
            assert!(!reason.contains("secret"), "{reason}");
        }
    }
}
