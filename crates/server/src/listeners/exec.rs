//! Runs a program for each notification, without a shell. It gets the notification as JSON on its standard
//! input.
//!
//! Runs don't overlap, so notifications arrive in order. A run that takes too long is killed together with
//! all processes that it has started.

use std::time::Duration;

use ambient::{ChildCommand, inherited_environment, last_line, run_program};
use async_trait::async_trait;
use store::Notification;

use super::listener::{Listener, TellError};
use crate::config::{ExecConfig, LEAST_PAUSE, LONGEST_ANSWER};

pub(super) const NAME: &str = "exec";

/// Exit status of a program that rejects the notification: `EX_DATAERR` of `sysexits.h`.
const REJECTED: i32 = 65;

/// A listener that runs a program.
#[derive(Debug)]
pub(crate) struct Exec {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
    first_pause: Duration,
}

impl Exec {
    pub fn new(config: &ExecConfig) -> Self {
        Self {
            program: config.program.clone(),
            arguments: config.arguments.clone(),
            timeout: config.timeout.min(LONGEST_ANSWER),
            first_pause: config.first_pause.max(LEAST_PAUSE),
        }
    }

    fn failure(&self, reason: String, rejected: bool) -> TellError {
        TellError::Program { program: self.program.clone(), reason, rejected }
    }
}

#[async_trait]
impl Listener for Exec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn first_pause(&self) -> Duration {
        self.first_pause
    }

    async fn tell(&self, notification: &Notification) -> Result<(), TellError> {
        let input = serde_json::to_vec(&api::v1::Notification::from(notification))?;
        let mut command = ChildCommand::new(&self.program, None);
        command.command.args(&self.arguments).env_clear().envs(inherited_environment());
        let Ok(ended) = tokio::time::timeout(self.timeout, run_program(command, &input)).await else {
            return Err(self.failure(format!("not done within {:?}", self.timeout), false));
        };
        let output = ended.map_err(|error| self.failure(error.to_string(), false))?;
        if output.status.success() {
            if let Some(line) = last_line(&output.stdout) {
                tracing::info!(
                    listener = NAME,
                    number = notification.number,
                    output = line,
                    "listener output"
                );
            }
            return Ok(());
        }
        let line = output.last_line().unwrap_or_default();
        let rejected = output.status.code() == Some(REJECTED);
        Err(self.failure(format!("{}: {line}", output.status), rejected))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use leases::project::ProjectId;
    use store::NewNotification;

    use super::*;

    async fn tell(config: ExecConfig) -> Result<(), TellError> {
        let content = NewNotification {
            lease: None,
            project: ProjectId("p".to_owned()),
            event_type: "lease.create".to_owned(),
            payload: r#"{"name": "; exit 4"}"#.to_owned(),
        };
        Exec::new(&config).tell(&Notification { number: 7, at: Timestamp::UNIX_EPOCH, content }).await
    }

    fn shell(script: &str) -> ExecConfig {
        ExecConfig::new("sh".to_owned(), vec!["-c".to_owned(), script.to_owned()])
    }

    #[tokio::test]
    async fn a_program_gets_the_notification_and_nothing_else_and_says_by_its_status_whether_it_took_it() {
        let wanted =
            r#"[ "$(cat)" = '{"number":7,"timestamp":"1970-01-01T00:00:00Z","event_type":"lease.create","#;
        let rest = r#""lease_id":null,"project_id":"p","payload":{"name":"; exit 4"}}' ] || exit 3"#;
        // Cargo sets this variable for tests.
        let alone = "[ -z \"$CARGO_PKG_NAME\" ] || exit 5";
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let told = tell(shell(&format!("{wanted}{rest}; {alone}"))).await;
        assert!(told.is_ok(), "{told:?}");
        for (script, reason, rejected) in [
            ("echo a; echo no server >&2; exit 75", "sh: exit status: 75: no server", false),
            ("echo unknown event; exit 65", "sh: exit status: 65: unknown event", true),
            ("kill -9 $$", "sh: signal: 9", false),
        ] {
            let error = tell(shell(script)).await.expect_err(script);
            assert!(error.to_string().starts_with(reason), "{error}");
            assert_eq!(error.is_rejection(), rejected, "{script}");
        }
        let missing = ExecConfig::new("/nowhere/tell".to_owned(), Vec::new());
        let error = tell(missing).await.expect_err("there is none").to_string();
        assert!(error.starts_with("/nowhere/tell: No such file"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_killed_with_what_it_has_started() {
        let directory = tempfile::tempdir().expect("a directory");
        // Reading ends when all processes with the pipe open have ended.
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let reader = tokio::task::spawn_blocking({
            let pipe = pipe.clone();
            move || std::fs::read(pipe)
        });
        let script = format!("exec 3>{}; sleep 600 & sleep 600", pipe.display());
        let config = ExecConfig { timeout: Duration::from_secs(1), ..shell(&script) };
        let error = tell(config).await.expect_err("too long");
        assert_eq!(error.to_string(), "sh: not done within 1s");
        assert!(!error.is_rejection());
        assert_eq!(reader.await.expect("no panic").expect("a pipe"), b"");
    }
}
