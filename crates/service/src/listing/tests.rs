//! Tests of paging: pages together are the whole list, and the cost of a page depends on its own length.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use leases::ids::ReservationId;
use leases::lease::{EndAction, NewLease};
use leases::project::{Owner, UserId};
use leases::terms::Terms;
use leases::window::Window;

use super::*;

/// Leases and their order, as in the service.
#[derive(Default)]
struct Shelf {
    records: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    order: Order,
}

impl Shelf {
    fn put(&mut self, record: LeaseRecord) {
        self.remove(record.lease.id);
        self.order.put_lease(&record);
        self.records.insert(record.lease.id, Arc::new(record));
    }

    fn remove(&mut self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        let record = self.records.remove(&id)?;
        self.order.remove_lease(&record);
        Some(record)
    }

    fn page(&self, filter: &LeaseFilter, after: Option<Position>, limit: usize) -> Page<LeaseRecord> {
        self.order.page_of_leases(filter, after, limit, |id| self.records.get(&id))
    }

    /// The whole list by filtering and sorting all records, for comparison.
    fn all(&self, filter: &LeaseFilter) -> Vec<LeaseId> {
        let mut all: Vec<_> =
            self.records.values().filter(|record| filter.lets_through(&record.lease)).collect();
        all.sort_by_key(|record| (record.created_at, record.lease.id));
        all.iter().map(|record| record.lease.id).collect()
    }
}

fn lease(id: u128, created: i64, project: &str, name: &str, status: LeaseStatus) -> LeaseRecord {
    let identity = NewLease {
        id: LeaseId(id),
        name: name.to_owned(),
        owner: Owner { project: ProjectId(project.into()), user: UserId("u".into()) },
        end_action: EndAction::DeleteGuests,
        reservations: Vec::<ReservationId>::new(),
    };
    let window = Window::starting(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(1));
    let terms = Terms::new(window, None, Vec::new()).expect("terms");
    let lease = Lease { status, ..Lease::new(identity, terms, Vec::new(), None) };
    LeaseRecord::new(lease, BTreeMap::new(), Timestamp::from_second(created).expect("a time"))
}

fn ids(page: &Page<LeaseRecord>) -> Vec<LeaseId> {
    page.items.iter().map(|record| record.lease.id).collect()
}

fn of(project: Option<&str>, name: Option<&str>, status: Option<LeaseStatus>) -> LeaseFilter {
    LeaseFilter {
        project: project.map(|project| ProjectId(project.to_owned())),
        name: name.map(str::to_owned),
        status,
        ..LeaseFilter::default()
    }
}

/// `count` leases, most of which are over and belong to project `many`. Project `few` has three.
fn shelf(count: u32) -> Shelf {
    let mut shelf = Shelf::default();
    for number in 0..count {
        let project = if number % (count / 3) == 1 { "few" } else { "many" };
        let status = if number % (count / 4) == 2 { LeaseStatus::Active } else { LeaseStatus::Terminated };
        let name = format!("lease {}", number % (count / 2));
        // Identifiers are random, so they aren't in order of time.
        let id = u128::from(number.wrapping_mul(2_654_435_761));
        shelf.put(lease(id, number.into(), project, &name, status));
    }
    shelf
}

#[test]
fn a_page_of_a_hundred_thousand_leases_looks_at_as_many_as_one_of_a_thousand() {
    let (small, large) = (shelf(1000), shelf(100_000));
    let filters = [
        of(None, None, None),
        of(Some("many"), None, None),
        of(Some("few"), None, None),
        of(Some("none"), None, None),
        of(None, Some("lease 7"), None),
        of(Some("many"), Some("lease 7"), None),
        of(None, None, Some(LeaseStatus::Active)),
        of(Some("many"), None, Some(LeaseStatus::Active)),
        of(Some("many"), None, Some(LeaseStatus::Pending)),
    ];
    for filter in filters {
        for limit in [1, 100] {
            let half_way = |shelf: &Shelf, count: i64| {
                let half = shelf.all(&of(None, None, None))[usize::try_from(count / 2).expect("small")];
                Position::from(shelf.records[&half].as_ref())
            };
            let looked_at = [
                small.page(&filter, None, limit).looked_at,
                large.page(&filter, None, limit).looked_at,
                small.page(&filter, Some(half_way(&small, 1000)), limit).looked_at,
                large.page(&filter, Some(half_way(&large, 100_000)), limit).looked_at,
            ];
            // One more than the limit is examined to find out whether the list continues.
            assert!(looked_at.iter().all(|count| *count <= limit + 1), "{filter:?} {looked_at:?}");
        }
    }
}

#[test]
fn a_page_of_a_filter_by_several_fields_looks_at_a_bounded_number_and_says_where_it_stopped() {
    let mut shelf = Shelf::default();
    for number in 0..20_000_u32 {
        let status = if number == 15_000 { LeaseStatus::Active } else { LeaseStatus::Terminated };
        shelf.put(lease(number.into(), number.into(), "p", "same", status));
    }
    let filter = of(Some("p"), Some("same"), Some(LeaseStatus::Active));
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = shelf.page(&filter, after, 10);
        assert!(page.looked_at <= MOST_LOOKED_AT + 1, "{}", page.looked_at);
        found.extend(ids(&page));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found, pages), (vec![LeaseId(15_000)], 5));
}

#[test]
fn no_page_ends_at_a_lease_of_another_project() {
    let mut shelf = Shelf::default();
    let series = Some(SeriesId(7));
    for number in 0..10_000_u32 {
        let mut record = lease(number.into(), number.into(), "theirs", "l", LeaseStatus::Pending);
        record.lease.series = series;
        shelf.put(record);
    }
    let filter = LeaseFilter { series, ..of(Some("own"), None, None) };
    let page = shelf.page(&filter, None, 1);
    assert_eq!((page.items.len(), page.next), (0, None));
}

/// Pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Leases are created, deleted and changed between the pages that a client reads. Leases that match
/// throughout are listed exactly once, in order, and no lease is listed twice. Without changes, the pages are
/// the whole list.
#[test]
fn pages_are_the_whole_list_whatever_comes_and_goes_meanwhile() {
    let statuses = [LeaseStatus::Pending, LeaseStatus::Active, LeaseStatus::Terminated];
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let mut shelf = Shelf::default();
        let (mut next_id, mut clock) = (0_u128, 0_i64);
        let mut create = |shelf: &mut Shelf, numbers: &mut Numbers| {
            next_id += 1;
            // Several leases can have the same creation time.
            clock += i64::try_from(numbers.below(2)).expect("small");
            let project = ["p", "q"][usize::try_from(numbers.below(2)).expect("small")];
            let name = ["a", "b"][usize::try_from(numbers.below(2)).expect("small")];
            let status = statuses[usize::try_from(numbers.below(3)).expect("small")];
            let id = (u128::from(numbers.below(1 << 30)) << 64) | next_id;
            shelf.put(lease(id, clock, project, name, status));
        };
        for _ in 0..numbers.below(60) {
            create(&mut shelf, &mut numbers);
        }
        let project = [None, Some("p")][usize::try_from(numbers.below(2)).expect("small")];
        let name = [None, Some("a")][usize::try_from(numbers.below(2)).expect("small")];
        let status = [None, Some(LeaseStatus::Active)][usize::try_from(numbers.below(2)).expect("small")];
        let filter = of(project, name, status);
        let changes = numbers.below(4);
        let limit = 1 + usize::try_from(numbers.below(7)).expect("small");
        let whole = shelf.all(&filter);
        let (mut there, mut ever) = (whole.clone(), whole.iter().copied().collect::<BTreeSet<_>>());
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = shelf.page(&filter, after, limit);
            assert!(page.items.len() <= limit);
            listed.extend(ids(&page));
            after = page.next;
            if after.is_none() {
                break;
            }
            for _ in 0..changes {
                let known: Vec<LeaseId> = shelf.records.keys().copied().collect();
                let any = known.get(usize::try_from(numbers.below(60)).expect("small")).copied();
                match (numbers.below(3), any) {
                    (0, Some(id)) => drop(shelf.remove(id)),
                    (1, Some(id)) => {
                        let mut record = LeaseRecord::clone(&shelf.records[&id]);
                        record.lease.status = statuses[usize::try_from(numbers.below(3)).expect("small")];
                        shelf.put(record);
                    }
                    _ => create(&mut shelf, &mut numbers),
                }
            }
            let now = shelf.all(&filter);
            there.retain(|id| now.contains(id));
            ever.extend(now);
        }
        if changes == 0 {
            assert_eq!(listed, whole, "seed {seed}");
        }
        assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len(), "twice: seed {seed}");
        let kept: Vec<LeaseId> = listed.iter().copied().filter(|id| there.contains(id)).collect();
        assert_eq!(kept, there, "seed {seed}");
        assert!(listed.iter().all(|id| ever.contains(id)), "seed {seed}");
    }
}
