//! Finding the keys of an object again, for the text about one that is missing.
//!
//! Records do not remember the keys that they skip; a message that is wrong is read a second time instead.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::error::Complaint;
use super::json::Name;

/// One step from a value to one that it holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The value of the first key of that name.
    Key(&'static str),
    /// The value at a position in an object or a list.
    At(usize),
}

/// Completes the lists of keys in a complaint about the value at `path`.
pub(super) fn complete(complaint: &mut Complaint, text: &str, path: &mut Vec<Step>) {
    match complaint {
        Complaint::Missing { present, .. } => *present = keys_at(text, path),
        Complaint::Field { key, inner } | Complaint::PolicyField { key, inner } => {
            path.push(Step::Key(key));
            complete(inner, text, path);
        }
        Complaint::Element { index, inner } => {
            path.push(Step::At(*index));
            complete(inner, text, path);
        }
        _ => {}
    }
}

/// The keys of the object at `path`, in their order; none if there is no such object.
fn keys_at(text: &str, path: &[Step]) -> Vec<String> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Reading stops at the object, which leaves the rest of the text unread: always an error, and never one
    // that matters.
    let _ = KeysAt { path, found: &mut found }.deserialize(&mut deserializer);
    found
}

struct KeysAt<'p> {
    path: &'p [Step],
    found: &'p mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for KeysAt<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeysAt<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut position = 0;
        while let Some(Name(key)) = map.next_key()? {
            let Some((step, rest)) = self.path.split_first() else {
                map.next_value::<IgnoredAny>()?;
                self.found.push(key.into_owned());
                continue;
            };
            let wanted = match step {
                Step::Key(name) => key == *name,
                Step::At(index) => position == *index,
            };
            if wanted {
                return map.next_value_seed(KeysAt { path: rest, found: self.found });
            }
            map.next_value::<IgnoredAny>()?;
            position += 1;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Some((Step::At(index), rest)) = self.path.split_first() {
            for _ in 0..*index {
                seq.next_element::<IgnoredAny>()?;
            }
            seq.next_element_seed(KeysAt { path: rest, found: self.found })?;
        }
        Ok(())
    }
}
