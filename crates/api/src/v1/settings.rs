//! The operator's settings, and names for identifiers, for administrators. Not in Blazar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A setting that the service was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Setting)]
pub struct SettingOf {
    /// Its key in the configuration file, with the section's: `log.format`.
    pub key: String,
    /// The heading that it stands under in the documentation.
    pub heading: String,
    /// As it would be written in the file; null if there is none. Of addresses only the scheme, the host and the port,
    /// since the rest may be a secret.
    pub value: Option<String>,
    /// What it is where nobody says anything else; null if that is nothing.
    pub default: Option<String>,
    /// Where the value was found: `flag`, `environment`, `file` or `default`.
    pub source: String,
    /// What it is for.
    pub description: String,
}

/// Names beside identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Names)]
pub struct KnownNames {
    /// Names of users, by identifier.
    pub users: BTreeMap<String, String>,
    /// Names of projects, by identifier.
    pub projects: BTreeMap<String, String>,
}
