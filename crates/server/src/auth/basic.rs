//! Names and passwords with every request: HTTP basic.

use std::sync::Arc;

use async_trait::async_trait;

use super::passwords::Passwords;
use super::{Authenticator, Credentials, Identity};

/// Names and passwords.
#[derive(Debug)]
pub(crate) struct Basic(Arc<Passwords>);

impl Basic {
    /// Of these users.
    pub fn new(users: Arc<Passwords>) -> Self {
        Self(users)
    }
}

#[async_trait]
impl Authenticator for Basic {
    async fn authenticate(&self, credentials: &Credentials) -> Option<Identity> {
        let (name, password) = credentials.password.as_ref()?;
        let user = self.0.check(Some(name), None, password).await?;
        user.identity(credentials.project.as_deref())
    }
}
