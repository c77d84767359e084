//! `cargo xtask lab`: real peers, brought up on this machine, with `allot` in the place of their parts.
//!
//! A lab needs root, installs Debian packages and makes network namespaces. The scripts that bring a peer up
//! belong to the reference material; what is done with the peer is here.

mod answers;
mod ganeti;
mod scenario;
mod scripts;

use anyhow::{Result, bail};

use crate::arguments::Arguments;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("ganeti") => ganeti::main(arguments),
        _ => bail!("lab what? ganeti"),
    }
}
