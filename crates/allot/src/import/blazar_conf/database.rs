//! The setting `database`, from the address of Blazar's database.

use super::file::File;
use super::translation::{Translation, note, origin};
use crate::config;

/// Supported parameters of the address. Others configure Blazar's driver.
const PARAMETERS: [&str; 2] = ["sslmode=", "sslrootcert="];

impl Translation {
    /// Takes over an address of PostgreSQL, or advises what to write instead. The address has a password, which
    /// isn't printed.
    pub(super) fn database(&mut self, file: &File) {
        let Some(given) = file.given("database", "connection") else { return };
        let reason = match file.plain(given).as_deref().map(postgres) {
            Ok(Ok(address)) => {
                let origin = format!(
                    "{}; put the password into .pgpass in the home of the service's user. Tables of allot are created \
                     beside those of Blazar",
                    origin(given)
                );
                self.text("database", address, origin);
                return;
            }
            Ok(Err(reason)) => reason,
            // The note could have a part of the password.
            Err(_) => "it refers to other options",
        };
        self.notes.push(note(given, format!("not taken over: {reason}; set `database`")));
        self.database = Some(format!(
            "# {}: {reason}. Without this line, leases are in allot.db in the working directory. Write a file,\n\
             # or PostgreSQL, as in postgres://USER@HOST/DATABASE:\n\
             # database = \"sqlite:///var/lib/allot/allot.db\"\n",
            origin(given)
        ));
    }
}

/// The address without its password, or the reason that it has no counterpart.
fn postgres(address: &str) -> Result<String, &'static str> {
    let (scheme, rest) = address.split_once("://").ok_or("it isn't an address")?;
    match scheme.split('+').next() {
        Some("postgresql" | "postgres") => {}
        Some("mysql" | "mariadb") => return Err("MySQL has no counterpart"),
        Some("sqlite") => return Err("Blazar's file has another format"),
        _ => return Err("its kind of database has no counterpart"),
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password can have any character but @.
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    if place.is_empty() || place.starts_with('/') {
        return Err("its address names no host");
    }
    let user = login.split_once(':').map_or(login, |(user, _)| user);
    let known = |parameter: &&str| PARAMETERS.iter().any(|name| parameter.starts_with(name));
    let query: Vec<&str> = query.split('&').filter(known).collect();
    let at = if user.is_empty() { "" } else { "@" };
    let mark = if query.is_empty() { "" } else { "?" };
    let address = format!("postgres://{user}{at}{place}{mark}{}", query.join("&"));
    config::database(&address).map(|_| address).map_err(|_| "its address has no counterpart")
}
