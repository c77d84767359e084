//! Signing keys of tokens, and revocations. The store keeps them, and the server interprets them.

use store::{Revocation, TokenKey, TokenState};

use crate::client::Client;
use crate::cost;
use crate::places::Kind;
use crate::service::Service;
use crate::types::ServiceError;

/// Signing keys of tokens, and revocations.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    pub async fn all(self) -> Result<TokenState, ServiceError> {
        Ok(self.service.parts.store.tokens().await?)
    }

    /// Adds a key unless its number exists, and forgets keys with numbers below `oldest`.
    pub async fn add_key(self, key: &TokenKey, oldest: u32) -> Result<(), ServiceError> {
        Ok(self.service.parts.store.add_token_key(key, oldest).await?)
    }

    /// Like [`Self::all`], on behalf of a client, which waits for its turn and is charged.
    pub async fn all_for_client(self) -> Result<TokenState, ServiceError> {
        let read = async { Ok(vec![self.service.parts.store.tokens().await?]) };
        Ok(self.service.store_read(read).await?.pop().unwrap_or_default())
    }

    /// Revokes one token or all tokens of a user. The client waits for its turn to write and is charged. The
    /// token is revoked even if the client disconnects.
    pub async fn revoke(self, revocation: &Revocation) -> Result<(), ServiceError> {
        if let Some(client) = Client::current() {
            client.commits();
        }
        let _place = self.service.place(Kind::Write).await?;
        let meter = self.service.meter();
        meter.count(cost::ROW_WRITTEN);
        Ok(self.service.parts.store.revoke_token(revocation).await?)
    }
}
