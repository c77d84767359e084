//! `allot user`: manages users in the file that `allot serve --auth basic:FILE` reads.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use ambient::{Clock, Ids, PartialFile, RandomIds, SystemClock};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::io::{FAILURE, Io, SUCCESS};
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use server::UsersFile;

use crate::client::Format;
use crate::client::table::{Style, Table, prose, word};
use crate::screen::screen;
use crate::{secret, shown};

/// Characters of generated passwords, which can't be mistaken for each other.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
/// A password has 94 random bits: five per character, minus the six fixed bits of a UUID.
const GENERATED_LENGTH: u32 = 20;

#[derive(Debug, Parser)]
#[command(
    name = "user",
    bin_name = "allot user",
    about = "Manage users with passwords",
    disable_help_subcommand = true
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Debug)]
struct FileArgument {
    /// File of users (TOML), as in the setting auth = "basic:FILE"
    #[arg(long, value_name = "FILE", default_value = "/etc/allot/users.toml")]
    file: PathBuf,
}

/// Meaning of the roles in the default policy.
const ROLES: &str = "Roles: a reader sees leases of the project, a member (or manager) also creates and
changes them, and an admin can do everything, also in other projects.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a user; the password is typed, read from a pipe, or generated
    #[command(after_help = ROLES)]
    Add(Add),
    /// List users with their roles in projects
    List(FileArgument),
    /// Replace a user's projects and roles
    #[command(after_help = ROLES)]
    Roles(Roles),
    /// Reject a user's logins and tokens; the entry stays
    Disable(One),
    /// Accept a disabled user's logins again
    Enable(One),
    /// Set a user's password: typed, read from a pipe, or generated
    Passwd(Passwd),
}

#[derive(Args, Debug)]
struct Projects {
    /// Projects and the user's roles in them; `member` if none is given. The first project is the default
    #[arg(required = true, value_name = "PROJECT[=ROLE,...]", value_parser = project)]
    projects: Vec<(String, Vec<String>)>,
}

#[derive(Args, Debug)]
struct Roles {
    /// Name of the user
    name: String,
    #[command(flatten)]
    projects: Projects,
    #[command(flatten)]
    file: FileArgument,
}

#[derive(Args, Debug)]
struct Add {
    /// Name to log in with
    name: String,
    #[command(flatten)]
    projects: Projects,
    /// Generate a password, and print it
    #[arg(long)]
    generate: bool,
    #[command(flatten)]
    file: FileArgument,
}

#[derive(Args, Debug)]
struct One {
    /// Name of the user
    name: String,
    #[command(flatten)]
    file: FileArgument,
}

#[derive(Args, Debug)]
struct Passwd {
    /// Name of the user
    name: String,
    /// Generate a password, and print it
    #[arg(long)]
    generate: bool,
    #[command(flatten)]
    file: FileArgument,
}

fn project(text: &str) -> Result<(String, Vec<String>), String> {
    let (project, roles) = text.split_once('=').unwrap_or((text, "member"));
    let roles: Vec<String> = roles.split(',').map(str::to_owned).collect();
    if project.is_empty() || roles.iter().any(String::is_empty) {
        return Err("expected PROJECT or PROJECT=ROLE,...".to_owned());
    }
    Ok((project.to_owned(), roles))
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    Line::command()
}

/// Runs a user command, named by the first argument. Returns the exit status, or an error in the command
/// line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let matches = screen(command(), "user").try_get_matches_from(arguments)?;
    let Line { command } = Line::from_arg_matches(&matches)?;
    let done = match command {
        Command::Add(arguments) => add(&arguments, io),
        Command::List(FileArgument { file }) => list(&file, io),
        Command::Roles(Roles { name, projects, file }) => edit(&name, &file.file, io, |users, _| {
            let users = users.set_projects(&name, &projects.projects)?;
            Ok(Edit { users, done: format!("Changed the roles of user {name}"), generated: None })
        }),
        Command::Disable(One { name, file }) => edit(&name, &file.file, io, |users, _| {
            let users = users.set_disabled(&name, true)?;
            Ok(Edit { users, done: format!("Disabled user {name}"), generated: None })
        }),
        Command::Enable(One { name, file }) => edit(&name, &file.file, io, |users, _| {
            let users = users.set_disabled(&name, false)?;
            Ok(Edit { users, done: format!("Enabled user {name}"), generated: None })
        }),
        Command::Passwd(arguments) => passwd(&arguments, io),
    };
    Ok(match done {
        Ok(()) => SUCCESS,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {}", shown::message(&error.to_string()));
            FAILURE
        }
    })
}

type Failure = Box<dyn std::error::Error>;

/// A changed file, not yet written.
struct Edit {
    users: UsersFile,
    /// Description of the change, as "Added user ann".
    done: String,
    /// Printed once the file is written.
    generated: Option<SecretString>,
}

fn add(arguments: &Add, io: &mut Io<'_>) -> Result<(), Failure> {
    let Add { name, projects, generate, file } = arguments;
    edit(name, &file.file, io, |users, io| {
        users.check_new(name)?;
        let (hash, generated) = new_password(name, *generate, io)?;
        Ok(Edit {
            users: users.add(name, &hash, &projects.projects)?,
            done: format!("Added user {name}"),
            generated,
        })
    })
}

fn passwd(arguments: &Passwd, io: &mut Io<'_>) -> Result<(), Failure> {
    let Passwd { name, generate, file } = arguments;
    edit(name, &file.file, io, |users, io| {
        users.check_known(name)?;
        let (hash, generated) = new_password(name, *generate, io)?;
        let done = format!("Changed the password of user {name}");
        Ok(Edit { users: users.set_password(name, &hash)?, done, generated })
    })
}

/// Hash of a new password, and the password itself if it was generated.
fn new_password(
    name: &str,
    generate: bool,
    io: &mut Io<'_>,
) -> Result<(String, Option<SecretString>), Failure> {
    if generate {
        let password = generated(&RandomIds);
        return Ok((server::hash_password(&password, &RandomIds)?, Some(password)));
    }
    let password = secret::read(&format!("New password of {}", shown::message(name)), true, io)?;
    if password.expose_secret().is_empty() {
        return Err("the password is empty: type one, write one to standard input, or use --generate".into());
    }
    Ok((server::hash_password(&password, &RandomIds)?, None))
}

fn generated(ids: &dyn Ids) -> SecretString {
    let bits = ids.uuid();
    let letter = |place: u32| {
        let five = usize::try_from(bits >> (5 * place) & 31).unwrap_or_default();
        char::from(ALPHABET[five])
    };
    SecretString::from((0..GENERATED_LENGTH).map(letter).collect::<String>())
}

/// Changes the file and reports the change.
fn edit(
    name: &str,
    path: &Path,
    io: &mut Io<'_>,
    change: impl FnOnce(&UsersFile, &mut Io<'_>) -> Result<Edit, Failure>,
) -> Result<(), Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
    };
    let is_new = text.is_none();
    let before = UsersFile::parse(path, text.clone().unwrap_or_default())?;
    let Edit { users, done, generated } = change(&before, io)?;
    // Another command can change the file while a password is typed.
    if fs::read_to_string(path).ok() != text {
        return Err(
            format!("{} was changed by another process; run the command again", path.display()).into()
        );
    }
    write(path, users.text()).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    if let Some(password) = generated {
        writeln!(io.out, "{}", password.expose_secret())?;
    }
    let path = path.display();
    let mut notes =
        vec![format!("{done} in {path}. Services read it again on SIGHUP: systemctl reload allot")];
    if is_new {
        notes.push(format!(
            "Only you can read the new file. Let the service read it: chown root:allot {path} && chmod 640 {path}"
        ));
    }
    notes.extend(users.warnings(name).iter().map(|warning| format!("Warning: {warning}")));
    for note in notes {
        writeln!(io.err, "{}", shown::message(&note))?;
    }
    Ok(())
}

/// Replaces the file, or the target of a link. Its owner and mode stay the same. A new file is private.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let (place, before) = match fs::canonicalize(path) {
        Ok(place) => (place.clone(), Some(fs::metadata(&place)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    let mut file = PartialFile::beside(&place)?;
    file.write_all(text.as_bytes())?;
    if let Some(before) = before {
        chown(file.path(), Some(before.uid()), Some(before.gid())).map_err(|error| {
            io::Error::other(format!("cannot keep its owner and group, run this as root: {error}"))
        })?;
        fs::set_permissions(file.path(), Permissions::from_mode(before.mode() & 0o7777))?;
    }
    file.replace()
}

fn list(path: &Path, io: &mut Io<'_>) -> Result<(), Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let users = UsersFile::parse(path, text)?;
    let mut table =
        Table::new([word("NAME").key(), prose("PROJECTS"), word("DISABLED")]).or("There are no users.");
    for (name, projects, disabled) in users.users() {
        let projects: Vec<String> =
            projects.iter().map(|(project, roles)| format!("{project}={}", roles.join(","))).collect();
        table.add_row([
            name.to_owned(),
            projects.join(" "),
            String::from(if disabled { "yes" } else { "no" }),
        ]);
    }
    let style = Style::of_output(Format::Table, None, false);
    let rendered = table.render(&style, &TimeZone::UTC, SystemClock.now())?;
    if !rendered.text.is_empty() {
        writeln!(io.out, "{}", shown::message(&rendered.text))?;
    }
    for note in rendered.notes {
        writeln!(io.err, "{}", shown::message(&note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ambient::SeededIds;

    use super::*;

    #[test]
    fn a_project_is_given_with_roles_or_with_the_usual_one() {
        let parsed = |text: &str| project(text).map(|(project, roles)| format!("{project} {roles:?}"));
        assert_eq!(parsed("robots"), Ok("robots [\"member\"]".to_owned()));
        assert_eq!(parsed("ops=admin,reader"), Ok("ops [\"admin\", \"reader\"]".to_owned()));
        assert!(["", "=admin", "ops=", "ops=a,,b"].into_iter().all(|text| parsed(text).is_err()));
    }

    #[test]
    fn generated_passwords_are_long_and_different() {
        let ids = SeededIds::new(1);
        let passwords = [generated(&ids), generated(&ids)];
        let [first, second] = passwords.each_ref().map(ExposeSecret::expose_secret);
        assert!(first.len() == 20 && second.len() == 20 && first != second, "{first} {second}");
    }
}
