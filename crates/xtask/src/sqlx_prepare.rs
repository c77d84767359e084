//! `cargo xtask sqlx-prepare`: descriptions of the stores' queries, so that the compiler needs no database.
//!
//! The schema is created in a scratch database, and the crate is compiled against it. Each query then has a
//! description in the crate's `.sqlx`, which is committed. With `--check`, a difference is an error, and no
//! files are written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Error, Result, ensure};
use chores::arguments::Arguments;
use chores::places::{cargo, need_postgres, need_program, root};
use chores::run::must_run;
use scratch_postgres::ScratchPostgres;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let check = arguments.switch("--check");
    arguments.finish()?;
    run(check)
}

/// Describes the queries of both stores. With `check`, only compares.
pub fn run(check: bool) -> Result<()> {
    let scratch = tempfile::tempdir().context("no temporary directory")?;
    let file = scratch.path().join("schema.db");
    migrate(&file, &root().join("crates/store-sqlite/migrations"))?;
    describe("store-sqlite", ("ALLOT_SQLITE_URL", &format!("sqlite://{}", file.display())), check)?;

    need_postgres()?;
    let server = ScratchPostgres::start().map_err(Error::msg)?;
    let url = server.database(None).map_err(Error::msg)?;
    let migrations = root().join("crates/store-postgres/migrations");
    let scripts = files(&migrations)?.into_keys().filter(|name| is_script(name));
    let scripts: Vec<PathBuf> = scripts.map(|name| migrations.join(name)).collect();
    server.run_files("scratch0", &scripts).map_err(Error::msg)?;
    describe("store-postgres", ("ALLOT_POSTGRES_URL", &url), check)
}

/// Compiles a crate against its database, and updates or compares its descriptions.
fn describe(package: &str, (variable, url): (&str, &str), check: bool) -> Result<()> {
    let crate_directory = root().join("crates").join(package);
    let described = crate_directory.join(".sqlx");
    let scratch = tempfile::tempdir().context("no temporary directory")?;
    let fresh = scratch.path().join("sqlx");
    fs::create_dir(&fresh)?;
    // Forces compilation: cargo doesn't notice that the database has changed.
    File::options().write(true).open(crate_directory.join("src/lib.rs"))?.set_modified(SystemTime::now())?;
    must_run(
        cargo()
            .args(["check", "--quiet", "--package", package])
            .env(variable, url)
            .env("SQLX_OFFLINE", "false")
            .env("SQLX_OFFLINE_DIR", &fresh),
    )?;
    let (old, new) = (files(&described)?, files(&fresh)?);
    if old == new {
        println!("{package}: {} query descriptions are up to date", new.len());
        return Ok(());
    }
    ensure!(
        !check,
        "crates/{package}/.sqlx is out of date; \
         run 'cargo xtask sqlx-prepare' and commit the changes"
    );
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        fs::remove_file(described.join(name))?;
    }
    fs::create_dir_all(&described)?;
    for (name, content) in &new {
        fs::write(described.join(name), content)?;
    }
    println!("{package}: {} queries described; commit crates/{package}/.sqlx", new.len());
    Ok(())
}

/// Whether a file is a migration. The directory can have other files.
fn is_script(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "sql")
}

/// Creates a database by applying all migrations in order. Uses SQLite's own program, because the crate
/// doesn't compile before its queries are described.
fn migrate(database: &Path, migrations: &Path) -> Result<()> {
    need_program("sqlite3", "sqlite3")?;
    for name in files(migrations)?.keys().filter(|name| is_script(name)) {
        let script = File::open(migrations.join(name))?;
        let mut command = Command::new("sqlite3");
        must_run(command.arg("-bail").arg(database).stdin(Stdio::from(script)))?;
    }
    Ok(())
}

/// Files of a directory, by name.
fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    if !directory.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.insert(entry.file_name().into(), fs::read(entry.path())?);
    }
    Ok(files)
}
