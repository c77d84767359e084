//! HTTP basic authentication: user name and password with every request.

use std::sync::Arc;

use async_trait::async_trait;

use super::credentials::Credentials;
use super::identity::{Authenticator, Denial, Identity};
use super::passwords::Passwords;

/// Authenticates users of the users' file by password.
#[derive(Debug)]
pub(crate) struct Basic(Arc<Passwords>);

impl Basic {
    pub fn new(users: Arc<Passwords>) -> Self {
        Self(users)
    }
}

#[async_trait]
impl Authenticator for Basic {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let user = self.0.check_request(credentials).await?;
        user.identity(credentials.project.as_deref()).ok_or(Denial::Wrong("no role in the project"))
    }
}
