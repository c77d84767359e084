//! Parses the transport URL of a message bus, as in settings of OpenStack's services:
//! `rabbit://USER:PASSWORD@HOST:PORT,USER:PASSWORD@HOST:PORT/VIRTUAL_HOST?ssl=1`.

use std::fmt;

use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use thiserror::Error;

/// AMQP's limit on names of virtual hosts, exchanges and queues, in bytes.
pub(super) const LONGEST_NAME: usize = 255;

/// Default ports of AMQP and of AMQP over TLS.
const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;

/// Address of a message bus.
#[derive(Clone, Debug)]
pub(super) struct TransportUrl {
    /// At least one.
    pub brokers: Vec<Broker>,
    pub virtual_host: String,
    pub tls: bool,
}

/// A broker with its credentials.
#[derive(Clone, Debug)]
pub(super) struct Broker {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: SecretString,
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Reason why a transport URL is invalid. The URL itself has passwords and is never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum TransportUrlError {
    /// The scheme is not RabbitMQ's.
    #[error("the transport URL has to begin with rabbit://")]
    Scheme,
    #[error("the transport URL names no host")]
    NoHost,
    #[error("invalid transport URL: the port must be a number from 1 to 65535")]
    Port,
    #[error(
        "the transport URL names a user without a password: write USER:PASSWORD@HOST, with %40 for @ and %3A for :"
    )]
    NoPassword,
    /// Percent-decoding a part gives invalid UTF-8.
    #[error("invalid transport URL: percent-decoded text is not UTF-8")]
    NoText,
    /// The virtual host's name is longer than AMQP allows.
    #[error("the transport URL names a virtual host of more than {LONGEST_NAME} bytes")]
    VirtualHost,
}

impl TransportUrl {
    /// Parses the URL. `tls` is the default for URLs without `ssl=`.
    pub fn read(text: &str, tls: bool) -> Result<Self, TransportUrlError> {
        let rest = text.trim().strip_prefix("rabbit://").ok_or(TransportUrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, virtual_host) = rest.split_once('/').unwrap_or((rest, ""));
        let tls =
            query.split('&').filter_map(|pair| pair.strip_prefix("ssl=")).next_back().map_or(tls, is_true);
        let virtual_host = decoded(virtual_host)?;
        if virtual_host.len() > LONGEST_NAME {
            return Err(TransportUrlError::VirtualHost);
        }
        let mut brokers: Vec<Broker> = Vec::new();
        for part in authority.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let broker = broker(part, brokers.last(), if tls { TLS_PORT } else { PORT })?;
            brokers.push(broker);
        }
        if brokers.is_empty() {
            return Err(TransportUrlError::NoHost);
        }
        // The default virtual host, which every broker has.
        let virtual_host = if virtual_host.is_empty() { "/".to_owned() } else { virtual_host };
        Ok(Self { brokers, virtual_host, tls })
    }
}

/// Parses one broker. Its default credentials are the preceding broker's, or else RabbitMQ's own default.
fn broker(part: &str, before: Option<&Broker>, port: u16) -> Result<Broker, TransportUrlError> {
    let (login, address) = part.rsplit_once('@').map_or((None, part), |(login, at)| (Some(login), at));
    let (user, password) = match (login, before) {
        (Some(login), _) => {
            let (user, password) = login.split_once(':').ok_or(TransportUrlError::NoPassword)?;
            (decoded(user)?, SecretString::from(decoded(password)?))
        }
        (None, Some(before)) => (before.user.clone(), before.password.clone()),
        (None, None) => ("guest".to_owned(), "guest".into()),
    };
    let (host, said) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(TransportUrlError::NoHost);
    }
    let port =
        said.map_or(Ok(port), str::parse).ok().filter(|port| *port > 0).ok_or(TransportUrlError::Port)?;
    Ok(Broker { host: host.to_owned(), port, user, password })
}

fn decoded(text: &str) -> Result<String, TransportUrlError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| TransportUrlError::NoText)
}

/// Parses a boolean as OpenStack's settings write it.
fn is_true(text: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    /// Hosts with their credentials, the virtual host, and whether TLS is used.
    fn read(text: &str) -> Result<(Vec<String>, String, bool), TransportUrlError> {
        let url = TransportUrl::read(text, false)?;
        let shown = |broker: &Broker| format!("{}:{}@{broker}", broker.user, broker.password.expose_secret());
        Ok((url.brokers.iter().map(shown).collect(), url.virtual_host, url.tls))
    }

    #[test]
    fn addresses_are_read_as_openstacks_services_write_them() {
        for (text, brokers, virtual_host, tls) in [
            ("rabbit://openstack:pw@10.0.0.1:5672//", vec!["openstack:pw@10.0.0.1:5672"], "/", false),
            ("rabbit://u:p@h1,u2:p2@h2:5673/nova\n", vec!["u:p@h1:5672", "u2:p2@h2:5673"], "nova", false),
            ("rabbit://u:p@h1,h2/", vec!["u:p@h1:5672", "u:p@h2:5672"], "/", false),
            ("rabbit://h", vec!["guest:guest@h:5672"], "/", false),
            (
                "rabbit://u:p%40%2F%3A@[2001:db8::1]:5671/%2Fa?ssl=1",
                vec!["u:p@/:@[2001:db8::1]:5671"],
                "/a",
                true,
            ),
            ("rabbit://u:a:b@h/?heartbeat=3&ssl=True", vec!["u:a:b@h:5671"], "/", true),
            ("rabbit://u:p@h/?ssl=1&ssl=0", vec!["u:p@h:5672"], "/", false),
        ] {
            let brokers = brokers.into_iter().map(str::to_owned).collect();
            assert_eq!(read(text), Ok((brokers, virtual_host.to_owned(), tls)), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_said_without_its_password() {
        for (text, error) in [
            ("kombu+memory://", TransportUrlError::Scheme),
            ("amqp://u:hush@h", TransportUrlError::Scheme),
            ("rabbit:///vhost", TransportUrlError::NoHost),
            ("rabbit://u:hush@:5672/", TransportUrlError::NoHost),
            ("rabbit://u:hush@h:0/", TransportUrlError::Port),
            ("rabbit://u:hush@h:70000/", TransportUrlError::Port),
            ("rabbit://hush@h/", TransportUrlError::NoPassword),
            ("rabbit://u:%ff@h/", TransportUrlError::NoText),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
            assert!(!error.to_string().contains("hush"));
        }
        let long = format!("rabbit://h/{}", "a".repeat(256));
        assert_eq!(read(&long), Err(TransportUrlError::VirtualHost));
        let shown = format!("{:?}", TransportUrl::read("rabbit://u:hush@h/", true).expect("an address"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
