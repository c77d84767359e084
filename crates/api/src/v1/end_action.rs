//! End actions, which decide about guests at the end of a lease, in requests and answers.

use leases::lease::EndAction;
use serde_json::Value;

use super::error::RequestError;

/// Names of end actions in requests and answers.
const END_ACTIONS: [(&str, EndAction); 4] = [
    ("delete", EndAction::DeleteGuests),
    ("keep", EndAction::KeepGuests),
    ("snapshot", EndAction::SnapshotGuests),
    ("migrate", EndAction::MoveGuests),
];

/// What becomes of guests at the end, by what it is called.
pub fn end_action_from_name(name: &str) -> Option<EndAction> {
    END_ACTIONS.into_iter().find(|(known, _)| *known == name).map(|(_, action)| action)
}

pub(crate) fn end_action(value: &Value) -> Result<EndAction, RequestError> {
    let wrong = || RequestError::malformed("end_action", "delete, keep, snapshot or migrate");
    value.as_str().and_then(end_action_from_name).ok_or_else(wrong)
}

pub(crate) fn end_action_name(action: EndAction) -> &'static str {
    END_ACTIONS.into_iter().find(|(_, known)| *known == action).map_or("delete", |(name, _)| name)
}
