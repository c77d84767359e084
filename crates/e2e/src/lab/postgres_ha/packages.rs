//! Installs Debian's packages of Patroni, etcd and PostgreSQL without starting their services.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use chores::run::must_run;

/// Installs packages so that their services start neither now nor at the next boot.
///
/// An existing `policy-rc.d` belongs to the machine's owner and stays; services that it allows to start are
/// stopped again.
const INSTALL: &str = r#"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -qq -y --no-install-recommends "$@" >&2; }
install "$@" || { apt-get update -qq >&2 && install "$@"; } || exit
for package in "$@"; do
    if [ -d /run/systemd/system ] && systemctl cat --quiet "${package%-server}.service" >/dev/null 2>&1; then
        systemctl disable --quiet --now "${package%-server}.service" || exit
    fi
done
"#;

/// Programs that the lab runs, and their packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("/usr/bin/patroni", "patroni"),
    ("/usr/bin/etcd", "etcd-server"),
    ("/usr/bin/psql", "postgresql-client"),
    ("/usr/sbin/ip", "iproute2"),
];

/// Installs the missing packages.
pub fn ready() -> Result<()> {
    let missing = PROGRAMS.iter().filter(|(program, _)| !Path::new(program).exists());
    let mut missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !scratch_postgres::is_installed() {
        missing.push("postgresql");
    }
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing {}", missing.join(" "));
    must_run(Command::new("sh").args(["-c", INSTALL, "sh"]).args(missing))
}
