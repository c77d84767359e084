//! Judges answers with an exact solver, HiGHS: `cargo run --release --manifest-path exact/Cargo.toml hunts
//! [CASES] | refusals [COUNT [SEED]]`.

mod hunts;
mod numbers;
mod refusals;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let what = words.next();
    let numbers: Result<Vec<u64>, _> = words.map(|word| word.parse()).collect();
    let judged = match (what.as_deref(), numbers.as_deref()) {
        (Some("hunts"), Ok([])) => hunts::compare_all(40),
        (Some("hunts"), Ok([cases])) => hunts::compare_all(*cases),
        (Some("refusals"), Ok([])) => refusals::judge_all(2000, 0),
        (Some("refusals"), Ok([count])) => refusals::judge_all(*count, 0),
        (Some("refusals"), Ok([count, seed])) => refusals::judge_all(*count, *seed),
        _ => {
            eprintln!("usage: allotment-exact hunts [CASES] | refusals [COUNT [SEED]]");
            return ExitCode::from(2);
        }
    };
    match judged {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
