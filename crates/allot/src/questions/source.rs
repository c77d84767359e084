//! Options that select the cluster and configure how it's evaluated. All questions have them, spelled as in
//! Ganeti's programs.

use clap::Args;
use cluster::{Cluster, GroupIdx, InitialN1, InstanceIdx, NodeIdx, did_you_mean};
use htools::data::LARGEST;
use htools::environment;
use htools::io::Io;
use htools::options::{LuxiSocket, Options};
use htools::source::SourceError;
use htools::{saving, source};
use placement::capacity::{CapacityOptions, Rule};
use placement::whatif::Changes;

use super::QuestionError;

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct SourceArguments {
    /// Read the cluster from a file, as written by `hscan` or `hbal -S`
    #[arg(short = 't', long, value_name = "FILE")]
    text_data: Option<String>,
    /// Read the cluster from its remote API
    #[arg(short, long, value_name = "ADDRESS")]
    master: Option<String>,
    /// Read from the master daemon on this node; attach the path of another socket (-L/PATH)
    #[arg(
        short = 'L', long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = ""
    )]
    luxi: Option<String>,
    /// Read the cluster from an allocation request
    #[arg(short = 'I', long, value_name = "FILE")]
    ialloc_src: Option<String>,
    /// Simulate a group: POLICY,NODES,DISK,RAM,CPUS[,SPINDLES] (can be repeated for more groups)
    #[arg(long, value_name = "SPEC")]
    simulate: Vec<String>,
    /// Treat this node as offline
    #[arg(short = 'O', long, value_name = "NODE")]
    offline: Vec<String>,
    /// Virtual CPUs to allow per physical CPU, instead of the policy's ratio
    #[arg(long, value_name = "RATIO", value_parser = positive)]
    max_cpu: Option<f64>,
    /// Keep this share of each node's disk free
    #[arg(long, value_name = "RATIO", default_value_t = 0.0, value_parser = share)]
    min_disk: f64,
    /// Memory used by the system of a KVM node, in MiB; 0 for the reported value
    #[arg(
        long, value_name = "MIB", default_value_t = 4096,
        value_parser = clap::value_parser!(i64).range(0..=LARGEST)
    )]
    static_kvm_node_memory: i64,
    /// Nodes that fail N+1 at first: short of `recorded` or of `reported` free memory; by default the value
    /// of `ALLOT_N1_INITIAL`, or else `recorded`
    #[arg(long, value_name = "RULE", value_parser = ["recorded", "reported"])]
    n1_initial: Option<String>,
    /// Keep instances apart that share a tag that begins with one of these and a colon; the cluster's own tags
    /// count as well
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    exclusion_tags: Vec<String>,
    /// Read utilization of instances from a file
    #[arg(short = 'U', long, value_name = "FILE")]
    dynu_file: Option<String>,
    /// Assume no utilization
    #[arg(long)]
    ignore_dynu: bool,
}

/// Redundancy rules for placing instances.
#[derive(Debug, Args)]
pub(super) struct RuleArguments {
    /// Don't check that each node can still be emptied (as hail does)
    #[arg(long)]
    no_capacity_checks: bool,
    /// Judge redundancy group by group: a group without it only blocks itself
    #[arg(long)]
    independent_groups: bool,
}

impl RuleArguments {
    /// Options of the placement core, for requests that name `group`.
    pub(super) fn options(&self, group: Option<GroupIdx>) -> CapacityOptions {
        CapacityOptions {
            capacity_checks: !self.no_capacity_checks,
            rule: Rule::Hail { group },
            independent_groups: self.independent_groups,
            limit: None,
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 => Ok(ratio),
        _ => Err("expected a number above 0".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

impl SourceArguments {
    /// Converts to the options of Ganeti's programs.
    fn options(&self) -> Result<Options, QuestionError> {
        let socket = |path: &String| match path.as_str() {
            "" => LuxiSocket::Default,
            path => LuxiSocket::Path(path.to_owned()),
        };
        let n1_initial = match self.n1_initial.as_deref() {
            Some("reported") => InitialN1::Reported,
            Some(_) => InitialN1::Recorded,
            // Not the default of the programs: a state must be judged the same way before and after a change.
            None => environment::initial_n1()?.unwrap_or(InitialN1::Recorded),
        };
        Ok(Options {
            text_data: self.text_data.clone(),
            master: self.master.clone(),
            luxi: self.luxi.as_ref().map(socket),
            ialloc_src: self.ialloc_src.clone(),
            simulate: self.simulate.clone(),
            offline: self.offline.clone(),
            max_cpu: self.max_cpu,
            min_disk: self.min_disk,
            static_kvm_node_memory: self.static_kvm_node_memory,
            n1_initial,
            exclusion_tags: self.exclusion_tags.clone(),
            dynu_file: self.dynu_file.clone(),
            ignore_dynu: self.ignore_dynu,
            ..Options::default()
        })
    }

    /// Loads the cluster and applies the options.
    pub(super) fn load(&self, io: &mut Io<'_>) -> Result<Cluster, QuestionError> {
        let options = self.options()?;
        let mut cluster = source::load(&options, io)?;
        source::apply_overrides(&options, &mut cluster)?;
        Ok(cluster)
    }

    /// Changes nodes and instances of the cluster, and applies the same options again.
    pub(super) fn reshape(&self, cluster: &Cluster, changes: &Changes) -> Result<Cluster, QuestionError> {
        let options = self.options()?;
        let reshaped = changes.reshape(cluster, &source::load_options(&options));
        let mut cluster = reshaped.map_err(SourceError::Selection)?;
        source::apply_overrides(&options, &mut cluster)?;
        Ok(cluster)
    }
}

/// Rewrites a socket that is attached to `-L`, as Ganeti's programs take it, to `--luxi=SOCKET`. The parser
/// accepts it only after `=`.
pub(super) fn with_attached_socket(arguments: &[String]) -> impl Iterator<Item = String> {
    let mut options = true;
    arguments.iter().flat_map(move |word| {
        options &= word != "--";
        let written_out = || {
            // Switches can precede it, as in `-CL/path`.
            let (switches, socket) = word.strip_prefix('-').filter(|_| options)?.split_once('L')?;
            let attached = switches.chars().all(|switch| switch == 'C') && !socket.is_empty();
            let socket = socket.strip_prefix('=').unwrap_or(socket);
            attached.then(|| (format!("-{switches}"), format!("--luxi={socket}")))
        };
        match written_out() {
            Some((switches, socket)) if switches == "-" => vec![socket],
            Some((switches, socket)) => vec![switches, socket],
            None => vec![word.clone()],
        }
    })
}

/// Position of the only name that is `wanted`, or else of the only one that begins with its components.
fn the_only<'a>(
    names: impl Iterator<Item = &'a String>,
    wanted: &str,
    what: &'static str,
) -> Result<usize, QuestionError> {
    let names: Vec<(usize, &String)> = names.enumerate().collect();
    let all = names.iter().map(|(_, name)| name.as_str());
    let begins = |name: &str| name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'));
    let mut found: Vec<_> = names.iter().filter(|(_, name)| *name == wanted).collect();
    if found.is_empty() {
        found = names.iter().filter(|(_, name)| begins(name)).collect();
    }
    match found.as_slice() {
        [(position, _)] => Ok(*position),
        found => Err(QuestionError::Name {
            name: wanted.to_owned(),
            what,
            found: found.iter().map(|(_, name)| (*name).clone()).collect(),
            meant: if found.is_empty() { did_you_mean(&[wanted], all) } else { String::new() },
        }),
    }
}

pub(super) fn instance(cluster: &Cluster, name: &str) -> Result<InstanceIdx, QuestionError> {
    the_only(cluster.instances.iter().map(|i| &i.name), name, "instance").map(InstanceIdx::from_usize)
}

/// Nodes by name, ascending, each once.
pub(super) fn nodes(cluster: &Cluster, names: &[String]) -> Result<Vec<NodeIdx>, QuestionError> {
    let find = |name: &String| {
        the_only(cluster.nodes.iter().map(|n| &n.name), name, "node").map(NodeIdx::from_usize)
    };
    let mut nodes = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// Writes the cluster in its current state to a file in the text format.
pub(super) fn save(mut cluster: Cluster, path: &str) -> Result<(), QuestionError> {
    cluster.settle_reports();
    Ok(saving::write(path, &saving::whole(&cluster))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_attached_as_for_ganetis_programs() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            with_attached_socket(&words).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(&["drain", "-L/run/x.sock", "n1"]), "drain --luxi=/run/x.sock n1");
        assert_eq!(read(&["drain", "-L=/run/x.sock", "-Lx"]), "drain --luxi=/run/x.sock --luxi=x");
        assert_eq!(read(&["drain", "-CL/x", "-CL"]), "drain -C --luxi=/x -CL");
        for others in
            ["drain -L n1", "drain --luxi=/x n1", "fit -t a-L/x", "drain -- -L/x", "fit -tL/x", "fit -1L"]
        {
            let words: Vec<&str> = others.split(' ').collect();
            assert_eq!(read(&words), others);
        }
    }
}
