//! Explains refusals by policy, and names a command that shows or does something similar.

/// A rule, the action it allows, and an alternative for callers without it, or an empty text.
type Refused = (&'static str, &'static str, &'static str);

/// Rules that only administrators satisfy by default.
const ADMINISTRATORS: [Refused; 31] = [
    ("blazar:leases:extra_specs", "give instances extra specs", ""),
    ("blazar:oshosts:get", "list hosts", "`allot availability` shows what is free"),
    ("blazar:oshosts:post", "add hosts", ""),
    ("blazar:oshosts:put", "change hosts", ""),
    ("blazar:oshosts:delete", "remove hosts", ""),
    (
        "blazar:oshosts:get_allocations",
        "list allocations of hosts",
        "`allot calendar` shows when hosts are reserved",
    ),
    (
        "blazar:oshosts:update_resource_properties",
        "hide properties",
        "`allot host properties` lists properties of hosts",
    ),
    ("blazar:freepools:get", "see free pools", "`allot leasepool list` shows the hosts of your leases"),
    ("blazar:freepools:post", "create free pools", ""),
    ("blazar:freepools:put", "change free pools", ""),
    ("blazar:freepools:delete", "delete free pools", ""),
    ("blazar:floatingips:post", "add addresses", "`allot floatingip list` shows addresses for leases"),
    ("blazar:floatingips:delete", "remove addresses", ""),
    (
        "blazar:flavors:post",
        "create flavors",
        "`allot lease create --instances N --vcpus N --memory SIZE` needs none",
    ),
    ("blazar:flavors:put", "change flavors", ""),
    ("blazar:flavors:delete", "delete flavors", ""),
    (
        "blazar:instances:filter",
        "filter hosts for an instance",
        "`allot availability --vcpus N --memory SIZE` shows how many instances fit",
    ),
    ("blazar:vendordata:post", "read metadata of servers", ""),
    (
        "blazar:preemptible_projects:get",
        "list preemptible projects",
        "`allot instance create --preemptible` works in every project",
    ),
    ("blazar:preemptible_projects:put", "add preemptible projects", ""),
    ("blazar:preemptible_projects:delete", "remove preemptible projects", ""),
    ("blazar:audit:get", "read the audit log", "`allot events` shows what happened to your leases"),
    ("blazar:calendar:get_names", "see leases of other projects", "`allot lease list` shows yours"),
    ("blazar:placement:clusters", "ask about the operator's clusters", ""),
    ("blazar:placement:fleet", "ask about the service's fleet", ""),
    ("blazar:energy:get", "see energy plans and reports", ""),
    ("blazar:maintenance:post", "plan maintenance", ""),
    ("blazar:drift:get", "compare the database with the machines", ""),
    ("blazar:drift:repair", "repair the database or the machines", ""),
    ("blazar:settings:get", "read settings", ""),
    ("blazar:names:get", "see names of users and projects", ""),
];

/// Rules that members of the project satisfy as well, and readers don't.
const MEMBERS: [Refused; 10] = [
    ("blazar:leases:post", "create leases", ""),
    ("blazar:leases:put", "change leases", ""),
    ("blazar:leases:delete", "delete leases", ""),
    ("blazar:leasepools:post", "create lease pools", ""),
    ("blazar:leasepools:put", "change lease pools", ""),
    ("blazar:leasepools:delete", "delete lease pools", ""),
    ("blazar:instances:post", "create instances", ""),
    ("blazar:instances:start", "start instances", ""),
    ("blazar:instances:delete", "delete instances", ""),
    ("blazar:placement:post", "ask about clusters", ""),
];

/// Rules that all users satisfy, but only for their own project.
const OTHER_PROJECTS: [Refused; 2] = [
    ("blazar:usage:get", "see the usage of other projects", "`allot usage` shows the usage of your project"),
    (
        "blazar:capacity:get",
        "see refused requests of other projects",
        "`allot capacity` shows requests of your project",
    ),
];

/// Message and hint for a refusal by policy. `None` for other messages and rules.
pub(super) fn refusal(message: &str) -> Option<(String, String)> {
    let rule = message.strip_prefix("Policy doesn't allow ")?.strip_suffix(" to be performed")?;
    let roles: [(&str, &[Refused], &str); 3] = [
        ("administrators", &ADMINISTRATORS, "ask an administrator; `allot whoami` shows your roles"),
        ("administrators", &OTHER_PROJECTS, ""),
        ("members of the project", &MEMBERS, "`allot whoami` shows your project and roles"),
    ];
    roles.into_iter().find_map(|(who, rules, usual)| {
        let &(_, action, instead) = rules.iter().find(|(name, ..)| *name == rule)?;
        let hint = if instead.is_empty() { usual } else { instead };
        Some((format!("Only {who} may {action} (rule {rule})"), hint.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_that_members_or_readers_lack_is_explained() {
        for rule in server::Rule::ALL {
            let message = format!("Policy doesn't allow {} to be performed", rule.name());
            let who = match (rule.default(), refusal(&message)) {
                ("rule:admin", Some((message, _))) => message.starts_with("Only administrators may "),
                ("rule:project_member_or_admin", Some((message, _))) => message.starts_with("Only members "),
                (default, _) if OTHER_PROJECTS.iter().any(|(name, ..)| *name == rule.name()) => {
                    default == "rule:project_reader_or_admin"
                }
                (default, None) => default == "rule:project_reader_or_admin",
                _ => false,
            };
            assert!(who, "{}", rule.name());
        }
    }

    #[test]
    fn commands_to_use_instead_exist() {
        for (rule, _, instead) in ADMINISTRATORS.iter().filter(|(.., instead)| !instead.is_empty()) {
            let line = instead.split('`').nth(1).expect("a command");
            let mut words: Vec<String> =
                line.replace('N', "1").replace("SIZE", "1G").split(' ').map(str::to_owned).collect();
            if line.contains(" create ") {
                words.insert(3, "name".to_owned());
            }
            let parsed = <crate::client::Line as clap::Parser>::try_parse_from(words);
            assert!(parsed.is_ok(), "{rule}: {line}: {:?}", parsed.err());
        }
    }
}
