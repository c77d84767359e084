//! The cluster of three nodes, and its state according to Patroni.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::run::output_of;
use serde_json::Value;

use super::network;
use super::node::{Node, SCOPE, SERVICE};
use crate::leasing::http::{Caller, list};

/// Maximum wait for anything that Patroni does. A failover takes the TTL of the leader's lock at most, and a
/// returning node is rewound or copied again.
const PATIENCE: Duration = Duration::from_mins(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
const NODES: usize = 3;

/// Three nodes of a PostgreSQL cluster under Patroni.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
}

/// A node as Patroni reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    role: String,
    running: bool,
    lag_bytes: Option<u64>,
}

impl Cluster {
    /// Creates the network and a cluster with an empty database for the service, and waits until the cluster
    /// is whole.
    pub fn start(logs: &Path) -> Result<Self> {
        network::make()?;
        let nodes = (1..=NODES).map(|number| Node::new(number, logs)).collect::<Result<Vec<_>>>()?;
        let mut cluster = Self { nodes };
        let all = cluster.names();
        cluster.nodes.iter_mut().try_for_each(|node| node.start(&all))?;
        cluster.until_whole()?;
        let leader = cluster.leader()?;
        for statement in [
            format!("CREATE DATABASE {0} OWNER {0}", SERVICE.0),
            // Target of the writes that are attempted on an isolated node.
            "CREATE TABLE cut_off (attempt integer PRIMARY KEY)".to_owned(),
        ] {
            let done = cluster.node(&leader)?.sql(&statement, 30)?;
            if !done.status.success() {
                bail!("{statement}: {}", String::from_utf8_lossy(&done.stderr));
            }
        }
        Ok(cluster)
    }

    /// Database URL for the service, with all servers.
    pub fn url(&self) -> String {
        let hosts: Vec<&str> = self.nodes.iter().map(Node::address).collect();
        let (user, password) = SERVICE;
        format!("postgres://{user}:{password}@{}/{user}?sslmode=disable", hosts.join(","))
    }

    pub fn node(&self, name: &str) -> Result<&Node> {
        self.nodes
            .iter()
            .find(|node| node.name() == name)
            .with_context(|| format!("no node is called {name}"))
    }

    /// Kills all processes of a node.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        self.node_mut(name)?.kill()
    }

    /// Starts all processes of a node.
    pub fn revive(&mut self, name: &str) -> Result<()> {
        let all = self.names();
        self.node_mut(name)?.start(&all)
    }

    /// Name of the primary, from the first node that answers.
    pub fn leader(&self) -> Result<String> {
        let members = self.members()?;
        primary(&members).map(str::to_owned).context("there is no primary at present")
    }

    /// The standby that has every commit.
    pub fn synchronous_standby(&self) -> Result<String> {
        let members = self.members()?;
        let standby = members.iter().find(|member| member.role == "sync_standby");
        standby.map(|member| member.name.clone()).context("there is no synchronous standby at present")
    }

    /// Waits until the primary is a node other than `than`, and returns it.
    pub fn until_other_leader(&self, than: &str) -> Result<String> {
        // Unreachable nodes are skipped. Reachable ones can report the previous primary for a while.
        self.until("no other node becomes the primary", |cluster| {
            let others = cluster.nodes.iter().filter(|node| node.name() != than);
            let said = others.filter_map(|node| primary(&members_by(node).ok()?).map(str::to_owned));
            said.into_iter().find(|name| name != than)
        })
    }

    /// Waits until all nodes report a primary, a synchronous standby and no lag. All nodes must agree,
    /// because a node that was isolated reports the old state for a while.
    pub fn until_whole(&self) -> Result<()> {
        self.until("the cluster does not become whole", |cluster| {
            let said: Vec<Vec<Member>> = cluster.nodes.iter().map(members_by).collect::<Result<_>>().ok()?;
            let agreed = said.windows(2).all(|pair| primary(&pair[0]) == primary(&pair[1]));
            (agreed && said.iter().all(|members| is_whole(members))).then_some(())
        })
    }

    /// Runs `patronictl switchover`, as an operator would.
    pub fn switch_over(&self, from: &str, to: &str) -> Result<()> {
        let configuration = self.node(to)?.configuration();
        let mut command = Command::new("patronictl");
        command.arg("-c").arg(configuration).args([
            "switchover",
            "--force",
            "--leader",
            from,
            "--candidate",
            to,
        ]);
        output_of(command.arg(SCOPE)).map(drop)
    }

    fn until<T>(&self, complaint: &str, look: impl Fn(&Self) -> Option<T>) -> Result<T> {
        let started = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            if started.elapsed() > PATIENCE {
                bail!("{complaint} within {} s: {:?}", PATIENCE.as_secs(), self.members());
            }
            sleep(BETWEEN_LOOKS);
        }
    }

    fn members(&self) -> Result<Vec<Member>> {
        let mut answers = self.nodes.iter().map(members_by);
        answers.find(Result::is_ok).unwrap_or_else(|| bail!("no node answers"))
    }

    fn names(&self) -> Vec<(String, String)> {
        self.nodes.iter().map(|node| (node.name().to_owned(), node.address().to_owned())).collect()
    }

    fn node_mut(&mut self, name: &str) -> Result<&mut Node> {
        let node = self.nodes.iter_mut().find(|node| node.name() == name);
        node.with_context(|| format!("no node is called {name}"))
    }
}

/// State of all nodes, according to one node's Patroni.
fn members_by(node: &Node) -> Result<Vec<Member>> {
    let answer = Caller::impatient(&node.patroni(), Duration::from_secs(2))?.get("/cluster")?.expect(200)?;
    list(answer, "members")?.iter().map(member).collect()
}

fn member(value: &Value) -> Result<Member> {
    let text =
        |name: &str| value[name].as_str().map(str::to_owned).with_context(|| format!("no {name}: {value}"));
    // Later versions report a running standby as "streaming".
    let running = ["running", "streaming"].contains(&text("state")?.as_str());
    Ok(Member { name: text("name")?, role: text("role")?, running, lag_bytes: value["lag"].as_u64() })
}

/// Name of the primary, if there is one and it runs.
fn primary(members: &[Member]) -> Option<&str> {
    let primary = members.iter().find(|member| member.role == "leader" && member.running);
    primary.map(|member| member.name.as_str())
}

fn is_whole(members: &[Member]) -> bool {
    let count = |role: &str| members.iter().filter(|member| member.role == role).count();
    let caught_up =
        |member: &Member| member.running && (member.role == "leader" || member.lag_bytes == Some(0));
    members.len() == NODES
        && count("leader") == 1
        && count("sync_standby") == 1
        && members.iter().all(caught_up)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_whole_when_a_standby_has_every_commit_and_the_other_follows() {
        let members = |other: &str, lag: Value| -> Vec<Member> {
            let values = [
                json!({"name": "db1", "role": "leader", "state": "running", "timeline": 1}),
                json!({"name": "db2", "role": "sync_standby", "state": "running", "lag": 0}),
                json!({"name": "db3", "role": other, "state": "running", "lag": lag}),
            ];
            values.iter().map(|value| member(value).unwrap()).collect()
        };
        assert!(is_whole(&members("replica", json!(0))));
        assert!(!is_whole(&members("replica", json!("unknown"))));
        assert!(!is_whole(&members("replica", json!(16))));
        assert!(!is_whole(&members("replica", json!(0))[..2]));
    }
}
