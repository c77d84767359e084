//! Standard output that can't be written, or that isn't read to its end.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::shell::{ALLOCATE, Ran, UNBALANCED, command, file, request, run};

/// Runs the binary with a full disk behind its standard output.
fn full(args: &[&str]) -> Ran {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("the device");
    run(command().args(args).stdout(Stdio::from(full)))
}

#[test]
fn an_answer_that_cannot_be_written_is_no_answer() {
    let (cluster, asked) = (file("cluster", UNBALANCED), file("request", &request(ALLOCATE)));
    for (args, status) in [
        (&["drain", "-t", &cluster, "n1"][..], 2),
        (&["drain", "-t", &cluster, "n1", "--json"], 2),
        (&["whatif", "-t", &cluster, "--lose", "n1"], 2),
        (&["fit", "-t", &cluster, "1g,1g,1"], 2),
        // The answer would be no.
        (&["fit", "-t", &cluster, "1g,1g,1", "--count", "5000"], 2),
        (&["hail", &asked], 1),
        (&["hbal", "-t", &cluster], 1),
        (&["hspace", "-t", &cluster], 1),
        (&["hinfo", "-t", &cluster], 1),
        (&["hcheck", "-t", &cluster, "--machine-readable"], 1),
        (&["hbal", "--help"], 1),
        (&["completions", "bash"], 1),
    ] {
        let ran = full(args);
        assert_eq!(ran.status, status, "{args:?}");
        let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("Error")).collect();
        assert_eq!(told, ["Error: standard output: No space left on device"], "{args:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_standard_output_empty() {
    let cluster = file("cluster", UNBALANCED);
    for question in [&["drain", "n1"][..], &["whatif", "--lose", "n1"]] {
        let ran = run(command().args([question, &["-t", &cluster, "--save", "/dev/full"]].concat()));
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("No space left on device"), "{}", ran.err);
    }
}

#[test]
fn who_reads_only_the_beginning_is_told_nothing() {
    for args in [&["completions", "bash"][..], &["completions", "zsh"]] {
        let mut child =
            command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        let mut first = String::new();
        BufReader::with_capacity(1, child.stdout.take().expect("a pipe"))
            .read_line(&mut first)
            .expect("a line");
        assert!(!first.is_empty());
        let status = child.wait().expect("it ends");
        let mut told = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert_eq!((status.code(), told.as_str()), (Some(0), ""), "{args:?}");
    }
}
