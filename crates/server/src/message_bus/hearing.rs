//! Subscriptions to other services' messages. Each subscription has its own queue, which gets a copy of every
//! message, so no other consumer misses one.

use std::time::Duration;

use amqprs::FieldValue;
use amqprs::channel::{
    BasicAckArguments, BasicConsumeArguments, BasicQosArguments, ConsumerMessage, ExchangeDeclareArguments,
    QueueBindArguments, QueueDeclareArguments,
};
use amqprs::{FieldTable, ShortStr};
use tokio::sync::mpsc;

use super::amqp::{Answer, Line, said};

/// Maximum length of the queue, in messages. Beyond it, the broker drops the oldest.
const WAITING: i32 = 10_000;

/// Prefetch limit: maximum number of unacknowledged messages, which are in memory at the same time.
const AT_ONCE: u16 = 64;

/// Interval at which a waiting subscription checks that its connection is still open.
const CHECK: Duration = Duration::from_secs(5);

/// Error text for a closed connection.
const ENDED: &str = "has closed the connection";

/// A queue that the broker deletes when this is dropped.
pub(crate) struct Hearing {
    line: Line,
    messages: mpsc::UnboundedReceiver<ConsumerMessage>,
}

/// A message to be acknowledged.
#[derive(Debug)]
pub(crate) struct Message {
    tag: u64,
    pub body: Vec<u8>,
}

impl Hearing {
    /// Subscribes over `line`. The exchange must exist already: only its publishers know how it must be
    /// declared.
    pub(super) async fn begin(mut line: Line, exchange: &str, keys: &[String]) -> Result<Self, String> {
        let question = line.channel_for_a_question().await?;
        let passive = ExchangeDeclareArguments::new(exchange, "topic").passive(true).finish();
        if question.exchange_declare(passive).await.is_err() {
            return Err(format!("has no exchange {exchange} that may be read"));
        }
        let arguments =
            QueueDeclareArguments::exclusive_server_named().auto_delete(true).arguments(limited()).finish();
        let declared = line.channel.queue_declare(arguments).await;
        let (queue, ..) = line.done(declared)?.ok_or("has made no queue")?;
        for key in keys {
            let bound = line.channel.queue_bind(QueueBindArguments::new(&queue, exchange, key)).await;
            line.done(bound)?;
        }
        line.channel.basic_qos(BasicQosArguments::new(0, AT_ONCE, false)).await.map_err(said)?;
        let consumed = line.channel.basic_consume_rx(BasicConsumeArguments::new(&queue, "allot")).await;
        let (_, messages) = line.done(consumed)?;
        Ok(Self { line, messages })
    }

    /// Waits for the next message. Cancel-safe: no message is lost.
    pub async fn next(&mut self) -> Result<Message, String> {
        loop {
            tokio::select! {
                message = self.messages.recv() => {
                    let message = message.ok_or(ENDED)?;
                    let tag = message.deliver.map(|deliver| deliver.delivery_tag()).unwrap_or_default();
                    return Ok(Message { tag, body: message.content.unwrap_or_default() });
                }
                said = self.line.answers.recv() => {
                    let Some(Answer::Closed { reason, .. }) = said else { return Err(ENDED.to_owned()) };
                    return Err(reason);
                }
                () = tokio::time::sleep(CHECK) => if !self.line.is_open() {
                    return Err(ENDED.to_owned());
                }
            }
        }
    }

    /// Acknowledges the message, so that the broker can send another one.
    pub async fn acknowledge(&self, message: &Message) -> Result<(), String> {
        self.line.channel.basic_ack(BasicAckArguments::new(message.tag, false)).await.map_err(said)
    }
}

/// Arguments for declaring the queue.
fn limited() -> FieldTable {
    let mut arguments = FieldTable::new();
    // Never fails: the name is short enough.
    if let Ok(name) = ShortStr::try_from("x-max-length") {
        arguments.insert(name, FieldValue::I(WAITING));
    }
    arguments
}
