//! Publishes notifications on the message bus of an OpenStack cloud, as Blazar does on RabbitMQ, in the
//! format of oslo.messaging 2.0 (`messagingv2`).
//!
//! The expectations of listeners were observed with oslo.messaging 18 on RabbitMQ: a topic exchange, a queue
//! named `TOPIC.info` bound to it under that name, and a JSON envelope with the notification as JSON in a
//! string.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::Notification;
use tokio::sync::Mutex;

use super::listener::{Listener, TellError};
use crate::config::{LEAST_PAUSE, MessageBusConfig};
use crate::config_error::ConfigError;
use crate::message_bus::{MessageBus, PublishError, Publishing, Queues, Route, URL_FILE, check_names, wrong};

pub(super) const NAME: &str = "message_bus";

/// Priority of all notifications, as in Blazar. A queue's name is the topic followed by it.
const PRIORITY: &str = "info";

/// A listener that publishes on a message bus.
pub(crate) struct Publisher {
    bus: MessageBus,
    exchange: String,
    queues: Vec<String>,
    made: Queues,
    /// `publisher_id` of messages.
    said_by: String,
    timeout: Duration,
    first_pause: Duration,
    state: Mutex<State>,
}

/// The connection, if any, and the number of the broker for the next one.
#[derive(Default)]
struct State {
    session: Option<Publishing>,
    next: usize,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("bus", &self.bus).finish_non_exhaustive()
    }
}

impl Publisher {
    /// `None` if the message bus is used only to listen to Nova. Doesn't connect yet.
    pub fn new(config: &MessageBusConfig) -> Result<Option<Self>, ConfigError> {
        let queues: Vec<String> = config.topics.iter().map(|topic| format!("{topic}.{PRIORITY}")).collect();
        if queues.is_empty() {
            // A bus without any topics is never used, so an error in its URL would go unnoticed.
            let heard = !config.nova_topics.is_empty();
            let useless = || wrong(URL_FILE, &"set message_bus.topics or message_bus.nova_topics as well");
            return if heard { Ok(None) } else { Err(useless()) };
        }
        check_names("message_bus.topics", &queues)?;
        check_names("message_bus.exchange", [&config.exchange])?;
        Ok(Some(Self {
            bus: MessageBus::new(config)?,
            exchange: config.exchange.clone(),
            queues,
            made: Queues { durable: config.durable_queues, quorum: config.quorum_queues },
            said_by: config.publisher_id.clone(),
            timeout: config.patience(),
            first_pause: config.first_pause.max(LEAST_PAUSE),
            state: Mutex::default(),
        }))
    }

    /// Publishes a message to every topic. Connects if there is no open connection.
    async fn publish(
        &self,
        session: &mut Option<Publishing>,
        next: usize,
        id: &str,
        body: &[u8],
    ) -> Result<(), PublishError> {
        let session = match session {
            Some(session) if session.is_open() => session,
            // Not connected yet, or closed by the broker, as at its restart.
            _ => session.insert(self.bus.publish(next).await?),
        };
        for queue in &self.queues {
            let route = Route { exchange: &self.exchange, queue };
            session.publish(route, self.made, id, body.to_vec()).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Listener for Publisher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn first_pause(&self) -> Duration {
        self.first_pause
    }

    fn is_metered(&self) -> bool {
        true
    }

    async fn tell(&self, notification: &Notification) -> Result<(), TellError> {
        let (id, body) = message(notification, &self.said_by)?;
        let mut state = self.state.lock().await;
        let State { session, next } = &mut *state;
        let published =
            tokio::time::timeout(self.timeout, self.publish(session, *next, &id, body.as_bytes())).await;
        let failed = match published {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => format!("has not taken the message in {:?}", self.timeout).into(),
        };
        // Drop the connection, because a late answer on it would be taken for the next message's. Then try
        // the next broker.
        *session = None;
        let broker = self.bus.broker(*next).to_string();
        *next = next.wrapping_add(1);
        Err(TellError::Broker { broker, error: failed })
    }
}

/// Envelope of oslo.messaging.
#[derive(Serialize)]
struct Envelope {
    #[serde(rename = "oslo.version")]
    version: &'static str,
    #[serde(rename = "oslo.message")]
    message: String,
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(rename = "message_id")]
    id: &'a str,
    publisher_id: &'a str,
    event_type: &'a str,
    priority: String,
    payload: Value,
    timestamp: String,
    /// Listeners ignore messages with an identifier that they have seen before.
    #[serde(rename = "_unique_id")]
    unique_id: String,
}

/// Identifier and body of a notification's message. Both are the same at each attempt.
fn message(notification: &Notification, publisher_id: &str) -> Result<(String, String), serde_json::Error> {
    let content = &notification.content;
    let id = identifier(notification);
    let message = Message {
        id: &id,
        publisher_id,
        event_type: &content.event_type,
        priority: PRIORITY.to_uppercase(),
        payload: api::v1::Notification::from(notification).payload,
        timestamp: notification.at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string(),
        unique_id: id.replace('-', ""),
    };
    let body =
        serde_json::to_string(&Envelope { version: "2.0", message: serde_json::to_string(&message)? })?;
    Ok((id, body))
}

/// Unique identifier of a notification, even across stores: a UUID of version 8 (RFC 9562).
fn identifier(notification: &Notification) -> String {
    let content = &notification.content;
    let mut hash = Sha256::new();
    for part in [
        &notification.number.to_string(),
        &notification.at.to_string(),
        &content.event_type,
        &content.payload,
    ] {
        hash.update(part);
        hash.update([0]);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use leases::project::ProjectId;
    use serde_json::json;
    use store::NewNotification;

    use super::*;

    fn notification(number: u64) -> Notification {
        Notification {
            number,
            at: Timestamp::from_microsecond(1_800_000_000_012_345).expect("in range"),
            content: NewNotification {
                lease: None,
                project: ProjectId("p".to_owned()),
                event_type: "lease.create".to_owned(),
                payload: r#"{"lease_id": "l", "name": "\u001b[31m"}"#.to_owned(),
            },
        }
    }

    fn bus(url: &str) -> MessageBusConfig {
        MessageBusConfig::new(url.into())
    }

    #[test]
    fn a_message_is_one_of_oslo_messaging_and_the_same_whenever_it_is_told() {
        let (id, body) = message(&notification(7), "blazar.lease").expect("JSON");
        let envelope: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(envelope["oslo.version"], "2.0");
        let message_text = envelope["oslo.message"].as_str().expect("a text");
        let message_read: Value = serde_json::from_str(message_text).expect("JSON");
        let unique = id.replace('-', "");
        assert_eq!(
            message_read,
            json!({
                "message_id": id, "publisher_id": "blazar.lease", "event_type": "lease.create", "priority": "INFO",
                "payload": {"lease_id": "l", "name": "\u{1b}[31m"}, "timestamp": "2027-01-15 08:00:00.012345",
                "_unique_id": unique,
            })
        );
        assert_eq!(message(&notification(7), "blazar.lease").expect("JSON"), (id.clone(), body));
        assert_ne!(identifier(&notification(8)), id);
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!((parts, id.as_bytes()[14]), (vec![8, 4, 4, 4, 12], b'8'));
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }

    #[test]
    fn what_cannot_be_a_message_bus_is_said_before_anything_starts() {
        let url = "rabbit://u:hush@h/";
        let bus = |url| bus(url);
        for (config, said) in [
            (bus("http://u:hush@h/"), "begin with rabbit://"),
            (MessageBusConfig { exchange: String::new(), ..bus(url) }, "may have 1 to 255 bytes"),
            (MessageBusConfig { topics: vec!["t".repeat(251)], ..bus(url) }, "may have 1 to 255 bytes"),
            (
                MessageBusConfig { topics: Vec::new(), ..bus(url) },
                "set message_bus.topics or message_bus.nova_topics",
            ),
            (
                MessageBusConfig { tls: true, ca_file: Some("/nowhere".into()), ..bus(url) },
                "message_bus.ca_file: cannot read /nowhere",
            ),
        ] {
            let error = Publisher::new(&config).expect_err(said).to_string();
            assert!(error.contains(said) && !error.contains("hush"), "{error}");
        }
        let shown = format!("{:?}", Publisher::new(&bus(url)).expect("a message bus"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
