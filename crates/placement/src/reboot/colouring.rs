//! Greedy colourings: nodes of one colour may be down together.
//!
//! All three give each vertex the smallest colour that none of its neighbours has yet; they differ in which
//! vertex comes next.

use std::collections::BinaryHeap;

use super::graph::ConflictGraph;

/// How the next vertex is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heuristic {
    /// The one of the largest degree (Welsh and Powell).
    LargestFirst,
    /// The one whose neighbours have most different colours (Brélaz).
    Saturation,
    /// The one that has most coloured neighbours, repeated ones counted each time.
    ColouredNeighbours,
}

impl Heuristic {
    /// All of them; of colourings with equally few colours, the first is used.
    pub const ALL: [Self; 3] = [Self::LargestFirst, Self::Saturation, Self::ColouredNeighbours];
}

/// A colour for each vertex, such that neighbours differ. Colours are numbered from 0 without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    /// Where it comes from.
    pub heuristic: Heuristic,
    colours: usize,
    of: Vec<usize>,
}

impl Colouring {
    /// Colours the graph.
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

    /// How many colours there are.
    pub fn colours(&self) -> usize {
        self.colours
    }

    /// The vertices of each colour, ascending.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes = vec![Vec::new(); self.colours];
        for (vertex, &colour) in self.of.iter().enumerate() {
            classes[colour].push(vertex);
        }
        classes
    }
}

/// A vertex that has no colour yet.
const NONE: usize = usize::MAX;

/// Finds smallest free colours.
struct Palette {
    /// The vertex for which each colour was last found to be taken.
    taken_for: Vec<usize>,
}

impl Palette {
    fn new(vertices: usize) -> Self {
        // With so many colours, one is always free.
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

/// By falling degree; of equals, the last vertex comes first.
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

/// How pressing it is to colour a vertex; of equals, the last vertex comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Urgency {
    coloured_neighbours: usize,
    degree: usize,
    vertex: usize,
}

/// By the number of coloured neighbours, or of their `distinct` colours; then by degree.
fn by_coloured_neighbours(graph: &ConflictGraph, distinct: bool) -> Vec<usize> {
    let mut palette = Palette::new(graph.vertices());
    let mut of = vec![NONE; graph.vertices()];
    let mut urgency: Vec<Urgency> = (0..graph.vertices())
        .map(|vertex| Urgency { coloured_neighbours: 0, degree: graph.neighbours(vertex).len(), vertex })
        .collect();
    let mut colours_near = vec![ColourSet::default(); graph.vertices()];
    let mut queue: BinaryHeap<Urgency> = urgency.iter().copied().collect();
    while let Some(next) = queue.pop() {
        // Entries are not removed when a vertex becomes more urgent: a coloured one has been here already.
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

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
struct ColourSet {
    words: Vec<u64>,
}

impl ColourSet {
    /// Whether it was new.
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
