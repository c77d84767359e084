//! Embeds the console's files: writes a Rust table of them to `OUT_DIR`.
//!
//! The files come from `console/dist`, where `cargo xtask console` builds them. Without that directory the
//! table is empty, so building the server doesn't require Node.js.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(name));
    let console = variable("CARGO_MANIFEST_DIR")?.join("../../console");
    let built = console.join("dist");
    // Watch only what exists: Cargo reruns this script on every build if a watched path is missing.
    if let Some(folder) = [&built, &console].into_iter().find(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let index = built.join("index.html");
    let index = if index.is_file() { format!("Some({})", bytes(&index)?) } else { "None".to_owned() };
    let mut table = format!("static INDEX: Option<&[u8]> = {index};\n");
    table.push_str("static ASSETS: &[(&str, &[u8])] = &[\n");
    for (name, path) in files(&built.join("assets"))? {
        writeln!(table, "    ({name:?}, {}),", bytes(&path)?).map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    fs::write(variable("OUT_DIR")?.join("console.rs"), table)
}

/// Files in `folder`, sorted by name. Empty if the folder doesn't exist.
fn files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name =
                entry.file_name().into_string().map_err(|_| io::Error::other("a name is not UTF-8"))?;
            files.push((name, entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

/// A Rust expression for the file's content.
fn bytes(path: &Path) -> io::Result<String> {
    let path = path.canonicalize()?;
    let path = path.to_str().ok_or_else(|| io::Error::other("a path is not UTF-8"))?;
    Ok(format!("include_bytes!({path:?})"))
}
