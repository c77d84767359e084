//! Parses NAME=VALUE, the form of many options.

/// Splits at the first `=`, so the value can contain more of them. Fails if the name is empty.
pub(super) fn name_value(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_wanted_and_the_value_may_be_anything() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(name_value("rack=r1"), pair("rack", "r1"));
        assert_eq!(name_value("capabilities:arch=x=86"), pair("capabilities:arch", "x=86"));
        assert_eq!(name_value("rack="), pair("rack", ""));
        for wrong in ["rack", "=r1", ""] {
            assert_eq!(name_value(wrong), Err("write NAME=VALUE"));
        }
    }
}
