//! The caller's identity and permissions, for the console. Not in Blazar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The caller's identity and permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionOf {
    /// Identifier of the user.
    pub user: String,
    /// Name of the user; null if unknown.
    pub user_name: Option<String>,
    /// Identifier of the project.
    pub project_id: String,
    /// Name of the project; null if unknown.
    pub project_name: Option<String>,
    /// Identifiers of the projects in which the user has a role; null if the user isn't in the service's own
    /// users file.
    pub projects: Option<Vec<String>>,
    /// Roles of the user in the project, including implied roles.
    pub roles: Vec<String>,
    /// Authentication method: `token`, `password`, or `none` if every caller is an administrator.
    pub authentication: String,
    /// End of the session: UTC, RFC 3339; null if the caller doesn't use a session.
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// Login methods of this service: `token`, `password`, or `none`.
    pub may_log_in_with: Vec<String>,
    /// Whether each policy rule allows the user in the project, by name of the rule in a policy file.
    pub rules: BTreeMap<String, bool>,
}
