//! Questions of administrators that Ganeti's programs don't answer: `drain`, `whatif`, `fit`.
//!
//! This module has their command lines and prints their answers, which come from [`placement`].

mod drain;
mod fit;
mod print;
mod source;
mod spec;
mod whatif;

use std::io;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::environment::EnvironmentError;
use htools::io::{Io, SUCCESS};
use htools::saving::SaveError;
use htools::source::SourceError;
use serde::Serialize;
use thiserror::Error;

use spec::SpecError;

use crate::screen::screen;
use crate::shown::{self, Escaping};

/// Exit status: the answer is no.
const NO: u8 = 1;
/// Exit status: there is no answer, because the question, the input or the environment is wrong.
const NO_ANSWER: u8 = 2;

pub(crate) const NAMES: [&str; 3] = ["drain", "whatif", "fit"];

#[derive(Debug, Parser)]
#[command(name = "allot", about = "Answer questions about a Ganeti cluster", disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Drain(drain::Arguments),
    Whatif(whatif::Arguments),
    Fit(fit::Arguments),
}

/// The commands with their options, for help, completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Line::command()
}

/// Reason why a question has no answer.
#[derive(Debug, Error)]
enum QuestionError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("{0:?} isn't a node; attach the path of a socket: -L{0}")]
    SeparateSocket(String),
    #[error("{name:?} names {}{meant}", named(.what, .found))]
    Name {
        name: String,
        what: &'static str,
        found: Vec<String>,
        /// Question about similar names.
        meant: String,
    },
    #[error("{name} can't be both removed and resized")]
    RemovedAndResized { name: String },
    #[error("no change given; see allot whatif --help")]
    NoChange,
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write the document: {0}")]
    Document(#[from] serde_json::Error),
}

/// Complaint about a name that no item or several items of the cluster match.
fn named(what: &str, found: &[String]) -> String {
    const SHOWN: usize = 5;
    match found {
        [] => format!("no {what} of the cluster"),
        several => {
            let more = if several.len() > SHOWN { ", ..." } else { "" };
            let names = several.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            format!("{} {what}s of the cluster ({names}{more}); write one name in full", several.len())
        }
    }
}

/// Reads a question, named by the first argument, and answers it. Returns the exit status, or an error in the
/// command line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let words = std::iter::once("allot".to_owned()).chain(source::with_attached_socket(arguments));
    let matches = screen(Line::command(), "").try_get_matches_from(words)?;
    let line = Line::from_arg_matches(&matches)?;
    // Names of nodes and instances come from other people.
    let (mut out, mut err) = (Escaping(io.out), Escaping(io.err));
    let io = &mut Io { stdin: io.stdin, out: &mut out, err: &mut err };
    let answer = match &line.question {
        Question::Drain(arguments) => drain::answer(arguments, io),
        Question::Whatif(arguments) => whatif::answer(arguments, io),
        Question::Fit(arguments) => fit::answer(arguments, io),
    };
    // An answer that wasn't written doesn't count. The creator of the stream reports the reason.
    let answer = answer.and_then(|answer| match io.out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(QuestionError::Output(error)),
        _ => Ok(answer),
    });
    Ok(match answer {
        Ok(true) => SUCCESS,
        Ok(false) => NO,
        Err(QuestionError::Output(_)) => NO_ANSWER,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            NO_ANSWER
        }
    })
}

/// Prints an answer as one JSON document or as text.
fn tell<D: Serialize>(
    json: bool,
    document: impl FnOnce() -> D,
    words: impl FnOnce(&mut Io<'_>) -> Result<(), QuestionError>,
    io: &mut Io<'_>,
) -> Result<(), QuestionError> {
    if json {
        return Ok(writeln!(io.out, "{}", shown::json(&serde_json::to_string_pretty(&document())?))?);
    }
    words(io)
}
