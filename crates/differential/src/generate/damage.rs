//! Deliberate damage to a message. The reference and our program must either both refuse it or both ignore
//! it.

use chores::random::Random;

use crate::json::Json;
use crate::known;

/// Draws the member to damage (its number in the message, taken modulo their count) and its new value.
///
/// The special text `(removed)` removes the member.
pub fn draw(random: &mut Random) -> (usize, Json) {
    let value = match random.below(8) {
        0 => Json::Null,
        1 => Json::text("text"),
        2 => Json::number(-5),
        3 => Json::number("1024.5"),
        4 => Json::Bool(true),
        5 => Json::List(Vec::new()),
        _ => Json::text(REMOVED),
    };
    (random.below(1 << 20), value)
}

/// Value that stands for removal of the member.
pub const REMOVED: &str = "(removed)";

pub fn apply(message: &mut Json, place: usize, value: &Json) {
    let mut members = 0;
    count(message, &mut members);
    if members > 0 {
        let mut left = place % members;
        visit(message, &mut left, value);
    }
}

fn count(value: &Json, members: &mut usize) {
    match value {
        Json::Object(list) => {
            *members += list.len();
            for (_, member) in list {
                count(member, members);
            }
        }
        Json::List(list) => {
            for item in list {
                count(item, members);
            }
        }
        _ => {}
    }
}

/// Damages member number `left` at or below `value`. Returns `true` when done.
fn visit(value: &mut Json, left: &mut usize, damage: &Json) -> bool {
    match value {
        Json::Object(list) => {
            if *left < list.len() {
                if known::NEVER_DAMAGED.contains(&list[*left].0.as_str()) {
                    return true;
                }
                if *damage == Json::text(REMOVED) {
                    list.remove(*left);
                } else {
                    list[*left].1 = damage.clone();
                }
                return true;
            }
            *left -= list.len();
            list.iter_mut().any(|(_, member)| visit(member, left, damage))
        }
        Json::List(list) => list.iter_mut().any(|item| visit(item, left, damage)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches_every_member() {
        let message = Json::object([("a", Json::List(vec![Json::object([("b", Json::Null)])]))]);
        let damaged: Vec<String> = (0..2)
            .map(|place| {
                let mut copy = message.clone();
                apply(&mut copy, place, &Json::number(1));
                copy.to_string()
            })
            .collect();
        assert_eq!(damaged, [r#"{"a": 1}"#, r#"{"a": [{"b": 1}]}"#]);
    }
}
