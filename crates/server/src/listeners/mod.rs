//! Delivers notifications to listeners: a web hook, a program and a message bus. Each listener gets them
//! independently, in order, at least once.
//!
//! The store has each listener's position, which advances when the listener has accepted a notification. So
//! after a crash, a lost response or an outage, the notification is sent again under the same identifier, and
//! none is skipped. The backlog of a listener that accepts nothing is in the store and not in memory. A
//! notification that the listener rejects by itself, as too long for example, is skipped after [`ATTEMPTS`],
//! so that it doesn't block later ones. If several services share a store, one of them delivers.
//!
//! Consumers on a message bus meter resources, so it also gets notifications for meters, and samples every
//! half hour.

mod exec;
mod listener;
mod message_bus;
mod webhook;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use ambient::{Stopwatch, unusable_program};
use futures::FutureExt as _;
use futures::future::join_all;
use jiff::SignedDuration;
use leases::project::{ProjectId, UserId};
use leases::text::quoted;
use service::{Caller, Service, is_for_meters};
use store::Notification;
use tokio::sync::watch;

use self::exec::Exec;
pub(crate) use self::listener::Listener;
use self::listener::TellError;
use self::message_bus::Publisher;
use self::webhook::Webhook;
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::metrics::{Metrics, Push};

/// Names of listeners in the store and in metrics.
pub(crate) const NAMES: [&str; 3] = [webhook::NAME, exec::NAME, message_bus::NAME];

/// Name of the position of samples in the store, next to the positions of listeners.
const SAMPLES: &str = "samples";

/// Term for which one of several services that share a store delivers. Longer than the time limit of any
/// listener.
const TERM: SignedDuration = SignedDuration::from_mins(2);

/// Interval at which the other services check whether it is their turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum number of notifications read from the store at once.
const BATCH: u32 = 100;

/// Maximum pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Number of attempts to deliver a notification that the listener rejects. Counted in memory: a restart, or
/// another service that takes over, resets the count.
const ATTEMPTS: u32 = 3;

/// Position of a listener, and its rejections.
#[derive(Default)]
struct Progress {
    told: Option<u64>,
    /// Position of samples.
    sampled: Option<u64>,
    samples_due: bool,
    /// Number of the last rejected notification, and how often it was rejected.
    rejected: (u64, u32),
}

impl Progress {
    /// Counts a rejection. Returns whether it was the last attempt.
    fn reject(&mut self, number: u64) -> bool {
        let count = if self.rejected.0 == number { self.rejected.1.saturating_add(1) } else { 1 };
        self.rejected = (number, count);
        count >= ATTEMPTS
    }
}

/// Creates the configured listeners without connecting to them.
pub(crate) fn of(config: &Config) -> Result<Vec<Box<dyn Listener>>, ConfigError> {
    let mut listeners: Vec<Box<dyn Listener>> = Vec::new();
    if let Some(config) = &config.webhook {
        listeners.push(Box::new(Webhook::new(config)?));
    }
    if let Some(config) = &config.exec {
        listeners.push(Box::new(Exec::new(config)));
    }
    if let Some(config) = &config.message_bus {
        listeners.extend(Publisher::new(config)?.map(|publisher| Box::new(publisher) as Box<dyn Listener>));
    }
    Ok(listeners)
}

/// Errors in the settings of each listener.
pub(crate) fn mistakes(config: &Config) -> Vec<ConfigError> {
    let webhook = config.webhook.as_ref().map(Webhook::new).transpose().err();
    let publisher = config.message_bus.as_deref().map(Publisher::new).transpose().err();
    let program = config.exec.as_ref().map(|config| &config.program).and_then(|program| {
        let reason = unusable_program(program)?;
        Some(ConfigError::for_setting("notifications.exec", format!("{program}: {reason}")))
    });
    [webhook, publisher, program].into_iter().flatten().collect()
}

/// Delivers notifications to one listener forever.
async fn tell_all(listener: &dyn Listener, service: &Service, metrics: &Metrics) {
    let mut pause = listener.first_pause();
    let mut progress = Progress::default();
    loop {
        let told = (progress.told, progress.sampled);
        let next =
            AssertUnwindSafe(tell_next(listener, service, metrics, &mut progress)).catch_unwind().await;
        let outcome = next.unwrap_or(Err(TellError::Panic));
        // After any progress the pause is short again, regardless of how many notifications failed or were
        // skipped before.
        if outcome.is_ok() || (progress.told, progress.sampled) != told {
            pause = listener.first_pause();
        }
        if let Err(error) = outcome {
            metrics.pushed(listener.name(), Push::Failed);
            let (listener, seconds) = (listener.name(), pause.as_secs_f64());
            tracing::warn!(listener, %error, seconds, "notification not delivered, retrying");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Waits for notifications and delivers them, if this service leads.
async fn tell_next(
    listener: &dyn Listener,
    service: &Service,
    metrics: &Metrics,
    progress: &mut Progress,
) -> Result<(), TellError> {
    if !service.notifications().lead(listener.name(), TERM).await? {
        progress.told = None;
        progress.sampled = None;
        tokio::time::sleep(PATIENCE).await;
        return Ok(());
    }
    let last = match progress.told {
        Some(last) => last,
        None => service.notifications().delivered(listener.name()).await?,
    };
    progress.told = Some(last);
    if !progress.samples_due {
        // Shorter than the term, which must be renewed.
        let _ = tokio::time::timeout(PATIENCE, service.notifications().wait_after(None, last)).await;
    }
    let since = Stopwatch::start();
    for notification in service.notifications().after(None, last, BATCH).await? {
        if listener.is_metered() || !is_for_meters(&notification.content) {
            tell_one(listener, service, metrics, progress, &notification).await?;
        }
        progress.told = Some(notification.number);
        service.notifications().set_delivered(listener.name(), notification.number).await?;
        if since.elapsed() > PATIENCE {
            break;
        }
    }
    // Notifications come first, so that rejected samples don't delay them.
    if listener.is_metered() {
        // They remain due if this fails.
        progress.samples_due = true;
        progress.samples_due = tell_samples(listener, service, metrics, progress).await?;
    }
    Ok(())
}

/// Delivers one notification, or skips it after the last attempt.
async fn tell_one(
    listener: &dyn Listener,
    service: &Service,
    metrics: &Metrics,
    progress: &mut Progress,
    notification: &Notification,
) -> Result<(), TellError> {
    match listener.tell(notification).await {
        Ok(()) => metrics.pushed(listener.name(), Push::Delivered),
        Err(error) if error.is_rejection() && progress.reject(notification.number) => {
            record_refusal(listener, service, notification, &error).await?;
            metrics.pushed(listener.name(), Push::Refused);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Sends the next samples of this half hour. Returns whether there can be more.
async fn tell_samples(
    listener: &dyn Listener,
    service: &Service,
    metrics: &Metrics,
    progress: &mut Progress,
) -> Result<bool, TellError> {
    let last = match progress.sampled {
        Some(last) => last,
        None => service.notifications().delivered(SAMPLES).await?,
    };
    progress.sampled = Some(last);
    let Some(part) = service.notifications().samples(last).await else { return Ok(false) };
    // Delivering notifications may have used up part of the term.
    if !service.notifications().lead(listener.name(), TERM).await? {
        return Ok(false);
    }
    let since = Stopwatch::start();
    let mut reached = last;
    let mut position = part.position;
    for sample in &part.samples {
        if sample.number != reached {
            // The samples of another lease begin. After a failure, delivery resumes here.
            progress.sampled = Some(reached);
            if since.elapsed() > PATIENCE && reached != last {
                position = reached;
                break;
            }
            reached = sample.number;
        }
        tell_one(listener, service, metrics, progress, sample).await?;
    }
    service.notifications().set_delivered(SAMPLES, position).await?;
    progress.sampled = Some(position);
    Ok(true)
}

/// Records in the log and in the audit log that a notification is skipped.
async fn record_refusal(
    listener: &dyn Listener,
    service: &Service,
    notification: &Notification,
    error: &TellError,
) -> Result<(), TellError> {
    let (name, number, reason) = (listener.name(), notification.number, quoted(&error.to_string()));
    tracing::error!(
        listener = name,
        number,
        event = notification.content.event_type,
        reason,
        "notification refused"
    );
    let caller = Caller {
        user: UserId(String::new()),
        project: ProjectId(String::new()),
        request_id: String::new(),
        administrator: false,
    };
    Ok(service.audit().note(&caller, "notification.refuse", &format!("{name} {number}: {reason}")).await?)
}

/// Delivers to all listeners until `stop` becomes true. A delivery under way at that moment is abandoned, and
/// repeated after the next start.
pub(crate) async fn push(
    listeners: &[Box<dyn Listener>],
    service: &Service,
    metrics: &Metrics,
    stop: watch::Receiver<bool>,
) {
    join_all(listeners.iter().map(|listener| {
        let mut stop = stop.clone();
        async move {
            tokio::select! {
                () = tell_all(listener.as_ref(), service, metrics) => {}
                // A dropped sender also means stop.
                _ = stop.wait_for(|stop| *stop) => {}
            }
            // Gives up the lead, so that another service can take over at once. If this fails, it takes over
            // at the end of the term.
            let _ = service.notifications().lead(listener.name(), SignedDuration::ZERO).await;
        }
    }))
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use fleet::simulated::{Layout, Model};
    use jiff::Timestamp;
    use leases::terms::{HostsTerms, ReservationTerms, Terms};
    use leases::window::Window;
    use reqwest::StatusCode;
    use service::{NewLease, Settings};
    use simulation::{Setup, World};
    use store::Wording;
    use tokio::sync::mpsc;

    use super::*;
    use crate::connections::Places;

    /// Panics at the first notification.
    #[derive(Debug)]
    struct Clumsy {
        panicked: Mutex<bool>,
        told: mpsc::UnboundedSender<u64>,
    }

    #[async_trait]
    impl Listener for Clumsy {
        fn name(&self) -> &'static str {
            NAMES[0]
        }

        fn first_pause(&self) -> Duration {
            Duration::from_millis(1)
        }

        async fn tell(&self, notification: &Notification) -> Result<(), TellError> {
            let panicked = std::mem::replace(&mut *self.panicked.lock().expect("no panic"), true);
            assert!(panicked, "a listener panics");
            let _ = self.told.send(notification.number);
            Ok(())
        }
    }

    /// Sends the type of each notification to `told`.
    #[derive(Debug)]
    struct Reader {
        name: &'static str,
        is_metered: bool,
        rejects_samples: bool,
        told: mpsc::UnboundedSender<String>,
    }

    #[async_trait]
    impl Listener for Reader {
        fn name(&self) -> &'static str {
            self.name
        }

        fn first_pause(&self) -> Duration {
            Duration::from_millis(1)
        }

        fn is_metered(&self) -> bool {
            self.is_metered
        }

        async fn tell(&self, notification: &Notification) -> Result<(), TellError> {
            let event_type = &notification.content.event_type;
            let _ = self.told.send(event_type.clone());
            if self.rejects_samples && event_type.ends_with(".exists") {
                return Err(TellError::Refused(StatusCode::BAD_REQUEST));
            }
            Ok(())
        }
    }

    fn metered() -> Settings {
        Settings { metered: true, ..Settings::default() }
    }

    async fn world(hosts: u32, settings: Settings) -> World {
        let layout = Layout::uniform(1, hosts, &Model::of_size(16, 65_536, 1000));
        let setup = Setup {
            seed: 1,
            begins: Timestamp::UNIX_EPOCH,
            layout: layout.clone(),
            settings,
            enforcer: None,
        };
        let world = World::new(setup, |fleet| fleet).await.expect("an empty store");
        world.take_on(&layout).await.expect("taken on");
        world
    }

    /// Creates a lease of one hour that starts in an hour.
    async fn make_lease(world: &World) {
        let now = world.now();
        let hour = SignedDuration::from_hours(1);
        let window = Window::new(now + hour, now + hour * 2).expect("forwards");
        let hosts = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
        let terms = Terms::new(window, None, vec![hosts]).expect("terms");
        let lease = NewLease {
            asked_at: now,
            name: "lease".to_owned(),
            terms,
            wording: vec![Wording::default()],
            end_action: None,
            waits: false,
        };
        world.service.leases().create(&simulation::caller("p"), lease, None).await.expect("free");
    }

    #[tokio::test]
    async fn a_listener_that_panics_is_told_again() {
        let world = world(1, Settings::default()).await;
        make_lease(&world).await;
        let metrics = Metrics::new(&world.service, &Places::new(1, 1), &NAMES);
        let (tell, mut told) = mpsc::unbounded_channel();
        let listeners: [Box<dyn Listener>; 1] =
            [Box::new(Clumsy { panicked: Mutex::new(false), told: tell })];
        let (stop, stopped) = watch::channel(false);
        let test = async {
            assert!(told.recv().await.is_some());
            stop.send_replace(true);
        };
        tokio::join!(push(&listeners, &world.service, &metrics, stopped), test);
    }

    #[tokio::test]
    async fn only_a_metered_listener_is_told_of_reservations_and_each_sample_is_sent_once() {
        let mut world = world(1, metered()).await;
        make_lease(&world).await;
        world.run_until(Timestamp::UNIX_EPOCH + SignedDuration::from_mins(91)).await;
        let service = world.service.clone();
        let metrics = Metrics::new(&service, &Places::new(1, 1), &NAMES);
        let (tell_plain, mut plain) = mpsc::unbounded_channel();
        let (tell_metered, mut metered) = mpsc::unbounded_channel();
        let listeners: [Box<dyn Listener>; 2] = [
            Box::new(Reader { name: NAMES[0], is_metered: false, rejects_samples: false, told: tell_plain }),
            Box::new(Reader { name: NAMES[2], is_metered: true, rejects_samples: false, told: tell_metered }),
        ];
        let mut after = 0;
        for sample in [Some("blazar.reservation.exists"), None] {
            let stored = service.notifications().after(None, after, BATCH).await.expect("works");
            after = stored.last().expect("some").number;
            let (stop, stopped) = watch::channel(false);
            let test = async {
                for Notification { content, .. } in &stored {
                    if !is_for_meters(content) {
                        assert_eq!(plain.recv().await.as_ref(), Some(&content.event_type));
                    }
                    assert_eq!(metered.recv().await.as_ref(), Some(&content.event_type));
                }
                if let Some(sample) = sample {
                    assert_eq!(metered.recv().await.as_deref(), Some(sample));
                }
                // Positions are stored after delivery.
                let delivered = async |name| service.notifications().delivered(name).await.expect("works");
                while delivered(NAMES[0]).await < after || delivered(NAMES[2]).await < after {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                while delivered(SAMPLES).await == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                stop.send_replace(true);
            };
            tokio::join!(push(&listeners, &service, &metrics, stopped), test);
            assert!(plain.try_recv().is_err() && metered.try_recv().is_err());
            if sample.is_some() {
                make_lease(&world).await;
            }
        }
        let position = service.notifications().delivered(SAMPLES).await.expect("works");
        assert!(service.notifications().samples(position).await.is_none(), "all of this half hour");
    }

    #[tokio::test]
    async fn samples_that_are_rejected_three_times_are_passed_over() {
        let mut world = world(2, metered()).await;
        make_lease(&world).await;
        make_lease(&world).await;
        world.run_until(Timestamp::UNIX_EPOCH + SignedDuration::from_mins(91)).await;
        let service = world.service.clone();
        let metrics = Metrics::new(&service, &Places::new(1, 1), &NAMES);
        let (tell, mut told) = mpsc::unbounded_channel();
        let listeners: [Box<dyn Listener>; 1] =
            [Box::new(Reader { name: NAMES[2], is_metered: true, rejects_samples: true, told: tell })];
        let (stop, stopped) = watch::channel(false);
        let test = async {
            while service.notifications().delivered(SAMPLES).await.expect("works") == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.send_replace(true);
        };
        tokio::join!(push(&listeners, &service, &metrics, stopped), test);
        let mut attempts = 0;
        while let Ok(event_type) = told.try_recv() {
            attempts += u32::from(event_type.ends_with(".exists"));
        }
        assert_eq!(attempts, 2 * ATTEMPTS);
    }
}
