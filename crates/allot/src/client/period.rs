//! Periods that are past, as reports ask for them.

use clap::Args;
use serde_json::Value;

use super::dates::{When, shown_seconds, zone_name};
use super::{ClientError, Session};

/// The period of a report.
#[derive(Args, Debug)]
pub(crate) struct Past {
    /// Start of the period: 2030-01-02, "2030-01-02 10:00", monday, -2h; by default the beginning of the month
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// End of the period, written like --from; a day is included. By default now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl Past {
    /// The parameters of the request. The service has defaults for those that are absent.
    pub(crate) async fn query(
        &self,
        session: &Session<'_>,
    ) -> Result<Vec<(&'static str, String)>, ClientError> {
        let now = session.now().await;
        let mut query = Vec::new();
        if let Some(from) = &self.from {
            query.push(("start", When::parse_past(from, now, &session.zone)?.instant(now).to_string()));
        }
        if let Some(to) = &self.to {
            query.push(("end", When::parse_past_end(to, now, &session.zone)?.instant(now).to_string()));
        }
        query.extend(session.zone.iana_name().map(|name| ("time_zone", name.to_owned())));
        Ok(query)
    }
}

/// Notes the period of an answer.
pub(super) fn note(answer: &Value, session: &mut Session<'_>) {
    let shown = |name: &str| shown_seconds(answer[name].as_str().unwrap_or_default(), &session.zone);
    let line = format!("From {} to {} ({}).", shown("start"), shown("end"), zone_name(&session.zone));
    session.note_to_people(&line);
}
