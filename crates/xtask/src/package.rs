//! `cargo xtask package`: a Debian package with the service, its unit, manual pages and completions. It can
//! be installed next to Ganeti, because its links with the names of Ganeti's programs are in a directory of
//! their own.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use chores::arguments::Arguments;
use chores::cases::Cases;
use chores::console;
use chores::places::{need_program, ours, released, root, target};
use chores::run::{Executable, must_run, output_of, write};
use chores::tally::Tally;

/// Directory of the links. They replace Ganeti's programs only where this directory comes first in `PATH`.
const LINKS: &str = "usr/lib/allot/ganeti";

/// Files of the checkout, and their paths in the package.
const FILES: [(&str, &str); 6] = [
    ("ops/systemd/allot.service", "usr/lib/systemd/system/allot.service"),
    ("ops/systemd/allot.sysusers", "usr/lib/sysusers.d/allot.conf"),
    ("ops/systemd/allot.toml", "etc/allot/allot.toml"),
    ("ops/prometheus/rules.yaml", "usr/share/allot/prometheus/rules.yaml"),
    ("ops/grafana/leasing.json", "usr/share/allot/grafana/leasing.json"),
    ("LICENSE", "usr/share/doc/allot/copyright"),
];

/// Directory of the documentation. It has the layout of the checkout, so that relative links work.
const PAGES: &str = "usr/share/doc/allot";

/// Completions, by shell, and the paths where shells look for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/allot"),
    ("zsh", "usr/share/zsh/vendor-completions/_allot"),
    ("fish", "usr/share/fish/vendor_completions.d/allot.fish"),
];

/// Maximum size of a release binary in a package, in bytes.
const LARGEST: u64 = 32_000_000;

/// No compression for packages that are only inspected: compressing a development build takes a minute.
const FAST: [&str; 1] = ["-Znone"];

/// Creates the user, and restarts a running service, which would otherwise continue with the old binary.
/// Doesn't start a new service, because everyone would be its administrator.
const POSTINST: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ]; then
    if command -v systemd-sysusers > /dev/null; then
        systemd-sysusers allot.conf
    elif ! getent passwd allot > /dev/null; then
        useradd --system --user-group --home-dir /var/lib/allot --shell /usr/sbin/nologin allot
    fi
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        systemctl try-restart allot.service
    fi
fi
";

/// Leases stay even if the package is purged: they don't belong to the package.
const PRERM: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now allot.service
fi
";

pub fn main(mut arguments: Arguments) -> Result<()> {
    let only_check = arguments.switch("--check");
    let any_size = arguments.switch("--any-size");
    let given = arguments.text("--ours")?.map(Executable::new);
    let out = arguments.text("--out")?.map_or_else(|| target().join("package"), PathBuf::from);
    arguments.finish()?;
    need_program("dpkg-deb", "dpkg")?;
    if only_check {
        return check(&given.map_or_else(ours, Ok)?)?.conclude("package");
    }
    let program = if let Some(program) = given {
        program
    } else {
        console::build()?;
        let program = released()?;
        small_enough(program.path(), if any_size { u64::MAX } else { LARGEST })?;
        program
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    println!("{}", build(&program, &out, &[])?.display());
    Ok(())
}

fn small_enough(program: &Path, largest: u64) -> Result<()> {
    let size = fs::metadata(program).with_context(|| format!("cannot look at {}", program.display()))?.len();
    ensure!(
        size <= largest,
        "{} has {size} bytes, the limit is {largest}: find the cause of its growth, or package it with --any-size",
        program.display()
    );
    Ok(())
}

/// Builds the package and inspects it, as an administrator would before installing it.
pub fn check(program: &Executable) -> Result<Tally> {
    need_program("dpkg-deb", "dpkg")?;
    let mut cases = Cases::new("package");
    let scratch = tempfile::tempdir()?;
    let package = cases.check("a package is built", || build(program, scratch.path(), &FAST));
    let Some(package) = package else { return Ok(cases.tally()) };
    let contents = output_of(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    for wanted in ["./usr/bin/allot", "./usr/share/man/man1/allot-serve.1.gz"]
        .into_iter()
        .map(str::to_owned)
        .chain(FILES.iter().chain(&COMPLETIONS).map(|(_, place)| format!("./{place}")))
    {
        cases.check(&format!("it has {wanted}"), || {
            let has = contents.lines().any(|line| line.split_whitespace().nth(5) == Some(wanted.as_str()));
            ensure!(has, "{contents}");
            Ok(())
        });
    }
    cases.check("all its files belong to root", || {
        let other = contents.lines().find(|line| line.split_whitespace().nth(1) != Some("root/root"));
        ensure!(other.is_none(), "{other:?}");
        Ok(())
    });
    cases.check("a program that is too large gets no package", || {
        ensure!(small_enough(program.path(), 1).is_err() && small_enough(program.path(), u64::MAX).is_ok());
        Ok(())
    });
    let tree = scratch.path().join("unpacked");
    must_run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&tree))?;
    cases.check("links of its pages lead to pages that are in it", || {
        let dead = dead_links(&tree)?;
        ensure!(dead.is_empty(), "{dead:?}");
        Ok(())
    });
    cases.check("its links are Ganeti's programs", || {
        let asked = output_of(Command::new(tree.join(LINKS).join("hbal")).arg("--version"))?;
        ensure!(asked.starts_with("hbal "), "{asked}");
        Ok(())
    });
    cases.check("its configuration is one, but for the database's place", || {
        let config = tree.join("etc/allot/allot.toml");
        let mut serve = Command::new(tree.join("usr/bin/allot"));
        serve.args(["serve", "--database", "sqlite:///nowhere/allot.db", "--config"]).arg(config);
        let error =
            output_of(&mut serve).map(drop).err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(error.contains("/nowhere/allot.db"), "{error}");
        Ok(())
    });
    Ok(cases.tally())
}

/// Builds the package with additional options of `dpkg-deb`, and returns its path.
fn build(program: &Executable, out: &Path, options: &[&str]) -> Result<PathBuf> {
    let scratch = tempfile::tempdir()?;
    let tree = scratch.path().join("tree");
    let binary = tree.join("usr/bin/allot");
    place(&tree, "usr/bin/allot", &fs::read(program.path())?, 0o755)?;
    for (from, to) in FILES {
        let from = root().join(from);
        let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        place(&tree, to, &content, 0o644)?;
    }
    for page in pages()? {
        let content = fs::read(root().join(&page)).with_context(|| format!("cannot read {page}"))?;
        place(&tree, &format!("{PAGES}/{page}"), &content, 0o644)?;
    }
    for (shell, to) in COMPLETIONS {
        let text = output_of(Command::new(&binary).args(["completions", shell]))?;
        place(&tree, to, text.as_bytes(), 0o644)?;
    }
    manual(&binary, &tree)?;
    links(&binary, &tree)?;
    let architecture = output_of(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let maintainer = maintainer();
    changelog(&tree, &maintainer)?;
    control(&tree, architecture, &maintainer)?;
    let package = out.join(format!("allot_{}_{architecture}.deb", env!("CARGO_PKG_VERSION")));
    let mut packing = Command::new("dpkg-deb");
    packing.arg("--root-owner-group").args(options).arg("--build").arg(&tree).arg(&package);
    output_of(&mut packing)?;
    Ok(package)
}

/// Pages of documentation, as paths in the checkout.
fn pages() -> Result<Vec<String>> {
    let mut pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(str::to_owned)
        .to_vec();
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root().join(&directory))? {
            let entry = entry?;
            let page = format!("{directory}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() { directories.push(page) } else { pages.push(page) }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Broken links in pages for users.
fn dead_links(tree: &Path) -> Result<Vec<String>> {
    let mut dead = Vec::new();
    for page in pages()?.iter().filter(|page| page.starts_with("docs/") || *page == "README.md") {
        let place = tree.join(PAGES).join(page);
        if page.rsplit_once('.').is_none_or(|(_, ending)| ending != "md") {
            continue;
        }
        let text = fs::read_to_string(&place).with_context(|| format!("cannot read {}", place.display()))?;
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let files = links.filter_map(|link| link.split('#').next()).filter(|file| !file.is_empty());
        for file in files.filter(|file| !file.contains("://")) {
            if !place.parent().unwrap_or(tree).join(file).exists() {
                dead.push(format!("{page}: {file}"));
            }
        }
    }
    Ok(dead)
}

fn place(tree: &Path, to: &str, content: &[u8], mode: u32) -> Result<()> {
    let to = tree.join(to);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    write(&to, content)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot change {}", to.display()))
}

fn manual(binary: &Path, tree: &Path) -> Result<()> {
    let pages = tree.join("usr/share/man/man1");
    fs::create_dir_all(&pages)?;
    output_of(Command::new(binary).arg("man").arg(&pages))?;
    let files: Vec<PathBuf> =
        fs::read_dir(&pages)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    // Without names and timestamps, so that equal pages give equal packages.
    must_run(Command::new("gzip").args(["-9", "-n"]).args(files))
}

/// Takes the names from the binary, and points the links to its path after installation.
fn links(binary: &Path, tree: &Path) -> Result<()> {
    let directory = tree.join(LINKS);
    fs::create_dir_all(&directory)?;
    output_of(Command::new(binary).arg("install-links").arg(&directory))?;
    for entry in fs::read_dir(&directory)? {
        let link = entry?.path();
        fs::remove_file(&link)?;
        symlink("../../../bin/allot", &link)?;
    }
    Ok(())
}

/// Maintainer of the package, from the variables of Debian's tools.
fn maintainer() -> String {
    let told = |name: &str, otherwise: &str| env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    format!(
        "{} <{}>",
        told("DEBFULLNAME", "Allotment, built locally"),
        told("DEBEMAIL", "nobody@example.org")
    )
}

/// Writes a changelog in Debian's format, dated by the last commit, so that equal pages give equal packages.
fn changelog(tree: &Path, maintainer: &str) -> Result<()> {
    let date = output_of(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%cD"]))?;
    let changes = format!(
        "allot ({}) unstable; urgency=medium\n\n  * What is new is in {PAGES}/CHANGELOG.md.\n\n -- {maintainer}  {}\n",
        env!("CARGO_PKG_VERSION"),
        date.trim(),
    );
    let to = format!("{PAGES}/changelog");
    place(tree, &to, changes.as_bytes(), 0o644)?;
    must_run(Command::new("gzip").args(["-9", "-n"]).arg(tree.join(to)))
}

fn control(tree: &Path, architecture: &str, maintainer: &str) -> Result<()> {
    // The version of the building machine: an older libc can lack symbols.
    let libc = output_of(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let libc =
        libc.split_whitespace().last().context("getconf does not know the version of libc")?.to_owned();
    let size = output_of(Command::new("du").args(["-sk", "--apparent-size"]).arg(tree))?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let control = format!(
        "Package: allot\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {maintainer}\n\
         Installed-Size: {size}\n\
         Depends: libc6 (>= {libc}), libgcc-s1\n\
         Recommends: ca-certificates\n\
         Section: admin\n\
         Priority: optional\n\
         Description: placement of virtual machines and leasing of hosts\n \
         The placement tools of Ganeti, implemented independently, and a leasing service\n \
         with the reservation API of OpenStack's Blazar. The tools are under their own\n \
         names in /usr/lib/allot/ganeti, so they can be installed together with Ganeti.\n"
    );
    place(tree, "DEBIAN/control", control.as_bytes(), 0o644)?;
    place(tree, "DEBIAN/conffiles", b"/etc/allot/allot.toml\n", 0o644)?;
    place(tree, "DEBIAN/postinst", POSTINST.as_bytes(), 0o755)?;
    place(tree, "DEBIAN/prerm", PRERM.as_bytes(), 0o755)
}
