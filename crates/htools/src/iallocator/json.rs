//! Reading JSON into records without giving up at the first surprise.
//!
//! A value of the wrong type is kept as a complaint until it is needed: many are not, and the program's
//! texts speak of keys rather than of positions in the file. Strings are borrowed from the input, unknown
//! keys are skipped, and of a key that occurs twice the first occurrence counts.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::error::{Complaint, Flaw};

/// A value, or what is wrong with it.
pub(super) type Read<T> = Result<T, Complaint>;

/// What a key was found to hold.
#[derive(Debug)]
pub(super) enum Slot<T> {
    /// The key is missing.
    Absent,
    /// The key holds null.
    Null,
    /// The key holds something else than it should; boxed, since it is rare and large.
    Bad(Box<Complaint>),
    /// The value.
    Is(T),
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self::Absent
    }
}

impl<T> Slot<T> {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value of a key that must be there.
    pub(super) fn required<'de>(self, key: &'static str) -> Result<T, Flaw>
    where
        T: Json<'de>,
    {
        match self {
            Self::Is(value) => Ok(value),
            Self::Absent => Err(Complaint::missing(key).into()),
            Self::Null => Err(Complaint::field(key, T::unfit()).into()),
            Self::Bad(complaint) => Err(Complaint::field(key, *complaint).into()),
        }
    }

    /// The value of a key that may be missing, or null.
    pub(super) fn optional(self, key: &'static str) -> Result<Option<T>, Flaw> {
        match self {
            Self::Is(value) => Ok(Some(value)),
            Self::Absent | Self::Null => Ok(None),
            Self::Bad(complaint) => Err(Complaint::field(key, *complaint).into()),
        }
    }

    /// The value, whatever is wrong with it otherwise.
    pub(super) fn lenient(self) -> Option<T> {
        if let Self::Is(value) = self { Some(value) } else { None }
    }

    /// The value of a list's element.
    pub(super) fn element<'de>(self) -> Read<T>
    where
        T: Json<'de>,
    {
        match self {
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

/// A type that can be read; each JSON type that it does not take is complained about.
pub(super) trait Json<'de>: Sized {
    /// The complaint about a value of another JSON type.
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

    fn from_text(_: Cow<'de, str>) -> Read<Self> {
        Err(Self::unfit())
    }

    fn from_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Read<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Err(Self::unfit()))
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Read<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Err(Self::unfit()))
    }
}

struct SlotVisitor<T>(PhantomData<T>);

impl<'de, T: Json<'de>> Visitor<'de> for SlotVisitor<T> {
    type Value = Slot<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Slot<T>, E> {
        Ok(Slot::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Slot<T>, E> {
        Ok(T::from_bool(value).into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Slot<T>, E> {
        Ok(T::from_int(value).into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Slot<T>, E> {
        Ok(i64::try_from(value).map_or_else(|_| T::from_number(value as f64), T::from_int).into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Slot<T>, E> {
        Ok(T::from_number(value).into())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Slot<T>, E> {
        Ok(T::from_text(Cow::Borrowed(text)).into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Slot<T>, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Slot<T>, A::Error> {
        Ok(T::from_seq(seq)?.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Slot<T>, A::Error> {
        Ok(T::from_map(map)?.into())
    }
}

impl<'de, T: Json<'de>> Deserialize<'de> for Slot<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SlotVisitor(PhantomData))
    }
}

/// Sizes beyond this are taken to be this: 2^40 MiB are an exbibyte, and sums over all the instances of a
/// cluster still fit an `i64`.
const LARGEST: i64 = 1 << 40;

impl Json<'_> for i64 {
    fn unfit() -> Complaint {
        Complaint::Kind("Int")
    }

    fn from_int(value: i64) -> Read<Self> {
        Ok(value.clamp(-LARGEST, LARGEST))
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
        Ok(value.clamp(-(LARGEST as f64), LARGEST as f64))
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

impl<'de> Json<'de> for Cow<'de, str> {
    fn unfit() -> Complaint {
        Complaint::Kind("String")
    }

    fn from_text(text: Cow<'de, str>) -> Read<Self> {
        Ok(text)
    }
}

/// Feeds the elements of a list to `take`; after the first that is wrong, the rest is skipped.
pub(super) fn each<'de, T, A>(mut seq: A, mut take: impl FnMut(T)) -> Result<Read<()>, A::Error>
where
    T: Json<'de>,
    A: SeqAccess<'de>,
{
    let mut index = 0;
    while let Some(slot) = seq.next_element::<Slot<T>>()? {
        match slot.element() {
            Ok(value) => take(value),
            Err(complaint) => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Err(Complaint::Element { index, inner: Box::new(complaint) }));
            }
        }
        index += 1;
    }
    Ok(Ok(()))
}

impl<'de, T: Json<'de>> Json<'de> for Vec<T> {
    fn unfit() -> Complaint {
        Complaint::Kind("list")
    }

    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Read<Self>, A::Error> {
        let mut values = Self::new();
        Ok(each(seq, |value| values.push(value))?.map(|()| values))
    }
}

/// An object whose keys are names, in their order.
#[derive(Debug)]
pub(super) struct Dict<'de, T>(pub(super) Vec<(Cow<'de, str>, Slot<T>)>);

impl<'de, T: Json<'de>> Json<'de> for Dict<'de, T> {
    fn unfit() -> Complaint {
        Complaint::Kind("JSObject")
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Read<Self>, A::Error> {
        let mut entries = Vec::new();
        while let Some((Name(name), value)) = map.next_entry()? {
            entries.push((name, value));
        }
        Ok(Ok(Self(entries)))
    }
}

/// A key, borrowed where it has no escapes.
pub(super) struct Name<'de>(pub(super) Cow<'de, str>);

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(text.to_owned())))
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

/// An object with known keys.
pub(super) trait Record<'de>: Default {
    /// One of the known keys.
    type Key: Copy;

    /// The key of that name, if it is known.
    fn key(name: &str) -> Option<Self::Key>;

    /// Reads the value of a key.
    fn accept<A: MapAccess<'de>>(&mut self, key: Self::Key, map: &mut A) -> Result<(), A::Error>;
}

/// Reads the value of a key into its slot, unless the slot is taken.
pub(super) fn fill<'de, T, A>(slot: &mut Slot<T>, map: &mut A) -> Result<(), A::Error>
where
    T: Json<'de>,
    A: MapAccess<'de>,
{
    if slot.is_absent() {
        *slot = map.next_value()?;
    } else {
        map.next_value::<IgnoredAny>()?;
    }
    Ok(())
}

struct Known<K, R>(Option<K>, PhantomData<R>);

struct KnownVisitor<R>(PhantomData<R>);

impl<'de, R: Record<'de>> Visitor<'de> for KnownVisitor<R> {
    type Value = Known<R::Key, R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Known(R::key(text), PhantomData))
    }
}

impl<'de, R: Record<'de>> Deserialize<'de> for Known<R::Key, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(KnownVisitor(PhantomData))
    }
}

/// Reads an object into a record.
pub(super) fn record<'de, R: Record<'de>, A: MapAccess<'de>>(mut map: A) -> Result<R, A::Error> {
    let mut record = R::default();
    while let Some(Known(key, _)) = map.next_key::<Known<R::Key, R>>()? {
        match key {
            Some(key) => record.accept(key, &mut map)?,
            None => drop(map.next_value::<IgnoredAny>()?),
        }
    }
    Ok(record)
}

/// An object read as two records at once; where both know a key, it is the first's.
#[derive(Default, Debug)]
pub(super) struct Both<A, B>(pub(super) A, pub(super) B);

/// A key of [`Both`].
#[derive(Clone, Copy)]
pub(super) enum Either<A, B> {
    First(A),
    Second(B),
}

impl<'de, R: Record<'de>, S: Record<'de>> Record<'de> for Both<R, S> {
    type Key = Either<R::Key, S::Key>;

    fn key(name: &str) -> Option<Self::Key> {
        R::key(name).map(Either::First).or_else(|| S::key(name).map(Either::Second))
    }

    fn accept<A: MapAccess<'de>>(&mut self, key: Self::Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Either::First(key) => self.0.accept(key, map),
            Either::Second(key) => self.1.accept(key, map),
        }
    }
}

/// Declares a record: its type, the type of its keys, the complaint about something else than an object, and
/// its fields with their keys.
macro_rules! json_record {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)?, $key:ident, $unfit:expr, {
        $($text:literal => $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Default, Debug)]
        pub(super) struct $name $(<$life>)? {
            $(pub(super) $field: $crate::iallocator::json::Slot<$type>,)*
        }

        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types)]
        pub(super) enum $key {
            $($field,)*
        }

        json_record!(@impls $name $(<$life>)?, $key, $unfit, { $($text => $field,)* });
    };
    (@impls $name:ident<$life:lifetime>, $key:ident, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        json_record!(@bodies [$life] $name<$life>, $key, $unfit, { $($text => $field,)* });
    };
    (@impls $name:ident, $key:ident, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        json_record!(@bodies ['de] $name, $key, $unfit, { $($text => $field,)* });
    };
    (@bodies [$de:lifetime] $name:ty, $key:ident, $unfit:expr, { $($text:literal => $field:ident,)* }) => {
        impl<$de> $crate::iallocator::json::Record<$de> for $name {
            type Key = $key;

            fn key(name: &str) -> Option<$key> {
                match name {
                    $($text => Some($key::$field),)*
                    _ => None,
                }
            }

            fn accept<A: serde::de::MapAccess<$de>>(&mut self, key: $key, map: &mut A) -> Result<(), A::Error> {
                match key {
                    $($key::$field => $crate::iallocator::json::fill(&mut self.$field, map),)*
                }
            }
        }

        impl<$de> $crate::iallocator::json::Json<$de> for $name {
            fn unfit() -> $crate::iallocator::error::Complaint {
                $unfit
            }

            fn from_map<A: serde::de::MapAccess<$de>>(
                map: A,
            ) -> Result<$crate::iallocator::json::Read<Self>, A::Error> {
                Ok(Ok($crate::iallocator::json::record(map)?))
            }
        }
    };
}
pub(super) use json_record;
