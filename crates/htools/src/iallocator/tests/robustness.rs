//! Damaged and random messages cause errors, not panics.

use proptest::prelude::*;

use super::{RELOCATE, current};
use crate::iallocator::parse;
use crate::json::Cursor;

/// Whether the cursor accepts the text as one JSON value.
fn accepts(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip().and_then(|()| cursor.end()).is_ok()
}

proptest! {
    #[test]
    fn mutated_messages_do_not_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let mut bytes = current(RELOCATE).into_bytes();
        for (place, byte, kind) in edits {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]\",:0-.eE\\"[usize::from(byte) % 13]),
                // Never empty, so that the next edit has a position.
                _ => bytes.truncate(at.max(8)),
            }
        }
        let _ = parse(&bytes);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let known = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            prop_assert_eq!(accepts(text), known, "{}", text);
        }
    }

    #[test]
    fn strings_are_read_as_they_were_written(value in any::<String>()) {
        let text = serde_json::to_string(&value).unwrap_or_default();
        let mut cursor = Cursor::new(&text);
        let read = cursor.string().ok();
        prop_assert_eq!(read.as_deref(), Some(value.as_str()));
    }

    #[test]
    fn small_texts_are_judged_as_by_a_general_reader(text in "[\\[\\]{}\",:0-9.eE+ \\\\utrfalsn-]{0,12}") {
        let known = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(accepts(&text), known, "{}", text);
    }
}
