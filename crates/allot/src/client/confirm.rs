//! Confirmation of commands that destroy something.

use clap::Args;

use super::ask::ask;
use super::{ClientError, Session};
use crate::shown;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Don't ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl Consent {
    /// Asks whether to `act`, as "Delete lease web", with each of `names`. Scripts and pipes aren't asked.
    pub(crate) fn require(
        self,
        act: &str,
        names: &[String],
        session: &mut Session<'_>,
    ) -> Result<(), ClientError> {
        if self.yes || !session.may_ask {
            return Ok(());
        }
        let question = format!("{act} {}? [y/N]", names.join(", "));
        let answer = ask(&shown::message(&question), &mut session.io())?;
        if matches!(answer.to_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(ClientError::WithoutResult("not confirmed; no changes were made".to_owned()))
    }
}
