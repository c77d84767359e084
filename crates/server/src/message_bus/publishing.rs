//! Publishing with confirms: the broker acknowledges or rejects each message.

use std::collections::BTreeSet;

use amqprs::channel::{
    BasicPublishArguments, ConfirmSelectArguments, ExchangeDeclareArguments, QueueBindArguments,
    QueueDeclareArguments,
};
use amqprs::{BasicProperties, DELIVERY_MODE_PERSISTENT, FieldTable, ShortStr};
use thiserror::Error;

use super::amqp::{Answer, Line, said};

/// Properties of queues that the service declares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queues {
    /// Whether they survive a restart of the broker.
    pub durable: bool,
    /// Whether they are replicated to several brokers. Such queues are always durable.
    pub quorum: bool,
}

/// A queue of an exchange. Its name is also the routing key of its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    pub exchange: &'a str,
    pub queue: &'a str,
}

/// Reply codes of a broker that closes a channel because of the message: 311 is content too large; 406 is a failed
/// precondition, which RabbitMQ answers to messages beyond `max_message_size`.
const REJECTIONS: [u16; 2] = [311, 406];

/// Reason why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PublishError {
    /// The broker rejects this message.
    #[error("{0}")]
    Rejected(String),
    /// The broker accepts no messages at present.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for PublishError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl PublishError {
    /// Classifies the reply code of a channel that was closed after a message was sent.
    fn from_close(code: u16, reason: String) -> Self {
        if REJECTIONS.contains(&code) { Self::Rejected(reason) } else { Self::Failed(reason) }
    }
}

/// A channel in confirm mode.
pub(crate) struct Publishing {
    line: Line,
    /// Queues known to exist since the channel was opened.
    declared: BTreeSet<String>,
}

impl Publishing {
    /// Puts the channel of `line` into confirm mode.
    pub(super) async fn begin(line: Line) -> Result<Self, String> {
        line.channel.confirm_select(ConfirmSelectArguments::default()).await.map_err(said)?;
        Ok(Self { line, declared: BTreeSet::new() })
    }

    /// Whether connection and channel are open, as far as is known.
    pub fn is_open(&self) -> bool {
        self.line.is_open()
    }

    /// Publishes a message and waits until the broker has confirmed it. After an error, the channel must not
    /// be used again.
    pub async fn publish(
        &mut self,
        route: Route<'_>,
        queues: Queues,
        id: &str,
        body: Vec<u8>,
    ) -> Result<(), PublishError> {
        if !self.declared.contains(route.queue) {
            self.declare(route, queues).await?;
            self.declared.insert(route.queue.to_owned());
        }
        let properties = BasicProperties::default()
            .with_content_type("application/json")
            .with_content_encoding("utf-8")
            .with_delivery_mode(DELIVERY_MODE_PERSISTENT)
            .with_priority(0)
            .with_message_id(id)
            .finish();
        let arguments = BasicPublishArguments::new(route.exchange, route.queue).mandatory(true).finish();
        self.line.channel.basic_publish(properties, body, arguments).await.map_err(said)?;
        let failed = match self.line.answers.recv().await {
            Some(Answer::Taken) => return Ok(()),
            Some(Answer::NotTaken) => "has not taken the message".to_owned(),
            Some(Answer::Returned) => format!("has no queue {} any more", route.queue),
            Some(Answer::Closed { code, reason }) => return Err(PublishError::from_close(code, reason)),
            None => "has closed the connection".to_owned(),
        };
        Err(failed.into())
    }

    /// Declares the exchange and the queue if they are missing. Existing ones can differ from the settings,
    /// since their creator had reasons.
    async fn declare(&mut self, route: Route<'_>, queues: Queues) -> Result<(), String> {
        let line = &mut self.line;
        let durable = queues.durable || queues.quorum;
        let exchange = ExchangeDeclareArguments::new(route.exchange, "topic");
        let look = line.channel_for_a_question().await?;
        if look.exchange_declare(exchange.clone().passive(true).finish()).await.is_err() {
            let exchange = exchange.clone().durable(durable).finish();
            let declared = line.channel.exchange_declare(exchange).await;
            line.done(declared)?;
        }
        let queue = QueueDeclareArguments::new(route.queue);
        let look = line.channel_for_a_question().await?;
        if look.queue_declare(queue.clone().passive(true).finish()).await.is_err() {
            let queue = queue.clone().durable(durable).arguments(arguments(queues)).finish();
            let declared = line.channel.queue_declare(queue).await;
            line.done(declared)?;
        }
        let bound =
            line.channel.queue_bind(QueueBindArguments::new(route.queue, route.exchange, route.queue)).await;
        line.done(bound)
    }
}

/// Arguments for declaring a queue.
fn arguments(queues: Queues) -> FieldTable {
    let mut arguments = FieldTable::new();
    // Never fails: the name is short enough.
    if let (true, Ok(name)) = (queues.quorum, ShortStr::try_from("x-queue-type")) {
        arguments.insert(name, "quorum".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_rejects_a_message_or_takes_none_at_present() {
        let close = |code| PublishError::from_close(code, "reason".to_owned());
        for code in [311, 406] {
            assert_eq!(close(code), PublishError::Rejected("reason".to_owned()), "{code}");
        }
        // Codes that say nothing about the message: a temporary failure, access refused, no such exchange, a
        // malformed frame, an internal error.
        for code in [0, 313, 320, 402, 403, 404, 405, 501, 504, 506, 541] {
            assert_eq!(close(code), PublishError::Failed("reason".to_owned()), "{code}");
        }
    }
}
