//! Tests of [`run`] with a fake daemon and a fake clock.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;
use crate::opcode::OpCode;
use crate::options::{Options, Priority};

/// Numbers jobs from 101 and returns preset statuses.
#[derive(Default)]
struct Pretender {
    submitted: Vec<String>,
    jobs: u64,
    states: BTreeMap<u64, VecDeque<JobStatus>>,
    questions: Vec<Vec<JobId>>,
    connections: usize,
}

impl Daemon for Pretender {
    fn reconnect(&mut self) -> Result<(), DaemonError> {
        self.connections += 1;
        Ok(())
    }

    fn submit(&mut self, jobs: &[Vec<OpCode>], annotation: &Annotation) -> Result<Vec<JobId>, DaemonError> {
        self.submitted.push(annotation.json(jobs));
        let first = 101 + self.jobs;
        self.jobs += jobs.len() as u64;
        Ok((first..101 + self.jobs).map(JobId).collect())
    }

    fn statuses(&mut self, jobs: &[JobId]) -> Result<Vec<JobStatus>, DaemonError> {
        self.questions.push(jobs.to_vec());
        let mut state = |job: &JobId| match self.states.get_mut(&job.0) {
            Some(left) if left.len() > 1 => left.pop_front().unwrap_or(JobStatus::Success),
            Some(left) => left.front().copied().unwrap_or(JobStatus::Success),
            None => JobStatus::Success,
        };
        Ok(jobs.iter().map(&mut state).collect())
    }
}

/// Records pauses instead of sleeping.
#[derive(Default)]
struct Stopwatch {
    pauses: Vec<Duration>,
}

impl Clock for Stopwatch {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(7)
    }

    fn sleep(&mut self, duration: Duration) {
        self.pauses.push(duration);
    }
}

fn sets(sizes: &[usize]) -> Vec<JobSet> {
    let job = || vec![OpCode::Migrate { instance: "i".to_owned(), target: None }];
    sizes.iter().map(|size| JobSet { what: format!("set of {size}"), jobs: vec![job(); *size] }).collect()
}

fn annotation(options: &Options) -> Annotation {
    Annotation::new(Program::Hbal, "doing things", options, Stopwatch::default().now())
}

/// Runs sets. Returns the output, and the error as text.
fn outcome(
    sizes: &[usize],
    daemon: &mut Pretender,
    clock: &mut Stopwatch,
    interrupted: &dyn Fn() -> bool,
) -> (String, Option<String>) {
    let mut out = Vec::new();
    let annotation = annotation(&Options::default());
    let result = run(Program::Hbal, &sets(sizes), &annotation, daemon, clock, interrupted, &mut out);
    (String::from_utf8(out).unwrap(), result.err().map(|error| error.to_string()))
}

#[test]
fn each_set_waits_for_the_one_before() {
    let (mut daemon, mut clock) = (Pretender::default(), Stopwatch::default());
    let (out, error) = outcome(&[1, 2], &mut daemon, &mut clock, &|| false);
    assert_eq!((out.as_str(), error), ("Got job IDs 101\nGot job IDs 102,103\n", None));
    assert_eq!(daemon.questions, [vec![JobId(101)], vec![JobId(102), JobId(103)]]);
    assert_eq!(daemon.connections, 2);
}

#[test]
fn pauses_grow_up_to_a_quarter_of_a_minute() {
    let states = VecDeque::from(vec![JobStatus::Running; 6]);
    let mut daemon = Pretender { states: BTreeMap::from([(101, states)]), ..Pretender::default() };
    daemon.states.entry(101).or_default().extend([JobStatus::Waiting, JobStatus::Success]);
    let mut clock = Stopwatch::default();
    let (_, error) = outcome(&[1], &mut daemon, &mut clock, &|| false);
    assert_eq!(error, None);
    let pauses: Vec<f64> = clock.pauses.iter().map(Duration::as_secs_f64).collect();
    assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]);
}

#[test]
fn a_failure_ends_the_run_when_its_set_has_ended() {
    let states = [
        (102, VecDeque::from([JobStatus::Error])),
        (103, VecDeque::from([JobStatus::Running, JobStatus::Canceled])),
    ];
    let mut daemon = Pretender { states: BTreeMap::from(states), ..Pretender::default() };
    let (out, error) = outcome(&[1, 3, 1], &mut daemon, &mut Stopwatch::default(), &|| false);
    assert_eq!(out, "Got job IDs 101\nGot job IDs 102,103,104\n");
    assert_eq!(
        error.as_deref(),
        Some(
            "hbal: Not all jobs completed successfully: [(JobId {fromJobId = 102},JOB_STATUS_ERROR),(JobId \
             {fromJobId = 103},JOB_STATUS_CANCELED)]\nAborting.\n"
        )
    );
    assert_eq!(daemon.submitted.len(), 2);
}

#[test]
fn an_interrupted_run_finishes_the_current_set_and_shows_the_rest() {
    let asked = Cell::new(0);
    let interrupted = || asked.replace(asked.get() + 1) > 0;
    let mut daemon = Pretender::default();
    let (out, error) = outcome(&[1, 1, 1], &mut daemon, &mut Stopwatch::default(), &interrupted);
    assert_eq!((error, daemon.submitted.len()), (None, 1));
    let start = "Got job IDs 101\nExiting early due to user request, \n1jobset(s) submitted: \n[(\"set of \
                 1\",[(101,JOB_STATUS_SUCCESS)])]\n2 jobset(s) not submitted:\n[(\"set of \
                 1\",[[OpInstanceMigrate {opInstanceName = \"i\", ";
    assert!(out.starts_with(start), "{out}");
    assert!(out.ends_with("opIgnoreHvversions = True}]])]\n"), "{out}");
}

#[test]
fn interrupting_the_last_set_changes_nothing() {
    let asked = Cell::new(0);
    let interrupted = || asked.replace(asked.get() + 1) > 0;
    let (out, error) = outcome(&[1], &mut Pretender::default(), &mut Stopwatch::default(), &interrupted);
    assert_eq!((out.as_str(), error), ("Got job IDs 101\n", None));
}

#[test]
fn operations_say_where_they_come_from() {
    let options = Options {
        priority: Some(Priority::High),
        reason: Some("a \"good\" one".to_owned()),
        ..Options::default()
    };
    let json = annotation(&options).json(&sets(&[1])[0].jobs);
    let version = crate::options::version_text();
    let start = format!(
        r#"[[{{"priority":-10,"depends":null,"comment":"doing things {version}","reason":[["hbal","a \"good\" one",7]],"OP_ID":"OP_INSTANCE_MIGRATE","instance_name":"i","#
    );
    assert!(json.starts_with(&start), "{json}");
    let json = annotation(&Options::default()).json(&sets(&[1])[0].jobs);
    let start = format!(
        r#"[[{{"priority":0,"depends":null,"comment":"doing things {version}","reason":[["hbal","hbal {version} called",7]],"#
    );
    assert!(json.starts_with(&start), "{json}");
}
