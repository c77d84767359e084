//! Fewer colours by tabu search on partial colourings (Blöchliger and Zufferey's `PartialCol`).
//!
//! A partial colouring never gives neighbours the same colour, but leaves some vertices without. A step colours
//! one of these and uncolours the neighbours in the way; for a while, those may not get that colour back. Once
//! no vertex is left over, one colour less is tried.

use super::graph::SimpleGraph;
use crate::dice::Dice;

/// How many entries of tables may be looked at, at most. Work is counted rather than timed, so that the result is
/// the same on every machine.
const MOST_WORK: u64 = 3_000_000_000;
/// The same for small graphs, in multiples of the size of the tables and of the number of vertices.
const WORK_PER_SIZE: u64 = 2_000;
/// The share of the work that goes into the first attempt at a number of colours. Each further one may take twice
/// as much: how long a search takes varies so widely that it is better to begin again than to go on.
const FIRST_ATTEMPT: u64 = 64;
/// What a step costs beside looking at tables.
const STEP: u64 = 64;

/// The vertices of each colour, with fewer colours than `classes` if such a colouring is found. Below `fewest`,
/// none is looked for.
pub(super) fn recolour(graph: &SimpleGraph, classes: Vec<Vec<usize>>, fewest: usize) -> Vec<Vec<usize>> {
    let vertices = graph.neighbours.len() as u64;
    let mut work = (WORK_PER_SIZE * vertices * vertices * classes.len() as u64).min(MOST_WORK);
    let first_attempt = work / FIRST_ATTEMPT;
    let mut best = classes;
    while best.len() > fewest.max(1) {
        match one_colour_less(graph, &best, first_attempt, &mut work) {
            Some(better) => best = better,
            None => break,
        }
    }
    best
}

/// Takes from `work` what it needs.
fn one_colour_less(
    graph: &SimpleGraph,
    classes: &[Vec<usize>],
    first_attempt: u64,
    work: &mut u64,
) -> Option<Vec<Vec<usize>>> {
    let mut allowed = first_attempt.max(1);
    for attempt in 0.. {
        let mut left = allowed.min(*work);
        let before = left;
        let mut search = PartialColouring::without_a_class(graph, classes, attempt);
        while !search.uncoloured.is_empty() {
            left = left.saturating_sub(search.step());
            if left == 0 {
                break;
            }
        }
        *work -= before - left;
        if search.uncoloured.is_empty() {
            return Some(search.classes());
        }
        if *work == 0 {
            return None;
        }
        allowed *= 2;
    }
    None
}

/// How long a colour is tabu, in percent of the number of uncoloured vertices; another in each attempt.
const TENURE_PERCENT: [usize; 3] = [60, 200, 30];

/// A vertex without colour.
const NONE: usize = usize::MAX;

struct PartialColouring<'g> {
    graph: &'g SimpleGraph,
    colours: usize,
    of: Vec<usize>,
    uncoloured: Vec<usize>,
    /// For each vertex, and within that for each colour: how many neighbours have it.
    near: Vec<u32>,
    /// In the same order: the last step in which the vertex may not get the colour.
    tabu_until: Vec<u64>,
    now: u64,
    /// The fewest vertices that ever were without colour.
    record: usize,
    /// How long a colour is tabu, in percent of the number of uncoloured vertices.
    tenure_percent: usize,
    dice: Dice,
}

impl<'g> PartialColouring<'g> {
    /// Uncolours a small class: the smallest in the first attempt, another in each further one.
    fn without_a_class(graph: &'g SimpleGraph, classes: &[Vec<usize>], attempt: usize) -> Self {
        let vertices = graph.neighbours.len();
        let colours = classes.len().saturating_sub(1);
        let mut by_size: Vec<&Vec<usize>> = classes.iter().collect();
        by_size.sort_by_key(|class| class.len());
        by_size.remove(attempt % classes.len());
        let mut search = Self {
            graph,
            colours,
            of: vec![NONE; vertices],
            uncoloured: (0..vertices).collect(),
            near: vec![0; vertices * colours],
            tabu_until: vec![0; vertices * colours],
            now: 0,
            record: vertices,
            tenure_percent: TENURE_PERCENT[attempt % TENURE_PERCENT.len()],
            dice: Dice((colours + attempt) as u64),
        };
        for (colour, class) in by_size.into_iter().enumerate() {
            for &vertex in class {
                search.of[vertex] = colour;
                search.count_near(vertex, colour, true);
            }
        }
        search.uncoloured.retain(|vertex| search.of[*vertex] == NONE);
        search.record = search.uncoloured.len();
        search
    }

    fn count_near(&mut self, vertex: usize, colour: usize, gained: bool) {
        for &neighbour in &self.graph.neighbours[vertex] {
            let count = &mut self.near[neighbour * self.colours + colour];
            if gained {
                *count += 1;
            } else {
                *count -= 1;
            }
        }
    }

    /// Colours one vertex. Returns how much work it was.
    fn step(&mut self) -> u64 {
        self.now += 1;
        let mut work = STEP + (self.uncoloured.len() * self.colours) as u64;
        let Some((position, colour)) = self.choose() else { return work };
        let vertex = self.uncoloured.swap_remove(position);
        self.of[vertex] = colour;
        self.count_near(vertex, colour, true);
        let graph = self.graph;
        // As long as many are uncoloured, colours should not come back soon.
        let tenure = self.dice.below(10) + self.uncoloured.len() * self.tenure_percent / 100;
        for &neighbour in &graph.neighbours[vertex] {
            if self.of[neighbour] == colour {
                self.of[neighbour] = NONE;
                self.uncoloured.push(neighbour);
                self.count_near(neighbour, colour, false);
                self.tabu_until[neighbour * self.colours + colour] = self.now + tenure as u64;
                work += graph.neighbours[neighbour].len() as u64;
            }
        }
        self.record = self.record.min(self.uncoloured.len());
        work + 2 * graph.neighbours[vertex].len() as u64
    }

    /// The position of an uncoloured vertex, and a colour, that put fewest neighbours out; one of equals by chance.
    fn choose(&mut self) -> Option<(usize, usize)> {
        let mut best = None;
        let (mut least, mut equals) = (u32::MAX, 0);
        for (position, &vertex) in self.uncoloured.iter().enumerate() {
            let row = vertex * self.colours..(vertex + 1) * self.colours;
            let (near, tabu_until) = (&self.near[row.clone()], &self.tabu_until[row]);
            for (colour, (&in_the_way, &until)) in near.iter().zip(tabu_until).enumerate() {
                if in_the_way > least {
                    continue;
                }
                // A new record is welcome in any case.
                let left_over = self.uncoloured.len() - 1 + in_the_way as usize;
                if until >= self.now && left_over >= self.record {
                    continue;
                }
                if in_the_way < least {
                    (least, equals) = (in_the_way, 0);
                }
                equals += 1;
                if self.dice.below(equals) == 0 {
                    best = Some((position, colour));
                }
            }
        }
        best
    }

    fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes = vec![Vec::new(); self.colours];
        for (vertex, &colour) in self.of.iter().enumerate().filter(|(_, colour)| **colour != NONE) {
            classes[colour].push(vertex);
        }
        classes
    }
}

/// The size of a clique: no colouring has fewer colours.
pub(super) fn clique(graph: &SimpleGraph) -> usize {
    let degree = |vertex: usize| graph.neighbours[vertex].len();
    let from = |first: usize| {
        let mut size = 1;
        let mut candidates = graph.neighbours[first].clone();
        while let Some(next) = candidates.iter().copied().max_by_key(|v| (degree(*v), *v)) {
            size += 1;
            candidates.retain(|candidate| graph.adjacent(next, *candidate));
        }
        size
    };
    (0..graph.neighbours.len()).map(from).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use cluster::NodeIdx;

    use super::*;

    fn graph(vertices: usize, edges: &[(usize, usize)]) -> SimpleGraph {
        let mut neighbours = vec![Vec::new(); vertices];
        for &(a, b) in edges {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        for list in &mut neighbours {
            list.sort_unstable();
        }
        SimpleGraph { neighbours, nodes: (0..vertices).map(NodeIdx::from_usize).collect() }
    }

    /// Mycielski's graph on a cycle of five: no triangle, and four colours needed.
    fn groetzsch() -> SimpleGraph {
        let mut edges = Vec::new();
        for v in 0..5 {
            let next = (v + 1) % 5;
            edges.extend([(v, next), (v, 5 + next), (next, 5 + v), (5 + v, 10)]);
        }
        graph(11, &edges)
    }

    #[test]
    fn finds_as_few_colours_as_there_can_be() {
        let graph = groetzsch();
        let apart: Vec<Vec<usize>> = (0..11).map(|v| vec![v]).collect();
        let classes = recolour(&graph, apart, clique(&graph));
        assert_eq!(classes.len(), 4);
        assert_eq!(classes.iter().map(Vec::len).sum::<usize>(), 11);
        let legal = |class: &Vec<usize>| class.iter().all(|a| class.iter().all(|b| !graph.adjacent(*a, *b)));
        assert!(classes.iter().all(legal));
    }

    #[test]
    fn a_clique_is_found_where_it_is_plain() {
        assert_eq!(clique(&graph(0, &[])), 0);
        assert_eq!(clique(&graph(3, &[])), 1);
        assert_eq!(clique(&graph(5, &[(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])), 3);
        assert_eq!(clique(&groetzsch()), 2);
    }

    #[test]
    fn a_clique_stops_the_search_before_it_starts() {
        let graph = graph(2, &[(0, 1)]);
        assert_eq!(recolour(&graph, vec![vec![0], vec![1]], 2), [[0], [1]]);
    }
}
