//! `cargo xtask lab`: real peers, brought up on this machine, with `allot` in place of some of their
//! components.
//!
//! A lab needs root, installs Debian packages and creates network namespaces; `clients` only installs Python
//! packages. The scripts that bring up Ganeti and `OpenStack` belong to the reference material. The scenarios
//! are here, and so is all of the PostgreSQL lab.

mod answers;
mod clients;
mod ganeti;
mod openstack;
mod postgres_ha;
mod scenario;
mod scripts;

use anyhow::{Result, bail};
use chores::arguments::Arguments;

pub fn main(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("clients") => clients::main(arguments),
        Some("ganeti") => ganeti::main(arguments),
        Some("openstack") => openstack::main(arguments),
        Some("postgres-ha") => postgres_ha::main(arguments),
        _ => bail!("lab what? clients, ganeti, openstack or postgres-ha"),
    }
}
