//! Operator settings that can differ by project, flavor and free pool: limits on the length of leases, and
//! prices.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// Kinds of scopes, by precedence: a value for an earlier kind wins over one for a later kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeKind {
    /// A project, by its identifier.
    Project,
    /// A flavor, by its identifier.
    Flavor,
    /// A free pool, by its name.
    Pool,
}

impl ScopeKind {
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Project, "project"), (Self::Flavor, "flavor"), (Self::Pool, "pool")];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// A project, flavor or free pool that a value is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    pub kind: ScopeKind,
    /// Its identifier or name.
    pub name: Arc<str>,
}

impl Scope {
    pub fn pool(name: &str) -> Self {
        Self { kind: ScopeKind::Pool, name: name.into() }
    }

    pub fn flavor(id: &str) -> Self {
        Self { kind: ScopeKind::Flavor, name: id.into() }
    }

    pub fn project(id: &str) -> Self {
        Self { kind: ScopeKind::Project, name: id.into() }
    }
}

/// The form used in settings: `pool:gpu`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.name)
    }
}

/// Error for text that isn't a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected project:ID, flavor:ID or pool:NAME")]
pub struct NotScope;

impl FromStr for Scope {
    type Err = NotScope;

    fn from_str(text: &str) -> Result<Self, NotScope> {
        let (kind, name) = text.split_once(':').ok_or(NotScope)?;
        let kind = ScopeKind::NAMES.iter().find(|(_, known)| *known == kind).ok_or(NotScope)?.0;
        if name.is_empty() { Err(NotScope) } else { Ok(Self { kind, name: name.into() }) }
    }
}

/// The project, flavor and free pool to look up a setting for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes<'a> {
    /// The project's identifier.
    pub project: Option<&'a str>,
    /// The flavor's identifier.
    pub flavor: Option<&'a str>,
    /// The free pool's name.
    pub pool: Option<&'a str>,
}

/// A general value, with specific values for some projects, flavors and free pools.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scoped<T> {
    /// Value if no scope matches.
    pub general: T,
    specific: BTreeMap<ScopeKind, BTreeMap<Arc<str>, T>>,
}

impl<T> From<T> for Scoped<T> {
    fn from(general: T) -> Self {
        Self { general, specific: BTreeMap::new() }
    }
}

impl<T> Scoped<T> {
    /// Sets the value for a scope and returns the previous one.
    pub fn insert(&mut self, scope: Scope, value: T) -> Option<T> {
        self.specific.entry(scope.kind).or_default().insert(scope.name, value)
    }

    /// Adds a value for a scope.
    #[must_use]
    pub fn with(mut self, scope: Scope, value: T) -> Self {
        self.insert(scope, value);
        self
    }

    /// Whether any value is specific to a scope of this kind.
    pub fn differs_by(&self, kind: ScopeKind) -> bool {
        self.specific.contains_key(&kind)
    }

    /// The most specific value for these scopes, and the scope that it belongs to. `None` means the general
    /// value.
    pub fn find(&self, scopes: Scopes<'_>) -> (&T, Option<Scope>) {
        let names = [
            (ScopeKind::Project, scopes.project),
            (ScopeKind::Flavor, scopes.flavor),
            (ScopeKind::Pool, scopes.pool),
        ];
        let found = names.into_iter().find_map(|(kind, name)| {
            let (name, value) = self.specific.get(&kind)?.get_key_value(name?)?;
            Some((value, Scope { kind, name: Arc::clone(name) }))
        });
        found.map_or((&self.general, None), |(value, scope)| (value, Some(scope)))
    }

    /// Specific values, in order of precedence.
    pub fn specific(&self) -> impl Iterator<Item = (Scope, &T)> {
        self.specific.iter().flat_map(|(&kind, values)| {
            values.iter().map(move |(name, value)| (Scope { kind, name: Arc::clone(name) }, value))
        })
    }

    /// The general and all specific values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.general).chain(self.specific.values().flat_map(BTreeMap::values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_for_a_project_precedes_one_for_a_flavor_a_pool_and_the_general_one() {
        let mut value = Scoped::from(0);
        let all = Scopes { project: Some("web"), flavor: Some("p3"), pool: Some("gpu") };
        assert_eq!(value.find(all), (&0, None));
        for (scope, number) in [(Scope::pool("gpu"), 1), (Scope::flavor("p3"), 2), (Scope::project("web"), 3)]
        {
            value.insert(scope.clone(), number);
            assert_eq!(value.find(all), (&number, Some(scope)));
        }
        assert_eq!(value.find(Scopes { project: Some("ci"), ..all }), (&2, Some(Scope::flavor("p3"))));
        assert_eq!(value.find(Scopes { project: None, flavor: None, ..all }), (&1, Some(Scope::pool("gpu"))));
        assert_eq!(value.find(Scopes { pool: Some("cpu"), ..Scopes::default() }), (&0, None));
        assert!(value.differs_by(ScopeKind::Flavor) && !Scoped::from(0).differs_by(ScopeKind::Flavor));
        assert_eq!(value.values().sum::<i32>(), 6);
    }

    #[test]
    fn scopes_are_written_with_their_kind() {
        let scope = Scope::pool("gpu: large");
        assert_eq!((scope.to_string().parse(), &*scope.to_string()), (Ok(scope.clone()), "pool:gpu: large"));
        for wrong in ["gpu", "pool:", "host:gpu", ""] {
            assert_eq!(wrong.parse::<Scope>(), Err(NotScope), "{wrong}");
        }
    }
}
