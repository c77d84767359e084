//! `cargo xtask lab`: real peers, brought up on this machine, with `allot` in the place of their parts.
//!
//! A lab needs root, installs Debian packages and makes network namespaces; `clients` installs Python packages alone. The scripts that bring Ganeti and
//! `OpenStack` up belong to the reference material; what is done with them is here, as is all of the other lab.

mod answers;
mod clients;
mod ganeti;
mod openstack;
mod postgres_ha;
mod scenario;
mod scripts;

use anyhow::{Result, bail};
use chores::arguments::Arguments;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("clients") => clients::main(arguments),
        Some("ganeti") => ganeti::main(arguments),
        Some("openstack") => openstack::main(arguments),
        Some("postgres-ha") => postgres_ha::main(arguments),
        _ => bail!("lab what? clients, ganeti, openstack or postgres-ha"),
    }
}
