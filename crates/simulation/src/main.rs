//! Runs simulations of the leasing service: `simulation --seeds 0..500 [--several]`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seeds, several) = match arguments.as_slice() {
        [flag, seeds] if flag == "--seeds" => (simulation::seeds(seeds), false),
        [flag, seeds, several] if flag == "--seeds" && several == "--several" => {
            (simulation::seeds(seeds), true)
        }
        _ => (None, false),
    };
    let mut errors = std::io::stderr();
    let Some(seeds) = seeds else {
        // Nobody is left to tell that this could not be said.
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
