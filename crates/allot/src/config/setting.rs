//! A setting.

/// A setting, as parsing, help and documentation need it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file, with the section's: `log.format`.
    pub key: &'static str,
    /// What stands for the value in help.
    pub value_name: &'static str,
    /// As it would be written; nothing if there is none.
    pub default: &'static str,
    /// What it is for, in a line or two.
    pub help: &'static str,
    /// Whether a value will do.
    pub check: fn(&str) -> Result<(), String>,
}

/// Headings of the sections, in help and documentation.
const HEADINGS: [(&str, &str); 21] = [
    ("", "Service"),
    ("api", "Answers of the API"),
    ("keystone", "Keystone of a cloud"),
    ("openstack", "Nova and Placement of a cloud"),
    ("tls", "Encryption"),
    ("simulated", "Simulated fleet"),
    ("leases", "Leases"),
    ("housekeeping", "Housekeeping: what is done about leases by itself"),
    ("quota", "What the leases of a project may take together"),
    ("instances", "Instances without a cloud"),
    ("preemptible", "Preemptible instances, which leases preempt"),
    ("usage", "Usage and what it costs"),
    ("energy", "Saving power"),
    ("filters", "Filters that hosts pass before they are leased"),
    ("hints", "Scheduler hints of leases"),
    ("enforcement", "External service that may refuse leases"),
    ("notifications", "Listener that is told of everything that happens"),
    ("message_bus", "Message bus of a cloud: what happens is told there, and what Nova says is heard"),
    ("limits", "Requests and the work behind them"),
    ("placement", "Questions about Ganeti clusters"),
    ("log", "Log"),
];

impl Setting {
    /// Its flag, without the hyphens before it.
    pub(crate) fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// Its variable of the environment.
    pub(crate) fn variable(&self) -> String {
        format!("ALLOT_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// The section of the file that it is in; nothing if it is in none.
    pub(crate) fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    /// The heading that it stands under.
    pub(crate) fn heading(&self) -> &'static str {
        let of_section = |(section, _): &&(&str, &str)| *section == self.section();
        HEADINGS.iter().find(of_section).map_or("Others", |(_, heading)| heading)
    }
}
