//! Running jobs: signals, and daemons that misbehave.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::daemon::{Answer, Daemon};
use crate::shell::{UNBALANCED, allot, command, file, fresh};

/// A running `hbal -X`.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(daemon: &Daemon) -> Self {
        let socket = format!("-L{}", daemon.socket);
        let mut command = command();
        command.args(["hbal", "-X", &socket]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, out }
    }

    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args([name, &process]).status().expect("kill is installed");
        assert!(status.success());
    }

    /// Reads up to a line that begins with `start`.
    fn read_up_to(&mut self, start: &str) {
        let mut line = String::new();
        while !line.starts_with(start) {
            line.clear();
            let read = self.out.read_line(&mut line).expect("programs print text");
            assert!(read > 0, "the output ends before '{start}'");
        }
    }

    /// The rest of the output, all errors, and the exit status.
    fn end(mut self) -> (String, String, Option<i32>) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("programs print text");
        self.child.stderr.take().expect("it is piped").read_to_string(&mut err).expect("text");
        (out, err, self.child.wait().expect("the program ends").code())
    }
}

#[test]
fn sigint_lets_the_current_set_of_jobs_finish() {
    let daemon = Daemon::start();
    let mut hbal = Running::start(&daemon);
    hbal.read_up_to("Got job IDs 1");
    daemon.questions.recv().expect("the job is asked for");
    hbal.signal("-INT");
    hbal.read_up_to("Cancel request registered, will exit at the end of the current job set...");
    daemon.answers.send(Answer::State("running")).unwrap();
    daemon.questions.recv().expect("the job is asked for again");
    daemon.answers.send(Answer::State("success")).unwrap();
    let (out, err, status) = hbal.end();
    assert_eq!(status, Some(0), "{err}");
    let start =
        "Exiting early due to user request, \n1jobset(s) submitted: \n[(\"Executing jobset for instances ";
    assert!(out.starts_with(start), "{out}");
    assert!(out.contains(" jobset(s) not submitted:\n[(\"Executing jobset for instances "), "{out}");
    assert!(daemon.questions.try_recv().is_err(), "nothing more is asked");
}

#[test]
fn sigterm_ends_the_program_even_while_it_waits_for_an_answer() {
    let daemon = Daemon::start();
    let mut hbal = Running::start(&daemon);
    hbal.read_up_to("Got job IDs 1");
    daemon.questions.recv().expect("the job is asked for");
    daemon.answers.send(Answer::Silence).unwrap();
    hbal.signal("-TERM");
    let (out, _, status) = hbal.end();
    assert_eq!((out.as_str(), status), ("Double cancel request, exiting now...\n", Some(2)));
}

#[test]
fn a_daemon_that_goes_away_is_an_error() {
    let daemon = Daemon::start();
    let hbal = Running::start(&daemon);
    daemon.questions.recv().expect("the job is asked for");
    daemon.answers.send(Answer::Hangup).unwrap();
    let (_, err, status) = hbal.end();
    assert_eq!(status, Some(1));
    assert!(err.contains("Error: hbal: Checking job status: QueryJobs: the connection was closed"), "{err}");
}

#[test]
fn jobs_need_a_daemon() {
    let ran = allot(&["hbal", "-X", "-t", &file("cluster", UNBALANCED)]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.ends_with("Error: hbal: Execution of commands possible only on LUXI\n"), "{}", ran.err);
}

#[test]
fn harep_always_asks_a_daemon() {
    let root = fresh("root");
    let ran = crate::shell::run(command().arg("harep").env("GANETI_ROOTDIR", &root));
    assert_eq!(ran.status, 1);
    let socket = root.join("var/run/ganeti/socket/ganeti-query");
    assert!(ran.err.contains(socket.to_str().expect("a plain path")), "{}", ran.err);
}
