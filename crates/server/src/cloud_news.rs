//! Notifications of the cloud's own services on its message bus. The hosts that they concern are observed
//! ahead of schedule.
//!
//! If several services share a store, each of them receives all notifications, because each makes its own
//! observations. Notifications only save time: a missed one is made up for by the next regular observation,
//! and a received one decides nothing.

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

/// Priorities of notifications, the last part of their routing keys.
const PRIORITIES: [&str; 2] = ["info", "error"];

/// Minimum interval between observations caused by notifications, however many arrive.
const PACE: Duration = Duration::from_secs(1);

/// Maximum pause between attempts to connect to a broker.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Subscription to notifications of the cloud's services.
#[derive(Debug)]
pub(crate) struct CloudNews {
    bus: MessageBus,
    exchange: String,
    keys: Vec<String>,
    patience: Duration,
    first_pause: Duration,
}

impl CloudNews {
    /// `None` if the settings have no topics to listen to.
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

    /// Receives notifications forever. Reconnects after errors.
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

    /// Receives notifications until an error. `read` returns the compute services that a message concerns.
    /// `connected` is called after the connection is open.
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
