//! Examples of every command, for `--help` and the manual pages.

/// Maximum number of examples of a command.
pub(crate) const MOST: usize = 3;

/// Examples of the command with this path, which omits `allot`: `lease create`.
pub(crate) fn own(path: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(command, _)| *command == path).map_or(&[], |(_, own)| *own)
}

/// Examples of a command. If it has none of its own, the first example of each subcommand, up to `MOST`.
pub(crate) fn of(path: &str) -> Vec<&'static str> {
    let is_below = |command: &str| {
        let rest = command.strip_prefix(path);
        path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    match own(path) {
        [] => {
            let below = EXAMPLES.iter().filter(|(command, _)| is_below(command));
            below.filter_map(|(_, own)| own.first().copied()).take(MOST).collect()
        }
        own => own.to_vec(),
    }
}

/// Commands with one to three examples each. A test parses them.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("demo", &["allot demo", "allot demo --speed 600", "allot demo --login"]),
    (
        "lease create",
        &[
            "allot lease create exp --hosts 4 --where gpu=a100 --start tuesday --for 1d",
            "allot lease create web --instances 3 --vcpus 4 --memory 8G --disk 40 --for 2d",
            "allot lease create class --hosts 2 --for 3h --every 1w --times 10",
        ],
    ),
    ("lease list", &["allot lease list", "allot lease list --status ACTIVE", "allot lease list -o name"]),
    ("lease show", &["allot lease show exp", "allot lease show exp -o json"]),
    ("lease plan", &["allot lease plan exp"]),
    ("lease occupancy", &["allot lease occupancy exp", "allot lease occupancy exp -o csv"]),
    (
        "lease update",
        &["allot lease update exp --hosts 6 --dry-run", "allot lease update exp --start 'tue 09:00'"],
    ),
    (
        "lease extend",
        &[
            "allot lease extend exp 12h",
            "allot lease extend exp 2d --dry-run",
            "allot lease extend exp -- -2h",
        ],
    ),
    ("lease copy", &["allot lease copy exp --start +7d", "allot lease copy exp --start monday --name exp2"]),
    ("lease move", &["allot lease move exp --start 'tue 09:00'"]),
    ("lease end", &["allot lease end exp"]),
    ("lease delete", &["allot lease delete exp web"]),
    ("lease hints", &["allot lease hints"]),
    ("lease wait", &["allot lease wait exp", "allot lease wait exp --status GONE --timeout 10m"]),
    ("lease offers", &["allot lease offers"]),
    ("lease accept", &["allot lease accept 1", "allot lease accept 3f2a"]),
    ("lease decline", &["allot lease decline 3f2a"]),
    ("lease delete-series", &["allot lease delete-series 91c0"]),
    ("lease waitlist", &["allot lease waitlist"]),
    ("lease leave-waitlist", &["allot lease leave-waitlist 5d17"]),
    (
        "user add",
        &["allot user add ann physics=member", "allot user add bob physics vision=reader --generate"],
    ),
    ("user list", &["allot user list"]),
    ("user roles", &["allot user roles ann physics=admin vision=reader"]),
    ("user disable", &["allot user disable ann"]),
    ("user enable", &["allot user enable ann"]),
    ("user passwd", &["allot user passwd ann"]),
    (
        "availability",
        &["allot availability --for 4h --amount 2", "allot availability --vcpus 4 --memory 8G --to friday"],
    ),
    ("calendar", &["allot calendar", "allot calendar --from -1d --to +3d --by rack"]),
    (
        "instance create",
        &[
            "allot instance create job1 --lease exp --vcpus 4 --memory 8G --disk 20",
            "allot instance create job2 --preemptible --vcpus 2 --memory 4G --disk 10",
        ],
    ),
    ("instance list", &["allot instance list", "allot instance list --lease exp"]),
    ("instance show", &["allot instance show job1"]),
    ("instance start", &["allot instance start job1"]),
    ("instance delete", &["allot instance delete job1 job2"]),
    ("instance filter", &["allot instance filter --vcpus 4 --memory 8G --disk 20"]),
    ("preemptible list", &["allot preemptible list"]),
    ("preemptible report", &["allot preemptible report --from monday"]),
    ("preemptible project list", &["allot preemptible project list"]),
    ("preemptible project add", &["allot preemptible project add 'batch-*'"]),
    ("preemptible project remove", &["allot preemptible project remove 'batch-*'"]),
    ("events", &["allot events --last 20", "allot events --follow"]),
    ("usage", &["allot usage", "allot usage --from 2030-01-01 --by project,user"]),
    (
        "usage billing",
        &[
            "allot usage billing",
            "allot usage billing --each day --format csv",
            "allot usage billing --by user",
        ],
    ),
    ("usage events", &["allot usage events --from monday"]),
    ("whoami", &["allot whoami"]),
    (
        "serve",
        &[
            "allot serve --database sqlite:///var/lib/allot/allot.db",
            "allot serve --config /etc/allot/allot.toml",
            "allot serve --config /etc/allot/allot.toml --check",
        ],
    ),
    ("host create", &["allot host create lab01 lab02", "allot host create lab03 --set gpu=a100"]),
    ("host list", &["allot host list", "allot host list --columns NAME,VCPUS"]),
    ("host show", &["allot host show lab01"]),
    ("host update", &["allot host update lab01 lab02 --set gpu=a100 --unset rack"]),
    ("host close", &["allot host close lab01"]),
    ("host open", &["allot host open lab01"]),
    ("host delete", &["allot host delete lab01"]),
    ("host properties", &["allot host properties", "allot host properties --hide serial"]),
    ("host allocations", &["allot host allocations lab01"]),
    ("freepool list", &["allot freepool list"]),
    ("freepool show", &["allot freepool show bare"]),
    ("freepool create", &["allot freepool create bare --spec rack=r1"]),
    ("freepool rename", &["allot freepool rename bare metal"]),
    ("freepool update", &["allot freepool update bare --end-action delete"]),
    ("freepool delete", &["allot freepool delete bare"]),
    (
        "freepool add-host",
        &["allot freepool add-host bare lab01", "allot freepool add-host bare lab02 --move"],
    ),
    ("freepool remove-host", &["allot freepool remove-host bare lab01"]),
    ("leasepool list", &["allot leasepool list"]),
    ("leasepool show", &["allot leasepool show exp"]),
    ("leasepool create", &["allot leasepool create exp --hosts 2 --for 4h"]),
    ("leasepool rename", &["allot leasepool rename exp exp2"]),
    ("leasepool set", &["allot leasepool set exp --cpu-ratio 2"]),
    ("leasepool add-host", &["allot leasepool add-host exp --count 2"]),
    ("leasepool swap-host", &["allot leasepool swap-host exp lab01"]),
    ("leasepool delete", &["allot leasepool delete exp"]),
    ("floatingip list", &["allot floatingip list"]),
    ("floatingip show", &["allot floatingip show 203.0.113.7"]),
    ("floatingip create", &["allot floatingip create public 203.0.113.7 203.0.113.8"]),
    ("floatingip delete", &["allot floatingip delete 203.0.113.7"]),
    ("flavor list", &["allot flavor list"]),
    ("flavor create", &["allot flavor create small --vcpus 2 --memory 4G --disk 20"]),
    ("flavor delete", &["allot flavor delete small"]),
    (
        "maintenance plan",
        &["allot maintenance plan lab01 lab02 --for 2h", "allot maintenance plan --freepool bare --for 1d"],
    ),
    ("maintenance book", &["allot maintenance book lab01 --for 2h --before friday"]),
    ("maintenance list", &["allot maintenance list"]),
    ("maintenance cancel", &["allot maintenance cancel lab01"]),
    ("capacity", &["allot capacity", "allot capacity --from -90d"]),
    ("energy plan", &["allot energy plan --horizon 7d"]),
    ("energy report", &["allot energy report --from monday"]),
    ("energy hosts", &["allot energy hosts"]),
    ("audit", &["allot audit --last 20", "allot audit --of-user ann --action lease.delete"]),
    ("settings", &["allot settings --changed", "allot settings limits."]),
    ("doctor", &["allot doctor", "allot doctor --repair"]),
    ("database migrate", &["allot database migrate sqlite:///var/lib/allot/allot.db"]),
    ("database check", &["allot database check sqlite:///var/lib/allot/allot.db"]),
    ("database backup", &["allot database backup --config /etc/allot/allot.toml allot-backup.db"]),
    ("database copy", &["allot database copy sqlite://old.db postgres://allot@db/allot"]),
    (
        "import blazar",
        &["allot import blazar --read blazar.json", "allot import blazar --take-over blazar.json"],
    ),
    ("import blazar-conf", &["allot import blazar-conf /etc/blazar/blazar.conf > allot.toml"]),
    ("hail", &["allot hail request.json"]),
    ("hbal", &["allot hbal -L -C", "allot hbal -t cluster.data --search=deep"]),
    ("hcheck", &["allot hcheck -L"]),
    ("hinfo", &["allot hinfo -t cluster.data"]),
    ("hspace", &["allot hspace -L --disk-template drbd"]),
    ("hroller", &["allot hroller -L"]),
    ("hsqueeze", &["allot hsqueeze -L"]),
    ("hscan", &["allot hscan cluster.example.com"]),
    ("harep", &["allot harep -L"]),
    ("drain", &["allot drain -L node1", "allot drain -t cluster.data node1 node2 --reboot"]),
    (
        "whatif",
        &[
            "allot whatif -L --lose node1",
            "allot whatif -t cluster.data --add-nodes 2,2t,256g,64 --rebalance",
        ],
    ),
    ("fit", &["allot fit -L 40g,4g,2", "allot fit -t cluster.data 40g,4g,2 --count 10"]),
    (
        "completions",
        &[
            "source <(allot completions bash)",
            "allot completions zsh > ~/.zfunc/_allot",
            "allot completions fish > ~/.config/fish/completions/allot.fish",
        ],
    ),
    ("man", &["allot man ~/.local/share/man/man1"]),
    ("hash token", &["allot hash token"]),
    ("hash password", &["allot hash password"]),
    ("install-links", &["allot install-links /usr/local/lib/allot"]),
    ("help", &["allot help lease create", "allot help connecting"]),
    ("version", &["allot version"]),
];

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::help;
    use crate::screen::joined;

    /// Paths of commands that can run without a subcommand.
    fn commands(command: &Command, path: &str, found: &mut Vec<String>) {
        if !path.is_empty() && !command.is_subcommand_required_set() {
            found.push(path.to_owned());
        }
        for next in command.get_subcommands() {
            commands(next, &joined(path, next.get_name()), found);
        }
    }

    /// Splits an example as a shell would, without the redirection or process substitution around it.
    fn words(line: &str) -> Vec<String> {
        let line = line.trim_start_matches("source <(").trim_end_matches(')');
        let line = line.split(" > ").next().unwrap_or(line);
        let parts = line.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        parts.collect()
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut wanted = Vec::new();
        let tree = help::tree();
        commands(&tree, "", &mut wanted);
        assert!(wanted.len() > 90, "{wanted:?}");
        for path in &wanted {
            assert!(!own(path).is_empty(), "no example of allot {path} in examples.rs");
        }
        for (path, examples) in EXAMPLES {
            assert!(wanted.iter().any(|known| known == path), "there is no command allot {path}");
            assert!((1..=MOST).contains(&examples.len()), "{path}: {examples:?}");
            for example in *examples {
                assert!(example.contains(&format!("allot {path}")), "{path}: {example}");
                assert!(example.len() <= 78, "{example}");
                if let Err(error) = tree.clone().try_get_matches_from(words(example)) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_command_with_subcommands_shows_examples_of_theirs() {
        assert_eq!(of("hash"), ["allot hash token", "allot hash password"]);
        assert_eq!(of("lease").len(), MOST);
        assert!(of("lease").iter().all(|example| example.starts_with("allot lease ")));
        assert_eq!(of("").first(), Some(&"allot demo"));
    }
}
