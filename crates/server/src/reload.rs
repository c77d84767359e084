//! Reading the operator's files again.

use std::sync::{Arc, PoisonError};

use crate::access::{Access, Difference, Reloaded};
use crate::app::App;
use crate::certificates::{Certificates, tls_config};
use crate::config_error::ConfigError;

impl App {
    /// Reads users, tokens, rules and certificates again. If any of it cannot be used, all stays as it was. Reads
    /// files, so it is for a thread that may wait.
    ///
    /// Requests that have begun go by what was before, connections that are open go on.
    pub fn reload(&self) -> Result<Reloaded, ConfigError> {
        let inner = &self.inner;
        // Of two reloads, the later one reads later.
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
        // From here on nothing can fail.
        let certificate = tls.is_some_and(|(serving, new)| Certificates::replace(serving, new));
        *inner.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(Reloaded { users, tokens, rules, certificate })
    }
}
