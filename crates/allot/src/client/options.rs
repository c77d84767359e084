//! Names options of the command line in refusals, in place of parameters of the API.

/// Parameters of requests, and the options that set them.
const OPTIONS: [(&str, &str); 21] = [
    ("before_end_date", "--before-end-at"),
    ("disk_gb", "--disk"),
    ("disk_gib", "--host-disk"),
    ("end_action", "--end-action"),
    ("end_date", "--end"),
    ("flavor_id", "--flavor"),
    ("homogeneous", "--alike"),
    ("hypervisor_properties", "--where"),
    ("memory_mib", "--host-memory"),
    ("network_id", "--network"),
    ("repeat.every", "--every"),
    ("repeat.skip_unavailable", "--skip-unavailable"),
    ("repeat.time_zone", "--every"),
    ("repeat.times", "--times"),
    ("repeat.until", "--until"),
    ("required_floatingips", "--address"),
    ("resource_properties", "--where"),
    ("scheduler_hints", "--hint"),
    ("skip_unavailable", "--skip-unavailable"),
    ("start_date", "--start"),
    ("timeout_date", "--timeout"),
];

/// Parameters that are properties of hosts as well.
const ALSO_PROPERTIES: [(&str, &str); 3] =
    [("availability_zone", "--zone"), ("memory_mb", "--memory"), ("vcpus", "--vcpus")];

/// Replaces names of parameters in a text of the service.
pub(super) fn named(text: &str) -> String {
    // The service's hint has both names.
    let text = text.replace("skip_unavailable (`--skip-unavailable`)", "`--skip-unavailable`");
    let text = text.replace("repeat must be with either times or until", "add --times or --until");
    let is_about_properties = text.contains(" propert");
    let option = |word: &str| {
        let also = ALSO_PROPERTIES.iter().filter(|_| !is_about_properties);
        OPTIONS.iter().chain(also).find(|(name, _)| *name == word).map(|(_, option)| *option)
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let mut named = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_name(c)) {
        let word = piece.trim_end_matches(|c| !is_name(c)).trim_end_matches('.');
        let rest = &piece[word.len()..];
        // `memory_mb>=4096` and `$memory_mb` are parts of expressions.
        let is_compared = rest.starts_with(['=', '<', '>', '!']) || named.ends_with(['$', '-']);
        // Elsewhere, it's a verb.
        let is_repeat = word == "repeat" && named.ends_with("parameter ");
        let found = if is_repeat { Some("--every") } else { option(word.trim_start_matches('.')) };
        match found.filter(|_| !is_compared) {
            Some(option) => {
                // `reservations[0].end_date`
                let nested = named.rfind("reservations[").filter(|_| word.starts_with('.'));
                named.truncate(nested.unwrap_or(named.len()));
                named.push_str(option);
            }
            None => named.push_str(word),
        }
        named.push_str(rest);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_requests_become_options_and_properties_of_hosts_stay() {
        for (text, wanted) in [
            ("Malformed parameter repeat.until", "Malformed parameter --until"),
            ("Malformed parameter repeat", "Malformed parameter --every"),
            (
                "Malformed parameter repeat: it must be an object",
                "Malformed parameter --every: it must be an object",
            ),
            ("repeat must be with either times or until", "add --times or --until"),
            (
                "skip_unavailable (`--skip-unavailable`) leaves out dates that can't be had",
                "`--skip-unavailable` leaves out dates that can't be had",
            ),
            ("vcpus, memory_mb and disk_gb are missing", "--vcpus, --memory and --disk are missing"),
            ("Missing parameter reservations[0].memory_mb.", "Missing parameter --memory."),
            ("6 hosts left, 2 not matching resource_properties", "6 hosts left, 2 not matching --where"),
            ("make them shorter, or repeat them less often", "make them shorter, or repeat them less often"),
            ("no host has a property vcpu; there is vcpus", "no host has a property vcpu; there is vcpus"),
            ("hosts of kind memory_mb>=4096 and $vcpus", "hosts of kind memory_mb>=4096 and $vcpus"),
            ("Malformed parameter name", "Malformed parameter name"),
            ("", ""),
        ] {
            assert_eq!(named(text), wanted);
        }
    }
}
