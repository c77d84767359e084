//! The caller's identity and permissions, for the console. Not in Blazar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who sends a request, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionOf {
    /// The user's identifier.
    pub user: String,
    /// What people call the user; null if that is not known.
    pub user_name: Option<String>,
    /// The project.
    pub project_id: String,
    /// What people call the project; null if that is not known.
    pub project_name: Option<String>,
    /// Identifiers of the projects that the user has a role in; null unless the service's own file of users has them.
    pub projects: Option<Vec<String>>,
    /// The user's roles in the project, with those that they imply.
    pub roles: Vec<String>,
    /// How the user was identified: `token`, `password`, or `none` where everybody is the administrator.
    pub authentication: String,
    /// When the session ends: UTC, RFC 3339; null where there is none.
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// With what one can log in here: `token`, `password`, or `none`.
    pub may_log_in_with: Vec<String>,
    /// By the names of rules, as a policy file has them, what the user may do in the project.
    pub rules: BTreeMap<String, bool>,
}
