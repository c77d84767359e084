//! `cargo xtask lab ganeti`: a cluster of six virtual nodes with real daemons and real jobs, with `allot` as
//! its iallocator and tools.

pub(super) mod cluster;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;

use self::cluster::{Lab, write};
use super::{answers, scenario};

/// First directory in Ganeti's search path for iallocators.
const ALLOCATORS: &str = "/usr/local/lib/ganeti/iallocators";

pub fn main(mut arguments: Arguments) -> Result<()> {
    let keep = arguments.switch("--keep");
    let ours = arguments.text("--ours")?;
    arguments.finish()?;
    let Some(shared) = places::shared() else {
        bail!("the lab's scripts are in ../shared (or $ALLOT_SHARED), which is not there");
    };
    places::need_root()?;
    let ours = ours.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    let lab = Lab::prepare(&shared, &ours)?;
    let result = lab.run(&ours);
    if keep {
        println!("the cluster is left running; end it with {}/down --purge", lab.scripts.display());
    } else {
        lab.script("down", &["--purge"])?;
        let _ = fs::remove_file(Path::new(ALLOCATORS).join("hail"));
    }
    result
}

impl Lab {
    fn run(&self, ours: &Executable) -> Result<()> {
        self.tell("packages");
        self.script("install", &[])?;
        self.tell("cluster");
        self.script("down", &["--purge"])?;
        self.script("up", &[])?;
        let hail = self.program("hail");
        write(&self.root.join("allocator"), &hail)?;
        // Callers that look up "hail" by name get ours as well.
        let link = Path::new(ALLOCATORS).join("hail");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&hail, &link)
            .with_context(|| format!("cannot link {}", link.display()))?;
        let mut tally = scenario::run(self)?;
        let jobs = self.must(&["gnt-job", "list", "--no-headers", "-o", "id,status,summary"])?;
        for line in jobs.lines() {
            let good = line.split_whitespace().nth(1) == Some("success");
            tally.count(good);
            if !good {
                println!("job did not succeed: {line}");
            }
        }
        println!("{} jobs", jobs.lines().count());
        tally += answers::compare(&self.root.join("captures"), ours)?;
        self.tell("done");
        tally.conclude("lab ganeti")
    }
}
