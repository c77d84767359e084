//! Command lines of chores: options in any order, and an error for leftovers.

use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The arguments that haven't been taken yet.
#[derive(Debug)]
pub struct Arguments {
    left: Vec<String>,
}

impl Arguments {
    /// `words` are the arguments after the program's name.
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self { left: words.into_iter().collect() }
    }

    /// Whether a switch is given.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|word| word != name);
        self.left.len() < before
    }

    /// An option's value, as `--name value` or `--name=value`.
    pub fn text(&mut self, name: &str) -> Result<Option<String>> {
        let attached = format!("{name}=");
        let Some(at) = self.left.iter().position(|w| w == name || w.starts_with(&attached)) else {
            return Ok(None);
        };
        let word = self.left.remove(at);
        if let Some(value) = word.strip_prefix(&attached) {
            return Ok(Some(value.to_owned()));
        }
        if at == self.left.len() {
            bail!("{name} needs a value");
        }
        Ok(Some(self.left.remove(at)))
    }

    /// An option's value of some type, or the default.
    pub fn value<T: FromStr>(&mut self, name: &str, default: T) -> Result<T> {
        match self.text(name)? {
            None => Ok(default),
            Some(text) => text.parse().ok().with_context(|| format!("{name} cannot be '{text}'")),
        }
    }

    /// The next argument that is not an option.
    pub fn word(&mut self) -> Option<String> {
        let at = self.left.iter().position(|w| !w.starts_with('-'))?;
        Some(self.left.remove(at))
    }

    /// All remaining arguments, for the program that runs the chore.
    pub fn rest(self) -> Vec<String> {
        self.left
    }

    /// Fails if any argument is left.
    pub fn finish(self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(word) => bail!("'{word}' is not understood; see cargo xtask --help"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn takes_options_in_any_order() {
        let mut given = arguments("placement --seed=3 --quick --out x");
        assert!(given.switch("--quick"));
        assert_eq!(given.value("--seed", 0).unwrap(), 3);
        assert_eq!(given.text("--out").unwrap().as_deref(), Some("x"));
        assert_eq!(given.word().as_deref(), Some("placement"));
        given.finish().unwrap();
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(arguments("--nosuch").finish().is_err());
        assert!(arguments("--seed").text("--seed").is_err());
        assert!(arguments("--seed x").value("--seed", 0).is_err());
    }
}
