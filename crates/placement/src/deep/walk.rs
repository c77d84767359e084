//! Simulated annealing over arrangements (Kirkpatrick, Gelatt and Vecchi): a random walk that prefers better
//! arrangements more and more strictly.
//!
//! There are two kinds of step. A *retarget* replaces one of an instance's two nodes by the best possible
//! node. An *exchange* moves an instance to a random node, and the instance from there that fits best back. A
//! sequence of single moves doesn't find this, since each alone is bad. Candidates are found by sketches, and
//! judged properly before they are carried out. Most steps find nothing that is good enough for the
//! temperature.
//!
//! Moves have a price. It rises while the walk spends more of them than allowed, and falls while it spends
//! less.

use cluster::{Cluster, InstanceIdx, MirrorClass, NodeIdx};

use super::arrangement::{Arrangement, Role, Shift};
use super::atlas::{Atlas, Journey, Pair, Price};
use super::sketch::{Leg, Sketcher};
use crate::dice::Dice;

/// Steps of a round per movable instance.
const STEPS_PER_INSTANCE: usize = 4;
/// Number of exchanges in sixteen steps.
const EXCHANGES: usize = 15;
/// Number of exchanges between a primary and a secondary in sixteen exchanges.
const CROSSINGS: usize = 2;
/// Margin by which a sketch can exceed the acceptable score and still be judged, in units of the average
/// score change of a random move.
const SLACK: f64 = 0.001;
/// Initial price of a move, in the same units.
const FIRST_PRICE: f64 = 0.1;
/// Number of random moves sampled to measure their average score change.
const ROUGHNESS_SAMPLE: usize = 2_000;

/// An instance and its target.
pub(super) type Goal = (InstanceIdx, Pair);

/// Search space of a walk.
#[derive(Clone, Debug)]
pub(super) struct Country<'a> {
    pub cluster: &'a Cluster,
    pub atlas: Atlas<'a>,
    /// Instances that may move.
    pub instances: Vec<InstanceIdx>,
    /// Nodes that can be targets.
    pub online: Vec<NodeIdx>,
    /// Maximum number of moves and copies.
    pub limit: Price,
}

impl Country<'_> {
    /// Whether the instance has a mirror that can be moved.
    fn mirrored(&self, instance: InstanceIdx) -> bool {
        self.cluster.instance(instance).template.mirror() == MirrorClass::Internal
    }
}

/// Position of an instance that isn't in the list of instances away from home.
const HOME: u32 = u32::MAX;
/// Minimum price of a move, so that no move is made without a gain.
const LEAST_PRICE: f64 = 1e-7;

/// A random walk; see the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    country: &'a Country<'a>,
    place: Arrangement<'a>,
    spent: Price,
    /// Instances that aren't at their place at the start, and the position of each in this list.
    away: Vec<InstanceIdx>,
    position: Vec<u32>,
    /// Movable instances on each node, by role.
    residents: Vec<[Vec<InstanceIdx>; 2]>,
    dice: Dice,
    /// Average score change of a random move: the unit of temperatures and prices.
    roughness: f64,
    step_price: f64,
    copy_price: f64,
    /// Price of each journey, added to the score of an arrangement.
    fares: [f64; 4],
    /// Journey of each instance to its current place.
    journeys: Vec<Journey>,
    /// Whether spending must stay within the limit.
    hard: bool,
    temperature: f64,
    /// Buffers for the changes of a trial.
    shifts: [Shift; 2],
    /// The best arrangement within the limit at the end of a round, with its score and fares.
    best: Option<(f64, Vec<Pair>)>,
}

impl<'a> Walk<'a> {
    pub fn new(country: &'a Country<'a>, start: &Arrangement<'a>, seed: u64) -> Self {
        let mut residents: Vec<[Vec<InstanceIdx>; 2]> = Vec::new();
        residents.resize_with(country.cluster.nodes.len(), Default::default);
        for &instance in &country.instances {
            for (node, role) in roles(start.pair(instance)) {
                residents[node.at()][role as usize].push(instance);
            }
        }
        Self {
            country,
            place: start.clone(),
            spent: Price::default(),
            away: Vec::new(),
            position: vec![HOME; country.cluster.instances.len()],
            residents,
            dice: Dice(seed),
            roughness: 0.0,
            step_price: LEAST_PRICE,
            copy_price: 10.0 * LEAST_PRICE,
            fares: [0.0; 4],
            journeys: vec![Journey::Stay; country.cluster.instances.len()],
            hard: false,
            temperature: 0.0,
            shifts: std::array::from_fn(|_| start.blank()),
            best: None,
        }
    }

    /// The best arrangement found.
    pub fn best(&self) -> Option<&[Pair]> {
        self.best.as_ref().map(|(_, pairs)| pairs.as_slice())
    }

    /// Follows a plan's goals as far as allowed, and measures the roughness there.
    pub fn go(&mut self, goals: &[Goal]) {
        for &(instance, to) in goals {
            if self.fare(instance, to).is_some()
                && to != self.place.pair(instance)
                && self.place.judge(instance, to, None, &mut self.shifts[0]).is_ok()
            {
                self.make(0, instance, to);
            }
        }
        self.place.refresh();
        self.record();
        self.roughness = self.measure_roughness();
        self.step_price = FIRST_PRICE * self.roughness;
    }

    /// Average score change if an instance gets another primary.
    fn measure_roughness(&mut self) -> f64 {
        let (mut sum, mut number) = (0.0, 0);
        for _ in 0..ROUGHNESS_SAMPLE {
            let Some(&instance) = self.pick_instance() else { return 0.0 };
            let target = self.country.online[self.dice.below(self.country.online.len())];
            let now = self.place.pair(instance);
            let (_, to) = Self::replaced(now, Role::Primary, target);
            if target != now.0 && Some(target) != now.1 && self.judge(0, instance, to) {
                sum += (self.shifts[0].score - self.place.score()).abs();
                number += 1;
            }
        }
        if number == 0 { 0.0 } else { sum / f64::from(number) }
    }

    /// Makes a fixed number of steps at a temperature in units of the roughness. If `hard`, spending must
    /// stay within the limit.
    pub fn round(&mut self, temperature: f64, hard: bool) {
        self.temperature = temperature * self.roughness;
        self.hard = hard;
        self.adapt_prices();
        for _ in 0..STEPS_PER_INSTANCE * self.country.instances.len() {
            let Some(instance) = self.pick_for_step() else { return };
            let mirrored = self.country.mirrored(instance);
            let role = if mirrored && self.dice.below(2) == 0 { Role::Secondary } else { Role::Primary };
            if self.dice.below(16) < EXCHANGES {
                self.exchange(instance, role);
            } else {
                self.retarget(instance, role);
            }
        }
        self.place.refresh();
        if hard {
            self.trim();
        }
        self.record();
    }

    fn record(&mut self) {
        let score = self.place.score() + self.fare_of(self.spent);
        if self.spent.within(self.country.limit) && self.best.as_ref().is_none_or(|(best, _)| score < *best) {
            self.best = Some((score, self.place.pairs().to_vec()));
        }
    }

    fn pick_instance(&mut self) -> Option<&'a InstanceIdx> {
        let instances = &self.country.instances;
        instances.get(self.dice.below(instances.len()))
    }

    /// Picks an instance away from home half of the time, since those can gain more without spending more.
    fn pick_for_step(&mut self) -> Option<InstanceIdx> {
        if !self.away.is_empty() && self.dice.below(2) == 0 {
            return Some(self.away[self.dice.below(self.away.len())]);
        }
        self.pick_instance().copied()
    }

    fn adapt_prices(&mut self) {
        let adapt = |price: f64, spent: usize, limit: usize| {
            let excess = spent as f64 / limit.max(1) as f64 - 1.0;
            (price * (1.0 + excess.clamp(-0.5, 0.5))).max(LEAST_PRICE)
        };
        let limit = self.country.limit;
        if self.hard {
            self.step_price = LEAST_PRICE;
            self.copy_price = 10.0 * LEAST_PRICE;
        } else {
            self.step_price = adapt(self.step_price, self.spent.steps, limit.steps);
            if limit.copies < limit.steps {
                self.copy_price = adapt(self.copy_price, self.spent.copies, limit.copies);
            }
        }
        self.fares = Journey::ALL.map(|journey| self.fare_of(journey.price()));
    }

    fn fare_of(&self, spent: Price) -> f64 {
        self.step_price * spent.steps as f64 + self.copy_price * spent.copies as f64
    }

    /// The node that an instance leaves if it gets `target` in one role, and its nodes then.
    fn replaced(now: Pair, role: Role, target: NodeIdx) -> (NodeIdx, Pair) {
        match (role, now.1) {
            (Role::Secondary, Some(secondary)) => (secondary, (now.0, Some(target))),
            _ => (now.0, (target, now.1)),
        }
    }

    /// Maximum score at which a change is accepted, random according to the temperature.
    fn limit(&mut self) -> f64 {
        self.place.score() + self.temperature * self.dice.exponential()
    }

    /// Gives an instance another node if that is acceptable.
    fn retarget(&mut self, instance: InstanceIdx, role: Role) {
        let country = self.country;
        let now = self.place.pair(instance);
        let limit = self.limit();
        let mut cut = limit + SLACK * self.roughness;
        let mut best: Option<Pair> = None;
        for &target in &country.online {
            let (left, to) = Self::replaced(now, role, target);
            if target == now.0 || Some(target) == now.1 {
                continue;
            }
            let Some(fare) = self.affordable_fare(instance, to) else { continue };
            let worth = fare + Sketcher::new(&self.place, Leg { instance, role, left, target }).alone();
            if worth < cut {
                cut = worth;
                best = Some(to);
            }
        }
        // Also try home, which can differ in both nodes, and the two nodes swapped.
        let home = country.atlas.home(instance);
        let swapped = now.1.filter(|_| country.mirrored(instance)).map(|s| (s, Some(now.0)));
        for to in [Some(home), swapped, best].into_iter().flatten() {
            if to != now
                && let Some(fare) = self.affordable_fare(instance, to)
                && self.judge(0, instance, to)
                && fare + self.shifts[0].score <= limit
            {
                self.make(0, instance, to);
                return;
            }
        }
    }

    /// Moves an instance to a random node, and the instance from there that fits best back.
    fn exchange(&mut self, one: InstanceIdx, role: Role) {
        let country = self.country;
        let now = self.place.pair(one);
        let Some(&target) = country.online.get(self.dice.below(country.online.len())) else { return };
        let (left, to) = Self::replaced(now, role, target);
        if target == now.0 || Some(target) == now.1 || country.cluster.node(left).offline {
            return;
        }
        let Some((fare, journey)) = self.fare(one, to) else { return };
        let limit = self.limit();
        let mut cut = limit + SLACK * self.roughness;
        let mut best: Option<(InstanceIdx, Pair, f64)> = None;
        let returning = if self.dice.below(16) < CROSSINGS { role.other() } else { role };
        let sketcher = Sketcher::new(&self.place, Leg { instance: one, role, left, target });
        for &other in &self.residents[target.at()][returning as usize] {
            let (_, back) = Self::replaced(self.place.pair(other), returning, left);
            if Some(back.0) == back.1 || other == one {
                continue;
            }
            let Some((return_fare, return_journey)) = self.fare(other, back) else { continue };
            if !self.affordable([(one, journey), (other, return_journey)]) {
                continue;
            }
            let fares = fare + return_fare;
            if let Some(sketch) = sketcher.with(other, returning, cut - fares) {
                cut = sketch + fares;
                best = Some((other, back, fares));
            }
        }
        let Some((other, back, fares)) = best else { return };
        if !self.judge(0, one, to) {
            return;
        }
        self.make(0, one, to);
        if self.judge(1, other, back) && fares + self.shifts[1].score <= limit {
            self.make(1, other, back);
        } else {
            self.make(0, one, now);
        }
    }

    /// Returns instances to their home until spending is within the limit, always the one with the best
    /// resulting score.
    fn trim(&mut self) {
        while !self.spent.within(self.country.limit) {
            let mut best: Option<(f64, InstanceIdx)> = None;
            for position in 0..self.away.len() {
                let instance = self.away[position];
                if self.judge(0, instance, self.country.atlas.home(instance))
                    && best.is_none_or(|(least, _)| self.shifts[0].score < least)
                {
                    best = Some((self.shifts[0].score, instance));
                }
            }
            let Some((_, instance)) = best else { return };
            let home = self.country.atlas.home(instance);
            if !self.judge(0, instance, home) {
                return;
            }
            self.make(0, instance, home);
        }
    }

    fn judge(&mut self, shift: usize, instance: InstanceIdx, to: Pair) -> bool {
        let through = self.country.atlas.through(instance, to);
        self.place.judge(instance, to, through, &mut self.shifts[shift]).is_ok()
    }

    /// Makes the change in `shift`, or takes it back.
    fn make(&mut self, shift: usize, instance: InstanceIdx, to: Pair) {
        let from = self.place.pair(instance);
        if let Some(journey) = self.country.atlas.journey(instance, to) {
            let now = std::mem::replace(&mut self.journeys[instance.at()], journey);
            self.spent = self.spent + journey.price() - now.price();
        }
        self.place.exchange(&mut self.shifts[shift]);
        for (node, role) in roles(from) {
            let residents = &mut self.residents[node.at()][role as usize];
            if let Some(position) = residents.iter().position(|i| *i == instance) {
                residents.swap_remove(position);
            }
        }
        for (node, role) in roles(to) {
            self.residents[node.at()][role as usize].push(instance);
        }
        self.note(instance);
    }

    /// Updates the list of instances away from home.
    fn note(&mut self, instance: InstanceIdx) {
        let away = self.place.pair(instance) != self.country.atlas.home(instance);
        let position = self.position[instance.at()];
        if away && position == HOME {
            self.position[instance.at()] = self.away.len() as u32;
            self.away.push(instance);
        } else if !away && position != HOME {
            self.away.swap_remove(position as usize);
            if let Some(moved) = self.away.get(position as usize) {
                self.position[moved.at()] = position;
            }
            self.position[instance.at()] = HOME;
        }
    }

    /// Increase of an instance's fare if it goes to `to`, and its journey there; `None` if it cannot go
    /// there.
    #[inline]
    fn fare(&self, instance: InstanceIdx, to: Pair) -> Option<(f64, Journey)> {
        let journey = self.country.atlas.journey(instance, to)?;
        let now = self.journeys[instance.at()];
        Some((self.fares[journey as usize] - self.fares[now as usize], journey))
    }

    /// Whether the limit allows these journeys in place of the instances' current ones.
    #[inline]
    fn affordable<const N: usize>(&self, changes: [(InstanceIdx, Journey); N]) -> bool {
        if !self.hard {
            return true;
        }
        let mut spent = self.spent;
        for (instance, journey) in changes {
            spent = spent + journey.price() - self.journeys[instance.at()].price();
        }
        spent.within(self.country.limit) || spent.within(self.spent)
    }

    /// [`Self::fare`], if it is affordable.
    fn affordable_fare(&self, instance: InstanceIdx, to: Pair) -> Option<f64> {
        let (fare, journey) = self.fare(instance, to)?;
        self.affordable([(instance, journey)]).then_some(fare)
    }
}

/// Nodes of a pair, with their roles.
fn roles((primary, secondary): Pair) -> impl Iterator<Item = (NodeIdx, Role)> {
    std::iter::once((primary, Role::Primary)).chain(secondary.map(|node| (node, Role::Secondary)))
}
