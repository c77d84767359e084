//! Addresses of remote APIs.

use std::path::PathBuf;

/// Default port of the remote API.
const PORT: u16 = 5080;

/// An address as given to `-m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// `file://DIRECTORY`: the documents are files in a directory.
    Directory(PathBuf),
    /// Base URL of the documents.
    Server(String),
}

impl Address {
    /// Parses an address. Without a colon, it's a host name. With a colon, it's used as it is, and without a
    /// scheme the connection isn't encrypted.
    pub(super) fn parse(address: &str) -> Self {
        if let Some(directory) = address.strip_prefix("file://") {
            Self::Directory(directory.into())
        } else if address.contains(':') {
            Self::Server(address.to_owned())
        } else {
            Self::Server(format!("https://{address}:{PORT}"))
        }
    }

    /// Whether the connection uses TLS, so that the server's certificate can be verified.
    pub(super) fn has_tls(&self) -> bool {
        match self {
            Self::Directory(_) => false,
            Self::Server(server) => {
                server.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
            }
        }
    }
}

/// Position after the scheme. Text before `://` only counts as a scheme if it looks like one, because a
/// password can contain the same characters.
fn after_scheme(address: &str) -> usize {
    let scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    address.find("://").filter(|at| scheme(&address[..*at])).map_or(0, |at| at + 3)
}

/// Removes the password from an address, for messages and file names.
///
/// All text up to the last `@` counts as user and password. An unencoded password can contain a slash, and
/// it's better to hide too much than too little.
pub fn without_password(address: &str) -> String {
    let start = after_scheme(address);
    let Some(at) = address[start..].rfind('@') else { return address.to_owned() };
    let user = &address[start..start + at];
    match user.split_once(':') {
        Some((name, _)) => format!("{}{name}{}", &address[..start], &address[start + at..]),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let server = |text: &str| Address::Server(text.to_owned());
        assert_eq!(Address::parse("host"), server("https://host:5080"));
        assert_eq!(Address::parse("user@host"), server("https://user@host:5080"));
        assert_eq!(Address::parse("127.0.0.1:15080"), server("127.0.0.1:15080"));
        assert_eq!(Address::parse("https://u:p@host/prefix"), server("https://u:p@host/prefix"));
        assert_eq!(Address::parse("file://./saved"), Address::Directory("./saved".into()));
    }

    #[test]
    fn passwords_are_not_shown() {
        let check = |address, expect| assert_eq!(without_password(address), expect);
        check("http://user:secret@host:5080/2/info", "http://user@host:5080/2/info");
        check("user:secret@host", "user@host");
        check("http://user:se:cr@et@host", "http://user@host");
        check("http://:secret@host", "http://@host");
        check("https://user:secret@host/prefix", "https://user@host/prefix");
        check("user@host", "user@host");
        check("host:5080", "host:5080");
        check("", "");
    }

    #[test]
    fn passwords_are_not_shown_whatever_characters_they_have() {
        for password in
            ["se/cr/et", "se?cr#et", "a://b", "a:b@c/d@e", "se%40cr%2Fet", "se\ncr\r\net", "://", "é/ü@"]
        {
            for (scheme, host) in
                [("", "host"), ("", "host:5080"), ("https://", "host:5080"), ("http://", "[::1]/2/info")]
            {
                let shown = without_password(&format!("{scheme}user:{password}@{host}"));
                assert_eq!(shown, format!("{scheme}user@{host}"), "{password:?}");
            }
        }
    }
}
