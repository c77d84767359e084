//! `cargo xtask feasibility`: compares the decisions of `hail`, `hspace` and `hcheck`.
//!
//! A cluster is filled one `hail` request at a time, as a master daemon would do it, and compared with the
//! promise of `hspace`: the same instances on the same nodes. `hcheck` must then find every node as evacuable
//! as before. `hail` and `hspace` differ by definition in four cases:
//!
//! - If nodes already fail N+1, `hspace` places nothing unless told to accept that; `hail` doesn't check it.
//! - For DRBD, the last stretch of `hspace` ignores redundancy (HT-hspace), `hail` never does. So they can
//!   differ if the result of `hspace` isn't redundant, and only then.
//! - `hspace` places over all groups at once, `hail` in the best group; here, clusters have one group.
//! - A request from a master daemon counts DRBD's metadata in the disk space, `hspace` doesn't; the requests
//!   here leave it out.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use chores::arguments::Arguments;
use chores::places;
use chores::random::Random;
use chores::run::{Executable, write};
use chores::tally::{MOST_SHOWN, Tally, report_failure};
use serde_json::Value;

use crate::generate::model::{Cluster, Instance, Program};
use crate::generate::{cluster, message, text};
use crate::json::Json;
use crate::outcome::{self, Outcome};
use crate::seeds;

const LIMIT: Duration = Duration::from_secs(20);
/// Maximum number of instances to place.
const MOST_INSTANCES: usize = 25;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let seeds = seeds::of(&mut arguments, 300)?;
    let ours = arguments.text("--ours")?.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    arguments.finish()?;
    run(&ours, seeds).conclude("feasibility")
}

/// Fills the clusters of these seeds and compares.
pub fn run(ours: &Executable, seeds: Range<u64>) -> Tally {
    let mut tally = Tally::default();
    let mut found = BTreeMap::new();
    for seed in seeds {
        let filling = Filling::draw(seed);
        let result = filling.clone().check(ours);
        tally.count(result.is_ok());
        match result {
            Ok(kind) => *found.entry(kind).or_insert(0_usize) += 1,
            Err(error) if tally.failed <= MOST_SHOWN => {
                let line = filling.hspace_line().join(" ");
                report_failure(format!("filling of seed {seed}: {error:#}\n  hspace {line}"));
                match filling.save(seed) {
                    Ok(path) => println!("  cluster in {}", path.display()),
                    Err(error) => println!("  cluster not saved: {error:#}"),
                }
            }
            Err(_) => {}
        }
    }
    for (kind, count) in &found {
        println!("{count:>7} {}", kind.text());
    }
    if !found.contains_key(&Found::Equal) {
        report_failure("nothing was placed");
        tally.failed += 1;
    }
    tally
}

/// A cluster to fill.
#[derive(Clone)]
struct Filling {
    cluster: Cluster,
    /// Template of the instances to place.
    shape: Instance,
    checks: bool,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    /// The same number of instances, on the same nodes.
    Equal,
    /// Not even one instance fits.
    Full,
    /// Nodes fail N+1 from the start.
    Blocked,
    /// DRBD without redundancy, so not compared.
    Parted,
}

impl Found {
    fn text(self) -> &'static str {
        match self {
            Self::Equal => "filled as promised",
            Self::Full => "without room, both say",
            Self::Blocked => "failing N+1 from the start: hspace promises nothing",
            Self::Parted => "drbd, promised beyond redundancy: not compared",
        }
    }
}

impl Filling {
    fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut shape = cluster::Shape::draw(&mut random, Program::Hspace);
        shape.groups = 1;
        shape.exclusive = 0;
        shape.nodes = shape.nodes.max(2);
        let mut cluster = cluster::draw(&mut random, &shape);
        ordinary(&mut cluster);
        let template = random.weighted(&[(45, "drbd"), (25, "plain"), (15, "rbd"), (15, "sharedfile")]);
        let instance = Instance {
            name: String::new(),
            memory: random.pick(&[2048, 4096, 6000, 8192]),
            disk: random.pick(&[10_240, 51_200, 120_000]),
            vcpus: random.pick(&[1, 2, 4]),
            status: "running",
            auto_balance: true,
            primary: 0,
            secondary: None,
            template,
            tags: Vec::new(),
            spindle_use: 1,
            spindles: None,
            forthcoming: false,
            networks: Vec::new(),
        };
        Self { cluster, shape: instance, checks: random.chance(60) }
    }

    fn check(mut self, ours: &Executable) -> Result<Found> {
        let before = health(ours, &text::render(&self.cluster))?;
        if before.fail_n1 > 0 {
            return Ok(Found::Blocked);
        }
        let promised = self.promised(ours)?;
        if self.checks && self.shape.template == "drbd" {
            // hspace saves the figures that nodes reported before, so the resulting cluster is put together
            // here.
            let mut kept = self.clone();
            for (number, nodes) in promised.iter().enumerate() {
                kept.settle(number, nodes)?;
            }
            if before.stuck > 0 || health(ours, &text::render(&kept.cluster))?.stuck > 0 {
                return Ok(Found::Parted);
            }
        }
        let mut filled = Vec::new();
        while filled.len() < MOST_INSTANCES {
            let Some(nodes) = self.ask(ours, filled.len())? else { break };
            self.settle(filled.len(), &nodes)?;
            filled.push(nodes);
        }
        let common = promised.len().min(filled.len());
        if let Some(at) = (0..common).find(|at| promised[*at] != filled[*at]) {
            bail!("instance {at}: hspace promised {:?}, hail chose {:?}", promised[at], filled[at]);
        }
        ensure!(
            promised.len() == filled.len(),
            "hspace promised {}, hail placed {}",
            promised.len(),
            filled.len()
        );
        let after = health(ours, &text::render(&self.cluster))?;
        ensure!(
            !self.checks || filled.is_empty() || after.stuck == 0,
            "hcheck finds {} nodes that cannot be emptied",
            after.stuck
        );
        Ok(if filled.is_empty() { Found::Full } else { Found::Equal })
    }

    fn options(&self) -> Vec<String> {
        if self.checks { Vec::new() } else { vec!["--no-capacity-checks".to_owned()] }
    }

    /// Saves the cluster for manual tests.
    fn save(&self, seed: u64) -> Result<PathBuf> {
        let directory = places::target().join("feasibility");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{seed}.data"));
        write(&path, text::render(&self.cluster).as_bytes())?;
        Ok(path)
    }

    fn hspace_line(&self) -> Vec<String> {
        let shape = &self.shape;
        let mut words = vec![
            "-t".to_owned(),
            "cluster.data".to_owned(),
            format!("-l{MOST_INSTANCES}"),
            format!("--disk-template={}", shape.template),
            format!("--spindle-use={}", shape.spindle_use),
            format!("--standard-alloc={}m,{}m,{}", shape.disk, shape.memory, shape.vcpus),
            // The tiered phase isn't compared, so it's kept short.
            format!("--tiered-alloc={}m,{}m,{}", shape.disk, shape.memory, shape.vcpus),
            "-Shspace".to_owned(),
        ];
        words.extend(self.options());
        words
    }

    /// Nodes of each instance that `hspace` promises.
    fn promised(&self, ours: &Executable) -> Result<Vec<Vec<String>>> {
        let outcome = run_on(ours, "hspace", &self.hspace_line(), &text::render(&self.cluster))?;
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        if stderr.contains("online nodes") {
            // Too few nodes for the template: an error for hspace, a failed request for hail.
            return Ok(Vec::new());
        }
        ensure!(outcome.status == Some(0), "hspace failed: {stderr}");
        let saved = outcome.files.into_iter().find(|(name, _)| name == "hspace.standard");
        let (_, content) = saved.context("hspace saved nothing")?;
        Ok(placements(&String::from_utf8(content)?))
    }

    /// Asks `hail` for one more instance. Returns its nodes, or `None` if hail finds none.
    fn ask(&self, ours: &Executable, number: usize) -> Result<Option<Vec<String>>> {
        let mut request = Json::object([
            ("type", Json::text("allocate")),
            ("name", Json::text(name(number))),
            ("required_nodes", Json::number(if self.shape.template == "drbd" { 2 } else { 1 })),
        ]);
        if let (Json::Object(request), Json::Object(mut members)) =
            (&mut request, message::instance(&self.shape))
        {
            for (key, value) in &mut members {
                if key == "disk_space_total" {
                    *value = Json::number(self.shape.disk);
                }
            }
            request.extend(members);
        }
        let message = message::render(&self.cluster, &request).to_string();
        let mut words = self.options();
        words.push("request.json".to_owned());
        let outcome = outcome::of(ours, "hail", &words, &[("request.json", message)], LIMIT)?;
        let outcome = outcome.with_context(|| format!("hail did not finish within {LIMIT:?}"))?;
        let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let answer: Value =
            serde_json::from_slice(&outcome.stdout).with_context(|| format!("hail: {stderr}"))?;
        if answer["success"] != true {
            return Ok(None);
        }
        let nodes = answer["result"].as_array().into_iter().flatten();
        Ok(Some(nodes.filter_map(|node| node.as_str().map(str::to_owned)).collect()))
    }

    /// Adds the instance to the cluster, as if it ran there.
    fn settle(&mut self, number: usize, nodes: &[String]) -> Result<()> {
        let mut places = Vec::new();
        for node in nodes {
            let place = self.cluster.nodes.iter().position(|n| n.name == *node);
            places.push(place.with_context(|| format!("hail chose {node}, which does not exist"))?);
        }
        let instance = Instance {
            name: name(number),
            primary: *places.first().context("hail chose no node")?,
            secondary: places.get(1).copied(),
            ..self.shape.clone()
        };
        self.cluster.nodes[instance.primary].free_memory -= instance.memory;
        if matches!(instance.template, "drbd" | "plain") {
            for place in places {
                self.cluster.nodes[place].free_disk -= instance.disk;
            }
        }
        self.cluster.instances.push(instance);
        Ok(())
    }
}

/// Nodes of the placed instances in order of placement, primary first.
fn placements(saved: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<(usize, Vec<String>)> = saved
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.strip_prefix("new-")?.split('|').collect();
            let nodes = fields.get(6..8)?.iter().filter(|node| !node.is_empty());
            Some((fields[0].parse().ok()?, nodes.map(|node| (*node).to_owned()).collect()))
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, nodes)| nodes).collect()
}

/// Counts reported by `hcheck`.
struct Health {
    /// Nodes that fail N+1.
    fail_n1: u64,
    /// Nodes that couldn't be emptied.
    stuck: u64,
}

fn health(ours: &Executable, cluster: &str) -> Result<Health> {
    let words = ["-t", "cluster.data", "--no-simulation", "--machine-readable"].map(str::to_owned);
    let outcome = run_on(ours, "hcheck", &words, cluster)?;
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let figure = |name: &str| -> Result<u64> {
        let start = format!("HCHECK_INIT_CLUSTER_{name}=");
        let line = stdout.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|figure| figure.parse().ok())
            .with_context(|| format!("hcheck says no {name}: {}", String::from_utf8_lossy(&outcome.stderr)))
    };
    Ok(Health { fail_n1: figure("N1_FAIL")?, stuck: figure("GN1_FAIL")? })
}

fn name(number: usize) -> String {
    format!("new-{number}.filled")
}

/// Removes properties that only one of the two formats can express, so that both programs see the same
/// cluster.
fn ordinary(cluster: &mut Cluster) {
    cluster.hypervisors = vec!["xen-pvm".to_owned()];
    cluster.policy = None;
    let domain =
        cluster.nodes.first().and_then(|node| node.name.find('.').map(|at| node.name[at..].to_owned()));
    for (number, node) in cluster.nodes.iter_mut().enumerate() {
        node.name = format!("node{number}{}", domain.as_deref().unwrap_or_default());
        // Unlike a file, a message has no resources for offline nodes.
        node.unknown = node.role == 'Y';
        node.drained = false;
        node.cpu_speed = 1.0;
    }
    for group in &mut cluster.groups {
        group.alloc_policy = "preferred";
    }
    for instance in &mut cluster.instances {
        instance.forthcoming = false;
        instance.auto_balance = true;
        if instance.status != "running" {
            instance.status = "ADMIN_down";
        }
        instance.spindles = None;
    }
    cluster.instances.retain(|instance| (instance.template == "drbd") == instance.secondary.is_some());
}

fn run_on(ours: &Executable, program: &str, words: &[String], cluster: &str) -> Result<Outcome> {
    let outcome = outcome::of(ours, program, words, &[("cluster.data", cluster)], LIMIT)?;
    outcome.with_context(|| format!("{program} did not finish within {LIMIT:?}"))
}
