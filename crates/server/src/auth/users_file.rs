//! Edits of a users' file. They keep comments, order and everything else, and each result has passed the
//! parser that the service uses.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{AuthFileError, is_yaml};
use super::users::{User, Users};

/// A failed edit, which leaves the file unchanged.
#[derive(Debug, Error)]
pub enum UsersFileError {
    /// The result isn't a valid users' file.
    #[error(transparent)]
    File(#[from] AuthFileError),
    #[error("{0} is YAML, and only TOML files can be edited by this command: change it by hand")]
    Yaml(PathBuf),
    /// Invalid name of a user, project or role.
    #[error("invalid name {0:?}: it must not be empty or contain colons or control characters")]
    Name(String),
    #[error("there is no user {0:?} in {1}")]
    Unknown(String, PathBuf),
    #[error("user {0:?} already exists")]
    Exists(String),
    /// The user's entry, or the list, has a form that can't be edited.
    #[error("cannot edit the entry of user {0:?} in {1}: change it by hand")]
    ByHand(String, PathBuf),
}

/// A users' file.
#[derive(Clone, Debug)]
pub struct UsersFile {
    path: PathBuf,
    text: String,
    users: Users,
}

impl UsersFile {
    /// Parses the content of the file at `path`. An empty TOML document has no users.
    pub fn parse(path: &Path, text: String) -> Result<Self, AuthFileError> {
        let is_empty =
            !is_yaml(path) && DeTable::parse(&text).is_ok_and(|document| document.get_ref().is_empty());
        let users = if is_empty { Users::default() } else { Users::parse(path, &text)? };
        Ok(Self { path: path.to_owned(), text, users })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Name, roles by project, and whether the user is disabled, in file order.
    pub fn users(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, Vec<String>>, bool)> {
        self.users.all().iter().map(|user| (user.name.as_str(), &user.projects, user.disabled))
    }

    /// Warnings about a user, with its line. Rules of a policy file aren't known here.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let Ok(position) = self.position(name) else { return Vec::new() };
        let warnings = self.users.warnings().iter().filter(|warning| warning.position == position);
        warnings.filter_map(|warning| warning.text(&|_| false)).collect()
    }

    /// Fails if the file has no user of this name.
    pub fn check_known(&self, name: &str) -> Result<(), UsersFileError> {
        self.position(name).map(drop)
    }

    /// Fails if the name is invalid or taken.
    pub fn check_new(&self, name: &str) -> Result<(), UsersFileError> {
        if self.position(name).is_ok() {
            return Err(UsersFileError::Exists(name.to_owned()));
        }
        check_name(name)
    }

    /// Appends a user. If there are several projects, the first becomes the default.
    pub fn add(
        &self,
        name: &str,
        password_hash: &str,
        projects: &[(String, Vec<String>)],
    ) -> Result<Self, UsersFileError> {
        self.check_new(name)?;
        check_projects(projects)?;
        let default_project = projects.first().filter(|_| projects.len() > 1).map(|(project, _)| project);
        let user = User {
            name: name.to_owned(),
            id: None,
            password_hash: password_hash.to_owned(),
            projects: projects.iter().cloned().collect(),
            default_project: default_project.cloned(),
            disabled: false,
        };
        let mut text = self.text.clone();
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        text.push_str(&entry(&user));
        let expected: Vec<User> = self.users.all().iter().cloned().chain([user]).collect();
        self.edited(name, text, &expected)
    }

    pub fn set_password(&self, name: &str, password_hash: &str) -> Result<Self, UsersFileError> {
        self.change(
            name,
            |user| password_hash.clone_into(&mut user.password_hash),
            |text, entry| {
                let place = entry.get_ref().get("password_hash")?.span();
                Some(replaced(text, place, &quoted(password_hash)))
            },
        )
    }

    /// Replaces a user's projects and roles. If there are several projects, the first becomes the default.
    pub fn set_projects(
        &self,
        name: &str,
        projects: &[(String, Vec<String>)],
    ) -> Result<Self, UsersFileError> {
        check_projects(projects)?;
        let Some((first, _)) = projects.first() else { return Err(UsersFileError::Name(String::new())) };
        let several = projects.len() > 1;
        self.change(
            name,
            |user| {
                user.projects = projects.iter().cloned().collect();
                if several || user.default_project.is_some() {
                    user.default_project = Some(first.clone());
                }
            },
            |text, entry| {
                let place = entry.get_ref().get("projects")?.span();
                // Not a table with its own heading.
                if !text.get(place.clone())?.starts_with('{') {
                    return None;
                }
                let projects = table(&projects.iter().cloned().collect());
                let Some(default) = entry.get_ref().get("default_project") else {
                    let is_inline = text.get(entry.span().start..)?.starts_with('{');
                    let separator = if is_inline { ", " } else { "\n" };
                    let default = format!("{separator}default_project = {}", quoted(first));
                    let by = if several { projects + &default } else { projects };
                    return Some(replaced(text, place, &by));
                };
                let mut edits = [(place, projects), (default.span(), quoted(first))];
                // The first edit must not move the place of the second.
                edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
                Some(edits.into_iter().fold(text.to_owned(), |text, (place, by)| replaced(&text, place, &by)))
            },
        )
    }

    /// Disables or enables a user.
    pub fn set_disabled(&self, name: &str, disabled: bool) -> Result<Self, UsersFileError> {
        self.change(
            name,
            |user| user.disabled = disabled,
            |text, entry| {
                if let Some(present) = entry.get_ref().get("disabled") {
                    return Some(replaced(text, present.span(), &disabled.to_string()));
                }
                if !disabled {
                    return Some(text.to_owned());
                }
                let hash = entry.get_ref().get("password_hash")?.span();
                if text.get(entry.span().start..)?.starts_with('{') {
                    return Some(replaced(text, hash.end..hash.end, ", disabled = true"));
                }
                let line = text.get(..hash.start)?.rfind('\n').map_or(0, |end| end + 1);
                let indent: String =
                    text.get(line..)?.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
                let end = text.get(hash.end..)?.find('\n').map_or(text.len(), |rest| hash.end + rest);
                Some(replaced(text, end..end, &format!("\n{indent}disabled = true")))
            },
        )
    }

    /// Changes a user's entry: `edit` changes the text, or returns `None` if it can't, and `apply` makes the
    /// same change to the parsed user.
    fn change(
        &self,
        name: &str,
        apply: impl FnOnce(&mut User),
        edit: impl FnOnce(&str, &Spanned<DeValue<'_>>) -> Option<String>,
    ) -> Result<Self, UsersFileError> {
        let position = self.position(name)?;
        let document = DeTable::parse(&self.text).ok();
        let entry =
            document.as_ref().and_then(|document| document.get_ref().get("users")?.get_ref().get(position));
        let text = entry.and_then(|entry| edit(&self.text, entry)).ok_or_else(|| self.by_hand(name))?;
        let mut expected = self.users.all().to_vec();
        apply(&mut expected[position]);
        self.edited(name, text, &expected)
    }

    /// Replaces the text, if it parses to the expected users.
    fn edited(&self, name: &str, text: String, expected: &[User]) -> Result<Self, UsersFileError> {
        match Self::parse(&self.path, text) {
            Ok(edited) if edited.users.all() == expected => Ok(edited),
            Ok(_) | Err(AuthFileError::Form { .. }) => Err(self.by_hand(name)),
            Err(error) => Err(error.into()),
        }
    }

    fn position(&self, name: &str) -> Result<usize, UsersFileError> {
        let found = self.users.all().iter().position(|user| user.name == name);
        found.ok_or_else(|| UsersFileError::Unknown(name.to_owned(), self.path.clone()))
    }

    /// The error for an edit that is impossible. All edits of YAML are: read as TOML it has no entries, and with an entry of TOML
    /// at its end it isn't YAML.
    fn by_hand(&self, name: &str) -> UsersFileError {
        if is_yaml(&self.path) {
            return UsersFileError::Yaml(self.path.clone());
        }
        UsersFileError::ByHand(name.to_owned(), self.path.clone())
    }
}

fn check_name(name: &str) -> Result<(), UsersFileError> {
    // HTTP basic authentication separates name and password by a colon.
    if name.is_empty() || name.contains(|c: char| c == ':' || c.is_control()) {
        return Err(UsersFileError::Name(name.to_owned()));
    }
    Ok(())
}

fn check_projects(projects: &[(String, Vec<String>)]) -> Result<(), UsersFileError> {
    projects
        .iter()
        .flat_map(|(project, roles)| roles.iter().chain([project]))
        .try_for_each(|text| check_name(text))
}

/// Roles by project as an inline table.
fn table(projects: &BTreeMap<String, Vec<String>>) -> String {
    let project = |(name, roles): (&String, &Vec<String>)| {
        let roles: Vec<String> = roles.iter().map(|role| quoted(role)).collect();
        format!("{} = [{}]", key(name), roles.join(", "))
    };
    format!("{{ {} }}", projects.iter().map(project).collect::<Vec<_>>().join(", "))
}

fn entry(user: &User) -> String {
    let default = user.default_project.as_ref();
    format!(
        "[[users]]\nname = {}\npassword_hash = {}\nprojects = {}\n{}",
        quoted(&user.name),
        quoted(&user.password_hash),
        table(&user.projects),
        default.map(|project| format!("default_project = {}\n", quoted(project))).unwrap_or_default()
    )
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn key(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_bare { name.to_owned() } else { quoted(name) }
}

fn replaced(text: &str, place: Range<usize>, by: &str) -> String {
    let mut replaced = text.to_owned();
    replaced.replace_range(place, by);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ";
    const OTHER: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$b3RoZXJzYWx0b3RoZXJzYQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ";

    fn file(text: &str) -> UsersFile {
        UsersFile::parse(Path::new("users.toml"), text.replace("HASH", HASH)).expect("a file")
    }

    fn said(result: Result<UsersFile, UsersFileError>) -> Result<String, String> {
        let text = |file: UsersFile| file.text().replace(HASH, "HASH").replace(OTHER, "OTHER");
        result.map(text).map_err(|error| error.to_string())
    }

    const BLOCKS: &str = "# ours\n[[users]]\nname = \"b\" # first\n  password_hash = \"HASH\"   # of May\n\n\
                          [users.projects]\np = [\"member\"]\n\n[[users]]\nname = \"a\"\ndisabled = false\n\
                          password_hash = 'HASH'\nprojects = { p = [] }";
    const INLINE: &str =
        "users = [\n  { name = \"a\", password_hash = \"HASH\", projects = { p = [] } }, # a\n]\n";

    #[test]
    fn a_user_is_added_at_the_end() {
        let member = [("p".to_owned(), vec!["member".to_owned()])];
        let added = file("").add("ann", HASH, &member);
        let wanted = "[[users]]\nname = \"ann\"\npassword_hash = \"HASH\"\nprojects = { p = [\"member\"] }\n";
        assert_eq!(said(added), Ok(wanted.to_owned()));
        let several =
            [("the lab".to_owned(), vec!["admin".to_owned(), "x\"y".to_owned()]), member[0].clone()];
        let added = said(file(BLOCKS).add("b\"o", HASH, &several)).expect("added");
        assert!(added.starts_with(&format!("{BLOCKS}\n\n[[users]]\n")), "{added}");
        assert!(
            added.contains("\"the lab\" = [\"admin\", ") && added.contains("default_project = \"the lab\"\n")
        );
        for (name, error) in [("a", "already exists"), ("a:b", "invalid name"), ("", "invalid name")] {
            let refused = said(file(BLOCKS).add(name, HASH, &member)).expect_err(name);
            assert!(refused.contains(error), "{refused}");
        }
        let inline = said(file(INLINE).add("b", HASH, &member)).expect_err("a list in brackets");
        assert!(inline.contains("by hand"), "{inline}");
        let weak = said(file("").add("ann", "plain", &member)).expect_err("no hash");
        assert!(weak.contains("must be an argon2 hash"), "{weak}");
    }

    #[test]
    fn an_entry_is_edited_in_place() {
        let passwd = |text: &str, name: &str| said(file(text).set_password(name, OTHER));
        let new = "password_hash = \"OTHER\"";
        assert_eq!(passwd(BLOCKS, "b"), Ok(BLOCKS.replacen("password_hash = \"HASH\"", new, 1)));
        assert_eq!(passwd(BLOCKS, "a"), Ok(BLOCKS.replace("password_hash = 'HASH'", new)));
        assert_eq!(passwd(INLINE, "a"), Ok(INLINE.replace("HASH", "OTHER")));
        assert!(passwd(BLOCKS, "c").is_err_and(|error| error == "there is no user \"c\" in users.toml"));
        assert!(said(file(BLOCKS).set_password("a", "plain")).is_err());

        let disable = |text: &str, name: &str, disabled| said(file(text).set_disabled(name, disabled));
        let line = "# of May\n  disabled = true\n";
        assert_eq!(disable(BLOCKS, "b", true), Ok(BLOCKS.replace("# of May\n", line)));
        assert_eq!(disable(BLOCKS, "a", true), Ok(BLOCKS.replace("= false", "= true")));
        assert_eq!(disable(INLINE, "a", true), Ok(INLINE.replace("\"HASH\"", "\"HASH\", disabled = true")));
        for (text, name) in [(BLOCKS, "b"), (BLOCKS, "a"), (INLINE, "a")] {
            assert_eq!(disable(text, name, false), Ok(text.to_owned()));
            let twice = file(text).set_disabled(name, true).and_then(|file| file.set_disabled(name, false));
            assert!(twice.is_ok_and(|file| file.users().all(|(_, _, disabled)| !disabled)));
        }
    }

    #[test]
    fn projects_and_roles_are_replaced_in_place() {
        let set = |text: &str, name: &str, projects: &[(&str, &[&str])]| {
            let roles = |roles: &[&str]| roles.iter().map(ToString::to_string).collect::<Vec<_>>();
            let projects: Vec<_> =
                projects.iter().map(|(project, own)| ((*project).to_owned(), roles(own))).collect();
            said(file(text).set_projects(name, &projects))
        };
        let one: &[(&str, &[&str])] = &[("q", &["admin", "reader"])];
        let two: &[(&str, &[&str])] = &[("q", &["admin"]), ("p", &["member"])];
        let single = "{ q = [\"admin\", \"reader\"] }";
        let several = "{ p = [\"member\"], q = [\"admin\"] }";
        let default = "default_project = \"q\"";
        assert_eq!(set(BLOCKS, "a", one), Ok(BLOCKS.replace("{ p = [] }", single)));
        assert_eq!(set(BLOCKS, "a", two), Ok(BLOCKS.replace("{ p = [] }", &format!("{several}\n{default}"))));
        assert_eq!(set(INLINE, "a", two), Ok(INLINE.replace("{ p = [] }", &format!("{several}, {default}"))));
        for order in [
            "default_project = \"p\"\nprojects = { p = [] }\n",
            "projects = { p = [] }\ndefault_project = \"p\"\n",
        ] {
            let text = format!("[[users]]\nname = \"a\"\npassword_hash = \"HASH\"\n{order}");
            let wanted = text.replace("{ p = [] }", single).replace("default_project = \"p\"", default);
            assert_eq!(set(&text, "a", one), Ok(wanted));
        }
        let nameless: &[(&str, &[&str])] = &[("", &["member"])];
        for (name, projects, error) in [
            ("b", one, "by hand"),
            ("c", one, "there is no user"),
            ("a", nameless, "invalid name"),
            ("a", &nameless[..0], "invalid name"),
        ] {
            let refused = set(BLOCKS, name, projects).expect_err(name);
            assert!(refused.contains(error), "{refused}");
        }
    }

    #[test]
    fn warnings_are_about_one_user() {
        let roles = BLOCKS.replace("[\"member\"]", "[\"membre\"]");
        let (of_a, of_b) = (file(&roles).warnings("a"), file(&roles).warnings("b"));
        assert!(of_a.is_empty(), "{of_a:?}");
        assert!(of_b.len() == 1 && of_b[0].contains("line 2: user b: unknown role membre"), "{of_b:?}");
    }

    #[test]
    fn yaml_is_read_and_not_edited() {
        let text = format!("users:\n- name: a\n  password_hash: {HASH}\n  projects: {{p: [member]}}\n");
        let file = UsersFile::parse(Path::new("users.yaml"), text).expect("a file");
        assert_eq!(file.users().map(|(name, ..)| name).collect::<Vec<_>>(), ["a"]);
        for edited in [file.set_disabled("a", true), file.set_password("a", OTHER), file.add("b", HASH, &[])]
        {
            assert!(edited.is_err_and(|error| error.to_string().contains("is YAML")));
        }
    }
}
