//! Options of recurring leases.

use api::v1::body::RepeatCreate;
use clap::Args;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::client::ClientError;
use crate::client::dates::When;

/// Recurrence of a lease.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Recurrence")]
pub(super) struct Recurring {
    /// Repeat the lease after this time, by the calendar: 1w, 1d, 1mo
    #[arg(long, value_name = "TIME", conflicts_with_all = ["waitlist", "wait"])]
    pub(super) every: Option<String>,
    /// Number of leases in total
    #[arg(long, value_name = "N", requires = "every", conflicts_with = "until")]
    times: Option<u32>,
    /// Last start date, or a time before which the last lease starts, written like --start
    #[arg(long, value_name = "WHEN", requires = "every")]
    pub(super) until: Option<String>,
    /// Skip unavailable dates, instead of rejecting all
    #[arg(long, requires = "every")]
    skip_unavailable: bool,
}

impl Recurring {
    /// Converts the options to the form of requests. `None` if the lease doesn't recur.
    pub(super) fn wire(
        &self,
        now: Timestamp,
        start: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<RepeatCreate>, ClientError> {
        let Some(every) = &self.every else { return Ok(None) };
        if !every.parse::<Span>().is_ok_and(Span::is_positive) {
            return Err(ClientError::Usage(format!("--every {every}: write a period such as 1d, 1w or 1mo")));
        }
        let until = self.until.as_ref().map(|until| When::parse_last(until, now, start, zone)).transpose()?;
        Ok(Some(RepeatCreate {
            every: every.clone(),
            times: self.times,
            until: until.map(When::wire),
            time_zone: zone.iana_name().map(str::to_owned),
            skip_unavailable: self.skip_unavailable,
        }))
    }
}
