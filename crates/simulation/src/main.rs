//! Runs simulations of the leasing service, `simulation --seeds 0..500 [--several]`, or replays a workload,
//! `simulation workload ...` ([`simulation::workload`]).

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "workload" => workload(rest),
        _ => simulations(&arguments),
    }
}

fn workload(arguments: &[String]) -> ExitCode {
    // A failed write can't be reported anywhere.
    match simulation::workload::command(arguments) {
        Ok(figures) => {
            let _ = writeln!(std::io::stdout(), "{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn simulations(arguments: &[String]) -> ExitCode {
    let (seeds, several) = match arguments {
        [flag, seeds] if flag == "--seeds" => (simulation::seeds(seeds), false),
        [flag, seeds, several] if flag == "--seeds" && several == "--several" => {
            (simulation::seeds(seeds), true)
        }
        _ => (None, false),
    };
    let mut errors = std::io::stderr();
    let Some(seeds) = seeds else {
        // A failed write can't be reported anywhere.
        let _ = writeln!(errors, "usage: simulation --seeds FROM..TO [--several]");
        return ExitCode::from(2);
    };
    let total = simulation::simulate_all(seeds, several);
    let _ = writeln!(std::io::stdout(), "{total}");
    for failure in &total.failures {
        let _ = writeln!(errors, "{failure}");
    }
    if total.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
