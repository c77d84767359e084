//! Definition of a setting.

use super::configuration::Configuration;
use crate::duration;

/// A setting, as parsing, help and documentation need it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Key in the file, including the section: `log.format`.
    pub key: &'static str,
    /// Placeholder for the value in help.
    pub value_name: &'static str,
    /// Description in one or two lines.
    pub help: &'static str,
    /// Unit for showing durations. `None` is the largest unit that fits.
    pub unit: Option<char>,
    /// Parses a value and stores it. The error says what to write.
    pub read: fn(&mut Configuration, &str) -> Result<(), String>,
    /// Formats the stored value.
    pub show: fn(&Configuration) -> String,
}

/// Headings of the sections in help and documentation.
const HEADINGS: [(&str, &str); 21] = [
    ("", "Service"),
    ("api", "API responses"),
    ("keystone", "Keystone of a cloud"),
    ("openstack", "Nova and Placement of a cloud"),
    ("tls", "Encryption"),
    ("simulated", "Simulated fleet"),
    ("leases", "Leases"),
    ("housekeeping", "Housekeeping of leases"),
    ("quota", "Quotas of a project's leases"),
    ("instances", "Instances without a cloud"),
    ("preemptible", "Preemptible instances"),
    ("usage", "Usage and prices"),
    ("energy", "Power saving"),
    ("filters", "Filters of hosts for leases"),
    ("hints", "Scheduler hints of leases"),
    ("enforcement", "External service that can refuse leases"),
    ("notifications", "Notifications to a listener"),
    ("message_bus", "Message bus of a cloud"),
    ("limits", "Limits of requests and of work"),
    ("placement", "Questions about Ganeti clusters"),
    ("log", "Log"),
];

impl Setting {
    /// Value in `configuration` as text, or empty if it isn't set.
    pub(crate) fn text(&self, configuration: &Configuration) -> String {
        let text = (self.show)(configuration);
        let in_unit = self.unit.and_then(|unit| duration::show_in(duration::parse(&text)?, unit));
        in_unit.unwrap_or(text)
    }

    /// Parses a value without storing it.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        (self.read)(&mut Configuration::default(), text)
    }

    /// Name of the flag, without the leading hyphens.
    pub(crate) fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// Name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("ALLOT_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// Whether the setting has several values by name, which can be a table in the file.
    pub(crate) fn is_table(&self) -> bool {
        self.value_name.contains('=')
    }

    /// Section of the file, or empty if the setting isn't in one.
    pub(crate) fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    pub(crate) fn heading(&self) -> &'static str {
        let of_section = |(section, _): &&(&str, &str)| *section == self.section();
        HEADINGS.iter().find(of_section).map_or("Others", |(_, heading)| heading)
    }
}
