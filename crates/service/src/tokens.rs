//! Keys that tokens are signed with, and revocations: the store keeps them, the server knows what they mean.

use store::{Revocation, TokenKey, TokenState};

use crate::service::Service;
use crate::types::ServiceError;

/// Keys that tokens are signed with, and revocations.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// All keys and revocations.
    pub async fn all(self) -> Result<TokenState, ServiceError> {
        Ok(self.service.parts.store.tokens().await?)
    }

    /// Adds a key, unless there is one of its number, and forgets those with numbers below `oldest`.
    pub async fn add_key(self, key: &TokenKey, oldest: u32) -> Result<(), ServiceError> {
        Ok(self.service.parts.store.add_token_key(key, oldest).await?)
    }

    /// Revokes a token, or all of a user.
    pub async fn revoke(self, revocation: &Revocation) -> Result<(), ServiceError> {
        Ok(self.service.parts.store.revoke_token(revocation).await?)
    }
}
