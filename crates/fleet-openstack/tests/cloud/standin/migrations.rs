//! How Nova moves servers that are shut off: a step further with each list of servers, as the lab's does with each second.

use serde_json::{Value, json};

use super::state::{State, uuid};
use super::{Asked, Reply};

/// A migration of a server that is shut off.
#[derive(Clone, Debug)]
pub struct Migration {
    pub server: String,
    pub user: &'static str,
    pub from: String,
    pub to: String,
    pub status: &'static str,
}

/// That user has the server moved.
pub fn begin(state: &mut State, server: &str, to: &str, user: &'static str) -> Reply {
    let found = state.servers.get_mut(server).expect("it was looked for");
    if !["ACTIVE", "SHUTOFF"].contains(&found.status) || found.task.is_some() {
        return super::nova::conflict(&format!(
            "Cannot 'migrate' instance {server} while it is in vm_state {}",
            found.status.to_lowercase()
        ));
    }
    if found.host == to {
        let message = "Cannot migrate to the host where the server exists.";
        return (400, json!({"badRequest": {"code": 400, "message": message}}));
    }
    (found.status, found.task) = ("RESIZE", Some("resize_prep"));
    let from = found.host.clone();
    state.migrations.push(Migration {
        server: server.to_owned(),
        user,
        from,
        to: to.to_owned(),
        status: "migrating",
    });
    (202, Value::Null)
}

/// Somebody says that the server works where it is.
pub fn confirm(state: &mut State, server: &str) -> Reply {
    let waits = |migration: &&mut Migration| migration.server == server && migration.status == "finished";
    match state.migrations.iter_mut().find(waits) {
        Some(migration) => {
            migration.status = "confirming";
            (204, Value::Null)
        }
        None => super::nova::conflict(&format!("Cannot 'confirmResize' instance {server}")),
    }
}

/// All that is under way goes a step further.
pub fn go_on(state: &mut State) {
    if state.migrations_late {
        return;
    }
    for migration in &mut state.migrations {
        let Some(server) = state.servers.get_mut(&migration.server) else { continue };
        match migration.status {
            "migrating" if state.migrations_fail => {
                (server.status, server.task) = ("SHUTOFF", None);
                migration.status = "error";
            }
            "migrating" => {
                migration.to.clone_into(&mut server.host);
                server.task = Some("resize_migrated");
                migration.status = "post-migrating";
            }
            "post-migrating" => {
                (server.status, server.task) = ("VERIFY_RESIZE", None);
                migration.status = "finished";
            }
            "confirming" => {
                server.status = "SHUTOFF";
                migration.status = "confirmed";
            }
            _ => {}
        }
    }
}

/// The newest first. Of those of servers that run there are none: they arrive at once.
pub fn list(state: &State, asked: &Asked<'_>) -> Reply {
    let has = |name: &str, value: &str| asked.query.get(name).is_none_or(|wanted| wanted == value);
    let all = state.migrations.iter().enumerate().rev();
    let wanted = all.filter(|(_, migration)| {
        !(state.migrations_late && migration.status == "migrating")
            && has("migration_type", "migration")
            && has("status", migration.status)
            && has("user_id", migration.user)
    });
    let migration = |(number, migration): (usize, &Migration)| {
        let mut answer = json!({
            "id": number + 1, "uuid": uuid(number as u64 + 1), "instance_uuid": migration.server,
            "source_compute": migration.from, "source_node": migration.from, "dest_compute": migration.to,
            "dest_node": migration.to, "dest_host": "192.168.0.1", "old_instance_type_id": 1,
            "new_instance_type_id": 1, "status": migration.status, "migration_type": "migration",
            "created_at": "2026-11-27T22:30:33.000000", "updated_at": "2026-11-27T22:30:36.000000",
        });
        if asked.version == "compute 2.80" {
            answer["user_id"] = json!(migration.user);
            answer["project_id"] = json!("p1");
        }
        answer
    };
    (200, json!({"migrations": wanted.map(migration).collect::<Vec<_>>()}))
}
