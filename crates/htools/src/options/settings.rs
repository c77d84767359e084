//! Values of all command-line options, and their defaults.

use std::time::Duration;

use cluster::{DiskTemplate, InitialN1};
use placement::Search;
use placement::balance::BalanceOptions;
use placement::deep::CopyLimit;

use super::values::{AllocSpec, FieldSelection, LuxiSocket, PrintCommands, Priority};

/// Values of all options, one field per option, even if only some programs accept it.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `--print-nodes`: print tables of nodes with these fields.
    pub print_nodes: Option<FieldSelection>,
    /// `--print-instances`: print tables of instances.
    pub print_instances: bool,
    /// `--save`: prefix of the files that states are written to.
    pub save: Option<String>,
    /// `--print-commands`: destination of commands.
    pub print_commands: Option<PrintCommands>,
    /// `--text-data`: file to read the cluster from.
    pub text_data: Option<String>,
    /// `--master`: address of the remote API.
    pub master: Option<String>,
    /// `--luxi`: socket of the master daemon.
    pub luxi: Option<LuxiSocket>,
    /// `--ialloc-src`: allocation request to read the cluster from.
    pub ialloc_src: Option<String>,
    /// `--simulate`: specifications of simulated groups, in the order given.
    pub simulate: Vec<String>,
    /// Verbosity: 1, plus one for each `--verbose`, minus one for each `--quiet`.
    pub verbosity: i64,
    /// `--offline`: nodes to mark offline. The last one given comes first, as in the reference's list.
    pub offline: Vec<String>,
    /// `--exec`: run the jobs.
    pub exec: bool,
    /// `--first-job-group`: print or run only the first set of jobs.
    pub first_job_group: bool,
    /// `--reason`: reason of jobs.
    pub reason: Option<String>,
    /// `--priority`: priority of jobs.
    pub priority: Option<Priority>,
    /// `--group`: name or UUID of the group to work on.
    pub group: Option<String>,
    /// `--max-length`: maximum number of moves or allocations; negative for no limit.
    pub max_length: i64,
    /// `--min-score`: distance from the optimal score within which a group counts as balanced.
    pub min_score: f64,
    /// `--min-gain`: minimum gain of a step; see `min_gain_limit`.
    pub min_gain: f64,
    /// `--min-gain-limit`: a score; above it, any gain is enough.
    pub min_gain_limit: f64,
    /// `--max-cpu`: limit of virtual CPUs per physical CPU, instead of the policy's.
    pub max_cpu: Option<f64>,
    /// `--min-disk`: share of each node's disk to keep free.
    pub min_disk: f64,
    /// `--evac-mode`: move instances only off offline nodes.
    pub evac_mode: bool,
    /// `--restricted-migration`: no moves that migrate a running instance twice or off a healthy node.
    pub restricted_migration: bool,
    /// `--no-disk-moves`: never copy disks.
    pub no_disk_moves: bool,
    /// `--no-instance-moves`: never change primaries.
    pub no_instance_moves: bool,
    /// `--select-instances`: move only these; empty for all.
    pub select_instances: Vec<String>,
    /// `--exclude-instances`: never move these.
    pub exclude_instances: Vec<String>,
    /// `--exclusion-tags`: prefixes of tags that keep instances on different nodes, without the colon.
    pub exclusion_tags: Vec<String>,
    /// `--ignore-soft-errors`: ignore exclusion tags, policy ratios, minimum free disk and N+1 of target
    /// nodes.
    pub ignore_soft_errors: bool,
    /// `--dynu-file`: file with the utilization of instances.
    pub dynu_file: Option<String>,
    /// `--ignore-dynu`: set all utilization to 0.
    pub ignore_dynu: bool,
    /// `--mond`: use loads measured by monitoring daemons.
    pub mond: bool,
    /// `--mond-data`: file with the daemons' answers.
    pub mond_data: Option<String>,
    /// `--mond-xen`: use loads of instances measured by Xen.
    pub mond_xen: bool,
    /// `--exit-on-missing-mond-data`: fail if measured loads are incomplete.
    pub exit_on_missing_mond_data: bool,
    /// `--static-kvm-node-memory`: system memory of KVM nodes, MiB. Values of 0 or less keep the reported
    /// memory.
    pub static_kvm_node_memory: i64,
    /// `--restrict-allocation-to`: allocate only on these nodes.
    pub restrict_allocation_to: Option<Vec<String>>,
    /// `--no-capacity-checks`: skip the N+1 check of the whole cluster.
    pub no_capacity_checks: bool,
    /// `--machine-readable`: print keys and values.
    pub machine_readable: bool,
    /// `--no-simulation`: don't simulate balancing.
    pub no_simulation: bool,
    /// `--disk-template`: disk template of instances to allocate.
    pub disk_template: Option<DiskTemplate>,
    /// `--spindle-use`: spindle use of instances to allocate.
    pub spindle_use: Option<i64>,
    /// `--standard-alloc`: shape of instances in standard allocation.
    pub standard_alloc: Option<AllocSpec>,
    /// `--tiered-alloc`: shape of the first instances in tiered allocation.
    pub tiered_alloc: Option<AllocSpec>,
    /// `--independent-groups`: judge the redundancy of each group separately.
    pub independent_groups: bool,
    /// `--accept-existing-errors`: continue if redundancy is already lost.
    pub accept_existing_errors: bool,
    /// `--no-headers`: print results only.
    pub no_headers: bool,
    /// `--node-tags`: use only nodes with one of these tags.
    pub node_tags: Option<Vec<String>>,
    /// `--one-step-only`: print only the first group of nodes.
    pub one_step_only: bool,
    /// `--print-moves`: print the moves of instances.
    pub print_moves: bool,
    /// `--full-evacuation`: also move secondaries away.
    pub full_evacuation: bool,
    /// `--offline-maintenance`: instances are stopped during maintenance, so they don't move.
    pub offline_maintenance: bool,
    /// `--skip-non-redundant`: leave out nodes with primaries that have no secondary.
    pub skip_non_redundant: bool,
    /// `--ignore-non-redundant`: don't move instances that have no secondary.
    pub ignore_non_redundant: bool,
    /// `--force`: continue if no node is the master.
    pub force: bool,
    /// `--minimal-resources`: capacity below which nodes are powered on, in standard instances per node.
    pub minimal_resources: f64,
    /// `--target-resources`: capacity that remains after powering nodes on or off, in standard instances per
    /// node.
    pub target_resources: f64,
    /// `--output-dir`: directory for files.
    pub output_dir: String,
    /// `--job-delay`: delay before a repair starts, in seconds.
    pub job_delay: f64,
    /// `--dry-run`: change nothing.
    pub dry_run: bool,
    /// `--version`: print the version and exit.
    pub version: bool,
    /// `--help`: print help and exit.
    pub help: bool,
    /// `--help-completion`: print a list of options and exit.
    pub help_completion: bool,
    /// `--explain` (Allotment's own): print reasons of decisions.
    pub explain: bool,
    /// `--json` (Allotment's own): print results as JSON.
    pub json: bool,
    /// `--n1-initial` (Allotment's own): rule for nodes that fail N+1 at load.
    pub n1_initial: InitialN1,
    /// `--rapi-ca` (Allotment's own): file of authorities that must have signed the remote API's certificate.
    pub rapi_ca: Option<String>,
    /// `--mond-port` (Allotment's own): port of monitoring daemons.
    pub mond_port: u16,
    /// `--repair-only` (Allotment's own): end violations instead of balancing.
    pub repair_only: bool,
    /// `--ignore-offline` (Allotment's own): require no capacity on offline nodes.
    pub ignore_offline: bool,
    /// `--threads` (Allotment's own): number of threads; 0 for one per core.
    pub threads: usize,
    /// `--search` (Allotment's own): search method.
    pub search: Search,
    /// `--search-time` (Allotment's own): duration of a deep search.
    pub search_time: Option<Duration>,
    /// `--search-rounds` (Allotment's own): number of rounds of a deep search.
    pub search_rounds: Option<usize>,
    /// `--search-seed` (Allotment's own): seed of a deep search's random numbers.
    pub search_seed: u64,
    /// `--max-copies` (Allotment's own): limit on disk copies in a deep search.
    pub max_copies: CopyLimit,
    /// Arguments that are not options.
    pub positional: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            print_nodes: None,
            print_instances: false,
            save: None,
            print_commands: None,
            text_data: None,
            master: None,
            luxi: None,
            ialloc_src: None,
            simulate: Vec::new(),
            verbosity: 1,
            offline: Vec::new(),
            exec: false,
            first_job_group: false,
            reason: None,
            priority: None,
            group: None,
            max_length: -1,
            min_score: 1e-9,
            min_gain: 1e-2,
            min_gain_limit: 1e-1,
            max_cpu: None,
            min_disk: 0.0,
            evac_mode: false,
            restricted_migration: false,
            no_disk_moves: false,
            no_instance_moves: false,
            select_instances: Vec::new(),
            exclude_instances: Vec::new(),
            exclusion_tags: Vec::new(),
            ignore_soft_errors: false,
            dynu_file: None,
            ignore_dynu: false,
            mond: false,
            mond_data: None,
            mond_xen: false,
            exit_on_missing_mond_data: false,
            static_kvm_node_memory: 4096,
            restrict_allocation_to: None,
            no_capacity_checks: false,
            machine_readable: false,
            no_simulation: false,
            disk_template: None,
            spindle_use: None,
            standard_alloc: None,
            tiered_alloc: None,
            independent_groups: false,
            accept_existing_errors: false,
            no_headers: false,
            node_tags: None,
            one_step_only: false,
            print_moves: false,
            full_evacuation: false,
            offline_maintenance: false,
            skip_non_redundant: false,
            ignore_non_redundant: false,
            force: false,
            minimal_resources: 2.0,
            target_resources: 2.0,
            output_dir: ".".to_owned(),
            job_delay: 10.0,
            dry_run: false,
            version: false,
            help: false,
            help_completion: false,
            explain: false,
            json: false,
            n1_initial: InitialN1::default(),
            rapi_ca: None,
            mond_port: crate::mond::PORT,
            repair_only: false,
            ignore_offline: false,
            threads: 0,
            search: Search::default(),
            search_time: None,
            search_rounds: None,
            search_seed: 0,
            max_copies: CopyLimit::default(),
            positional: Vec::new(),
        }
    }
}

impl From<&Options> for BalanceOptions {
    fn from(options: &Options) -> Self {
        Self {
            disk_moves: !options.no_disk_moves,
            instance_moves: !options.no_instance_moves,
            restricted_migration: options.restricted_migration,
            evacuate_only: options.evac_mode,
            readable_only: false,
            ignore_soft_errors: options.ignore_soft_errors,
            min_gain_limit: options.min_gain_limit,
            min_gain: options.min_gain,
            min_score: options.min_score,
            max_moves: usize::try_from(options.max_length).ok(),
        }
    }
}
