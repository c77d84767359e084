//! The operator's settings, and names for identifiers, for administrators. Not in Blazar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A setting of the service, as of its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Setting)]
pub struct SettingOf {
    /// Key in the configuration file, including the section: `log.format`.
    pub key: String,
    /// Heading in the configuration reference.
    pub heading: String,
    /// Value, as in the configuration file; null if it isn't set. URLs are reduced to scheme, host and port,
    /// since the rest can contain secrets.
    pub value: Option<String>,
    /// Default value; null if there isn't one.
    pub default: Option<String>,
    /// Source of the value: `flag`, `environment`, `file` or `default`.
    pub source: String,
    /// Purpose of the setting.
    pub description: String,
}

/// Names of users and projects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Names)]
pub struct KnownNames {
    /// Names of users, by identifier.
    pub users: BTreeMap<String, String>,
    /// Names of projects, by identifier.
    pub projects: BTreeMap<String, String>,
}
