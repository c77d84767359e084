//! Periods that are past, as reports ask for them.

use clap::Args;

use super::dates::When;
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
