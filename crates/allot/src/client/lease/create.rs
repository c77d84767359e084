//! `allot lease create` and `allot lease copy`.

use std::collections::BTreeSet;

use api::v1::body::LeaseCreate;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use leases::status::LeaseStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::end_action::EndAction;
use super::hints;
use super::offers;
use super::recurring::Recurring;
use super::reservations::{Reservations, Reserved};
use super::suiting::Suiting;
use crate::client::dates::{When, duration, end_of_same_length, is_day, minute, of_answer, show, week_later};
use crate::client::name_value::name_value;
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Session};

/// Copy of a lease.
#[derive(Args, Debug)]
pub(crate) struct LeaseCopy {
    /// Lease to copy, by name or ID; with its hosts, instances and floating IPs, and its length
    lease: String,
    /// Start of the copy: +7d (after the start of the copied lease), now+7d, monday, 2030-01-02, "tomorrow 09:00"
    #[arg(long, value_name = "WHEN")]
    start: String,
    /// Name of the copy; by default the same name, with a number if the copied lease isn't over: web-2
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Show the lease without creating it
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn copy(arguments: LeaseCopy, session: &mut Session<'_>) -> Result<(), ClientError> {
    let LeaseCopy { lease, start, name, dry_run } = arguments;
    let id = super::identify(&lease, session).await?;
    let copied: Lease = read(&super::get(&id, session).await?, "lease")?;
    let start = start_of_copy(&start, &copied, session.answered(), &session.zone)?;
    let name = match name {
        Some(name) => name,
        None if copied.status == LeaseStatus::Terminated.name() => copied.name,
        None => name_of_copy(&copied.name, &names_in_use(&copied.project_id, session).await),
    };
    run(&Arguments { name, like: Some(id), start, dry_run, ..Arguments::default() }, session).await
}

/// Start of a copy: a distance such as `+7d` counts from the start of the copied lease. Its days are those of the calendar.
fn start_of_copy(text: &str, copied: &Lease, now: Timestamp, zone: &TimeZone) -> Result<String, ClientError> {
    let distance = text.trim().strip_prefix('+').zip(of_answer(&copied.start_date));
    let Some((distance, start)) = distance else { return Ok(text.to_owned()) };
    let length = duration(distance)?;
    let start = start.to_zoned(zone.clone());
    let moved = match distance.trim().parse::<Span>() {
        Ok(span) => start.checked_add(span),
        Err(_) => start.checked_add(length),
    };
    let moved =
        moved.map_err(|_| ClientError::Usage(format!("{text:?} is later than the latest possible date")))?;
    let moved = moved.timestamp();
    if moved < minute(now) {
        return Err(ClientError::Usage(format!(
            "--start {text}: {} is in the past. It counts from the start of the copied lease; now{} counts from now",
            show(moved, zone),
            text.trim()
        )));
    }
    Ok(moved.to_string())
}

/// Names of the project's leases that aren't over. Names needn't be unique, so a failure is ignored.
async fn names_in_use(project: &str, session: &Session<'_>) -> BTreeSet<String> {
    let answer = session.connection.get(super::LEASES.path, &[("project_id", project.to_owned())]).await;
    let leases: Vec<Lease> = answer.and_then(|answer| read(&answer, super::LEASES.key)).unwrap_or_default();
    let going = leases.into_iter().filter(|lease| lease.status != LeaseStatus::Terminated.name());
    going.map(|lease| lease.name).collect()
}

/// The name of a copy: `web-2` of `web`, `web-3` of `web-2`, or the next number whose name isn't in use. A longer number, as
/// in `exam-2030`, belongs to the name.
fn name_of_copy(copied: &str, in_use: &BTreeSet<String>) -> String {
    let numbered = copied.rsplit_once('-').and_then(|(name, number)| {
        let is_plain = number.len() <= 2 && number.bytes().all(|byte| byte.is_ascii_digit());
        Some((name, number.parse::<u32>().ok().filter(|_| is_plain && !number.starts_with('0'))?))
    });
    let (name, mut number) = numbered.unwrap_or((copied, 1));
    loop {
        number += 1;
        let copy = format!("{name}-{number}");
        if !in_use.contains(&copy) {
            return copy;
        }
    }
}

/// Request for a lease.
#[derive(Args, Debug, Default)]
pub(crate) struct Arguments {
    /// Name of the lease
    name: String,
    /// Request the same as this lease, by name or ID, with its length unless --end or --for is given
    #[arg(long, value_name = "LEASE", conflicts_with_all = ["hosts", "instances", "floating_ips", "reservation"])]
    like: Option<String>,
    /// Type of start
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "schedule")]
    lease_type: LeaseType,
    /// Maximum wait of a best-effort lease: 90m, 2h, 1d12h; or the latest start, written like --start: 13:00
    /// is the next one after the start
    #[arg(long, value_name = "DURATION|WHEN")]
    timeout: Option<String>,
    /// Start: now, +2h, 13:00, monday, 2030-01-02, "2030-01-02 10:00", "tomorrow 09:00"; for a best-effort
    /// lease, the earliest start
    #[arg(long, value_name = "WHEN", default_value = "now")]
    start: String,
    /// End, written like --start
    #[arg(long, value_name = "WHEN")]
    end: Option<String>,
    /// Duration: 90m, 2h, 3d, 1d12h, 1w; with --end, at any time from --start to --end
    #[arg(long = "for", id = "length", value_name = "DURATION")]
    length: Option<String>,
    /// Time of the warning or action before the end, written like --start: 13:00 is the last one before the
    /// end
    #[arg(long, value_name = "WHEN")]
    before_end_at: Option<String>,
    /// Action for its instances at the end
    #[arg(long, value_enum, value_name = "ACTION")]
    end_action: Option<EndAction>,
    /// Let preemptible instances run on unused hosts of the lease
    #[arg(long)]
    backfill: bool,
    /// Placement of its hosts or instances, such as `location=same`; can be repeated. `allot lease hints`
    /// lists all hints
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    hint: Vec<(String, String)>,
    /// Show the lease without creating it
    #[arg(long, conflicts_with_all = ["wait", "key"])]
    dry_run: bool,
    /// Join the waitlist if capacity is short
    #[arg(long, conflicts_with_all = ["dry_run", "wait"])]
    waitlist: bool,
    /// Wait until the lease is active or has failed
    #[arg(long)]
    wait: bool,
    /// Repeat an earlier request with this key: if it was served, its lease is shown and no other is created
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
    #[command(flatten)]
    reservations: Reservations,
    #[command(flatten)]
    suiting: Suiting,
    #[command(flatten)]
    recurring: Recurring,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LeaseType {
    /// On its start date
    #[default]
    Schedule,
    /// Now or not at all
    Immediate,
    /// As soon as possible, but before its timeout
    BestEffort,
}

pub(super) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let now = session.now().await;
    let model = match &arguments.like {
        Some(like) => {
            Some(super::get(&super::identify(like, session).await?, session).await?["lease"].take())
        }
        None => None,
    };
    let body = body(arguments, model.as_ref(), now, &session.zone)?;
    let sent = &body.lease;
    // A series that ends on a day has no end time to check.
    let until = arguments.recurring.until.as_ref().filter(|until| !is_day(until));
    let times = [
        (Some(&arguments.start), sent.start_date.as_ref()),
        (arguments.end.as_ref(), sent.end_date.as_ref()),
        (arguments.before_end_at.as_ref(), sent.before_end_date.as_ref()),
        (arguments.timeout.as_ref(), sent.timeout_date.as_ref()),
        (until, sent.repeat.as_ref().and_then(|repeat| repeat.until.as_ref())),
    ];
    super::note_oddities(times, now, session);
    if let (Some(end), None) = (&arguments.end, &arguments.length) {
        let date = |sent: &Option<String>| sent.as_deref().and_then(of_answer);
        let lasts =
            date(&sent.end_date).zip(date(&sent.start_date)).map(|(end, start)| end.duration_since(start));
        if let Some(note) = lasts.and_then(|lasts| week_later(&arguments.start, end, lasts)) {
            session.note(&format!("Note: {note}"));
        }
    }
    let body = model.map_or_else(|| json!(body), |model| copied(model, &body));
    if arguments.dry_run {
        let answer = session.connection.post("/v1/leases?dry_run=true", &body).await;
        let answer = answer.map_err(|error| offers::refused(error, session))?;
        if answer["series"].is_object() {
            return offers::print_series_preview(&answer, session);
        }
        return super::print_preview(&answer, session);
    }
    let key = arguments.key.clone().unwrap_or_else(new_key);
    let path = format!("/v1/leases?{}", offers::hold());
    let answer = match session.connection.post_once(&path, &body, &key).await {
        Ok(answer) => answer,
        Err(error) => offers::negotiate(error, session).await?,
    };
    if answer["series"].is_object() {
        return offers::print_series(&answer, session);
    }
    if answer["waitlist_entry"].is_object() {
        return offers::print_waiting(&answer, session);
    }
    super::note_same_name(&answer, session).await?;
    if arguments.wait {
        let lease: Lease = read(&answer, "lease")?;
        let answer = super::wait::until(&lease.id, &super::wait::Aim::active(), session).await?;
        return super::print_lease(&answer, session);
    }
    super::print_made(answer, session).await
}

fn new_key() -> String {
    use ambient::Ids;
    format!("allot-{:032x}", ambient::RandomIds.uuid())
}

/// A request with reservations from options and reservations given as JSON.
#[derive(Serialize)]
struct Body {
    /// The lease without its reservations.
    #[serde(flatten)]
    lease: LeaseCreate,
    reservations: Vec<Reserved>,
}

/// Copies the lease `model` and applies the command line to it. The service ignores read-only fields.
fn copied(mut model: Value, body: &Body) -> Value {
    if let (Some(fields), Value::Object(own)) = (model.as_object_mut(), json!(body.lease)) {
        // These depend on the type and the dates of the copied lease.
        for name in ["timeout_date", "lease_type", "events", "end_date"] {
            fields.remove(name);
        }
        fields.extend(own);
    }
    model
}

/// End of a lease that begins at `start` and is as long as `model`, a lease in a response.
fn end_like(model: &Value, start: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let date = |name: &str| of_answer(model[name].as_str()?);
    end_of_same_length(date("start_date")?, date("end_date")?, start, zone)
}

fn body(
    arguments: &Arguments,
    model: Option<&Value>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Body, ClientError> {
    let start = When::parse(&arguments.start, now, zone)?;
    let ends = match (&arguments.end, &arguments.length) {
        (Some(end), _) => When::parse_end(end, now, start.instant(now), zone)?,
        (None, Some(length)) => {
            let end = start.instant(now).checked_add(duration(length)?);
            When::At(end.map_err(|_| ClientError::Usage(format!("--for {length} is too long")))?)
        }
        (None, None) => {
            let end = model.and_then(|model| end_like(model, start.instant(now), zone));
            When::At(end.ok_or_else(|| {
                ClientError::Usage("the duration is missing: set --for or --end".to_owned())
            })?)
        }
    };
    let reservations = arguments.reservations.wire(&arguments.suiting)?;
    if reservations.is_empty() && model.is_none() {
        return Err(ClientError::Usage(
            "no resources requested: set --hosts, --instances, --floating-ips or --reservation".to_owned(),
        ));
    }
    // The service adds the days of a series by the calendar, so it needs the duration.
    let recurs = arguments.recurring.every.is_some();
    let length = arguments.length.as_ref().filter(|_| recurs || arguments.end.is_some());
    let end = (length.is_none() || arguments.end.is_some()).then(|| ends.wire());
    let before_end = arguments.before_end_at.as_ref();
    let before_end =
        before_end.map(|before| When::parse_before_end(before, now, ends.instant(now), zone)).transpose()?;
    let (timeout, timeout_date) = timeout(arguments, now, start.instant(now), zone)?;
    let hints = &arguments.hint;
    let lease = LeaseCreate {
        name: arguments.name.clone(),
        lease_type: arguments.lease_type.wire().map(str::to_owned),
        start_date: Some(start.wire()),
        end_date: end,
        duration: length.map(|length| wire_duration(length)).transpose()?,
        timeout,
        timeout_date,
        before_end_date: before_end.map(When::wire),
        end_action: arguments.end_action.map(|action| action.name().to_owned()),
        backfill: arguments.backfill,
        waitlist: arguments.waitlist,
        repeat: arguments.recurring.wire(now, start.instant(now), zone)?,
        scheduler_hints: (!hints.is_empty()).then(|| hints::body(hints)).transpose()?,
        reservations: Vec::new(),
        events: Vec::new(),
    };
    Ok(Body { lease, reservations })
}

/// Formats a duration for the service, with days as days.
fn wire_duration(text: &str) -> Result<String, ClientError> {
    let length = duration(text)?;
    Ok(text.parse::<Span>().map_or_else(|_| length.to_string(), |span| span.to_string()))
}

impl LeaseType {
    /// Type in requests. `None` is the service's default.
    fn wire(self) -> Option<&'static str> {
        match self {
            Self::Schedule => None,
            Self::Immediate => Some("IMMEDIATE"),
            Self::BestEffort => Some("BEST-EFFORT"),
        }
    }
}

/// Timeout of a best-effort lease, as a duration or as a date.
fn timeout(
    arguments: &Arguments,
    now: Timestamp,
    start: Timestamp,
    zone: &TimeZone,
) -> Result<(Option<String>, Option<String>), ClientError> {
    let Some(timeout) = &arguments.timeout else { return Ok((None, None)) };
    if arguments.lease_type != LeaseType::BestEffort {
        return Err(ClientError::Usage("--timeout needs --type best-effort".to_owned()));
    }
    match duration(timeout) {
        Ok(length) => Ok((Some(length.to_string()), None)),
        Err(_) => Ok((None, Some(When::parse_end(timeout, now, start, zone)?.wire()))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn body_of(words: &str) -> Result<Value, String> {
        let words = std::iter::once("create").chain(words.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let now = "2030-01-02T10:20:30Z".parse().expect("a timestamp");
        let body = body(&line.arguments, None, now, &TimeZone::UTC);
        body.map(|body| json!(body)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_lease_is_copied_with_its_length_and_other_dates() {
        let words = ["create", "again", "--like", "web", "--start", "2030-01-09T10:00Z"];
        let line = Line::try_parse_from(words).expect("arguments");
        let model = json!({"id": "l", "name": "web", "lease_type": "IMMEDIATE", "timeout_date": "2030-01-02T10:02:00Z",
            "start_date": "2030-01-02T10:00:00.000000", "end_date": "2030-01-02T14:00:00.000000", "end_action": "keep",
            "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}]});
        let now = "2030-01-02T10:20:30Z".parse().expect("a timestamp");
        let body = body(&line.arguments, Some(&model), now, &TimeZone::UTC).expect("a lease");
        let wanted = json!({"id": "l", "name": "again", "start_date": "2030-01-09 10:00",
            "end_date": "2030-01-09 14:00", "end_action": "keep", "reservations": model["reservations"]});
        assert_eq!(copied(model.clone(), &body), wanted);
    }

    #[test]
    fn a_copy_of_whole_days_ends_at_midnight_after_a_clock_change() {
        let line = Line::try_parse_from(["create", "wk2", "--like", "wk", "--start", "2027-04-02"]);
        let model =
            json!({"start_date": "2027-03-25T23:00:00.000000", "end_date": "2027-03-28T22:00:00.000000"});
        let now = "2027-01-02T10:20:30Z".parse().expect("a timestamp");
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let body = body(&line.expect("arguments").arguments, Some(&model), now, &berlin).expect("a lease");
        assert_eq!(body.lease.start_date.as_deref(), Some("2027-04-01 22:00"));
        assert_eq!(body.lease.end_date.as_deref(), Some("2027-04-04 22:00"));
    }

    #[test]
    fn a_copy_some_days_later_starts_at_the_same_time_of_day() {
        let copied = json!({"id": "l", "name": "web", "start_date": "2027-03-25T08:00:00.000000",
            "end_date": "2027-03-25T16:00:00.000000"});
        let copied: Lease = serde_json::from_value(copied).expect("a lease");
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let before = "2027-03-25T07:00:00Z".parse().expect("a timestamp");
        for (text, start) in [
            ("+7d", "2027-04-01T07:00:00Z"),
            ("+6d12h", "2027-03-31T19:00:00Z"),
            ("+168h", "2027-04-01T08:00:00Z"),
            ("now+7d", "now+7d"),
        ] {
            let moved = start_of_copy(text, &copied, before, &berlin);
            assert_eq!(moved.ok().as_deref(), Some(start), "{text}");
        }
        for wrong in ["+", "+1mo", "+soon"] {
            assert!(start_of_copy(wrong, &copied, before, &berlin).is_err(), "{wrong}");
        }
        let after = "2027-05-01T12:00:00Z".parse().expect("a timestamp");
        let past = start_of_copy("+2d", &copied, after, &berlin).expect_err("it is in the past").to_string();
        let wanted = "--start +2d: 2027-03-27 09:00 is in the past. It counts from the start of the copied lease; now+2d \
                      counts from now";
        assert_eq!(past, wanted);
    }

    #[test]
    fn copies_are_numbered() {
        let in_use = BTreeSet::from(["web", "web-2", "db-9", "db-10"].map(str::to_owned));
        for (copied, name) in [
            ("web", "web-3"),
            ("web-2", "web-3"),
            ("db-9", "db-11"),
            ("exam-2030", "exam-2030-2"),
            ("a-07", "a-07-2"),
            ("rack-b", "rack-b-2"),
        ] {
            assert_eq!(name_of_copy(copied, &in_use), name, "{copied}");
        }
    }

    #[test]
    fn times_of_day_belong_to_the_lease() {
        let day = "web --hosts 1 --start 2030-03-27T12:00Z --for 4h";
        for (words, field, wanted) in [
            ("--before-end-at 15:00", "before_end_date", "2030-03-27 15:00"),
            ("--before-end-at 16:00", "before_end_date", "2030-03-26 16:00"),
            ("--type best-effort --timeout 15:00", "timeout_date", "2030-03-27 15:00"),
        ] {
            assert_eq!(body_of(&format!("{day} {words}")).expect(words)[field], wanted, "{words}");
        }
        let series = body_of(&format!("{day} --every 1d --until fri")).expect("a series");
        assert_eq!(series["repeat"]["until"], "2030-03-30 00:00", "the first Friday after the start");
        let days = body_of("web --hosts 1 --start 2030-03-27T12:00Z --for 3d --before-end-at 11:00");
        assert_eq!(days.expect("a lease")["before_end_date"], "2030-03-30 11:00");
    }

    #[test]
    fn days_of_a_lease_that_recurs_are_sent_as_days() {
        let weekly =
            body_of("web --hosts 1 --start 2030-01-02T10:00Z --for 7d --every 1w --until 2030-02-05");
        let weekly = weekly.expect("a lease");
        assert_eq!((&weekly["duration"], &weekly["end_date"]), (&json!("P7D"), &Value::Null));
        assert_eq!(weekly["repeat"]["until"], "2030-02-06 00:00", "that day is included");
        let monthly = body_of("web --hosts 1 --start 2030-02-01 --end 2030-03-01 --every 1mo --times 2");
        assert_eq!(monthly.expect("a lease")["end_date"], "2030-03-01 00:00");
    }

    #[test]
    fn hosts_are_asked_for_from_now_on() {
        let wanted = json!({
            "name": "web", "start_date": "now", "end_date": "2030-01-05 10:20",
            "reservations": [{
                "resource_type": "physical:host", "min": 2, "max": 4, "hypervisor_properties": "",
                "resource_properties": r#"["==","$rack","r1"]"#,
            }],
        });
        assert_eq!(body_of("web --hosts 2-4 --where rack=r1 --for 3d"), Ok(wanted));
    }

    #[test]
    fn cls_05_every_property_of_hosts_has_an_option() {
        let words = "web --hosts 2 --for 1h --region north --zone az1 --host-vcpus 16 --host-memory 64G --host-disk 1T \
                     --alike --alike-in cpu_mhz --alike-in rack \
                     --extra-spec capabilities:cpu_info:arch=x86_64 --extra-spec n===4 --image-property img_hv_type=qemu";
        let wanted = json!({
            "resource_type": "physical:host", "min": 2, "max": 2, "hypervisor_properties": "",
            "resource_properties": "", "region": "north", "availability_zone": "az1", "vcpus": 16,
            "memory_mib": 65_536, "disk_gib": 1024, "homogeneous": true, "alike": ["cpu_mhz", "rack"],
            "extra_specs": {"capabilities:cpu_info:arch": "x86_64", "n": "==4"},
            "image_properties": {"img_hv_type": "qemu"},
        });
        assert_eq!(body_of(words).expect("a request")["reservations"], json!([wanted]));
        let alone = body_of("web --floating-ips 1 --network n --alike --for 1h").expect_err("no hosts");
        assert!(alone.contains("need --hosts"), "{alone}");
        assert!(body_of("web --hosts 1 --for 1h --extra-spec arch").is_err());
    }

    #[test]
    fn fb_f_what_is_to_be_survived_can_be_said_of_hosts_and_of_room_for_instances() {
        for words in
            ["web --hosts 2 --for 1h --survive rack", "ci --instances 2 --flavor f --for 1h --survive rack"]
        {
            let body = body_of(words).expect("a request");
            assert_eq!(body["reservations"][0]["survives"], "rack");
        }
        assert!(body_of("web --floating-ips 1 --network n --for 1h --survive rack").is_err());
    }

    #[test]
    fn instances_and_addresses_can_be_asked_for_together() {
        let words = "ci --instances 3 --vcpus 2 --memory 4G --disk 20 --affinity apart --floating-ips 1 \
                     --network public --start 2030-02-01 --end 2030-02-02";
        let wanted = json!([
            {"resource_type": "virtual:instance", "vcpus": 2, "memory_mb": 4096, "disk_gb": 20, "amount": 3,
             "affinity": false, "resource_properties": ""},
            {"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1, "required_floatingips": []},
        ]);
        let body = body_of(words).expect("a request");
        assert_eq!(body["reservations"], wanted);
        assert_eq!(body["start_date"], "2030-02-01 00:00");
        assert_eq!(body["end_date"], "2030-02-02 00:00");
    }

    #[test]
    fn cls_11_a_hints_are_given_by_their_names() {
        let words = "web --hosts 1 --for 1h --hint location=same --hint host=n1 --hint host=n2 --hint query=[\"=\",1]";
        let wanted = json!({"location": "same", "host": ["n1", "n2"], "query": "[\"=\",1]"});
        assert_eq!(body_of(words).expect("a request")["scheduler_hints"], wanted);
        for (hints, wrong) in [
            ("--hint location", "write NAME=VALUE"),
            ("--hint locatio=same", "unknown hint"),
            ("--hint location=same --hint location=different", "can be given only once"),
        ] {
            let refused = body_of(&format!("web --hosts 1 --for 1h {hints}")).expect_err(hints);
            assert!(refused.contains(wrong), "{refused}");
        }
    }

    #[test]
    fn a_flavor_takes_the_place_of_sizes() {
        let body = body_of("ci --instances 2 --flavor small --for 1h").expect("a request");
        let wanted =
            json!({"resource_type": "flavor:instance", "flavor_id": "small", "amount": 2, "affinity": null});
        assert_eq!(body["reservations"][0], wanted);
        assert!(body_of("ci --instances 2 --flavor small --vcpus 2 --for 1h").is_err());
        let body = body_of("ci --hosts 1 --for 1h --end-action snapshot --backfill").expect("a request");
        assert_eq!((&body["end_action"], &body["backfill"]), (&json!("snapshot"), &json!(true)));
    }

    #[test]
    fn incomplete_requests_are_refused_before_they_are_sent() {
        let cases = [
            ("web --for 1h", "no resources requested"),
            ("web --hosts 1", "the duration is missing: set --for or --end"),
            ("web --hosts 0 --for 1h", "a minimum and a maximum"),
            ("web --hosts 3-2 --for 1h", "a minimum and a maximum"),
            ("web --instances 1 --for 1h", "needs --vcpus"),
            ("web --floating-ips 1 --for 1h", "--network"),
            ("web --hosts 1 --for 1x", "invalid duration"),
            (
                "web --hosts 1 --for 1h --every day --times 2",
                "--every day: write a period such as 1d, 1w or 1mo",
            ),
            ("web --hosts 1 --for 1h --every 0d --times 2", "--every 0d: write a period"),
            ("web --instances 1 --flavor f --where rack=r1 --for 1h", "--where needs"),
            ("web --hosts 1 --start never --for 1h", "invalid time"),
            ("web --instances 1 --vcpus 1 --memory 4X --disk 1 --for 1h", "write MiB"),
        ];
        for (words, wanted) in cases {
            let error = body_of(words).expect_err(words);
            assert!(error.contains(wanted), "{words}: {error}");
        }
    }
}
