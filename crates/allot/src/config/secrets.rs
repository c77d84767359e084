//! Removes secrets from settings before they are logged or shown to administrators.

use super::choice::DatabaseChoice;
use super::setting::Setting;
use super::value::Value;

/// Removes passwords from URLs in a text: the part between a colon and the last `@` before the path, and
/// everything after `password=`. This is for errors, which are logged.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let user = after[..end].rfind('@').map_or("", |at| &after[..at]);
        shown.push_str(user.split_once(':').map_or(user, |(name, _)| name));
        rest = &after[user.len()..];
    }
    shown.push_str(rest);
    match shown.find("password=") {
        Some(at) => format!("{}password=...", &shown[..at]),
        None => shown,
    }
}

/// Removes secrets from a setting for administrators, who can see settings but no secrets. Of a URL, it keeps
/// scheme, host and port, since the path of a web hook is often secret. Of a database, it also keeps the
/// name.
pub(super) fn without_secrets(setting: &Setting, text: &str) -> String {
    match setting.value_name {
        "DATABASE" => {
            DatabaseChoice::parse(text).map_or_else(|_| "...".to_owned(), |database| database.show())
        }
        "NAME=SOURCE,..." => text.split(',').map(without_login).collect::<Vec<_>>().join(","),
        "URL" if !text.is_empty() => origin(text),
        _ if text.contains("://") => origin(text),
        _ => text.to_owned(),
    }
}

/// Removes the location of a cluster if it can contain a password.
fn without_login(cluster: &str) -> String {
    match cluster.split_once(':') {
        Some((kind, place)) if place.contains('@') => format!("{kind}:..."),
        _ => cluster.to_owned(),
    }
}

/// Scheme, host and port of a URL.
fn origin(address: &str) -> String {
    let Ok(url) = reqwest::Url::parse(address) else { return "...".to_owned() };
    let Some(host) = url.host_str() else { return "...".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let more = if url.path().len() > 1 || url.query().is_some() { "/..." } else { "" };
    format!("{}://{host}{port}{more}", url.scheme())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        for (text, shown) in [
            ("postgres://u:secret@h1,h2/db", "postgres://u@h1,h2/db"),
            ("postgres://u:se:c@ret@h:x/db,postgres://v:secret@h", "postgres://u@h:x/db,postgres://v@h"),
            ("postgres://h/db?user=u&password=secret", "postgres://h/db?user=u&password=..."),
            ("sqlite://a:b@c", "sqlite://a@c"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
