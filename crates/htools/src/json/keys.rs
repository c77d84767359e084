//! Second reading of a document, to complete an error text: finds the keys of an object that lacks one, or
//! the value found instead of a list.
//!
//! Records don't store skipped values, so an invalid message is read twice instead.

use super::complaint::Complaint;
use super::cursor::{Cursor, Number, Syntax};

/// A step from a value into one of its members.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The value of a key, or the first value if the key is duplicated.
    Key(&'static str),
    /// The value at a position, from 0, in an object or list.
    At(usize),
}

/// Completes a complaint with the keys or the value found at `path`.
pub(crate) fn complete(complaint: &mut Complaint, text: &str, path: &mut Vec<Step>) {
    match complaint {
        Complaint::Missing { present, .. } => {
            // The text was read before, so it's well-formed.
            let _ = value_at(&mut Cursor::new(text), path, &mut |cursor| {
                if cursor.peek()? != b'{' {
                    return cursor.skip();
                }
                cursor.object(|cursor, key| {
                    present.push(key.into_owned());
                    cursor.skip()
                })
            });
        }
        Complaint::NotArray { found } => {
            let _ = value_at(&mut Cursor::new(text), path, &mut |cursor| {
                *found = printed(cursor)?;
                Ok(())
            });
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

/// Calls `read` on the value at `path`, if it exists.
fn value_at<'t>(
    cursor: &mut Cursor<'t>,
    path: &[Step],
    read: &mut dyn FnMut(&mut Cursor<'t>) -> Result<(), Syntax>,
) -> Result<(), Syntax> {
    let kind = cursor.peek()?;
    let mut position = 0;
    match path.split_first() {
        None => read(cursor),
        Some((step, rest)) if kind == b'{' => {
            let mut done = false;
            cursor.object(|cursor, key| {
                let here = match step {
                    Step::Key(name) => key == *name && !done,
                    Step::At(index) => position == *index,
                };
                position += 1;
                done |= here;
                if here { value_at(cursor, rest, read) } else { cursor.skip() }
            })
        }
        Some((Step::At(index), rest)) if kind == b'[' => cursor.list(|cursor| {
            let here = position == *index;
            position += 1;
            if here { value_at(cursor, rest, read) } else { cursor.skip() }
        }),
        _ => cursor.skip(),
    }
}

/// The value at the cursor as the reference prints it: numbers in canonical form, and spaces after commas and
/// colons.
fn printed(cursor: &mut Cursor<'_>) -> Result<String, Syntax> {
    let mut parts = Vec::new();
    Ok(match cursor.peek()? {
        b'{' => {
            cursor.object(|cursor, key| {
                parts.push(format!("{}: {}", quoted(&key), printed(cursor)?));
                Ok(())
            })?;
            format!("{{{}}}", parts.join(", "))
        }
        b'[' => {
            cursor.list(|cursor| {
                parts.push(printed(cursor)?);
                Ok(())
            })?;
            format!("[{}]", parts.join(", "))
        }
        b'"' => quoted(&cursor.string()?),
        b't' | b'f' | b'n' => {
            let word = ["true", "false", "null"].into_iter().find(|word| cursor.word(word).is_ok());
            word.unwrap_or_default().to_owned()
        }
        _ => match cursor.number()? {
            Number::Int(value) => value.to_string(),
            Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
                format!("{:.0}", value + 0.0)
            }
            Number::Float(value) => crate::number::show(value),
        },
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
