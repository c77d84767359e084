//! A request and the leases that can move, as an integer program. Its solution is the smallest number of
//! moves that free enough hosts.

use std::collections::{BTreeMap, BTreeSet};

use highs::{Col, HighsModelStatus, RowProblem, Sense};
use jiff::Timestamp;
use leases::ids::HostId;
use leases::lease::{Allocation, Lease};
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use leases::window::Window;

use super::fleet::Fleet;

/// Result of the solver.
#[derive(Debug)]
pub enum Exact {
    /// This many moves are enough, and fewer aren't. A move takes one host from a reservation.
    Fewest { moves: usize, moved: Vec<Lease> },
    /// No moves are enough.
    Impossible,
    /// The time limit expired first.
    Unknown,
}

/// Threshold above which a 0/1 variable counts as set.
const SET: f64 = 0.5;

/// A reservation of whole hosts, either of a lease that can move or of the request.
struct Claim<'a> {
    /// The lease and the position of the reservation in it. `None` for the request.
    of: Option<(&'a Lease, usize)>,
    terms: &'a HostsTerms,
    /// Time in which no other claim can have its hosts, cleaning included.
    window: Window,
    count: usize,
    held: BTreeSet<HostId>,
    /// Hosts that the claim can get or keep.
    hosts: BTreeSet<HostId>,
}

/// Solves the integer program within this time limit.
pub fn solve(fleet: &Fleet, terms: &Terms, seconds: f64) -> Exact {
    let claims = claims(fleet, terms);
    if claims.iter().any(|claim| claim.hosts.len() < claim.count) {
        return Exact::Impossible;
    }
    let mut problem = RowProblem::new();
    let column = |claim: &Claim<'_>, host: &HostId, problem: &mut RowProblem| {
        // Each host that is kept saves a move.
        let kept = claim.held.contains(host);
        problem.add_integer_column(if kept { -1.0 } else { 0.0 }, 0..=1)
    };
    let columns: Vec<BTreeMap<HostId, Col>> = claims
        .iter()
        .map(|claim| claim.hosts.iter().map(|host| (*host, column(claim, host, &mut problem))).collect())
        .collect();
    for (claim, columns) in claims.iter().zip(&columns) {
        has_its_number(fleet, claim, columns, &mut problem);
    }
    for host in fleet.inventory.hosts() {
        let there: Vec<(Window, Col)> = claims
            .iter()
            .zip(&columns)
            .filter_map(|(claim, columns)| Some((claim.window, *columns.get(&host.id)?)))
            .collect();
        one_at_a_time(&there, &mut problem);
    }
    let mut model = problem.optimise(Sense::Minimise);
    model.make_quiet();
    model.set_option("time_limit", seconds);
    model.set_option("threads", 1);
    // Presolve of HiGHS 1.15.0 reports some feasible models as infeasible, likely due to ERGO-Code/HiGHS#3216.
    model.set_option("presolve", "off");
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_abs_gap", 0.5);
    let solved = model.solve();
    match solved.status() {
        HighsModelStatus::Optimal => {}
        HighsModelStatus::Infeasible => return Exact::Impossible,
        _ => return Exact::Unknown,
    }
    let values = solved.get_solution();
    let hosts = |columns: &BTreeMap<HostId, Col>| -> BTreeSet<HostId> {
        let set = columns.iter().filter(|(_, column)| values.columns()[column.index()] > SET);
        set.map(|(host, _)| *host).collect()
    };
    let (mut moves, mut moved) = (0, BTreeMap::new());
    for (claim, columns) in claims.iter().zip(&columns) {
        let Some((lease, position)) = claim.of else { continue };
        let hosts = hosts(columns);
        let left = claim.held.difference(&hosts).count();
        if left > 0 {
            moves += left;
            let lease = moved.entry(lease.id).or_insert_with(|| lease.clone());
            lease.reservations[position].allocation = Allocation::Hosts(hosts);
        }
    }
    Exact::Fewest { moves, moved: moved.into_values().collect() }
}

fn claims<'a>(fleet: &'a Fleet, terms: &'a Terms) -> Vec<Claim<'a>> {
    let mut claims = Vec::new();
    for terms_of_hosts in terms.reservations.iter().filter_map(of_hosts) {
        let (held, count) = (BTreeSet::new(), terms_of_hosts.min() as usize);
        claims.push(claim(fleet, terms.window(), terms_of_hosts, (count, held), None));
    }
    for lease in fleet.movable() {
        for (position, reservation) in lease.reservations.iter().enumerate() {
            let (Some(terms), Allocation::Hosts(held)) =
                (of_hosts(&reservation.terms), &reservation.allocation)
            else {
                continue;
            };
            let held = (held.len(), held.clone());
            claims.push(claim(fleet, lease.window, terms, held, Some((lease, position))));
        }
    }
    claims
}

fn of_hosts(terms: &ReservationTerms) -> Option<&HostsTerms> {
    if let ReservationTerms::Hosts(terms) = terms { Some(terms) } else { None }
}

fn claim<'a>(
    fleet: &Fleet,
    window: Window,
    terms: &'a HostsTerms,
    (count, held): (usize, BTreeSet<HostId>),
    of: Option<(&'a Lease, usize)>,
) -> Claim<'a> {
    let cleaning = fleet.calendar.cleaning_time();
    let window = Window::starting(window.start(), window.length() + cleaning);
    let is_free = |host: HostId| {
        fleet.calendar.bookings(host).all(|(other, booking)| {
            let moves = fleet.lease(booking.lease).is_some_and(|lease| fleet.may_move(lease));
            moves || !Window::starting(other.start(), other.length() + cleaning).overlaps(&window)
        })
    };
    let usable = fleet.inventory.hosts().map(|host| host.id);
    let usable = usable.filter(|host| fleet.suits(*host, terms) && is_free(*host));
    let hosts = usable.chain(held.iter().copied()).collect();
    Claim { of, terms, window, count, held, hosts }
}

/// Constrains the claim to its number of hosts, all of one kind if it requires equal hosts.
fn has_its_number(
    fleet: &Fleet,
    claim: &Claim<'_>,
    columns: &BTreeMap<HostId, Col>,
    problem: &mut RowProblem,
) {
    let count = claim.count as f64;
    let all: Vec<(Col, f64)> = columns.values().map(|column| (*column, 1.0)).collect();
    problem.add_row(count..=count, &all);
    if !claim.terms.properties.homogeneous {
        return;
    }
    let mut kinds: BTreeMap<&str, Vec<(Col, f64)>> = BTreeMap::new();
    for (host, column) in columns {
        kinds.entry(fleet.kind(*host)).or_default().push((*column, 1.0));
    }
    for mut hosts in kinds.into_values() {
        // Either all hosts are of this kind, or no host is.
        let kind = problem.add_integer_column(0.0, 0..=1);
        hosts.push((kind, -count));
        problem.add_row(0..=0, &hosts);
    }
}

/// At each instant, at most one claim has the host.
fn one_at_a_time(there: &[(Window, Col)], problem: &mut RowProblem) {
    let starts: BTreeSet<Timestamp> = there.iter().map(|(window, _)| window.start()).collect();
    let mut rows: Vec<BTreeSet<usize>> = Vec::new();
    for start in starts {
        let claims: BTreeSet<usize> =
            (0..there.len()).filter(|number| there[*number].0.contains(start)).collect();
        if rows.last().is_some_and(|last| last.is_subset(&claims)) {
            rows.pop();
        }
        rows.push(claims);
    }
    for row in rows.iter().filter(|row| row.len() > 1) {
        let row: Vec<(Col, f64)> = row.iter().map(|number| (there[*number].1, 1.0)).collect();
        problem.add_row(..=1, &row);
    }
}
