//! `allot lease update`, `extend` and `move`.

use api::v1::body::{LeaseChange, ReservationChange};
use clap::{ArgGroup, Args};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::amount::Amount;
use super::end_action::EndAction;
use super::offers;
use super::suiting::Suiting;
use crate::client::dates::{When, duration, length, of_answer};
use crate::client::wire::{Lease, Reservation, read};
use crate::client::{ClientError, Session, requirement};

/// A later or earlier end.
#[derive(Args, Debug)]
pub(crate) struct Extend {
    /// Name or ID of the lease
    lease: String,
    /// Time to add to the end: 90m, 12h, 3d; to shorten the lease, `-- -2h`
    #[arg(value_name = "DURATION")]
    by: String,
    /// Show the lease without changing it
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn extend(arguments: Extend, session: &mut Session<'_>) -> Result<(), ClientError> {
    let Extend { lease, by, dry_run } = arguments;
    let change = end_moved(lease, &by, dry_run);
    if let Some(by) = &change.extend_by
        && duration(by).is_err()
    {
        let now = session.now().await;
        if When::parse(by, now, &session.zone).is_ok() {
            return Err(ClientError::Usage(time_for_duration(&change.lease, by)));
        }
    }
    run(&change, session).await
}

/// Changes the end by a duration. A minus sign makes it earlier.
fn end_moved(lease: String, by: &str, dry_run: bool) -> Arguments {
    let (extend_by, shorten_by) = match by.strip_prefix('-') {
        Some(by) => (None, Some(by.to_owned())),
        None => (Some(by.strip_prefix('+').unwrap_or(by).to_owned()), None),
    };
    Arguments { lease, extend_by, shorten_by, dry_run, ..Arguments::default() }
}

/// Error for a new end where a duration is expected.
fn time_for_duration(lease: &str, end: &str) -> String {
    let quoted = |text: &str| if text.contains(' ') { format!("'{text}'") } else { text.to_owned() };
    let (lease, quoted_end) = (quoted(lease), quoted(end));
    format!(
        "{end:?} is a time, not a duration: `allot lease update {lease} --end {quoted_end}` sets a new end"
    )
}

#[derive(Args, Debug)]
pub(crate) struct Move {
    /// Name or ID of the lease
    lease: String,
    /// New start, earlier or later: +2h (from now), monday, "2030-01-02 10:00", or 13:00 on the day of the
    /// current start
    #[arg(long, value_name = "WHEN")]
    start: String,
    /// Show the lease without changing it
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn move_lease(arguments: Move, session: &mut Session<'_>) -> Result<(), ClientError> {
    let Move { lease, start, dry_run } = arguments;
    run(&Arguments { lease, start: Some(start), dry_run, ..Arguments::default() }, session).await
}

/// Changes to a lease.
#[derive(Args, Debug, Default)]
#[command(group = ArgGroup::new("new-end").args(["end", "extend", "shorten"]))]
pub(crate) struct Arguments {
    /// Name or ID of the lease
    lease: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep the lease despite the warning that it has no instances
    #[arg(long, conflicts_with = "name")]
    keep: bool,
    /// Move the lease by this time: 90m, 2h, 3d, or earlier with -1h
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, conflicts_with_all = ["start", "new-end"])]
    move_by: Option<String>,
    /// New start: now, +2h (from now), monday, "2030-01-02 10:00", or 13:00 on the day of the current start.
    /// Without a new end, the lease keeps its length
    #[arg(long, value_name = "WHEN")]
    start: Option<String>,
    /// New end, written like --start: 13:00 is the time nearest to the current end. `now` ends the lease
    #[arg(long, value_name = "WHEN")]
    end: Option<String>,
    /// Move the end later by this time: 90m, 2h, 3d
    #[arg(long = "extend-by", id = "extend", value_name = "DURATION")]
    extend_by: Option<String>,
    /// Move the end earlier by this time
    #[arg(long = "shorten-by", id = "shorten", value_name = "DURATION")]
    shorten_by: Option<String>,
    /// Time of the warning or action before the end, written like --start: 13:00 is the last one before the
    /// end
    #[arg(long, value_name = "WHEN")]
    before_end_at: Option<String>,
    /// Whether preemptible instances can run on unused hosts of the lease
    #[arg(long, value_name = "BOOL")]
    backfill: Option<bool>,
    /// Action for instances at the end
    #[arg(long, value_enum, value_name = "ACTION")]
    end_action: Option<EndAction>,
    /// ID of the reservation to change; needed if the lease has several
    #[arg(long, value_name = "ID")]
    reservation: Option<String>,
    /// Number of hosts, or a minimum and a maximum (2-4)
    #[arg(long, value_name = "N[-M]")]
    hosts: Option<Amount>,
    /// Requirements on hosts, written as for `lease create`
    #[arg(long = "where", value_name = "EXPRESSION")]
    requirement: Option<String>,
    /// Number of instances or addresses
    #[arg(long, value_name = "N", conflicts_with = "hosts")]
    amount: Option<u32>,
    /// Show the lease without changing it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    suiting: Suiting,
}

pub(super) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = super::identify(&arguments.lease, session).await?;
    let present: Lease = read(&super::get(&id, session).await?, "lease")?;
    let now = session.now().await;
    let body = body(arguments, &present, now, &session.zone)?;
    let times = [
        (arguments.start.as_ref(), body.start_date.as_ref()),
        (arguments.end.as_ref(), body.end_date.as_ref()),
        (arguments.before_end_at.as_ref(), body.before_end_date.as_ref()),
    ];
    super::note_oddities(times, now, session);
    if let Some(note) = much_longer(&body, &present, now) {
        session.note(&format!("Note: {note}"));
    }
    if arguments.dry_run {
        let path = format!("/v1/leases/{id}?dry_run=true");
        let answer = session.connection.put(&path, &body).await;
        let answer = answer.map_err(|error| offers::refused(error, session))?;
        return super::print_preview(&answer, session);
    }
    let path = format!("/v1/leases/{id}?{}", offers::hold());
    let answer = match session.connection.put(&path, &body).await {
        Ok(answer) => answer,
        Err(error) => offers::negotiate(error, session).await?,
    };
    super::print_made(answer, session).await
}

fn body(
    arguments: &Arguments,
    present: &Lease,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<LeaseChange, ClientError> {
    let (start, end) = dates(arguments, present, now, zone)?;
    let before_end = arguments.before_end_at.as_ref().map(|before| {
        let end = end.map(|end| end.instant(now)).or_else(|| of_answer(&present.end_date));
        end.map_or_else(
            || When::parse(before, now, zone),
            |end| When::parse_before_end(before, now, end, zone),
        )
    });
    let change = LeaseChange {
        // Any change keeps a lease, even a rename to its current name.
        name: arguments.keep.then(|| present.name.clone()).or_else(|| arguments.name.clone()),
        start_date: start.map(When::wire),
        end_date: end.map(When::wire),
        before_end_date: before_end.transpose()?.map(When::wire),
        backfill: arguments.backfill,
        end_action: arguments.end_action.map(|action| action.name().to_owned()),
        reservations: reservation(arguments, present)?.into_iter().collect(),
    };
    if change == LeaseChange::default() {
        return Err(ClientError::Usage("no changes requested: see `allot lease update --help`".to_owned()));
    }
    Ok(change)
}

/// New start and new end, `None` if unchanged.
fn dates(
    arguments: &Arguments,
    present: &Lease,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(Option<When>, Option<When>), ClientError> {
    let unknown = || ClientError::Usage("the lease has no dates that can be moved".to_owned());
    let old_start = || of_answer(&present.start_date).ok_or_else(unknown);
    let old_end = || of_answer(&present.end_date).ok_or_else(unknown);
    if let Some(by) = &arguments.move_by {
        let by = match by.strip_prefix('-') {
            Some(earlier) => -duration(earlier)?,
            None => duration(by.strip_prefix('+').unwrap_or(by))?,
        };
        return Ok((Some(moved(old_start()?, by)?), Some(moved(old_end()?, by)?)));
    }
    let start = arguments.start.as_ref();
    let start = start.map(|text| When::parse_on_day_of(old_start()?, text, now, zone)).transpose()?;
    let end = if let Some(later) = &arguments.extend_by {
        Some(moved(old_end()?, duration(later)?)?)
    } else if let Some(earlier) = &arguments.shorten_by {
        Some(moved(old_end()?, -duration(earlier)?)?)
    } else {
        let begins = start.map_or_else(old_start, |start| Ok(start.instant(now)))?;
        let as_long = moved(begins, old_end()?.duration_since(old_start()?))?;
        match &arguments.end {
            Some(end) => Some(When::parse_near(as_long.instant(now), begins.max(now), end, now, zone)?),
            None => start.map(|_| as_long),
        }
    };
    Ok((start, end))
}

fn moved(date: Timestamp, by: SignedDuration) -> Result<When, ClientError> {
    let date = date.checked_add(by).map(When::At);
    date.map_err(|_| ClientError::Usage("the lease cannot be moved that far".to_owned()))
}

/// Note that a lease becomes at least four times as long and lasts more than a day, which is often a mistake.
fn much_longer(change: &LeaseChange, present: &Lease, now: Timestamp) -> Option<String> {
    let date = |new: &Option<String>, old: &str| match new.as_deref() {
        Some("now") => Some(now),
        Some(new) => of_answer(new),
        None => of_answer(old),
    };
    let old = of_answer(&present.end_date)?.duration_since(of_answer(&present.start_date)?);
    let new = date(&change.end_date, &present.end_date)?;
    let new = new.duration_since(date(&change.start_date, &present.start_date)?);
    let much = new >= old.saturating_mul(4) && new > SignedDuration::from_hours(24);
    much.then(|| format!("the lease lasts {}, up from {}", length(new), length(old)))
}

fn reservation(arguments: &Arguments, present: &Lease) -> Result<Option<ReservationChange>, ClientError> {
    let suiting = &arguments.suiting;
    let of_hosts = arguments.hosts.is_some() || suiting.is_of_hosts() || suiting.survive.is_some();
    if !of_hosts && arguments.requirement.is_none() && arguments.amount.is_none() {
        return match &arguments.reservation {
            None => Ok(None),
            Some(_) => Err(ClientError::Usage("--reservation needs a change, such as --hosts".to_owned())),
        };
    }
    let fits = |reservation: &&Reservation| !of_hosts || reservation.resource_type == "physical:host";
    let mut fitting = present.reservations.iter().filter(fits);
    let id = match (&arguments.reservation, fitting.next(), fitting.next()) {
        (Some(id), _, _) => id.as_str(),
        (None, Some(only), None) => only.id.as_str(),
        (None, None, _) => return Err(ClientError::Usage("the lease has no such reservation".to_owned())),
        (None, Some(_), Some(_)) => {
            return Err(ClientError::Usage(
                "the lease has several reservations: choose one with --reservation".to_owned(),
            ));
        }
    };
    let requirement = arguments.requirement.as_ref().map(|text| requirement::parse(text)).transpose()?;
    Ok(Some(ReservationChange {
        min: arguments.hosts.map(|hosts| hosts.min),
        max: arguments.hosts.map(|hosts| hosts.max),
        resource_properties: requirement,
        amount: arguments.amount,
        ..suiting.change(id.to_owned())
    }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn present(reservations: &Value) -> Lease {
        let lease = json!({"id": "l", "name": "web", "start_date": "2030-01-02T10:00:00.000000",
            "end_date": "2030-01-03T10:00:00.000000", "reservations": reservations});
        serde_json::from_value(lease).expect("a lease")
    }

    fn change(words: &str, reservations: &Value) -> Result<Value, String> {
        let words = ["update", "web"].into_iter().chain(words.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let now = "2030-01-02T10:20:30Z".parse().expect("a timestamp");
        let change = body(&line.arguments, &present(reservations), now, &TimeZone::UTC);
        change.map(|change| json!(change)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_end_moves_from_where_it_is() {
        let none = json!([]);
        assert_eq!(change("--extend-by 2h", &none), Ok(json!({"end_date": "2030-01-03 12:00"})));
        assert_eq!(change("--shorten-by 1d", &none), Ok(json!({"end_date": "2030-01-02 10:00"})));
        assert_eq!(change("--end now --name x", &none), Ok(json!({"name": "x", "end_date": "now"})));
        assert!(change("--extend-by 2h --end now", &none).is_err());
    }

    #[test]
    fn an_extension_by_a_negative_duration_shortens_the_lease() {
        let now = "2030-01-02T10:20:30Z".parse().expect("a timestamp");
        for (by, end) in
            [("2h", "2030-01-03 12:00"), ("+2h", "2030-01-03 12:00"), ("-2h", "2030-01-03 08:00")]
        {
            let arguments = end_moved("web".to_owned(), by, false);
            let change = body(&arguments, &present(&json!([])), now, &TimeZone::UTC).expect(by);
            assert_eq!(change.end_date.as_deref(), Some(end), "{by}");
        }
    }

    #[test]
    fn hk_a_a_lease_is_kept_by_a_change_that_changes_nothing() {
        assert_eq!(change("--keep", &json!([])), Ok(json!({"name": "web"})));
    }

    #[test]
    fn a_lease_that_is_moved_keeps_its_length() {
        let none = json!([]);
        let dates = |start: &str, end: &str| Ok(json!({"start_date": start, "end_date": end}));
        assert_eq!(change("--move-by 1h", &none), dates("2030-01-02 11:00", "2030-01-03 11:00"));
        assert_eq!(change("--move-by -1d", &none), dates("2030-01-01 10:00", "2030-01-02 10:00"));
        assert_eq!(change("--start 2030-01-05T12:00Z", &none), dates("2030-01-05 12:00", "2030-01-06 12:00"));
        assert_eq!(change("--start +1h", &none), dates("2030-01-02 11:20", "2030-01-03 11:20"));
        assert!(change("--move-by 1h --end now", &none).is_err() && change("--move-by soon", &none).is_err());
    }

    #[test]
    fn a_time_of_day_is_near_the_present_dates() {
        let change = |words: &str, start: &str, end: &str| {
            let words = ["update", "web"].into_iter().chain(words.split_whitespace());
            let line = Line::try_parse_from(words).expect("arguments");
            let lease =
                json!({"id": "l", "name": "web", "start_date": start, "end_date": end, "reservations": []});
            let now = "2029-11-29T10:20:30Z".parse().expect("a timestamp");
            let lease = serde_json::from_value(lease).expect("a lease");
            let change = body(&line.arguments, &lease, now, &TimeZone::UTC).expect("a change");
            let note = much_longer(&change, &lease, now).is_some();
            (change.start_date.unwrap_or_default(), change.end_date.unwrap_or_default(), note)
        };
        let day = |words: &str| change(words, "2030-01-12T09:00:00.000000", "2030-01-12T12:00:00.000000");
        let dates = |start: &str, end: &str| (start.to_owned(), end.to_owned(), false);
        assert_eq!(day("--start 10:00 --end 13:00"), dates("2030-01-12 10:00", "2030-01-12 13:00"));
        assert_eq!(day("--start 10:00"), dates("2030-01-12 10:00", "2030-01-12 13:00"));
        assert_eq!(day("--end 08:00"), dates("", "2030-01-13 08:00"));
        assert!(day("--end 2030-01-14").2, "it is much longer");
        let night = |words: &str| change(words, "2030-01-12T22:00:00.000000", "2030-01-13T02:00:00.000000");
        assert_eq!(night("--end 23:30"), dates("", "2030-01-12 23:30"));
        assert_eq!(night("--end 03:00"), dates("", "2030-01-13 03:00"));
        let week = |words: &str| change(words, "2030-01-12T09:00:00.000000", "2030-01-19T12:00:00.000000");
        assert_eq!(week("--end 13:00"), dates("", "2030-01-19 13:00"));
    }

    #[test]
    fn the_warning_comes_before_the_end_of_the_lease() {
        for (words, wanted) in [
            ("--before-end-at 09:30", "2030-01-03 09:30"),
            ("--before-end-at 10:00", "2030-01-02 10:00"),
            ("--before-end-at 12:00 --extend-by 4h", "2030-01-03 12:00"),
            ("--before-end-at 12:00 --move-by 7d", "2030-01-09 12:00"),
            ("--before-end-at thu", "2030-01-03 00:00"),
            ("--before-end-at 2h", "2030-01-02 12:20"),
            ("--before-end-at +2h", "2030-01-02 12:20"),
        ] {
            let change = change(words, &json!([])).expect(words);
            assert_eq!(change["before_end_date"], wanted, "{words}");
        }
    }

    #[test]
    fn the_only_reservation_that_fits_is_meant() {
        let two = json!([
            {"id": "r1", "resource_type": "physical:host"},
            {"id": "r2", "resource_type": "virtual:instance"},
        ]);
        let hosts = json!({"reservations": [{"id": "r1", "min": 2, "max": 3}]});
        assert_eq!(change("--hosts 2-3", &two), Ok(hosts));
        assert!(change("--amount 3", &two).expect_err("ambiguous").contains("--reservation"));
        let amount = json!({"reservations": [{"id": "r2", "amount": 3}]});
        assert_eq!(change("--amount 3 --reservation r2", &two), Ok(amount));
        let suiting = json!({"reservations": [{"id": "r1", "vcpus": 16, "homogeneous": true}]});
        assert_eq!(change("--host-vcpus 16 --alike", &two), Ok(suiting));
        let equal = json!({"reservations": [{"id": "r1", "alike": ["cpu_mhz"]}]});
        assert_eq!(change("--alike-in cpu_mhz", &two), Ok(equal));
    }

    #[test]
    fn an_update_of_nothing_is_refused() {
        assert!(change("", &json!([])).is_err());
        assert!(change("--reservation r1", &json!([])).is_err());
        assert!(change("--hosts 2", &json!([])).is_err());
    }
}
