//! A connection to a broker that says of each message whether it has it.

use std::collections::BTreeSet;

use amqprs::callbacks::{ChannelCallback, ConnectionCallback};
use amqprs::channel::{
    BasicPublishArguments, Channel, ConfirmSelectArguments, ExchangeDeclareArguments, QueueBindArguments,
    QueueDeclareArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::error::Error;
use amqprs::tls::TlsAdaptor;
use amqprs::{
    Ack, BasicProperties, Cancel, Close, CloseChannel, DELIVERY_MODE_PERSISTENT, FieldTable, Nack, Return,
    ShortStr,
};
use async_trait::async_trait;
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::transport_url::Broker;

/// The most bytes of a name, as AMQP has it: of a virtual host, an exchange, a queue.
pub(super) const LONGEST_NAME: usize = 255;

/// What the broker says is read at once; the rest of a list that nobody reads is left out.
const ANSWERS: usize = 16;

/// What the library says where the other side has ended the connection.
const ENDS: [&str; 3] = ["peer shutdown", "Connection reset", "Broken pipe"];

/// How queues that do not exist yet are made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queues {
    /// Whether they outlive a restart of their broker.
    pub durable: bool,
    /// Whether several brokers have them; such queues are always durable.
    pub quorum: bool,
}

/// A queue of an exchange, by the key of the messages that it gets, which is its name as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    pub exchange: &'a str,
    pub queue: &'a str,
}

/// What a broker says by itself.
#[derive(Debug)]
enum Answer {
    Taken,
    NotTaken,
    /// There is no queue for it.
    Returned,
    Closed(String),
}

/// An open channel to a broker.
pub(super) struct Session {
    /// It and its channels are closed when they are dropped.
    connection: Connection,
    channel: Channel,
    answers: mpsc::Receiver<Answer>,
    /// Queues that were there since the channel was opened.
    declared: BTreeSet<String>,
}

impl Session {
    /// Connects and logs in.
    pub async fn open(
        broker: &Broker,
        virtual_host: &str,
        tls: Option<&TlsConnector>,
    ) -> Result<Self, String> {
        let mut arguments = OpenConnectionArguments::new(
            &broker.host,
            broker.port,
            &broker.user,
            broker.password.expose_secret(),
        );
        arguments.virtual_host(virtual_host).connection_name("allot");
        if broker.host.contains(':') {
            arguments.host(&format!("[{}]", broker.host));
        }
        if let Some(tls) = tls {
            arguments.tls_adaptor(TlsAdaptor::new(tls.clone(), broker.host.clone()));
        }
        // The library panics at some answers that no broker gives; then only this attempt has failed.
        let mut attempt = JoinSet::new();
        attempt.spawn(async move { Connection::open(&arguments).await });
        let opened = attempt.join_next().await.ok_or("nothing was done")?;
        let connection = opened.map_err(|_| "is no broker of AMQP 0-9-1")?.map_err(said)?;
        let (tell, answers) = mpsc::channel(ANSWERS);
        connection.register_callback(Told(Some(tell.clone()))).await.map_err(said)?;
        let channel = open_channel(&connection, Some(tell)).await?;
        channel.confirm_select(ConfirmSelectArguments::default()).await.map_err(said)?;
        Ok(Self { connection, channel, answers, declared: BTreeSet::new() })
    }

    /// Whether nobody has ended it, as far as is known.
    pub fn is_open(&self) -> bool {
        self.connection.is_open() && self.channel.is_open()
    }

    /// Publishes a message, and waits until the broker has it in that queue. After an error this is of no use any more.
    pub async fn publish(
        &mut self,
        route: Route<'_>,
        queues: Queues,
        id: &str,
        body: Vec<u8>,
    ) -> Result<(), String> {
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
        self.channel.basic_publish(properties, body, arguments).await.map_err(said)?;
        match self.answers.recv().await {
            Some(Answer::Taken) => Ok(()),
            Some(Answer::NotTaken) => Err("has not taken the message".to_owned()),
            Some(Answer::Returned) => Err(format!("has no queue {} any more", route.queue)),
            Some(Answer::Closed(reason)) => Err(reason),
            None => Err("has closed the connection".to_owned()),
        }
    }

    /// Makes the exchange and the queue if they are not there. Those that are may be of another kind than the settings
    /// say: whoever has made them knows why.
    async fn declare(&mut self, route: Route<'_>, queues: Queues) -> Result<(), String> {
        let Self { connection, channel, answers, .. } = self;
        let durable = queues.durable || queues.quorum;
        let exchange = ExchangeDeclareArguments::new(route.exchange, "topic");
        // A broker closes the channel of a question about what it does not have.
        let look = open_channel(connection, None).await?;
        if look.exchange_declare(exchange.clone().passive(true).finish()).await.is_err() {
            let exchange = exchange.clone().durable(durable).finish();
            done(answers, channel.exchange_declare(exchange).await)?;
        }
        let queue = QueueDeclareArguments::new(route.queue);
        let look = open_channel(connection, None).await?;
        if look.queue_declare(queue.clone().passive(true).finish()).await.is_err() {
            let queue = queue.clone().durable(durable).arguments(arguments(queues)).finish();
            done(answers, channel.queue_declare(queue).await)?;
        }
        let binding = QueueBindArguments::new(route.queue, route.exchange, route.queue);
        done(answers, channel.queue_bind(binding).await)
    }
}

async fn open_channel(
    connection: &Connection,
    tell: Option<mpsc::Sender<Answer>>,
) -> Result<Channel, String> {
    let channel = connection.open_channel(None).await.map_err(said)?;
    channel.register_callback(Told(tell)).await.map_err(said)?;
    Ok(channel)
}

/// What a queue is made with.
fn arguments(queues: Queues) -> FieldTable {
    let mut arguments = FieldTable::new();
    // The name is short enough, so this is always so.
    if let (true, Ok(name)) = (queues.quorum, ShortStr::try_from("x-queue-type")) {
        arguments.insert(name, "quorum".into());
    }
    arguments
}

/// With the broker's own words, if it refused.
fn done<T>(answers: &mut mpsc::Receiver<Answer>, result: Result<T, Error>) -> Result<(), String> {
    result.map(drop).map_err(|error| match answers.try_recv() {
        Ok(Answer::Closed(reason)) => reason,
        _ => said(error),
    })
}

fn said(error: Error) -> String {
    match error {
        // Brokers say nothing to who may not come in.
        Error::NetworkError(text) if ENDS.iter().any(|end| text.contains(end)) => {
            format!("has closed the connection ({text}): are user, password and virtual host right?")
        }
        Error::NetworkError(text) => format!("cannot be reached: {text}"),
        error => format!("has failed: {error}"),
    }
}

/// Passes on what a broker says.
struct Told(Option<mpsc::Sender<Answer>>);

impl Told {
    async fn tell(&self, answer: Answer) {
        if let Some(tell) = &self.0 {
            // Whoever waited may have given up.
            let _ = tell.send(answer).await;
        }
    }
}

#[async_trait]
impl ConnectionCallback for Told {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        self.tell(Answer::Closed(format!("closes the connection: {}", close.reply_text()))).await;
        Ok(())
    }

    async fn blocked(&mut self, _: &Connection, reason: String) {
        // It confirms nothing meanwhile, so publishing is given up in time.
        tracing::warn!(reason, "message bus takes no messages");
    }

    async fn unblocked(&mut self, _: &Connection) {}

    async fn secret_updated(&mut self, _: &Connection) {}
}

#[async_trait]
impl ChannelCallback for Told {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        self.tell(Answer::Closed(format!("refuses: {}", close.reply_text()))).await;
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, _: Cancel) -> Result<(), Error> {
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, Error> {
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, _: Ack) {
        self.tell(Answer::Taken).await;
    }

    async fn publish_nack(&mut self, _: &Channel, _: Nack) {
        self.tell(Answer::NotTaken).await;
    }

    async fn publish_return(&mut self, _: &Channel, _: Return, _: BasicProperties, _: Vec<u8>) {
        self.tell(Answer::Returned).await;
    }
}
