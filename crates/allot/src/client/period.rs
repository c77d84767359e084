//! Periods that are past, as reports ask for them.

use clap::Args;

use super::dates::When;
use super::{ClientError, Session};

/// From when until when.
#[derive(Args, Debug)]
pub(crate) struct Past {
    /// From when; the beginning of this month (UTC) if it is not said
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Until when; now if it is not said
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl Past {
    /// The parameters of the request; what is not said is left to the service.
    pub(crate) async fn query(
        &self,
        session: &Session<'_>,
    ) -> Result<Vec<(&'static str, String)>, ClientError> {
        let now = session.now().await;
        let mut query = Vec::new();
        for (name, text) in [("start", &self.from), ("end", &self.to)] {
            if let Some(text) = text {
                let instant = When::parse_past(text, now, &session.zone)?.instant(now);
                query.push((name, instant.to_string()));
            }
        }
        Ok(query)
    }
}
