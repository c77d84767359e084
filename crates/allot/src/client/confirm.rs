//! Confirmation of destructive commands. All objects that a command names are looked up before the prompt.

use clap::Args;

use super::ask::ask;
use super::failure::REFUSED;
use super::identify::Listed;
use super::{ClientError, Session, outcome, segment};
use crate::shown;

/// Maximum number of objects listed in a prompt.
const MOST_LISTED: usize = 5;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Don't ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Words for a prompt: a verb such as "Delete", and a noun such as "lease" and "leases".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub verb: &'static str,
    pub one: &'static str,
    pub several: &'static str,
}

impl Act {
    fn question(&self, described: &[&str]) -> String {
        let Self { verb, one, several } = self;
        if let [only] = described {
            return format!("{verb} {one} {only}? [y/N]");
        }
        let mut listed = described.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
        if described.len() > MOST_LISTED {
            listed = format!("{listed}, and {} more", described.len() - MOST_LISTED);
        }
        format!("{verb} {} {several}: {listed}? [y/N]", described.len())
    }
}

/// An object that a command destroys.
pub(crate) struct Found {
    /// Name as the user wrote it.
    pub name: String,
    /// Identifier for requests.
    pub id: String,
    /// Description for prompts.
    described: String,
}

impl Consent {
    /// Looks up each of `names`, asks once for confirmation and destroys the objects found. `find` returns
    /// the identifier and the description for the prompt. Scripts and pipes aren't prompted. A name that
    /// isn't found or can't be destroyed doesn't stop the command; other errors, such as an unreachable
    /// service, do.
    pub(crate) async fn carry_out(
        self,
        act: Act,
        names: &[String],
        session: &mut Session<'_>,
        mut find: impl AsyncFnMut(&str, &mut Session<'_>) -> Result<(String, String), ClientError>,
        mut destroy: impl AsyncFnMut(&Found, &mut Session<'_>) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let mut found = Vec::new();
        let mut failed = Vec::new();
        for name in names {
            match find(name, session).await {
                Ok((id, described)) => found.push(Found { name: name.clone(), id, described }),
                Err(error) if error.status() == REFUSED => failed.push((name.clone(), error)),
                Err(error) => return Err(error),
            }
        }
        let mut missing = 0;
        if !self.yes && session.may_ask && !found.is_empty() {
            missing = failed.len();
            for (_, error) in failed.drain(..) {
                session.report(error);
            }
            let described: Vec<&str> = found.iter().map(|found| found.described.as_str()).collect();
            let answer = ask(&shown::message(&act.question(&described)), &mut session.io())?;
            if !matches!(answer.to_lowercase().as_str(), "y" | "yes") {
                return Err(ClientError::WithoutResult("not confirmed; no changes were made".to_owned()));
            }
        }
        for found in found {
            match destroy(&found, session).await {
                Ok(()) => {}
                Err(error @ ClientError::Output(_)) => return Err(error),
                Err(error) => {
                    let goes_on = error.status() == REFUSED;
                    failed.push((found.name, error));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        if missing > 0 && failed.is_empty() {
            let message = format!("{missing} of {} failed", names.len());
            return Err(ClientError::WithoutResult(message));
        }
        outcome(names.len() - missing, failed)
    }

    /// Deletes named entries of a list. `done` returns the message to print about a deleted entry, given its
    /// name.
    pub(crate) async fn delete(
        &self,
        act: Act,
        listed: &Listed,
        names: &[String],
        session: &mut Session<'_>,
        done: impl Fn(&str) -> String,
    ) -> Result<(), ClientError> {
        self.carry_out(
            act,
            names,
            session,
            async |name, session: &mut Session<'_>| listed.find_described(name, session).await,
            async |found: &Found, session: &mut Session<'_>| {
                session.connection.delete(&format!("{}/{}", listed.path, segment(&found.id))).await?;
                session.done(&done(&found.name))
            },
        )
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_lists_what_would_be_destroyed() {
        let act = Act { verb: "Delete", one: "lease", several: "leases" };
        assert_eq!(act.question(&["web (4c3e1396)"]), "Delete lease web (4c3e1396)? [y/N]");
        assert_eq!(act.question(&["a", "b"]), "Delete 2 leases: a, b? [y/N]");
        let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
        assert_eq!(act.question(&eight), "Delete 8 leases: a, b, c, d, e, and 3 more? [y/N]");
    }
}
