//! `cargo xtask feasibility`: what `hail` accepts, `hspace` counts and `hcheck` approves.
//!
//! A cluster is filled one `hail` request at a time, as a master daemon would do it, and compared with what
//! `hspace` promised: the same instances on the same nodes. `hcheck` must then find every node as evacuable as
//! it was before. Where the two differ by definition:
//!
//! - Without capacity checks they never differ.
//! - With them, `hspace` places many instances before it looks at the redundancy of the whole (algorithms spec
//!   §5.2), `hail` looks after each. If an instance in the middle would break redundancy that a later one
//!   restores, they part; that takes scores to fall back in step with redundancy and was not seen.
//! - For DRBD, `hspace`'s last stretch does not look at redundancy at all, so `hail` may stop earlier: it never
//!   accepts more than was promised.
//! - `hspace` places over all groups at once, `hail` in the best group; here there is one group.
//! - A request from a master daemon counts DRBD's metadata in the disk space, `hspace` does not; the requests
//!   here leave them out.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::generate::model::{Cluster, Instance, Program};
use crate::generate::{cluster, message, text};
use crate::json::Json;
use crate::places;
use crate::random::Random;
use crate::run::Executable;
use crate::tally::{MOST_SHOWN, Tally};

const LIMIT: Duration = Duration::from_secs(20);
/// At most that many instances are placed.
const MOST_INSTANCES: usize = 25;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let seeds = arguments.value("--seeds", 300)?;
    let ours = arguments.text("--ours")?.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    arguments.finish()?;
    run(&ours, seeds).conclude("feasibility")
}

/// Fills the clusters of seeds `0..seeds`.
pub fn run(ours: &Executable, seeds: u64) -> Tally {
    let mut tally = Tally::default();
    let (mut placed, mut fewer, mut refused) = (0, 0, 0);
    for seed in 0..seeds {
        match Filling::draw(seed).check(ours) {
            Ok(Found::Equal { count }) => {
                placed += count;
                tally.passed += 1;
            }
            Ok(Found::Fewer) => {
                fewer += 1;
                tally.passed += 1;
            }
            Ok(Found::Refused) => {
                refused += 1;
                tally.passed += 1;
            }
            Err(error) => {
                tally.failed += 1;
                if tally.failed <= MOST_SHOWN {
                    println!("seed {seed}: {error:#}");
                }
            }
        }
    }
    println!("{placed} instances placed alike; {fewer} drbd fillings stopped earlier; {refused} had no room");
    if placed == 0 {
        println!("nothing was placed");
        tally.failed += 1;
    }
    tally
}

/// A cluster to fill.
struct Filling {
    cluster: Cluster,
    /// One of the instances to place.
    shape: Instance,
    checks: bool,
}

/// How the two compare.
enum Found {
    /// As many, on the same nodes.
    Equal { count: usize },
    /// With DRBD and capacity checks, `hail` stopped earlier.
    Fewer,
    /// Nothing fits at all.
    Refused,
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
        let promised = self.promised(ours)?;
        let stuck = self.stuck_nodes(ours)?;
        let mut filled = Vec::new();
        while filled.len() < MOST_INSTANCES {
            let Some(nodes) = self.ask(ours, filled.len())? else { break };
            self.settle(filled.len(), &nodes)?;
            filled.push(nodes);
        }
        if self.checks {
            let now = self.stuck_nodes(ours)?;
            ensure!(now <= stuck, "hcheck finds {now} nodes stuck, {stuck} before");
        }
        let common = promised.len().min(filled.len());
        if let Some(at) = (0..common).find(|at| promised[*at] != filled[*at]) {
            bail!("instance {at}: hspace promised {:?}, hail chose {:?}", promised[at], filled[at]);
        }
        if promised.len() == filled.len() {
            let count = filled.len();
            return Ok(if count == 0 { Found::Refused } else { Found::Equal { count } });
        }
        let may_stop = self.checks && self.shape.template == "drbd" && filled.len() < promised.len();
        ensure!(may_stop, "hspace promised {}, hail placed {}", promised.len(), filled.len());
        Ok(Found::Fewer)
    }

    fn options(&self) -> Vec<String> {
        if self.checks { Vec::new() } else { vec!["--no-capacity-checks".to_owned()] }
    }

    /// The nodes of each instance that `hspace` promises, primary first.
    fn promised(&self, ours: &Executable) -> Result<Vec<Vec<String>>> {
        let shape = &self.shape;
        let mut words = vec![
            "-t".to_owned(),
            "cluster.data".to_owned(),
            "-v".to_owned(),
            format!("-l{MOST_INSTANCES}"),
            format!("--disk-template={}", shape.template),
            format!("--spindle-use={}", shape.spindle_use),
            format!("--standard-alloc={}m,{}m,{}", shape.disk, shape.memory, shape.vcpus),
            // Nodes that fail N+1 already are no obstacle to hail.
            "--accept-existing-errors".to_owned(),
        ];
        words.extend(self.options());
        let outcome = run_on(ours, "hspace", &words, &self.cluster)?;
        ensure!(outcome.0 == Some(0), "hspace failed: {}", outcome.2);
        let map = outcome.2.split("Standard allocation map").nth(1).unwrap_or_default();
        let rows = map.lines().filter(|line| line.trim_start().starts_with("new-"));
        Ok(rows
            .map(|row| {
                let mut words = row.split_whitespace().skip(1);
                let mut nodes: Vec<&str> = words.by_ref().take(1).collect();
                nodes.extend(words.next().filter(|word| word.parse::<i64>().is_err()));
                nodes.into_iter().map(str::to_owned).collect()
            })
            .collect())
    }

    /// Asks `hail` for one more instance; its nodes, if it found some.
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
        let outcome = ours.run("hail", &words, &[("request.json", message)], LIMIT)?;
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

    /// The cluster once the instance runs.
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

    /// How many nodes could not be emptied.
    fn stuck_nodes(&self, ours: &Executable) -> Result<u64> {
        let words =
            ["-t", "cluster.data", "--no-simulation", "--machine-readable"].map(str::to_owned).to_vec();
        let outcome = run_on(ours, "hcheck", &words, &self.cluster)?;
        let line = outcome.1.lines().find_map(|line| line.strip_prefix("HCHECK_INIT_CLUSTER_GN1_FAIL="));
        line.and_then(|figure| figure.parse().ok())
            .with_context(|| format!("hcheck gave no figure: {}", outcome.2))
    }
}

fn name(number: usize) -> String {
    format!("new-{number}.filled")
}

/// Leaves out what only one of the two formats can say, so that both programs see the same cluster.
fn ordinary(cluster: &mut Cluster) {
    cluster.hypervisors = vec!["xen-pvm".to_owned()];
    cluster.policy = None;
    let domain =
        cluster.nodes.first().and_then(|node| node.name.find('.').map(|at| node.name[at..].to_owned()));
    for (number, node) in cluster.nodes.iter_mut().enumerate() {
        node.name = format!("node{number}{}", domain.as_deref().unwrap_or_default());
        node.unknown = false;
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

/// Runs a program on the cluster's file: status, standard output, standard error.
fn run_on(
    ours: &Executable,
    program: &str,
    words: &[String],
    cluster: &Cluster,
) -> Result<(Option<i32>, String, String)> {
    let files = [("cluster.data", text::render(cluster))];
    let outcome = ours.run(program, words, &files, LIMIT)?;
    let outcome = outcome.with_context(|| format!("{program} did not finish within {LIMIT:?}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((outcome.status, text(&outcome.stdout), text(&outcome.stderr)))
}
