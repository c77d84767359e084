//! Free pools as JSON documents.

use std::collections::BTreeMap;

use leases::free_pool::FreePool;
use leases::ids::FreePoolId;
use serde::{Deserialize, Serialize};

use super::{Unreadable, end_action_from_name, end_action_name, from_json, json, named};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
struct Document {
    name: String,
    extra_specs: BTreeMap<String, String>,
    end_action: Option<String>,
}

/// A free pool as JSON, without its identifier.
pub fn free_pool_json(pool: &FreePool) -> String {
    json(&Document {
        name: pool.name.clone(),
        extra_specs: pool.extra_specs.clone(),
        end_action: pool.end_action.map(|action| end_action_name(action).to_owned()),
    })
}

pub fn free_pool_from_json(id: FreePoolId, text: &str) -> Result<FreePool, Unreadable> {
    let Document { name, extra_specs, end_action } = from_json("free pool", text)?;
    let end_action = end_action.map(|name| named("end action", &name, end_action_from_name)).transpose()?;
    Ok(FreePool { id, name, extra_specs, end_action })
}
