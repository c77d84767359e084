//! Debian's packages of Patroni, etcd and PostgreSQL, without the services that they bring.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::places;
use crate::run::must_run;

/// Installs with services neither started now nor at the next start of the machine.
///
/// A policy that is there already is somebody's, and stays; whatever it lets start is stopped again.
const INSTALL: &str = r#"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install -qq -y --no-install-recommends "$@" >&2 ||
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@"; } >&2 || exit
if [ -d /run/systemd/system ]; then
    systemctl disable --quiet --now etcd.service patroni.service
fi
"#;

/// Programs that the lab runs, and the packages that bring them.
const PROGRAMS: [(&str, &str); 5] = [
    ("/usr/bin/patroni", "patroni"),
    ("/usr/bin/etcd", "etcd-server"),
    ("/usr/bin/etcdctl", "etcd-client"),
    ("/usr/bin/psql", "postgresql-client"),
    ("/usr/sbin/ip", "iproute2"),
];

/// Sees to it that they are there.
pub fn ready() -> Result<()> {
    places::need_postgres()?;
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !Path::new(program).exists())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing {}", missing.join(" "));
    must_run(Command::new("sh").args(["-c", INSTALL, "sh"]).args(missing))
}
