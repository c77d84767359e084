//! Free hosts, instance capacity or addresses over a window, as a step function.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Admission, Refusal};
use crate::filters::{FilterReport, HostFilter, screen};
use crate::host::{Health, Host};
use crate::ids::HostId;
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::{FloatingIpsTerms, HostsTerms, ReservationTerms, SlotsTerms, Terms};
use crate::window::Window;

/// Cost of a look at a booking or an address.
const LOOKING: u64 = 20;

/// Free capacity over a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Capacity if nothing were booked: number of hosts, instances of the requested size, or addresses.
    pub total: u64,
    /// Free part of the total. The windows are in order and without gaps between them, and adjacent windows
    /// have different numbers. Cleaning time counts as booked.
    pub steps: Vec<(Window, u64)>,
}

/// Changes of the free amount, in any order, with their instants in microseconds, as dates are stored. There
/// can be very many changes, and integers sort faster than timestamps.
#[derive(Debug, Default)]
struct Changes(Vec<(i64, i64)>);

impl Changes {
    fn add(&mut self, window: &Window, number: u64) {
        if window.is_empty() {
            return;
        }
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.at(window.start().as_microsecond(), number);
        self.at(window.end().as_microsecond(), -number);
    }

    fn at(&mut self, at: i64, change: i64) {
        if change == 0 {
            return;
        }
        match self.0.last_mut() {
            // An end and a start at the same instant become a single change, or cancel out. All changes are
            // sorted in the end, so fewer are faster.
            Some((last, sum)) if *last == at => *sum += change,
            _ => self.0.push((at, change)),
        }
    }

    fn steps(mut self, within: Window) -> Vec<(Window, u64)> {
        let mut steps: Vec<(Window, u64)> = Vec::new();
        let (mut since, mut free) = (within.start(), 0_i64);
        let mut push = |since: Timestamp, until: Timestamp, free: i64| {
            if since >= until {
                return;
            }
            let number = u64::try_from(free).unwrap_or(0);
            let Ok(window) = Window::new(since, until) else { return };
            match steps.last_mut() {
                Some((last, same)) if *same == number => {
                    *last = Window::new(last.start(), until).unwrap_or(*last);
                }
                _ => steps.push((window, number)),
            }
        };
        self.0.sort_unstable_by_key(|(at, _)| *at);
        let mut changes = self.0.into_iter().peekable();
        while let Some((at, mut change)) = changes.next() {
            while let Some((_, same)) = changes.next_if(|(next, _)| *next == at) {
                change += same;
            }
            if change == 0 {
                continue;
            }
            // Times below a microsecond are dropped, so the instant can fall just before `since`.
            let at = Timestamp::from_microsecond(at).unwrap_or(since).max(since);
            push(since, at, free);
            (since, free) = (at, free + change);
        }
        push(since, within.end(), free);
        steps
    }
}

impl Admission<'_> {
    /// The earliest windows of the given length in which a project could be allocated everything in the
    /// request. Returns at most `most` windows, without overlap.
    ///
    /// # Errors
    /// The same as [`Self::availability`].
    pub fn earliest_windows(
        &self,
        project: &ProjectId,
        asked: &ReservationTerms,
        within: Window,
        (length, most): (SignedDuration, usize),
    ) -> Result<Vec<Window>, Refusal> {
        let within = within.since(self.now);
        let checked = self.check_length(project, &Window::starting(within.start(), length), [asked]);
        if checked.is_err() || within.length() < length {
            return Ok(Vec::new());
        }
        match asked {
            ReservationTerms::Hosts(asked) if self.is_by_calendar_alone(asked, within) => {
                self.rules.check_hosts(asked)?;
                let admission = self.asked_by(project).lasting(length);
                let (hosts, _) = admission.suitable(asked, within.end());
                let hosts: Vec<HostId> = hosts.iter().map(|host| host.id).collect();
                let count = asked.min() as usize;
                let most = (most, self.budget);
                Ok(self.calendar.earliest_windows(&hosts, count, length, &within, most))
            }
            _ => self
                .remembering(|admission| admission.granted_windows(project, asked, within, (length, most))),
        }
        .and_then(|found| self.settled(&[asked], Ok(found)))
    }

    /// Whether the calendar alone decides when enough matching hosts are free together.
    fn is_by_calendar_alone(&self, asked: &HostsTerms, within: Window) -> bool {
        let alike = asked.properties.compares_hosts() || asked.properties.survives.is_some();
        let working = || self.inventory.hosts().all(|host| host.health == Health::Up);
        let empty = !self.starts_at_once(within.start()) || self.facts.occupied.is_empty();
        !alike && empty && working() && self.facts.waking.as_ref().is_none_or(BTreeMap::is_empty)
    }

    /// Finds each window with a full decision, as for a lease.
    fn granted_windows(
        &self,
        project: &ProjectId,
        asked: &ReservationTerms,
        within: Window,
        (length, most): (SignedDuration, usize),
    ) -> Result<Vec<Window>, Refusal> {
        let (mut found, mut rest) = (Vec::new(), within);
        while found.len() < most && rest.length() >= length {
            let terms = Terms::new(Window::starting(rest.start(), length), None, vec![asked.clone()]);
            match self.grant(project, &terms.and_then(|terms| terms.anywhere_in(rest))?) {
                Ok(grant) => {
                    let window = grant.terms.window();
                    rest = rest.since(window.end());
                    found.push(window);
                }
                Err(ended @ (Refusal::TooCostly(_) | Refusal::Canceled)) => return Err(ended),
                Err(_) => break,
            }
        }
        Ok(found)
    }

    /// The hosts that match by `end`, whether free or booked.
    fn suitable(&self, asked: &HostsTerms, end: Timestamp) -> (Vec<&Host>, FilterReport) {
        let screening = self.screening(asked.properties.specs());
        let unsuited = self.unsuited(asked);
        let objection = |host: &Host| {
            self.barred(host, end).or_else(|| unsuited(host)).or_else(|| self.too_long(host, None))
        };
        screen(self.inventory.hosts(), screening, &objection, &[])
    }

    /// Free capacity for a project at each instant of the window. The requested amount doesn't matter.
    ///
    /// Hosts that are closed now count as never free. Hosts that don't work count as free from the time when
    /// they would no longer be replaced, and hosts that are off from the time when they can be on. Capacity held for offers counts as free, because any request takes
    /// precedence over offers.
    ///
    /// # Errors
    /// [`Refusal::Region`] and [`Refusal::FilterLeftOut`] for requests that are never granted;
    /// [`Refusal::TooCostly`] and [`Refusal::Canceled`] if the budget stops the decision.
    pub fn availability(
        &self,
        project: &ProjectId,
        asked: &ReservationTerms,
        within: Window,
    ) -> Result<Availability, Refusal> {
        let admission = self.asked_by(project);
        let found = match asked {
            ReservationTerms::Hosts(asked) => {
                self.rules.check_hosts(asked)?;
                admission.free_hosts(asked, within)
            }
            ReservationTerms::Instances(asked) => admission.free_slots(&asked.slots(), within),
            ReservationTerms::Flavor(asked) => admission.free_slots(&asked.slots(), within),
            ReservationTerms::FloatingIps(asked) => admission.free_addresses(asked, within),
        };
        self.settled(&[asked], Ok(found))
    }

    fn free_hosts(&self, asked: &HostsTerms, within: Window) -> Availability {
        let (hosts, _) = self.suitable(asked, within.end());
        let mut changes = Changes::default();
        let cleaning = self.calendar.cleaning_time();
        for host in &hosts {
            if !self.look_at(host.id, &within) {
                break;
            }
            // A gap that ends at a booking is shorter by the cleaning time. A gap that ends with the window
            // is not.
            for gap in self.calendar.free_gaps(host.id, &within.widened(cleaning), None) {
                let start = gap.start().checked_add(cleaning).unwrap_or(Timestamp::MAX);
                let start = start.max(self.usable_from(host)).max(self.empty_from(host));
                let end = gap.end().checked_sub(cleaning).unwrap_or(Timestamp::MIN);
                if let Ok(free) = Window::new(start, end) {
                    changes.add(&free, 1);
                }
            }
        }
        Availability { total: hosts.len() as u64, steps: changes.steps(within) }
    }

    fn free_slots(&self, asked: &SlotsTerms<'_>, within: Window) -> Availability {
        let suits = |host: &Host| {
            let meets = asked.requirement.is_none_or(|requirement| self.meets(requirement, host));
            meets && asked.traits.is_none_or(|traits| traits.admit(host))
        };
        let objection = |host: &Host| self.barred(host, within.end());
        let (hosts, _) = screen(
            self.inventory.hosts(),
            self.screening(0),
            &objection,
            &[(HostFilter::ResourceProperties, &suits)],
        );
        let (mut changes, mut total) = (Changes::default(), 0);
        for host in hosts {
            if !self.look_at(host.id, &within) {
                break;
            }
            let capacity = host.capacity();
            total += u64::from(capacity.slots(&Resources::default(), &asked.size));
            let Ok(usable) = Window::new(within.start().max(self.usable_from(host)), within.end()) else {
                continue;
            };
            self.room(host.id, usable, |part, used| {
                changes.add(&part, capacity.slots(used, &asked.size).into());
            });
        }
        Availability { total, steps: changes.steps(within) }
    }

    /// The first instant at which the host can be allocated, as far as its health, its power and being closed
    /// matter.
    fn usable_from(&self, host: &Host) -> Timestamp {
        let working = match self.out_of_use(host, self.now) {
            Some(_) => self.recovery().unwrap_or(Timestamp::MAX),
            None => Timestamp::MIN,
        };
        working.max(self.on_from(host.id))
    }

    /// The first start for which the whole host can be allocated, as far as guests that can't be removed
    /// matter.
    fn empty_from(&self, host: &Host) -> Timestamp {
        if self.facts.occupied.contains(&host.id) { self.cleared_by_itself() } else { Timestamp::MIN }
    }

    /// Calls `tell` with each part of the window in which the host is neither leased as a whole nor cleaned
    /// before or after such a lease, and with its use in that part. One sweep over starts and ends.
    fn room(&self, host: HostId, within: Window, mut tell: impl FnMut(Window, &Resources)) {
        let cleaning = self.calendar.cleaning_time();
        let mut turns = Vec::new();
        for (window, booking) in self.calendar.bookings_in(host, within.widened(cleaning)) {
            let taken = if booking.used.is_some() { window } else { window.widened(cleaning) };
            if taken.overlaps(&within) {
                turns.push((taken.start().max(within.start()), true, booking.used.as_ref()));
                turns.push((taken.end().min(within.end()), false, booking.used.as_ref()));
            }
        }
        // Ends come before starts at the same instant.
        turns.sort_unstable_by_key(|(at, begins, _)| (*at, *begins));
        let (mut whole, mut used, mut since) = (0_u32, Resources::default(), within.start());
        for (at, begins, part) in turns.into_iter().chain([(within.end(), false, None)]) {
            if let Ok(part) = Window::new(since, at)
                && whole == 0
            {
                tell(part, &used);
            }
            since = at;
            match (part, begins) {
                (None, true) => whole += 1,
                (None, false) => whole = whole.saturating_sub(1),
                (Some(size), true) => used.add(1, size),
                (Some(size), false) => used.subtract(1, size),
            }
        }
    }

    fn free_addresses(&self, asked: &FloatingIpsTerms, within: Window) -> Availability {
        let (mut changes, mut total) = (Changes::default(), 0);
        for ip in self.inventory.floating_ips() {
            if !self.budget.spend(LOOKING) {
                break;
            }
            let wanted = asked.required().is_empty() || asked.required().contains(&ip.address);
            if ip.network != asked.network || !ip.reservable || !wanted {
                continue;
            }
            total += 1;
            for gap in self.calendar.floating_ip_gaps(ip.id, &within) {
                if !self.budget.spend(LOOKING) {
                    break;
                }
                changes.add(&gap, 1);
            }
        }
        Availability { total, steps: changes.steps(within) }
    }

    /// Charges for the bookings of the host near the window. Returns false once the budget is used up.
    fn look_at(&self, host: HostId, within: &Window) -> bool {
        self.budget.spend(LOOKING * (1 + self.calendar.near(host, within) as u64))
    }
}
