//! Access rules of application credentials.

use serde::Deserialize;

/// A kind of request that an application credential allows. Requests that match no rule are rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AccessRule {
    /// Type of the service: `reservation`.
    #[serde(default)]
    pub service: String,
    /// HTTP method: `GET`.
    #[serde(default)]
    pub method: String,
    /// Path: `/v1/leases/*`. `*` and `{NAME}` match one segment, `**` any number of segments.
    #[serde(default)]
    pub path: String,
}

impl AccessRule {
    /// Whether the rule allows a request to a service of this type.
    pub fn allows(&self, service: &str, method: &str, path: &str) -> bool {
        self.service == service && self.method == method && path_fits(&self.path, path)
    }
}

/// A part of a pattern.
#[derive(Clone, Copy)]
enum Piece {
    Byte(u8),
    /// One or more characters, except slashes.
    Segment,
    /// Any characters, or none.
    Anything,
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.bytes().next() {
        if let Some(after) = rest.strip_prefix("**") {
            pieces.push(Piece::Anything);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('*') {
            pieces.push(Piece::Segment);
            rest = after;
        } else if let Some(end) = rest.find('}').filter(|_| first == b'{') {
            pieces.push(Piece::Segment);
            rest = &rest[end + 1..];
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            pieces.extend(rest[..next].bytes().map(Piece::Byte));
            rest = &rest[next..];
        }
    }
    pieces
}

/// Whether the whole path matches the pattern. Takes time in proportion to the product of their lengths at
/// most.
fn path_fits(pattern: &str, path: &str) -> bool {
    let path = path.as_bytes();
    // Marks the lengths of the path's prefixes that the pieces so far can match.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for piece in pieces(pattern) {
        let mut next = vec![false; path.len() + 1];
        match piece {
            Piece::Byte(wanted) => {
                for (at, byte) in path.iter().enumerate() {
                    next[at + 1] = reached[at] && *byte == wanted;
                }
            }
            Piece::Segment => {
                for (at, byte) in path.iter().enumerate() {
                    next[at + 1] = *byte != b'/' && (reached[at] || next[at]);
                }
            }
            Piece::Anything => {
                let mut open = false;
                for at in 0..=path.len() {
                    open |= reached[at];
                    next[at] = open;
                }
            }
        }
        reached = next;
    }
    reached[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_rule_allows_what_its_path_stands_for_and_nothing_else() {
        let fits = |pattern, path| path_fits(pattern, path);
        assert!(
            fits("/v1/leases", "/v1/leases")
                && !fits("/v1/leases", "/v1/leases/")
                && !fits("/v1/leases", "/v1/lease")
        );
        for one in ["/v1/leases/*", "/v1/leases/{lease_id}"] {
            assert!(
                fits(one, "/v1/leases/a-b") && !fits(one, "/v1/leases/") && !fits(one, "/v1/leases/a/b"),
                "{one}"
            );
        }
        assert!(fits("/v1/**", "/v1/leases/a/b") && fits("/v1/**", "/v1/") && !fits("/v1/**", "/v2/leases"));
        assert!(fits("/v1/*/x**y", "/v1/a/xpqy") && !fits("/v1/*/x**y", "/v1/a/xpq"));
        assert!(fits("/v1/{unclosed", "/v1/{unclosed") && !fits("/v1/leases.", "/v1/leasesx"));
        assert!(!fits("", "/v1") && fits("**", "") && fits("/é*", "/éa"));

        let rule = AccessRule {
            service: "reservation".to_owned(),
            method: "GET".to_owned(),
            path: "/v1/leases".to_owned(),
        };
        assert!(rule.allows("reservation", "GET", "/v1/leases"));
        assert!(!rule.allows("reservation", "POST", "/v1/leases"));
        assert!(!rule.allows("compute", "GET", "/v1/leases"));
        assert!(!AccessRule::default().allows("reservation", "GET", "/v1/leases"));
    }
}
