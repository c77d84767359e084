//! Measures usage queries: `cargo run --release -p store-sqlite --example usage -- FILE [PROJECTS
//! [FIRST_SECOND]]`.
//!
//! Fills a file that has no usage with a year of leases, 30 per month and project with two hosts each, and
//! queries a month. The year begins at that second of the Unix epoch.

use std::error::Error;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::project::{Owner, ProjectId, UserId};
use leases::usage::{By, Entries, Held, Query, Size, Span, by_group};
use leases::window::Window;
use store::{Commit, Store};
use store_sqlite::SqliteStore;

const MONTHS: i64 = 12;
const LEASES_A_MONTH: i64 = 30;

/// Start of 2030, UTC.
const FIRST_SECOND: i64 = 1_893_456_000;

fn spans(project: u64, number: i64, month: Window) -> Vec<Span> {
    let id = u128::from(project) * 10_000 + number as u128;
    let start = month.start() + SignedDuration::from_hours(24 * (number % LEASES_A_MONTH));
    let span = |held, host: Option<u64>, size| Span {
        held,
        host: host.map(HostId),
        pool: host.map(|_| "freepool".to_owned()),
        flavor: None,
        size,
        lease: Some(LeaseId(id)),
        reservation: Some(ReservationId(id)),
        owner: Owner { project: ProjectId(format!("project-{project}")), user: UserId("user".to_owned()) },
        lease_type: Some("SCHEDULE".to_owned()),
        begins: true,
        window: Window::starting(start, SignedDuration::from_hours(8)),
        open: false,
    };
    let size = Size { count: 1, cores: 64, memory_mib: 262_144, disk_gib: 2000 };
    let host = |number| span(Held::Host, Some(number), size);
    vec![span(Held::Lease, None, Size::ONE), host(project * 2), host(project * 2 + 1)]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a file")?;
    let projects: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let first = arguments.next().map_or(Ok(FIRST_SECOND), |text| text.parse())?;
    let month = |number: i64| -> Result<Window, jiff::Error> {
        let start = Timestamp::from_second(first)? + SignedDuration::from_hours(720 * number);
        Ok(Window::starting(start, SignedDuration::from_hours(720)))
    };
    let store = SqliteStore::open(&file).await?;
    for project in 0..projects {
        let mut usage = Entries::default();
        for number in 0..MONTHS * LEASES_A_MONTH {
            usage.opened.extend(spans(project, number, month(number / LEASES_A_MONTH)?));
        }
        store.commit(&Commit { usage, ..Commit::new(Timestamp::UNIX_EPOCH) }).await?;
    }
    let by = By { project: true, ..By::default() };
    let days = (0..30).map(|day| {
        let start = month(MONTHS - 1).map(|month| month.start() + SignedDuration::from_hours(24 * day))?;
        Ok(Window::starting(start, SignedDuration::from_hours(24)))
    });
    let days = days.collect::<Result<Vec<_>, jiff::Error>>()?;
    let whole = Query { periods: vec![month(MONTHS - 1)?], by, ..Query::default() };
    let questions = [
        ("the last month by project", whole.clone()),
        ("the first month by project", Query { periods: vec![month(0)?], ..whole.clone() }),
        ("the last month by project and lease", Query { by: By { lease: true, ..by }, ..whole.clone() }),
        ("the last month by project and day", Query { periods: days, ..whole.clone() }),
        (
            "the last month for a single project",
            Query { project: Some(ProjectId("project-7".into())), ..whole.clone() },
        ),
        ("a lease", Query { lease: Some(LeaseId(70_345)), ..whole }),
    ];
    for (what, query) in questions {
        let begun = Instant::now();
        let groups = by_group(&store.usage(&query).await?).len();
        println!("{what}: {groups} groups in {:?}", begun.elapsed());
    }
    Ok(())
}
