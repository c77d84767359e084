//! `cargo xtask case`: writes the files of a differential seed, for trying them by hand.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::run::write;

use crate::generate::{self, model::Program, wide::Space};

pub fn main(mut arguments: Arguments) -> Result<()> {
    let seed = arguments.value("--seed", 1)?;
    let name = arguments.text("--program")?.unwrap_or_else(|| "hail".to_owned());
    let program =
        Program::from_name(&name).with_context(|| format!("no generator knows the program '{name}'"))?;
    let out = arguments.text("--out")?.unwrap_or_else(|| format!("case-{seed}"));
    let space = if arguments.switch("--wide") { Space::Wide } else { Space::Small };
    arguments.finish()?;
    let case = generate::case_of(space, seed, program);
    let directory = Path::new(&out);
    fs::create_dir_all(directory).with_context(|| format!("cannot create {out}"))?;
    for (name, content) in case.files() {
        write(&directory.join(name), content.as_bytes())?;
    }
    println!("{program} {}", case.arguments().join(" "));
    Ok(())
}
