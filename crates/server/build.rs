//! Writes the table of the console's files, which become part of the server.
//!
//! They are what `cargo xtask console` has left in `console/dist`. Where nothing was built there, the table is empty, so
//! that the server needs no Node.js to be built.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(name));
    let console = variable("CARGO_MANIFEST_DIR")?.join("../../console");
    let built = console.join("dist");
    // Of a folder that there is not, every build is taken to be the first.
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

/// The files of a folder, by name; none if there is no such folder.
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

/// An expression for what is in a file.
fn bytes(path: &Path) -> io::Result<String> {
    let path = path.canonicalize()?;
    let path = path.to_str().ok_or_else(|| io::Error::other("a path is not UTF-8"))?;
    Ok(format!("include_bytes!({path:?})"))
}
