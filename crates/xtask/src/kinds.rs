//! What the compared cases exercised: a generator that draws only refusals would pass every comparison.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::generate::model::{Case, Program, Source};
use crate::json::Json;
use crate::run::Outcome;

/// How often each kind of outcome was compared.
#[derive(Debug, Default)]
pub struct Kinds {
    counts: Mutex<BTreeMap<String, usize>>,
}

impl Kinds {
    /// Counts the outcome of the reference.
    pub fn count(&self, case: &Case, reference: &Outcome) {
        if let Ok(mut counts) = self.counts.lock() {
            *counts.entry(kind(case, reference)).or_default() += 1;
        }
    }

    /// Prints the counts.
    pub fn print(&self) {
        if let Ok(counts) = self.counts.lock() {
            for (kind, count) in counts.iter() {
                println!("{count:>7} {kind}");
            }
        }
    }
}

fn kind(case: &Case, reference: &Outcome) -> String {
    let stdout = String::from_utf8_lossy(&reference.stdout);
    let how = match (reference.status, case.program) {
        (None, _) => "killed",
        _ if crate::known::crashed(reference) => "crash of the reference: not compared",
        (Some(2), Program::Hscan) if stdout.contains("failed to load data") => "not all read",
        (Some(2), _) => "wrong usage",
        (Some(1..), _) => "refused",
        (_, Program::Hail) if stdout.starts_with("{\"success\":false") => "no solution",
        (_, Program::Hail) if stdout.contains("\"info\":\"Request successful: 0 instances failed") => {
            "all done"
        }
        (_, Program::Hail) if stdout.contains("instances failed") => "some failed",
        (_, Program::Hail) => "solution",
        (_, Program::Hscan) => "saved",
        _ if stdout.contains("\nSolution length=") || stdout.contains("score improved") => "moves",
        _ if stdout.contains("already well balanced") => "well balanced",
        _ if stdout.contains("No solution") => "no solution",
        _ => "nothing to do",
    };
    format!("{} {how}", subject(case))
}

fn subject(case: &Case) -> String {
    match case.source {
        Source::File => {}
        Source::Rapi => return format!("{} over RAPI", case.program),
        Source::Luxi => return format!("{} over Luxi", case.program),
    }
    let Some(Json::Object(members)) = &case.request else { return case.program.to_string() };
    let kind = members.iter().find(|(key, _)| key == "type").map(|(_, value)| value);
    match kind {
        Some(Json::Text(kind)) => format!("{} {kind}", case.program),
        _ => case.program.to_string(),
    }
}
