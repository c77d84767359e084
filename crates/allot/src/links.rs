//! `allot install-links`: the programs under their own names.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use htools::io::{FAILURE, Io, SUCCESS};
use htools::options::Program;

/// Makes a link to this binary under each program's name; the directory too, if there is none. A link of ours is
/// renewed; anything else of that name is left alone, and is an error.
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

fn lay(target: &Path, link: &PathBuf) -> io::Result<()> {
    match fs::symlink_metadata(link) {
        Ok(existing) if existing.is_symlink() => {
            if fs::metadata(link).is_ok_and(|target| !target.is_file()) {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "exists and is not a link to a program",
                ));
            }
            fs::remove_file(link)?;
        }
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists and is not a link")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    symlink(target, link)
}
