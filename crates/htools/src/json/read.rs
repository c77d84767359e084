//! Reading JSON into records without stopping at the first error.
//!
//! A value of the wrong type is stored as a complaint until it's used: many values never are, and the
//! programs' texts name keys, not positions in the file. Strings are borrowed from the input, unknown keys
//! are skipped, and the first of duplicate keys wins.

use std::borrow::Cow;

use super::complaint::{Complaint, Flaw};
use super::cursor::{Cursor, Number, Syntax};
use crate::data::{bounded, bounded_float};

/// A value, or the complaint about it.
pub(crate) type Read<T> = Result<T, Complaint>;

/// The value of a key, as far as it was read.
#[derive(Debug, Default)]
pub(crate) enum Slot<T> {
    #[default]
    Absent,
    Null,
    /// The value has the wrong type. Boxed, because complaints are rare and large.
    Bad(Box<Complaint>),
    Is(T),
}

impl<T> Slot<T> {
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Takes the value of a required key.
    pub(crate) fn required<'t>(&mut self, key: &'static str) -> Result<T, Flaw>
    where
        T: Json<'t>,
    {
        match std::mem::take(self) {
            Self::Is(value) => Ok(value),
            Self::Absent => Err(Complaint::missing(key).into()),
            Self::Null => Err(Complaint::field(key, T::unfit()).into()),
            Self::Bad(complaint) => Err(Complaint::field(key, *complaint).into()),
        }
    }

    /// Takes the value of a key that can be missing or null.
    pub(crate) fn optional(&mut self, key: &'static str) -> Result<Option<T>, Flaw> {
        match std::mem::take(self) {
            Self::Is(value) => Ok(Some(value)),
            Self::Absent | Self::Null => Ok(None),
            Self::Bad(complaint) => Err(Complaint::field(key, *complaint).into()),
        }
    }

    /// Takes the value and ignores any error.
    pub(crate) fn lenient(&mut self) -> Option<T> {
        if let Self::Is(value) = std::mem::take(self) { Some(value) } else { None }
    }

    /// The complaint about an element of a list or dictionary that has no valid value.
    pub(crate) fn complaint<'t>(&mut self) -> Complaint
    where
        T: Json<'t>,
    {
        self.element().err().unwrap_or_else(T::unfit)
    }

    /// Takes the value of a list element.
    pub(crate) fn element<'t>(&mut self) -> Read<T>
    where
        T: Json<'t>,
    {
        match std::mem::take(self) {
            Self::Is(value) => Ok(value),
            Self::Absent | Self::Null => Err(T::unfit()),
            Self::Bad(complaint) => Err(*complaint),
        }
    }
}

impl<T> From<Read<T>> for Slot<T> {
    fn from(read: Read<T>) -> Self {
        read.map_or_else(|complaint| Self::Bad(Box::new(complaint)), Self::Is)
    }
}

/// A type that can be read from JSON. Its methods reject all JSON types by default.
pub(crate) trait Json<'t>: Sized {
    /// Complaint about a value of an unsupported JSON type.
    fn unfit() -> Complaint;

    fn from_bool(_: bool) -> Read<Self> {
        Err(Self::unfit())
    }

    fn from_number(_: f64) -> Read<Self> {
        Err(Self::unfit())
    }

    fn from_int(value: i64) -> Read<Self> {
        Self::from_number(value as f64)
    }

    fn from_text(_: Cow<'t, str>) -> Read<Self> {
        Err(Self::unfit())
    }

    /// Reads the list at the cursor.
    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        cursor.skip()?;
        Ok(Err(Self::unfit()))
    }

    /// Reads the object at the cursor.
    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        cursor.skip()?;
        Ok(Err(Self::unfit()))
    }

    /// Reads the value at the cursor into its final place, which avoids copies of large types.
    #[inline]
    fn read_into(slot: &mut Slot<Self>, cursor: &mut Cursor<'t>) -> Result<(), Syntax> {
        *slot = Slot::read(cursor)?;
        Ok(())
    }
}

impl<'t, T: Json<'t>> Slot<T> {
    /// Reads the value at the cursor.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'t>) -> Result<Self, Syntax> {
        let read = match cursor.peek()? {
            b'"' => T::from_text(cursor.string()?),
            b'{' => T::from_object(cursor)?,
            b'[' => T::from_list(cursor)?,
            b't' => {
                cursor.word("true")?;
                T::from_bool(true)
            }
            b'f' => {
                cursor.word("false")?;
                T::from_bool(false)
            }
            b'n' => {
                cursor.word("null")?;
                return Ok(Self::Null);
            }
            _ => match cursor.number()? {
                Number::Int(value) => T::from_int(value),
                Number::Float(value) => T::from_number(value),
            },
        };
        Ok(read.into())
    }
}

impl Json<'_> for i64 {
    fn unfit() -> Complaint {
        Complaint::Kind("Int")
    }

    fn from_int(value: i64) -> Read<Self> {
        Ok(bounded(value))
    }

    fn from_number(value: f64) -> Read<Self> {
        Self::from_int(value.round_ties_even() as i64)
    }
}

impl Json<'_> for f64 {
    fn unfit() -> Complaint {
        Complaint::Kind("Double")
    }

    fn from_number(value: f64) -> Read<Self> {
        Ok(bounded_float(value))
    }
}

impl Json<'_> for bool {
    fn unfit() -> Complaint {
        Complaint::Kind("Bool")
    }

    fn from_bool(value: bool) -> Read<Self> {
        Ok(value)
    }
}

impl Json<'_> for String {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_text(text: Cow<'_, str>) -> Read<Self> {
        Ok(text.into_owned())
    }
}

impl<'t> Json<'t> for Cow<'t, str> {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_text(text: Cow<'t, str>) -> Read<Self> {
        Ok(text)
    }
}

/// Passes the elements of a list to `take`. After the first invalid element, the rest is skipped.
pub(crate) fn each<'t, T: Json<'t>>(
    cursor: &mut Cursor<'t>,
    mut take: impl FnMut(T),
) -> Result<Read<()>, Syntax> {
    let mut index = 0;
    let mut read = Ok(());
    cursor.list(|cursor| {
        if read.is_err() {
            return cursor.skip();
        }
        let mut slot = Slot::<T>::Absent;
        T::read_into(&mut slot, cursor)?;
        match slot.element() {
            Ok(value) => take(value),
            Err(complaint) => read = Err(Complaint::Element { index, inner: Box::new(complaint) }),
        }
        index += 1;
        Ok(())
    })?;
    Ok(read)
}

impl<'t, T: Json<'t>> Json<'t> for Vec<T> {
    fn unfit() -> Complaint {
        Complaint::Kind("list")
    }

    fn from_list(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut values = Self::new();
        Ok(each(cursor, |value| values.push(value))?.map(|()| values))
    }
}

/// An object whose keys are names, in their order.
#[derive(Debug)]
pub(crate) struct Dict<'t, T>(pub(crate) Vec<(Cow<'t, str>, Slot<T>)>);

impl<'t, T: Json<'t>> Json<'t> for Dict<'t, T> {
    fn unfit() -> Complaint {
        Complaint::Kind("JSObject")
    }

    fn from_object(cursor: &mut Cursor<'t>) -> Result<Read<Self>, Syntax> {
        let mut entries = Vec::new();
        cursor.object(|cursor, name| {
            entries.push((name, Slot::Absent));
            entries.last_mut().map_or(Ok(()), |(_, slot)| T::read_into(slot, cursor))
        })?;
        Ok(Ok(Self(entries)))
    }
}

/// An object with known keys.
pub(crate) trait Record<'t>: Default {
    /// Reads the value of a known key. For an unknown key, reads nothing and returns false.
    fn accept(&mut self, name: &str, cursor: &mut Cursor<'t>) -> Result<bool, Syntax>;
}

/// Reads the value of a key into its slot. If the slot is already filled, skips the value.
#[inline]
pub(crate) fn fill<'t, T: Json<'t>>(slot: &mut Slot<T>, cursor: &mut Cursor<'t>) -> Result<(), Syntax> {
    if slot.is_absent() { T::read_into(slot, cursor) } else { cursor.skip() }
}

#[inline]
pub(crate) fn record<'t, R: Record<'t>>(cursor: &mut Cursor<'t>) -> Result<R, Syntax> {
    let mut record = R::default();
    fill_record(&mut record, cursor)?;
    Ok(record)
}

/// Reads an object into the empty slots of a record.
#[inline]
pub(crate) fn fill_record<'t, R: Record<'t>>(record: &mut R, cursor: &mut Cursor<'t>) -> Result<(), Syntax> {
    cursor.object(|cursor, name| if record.accept(&name, cursor)? { Ok(()) } else { cursor.skip() })
}

/// An object read as two records at once. A key known to both goes to the first.
#[derive(Default, Debug)]
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<'t, R: Record<'t>, S: Record<'t>> Record<'t> for Both<R, S> {
    fn accept(&mut self, name: &str, cursor: &mut Cursor<'t>) -> Result<bool, Syntax> {
        Ok(self.0.accept(name, cursor)? || self.1.accept(name, cursor)?)
    }
}

/// Declares a record: its type, the complaint about something else than an object, and its fields with their
/// keys.
macro_rules! json_record {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)?, $unfit:expr, {
        $($text:literal => $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Default, Debug)]
        pub(crate) struct $name $(<$life>)? {
            $(pub(crate) $field: $crate::json::Slot<$type>,)*
        }

        json_record!(@impls $name $(<$life>)?, $unfit, { $($text => $field,)* });
    };
    (@impls $name:ident<$life:lifetime>, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        json_record!(@bodies [$life] $name<$life>, $unfit, { $($text => $field,)* });
    };
    (@impls $name:ident, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        json_record!(@bodies ['t] $name, $unfit, { $($text => $field,)* });
    };
    (@bodies [$t:lifetime] $name:ty, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        impl<$t> $crate::json::Record<$t> for $name {
            #[inline]
            fn accept(
                &mut self,
                name: &str,
                cursor: &mut $crate::json::Cursor<$t>,
            ) -> Result<bool, $crate::json::Syntax> {
                match name {
                    $($text => $crate::json::fill(&mut self.$field, cursor)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl<$t> $crate::json::Json<$t> for $name {
            fn unfit() -> $crate::json::Complaint {
                $unfit
            }

            fn from_object(
                cursor: &mut $crate::json::Cursor<$t>,
            ) -> Result<$crate::json::Read<Self>, $crate::json::Syntax> {
                Ok(Ok($crate::json::record(cursor)?))
            }

            fn read_into(
                slot: &mut $crate::json::Slot<Self>,
                cursor: &mut $crate::json::Cursor<$t>,
            ) -> Result<(), $crate::json::Syntax> {
                use $crate::json::{Slot, fill_record};
                if cursor.peek()? != b'{' {
                    *slot = Slot::read(cursor)?;
                    return Ok(());
                }
                *slot = Slot::Is(Self::default());
                if let Slot::Is(record) = slot { fill_record(record, cursor) } else { Ok(()) }
            }
        }
    };
}
pub(crate) use json_record;

/// Converts a value that was already parsed as generic JSON. Complaints don't locate errors inside it.
pub(crate) fn from_value<T: for<'t> Json<'t>>(value: &serde_json::Value) -> Read<T> {
    // Output of serde_json is well-formed, but can be nested more deeply than this reader accepts.
    match Slot::<T>::read(&mut Cursor::new(&value.to_string())) {
        Ok(mut slot) => slot.element(),
        Err(_) => Err(T::unfit()),
    }
}

/// Reads a whole document, with or without a byte order mark.
pub(crate) fn document<'t, T: Json<'t>>(text: &'t str) -> Result<Slot<T>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut cursor = Cursor::new(text);
    let read = Slot::read(&mut cursor).and_then(|slot| cursor.end().map(|()| slot));
    read.map_err(|syntax| syntax.describe(text))
}
