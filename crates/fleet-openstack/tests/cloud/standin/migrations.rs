//! Migrations in Nova. A cold migration advances a step with each listing of servers, like Nova in the lab
//! with each second. A live migration completes immediately, or hangs.

use serde_json::{Value, json};

use super::state::{State, uuid};
use super::{Asked, Reply};

/// Start of every migration, in UTC.
pub const BEGAN: &str = "2026-11-27T22:30:33.000000";

/// A migration.
#[derive(Clone, Debug)]
pub struct Migration {
    pub kind: &'static str,
    pub server: String,
    pub user: &'static str,
    pub from: String,
    pub to: String,
    pub status: &'static str,
}

/// Behavior after a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmations {
    /// The migration is being confirmed when Nova answers.
    AtOnce,
    /// Nova accepts the confirmation, but doesn't show that yet.
    Late,
    /// Nova rejects the confirmation.
    Refused,
}

/// Begins a cold migration on behalf of a user.
pub fn begin(state: &mut State, server: &str, to: &str, user: &'static str) -> Reply {
    let found = state.servers.get_mut(server).expect("it was looked for");
    if !["ACTIVE", "SHUTOFF"].contains(&found.status) || found.task.is_some() {
        return super::nova::not_while("migrate", server, found.status);
    }
    if found.host == to {
        let message = "Cannot migrate to the host where the server exists.";
        return (400, json!({"badRequest": {"code": 400, "message": message}}));
    }
    (found.status, found.task) = ("RESIZE", Some("resize_prep"));
    let from = found.host.clone();
    state.migrations.push(Migration {
        kind: "migration",
        server: server.to_owned(),
        user,
        from,
        to: to.to_owned(),
        status: "migrating",
    });
    (202, Value::Null)
}

/// Begins a live migration on behalf of a user.
pub fn begin_live(state: &mut State, server: &str, to: &str, user: &'static str) -> Reply {
    let found = state.servers.get_mut(server).expect("it was looked for");
    if !["ACTIVE", "PAUSED"].contains(&found.status) || found.task.is_some() {
        return super::nova::not_while("os-migrateLive", server, found.status);
    }
    if !state.live_migrations_hang {
        to.clone_into(&mut found.host);
        return (202, Value::Null);
    }
    (found.status, found.task) = ("MIGRATING", Some("migrating"));
    let (from, to) = (found.host.clone(), to.to_owned());
    let (kind, server) = ("live-migration", server.to_owned());
    state.migrations.push(Migration { kind, server, user, from, to, status: "running" });
    (202, Value::Null)
}

/// Aborts a live migration.
pub fn abort(state: &mut State, server: &str, number: &str) -> Reply {
    let number: usize = number.parse().expect("a number");
    let migration = &mut state.migrations[number - 1];
    assert_eq!(migration.server, server);
    if migration.status != "running" {
        let message = format!("Migration {number} state of instance {server} is {}.", migration.status);
        return (400, json!({"badRequest": {"code": 400, "message": message}}));
    }
    migration.status = "cancelled";
    let found = state.servers.get_mut(server).expect("it was looked for");
    (found.status, found.task) = ("ACTIVE", None);
    (202, Value::Null)
}

/// Confirms a cold migration.
pub fn confirm(state: &mut State, server: &str) -> Reply {
    let waits = |migration: &&mut Migration| migration.server == server && migration.status == "finished";
    match state.migrations.iter_mut().find(waits) {
        Some(_) if state.confirmations == Confirmations::Refused => {
            (403, json!({"forbidden": {"code": 403, "message": "Policy does not allow it."}}))
        }
        Some(migration) => {
            if state.confirmations == Confirmations::AtOnce {
                migration.status = "confirming";
            }
            (204, Value::Null)
        }
        None => super::nova::conflict(&format!("Cannot 'confirmResize' instance {server}")),
    }
}

/// Advances all migrations a step.
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

/// The newest first.
pub fn list(state: &State, asked: &Asked<'_>) -> Reply {
    let has = |name: &str, value: &str| asked.query.get(name).is_none_or(|wanted| wanted == value);
    let all = state.migrations.iter().enumerate().rev();
    let wanted = all.filter(|(_, migration)| {
        !(state.migrations_late && migration.status == "migrating")
            && has("migration_type", migration.kind)
            && has("status", migration.status)
            && has("user_id", migration.user)
    });
    let migration = |(number, migration): (usize, &Migration)| {
        let mut answer = json!({
            "id": number + 1, "uuid": uuid(number as u64 + 1), "instance_uuid": migration.server,
            "source_compute": migration.from, "source_node": migration.from, "dest_compute": migration.to,
            "dest_node": migration.to, "dest_host": "192.168.0.1", "old_instance_type_id": 1,
            "new_instance_type_id": 1, "status": migration.status, "migration_type": migration.kind,
            "created_at": BEGAN, "updated_at": "2026-11-27T22:30:36.000000",
        });
        if asked.version == "compute 2.80" {
            answer["user_id"] = json!(migration.user);
            answer["project_id"] = json!("p1");
        }
        answer
    };
    (200, json!({"migrations": wanted.map(migration).collect::<Vec<_>>()}))
}
