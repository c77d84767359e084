//! Leases as rows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::ids::{LeaseId, ReservationId, SeriesId};
use leases::lease::{EventStatuses, Lease, Reservation};
use leases::lease_type::LeaseType;
use leases::project::{Owner, ProjectId, UserId};
use leases::status::{EventStatus, LeaseStatus};
use leases::window::Window;
use serde::{Deserialize, Serialize};

use super::{
    Extras, LongText, StoredText, Unreadable, end_action_from_name, end_action_name, extras_from_json,
    extras_json, from_hex, hex, hunt_from_json, hunt_json, named, standing_from_json, standing_json,
};
use crate::{LeaseRecord, Version, Wording};

/// A lease as a row with named columns in JSON. A statement writes many rows, because a statement costs more
/// than a row. A row is read as a whole, because each column has a cost too. Reservations have rows of their
/// own.
#[derive(Debug, Serialize, Deserialize)]
pub struct LeaseRow<'a> {
    /// In the format of [`hex`].
    #[serde(borrow)]
    id: Cow<'a, str>,
    /// Version that this write replaces. `None` for new leases, and for rows that were read.
    expected: Option<i64>,
    version: i64,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    project: Cow<'a, str>,
    #[serde(borrow)]
    user_id: Cow<'a, str>,
    #[serde(borrow)]
    lease_type: Cow<'a, str>,
    deadline_us: Option<i64>,
    starts_us: i64,
    ends_us: i64,
    before_end_us: Option<i64>,
    #[serde(borrow)]
    end_action: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    start_event: Cow<'a, str>,
    #[serde(borrow)]
    before_end_event: Cow<'a, str>,
    #[serde(borrow)]
    end_event: Cow<'a, str>,
    reason: Option<Cow<'a, str>>,
    hunt: Option<Cow<'a, str>>,
    standing: Option<Cow<'a, str>>,
    series: Option<Cow<'a, str>>,
    extras: Option<Cow<'a, str>>,
    created_at_us: i64,
    updated_at_us: Option<i64>,
}

impl<'a> LeaseRow<'a> {
    /// The row of a lease that is new, or replaces version `expected`. `escape` converts text to the form in which the
    /// database stores it. Long text is added to `long`, and the row refers to it.
    pub fn of(
        record: &'a LeaseRecord,
        expected: Option<Version>,
        long: &mut LongText,
        escape: fn(&str) -> Cow<'_, str>,
    ) -> Self {
        let LeaseRecord { lease, version, created_at, updated_at, .. } = record;
        let mut text = |text: &'a str| match long.column(text) {
            Cow::Borrowed(text) => escape(text),
            Cow::Owned(text) => Cow::Owned(escape(&text).into_owned()),
        };
        let name = text(&lease.name);
        let reason = lease.reason.as_deref().map(&mut text);
        Self {
            id: hex(lease.id.0).into(),
            expected: expected.map(|version| version.0.cast_signed()),
            version: version.0.cast_signed(),
            name,
            project: escape(&lease.owner.project.0),
            user_id: escape(&lease.owner.user.0),
            lease_type: lease.lease_type.name().into(),
            deadline_us: lease.lease_type.deadline().map(Timestamp::as_microsecond),
            starts_us: lease.window.start().as_microsecond(),
            ends_us: lease.window.end().as_microsecond(),
            before_end_us: lease.before_end.map(Timestamp::as_microsecond),
            end_action: end_action_name(lease.end_action).into(),
            status: lease.status.name().into(),
            start_event: lease.events.start.name().into(),
            before_end_event: lease.events.before_end.name().into(),
            end_event: lease.events.end.name().into(),
            reason,
            hunt: lease.hunt.as_ref().map(|hunt| long.document(hunt_json(hunt)).into()),
            standing: standing_json(lease.standing).map(Cow::from),
            series: lease.series.map(|series| hex(series.0).into()),
            extras: extras_json(lease, long).map(Cow::Owned),
            created_at_us: created_at.as_microsecond(),
            updated_at_us: updated_at.map(Timestamp::as_microsecond),
        }
    }

    pub fn is_new(&self) -> bool {
        self.expected.is_none()
    }

    pub fn id(&self) -> Result<LeaseId, Unreadable> {
        from_hex(&self.id).map(LeaseId)
    }

    /// The lease of this row. Its columns must not contain text that is escaped for a database.
    pub fn record(
        self,
        reservations: Vec<Reservation>,
        wording: BTreeMap<ReservationId, Wording>,
        stored: &mut StoredText,
    ) -> Result<LeaseRecord, Unreadable> {
        let event = |name: &str| named("event status", name, EventStatus::from_name);
        let deadline = self.deadline_us.map(instant).transpose()?;
        let starts = instant(self.starts_us)?;
        let window = Window::new(starts, instant(self.ends_us)?);
        let Extras { hints, before_start, marks, backfill } =
            extras_from_json(self.extras.as_deref(), stored)?;
        let lease = Lease {
            id: self.id()?,
            lease_type: named("lease type", &self.lease_type, |name| LeaseType::from_parts(name, deadline))?,
            window: window.map_err(|error| Unreadable::new("window", &self.id, error))?,
            before_start,
            before_end: self.before_end_us.map(instant).transpose()?,
            end_action: named("end action", &self.end_action, end_action_from_name)?,
            reservations,
            status: named("lease status", &self.status, LeaseStatus::from_name)?,
            events: EventStatuses {
                start: event(&self.start_event)?,
                before_end: event(&self.before_end_event)?,
                end: event(&self.end_event)?,
            },
            name: stored.text(&self.name)?.to_owned(),
            owner: Owner {
                project: ProjectId(self.project.into_owned()),
                user: UserId(self.user_id.into_owned()),
            },
            reason: self.reason.map(|reason| stored.text(&reason).map(str::to_owned)).transpose()?,
            hunt: self.hunt.map(|hunt| hunt_from_json(stored.document(&hunt)?)).transpose()?,
            standing: standing_from_json(self.standing.as_deref())?,
            series: self.series.as_deref().map(from_hex).transpose()?.map(SeriesId),
            hints,
            marks,
            backfill,
        };
        Ok(LeaseRecord {
            lease,
            wording,
            version: Version(self.version.cast_unsigned()),
            created_at: instant(self.created_at_us)?,
            updated_at: self.updated_at_us.map(instant).transpose()?,
        })
    }
}

pub(super) fn instant(us: i64) -> Result<Timestamp, Unreadable> {
    // `Timestamp::from_microsecond` rejects fractions of the last valid second, so the second and its
    // fraction are passed separately.
    let (second, rest_us) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let nanos = i32::try_from(rest_us * 1000).unwrap_or(0);
    Timestamp::new(second, nanos).map_err(|error| Unreadable::new("time", us, error))
}
