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
The project's own chores.

Usage: cargo xtask CHORE [OPTIONS]

Checks
  test                          everything that continuous integration runs
      --only STAGE                only that part of it, as the table at the end calls it
      --ours PATH                 what to test (default: built here)
  differential                  the reference and ours on generated clusters
      --seeds A..B | N            which (default 0..300), each with all programs
      --program NAME              only that one
      --wide                      only unusual clusters, of up to 2,500 nodes
      --timeout S                 give up on a case after S seconds (default 4)
      --reference PATH            the reference (default: the installed package)
      --ours PATH                 what to compare with it (default: built here)
  case --seed N                 write the files of such a case and print its line
      --program NAME --out DIR --wide
  serve --dir DIR               a master daemon and a remote API that answer from
                                  such files, on DIR/socket and on a free port
  soak [--hours H]              differential and feasibility on more seeds than test has,
                                  then for hours (default 1), with fresh ones, plans of our
                                  own commands, verified, and differential
  soak leases [--hours H]       the leasing service: simulation with fresh seeds of one
                                  service and of several, races, replicas that fail
      --rounds N                  races only, so many of each
  vectors [--ours PATH]         recorded runs of two versions of the reference
  captures [--ours PATH]        requests of a real cluster's master daemon
  execution                     jobs that programs give to a master daemon
      --seeds A..B                (default 0..120)
      --ours PATH --reference PATH
  advisories [--database DIR]   whether a dependency has a known fault (default:
                                  the database that $ALLOT_ADVISORY_DB names)
  feasibility [--seeds A..B]    fill clusters by hail: as many as hspace promised,
                                  and hcheck approves (default 300)
  leasing [STAGE] [--ours PATH] the leasing service as a process: races, gabbi,
                                  schemathesis, processes (kill -9, a full disk, a
                                  clock that is set), replicas (three of them on
                                  PostgreSQL, and faults), clients (blazar, openstack)
  fuzz [--seconds N]            the parsers on random input (default 60 each)
  fuzz leases                   requests that nobody should send, to the leasing service
      --minutes N               (default 5)
      --seed S                  (default: the time)

Texts and size
  words                         unusual constructions per 1,000 words of each crate, and the limits
      --worst N [PLACE]           the texts with the most of them, below PLACE (a crate or a path)
      --record                    lower the limits to the present rates
  size                          lines of code, comments and tests of each crate, and the ceiling

Database
  sqlx-prepare [--check]        what the compiler knows of the store's queries, after
                                  one or the schema has changed (--check: compare)

Delivery
  console                       the web console, into console/dist: the next build of
                                  allot takes it in (Node.js; installed where root may)
      --test                      its tests, in a browser, with what is built here
      --bless                     the same, and take the pictures of the README again
      --schema                    write console/src/api/schema.ts again
      --ours PATH                 what to test or to ask (default: built here)
  package [--out DIR]           a Debian package: service, unit, manual pages,
      --ours PATH                 completions, and links beside Ganeti's programs
                                  (--check: build one and look into it;
                                  --any-size: of a program above 32 MB as well)

Measurements
  bench placement [--quick]     time and memory beside the reference's
                                  (--quick: only rows where it takes < 20 s)
      --only TEXT                 only rows whose name contains TEXT
  bench leases [--json]         the leasing service under load, beside what is wanted
      --hosts N --leases N        (default 1,000 and 10,000; start-up with 100,000:
      --many N --samples N        --many)
      --only PART                 service, preemptible, start-up, usage or core
  bench calendar [--json]       how long the calendar and what is free take, with 2,000 hosts and 20,000
      --hosts N --leases N        leases; with --console also how long a browser takes to draw them
      --samples N --ours PATH
      --console
  bench hostile [--json]        how long others wait while 16 users send the largest input of each
      --hosts N,...               operation (default 6,1000,10000; just under an hour); fails where a
      --seconds N                 figure exceeds what is wanted (seconds of each attack, default 3)
      --only NAME,...             attackers of these names, or whose names contain one of these
      --ours PATH
  bench hunts [CASES]           plans of hunts beside the cheapest ones (builds a solver: minutes)
  bench refusals [COUNT]        refused requests for whole hosts (default 2,000) that moves of leases
      --seed N                    would have made room for, by the same solver; fails where there are too
                                  many (default: seeds from the hash of the commit)
  bench quality [balancing|rolling] [--large] [--json]
                                what deep searches find (hbal, hroller), beside the exact ones
  bench scaling [--full]        hbal's first move on 80 to 2,000 nodes (5,000)
  bench instructions [--bless]  instructions of fixed runs against the recorded
                                  counts (--bless: record them again)
  bench fill [--json]           the same jobs with and without preemptible instances in the gaps, which
      --trace T --limit N         come as virtual machines came to a public cloud (every 40th batch)
      --every N --ours PATH
  bench workload [--json]       a month of reservations among jobs of a real machine, replayed with
      --trace T --variant V       and without offers, waitlist, hunts and saved power
      --limit N --seed S          (default: three traces, all variants, all jobs, 1)
      --ours PATH

Real peers
  lab clients [--ours PATH]       Heat, the dashboard's api module and python-chi against
                                  allot serve
  lab ganeti [--keep] [--ours PATH]  six virtual nodes with real daemons and real jobs,
                                  all decisions taken by ours (root; some minutes)
  lab openstack [--keep]          a real Keystone, with allot serve in its catalog, logins of
      --port N --ours PATH        every kind (root; some minutes; default: ports from 25600)
      --only PARTS                some of its parts: logins, blazar-filter, ...
      --tempest                   Blazar's own acceptance tests instead
      --import                    a Blazar with 50 leases, which are taken over, instead
      --compare                   a Blazar beside allot serve, asked the same, instead
  lab postgres-ha [--ours PATH]   three services on a PostgreSQL made highly available by
      --minutes N                 Patroni over etcd: its primary is killed, cut off, and
      --keep                      told to step down, in rounds for N minutes (default:
                                  one round; root; some minutes)

To look at
  demo                          the leasing service on simulated racks, with leases past,
                                  present and coming, and its console; prints what to try
      --listen ADDR:PORT          (default 127.0.0.1:1234)
      --speed FACTOR              of the service's clock (default 60)
      --directory DIR             keep the database there
  demo balance                  a cluster, balanced, and an allocation explained
  cluster --out PREFIX          write PREFIX.data and PREFIX.*.json
      --nodes N --seed S          (default 20 nodes, seed 1)
      --instances-per-node K      (default 10)

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
