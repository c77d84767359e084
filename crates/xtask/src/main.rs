//! The project's chores, run as `cargo xtask CHORE`: test, compare with the reference, measure, demonstrate.
//!
//! Each chore is one file here, or a separate [program](programs). Chores can install Debian packages that
//! they need, and never pass by skipping their checks.

#[cfg(test)]
mod book;
#[cfg(test)]
mod circles;
mod console;
#[cfg(test)]
mod criteria;
mod demo;
mod fuzz;
mod limits;
mod package;
mod programs;
mod prose;
#[cfg(test)]
mod retired;
mod size;
mod source;
mod sqlx_prepare;
mod test;
#[cfg(test)]
mod tidy;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail};
use chores::arguments::Arguments;

use self::programs::Program;

const HELP: &str = "\
Development tasks of the project.

Usage: cargo xtask CHORE [OPTIONS]

Checks
  test                          Run all checks of continuous integration
      --only STAGE                Run one stage, as named in the table at the end
      --ours PATH                 Program to test (default: built here)
  differential                  Compare the reference and ours on generated clusters
      --seeds A..B | N            Seeds (default 0..300), each with all programs
      --program NAME              Run only this program
      --wide                      Use only unusual clusters, of up to 2,500 nodes
      --timeout S                 Time limit for a case in seconds (default 4)
      --reference PATH            The reference (default: the installed package)
      --ours PATH                 Program to compare with it (default: built here)
  case --seed N                 Write the files of a generated case and print its command
      --program NAME --out DIR --wide
  serve --dir DIR               Serve the files of a case as a master daemon on DIR/socket,
                                  and as a remote API on a free port
  soak [--hours H]              Run differential and feasibility on more seeds than test,
                                  then for hours (default 1) with random seeds, and verify
                                  plans of our own commands
  soak leases [--hours H]       Soak the leasing service: simulation with random seeds of one
                                  service and of several, races, replicas with faults
      --rounds N                  Run only races, N rounds of each
  vectors [--ours PATH]         Compare with recorded runs of two versions of the reference
  captures [--ours PATH]        Compare with recorded requests to a real master daemon
  execution                     Compare the jobs that programs send to a master daemon
      --seeds A..B                Seeds (default 0..120)
      --ours PATH --reference PATH
  advisories [--database DIR]   Check dependencies for known faults (default: the database
                                  that $ALLOT_ADVISORY_DB names)
  feasibility [--seeds A..B]    Fill clusters with hail up to the capacity that hspace
                                  reports, and check them with hcheck (default 300)
  leasing [STAGE] [--ours PATH] Test the leasing service as a process: races, gabbi,
                                  schemathesis, processes (kill -9, a full disk, a changed
                                  clock), replicas (three on PostgreSQL, with faults),
                                  clients (blazar, openstack)
  fuzz [--seconds N]            Run the parsers on random input (default 60 each)
  fuzz leases                   Send malformed and abusive requests to the leasing service
      --minutes N                 Duration (default 5)
      --seed S                    Seed (default: the time)

Texts and size
  words                         Print unusual constructions per 1,000 words of each crate, and the limits
      --worst N [PLACE]           Print the worst texts, below PLACE (a crate or a path)
      --record                    Lower the limits to the current rates
  size                          Print lines of code, comments and tests of each crate, and the limit

Database
  sqlx-prepare [--check]        Describe the store's queries for the compiler, after a change
                                  of a query or the schema (--check: only compare)

Delivery
  console                       Build the web console into console/dist, which the next build
                                  of allot includes (needs Node.js; as root, installs it)
      --test                      Run its tests in a browser, with a program built here
      --bless                     Like --test, and update the pictures of the README
      --schema                    Update console/src/api/schema.ts
      --ours PATH                 Program to test or to query (default: built here)
  package [--out DIR]           Build a Debian package: service, unit, manual pages,
      --ours PATH                 completions, and links for Ganeti's programs
                                  (--check: build a package and inspect it;
                                  --any-size: allow a program above 32 MB)

Measurements
  bench placement [--quick]     Compare time and memory with the reference
                                  (--quick: only rows where it takes < 20 s)
      --only TEXT                 Run only rows with names that contain TEXT
  bench leases [--json]         Measure the leasing service under load against its targets
      --hosts N --leases N        Size (default 1,000 and 10,000; start-up with 100,000:
      --many N --samples N        --many)
      --only PART                 Run one part: service, preemptible, start-up, usage or core
  bench calendar [--json]       Measure the calendar and free capacity with 2,000 hosts and 20,000
      --hosts N --leases N        leases; with --console also the time to draw them in a browser
      --samples N --ours PATH
      --console
  bench hostile [--json]        Measure latencies of ordinary users while 16 users send the largest
      --hosts N,...               input of each operation (default 6,1000,10000; just under an hour).
      --seconds N                 Fails above a limit (seconds of each attack, default 3)
      --only NAME,...             Run only attackers with names that contain one of these
      --ours PATH
  bench hunts [CASES]           Compare plans of hunts with optimal plans (builds a solver: minutes)
  bench refusals [COUNT]        Count refused requests for whole hosts (default 2,000) that moves of
      --seed N                    leases could have accommodated, by the same solver. Fails above a limit
                                  (default: seeds from the hash of the commit)
  bench quality [balancing|rolling] [--large] [--json]
                                Compare deep searches (hbal, hroller) with exact searches
  bench scaling [--full]        Measure hbal's first move on 80 to 2,000 nodes (5,000)
  bench instructions [--bless]  Compare instructions of fixed runs with the recorded
                                  counts (--bless: record them again)
  bench fill [--json]           Replay jobs with and without preemptible instances in the gaps, which
      --trace T --limit N         arrive like virtual machines in a public cloud (every 40th batch)
      --every N --ours PATH
  bench workload [--json]       Replay a month of reservations among jobs of a real machine, with
      --trace T --variant V       and without offers, waitlist, hunts and power saving
      --limit N --seed S          (default: three traces, all variants, all jobs, 1)
      --ours PATH

Labs with real software
  lab clients [--ours PATH]       Run Heat, the dashboard's api module and python-chi against
                                  allot serve
  lab ganeti [--keep] [--ours PATH]  Run real jobs on six virtual nodes with real daemons,
                                  with all decisions by ours (root; some minutes)
  lab openstack [--keep]          Run allot serve in the catalog of a real Keystone, with all
      --port N --ours PATH        kinds of logins (root; some minutes; default: ports from 25600)
      --only PARTS                Run some parts: logins, blazar-filter, ...
      --tempest                   Run Blazar's own acceptance tests instead
      --import                    Import 50 leases of a real Blazar instead
      --compare                   Send the same requests to Blazar and to allot serve instead
  lab postgres-ha [--ours PATH]   Run three services on a PostgreSQL that Patroni over etcd
      --minutes N                 makes highly available. Kills, isolates and demotes its
      --keep                      primary in rounds for N minutes (default: one round; root;
                                  some minutes)

Demos
  demo                          Run the leasing service and its console on simulated racks,
                                  with past, current and future leases; prints what to try
      --listen ADDR:PORT          Address (default 127.0.0.1:1234)
      --speed FACTOR              Speed of the service's clock (default 60)
      --directory DIR             Keep the database in DIR
  demo balance                  Balance a cluster, and explain an allocation
  cluster --out PREFIX          Write PREFIX.data and PREFIX.*.json
      --nodes N --seed S          Size and seed (default 20 nodes, seed 1)
      --instances-per-node K      Instances per node (default 10)

Environment: ALLOT_SHARED (the reference material, default ../shared),
ALLOT_REFERENCE (the reference's executable), CARGO_TARGET_DIR.
";

fn main() -> ExitCode {
    chores::program::main(HELP, dispatch)
}

fn dispatch(mut arguments: Arguments) -> Result<()> {
    let Some(chore) = arguments.word() else {
        print!("{HELP}");
        return Ok(());
    };
    match chore.as_str() {
        "test" => test::main(arguments),
        "fuzz" => fuzz::main(arguments),
        "console" => console::main(arguments),
        "demo" => demo::main(arguments),
        "package" => package::main(arguments),
        "sqlx-prepare" => sqlx_prepare::main(arguments),
        "size" => size::main(arguments),
        "words" => words::main(arguments),
        "advisories" => Program::Advisories.become_it(arguments.rest()),
        "bench" => Program::Bench.become_it(arguments.rest()),
        _ => {
            let rest = arguments.rest();
            let program = match chore.as_str() {
                "leasing" | "lab" => Program::E2e,
                "soak" if rest.iter().any(|word| word == "leases") => Program::E2e,
                "differential" | "soak" | "vectors" | "captures" | "execution" | "feasibility" | "case"
                | "serve" | "cluster" => Program::Differential,
                other => bail!("no chore is called '{other}'; see cargo xtask --help"),
            };
            program.become_it([chore].into_iter().chain(rest))
        }
    }
}
