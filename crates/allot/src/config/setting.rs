//! A setting.

use super::configuration::Configuration;
use crate::duration;

/// A setting, as parsing, help and documentation need it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file, with the section's: `log.format`.
    pub key: &'static str,
    /// What stands for the value in help.
    pub value_name: &'static str,
    /// What it is for, in a line or two.
    pub help: &'static str,
    /// The unit that durations are shown in, if it is not the largest that will do.
    pub unit: Option<char>,
    /// Reads it into its place; otherwise says how it is to be written.
    pub read: fn(&mut Configuration, &str) -> Result<(), String>,
    /// What is in its place, as it is written.
    pub show: fn(&Configuration) -> String,
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
    /// What it is in that configuration, as it would be written; nothing if it is nothing.
    pub(crate) fn text(&self, configuration: &Configuration) -> String {
        let text = (self.show)(configuration);
        let in_unit = self.unit.and_then(|unit| duration::show_in(duration::parse(&text)?, unit));
        in_unit.unwrap_or(text)
    }

    /// Whether a value will do.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        (self.read)(&mut Configuration::default(), text)
    }

    /// Its flag, without the hyphens before it.
    pub(crate) fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// Its variable of the environment.
    pub(crate) fn variable(&self) -> String {
        format!("ALLOT_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// Whether it has several values by name, which can be a table in the file.
    pub(crate) fn is_table(&self) -> bool {
        self.value_name.contains('=')
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
