//! Draws cases for the differential tests: a cluster, a request and a command line from one seed.
//!
//! Cases must cover all options and inputs, except those that `known` excludes with a reason.

pub(crate) mod cluster;
pub(crate) mod damage;
pub(crate) mod live;
pub mod message;
pub(crate) mod model;
pub(crate) mod options;
pub mod ordinary;
pub(crate) mod requests;
pub(crate) mod tags;
pub mod text;
pub mod wide;

use chores::random::Random;
use model::{Case, Program, Source};
use wide::Space;

/// Seed of a case's random numbers. Each program gets different clusters.
fn stream(seed: u64, program: Program) -> u64 {
    let number = match program {
        Program::Hbal => 0,
        Program::Hail => 1,
        Program::Hcheck => 2,
        Program::Hinfo => 3,
        Program::Hroller => 4,
        Program::Hspace => 5,
        Program::Hsqueeze => 6,
        Program::Hscan => 7,
    };
    seed.wrapping_mul(8).wrapping_add(number)
}

/// The case of a seed in [`Space::Small`], as in the test suite.
pub fn case(seed: u64, program: Program) -> Case {
    case_of(Space::Small, seed, program)
}

pub fn case_of(space: Space, seed: u64, program: Program) -> Case {
    let mut random = Random::new(stream(seed, program));
    if space.is_unusual(seed) {
        return unusual_case(&mut random, space, program);
    }
    let shape = cluster::Shape::draw(&mut random, program);
    let cluster = cluster::draw(&mut random, &shape);
    let request = (program == Program::Hail).then(|| requests::draw(&mut random, &shape, &cluster));
    let mut damage = (program == Program::Hail && random.chance(5)).then(|| damage::draw(&mut random));
    let drawn = options::draw(&mut random, program, &cluster);
    let source = live::draw(&mut random, program);
    if source != Source::File && random.chance(12) {
        damage = Some(damage::draw(&mut random));
    }
    Case {
        program,
        cluster,
        source,
        request,
        damage,
        utilisation: drawn.utilisation,
        mond: drawn.mond,
        options: drawn.options,
    }
}

fn unusual_case(random: &mut Random, space: Space, program: Program) -> Case {
    let nodes = space.nodes(random, program);
    let shape = wide::shape(random, program, nodes);
    let mut cluster = cluster::draw(random, &shape);
    let source = live::draw(random, program);
    wide::spoil(random, &mut cluster, source == Source::File && program != Program::Hail);
    let request = (program == Program::Hail).then(|| requests::draw(random, &shape, &cluster));
    let mut drawn = options::draw(random, program, &cluster);
    wide::add_options(random, program, nodes, &mut drawn);
    Case {
        program,
        cluster,
        source,
        request,
        damage: None,
        utilisation: drawn.utilisation,
        mond: drawn.mond,
        options: drawn.options,
    }
}

impl Case {
    /// Input files, by name.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        match self.source {
            Source::File if self.program != Program::Hail || self.has_option("-t") => {
                files.push(("cluster.data", text::render(&self.cluster)));
            }
            Source::File => {}
            Source::Rapi => files.extend(live::documents(&self.cluster, self.damage.as_ref())),
            Source::Luxi => files.extend(live::answers(&self.cluster, self.damage.as_ref())),
        }
        if let Some(request) = &self.request {
            let mut message = message::render(&self.cluster, request);
            if let Some((place, value)) = &self.damage {
                damage::apply(&mut message, *place, value);
            }
            files.push(("request.json", message.to_string()));
        }
        if self.has_option("-U") {
            files.push(("utilisation", lines(&self.utilisation)));
        }
        if let Some(mond) = &self.mond {
            files.push(("mond.json", mond.to_string()));
        }
        files
    }

    pub fn arguments(&self) -> Vec<String> {
        let words: &[&str] = match (self.source, self.program) {
            (Source::File, Program::Hail) => &[],
            (Source::File, _) if self.has_option("--simulate") => &[],
            (Source::File, _) => &["-t", "cluster.data"],
            (Source::Rapi, Program::Hscan) => &["file://."],
            (Source::Rapi, _) => &["-m", "file://."],
            (Source::Luxi, _) => &["-Lsocket"],
        };
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        arguments.extend(self.options.iter().flatten().cloned());
        if self.request.is_some() {
            arguments.push("request.json".to_owned());
        }
        arguments
    }

    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|words| words[0] == name)
    }
}

/// Joins lines, each with its line end. No lines give empty content.
fn lines(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push_str(if lines.is_empty() { "" } else { "\n" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_files() {
        for seed in 0..20 {
            for program in Program::ALL {
                let (a, b) = (case(seed, program), case(seed, program));
                assert_eq!(a.files(), b.files());
                assert_eq!(a.arguments(), b.arguments());
            }
        }
    }

    #[test]
    fn undamaged_messages_are_json() {
        for seed in 0..200 {
            for (name, content) in case(seed, Program::Hail).files() {
                if name == "request.json" || name == "mond.json" {
                    serde_json::from_str::<serde_json::Value>(&content).expect("well-formed");
                }
            }
        }
    }
}
