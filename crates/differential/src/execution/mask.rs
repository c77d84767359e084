//! Masking of times, random names and versions, which differ between any two runs.

/// Replaces these by fixed words. Ten-digit numbers count as times if they are within an hour after `since`,
/// in seconds.
pub fn mask(text: &str, since: u64) -> String {
    let text = mask_versions(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_uuid(rest) {
            out.push_str("UUID");
            rest = after;
            continue;
        }
        let token = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(token.max(first.len_utf8()));
        let is_time = match word.parse::<u64>() {
            Ok(number) if word.len() == 10 => (since..since + 3600).contains(&number),
            // nanoseconds
            Ok(_) => word.len() == 19,
            Err(_) => false,
        };
        out.push_str(if is_time { "TIME" } else { word });
        rest = after;
    }
    out
}

fn mask_versions(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, mark)) = ["(ganeti) version ", "(allotment) version "]
        .iter()
        .filter_map(|mark| rest.find(mark).map(|at| (at, mark)))
        .min()
    {
        out.push_str(&rest[..at]);
        out.push_str("VERSION");
        rest = &rest[at + mark.len()..];
        let end = rest.find(|c: char| c.is_whitespace() || c == '"' || c == '\\').unwrap_or(rest.len());
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Text after a leading UUID, if there is one.
fn after_uuid(text: &str) -> Option<&str> {
    let mut rest = text;
    for (position, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if position > 0 {
            rest = rest.strip_prefix('-')?;
        }
        let part = rest.get(..length)?;
        if !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        rest = &rest[length..];
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_what_differs_between_runs() {
        let text = "x:42b3aa70-c227-44be-97c2-5128fe960aed:1795263428:101 1795263428214088000 1000000000 ü";
        assert_eq!(mask(text, 1_795_263_400), "x:UUID:TIME:101 TIME 1000000000 ü");
        let text = r#"hbal (ganeti) version 3.0.2-3 called","hbal (allotment) version 0.1.0""#;
        assert_eq!(mask(text, 0), r#"hbal VERSION called","hbal VERSION""#);
    }
}
