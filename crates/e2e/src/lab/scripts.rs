//! Private, runnable copies of the lab's scripts.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Copies the scripts in `from` to `to`, which is emptied first.
///
/// The storage of the originals can lose links and modes, so both are restored: a file that only contains the
/// name of a file next to it was a link to it, and a file that starts with `#!` is a program.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot empty {}", to.display()))?;
    }
    copy_directory(from, to)
}

fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let unreadable = || format!("cannot read {}", from.display());
    let mut links: Vec<(PathBuf, String)> = Vec::new();
    for entry in fs::read_dir(from).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_directory(&entry.path(), &target)?;
            continue;
        }
        let content =
            fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
        match link_target(from, &content) {
            Some(name) if name.as_str() != entry.file_name() => links.push((target, name)),
            _ => {
                fs::write(&target, &content).with_context(|| format!("cannot write {}", target.display()))?;
                let mode = if content.starts_with(b"#!") { 0o755 } else { 0o644 };
                fs::set_permissions(&target, Permissions::from_mode(mode))?;
            }
        }
    }
    for (link, name) in links {
        symlink(&name, &link).with_context(|| format!("cannot link {}", link.display()))?;
    }
    Ok(())
}

/// Replaces parts of a script. Each part must occur exactly once.
pub fn replaced(mut text: String, changes: &[(&str, &str)]) -> Result<String> {
    for (from, to) in changes {
        ensure!(text.matches(from).count() == 1, "another script: {from:?} is not there once");
        text = text.replace(from, to);
    }
    Ok(text)
}

/// Target of a file that was a link: its only content is the name of a file next to it.
fn link_target(directory: &Path, content: &[u8]) -> Option<String> {
    const LONGEST: usize = 64;
    if content.len() > LONGEST {
        return None;
    }
    let name = std::str::from_utf8(content).ok()?;
    let plain = !name.is_empty() && !name.contains(['/', '\n']);
    (plain && directory.join(name).is_file()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_modes_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::write(from.join("bin/lvm"), "#!/bin/sh\n").unwrap();
        fs::write(from.join("bin/vgs"), "lvm").unwrap();
        fs::write(from.join("bin/notes"), "lvm and others").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_link(to.join("bin/vgs")).unwrap(), Path::new("lvm"));
        assert_eq!(fs::metadata(to.join("bin/lvm")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::metadata(to.join("bin/notes")).unwrap().permissions().mode() & 0o777, 0o644);
    }
}
