//! Reduces the number of colors by tabu search on partial colorings (Blöchliger and Zufferey's `PartialCol`).
//!
//! In a partial coloring, neighbors never have the same color, but some vertices have no color. A step colors
//! one of these and uncolors the conflicting neighbors, which may not get that color back for a while. Once
//! every vertex has a color, the search tries one color less.

use super::graph::SimpleGraph;
use crate::dice::Dice;

/// Maximum number of table entries to look at. Work is counted rather than timed so that the result is the
/// same on every machine.
const MOST_WORK: u64 = 3_000_000_000;
/// Limit for small graphs, in multiples of the table size times the number of vertices.
const WORK_PER_SIZE: u64 = 2_000;
/// The first attempt at a number of colors gets 1/64 of the work. Each further attempt gets twice as much as
/// the one before: search times vary so widely that restarting is better than continuing.
const FIRST_ATTEMPT: u64 = 64;
/// Fixed cost of a step, in addition to the table entries it looks at.
const STEP: u64 = 64;

/// Returns the vertices of each color, with fewer colors than `classes` if such a coloring is found. The
/// search stops at `fewest` colors.
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

/// Deducts its cost from `work`.
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

/// Duration for which a color is tabu, in percent of the number of uncolored vertices. Successive attempts
/// cycle through the values.
const TENURE_PERCENT: [usize; 3] = [60, 200, 30];

/// Color of an uncolored vertex.
const NONE: usize = usize::MAX;

struct PartialColouring<'g> {
    graph: &'g SimpleGraph,
    colours: usize,
    of: Vec<usize>,
    uncoloured: Vec<usize>,
    /// Number of neighbors with each color, by vertex and then color.
    near: Vec<u32>,
    /// Last step in which the vertex may not get the color, by vertex and then color.
    tabu_until: Vec<u64>,
    now: u64,
    /// Fewest uncolored vertices so far.
    record: usize,
    /// See [`TENURE_PERCENT`].
    tenure_percent: usize,
    dice: Dice,
}

impl<'g> PartialColouring<'g> {
    /// Uncolors a small class: the smallest in the first attempt, the next larger one in each further
    /// attempt.
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

    /// Colors one vertex and returns the work done.
    fn step(&mut self) -> u64 {
        self.now += 1;
        let mut work = STEP + (self.uncoloured.len() * self.colours) as u64;
        let Some((position, colour)) = self.choose() else { return work };
        let vertex = self.uncoloured.swap_remove(position);
        self.of[vertex] = colour;
        self.count_near(vertex, colour, true);
        let graph = self.graph;
        // The more vertices are uncolored, the longer a color stays tabu.
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

    /// Chooses the position of an uncolored vertex and the color that conflict with the fewest neighbors.
    /// Ties are broken at random.
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
                // A new record is accepted even if it is tabu.
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

/// Size of a clique found greedily. No coloring has fewer colors.
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

    /// Mycielski's graph on a cycle of five: it has no triangle but needs four colors.
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
