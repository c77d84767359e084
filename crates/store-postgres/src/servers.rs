//! Servers of a database: their addresses, and a search for the server that takes writes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use thiserror::Error;

/// Time limit for connecting to a server.
const CONNECT_TIME: Duration = Duration::from_secs(4);

/// Time for which only the server that took writes last is tried. After that, all are.
const HEAD_START: Duration = Duration::from_millis(300);

/// The address of a database on one server or several, in the syntax of PostgreSQL's own clients:
/// `postgres://user:password@host1:5432,host2/database?sslmode=verify-full`. Several addresses can also be
/// separated by commas.
///
/// Connects to the server that takes writes, as with `target_session_attrs=read-write`. The password is never
/// printed.
#[derive(Clone)]
pub struct Servers(Vec<Server>);

#[derive(Clone)]
struct Server {
    options: PgConnectOptions,
    /// Name in errors and logs.
    name: String,
}

/// Reason why text isn't the address of a database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The scheme is wrong.
    #[error("write postgres://USER@HOST/DATABASE, with several hosts separated by commas")]
    Scheme,
    /// A server's address is invalid. The reason never contains the password.
    #[error("the address of server {number} is wrong: {reason}")]
    Server {
        /// Number of the server, from 1.
        number: usize,
        reason: String,
    },
}

impl FromStr for Servers {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut servers = Vec::new();
        for url in one_each(text)? {
            let number = servers.len() + 1;
            let wrong = |reason: String| AddressError::Server { number, reason };
            let options = PgConnectOptions::from_str(&url).map_err(|error| wrong(reason(&error)))?;
            if options.get_database().is_none() {
                return Err(wrong("name the database after the host: HOST/DATABASE".to_owned()));
            }
            let name = match options.get_socket() {
                Some(socket) => socket.display().to_string(),
                None => format!("{}:{}", options.get_host(), options.get_port()),
            };
            servers.push(Server { options: options.application_name("allot"), name });
        }
        Ok(Self(servers))
    }
}

/// The message itself, without the wording that libraries add.
fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Configuration(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Splits text into one address per server.
fn one_each(text: &str) -> Result<Vec<String>, AddressError> {
    let mut urls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let after = ["postgres://", "postgresql://"].iter().find_map(|scheme| rest.strip_prefix(scheme));
        let after = after.ok_or(AddressError::Scheme)?;
        let next = [",postgres://", ",postgresql://"].iter().filter_map(|next| after.find(next)).min();
        let (url, others) = next.map_or((after, ""), |at| (&after[..at], &after[at + 1..]));
        let (authority, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
        let (user, hosts) = authority.rfind('@').map_or(("", authority), |at| authority.split_at(at + 1));
        urls.extend(hosts.split(',').map(|host| format!("postgres://{user}{host}{path}")));
        rest = others;
    }
    if urls.is_empty() { Err(AddressError::Scheme) } else { Ok(urls) }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|server| server.name.as_str()).collect();
        let database = self.0.first().and_then(|server| server.options.get_database()).unwrap_or_default();
        write!(f, "postgres://{}/{database}", names.join(","))
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Servers({self})")
    }
}

/// Addresses are equal if they lead to the same databases. The user doesn't matter.
impl PartialEq for Servers {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Servers {}

/// No server takes writes. Contains a reason for each.
#[derive(Debug, Error)]
#[error("no server of the database takes writes: {}", .0.join("; "))]
pub struct NoServer(Vec<String>);

/// A connection to a server that takes writes, and the server's number.
pub(crate) struct Found {
    pub(crate) connection: PgConnection,
    pub(crate) server: usize,
}

impl Servers {
    /// Connects to a server that takes writes: server `first`, or if that isn't soon enough, the first of all
    /// servers that answers. Trying them in turn would wait for the full time limit at each server that is
    /// gone.
    pub(crate) async fn connect(&self, first: usize) -> Result<Found, NoServer> {
        let mut others =
            (0..self.0.len()).filter(|server| *server != first).map(|server| self.attempt(server));
        let mut attempts: FuturesUnordered<_> = [self.attempt(first)].into_iter().collect();
        let mut reasons = BTreeMap::new();
        let mut answer = tokio::time::timeout(HEAD_START, attempts.next()).await.ok().flatten();
        attempts.extend(&mut others);
        loop {
            match answer {
                Some(Ok(found)) => return Ok(found),
                Some(Err((server, reason))) => _ = reasons.insert(server, reason),
                None if attempts.is_empty() => return Err(NoServer(reasons.into_values().collect())),
                None => {}
            }
            answer = attempts.next().await;
        }
    }

    /// Connects to one server, or returns the reason why that failed.
    async fn attempt(&self, server: usize) -> Result<Found, (usize, String)> {
        let Some(Server { options, name }) = self.0.get(server) else {
            return Err((server, "there is no such server".to_owned()));
        };
        let reason = match tokio::time::timeout(CONNECT_TIME, connect(options)).await {
            Ok(Ok(Some(connection))) => return Ok(Found { connection, server }),
            Ok(Ok(None)) => format!("{name} is a standby or read-only"),
            Ok(Err(error)) => format!("{name}: {error}"),
            Err(_) => format!("{name} does not answer"),
        };
        Err((server, reason))
    }

    pub(crate) fn options(&self, server: usize) -> Option<&PgConnectOptions> {
        self.0.get(server).map(|server| &server.options)
    }
}

/// Connects, unless the server doesn't take writes.
///
/// Sessions have time limits: a service that lost its power in the middle of a commit must not block the
/// whole database, and no caller waits forever for a lock. The limits are set by a statement and not while
/// connecting, because poolers in front of the database reject the latter.
///
/// Statements have no time limit: when it ends a commit that waits for its synchronous standby, PostgreSQL
/// reports that the commit was successful. Instead, PostgreSQL ends a statement when it finds that the client
/// is gone.
async fn connect(options: &PgConnectOptions) -> Result<Option<PgConnection>, sqlx::Error> {
    let mut connection = options.connect().await?;
    let writable = sqlx::query_scalar!(
        r#"SELECT NOT pg_is_in_recovery() AND NOT current_setting('default_transaction_read_only')::boolean
             AS "writable!"
         FROM (SELECT
             set_config('idle_in_transaction_session_timeout', '10s', false),
             set_config('lock_timeout', '10s', false),
             set_config('statement_timeout', '0', false),
             set_config('client_connection_check_interval', '10s', false),
             set_config('tcp_keepalives_idle', '30', false),
             set_config('tcp_keepalives_interval', '10', false),
             set_config('tcp_keepalives_count', '3', false),
             set_config('default_transaction_isolation', 'read committed', false)
         ) AS settings"#
    );
    let writable = writable.fetch_one(&mut connection).await?;
    Ok(writable.then_some(connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Servers {
        text.parse().expect("an address")
    }

    #[test]
    fn every_host_of_an_address_is_a_server() {
        let three = servers("postgres://u:p@h1:5433,h2,[::1]:7/db?sslmode=disable");
        assert_eq!(three.to_string(), "postgres://h1:5433,h2:5432,[::1]:7/db");
        let two = servers("postgres://u:p@h1/db,postgresql://v:q@h2/db");
        assert_eq!(two.to_string(), "postgres://h1:5432,h2:5432/db");
        assert_eq!(two.0[1].options.get_username(), "v");
        assert_eq!(servers("postgres://u@localhost/db?host=/run/x").to_string(), "postgres:///run/x/db");
    }

    #[test]
    fn what_is_no_address_is_told_without_its_password() {
        for text in
            ["", "h1/db", "mysql://u:secret@h/db", "postgres://u:secret@h:port/db", "postgres://u:secret@h"]
        {
            let error = text.parse::<Servers>().expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn passwords_are_not_printed() {
        let servers = servers("postgres://u:secret@h1,h2/db?password=secret&sslpassword=secret");
        assert!(!format!("{servers} {servers:?}").contains("secret"));
    }

    #[tokio::test]
    async fn who_cannot_be_reached_is_named_with_the_reason_and_without_a_password() {
        let servers = servers("postgres://u:secret@127.0.0.1:1,127.0.0.1:2/db");
        let Err(error) = servers.connect(0).await else { panic!("nobody listens there") };
        let error = error.to_string();
        assert!(error.contains("127.0.0.1:1: ") && error.contains("127.0.0.1:2: "), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
