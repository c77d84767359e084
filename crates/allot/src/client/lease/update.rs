//! `allot lease update`.

use clap::{ArgGroup, Args};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::create::Amount;
use super::end_action::EndAction;
use super::offers;
use super::suiting::Suiting;
use crate::client::dates::{When, duration, of_answer};
use crate::client::wire::{Lease, Reservation, read};
use crate::client::{ClientError, Session, requirement};

/// What is to be different.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("new-end").args(["end", "extend", "shorten"]))]
pub(crate) struct Arguments {
    /// The lease's name, or its identifier
    lease: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// New start, as now, +2h, 13:00, monday, "2030-01-02 10:00"
    #[arg(long, value_name = "WHEN")]
    start: Option<String>,
    /// New end, written like --start; `now` ends the lease
    #[arg(long, value_name = "WHEN")]
    end: Option<String>,
    /// Move the end that much later: 90m, 2h, 3d
    #[arg(long = "extend-by", id = "extend", value_name = "DURATION")]
    extend_by: Option<String>,
    /// Move the end that much earlier
    #[arg(long = "shorten-by", id = "shorten", value_name = "DURATION")]
    shorten_by: Option<String>,
    /// When to warn or act before the end, written like --start
    #[arg(long, value_name = "WHEN")]
    before_end_at: Option<String>,
    /// Whether preemptible instances may run on hosts of the lease that it does not use
    #[arg(long, value_name = "BOOL")]
    backfill: Option<bool>,
    /// What becomes of instances at the end
    #[arg(long, value_enum, value_name = "ACTION")]
    end_action: Option<EndAction>,
    /// The reservation that what follows is about, by its identifier; needed if the lease has several
    #[arg(long, value_name = "ID")]
    reservation: Option<String>,
    /// Hosts: so many, or at least and at most so many (2-4)
    #[arg(long, value_name = "N[-M]")]
    hosts: Option<Amount>,
    /// What hosts must be like, written as for `lease create`
    #[arg(long = "where", value_name = "EXPRESSION")]
    requirement: Option<String>,
    /// Instances or addresses: so many
    #[arg(long, value_name = "N", conflicts_with = "hosts")]
    amount: Option<u32>,
    /// Say what the lease would be, and change nothing
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
    super::note_oddities([arguments.start.as_ref(), arguments.end.as_ref()], now, session);
    if arguments.dry_run {
        let path = format!("/v1/leases/{id}?dry_run=true");
        let answer = session.connection.put(&path, &body).await;
        let answer = answer.map_err(|error| offers::refused(error, session))?;
        return super::print_preview(&answer, session);
    }
    let answer = session.connection.put(&format!("/v1/leases/{id}?hold_offers=true"), &body).await;
    let answer = answer.map_err(|error| offers::refused(error, session))?;
    super::print_lease(&answer, session)
}

fn body(
    arguments: &Arguments,
    present: &Lease,
    now: jiff::Timestamp,
    zone: &jiff::tz::TimeZone,
) -> Result<Value, ClientError> {
    let mut body = Map::new();
    if let Some(name) = &arguments.name {
        body.insert("name".to_owned(), json!(name));
    }
    for (key, when) in [
        ("start_date", &arguments.start),
        ("end_date", &arguments.end),
        ("before_end_date", &arguments.before_end_at),
    ] {
        if let Some(when) = when {
            let read = match (key, of_answer(&present.start_date)) {
                ("end_date", Some(start)) => When::parse_end(when, now, start.max(now), zone)?,
                _ => When::parse(when, now, zone)?,
            };
            body.insert(key.to_owned(), json!(read.wire()));
        }
    }
    body.extend(arguments.backfill.map(|backfill| ("backfill".to_owned(), json!(backfill))));
    body.extend(arguments.end_action.map(|action| ("end_action".to_owned(), json!(action.name()))));
    let by = match (&arguments.extend_by, &arguments.shorten_by) {
        (Some(later), _) => Some(duration(later)?),
        (None, Some(earlier)) => Some(-duration(earlier)?),
        (None, None) => None,
    };
    if let Some(by) = by {
        body.insert("end_date".to_owned(), json!(moved(&present.end_date, by)?.wire()));
    }
    if let Some(reservation) = reservation(arguments, present)? {
        body.insert("reservations".to_owned(), json!([reservation]));
    }
    if body.is_empty() {
        return Err(ClientError::Usage("no change is asked for: see `allot lease update --help`".to_owned()));
    }
    Ok(Value::Object(body))
}

fn moved(date: &str, by: SignedDuration) -> Result<When, ClientError> {
    let end = of_answer(date).and_then(|end| end.checked_add(by).ok());
    end.map(When::At).ok_or_else(|| ClientError::Usage("the end cannot be moved that far".to_owned()))
}

fn reservation(arguments: &Arguments, present: &Lease) -> Result<Option<Value>, ClientError> {
    let mut suiting = arguments.suiting.fields();
    suiting.extend(arguments.suiting.survives());
    let others = arguments.requirement.is_some() || arguments.amount.is_some();
    if arguments.hosts.is_none() && suiting.is_empty() && !others {
        return match &arguments.reservation {
            None => Ok(None),
            Some(_) => Err(ClientError::Usage(
                "--reservation needs something beside it that is to be different, as --hosts".to_owned(),
            )),
        };
    }
    let of_hosts = arguments.hosts.is_some() || !suiting.is_empty();
    let fits = |reservation: &&Reservation| !of_hosts || reservation.resource_type == "physical:host";
    let mut fitting = present.reservations.iter().filter(fits);
    let id = match (&arguments.reservation, fitting.next(), fitting.next()) {
        (Some(id), _, _) => id.as_str(),
        (None, Some(only), None) => only.id.as_str(),
        (None, None, _) => return Err(ClientError::Usage("the lease has no such reservation".to_owned())),
        (None, Some(_), Some(_)) => {
            return Err(ClientError::Usage(
                "the lease has several reservations: say which with --reservation".to_owned(),
            ));
        }
    };
    let mut change = json!({ "id": id });
    if let Value::Object(fields) = &mut change {
        fields.extend(suiting);
    }
    if let Some(amount) = arguments.hosts {
        change["min"] = json!(amount.min);
        change["max"] = json!(amount.max);
    }
    if let Some(expression) = &arguments.requirement {
        change["resource_properties"] = json!(requirement::parse(expression)?);
    }
    if let Some(amount) = arguments.amount {
        change["amount"] = json!(amount);
    }
    Ok(Some(change))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use jiff::tz::TimeZone;

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
        body(&line.arguments, &present(reservations), now, &TimeZone::UTC).map_err(|error| error.to_string())
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
    }

    #[test]
    fn an_update_of_nothing_is_refused() {
        assert!(change("", &json!([])).is_err());
        assert!(change("--reservation r1", &json!([])).is_err());
        assert!(change("--hosts 2", &json!([])).is_err());
    }
}
