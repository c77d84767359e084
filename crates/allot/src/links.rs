//! `allot install-links`: makes links to this binary under the names of Ganeti's programs.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use htools::io::{FAILURE, Io, SUCCESS};
use htools::options::Program;

/// Makes a link to this binary under each program's name, and the directory if it's missing. An existing link
/// to this binary or to a file named `allot` is replaced. Anything else of that name is left alone, and is an
/// error.
pub(crate) fn install(directory: &Path, programs: &[Program], io: &mut Io<'_>) -> u8 {
    if let Err(error) = fs::create_dir_all(directory) {
        let _ = writeln!(io.err, "Error: cannot make the directory {}: {error}", directory.display());
        return FAILURE;
    }
    let target = match env::current_exe() {
        Ok(target) => target,
        Err(error) => {
            let _ = writeln!(io.err, "Error: cannot find this binary: {error}");
            return FAILURE;
        }
    };
    let mut status = SUCCESS;
    for program in programs {
        let link = directory.join(program.name());
        match lay(&target, &link) {
            Ok(()) => {
                let _ = writeln!(io.out, "{} -> {}", link.display(), target.display());
            }
            Err(error) => {
                let _ = writeln!(io.err, "Error: {}: {error}", link.display());
                status = FAILURE;
            }
        }
    }
    status
}

fn lay(target: &Path, link: &Path) -> io::Result<()> {
    match fs::symlink_metadata(link) {
        Ok(existing) if existing.is_symlink() => {
            let old = fs::read_link(link)?;
            if old == target {
                return Ok(());
            }
            if !leads_to_allot(link, &old, target) {
                return Err(left_alone(&format!("is a link to {}", old.display())));
            }
            fs::remove_file(link)?;
        }
        Ok(_) => return Err(left_alone("is not a link")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    symlink(target, link)
}

fn left_alone(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("{reason}; it was left unchanged"))
}

/// Whether a link with the target `old` leads to this binary, or to a file named `allot`. That file can be missing: the
/// binary may have moved.
fn leads_to_allot(link: &Path, old: &Path, this: &Path) -> bool {
    let is_named_allot = |path: &Path| path.file_name().is_some_and(|name| name == "allot");
    match fs::canonicalize(link) {
        Ok(file) => {
            let is_this = this.canonicalize().is_ok_and(|this| this == file);
            is_this || file.is_file() && (is_named_allot(old) || is_named_allot(&file))
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound && is_named_allot(old),
    }
}
