//! What command lines may say, and what holds where they say nothing.

use std::time::Duration;

use cluster::{DiskTemplate, InitialN1};
use placement::Search;
use placement::balance::BalanceOptions;
use placement::deep::CopyLimit;

use super::values::{AllocSpec, FieldSelection, LuxiSocket, PrintCommands, Priority};

/// Everything that a command line may say; one field per option, whichever program has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `--print-nodes`: print tables of nodes, with these fields.
    pub print_nodes: Option<FieldSelection>,
    /// `--print-instances`: print tables of instances.
    pub print_instances: bool,
    /// `--save`: write states to files whose names begin like this.
    pub save: Option<String>,
    /// `--print-commands`: where to print commands.
    pub print_commands: Option<PrintCommands>,
    /// `--text-data`: the file to read.
    pub text_data: Option<String>,
    /// `--master`: the address to ask.
    pub master: Option<String>,
    /// `--luxi`: the socket to ask.
    pub luxi: Option<LuxiSocket>,
    /// `--ialloc-src`: the allocation request to read.
    pub ialloc_src: Option<String>,
    /// `--simulate`: clusters to make up, in the order given.
    pub simulate: Vec<String>,
    /// How much to say: 1, one more for each `--verbose` and one less for each `--quiet`.
    pub verbosity: i64,
    /// `--offline`: nodes to take for offline; the last given first, as the reference lists them.
    pub offline: Vec<String>,
    /// `--exec`: run the jobs.
    pub exec: bool,
    /// `--first-job-group`: print or run only the first set of jobs.
    pub first_job_group: bool,
    /// `--reason`: why jobs are run.
    pub reason: Option<String>,
    /// `--priority`: of jobs.
    pub priority: Option<Priority>,
    /// `--group`: name or UUID of the group to work on.
    pub group: Option<String>,
    /// `--max-length`: at most so many moves or allocations; negative for no limit.
    pub max_length: i64,
    /// `--min-score`: what is this close to the optimum is balanced.
    pub min_score: f64,
    /// `--min-gain`: stop when a step gains less.
    pub min_gain: f64,
    /// `--min-gain-limit`: look at gains only below this score.
    pub min_gain_limit: f64,
    /// `--max-cpu`: allowed ratio of virtual to physical CPUs, instead of the policy's.
    pub max_cpu: Option<f64>,
    /// `--min-disk`: share of each node's disk to keep free.
    pub min_disk: f64,
    /// `--evac-mode`: move instances only off offline nodes.
    pub evac_mode: bool,
    /// `--restricted-migration`: never migrate before replacing the primary.
    pub restricted_migration: bool,
    /// `--no-disk-moves`: move no data.
    pub no_disk_moves: bool,
    /// `--no-instance-moves`: keep primaries where they are.
    pub no_instance_moves: bool,
    /// `--select-instances`: move only these.
    pub select_instances: Vec<String>,
    /// `--exclude-instances`: do not move these.
    pub exclude_instances: Vec<String>,
    /// `--exclusion-tags`: prefixes of tags that keep instances apart.
    pub exclusion_tags: Vec<String>,
    /// `--ignore-soft-errors`: accept worse violations of policies that are violated already.
    pub ignore_soft_errors: bool,
    /// `--dynu-file`: file with the utilisation of instances.
    pub dynu_file: Option<String>,
    /// `--ignore-dynu`: assume no utilisation at all.
    pub ignore_dynu: bool,
    /// `--mond`: use loads that monitoring daemons measure.
    pub mond: bool,
    /// `--mond-data`: file with the daemons' answers.
    pub mond_data: Option<String>,
    /// `--mond-xen`: use loads that Xen measures.
    pub mond_xen: bool,
    /// `--exit-on-missing-mond-data`: do not go on without loads.
    pub exit_on_missing_mond_data: bool,
    /// `--static-kvm-node-memory`: memory that the system of a KVM node uses, MiB; not positive for what is
    /// reported.
    pub static_kvm_node_memory: i64,
    /// `--restrict-allocation-to`: use only these nodes.
    pub restrict_allocation_to: Option<Vec<String>>,
    /// `--no-capacity-checks`: do not look at the redundancy of the whole cluster.
    pub no_capacity_checks: bool,
    /// `--machine-readable`: print keys and values.
    pub machine_readable: bool,
    /// `--no-simulation`: do not try to balance.
    pub no_simulation: bool,
    /// `--disk-template`: of instances to place.
    pub disk_template: Option<DiskTemplate>,
    /// `--spindle-use`: of instances to place.
    pub spindle_use: Option<i64>,
    /// `--standard-alloc`: shape of instances to place.
    pub standard_alloc: Option<AllocSpec>,
    /// `--tiered-alloc`: shape of the first instances to place.
    pub tiered_alloc: Option<AllocSpec>,
    /// `--independent-groups`: look at each group's redundancy alone.
    pub independent_groups: bool,
    /// `--accept-existing-errors`: go on where redundancy is lost already.
    pub accept_existing_errors: bool,
    /// `--no-headers`: print results only.
    pub no_headers: bool,
    /// `--node-tags`: only nodes with one of these tags.
    pub node_tags: Option<Vec<String>>,
    /// `--one-step-only`: only the first group of nodes.
    pub one_step_only: bool,
    /// `--print-moves`: print where instances go.
    pub print_moves: bool,
    /// `--full-evacuation`: take secondaries away as well.
    pub full_evacuation: bool,
    /// `--offline-maintenance`: instances are shut down.
    pub offline_maintenance: bool,
    /// `--skip-non-redundant`: leave nodes with instances that cannot move alone.
    pub skip_non_redundant: bool,
    /// `--ignore-non-redundant`: instances that cannot move do not matter.
    pub ignore_non_redundant: bool,
    /// `--force`: go on without the master node.
    pub force: bool,
    /// `--minimal-resources`: free resources to keep, in standard instances.
    pub minimal_resources: f64,
    /// `--target-resources`: free resources to provide, in standard instances.
    pub target_resources: f64,
    /// `--output-dir`: where files go.
    pub output_dir: String,
    /// `--job-delay`: seconds to wait before a job starts.
    pub job_delay: f64,
    /// `--dry-run`: change nothing.
    pub dry_run: bool,
    /// `--version`: print the version and stop.
    pub version: bool,
    /// `--help`: print help and stop.
    pub help: bool,
    /// `--help-completion`: print a list of options and stop.
    pub help_completion: bool,
    /// `--explain` (Allotment's own): say why.
    pub explain: bool,
    /// `--json` (Allotment's own): print results as JSON.
    pub json: bool,
    /// `--n1-initial` (Allotment's own): which nodes count as failing N+1 at first.
    pub n1_initial: InitialN1,
    /// `--rapi-ca` (Allotment's own): authorities that a remote API's certificate must be signed by.
    pub rapi_ca: Option<String>,
    /// `--mond-port` (Allotment's own): where monitoring daemons listen.
    pub mond_port: u16,
    /// `--repair-only` (Allotment's own): end violations, and do not balance.
    pub repair_only: bool,
    /// `--ignore-offline` (Allotment's own): do not want room on offline nodes.
    pub ignore_offline: bool,
    /// `--threads` (Allotment's own): how many to use; 0 for one per core.
    pub threads: usize,
    /// `--search` (Allotment's own): how hard to look for a decision.
    pub search: Search,
    /// `--search-time` (Allotment's own): how long a deep search may take.
    pub search_time: Option<Duration>,
    /// `--search-rounds` (Allotment's own): how many rounds a deep search has.
    pub search_rounds: Option<usize>,
    /// `--search-seed` (Allotment's own): where the random numbers of a deep search start.
    pub search_seed: u64,
    /// `--max-copies` (Allotment's own): how often a deep search may copy disks.
    pub max_copies: CopyLimit,
    /// What is no option.
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
