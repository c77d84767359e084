//! Manual pages: options, examples, exit statuses and environment variables of each command.

use std::fs;
use std::io;
use std::path::Path;

use ambient::PartialFile;
use clap::{Arg, Command};
use clap_mangen::Man;
use htools::options::Program;

use crate::client::names::is_client;
use crate::screen::joined;
use crate::{examples, questions};

/// Writes a page for each command.
pub(crate) fn write(tree: Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in pages(tree)? {
        let mut file = PartialFile::public_beside(&directory.join(name))?;
        file.write_all(&text)?;
        file.replace()?;
    }
    Ok(())
}

/// Name and text of each page.
fn pages(tree: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut tree = tree.disable_help_subcommand(true);
    tree.build();
    let mut pages = Vec::new();
    add_pages(&tree, "", &mut pages)?;
    Ok(pages)
}

/// `path` has the command's words without `allot`.
fn add_pages(command: &Command, path: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        add_pages(subcommand, &joined(path, subcommand.get_name()), pages)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    write_examples(path, &mut text)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        page.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    if command.get_after_help().is_some() {
        page.render_extra_section(&mut text)?;
    }
    write_statuses(path, &mut text)?;
    write_variables(command, path, &mut text)?;
    pages.push((page.get_filename(), text));
    Ok(())
}

fn write_examples(path: &str, page: &mut impl io::Write) -> io::Result<()> {
    writeln!(page, ".SH EXAMPLES\n.nf")?;
    for example in examples::of(path) {
        writeln!(page, "{}", escaped(example))?;
    }
    writeln!(page, ".fi")
}

fn write_statuses(path: &str, page: &mut impl io::Write) -> io::Result<()> {
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    for (status, meaning) in statuses(path) {
        writeln!(page, ".TP\n{status}\n{}", escaped(meaning))?;
    }
    Ok(())
}

fn write_variables(command: &Command, path: &str, page: &mut impl io::Write) -> io::Result<()> {
    writeln!(page, ".SH ENVIRONMENT")?;
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let Some(variable) = variable(arg) else { continue };
        let meaning = match (arg.get_long(), arg.get_value_names().and_then(<[_]>::first)) {
            (Some(long), _) => format!("The same as --{long}."),
            (None, Some(name)) => format!("The same as {name}."),
            (None, None) => continue,
        };
        writeln!(page, ".TP\n{}\n{}", escaped(&variable), escaped(&meaning))?;
    }
    if is_client(path) {
        writeln!(page, ".TP\nTZ\nTime zone for reading and showing times.")?;
    }
    writeln!(page, ".TP\nHTOOLS\nName of a program of Ganeti's htools to run as.")
}

/// Environment variable of an option. Settings have it in their help text.
fn variable(arg: &Arg) -> Option<String> {
    if let Some(variable) = arg.get_env() {
        return Some(variable.to_string_lossy().into_owned());
    }
    let help = arg.get_help()?.to_string();
    let (_, variable) = help.rsplit_once("[env: ")?;
    Some(variable.split([']', '=']).next()?.to_owned())
}

const OF_A_QUESTION: [(u8, &str); 3] = [
    (0, "The answer is yes."),
    (1, "The answer is no."),
    (2, "There is no answer: the question or the input is wrong."),
];
const OF_WHATIF: [(u8, &str); 2] =
    [(0, "There is an answer."), (2, "There is no answer: the question or the input is wrong.")];
const OF_A_PROGRAM: [(u8, &str); 3] = [
    (0, "Success."),
    (1, "The input or the environment is invalid, or a check failed."),
    (2, "The command line is wrong, or the result is incomplete."),
];
const OF_A_CLIENT: [(u8, &str); 4] = [
    (0, "Success."),
    (1, "The service refused the request, or a check found a problem."),
    (2, "The command line is wrong."),
    (3, "The service cannot be reached, or its response was lost or is invalid."),
];
const OF_OTHERS: [(u8, &str); 3] =
    [(0, "Success."), (1, "Failure."), (2, "The command line or the configuration is wrong.")];

fn statuses(path: &str) -> &'static [(u8, &'static str)] {
    match path {
        "whatif" => &OF_WHATIF,
        name if questions::NAMES.contains(&name) => &OF_A_QUESTION,
        name if Program::from_name(name).is_some() => &OF_A_PROGRAM,
        path if is_client(path) => &OF_A_CLIENT,
        _ => &OF_OTHERS,
    }
}

/// Escapes a line for troff.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn every_page_has_examples_exit_statuses_and_variables() {
        let pages = pages(help::tree()).expect("pages");
        assert!(pages.len() > 100, "{}", pages.len());
        for (name, text) in &pages {
            let text = String::from_utf8_lossy(text);
            let lines: Vec<&str> = text.lines().collect();
            for heading in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", ".SH ENVIRONMENT"] {
                let at = lines.iter().position(|line| *line == heading);
                let at = at.unwrap_or_else(|| panic!("{name} has no {heading}"));
                // The line after the heading is a macro, and the next one is text.
                let below = lines.get(at + 2).copied().unwrap_or_default();
                assert!(!below.is_empty() && !below.starts_with('.'), "{name}: {heading} is empty");
            }
        }
        let page = |name: &str| {
            let (_, text) = pages.iter().find(|(page, _)| page == name).expect(name);
            String::from_utf8_lossy(text).into_owned()
        };
        let create = page("allot-lease-create.1");
        for text in [
            "\nallot lease create exp \\-\\-hosts 4 \\-\\-where gpu=a100",
            "\n.TP\n3\nThe service cannot be reached",
            "\n.TP\nALLOT_URL\nThe same as \\-\\-url.\n",
            "\n.TP\nTZ\n",
        ] {
            assert!(create.contains(text), "{text}\n{create}");
        }
        assert!(page("allot-serve.1").contains("\nALLOT_LISTEN\nThe same as \\-\\-listen.\n"));
        assert!(page("allot-database-check.1").contains("\nALLOT_DATABASE\nThe same as DATABASE.\n"));
    }

    #[test]
    fn a_line_is_no_request_of_troff() {
        assert_eq!(escaped(".so x"), "\\&.so x");
        assert_eq!(escaped("a\\b -c"), "a\\eb \\-c");
    }
}
