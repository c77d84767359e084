//! Greedy colorings: nodes with the same color can be down together.
//!
//! All three give each vertex the smallest color that its neighbors don't have yet. They differ in the choice
//! of the next vertex.

use std::collections::BinaryHeap;

use super::graph::ConflictGraph;

/// Choice of the next vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heuristic {
    /// The vertex with the largest degree (Welsh and Powell).
    LargestFirst,
    /// The vertex whose neighbors have the most distinct colors (Brélaz).
    Saturation,
    /// The vertex with the most colored neighbors, counting repeated neighbors each time.
    ColouredNeighbours,
}

impl Heuristic {
    /// All heuristics. If several colorings have equally few colors, the first one is used.
    pub const ALL: [Self; 3] = [Self::LargestFirst, Self::Saturation, Self::ColouredNeighbours];
}

/// A color for each vertex, different from its neighbors' colors. Colors are numbered from 0 without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    pub heuristic: Heuristic,
    colours: usize,
    of: Vec<usize>,
}

impl Colouring {
    pub fn greedy(graph: &ConflictGraph, heuristic: Heuristic) -> Self {
        let of = match heuristic {
            Heuristic::LargestFirst => largest_first(graph),
            Heuristic::Saturation | Heuristic::ColouredNeighbours => {
                by_coloured_neighbours(graph, heuristic == Heuristic::Saturation)
            }
        };
        let colours = of.iter().max().map_or(0, |most| most + 1);
        Self { heuristic, colours, of }
    }

    /// Number of colors.
    pub fn colours(&self) -> usize {
        self.colours
    }

    /// Vertices of each color, ascending.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes = vec![Vec::new(); self.colours];
        for (vertex, &colour) in self.of.iter().enumerate() {
            classes[colour].push(vertex);
        }
        classes
    }
}

/// Marks a vertex without a color.
const NONE: usize = usize::MAX;

/// Finds the smallest free color.
struct Palette {
    /// Last vertex for which each color was taken.
    taken_for: Vec<usize>,
}

impl Palette {
    fn new(vertices: usize) -> Self {
        // With one color more than vertices, one is always free.
        Self { taken_for: vec![NONE; vertices + 1] }
    }

    fn smallest_free(&mut self, graph: &ConflictGraph, of: &[usize], vertex: usize) -> usize {
        for &neighbour in graph.neighbours(vertex) {
            if of[neighbour] != NONE {
                self.taken_for[of[neighbour]] = vertex;
            }
        }
        self.taken_for.iter().position(|v| *v != vertex).unwrap_or(0)
    }
}

/// Colors vertices by descending degree. Ties go to the highest vertex.
fn largest_first(graph: &ConflictGraph) -> Vec<usize> {
    let mut order: Vec<usize> = (0..graph.vertices()).collect();
    order.sort_by_key(|v| std::cmp::Reverse((graph.neighbours(*v).len(), *v)));
    let mut palette = Palette::new(graph.vertices());
    let mut of = vec![NONE; graph.vertices()];
    for vertex in order {
        of[vertex] = palette.smallest_free(graph, &of, vertex);
    }
    of
}

/// Priority of an uncolored vertex. Ties go to the highest vertex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Urgency {
    coloured_neighbours: usize,
    degree: usize,
    vertex: usize,
}

/// Colors vertices by the number of colored neighbors, or of their `distinct` colors, and then by degree.
fn by_coloured_neighbours(graph: &ConflictGraph, distinct: bool) -> Vec<usize> {
    let mut palette = Palette::new(graph.vertices());
    let mut of = vec![NONE; graph.vertices()];
    let mut urgency: Vec<Urgency> = (0..graph.vertices())
        .map(|vertex| Urgency { coloured_neighbours: 0, degree: graph.neighbours(vertex).len(), vertex })
        .collect();
    let mut colours_near = vec![ColourSet::default(); graph.vertices()];
    let mut queue: BinaryHeap<Urgency> = urgency.iter().copied().collect();
    while let Some(next) = queue.pop() {
        // Entries aren't removed when a vertex's priority rises, so the queue can yield a vertex that is
        // already colored.
        let vertex = next.vertex;
        if of[vertex] != NONE {
            continue;
        }
        let colour = palette.smallest_free(graph, &of, vertex);
        of[vertex] = colour;
        for &neighbour in graph.neighbours(vertex) {
            if of[neighbour] == NONE && (colours_near[neighbour].insert(colour) || !distinct) {
                urgency[neighbour].coloured_neighbours += 1;
                queue.push(urgency[neighbour]);
            }
        }
    }
    of
}

/// A bit set of colors.
#[derive(Clone, Debug, Default)]
struct ColourSet {
    words: Vec<u64>,
}

impl ColourSet {
    /// Returns whether the color was new.
    fn insert(&mut self, colour: usize) -> bool {
        let (word, bit) = (colour / 64, 1 << (colour % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }
}
