//! `cargo xtask bench quality`: improvements of deep searches over the reference's searches.

mod balancing;
mod rolling;

use anyhow::{Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let ours = arguments.text("--ours")?.map_or_else(places::released, |path| Ok(Executable::new(path)))?;
    let json = arguments.switch("--json");
    let large = arguments.switch("--large");
    let what = arguments.word();
    arguments.finish()?;
    match what.as_deref() {
        Some("balancing") => balancing::table(&ours, large, json),
        Some("rolling") => rolling::table(&ours),
        None => {
            balancing::table(&ours, large, json)?;
            if json { Ok(()) } else { rolling::table(&ours) }
        }
        Some(other) => bail!("invalid benchmark '{other}': expected balancing or rolling"),
    }
}
