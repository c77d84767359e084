//! Free pools (FP).

use std::collections::BTreeMap;

use leases::lease::EndAction;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::FreePoolRecord;
use utoipa::ToSchema;

use super::date::rfc_3339_seconds;
use super::end_action::{end_action, end_action_name};
use super::error::RequestError;
use super::fields::{Fields, read_name, strict_text};
use super::host::capability;
use super::limits::NAME;

/// A free pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FreePool {
    /// Identifier of the pool.
    pub id: String,
    /// Name of the pool.
    pub name: String,
    /// Capabilities of all hosts in the pool. Capabilities of a host take precedence.
    pub extra_specs: BTreeMap<String, String>,
    /// Default end action of leases on hosts of the pool. Null: the service's default.
    pub end_action: Option<String>,
    /// Number of hosts in the pool, leased or not.
    pub hosts: usize,
    /// Time of creation: UTC to the second; null for the default pool.
    #[schema(format = "date-time")]
    pub created_at: Option<String>,
    /// Time of the last change: UTC to the second.
    #[schema(format = "date-time")]
    pub updated_at: Option<String>,
}

impl FreePool {
    /// The pool for an answer. `hosts` is its number of hosts.
    pub fn of(record: &FreePoolRecord, hosts: usize) -> Self {
        let pool = &record.pool;
        let made = pool.id != leases::free_pool::FreePool::DEFAULT;
        Self {
            id: pool.id.to_string(),
            name: pool.name.clone(),
            extra_specs: pool.extra_specs.clone(),
            end_action: pool.end_action.map(|action| end_action_name(action).to_owned()),
            hosts,
            created_at: made.then(|| rfc_3339_seconds(record.created_at)),
            updated_at: record.updated_at.map(rfc_3339_seconds),
        }
    }
}

/// A free pool in a request. `None` stands for absent fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePoolRequest {
    /// Its name.
    pub name: Option<String>,
    /// Properties of its hosts.
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// End action of its leases. The inner `None` stands for null.
    pub end_action: Option<Option<EndAction>>,
}

impl FreePoolRequest {
    /// Reads the body of `POST /freepools` (`new`), which must name the pool, or of `PUT /freepools/{id}`.
    pub fn read(body: &Value, new: bool) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        if new {
            fields.require(&["name"])?;
        }
        let name = fields.given("name").map(name).transpose()?;
        let extra_specs = fields.given("extra_specs").map(extra_specs).transpose()?;
        let end_action = fields.get("end_action").map(|value| match value {
            Value::Null => Ok(None),
            value => end_action(value).map(Some),
        });
        let end_action = end_action.transpose()?;
        fields.finish()?;
        let request = Self { name, extra_specs, end_action };
        if new && request.name.is_none() {
            return Err(RequestError::Missing("name".to_owned()));
        }
        if request == Self::default() { Err(RequestError::NothingToUpdate) } else { Ok(request) }
    }
}

fn name(value: &Value) -> Result<String, RequestError> {
    let name = read_name("name", &strict_text("name", value)?, NAME)?;
    // The name is part of addresses.
    if name.contains('/') { Err(RequestError::malformed("name", "a name without a slash")) } else { Ok(name) }
}

fn extra_specs(value: &Value) -> Result<BTreeMap<String, String>, RequestError> {
    let specs = value.as_object().ok_or_else(|| RequestError::malformed("extra_specs", "an object"))?;
    let spec = |(name, value): (&String, &Value)| {
        let wrong = || RequestError::malformed(format!("extra_specs.{name}"), "text");
        Ok((name.clone(), capability(name, value)?.ok_or_else(wrong)?))
    };
    specs.iter().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fp_1_a_pool_is_named_and_says_what_its_hosts_are_like() {
        let body = json!({"name": "fast", "extra_specs": {"ssd": true, "rack": "r1"}, "end_action": "keep"});
        let request = FreePoolRequest::read(&body, true).expect("complete");
        let specs =
            [("rack", "r1"), ("ssd", "True")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(request.extra_specs, Some(specs.into()));
        assert_eq!(request.end_action, Some(Some(EndAction::KeepGuests)));
        let changed = FreePoolRequest::read(&json!({"end_action": null}), false).expect("a change");
        assert_eq!(changed, FreePoolRequest { end_action: Some(None), ..FreePoolRequest::default() });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, new, wrong) in [
            (json!({}), true, "Missing parameter name"),
            (json!({"name": null}), true, "Missing parameter name"),
            (json!({"name": "a/b"}), true, "Malformed parameter name"),
            (json!({"name": "a", "specs": {}}), true, "Unknown parameter specs"),
            (json!({"name": "a", "extra_specs": []}), true, "Malformed parameter extra_specs"),
            (json!({"name": "a", "extra_specs": {"b": null}}), true, "Malformed parameter extra_specs.b"),
            (json!({"end_action": "burn"}), false, "Malformed parameter end_action"),
        ] {
            assert_eq!(FreePoolRequest::read(&body, new).expect_err("wrong").to_string(), wrong, "{body}");
        }
        assert!(matches!(FreePoolRequest::read(&json!({}), false), Err(RequestError::NothingToUpdate)));
    }
}
