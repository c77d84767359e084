//! Start, duration and start deadline of leases, in requests (API-create, CLS).

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use leases::lease_type::{Deadlines, LeaseType};
use leases::terms::TermsError;
use leases::window::Window;
use serde_json::Value;

use super::date::{Dates, minute, read_date};
use super::error::RequestError;
use super::fields::{Fields, text};

/// Prefix of the event types by which clients without support for lease types name one: the type follows. The
/// date of such an event is the deadline (CLS).
const CARRIER: &str = "lease_type:";

/// Names of an event's date: in requests of Blazar's clients, and in Blazar's answers and Heat's templates.
const EVENT_DATES: [&str; 2] = ["event_date", "time"];

/// The window of a lease, or as soon as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseDates {
    pub window: Window,
    pub lease_type: LeaseType,
    /// Window for a lease without dates of its own.
    pub within: Option<Window>,
}

/// The fields about types and deadlines.
#[derive(Debug, Default)]
struct TypeFields<'a> {
    lease_type: Option<Named>,
    timeout: Option<&'a Value>,
    timeout_date: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Schedule,
    Immediate,
    BestEffort,
}

impl LeaseDates {
    /// Reads dates and type from the body of `POST /leases`, whose events are `events`.
    pub fn read<'a>(
        fields: &mut Fields<'a>,
        events: &'a [Value],
        dates: Dates,
        deadlines: &Deadlines,
    ) -> Result<Self, RequestError> {
        let now = dates.now;
        let type_fields = TypeFields::read(fields, events)?;
        let named = type_fields.lease_type.unwrap_or(Named::Schedule);
        let duration = fields.filled("duration");
        let needed: &[&'static str] = match (named, duration) {
            (Named::Schedule, None) => &["name", "start_date", "end_date"],
            (Named::Schedule, Some(_)) => &["name", "start_date"],
            (_, None) => &["name", "end_date"],
            (_, Some(_)) => &["name"],
        };
        fields.require(needed)?;
        let start = match fields.filled("start_date") {
            Some(date) => read_date("start_date", date, dates)?,
            None if named == Named::Schedule => return Err(RequestError::Missing("start_date".to_owned())),
            None => minute(now),
        };
        if named == Named::Immediate && start != minute(now) {
            return Err(RequestError::malformed("start_date", "now, or absent, for an IMMEDIATE lease"));
        }
        let mut within = None;
        let window = match (duration, fields.filled("end_date")) {
            (Some(duration), Some(end)) => {
                if named != Named::Schedule {
                    let expected = "absent where there is an end_date, unless the lease is a SCHEDULE lease";
                    return Err(RequestError::malformed("duration", expected));
                }
                let end = read_date("end_date", end, dates)?;
                within = Some(Window::new(start, end).map_err(|_| TermsError::EndNotAfterStart)?);
                Window::starting(start, read_minutes("duration", duration)?)
            }
            (Some(duration), None) => Window::starting(start, read_minutes("duration", duration)?),
            (None, None) => return Err(RequestError::Missing("end_date".to_owned())),
            (None, Some(end)) => {
                let end = read_date("end_date", end, dates)?;
                Window::new(start, end).map_err(|_| TermsError::EndNotAfterStart)?
            }
        };
        dates.check("duration", window.end())?;
        Ok(Self { window, lease_type: type_fields.deadline(named, dates, deadlines)?, within })
    }
}

impl<'a> TypeFields<'a> {
    fn read(fields: &mut Fields<'a>, events: &'a [Value]) -> Result<Self, RequestError> {
        let mut type_fields = Self {
            lease_type: fields.filled("lease_type").map(|value| named("lease_type", value)).transpose()?,
            timeout: fields.filled("timeout"),
            timeout_date: fields.filled("timeout_date"),
        };
        for event in events {
            let Some(name) = event["event_type"].as_str().and_then(|name| name.strip_prefix(CARRIER)) else {
                continue;
            };
            if type_fields.lease_type.is_some() {
                return Err(RequestError::malformed("events", "without a second type of lease"));
            }
            type_fields.lease_type = Some(named("events", &Value::from(name))?);
            if type_fields.lease_type == Some(Named::BestEffort)
                && type_fields.timeout.or(type_fields.timeout_date).is_none()
            {
                let date = EVENT_DATES.iter().find_map(|name| unless_unset(&event[*name]));
                type_fields.timeout_date = Some(date.ok_or_else(|| {
                    let expected =
                        "with the latest start as event_date or time where the type of lease is best-effort, or a \
                         timeout beside them";
                    RequestError::malformed("events", expected)
                })?);
            }
        }
        Ok(type_fields)
    }

    /// The type, with the deadline from the request or else from the operator's settings.
    fn deadline(&self, named: Named, dates: Dates, deadlines: &Deadlines) -> Result<LeaseType, RequestError> {
        let now = dates.now;
        let after = |time: SignedDuration| now.checked_add(time).unwrap_or(Timestamp::MAX);
        if named != Named::BestEffort {
            // Answers show the deadline of an immediate lease, which the operator sets, so clients may send
            // it back.
            let timeout_date = self.timeout_date.filter(|_| named == Named::Schedule);
            for (name, said) in [("timeout", self.timeout), ("timeout_date", timeout_date)] {
                if said.is_some() {
                    return Err(RequestError::malformed(name, "absent unless the lease is BEST-EFFORT"));
                }
            }
        }
        Ok(match named {
            Named::Schedule => LeaseType::Schedule,
            Named::Immediate => LeaseType::Immediate { deadline: after(deadlines.immediate) },
            Named::BestEffort => {
                let deadline = match (self.timeout, self.timeout_date) {
                    (Some(_), Some(_)) => {
                        return Err(RequestError::malformed(
                            "timeout",
                            "absent where there is a timeout_date",
                        ));
                    }
                    (Some(timeout), None) => after(read_duration("timeout", timeout)?),
                    (None, Some(date)) => read_date("timeout_date", date, dates)?,
                    (None, None) => after(deadlines.best_effort.min(deadlines.longest)),
                };
                if deadline.duration_since(now) > deadlines.longest {
                    return Err(RequestError::TimeoutTooLong(deadlines.longest));
                }
                LeaseType::BestEffort { deadline }
            }
        })
    }
}

fn unless_unset(value: &Value) -> Option<&Value> {
    (!value.is_null() && value.as_str() != Some("")).then_some(value)
}

fn named(field: &'static str, value: &Value) -> Result<Named, RequestError> {
    match text(field, value)?.to_ascii_uppercase().replace('_', "-").as_str() {
        "SCHEDULE" => Ok(Named::Schedule),
        "IMMEDIATE" => Ok(Named::Immediate),
        "BEST-EFFORT" => Ok(Named::BestEffort),
        _ => Err(RequestError::malformed(field, "of the type SCHEDULE, IMMEDIATE or BEST-EFFORT")),
    }
}

/// A duration such as `P1DT4H` or `1d4h`, more than zero. A day has 24 hours.
pub(super) fn read_duration(field: &'static str, value: &Value) -> Result<SignedDuration, RequestError> {
    let wrong = || RequestError::malformed(field, "a duration such as P1DT4H or 1d4h");
    let span: Span = value.as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if duration > SignedDuration::ZERO { Ok(duration) } else { Err(wrong()) }
}

/// Reads the length of a lease as in requests: whole minutes, more than zero.
pub fn read_length(text: &str) -> Option<SignedDuration> {
    read_minutes("duration", &Value::from(text)).ok()
}

/// Reads a duration of whole minutes, which dates also have.
pub(super) fn read_minutes(field: &'static str, value: &Value) -> Result<SignedDuration, RequestError> {
    let duration = read_duration(field, value)?;
    let rest = duration.as_nanos() % SignedDuration::from_mins(1).as_nanos();
    let expected = "a duration of whole minutes, such as P1DT4H or 1d4h";
    if rest == 0 { Ok(duration) } else { Err(RequestError::malformed(field, expected)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::limits::Limits;
    use super::*;

    const NOW: &str = "2030-01-01T10:00:30Z";

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn read(body: &Value) -> Result<LeaseDates, RequestError> {
        let mut fields = Fields::body(body)?;
        let _ = fields.get("name");
        let events = super::super::fields::list("events", fields.get("events"))?;
        let dates = LeaseDates::read(
            &mut fields,
            events,
            Dates::new(at(NOW), &Limits::default()),
            &Deadlines::default(),
        )?;
        fields.finish().map(|()| dates)
    }

    fn window(start: &str, end: &str) -> Window {
        Window::new(at(start), at(end)).expect("forwards")
    }

    #[test]
    fn cls_01_d_a_duration_stands_for_an_end() {
        for duration in ["P1DT4H", "1d 4h", "1d4h", "PT28H", "1680m", "PT100800S"] {
            let body = json!({"name": "l", "start_date": "2030-01-02 10:00", "duration": duration});
            let dates = LeaseDates {
                window: window("2030-01-02T10:00:00Z", "2030-01-03T14:00:00Z"),
                lease_type: LeaseType::Schedule,
                within: None,
            };
            assert_eq!(read(&body), Ok(dates));
        }
        for duration in [json!("P1M"), json!("-1d"), json!("0s"), json!(5), json!("soon"), json!("P9999999Y")]
            .into_iter()
            .chain([json!("30s"), json!("PT1M0.5S"), json!("1h 1s"), json!("0.1m")])
        {
            let body = json!({"name": "l", "start_date": "now", "duration": duration});
            assert!(matches!(read(&body), Err(RequestError::Malformed { .. })), "{duration}");
        }
        let both =
            json!({"name": "l", "duration": "1d", "end_date": "2030-01-02 10:00", "lease_type": "IMMEDIATE"});
        assert!(matches!(read(&both), Err(RequestError::Malformed { .. })));
    }

    #[test]
    fn cls_10_f_a_duration_with_both_dates_is_for_any_time_between_them() {
        let body = json!({
            "name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00", "duration": "4h",
        });
        let dates = read(&body).expect("well formed");
        assert_eq!(dates.window, window("2030-01-02T10:00:00Z", "2030-01-02T14:00:00Z"));
        assert_eq!(dates.within, Some(window("2030-01-02T10:00:00Z", "2030-01-03T10:00:00Z")));
    }

    #[test]
    fn cls_04_a_a_timeout_is_a_duration_or_a_date_and_has_a_default_and_a_maximum() {
        let body = |more: &Value| {
            let mut body = json!({"name": "l", "lease_type": "best-effort", "duration": "2h"});
            for (name, value) in more.as_object().expect("an object") {
                body[name] = value.clone();
            }
            body
        };
        for (more, deadline) in [
            (json!({}), "2030-01-01T11:00:30Z"),
            (json!({"timeout": "90m"}), "2030-01-01T11:30:30Z"),
            (json!({"timeout_date": "2030-01-02 10:00"}), "2030-01-02T10:00:00Z"),
        ] {
            let dates = read(&body(&more)).expect("well formed");
            assert_eq!(dates.lease_type, LeaseType::BestEffort { deadline: at(deadline) });
            assert_eq!(dates.window, window("2030-01-01T10:00:00Z", "2030-01-01T12:00:00Z"));
        }
        assert!(matches!(read(&body(&json!({"timeout": "8d"}))), Err(RequestError::TimeoutTooLong(_))));
        let both = json!({"timeout": "1h", "timeout_date": "2030-01-02 10:00"});
        assert!(read(&body(&both)).is_err());
        assert!(
            read(&body(&json!({"lease_type": "schedule", "timeout": "1h", "start_date": "now"}))).is_err()
        );
    }

    #[test]
    fn an_immediate_lease_starts_now() {
        let body = json!({"name": "l", "lease_type": "IMMEDIATE", "duration": "2h"});
        let dates = read(&body).expect("well formed");
        assert_eq!(dates.lease_type, LeaseType::Immediate { deadline: at("2030-01-01T10:02:00Z") });
        let now = json!({"name": "l", "lease_type": "IMMEDIATE", "start_date": "now", "duration": "2h"});
        assert!(read(&now).is_ok());
        let later = json!({
            "name": "l", "lease_type": "IMMEDIATE", "start_date": "2030-01-01 10:01", "duration": "2h",
        });
        assert!(read(&later).is_err());
    }

    #[test]
    fn clients_that_know_no_types_say_them_with_an_event() {
        let event = json!({"event_type": "lease_type:best-effort", "event_date": "2030-01-01 12:00"});
        let body = json!({
            "name": "l", "start_date": "2030-01-01 10:00", "end_date": "2030-01-01 11:00", "events": [event],
        });
        let dates = read(&body).expect("well formed");
        assert_eq!(dates.lease_type, LeaseType::BestEffort { deadline: at("2030-01-01T12:00:00Z") });
        let mut twice = body.clone();
        twice["events"] = json!([event, event]);
        assert!(read(&twice).is_err());
        let mut other = body;
        other["events"] = json!([{"event_type": "lease_type:sometimes"}]);
        assert!(read(&other).is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |body: Value| match read(&body) {
            Err(RequestError::Missing(names)) => names,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(json!({})), "name,start_date,end_date");
        assert_eq!(missing(json!({"name": "l", "duration": "1h"})), "start_date");
        assert_eq!(missing(json!({"lease_type": "IMMEDIATE"})), "name,end_date");
    }
}
