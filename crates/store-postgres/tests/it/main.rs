//! The store in PostgreSQL on a real server, which is started for these tests.

mod connections;
mod documents;
mod journals;
mod locked;
mod promises;
mod schema;
mod sharing;
mod silence;
mod texts;
mod tls;

use std::sync::{Arc, LazyLock};

use scratch_postgres::ScratchPostgres;
use store_postgres::{PostgresStore, Servers};

/// One server for all tests of a process. It ends with the process.
static SERVER: LazyLock<ScratchPostgres> = LazyLock::new(own_server);

/// A server that the test can stop.
fn own_server() -> ScratchPostgres {
    ScratchPostgres::start().unwrap_or_else(|error| panic!("{error}"))
}

/// The address of a new, empty database.
fn database() -> Servers {
    let url = SERVER.database(None).expect("a database");
    url.parse().expect("an address")
}

async fn open(servers: &Servers) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(servers.clone()).await.expect("it can be opened"))
}

fn name(servers: &Servers) -> String {
    let text = servers.to_string();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}
