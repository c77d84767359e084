//! Draws scenarios: a cluster, a command line, and how its daemon treats jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use chores::random::Random;
use serde_json::Value;

use crate::generate::cluster::{self, Shape};
use crate::generate::live;
use crate::generate::model::{Cluster, Program};
use crate::json::Json;
use crate::luxi_server::{Reply, Respond};

/// Time limit of a scenario. It takes some seconds, spent mostly waiting.
pub const LIMIT: Duration = Duration::from_mins(1);
/// Number of the first job that a daemon accepts. Lower numbers are jobs mentioned by tags.
const FIRST_JOB: u64 = 101;
/// Prefix of tags of repairs.
const REPAIR: &str = "ganeti:watcher:autorepair:";

/// A program, its cluster, and the behavior of the daemon.
pub struct Scenario {
    pub program: &'static str,
    /// Arguments, without the socket.
    pub arguments: Vec<String>,
    /// Number of polls of jobs after which SIGINT is sent.
    pub interrupt_at_poll: Option<usize>,
    cluster: Cluster,
    treatment: Treatment,
}

/// How the daemon treats jobs.
#[derive(Clone, Copy, Debug)]
struct Treatment {
    /// Jobs are still running at the first poll.
    slow: bool,
    mishap: Mishap,
}

#[derive(Clone, Copy, Debug)]
enum Mishap {
    None,
    /// The job at that position ends with this status.
    Ends(u64, &'static str),
    /// The daemon no longer knows the job at that position.
    Forgotten(u64),
    /// The last job of the submission at that position is refused.
    Refused(usize),
    /// The whole submission at that position is refused.
    AllRefused(usize),
    /// The daemon closes the connection at that submission.
    CutOff(usize),
    /// The daemon answers that submission with an invalid message.
    Garbled(usize),
}

impl Scenario {
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(8).wrapping_add(7));
        let draw = random.weighted(&[
            (40, Self::balancing as fn(&mut Random) -> Self),
            (40, Self::repairing),
            (20, Self::squeezing),
        ]);
        draw(&mut random)
    }

    fn balancing(random: &mut Random) -> Self {
        let template = random.weighted(&[(65, "drbd"), (35, "ext")]);
        let cluster = small_cluster(random, template);
        let moves = 1 + random.below(7);
        let mut arguments = vec!["-X".to_owned(), "-l".to_owned(), moves.to_string()];
        if cluster.groups.len() > 1 {
            arguments.extend(["-G".to_owned(), random.one_of(&cluster.groups).name.clone()]);
        }
        for (percent, words) in [
            (15, &["--first-job-group"][..]),
            (10, &["--priority=low"]),
            (10, &["--priority", "high"]),
            (20, &["--reason", "said \"so\""]),
            (20, &["-C"]),
            (10, &["-v", "-v"]),
            (10, &["-q"]),
            (10, &["--evac-mode"]),
        ] {
            if random.chance(percent) {
                arguments.extend(words.iter().map(|word| (*word).to_owned()));
            }
        }
        let (interrupt_at_poll, treatment) = draw_interruption(random);
        Self { program: "hbal", arguments, interrupt_at_poll, cluster, treatment }
    }

    fn squeezing(random: &mut Random) -> Self {
        let mut cluster = small_cluster(random, "ext");
        cluster.instances.truncate(6);
        let mut arguments = vec!["-X".to_owned()];
        if random.chance(50) {
            // Capacity is too low, so standby nodes are needed. They are drained rather than offline because
            // the daemon doesn't know the size of offline nodes.
            arguments.extend(["--minimal-resources=60", "--target-resources=60"].map(str::to_owned));
            for node in cluster.nodes.iter_mut().skip(1).step_by(2) {
                node.drained = true;
                node.tags.push("htools:standby:auto".to_owned());
            }
        }
        for (percent, word) in [(20, "-C"), (20, "-v"), (20, "--no-headers")] {
            if random.chance(percent) {
                arguments.push(word.to_owned());
            }
        }
        let (interrupt_at_poll, treatment) = draw_interruption(random);
        Self { program: "hsqueeze", arguments, interrupt_at_poll, cluster, treatment }
    }

    fn repairing(random: &mut Random) -> Self {
        let template = random.weighted(&[(75, "drbd"), (25, "plain")]);
        let mut cluster = small_cluster(random, template);
        cluster.instances.truncate(7);
        for _ in 0..random.weighted(&[(10, 0), (45, 1), (45, 2)]) {
            if let Some(last) = cluster.nodes.len().checked_sub(1) {
                let node = random.below(last + 1);
                cluster.nodes[node].role = 'Y';
            }
        }
        decorate(random, &mut cluster);
        let mut arguments = Vec::new();
        for (percent, words) in [
            (30, &["--dry-run"][..]),
            (20, &["--job-delay=0"]),
            (15, &["--job-delay", "2.5"]),
            (20, &["--reason", "said \"so\""]),
        ] {
            if random.chance(percent) {
                arguments.extend(words.iter().map(|word| (*word).to_owned()));
            }
        }
        let treatment = Treatment::draw(random);
        Self { program: "harep", arguments, interrupt_at_poll: None, cluster, treatment }
    }

    /// Command line for reports, with the daemon's treatment of jobs.
    pub fn command_line(&self) -> String {
        format!("{} {} ({:?})", self.program, self.arguments.join(" "), self.treatment)
    }

    /// A daemon in its initial state.
    pub fn daemon(&self) -> Respond {
        let mut daemon = Pretender {
            answers: live::answers(&self.cluster, None),
            treatment: self.treatment,
            submissions: 0,
            jobs: 0,
            polls: BTreeMap::new(),
        };
        Box::new(move |method, arguments| daemon.respond(method, arguments))
    }
}

impl Treatment {
    fn draw(random: &mut Random) -> Self {
        let (job, submission) = (random.below(4) as u64, random.below(3));
        let mishap = random.weighted(&[
            (56, Mishap::None),
            (12, Mishap::Ends(job, "error")),
            (7, Mishap::Ends(job, "canceled")),
            (5, Mishap::Forgotten(job)),
            (5, Mishap::Refused(submission)),
            (5, Mishap::AllRefused(submission)),
            (5, Mishap::CutOff(submission)),
            (5, Mishap::Garbled(submission)),
        ]);
        Self { slow: random.chance(25), mishap }
    }
}

/// Number of polls before the interruption, if any, and a treatment of jobs that leaves time for it.
fn draw_interruption(random: &mut Random) -> (Option<usize>, Treatment) {
    if random.chance(30) {
        // Slow jobs are polled twice. The second poll comes a second after the first, which is enough time
        // for the signal.
        (Some(random.pick(&[1, 3])), Treatment { slow: true, mishap: Mishap::None })
    } else {
        (None, Treatment::draw(random))
    }
}

/// A cluster of three to eight nodes that both programs can read, mostly with one disk template, and with
/// work to do.
fn small_cluster(random: &mut Random, template: &'static str) -> Cluster {
    loop {
        let mut shape = Shape::draw(random, Program::Hbal);
        if shape.nodes < 3 || shape.nodes > 8 || shape.exclusive > 0 || shape.instances < shape.nodes {
            continue;
        }
        shape.template = template;
        shape.symmetric = false;
        let mut cluster = cluster::draw(random, &shape);
        for instance in &mut cluster.instances {
            // The reference crashes on drbd without a secondary.
            if instance.template == "drbd" && instance.secondary.is_none() {
                instance.template = "plain";
            }
        }
        let names = cluster.nodes.iter().map(|node| &node.name);
        let mut names = names.chain(cluster.instances.iter().map(|instance| &instance.name));
        // The reference writes other names as Latin-1, which isn't valid JSON.
        if names.all(|name| name.is_ascii()) {
            return cluster;
        }
    }
}

/// Adds tags that allow, forbid and record repairs.
fn decorate(random: &mut Random, cluster: &mut Cluster) {
    if random.chance(60) {
        cluster.tags.push(policy_tag(random));
    }
    for group in &mut cluster.groups {
        if random.chance(25) {
            group.tags.push(policy_tag(random));
        }
    }
    for (index, instance) in cluster.instances.iter_mut().enumerate() {
        for _ in 0..random.weighted(&[(50, 0), (35, 1), (15, 2)]) {
            instance.tags.push(policy_tag(random));
        }
        if random.chance(45) {
            let count = random.weighted(&[(60, 1), (30, 2), (10, 4)]);
            instance.tags.extend(repair_tags(random, index, count));
        }
    }
}

fn policy_tag(random: &mut Random) -> String {
    let word = random.weighted(&[
        (25, "reinstall"),
        (20, "failover"),
        (10, "migrate"),
        (10, "fix-storage"),
        (8, "suspend"),
        (3, "suspend:"),
        (8, "suspend:1000000000"),
        (8, "suspend:1999000000"),
        (3, "suspend:x"),
        (5, "nonsense"),
    ]);
    format!("{REPAIR}{word}")
}

/// Tags of one or more repairs.
fn repair_tags(random: &mut Random, instance: usize, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| {
            let kind = random.pick(&["fix-storage", "migrate", "failover", "reinstall"]);
            let id = format!("repair-{instance}-{}", random.below(4));
            let time = 1000 + random.below(4);
            let jobs = random.pick(&["", "11", "12", "13+11", "11+12", "14+13", "15", "x"]);
            // An unfinished repair before another is an error. It's rare, so that most runs don't end with
            // it.
            if random.chance(if count == 1 { 60 } else { 10 }) {
                format!("{REPAIR}pending:{kind}:{id}:{time}:{jobs}")
            } else {
                let result = random.weighted(&[(45, "success"), (35, "enoperm"), (20, "failure")]);
                format!("{REPAIR}result:{kind}:{id}:{time}:{result}:{jobs}")
            }
        })
        .collect()
}

/// The simulated daemon: its cluster, and the state of jobs.
struct Pretender {
    /// Answers to queries, by file name of their subject.
    answers: Vec<(&'static str, String)>,
    treatment: Treatment,
    submissions: usize,
    jobs: u64,
    polls: BTreeMap<u64, usize>,
}

impl Pretender {
    fn respond(&mut self, method: &str, arguments: &Value) -> Reply {
        match method {
            "Query" => self.query(arguments[0].as_str().unwrap_or_default()),
            "QueryClusterInfo" => self.query("cluster"),
            "SubmitManyJobs" => self.submit(arguments[0].as_array().map_or(0, Vec::len)),
            "QueryJobs" => {
                let ids = arguments[0].as_array().into_iter().flatten().filter_map(Value::as_u64);
                let states: Vec<Json> = ids.map(|id| self.state(id)).collect();
                Reply::Result(Json::List(states).to_string())
            }
            _ => Reply::Refusal("\"unknown method\"".to_owned()),
        }
    }

    fn query(&self, subject: &str) -> Reply {
        match self.answers.iter().find(|(name, _)| name.strip_suffix(".luxi") == Some(subject)) {
            Some((_, answer)) => Reply::Result(answer.clone()),
            None => Reply::Refusal("\"unknown subject\"".to_owned()),
        }
    }

    fn submit(&mut self, count: usize) -> Reply {
        let submission = self.submissions;
        self.submissions += 1;
        match self.treatment.mishap {
            Mishap::AllRefused(at) if at == submission => {
                return Reply::Refusal(
                    r#"["OpPrereqError", ["no such thing", "unknown_entity"]]"#.to_owned(),
                );
            }
            Mishap::CutOff(at) if at == submission => return Reply::CutOff,
            Mishap::Garbled(at) if at == submission => return Reply::Raw("{\"success\":true".to_owned()),
            _ => {}
        }
        let refused = matches!(self.treatment.mishap, Mishap::Refused(at) if at == submission);
        let entries = (0..count).map(|position| {
            if refused && position + 1 == count {
                return Json::List(vec![Json::Bool(false), Json::text("queue full")]);
            }
            self.jobs += 1;
            Json::List(vec![Json::Bool(true), Json::number(FIRST_JOB + self.jobs - 1)])
        });
        Reply::Result(Json::List(entries.collect()).to_string())
    }

    fn state(&mut self, id: u64) -> Json {
        let state = |word: &str| Json::texts(&[word]);
        let Some(position) = id.checked_sub(FIRST_JOB) else {
            // Jobs of earlier runs, by number.
            return state(match id {
                13 => "error",
                14 => "running",
                15 => "canceled",
                _ => "success",
            });
        };
        let polls = self.polls.entry(id).or_default();
        *polls += 1;
        match self.treatment.mishap {
            _ if self.treatment.slow && *polls == 1 => state("running"),
            Mishap::Ends(at, end) if at == position => state(end),
            Mishap::Forgotten(at) if at == position => Json::Null,
            _ => state("success"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_scenarios() {
        for seed in 0..20 {
            let (a, b) = (Scenario::draw(seed), Scenario::draw(seed));
            assert_eq!(a.command_line(), b.command_line());
            assert_eq!(live::answers(&a.cluster, None), live::answers(&b.cluster, None));
        }
    }
}
