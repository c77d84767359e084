//! Runs the binary, and makes files for it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Output and exit status of a run.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// The binary, without variables of the test's environment that select a program or a cloud.
pub fn command() -> Command {
    named(env!("CARGO_BIN_EXE_allot"))
}

/// Like [`command`], by another path.
pub fn named(path: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(path);
    command.env_remove("HTOOLS").env_remove("OS_AUTH_URL").env_remove("ALLOT_N1_INITIAL");
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("programs print text");
    Ran {
        status: output.status.code().expect("no signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

pub fn allot(args: &[&str]) -> Ran {
    run(command().args(args))
}

/// A path that no other test uses.
pub fn fresh(name: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("command-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the directory for tests is writable");
    directory.join(name)
}

/// Writes a file at a fresh path, which it returns.
pub fn file(name: &str, contents: &str) -> String {
    let path = fresh(name);
    fs::write(&path, contents).expect("the directory for tests is writable");
    path.to_str().expect("a plain path").to_owned()
}

/// Three nodes. The first has all four instances.
pub const UNBALANCED: &str = "\
g|u|preferred||

n1.x|16384|0|12288|100000|95904|8|M|u|1||N|0|0|1.0
n2.x|16384|0|16384|100000|97952|8|N|u|1||N|0|0|1.0
n3.x|16384|0|16384|100000|97952|8|N|u|1||N|0|0|1.0

i1.x|1024|1024|1|running|Y|n1.x|n2.x|drbd||1|-|N
i2.x|1024|1024|1|running|Y|n1.x|n3.x|drbd||1|-|N
i3.x|1024|1024|1|running|Y|n1.x|n2.x|drbd||1|-|N
i4.x|1024|1024|1|ADMIN_down|Y|n1.x|n3.x|drbd||1|-|N

";

/// A request on a cluster with one instance, which has this template and only a primary node.
pub fn request_with(template: &str, wanted: &str) -> String {
    const MESSAGE: &str = r#"{"version":2,"cluster_name":"c","cluster_tags":[],"enabled_hypervisors":["fake"],
"nodegroups":{"u":{"name":"g","alloc_policy":"preferred","networks":[],"tags":[],"ipolicy":{
"std":{"memory-size":128,"cpu-count":1,"disk-size":1024,"disk-count":1,"nic-count":1,"spindle-use":1},
"minmax":[],"disk-templates":["drbd","plain"],"vcpu-ratio":4.0,"spindle-ratio":32.0}}},
"nodes":{
"n1":{"group":"u","offline":false,"drained":false,"ndparams":{"spindle_count":1,"exclusive_storage":false},"total_memory":16384,"reserved_memory":0,"free_memory":15360,"total_disk":100000,"free_disk":98976,"total_cpus":8,"reserved_cpus":0,"free_spindles":0},
"n2":{"group":"u","offline":false,"drained":false,"ndparams":{"spindle_count":1,"exclusive_storage":false},"total_memory":16384,"reserved_memory":0,"free_memory":16384,"total_disk":100000,"free_disk":100000,"total_cpus":8,"reserved_cpus":0,"free_spindles":0}},
"instances":{"i1":{"nodes":["n1"],"memory":1024,"vcpus":1,"disk_space_total":1024,"disks":[{"size":1024}],"disk_template":"TEMPLATE","tags":[],"spindle_use":1,"nics":[]}},
"request":WANTED}"#;
    MESSAGE.replace("TEMPLATE", template).replace("WANTED", wanted)
}

/// Like [`request_with`], with an instance that isn't mirrored.
pub fn request(wanted: &str) -> String {
    request_with("plain", wanted)
}

/// Requests a node for an instance without a mirror.
pub const ALLOCATE: &str = r#"{"type":"allocate","name":"new","required_nodes":1,"memory":1024,"vcpus":1,
"disk_space_total":1024,"disks":[{"size":1024}],"disk_template":"plain","tags":[],"spindle_use":1,"nics":[]}"#;
