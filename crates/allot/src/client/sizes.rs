//! Sizes of memory and disk as people write and read them.

use serde_json::Value;

use super::wire::plain;

/// Formats memory in MiB for tables, as GiB if that is a whole number.
pub(crate) fn memory(mib: &Value) -> String {
    match mib.as_u64() {
        Some(mib) if mib > 0 && mib % 1024 == 0 => format!("{} GiB", mib / 1024),
        _ => format!("{} MiB", plain(mib)),
    }
}

/// Smallest number of MiB without a unit. Smaller ones are meant as GiB.
const LEAST_MEBIBYTES: u32 = 128;

/// Parses memory in MiB: `4096`, `512M`, `4G`.
pub(crate) fn mebibytes(text: &str) -> Result<u32, String> {
    if let Ok(mib @ 1..LEAST_MEBIBYTES) = text.parse::<u32>() {
        return Err(format!("that is {mib} MiB; did you mean {mib}G? {mib}M means {mib} MiB"));
    }
    scaled(
        text,
        &[('M', 1), ('G', 1024), ('T', 1024 * 1024)],
        "write MiB such as 4096, or a unit such as 512M, 4G",
    )
}

/// Parses disk in GiB: `20`, `20G`, `1T`.
pub(crate) fn gibibytes(text: &str) -> Result<u32, String> {
    scaled(text, &[('G', 1), ('T', 1024)], "write GiB such as 20, or a unit such as 20G, 1T")
}

fn scaled(text: &str, units: &[(char, u32)], wrong: &str) -> Result<u32, String> {
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.to_uppercase().strip_suffix(*unit)?.to_owned(), *factor)))
        .unwrap_or((text.to_owned(), 1));
    let number: u64 = number.parse().map_err(|_| wrong.to_owned())?;
    let size = number.checked_mul(u64::from(factor)).and_then(|size| u32::try_from(size).ok());
    size.ok_or_else(|| format!("too large: the maximum is {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn little_memory_needs_a_unit() {
        assert_eq!([mebibytes("4096"), mebibytes("4G"), mebibytes("4M")], [Ok(4096), Ok(4096), Ok(4)]);
        assert_eq!((mebibytes("0"), mebibytes("128"), gibibytes("4")), (Ok(0), Ok(128), Ok(4)));
        let refused = mebibytes("4").expect_err("it has no unit");
        assert_eq!(refused, "that is 4 MiB; did you mean 4G? 4M means 4 MiB");
    }

    #[test]
    fn memory_is_in_gibibytes_where_they_are_whole() {
        for (mib, shown) in
            [(0, "0 MiB"), (512, "512 MiB"), (1536, "1536 MiB"), (1024, "1 GiB"), (16384, "16 GiB")]
        {
            assert_eq!(memory(&json!(mib)), shown);
        }
        assert_eq!(memory(&json!("lots")), "lots MiB");
    }
}
