//! Nova's versioned notifications, and the compute services that they concern.
//!
//! The format was observed on Nova 34 with `notification_format = versioned` and the driver `messagingv2`:
//! JSON with the notification as JSON in a string, in which objects have their fields under
//! `nova_object.data`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Maximum size of a message, bytes. Nova's messages have some thousands.
const LONGEST: usize = 1 << 20;

/// Maximum number of aggregates with remembered hosts.
const AGGREGATES: usize = 1000;

/// Binary of the service that runs servers.
const COMPUTE: &str = "nova-compute";

/// Extracts the affected hosts from notifications, which are read in order.
#[derive(Debug, Default)]
pub struct Notifications {
    /// Hosts by aggregate, for aggregates whose hosts have changed.
    members: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "oslo.message")]
    message: String,
}

#[derive(Deserialize)]
struct Message {
    event_type: String,
    #[serde(default)]
    publisher_id: String,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "nova_object.data")]
    data: Data,
}

/// Fields of a server, a service or an aggregate.
#[derive(Deserialize)]
struct Data {
    host: Option<String>,
    binary: Option<String>,
    hosts: Option<BTreeSet<String>>,
    uuid: Option<String>,
}

impl Notifications {
    /// Names of the compute services whose hosts a message on the bus concerns: something happened to a
    /// server or to the service itself, or the host joined or left an aggregate. Empty for any other message,
    /// including malformed ones.
    pub fn services(&mut self, message: &[u8]) -> BTreeSet<String> {
        let Some(Message { event_type, publisher_id, payload: Payload { data } }) = read(message) else {
            return BTreeSet::new();
        };
        let mut parts = event_type.split('.');
        let (about, action, phase) = (parts.next(), parts.next(), parts.next());
        match (about, action, phase) {
            // `exists` is sent for every server about once an hour, and `start` announces a change that
            // hasn't happened yet.
            (Some("instance"), Some("exists"), _) | (Some("instance"), _, Some("start")) => BTreeSet::new(),
            (Some("instance"), ..) => {
                // Both the old and the new host of a moving server send notifications.
                let told_by = publisher_id.split_once(':').filter(|(service, _)| *service == COMPUTE);
                data.host.into_iter().chain(told_by.map(|(_, host)| host.to_owned())).collect()
            }
            (Some("service"), ..) if data.binary.as_deref() == Some(COMPUTE) => {
                data.host.into_iter().collect()
            }
            (Some("aggregate"), Some("add_host" | "remove_host"), phase) => {
                let (aggregate, hosts) = (data.uuid.unwrap_or_default(), data.hosts.unwrap_or_default());
                self.changes_of(aggregate, phase == Some("end"), hosts)
            }
            _ => BTreeSet::new(),
        }
    }

    /// Nova names all hosts of the aggregate before and after the change. Hosts in only one of the lists have
    /// changed.
    fn changes_of(&mut self, aggregate: String, is_over: bool, hosts: BTreeSet<String>) -> BTreeSet<String> {
        if self.members.len() >= AGGREGATES && !self.members.contains_key(&aggregate) {
            self.members.clear();
        }
        let known = self.members.entry(aggregate).or_insert_with(|| hosts.clone());
        if !is_over {
            return BTreeSet::new();
        }
        let changed = known.symmetric_difference(&hosts).cloned().collect();
        *known = hosts;
        changed
    }
}

/// Reads a message, with or without the envelope of oslo.messaging 2.0.
fn read(message: &[u8]) -> Option<Message> {
    if message.len() > LONGEST {
        return None;
    }
    match serde_json::from_slice::<Envelope>(message) {
        Ok(envelope) => serde_json::from_str(&envelope.message).ok(),
        Err(_) => serde_json::from_slice(message).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(event_type: &str, publisher: &str, data: &Value) -> Vec<u8> {
        let message = json!({
            "message_id": "m", "publisher_id": publisher, "event_type": event_type, "priority": "INFO",
            "timestamp": "2026-11-26 20:00:00.000000", "_unique_id": "u",
            "payload": {
                "nova_object.data": data, "nova_object.name": "Payload", "nova_object.namespace": "nova",
                "nova_object.version": "1.0", "nova_object.changes": ["host"],
            },
        });
        json!({"oslo.version": "2.0", "oslo.message": message.to_string()}).to_string().into_bytes()
    }

    #[test]
    fn a_notification_names_the_hosts_on_which_something_has_happened() {
        let mut notifications = Notifications::default();
        let server = json!({"host": "c1", "uuid": "s", "state": "active"});
        let nowhere = json!({"host": null, "uuid": "s"});
        let service = json!({"host": "c1", "binary": "nova-compute", "disabled": true});
        let conductor = json!({"host": "c1", "binary": "nova-conductor", "disabled": true});
        for (event_type, publisher, data, hosts) in [
            ("instance.create.end", "nova-compute:c1", &server, &["c1"][..]),
            ("instance.create.error", "nova-compute:c1", &server, &["c1"]),
            ("instance.create.start", "nova-compute:c1", &server, &[]),
            ("instance.update", "nova-api:a", &server, &["c1"]),
            ("instance.update", "nova-api:a", &nowhere, &[]),
            ("instance.delete.end", "nova-compute:c2", &nowhere, &["c2"]),
            ("instance.live_migration_post.end", "nova-compute:c2", &server, &["c1", "c2"]),
            ("instance.exists", "nova-compute:c1", &server, &[]),
            ("service.update", "nova-compute:c1", &service, &["c1"]),
            ("service.update", "nova-conductor:c1", &conductor, &[]),
            ("flavor.create", "nova-api:a", &json!({"flavorid": "f"}), &[]),
            ("scheduler.select_destinations.end", "nova-scheduler:a", &json!({}), &[]),
        ] {
            let heard = notifications.services(&message(event_type, publisher, data));
            assert_eq!(heard.iter().collect::<Vec<_>>(), hosts, "{event_type} by {publisher}");
        }
    }

    #[test]
    fn of_an_aggregate_the_hosts_are_meant_that_have_joined_or_left() {
        let mut notifications = Notifications::default();
        let mut heard = |event_type: &str, hosts: &Value| {
            let data = json!({"uuid": "a", "id": 1, "hosts": hosts});
            let services = notifications.services(&message(event_type, "nova-api:a", &data));
            services.into_iter().collect::<Vec<_>>()
        };
        assert!(heard("aggregate.create.end", &json!(null)).is_empty());
        assert!(heard("aggregate.add_host.start", &json!(["c1"])).is_empty());
        assert!(heard("aggregate.add_host.start", &json!(["c1"])).is_empty(), "two at once");
        assert_eq!(heard("aggregate.add_host.end", &json!(["c1", "c2"])), ["c2"]);
        assert_eq!(heard("aggregate.add_host.end", &json!(["c1", "c2", "c3"])), ["c3"]);
        assert!(heard("aggregate.update_metadata.end", &json!(["c1", "c2", "c3"])).is_empty());
        assert!(heard("aggregate.remove_host.start", &json!(["c1", "c2", "c3"])).is_empty());
        assert_eq!(heard("aggregate.remove_host.end", &json!(["c1"])), ["c2", "c3"]);
        for aggregate in 0..2 * AGGREGATES {
            let data = json!({"uuid": aggregate.to_string(), "hosts": ["c1"]});
            notifications.services(&message("aggregate.add_host.start", "nova-api:a", &data));
        }
        assert!(notifications.members.len() <= AGGREGATES);
    }

    #[test]
    fn what_is_no_notification_is_passed_over() {
        let mut notifications = Notifications::default();
        let plain = json!({
            "event_type": "service.update", "payload": {"nova_object.data": {"host": "c1", "binary": "nova-compute"}},
        });
        // As the driver `messaging` sends it.
        assert_eq!(notifications.services(plain.to_string().as_bytes()).len(), 1);
        let long = format!("{}{plain}", " ".repeat(LONGEST));
        let unversioned = json!({"event_type": "compute.instance.create.end", "payload": {"host": "c1"}});
        let (nested, unversioned) = ("[".repeat(100_000), unversioned.to_string());
        for message in ["", "{", "7", "{\"oslo.message\": \"{\"}", &long, &nested, &unversioned] {
            assert!(notifications.services(message.as_bytes()).is_empty());
        }
    }
}
