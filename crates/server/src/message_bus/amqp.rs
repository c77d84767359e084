//! Connections to a broker, and its asynchronous answers.

use amqprs::callbacks::{ChannelCallback, ConnectionCallback};
use amqprs::channel::Channel;
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::error::Error;
use amqprs::tls::TlsAdaptor;
use amqprs::{Ack, BasicProperties, Cancel, Close, CloseChannel, Nack, Return};
use async_trait::async_trait;
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::transport_url::Broker;

/// Capacity of the queue for a broker's answers, which are normally read at once.
const ANSWERS: usize = 16;

/// Error texts of the library if the broker has closed the connection.
const ENDS: [&str; 3] = ["peer shutdown", "Connection reset", "Broken pipe"];

/// A broker's asynchronous answer.
#[derive(Debug)]
pub(super) enum Answer {
    Taken,
    NotTaken,
    /// No queue matches the message.
    Returned,
    Closed {
        /// AMQP reply code.
        code: u16,
        reason: String,
    },
}

/// A broker's answers in order of arrival.
pub(super) type Answers = mpsc::Receiver<Answer>;

/// A connection with one channel.
pub(super) struct Line {
    /// Dropping it closes it and its channels.
    pub connection: Connection,
    pub channel: Channel,
    pub answers: Answers,
}

impl Line {
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
        // The library panics at some responses that no real broker sends. In a task of its own, a panic fails
        // only this attempt.
        let mut attempt = JoinSet::new();
        attempt.spawn(async move { Connection::open(&arguments).await });
        let opened = attempt.join_next().await.ok_or("nothing was done")?;
        let connection = opened.map_err(|_| "is no broker of AMQP 0-9-1")?.map_err(said)?;
        let (tell, answers) = mpsc::channel(ANSWERS);
        connection.register_callback(Told(Some(tell.clone()))).await.map_err(said)?;
        let channel = open_channel(&connection, Some(tell)).await?;
        Ok(Self { connection, channel, answers })
    }

    /// Whether connection and channel are open, as far as is known.
    pub fn is_open(&self) -> bool {
        self.connection.is_open() && self.channel.is_open()
    }

    /// A channel for one query. The broker closes it if the query is about an object that doesn't exist.
    pub async fn channel_for_a_question(&self) -> Result<Channel, String> {
        open_channel(&self.connection, None).await
    }

    /// Replaces the error of a failed operation by the broker's own reason, if it has given one.
    pub fn done<T>(&mut self, result: Result<T, Error>) -> Result<T, String> {
        result.map_err(|error| match self.answers.try_recv() {
            Ok(Answer::Closed { reason, .. }) => reason,
            _ => said(error),
        })
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

pub(super) fn said(error: Error) -> String {
    match error {
        // After a failed login, brokers close the connection without a reason.
        Error::NetworkError(text) if ENDS.iter().any(|end| text.contains(end)) => {
            format!("has closed the connection ({text}): are user, password and virtual host right?")
        }
        Error::NetworkError(text) => format!("cannot be reached: {text}"),
        error => format!("has failed: {error}"),
    }
}

/// Forwards a broker's answers.
struct Told(Option<mpsc::Sender<Answer>>);

impl Told {
    async fn tell(&self, answer: Answer) {
        if let Some(tell) = &self.0 {
            // The receiver may have given up.
            let _ = tell.send(answer).await;
        }
    }
}

#[async_trait]
impl ConnectionCallback for Told {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        let reason = format!("closes the connection: {}", close.reply_text());
        self.tell(Answer::Closed { code: close.reply_code(), reason }).await;
        Ok(())
    }

    async fn blocked(&mut self, _: &Connection, reason: String) {
        // A blocked broker confirms nothing, so publishing runs into its time limit.
        tracing::warn!(reason, "message bus takes no messages");
    }

    async fn unblocked(&mut self, _: &Connection) {}

    async fn secret_updated(&mut self, _: &Connection) {}
}

#[async_trait]
impl ChannelCallback for Told {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        let reason = format!("refuses: {}", close.reply_text());
        self.tell(Answer::Closed { code: close.reply_code(), reason }).await;
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, _: Cancel) -> Result<(), Error> {
        self.tell(Answer::Closed { code: 0, reason: "has deleted the queue".to_owned() }).await;
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
