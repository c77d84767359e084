//! Finding the keys of an object again, for the text about one that is missing.
//!
//! Records do not remember the keys that they skip; a message that is wrong is read a second time instead.

use super::complaint::Complaint;
use super::cursor::{Cursor, Syntax};

/// One step from a value to one that it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The value of the first key of that name.
    Key(&'static str),
    /// The value at a position in an object or a list.
    At(usize),
}

/// Completes the lists of keys in a complaint about the value at `path`.
pub(crate) fn complete(complaint: &mut Complaint, text: &str, path: &mut Vec<Step>) {
    match complaint {
        Complaint::Missing { present, .. } => {
            // The text was read before, so it is well-formed.
            let _ = keys_at(&mut Cursor::new(text), path, present);
        }
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

/// Collects the keys of the object at `path`, in their order; none if there is no such object.
fn keys_at(cursor: &mut Cursor<'_>, path: &[Step], found: &mut Vec<String>) -> Result<(), Syntax> {
    let kind = cursor.peek()?;
    let mut position = 0;
    match path.split_first() {
        None if kind == b'{' => cursor.object(|cursor, key| {
            found.push(key.into_owned());
            cursor.skip()
        }),
        Some((step, rest)) if kind == b'{' => {
            let mut done = false;
            cursor.object(|cursor, key| {
                let here = match step {
                    Step::Key(name) => key == *name && !done,
                    Step::At(index) => position == *index,
                };
                position += 1;
                done |= here;
                if here { keys_at(cursor, rest, found) } else { cursor.skip() }
            })
        }
        Some((Step::At(index), rest)) if kind == b'[' => cursor.list(|cursor| {
            let here = position == *index;
            position += 1;
            if here { keys_at(cursor, rest, found) } else { cursor.skip() }
        }),
        _ => cursor.skip(),
    }
}
