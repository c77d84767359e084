//! What the services of a cloud say on its message bus: the hosts that it is about are looked at before it is their time.
//!
//! Every service of several hears everything, since each looks for itself. Nothing depends on it: what is not heard is
//! seen when all hosts are looked at, and what is heard decides nothing.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use service::Service;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::config::{LEAST_PAUSE, MessageBusConfig};
use crate::config_error::ConfigError;
use crate::message_bus::{MessageBus, check_names};
use crate::metrics::Metrics;

/// Notifications come with one of these priorities, which their key ends in.
const PRIORITIES: [&str; 2] = ["info", "error"];

/// How often hosts are looked at because of what was heard, however much that is.
const PACE: Duration = Duration::from_secs(1);

/// The longest pause before a broker is asked again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Where the services of a cloud publish.
#[derive(Debug)]
pub(crate) struct CloudNews {
    bus: MessageBus,
    exchange: String,
    keys: Vec<String>,
    patience: Duration,
    first_pause: Duration,
}

impl CloudNews {
    /// As the settings say; none if nothing is to be heard.
    pub fn new(config: &MessageBusConfig) -> Result<Option<Self>, ConfigError> {
        let topics = config.nova_topics.iter();
        let keys: Vec<String> =
            topics.flat_map(|topic| PRIORITIES.map(|priority| format!("{topic}.{priority}"))).collect();
        if keys.is_empty() {
            return Ok(None);
        }
        check_names("message_bus.nova_topics", &keys)?;
        check_names("message_bus.nova_exchange", [&config.nova_exchange])?;
        Ok(Some(Self {
            bus: MessageBus::new(config)?,
            exchange: config.nova_exchange.clone(),
            keys,
            patience: config.patience(),
            first_pause: config.first_pause.max(LEAST_PAUSE),
        }))
    }

    /// Hears what the services of the cloud say, forever.
    pub async fn hear_all(
        &self,
        service: &Service,
        metrics: &Metrics,
        mut read: impl FnMut(&[u8]) -> BTreeSet<String> + Send,
    ) {
        let (mut turn, mut pause) = (0_usize, self.first_pause);
        loop {
            let broker = self.bus.broker(turn);
            let heard = self.hear(turn, service, metrics, &mut read, || {
                pause = self.first_pause;
                tracing::info!(%broker, exchange = self.exchange, "hearing notifications of the cloud");
            });
            let heard = AssertUnwindSafe(heard).catch_unwind().await;
            if let Err(what) = heard.unwrap_or_else(|_| Err("internal error, see the log".to_owned())) {
                let seconds = pause.as_secs_f64();
                tracing::warn!(%broker, what, seconds, "notifications of the cloud not heard, retrying");
            }
            tokio::time::sleep(pause).await;
            (turn, pause) = (turn.wrapping_add(1), (pause * 2).min(LONGEST_PAUSE));
        }
    }

    /// Hears of hosts until something fails. `read` says which compute services a message is about;
    /// `connected` is told when a connection is there.
    async fn hear(
        &self,
        turn: usize,
        service: &Service,
        metrics: &Metrics,
        read: &mut (impl FnMut(&[u8]) -> BTreeSet<String> + Send),
        mut connected: impl FnMut(),
    ) -> Result<(), String> {
        let opened = timeout(self.patience, self.bus.hear(turn, &self.exchange, &self.keys)).await;
        let mut hearing = opened.map_err(|_| format!("has not answered in {:?}", self.patience))??;
        connected();
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut names, mut more) = (BTreeSet::new(), false);
        loop {
            tokio::select! {
                _ = pace.tick(), if more || !names.is_empty() => {
                    more = service.execution().hear_of(&std::mem::take(&mut names));
                }
                message = hearing.next() => {
                    let message = message?;
                    metrics.heard();
                    names.append(&mut read(&message.body));
                    hearing.acknowledge(&message).await?;
                }
            }
        }
    }
}
