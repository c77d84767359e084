//! Sizes of memory and disk as people write them.

/// Memory, MiB: `4096`, `512M`, `4G`.
pub(crate) fn mebibytes(text: &str) -> Result<u64, String> {
    scaled(
        text,
        &[('M', 1), ('G', 1024), ('T', 1024 * 1024)],
        "write MiB as 4096, or with a unit as 512M, 4G",
    )
}

/// Disk, GiB: `20`, `20G`, `1T`.
pub(crate) fn gibibytes(text: &str) -> Result<u64, String> {
    scaled(text, &[('G', 1), ('T', 1024)], "write GiB as 20, or with a unit as 20G, 1T")
}

fn scaled(text: &str, units: &[(char, u64)], wrong: &str) -> Result<u64, String> {
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.to_uppercase().strip_suffix(*unit)?.to_owned(), *factor)))
        .unwrap_or((text.to_owned(), 1));
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(|| wrong.to_owned())
}
