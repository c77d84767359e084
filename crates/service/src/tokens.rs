//! Keys that tokens are signed with, revocations, and the audit log of what changed nothing: the store keeps them, the
//! server knows what they mean.

use store::{Commit, Revocation, TokenKey, TokenState};

use crate::service::Service;
use crate::types::{Caller, ServiceError};
use crate::writing::{audit, decide_again, overtaken};

impl Service {
    /// Enters into the audit log something that changed nothing.
    pub async fn note_in_audit(
        &self,
        caller: &Caller,
        action: &str,
        object: &str,
    ) -> Result<(), ServiceError> {
        let writer = self.writer().await?;
        let now = self.now();
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, action, &object));
        writer.commit(commit).await.map_err(|error| decide_again(error).err().unwrap_or_else(overtaken))
    }

    /// All keys and revocations.
    pub async fn tokens(&self) -> Result<TokenState, ServiceError> {
        Ok(self.parts.store.tokens().await?)
    }

    /// Adds a key, unless there is one of its number, and forgets those with numbers below `oldest`.
    pub async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), ServiceError> {
        Ok(self.parts.store.add_token_key(key, oldest).await?)
    }

    /// Revokes a token, or all of a user.
    pub async fn revoke_token(&self, revocation: &Revocation) -> Result<(), ServiceError> {
        Ok(self.parts.store.revoke_token(revocation).await?)
    }
}
