//! Reloads the operator's files.

use std::sync::{Arc, PoisonError};

use crate::access::{Access, Difference, Reloaded};
use crate::app::App;
use crate::certificates::{Certificates, tls_config};
use crate::config_error::ConfigError;

impl App {
    /// Reloads users, tokens, policy rules and certificates. If any of them is invalid, nothing changes.
    /// Blocks while it reads files.
    ///
    /// Requests that have started use the previous state, and open connections stay open.
    pub fn reload(&self) -> Result<Reloaded, ConfigError> {
        let inner = &self.inner;
        // Serializes reloads, so the last one to start has the newest files.
        let _turn = inner.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Access::read(&inner.config, &inner.permanent)?;
        let tls = match (inner.certificates.get(), &inner.config.tls) {
            (Some(serving), Some(files)) => Some((serving, tls_config(files)?)),
            _ => None,
        };
        let old = self.access();
        let rules = Difference::between(&old.policy.rules(), &new.policy.rules());
        let (then, now) = (&old.authentication, &new.authentication);
        let users = Difference::between(&then.users(), &now.users());
        let tokens = Difference::between(&then.tokens(), &now.tokens());
        new.warn();
        // No step below can fail.
        let certificate = tls.is_some_and(|(serving, new)| Certificates::replace(serving, new));
        *inner.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(Reloaded { users, tokens, rules, certificate })
    }
}
