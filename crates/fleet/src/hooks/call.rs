//! Calls hooks: runs a program or sends a request. A hook is trusted neither to end nor to limit its output.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ambient::{
    ChildCommand, Clock as _, SystemClock, inherited_environment, keep_last, last_line, run_program,
};
use jiff::{SignedDuration, Timestamp};
use leases::host::FloatingIp;
use leases::ids::{FloatingIpId, GuestId, LeaseId, ReservationId};
use leases::instance::Instance;
use leases::plan::{Action, GuestSize};
use leases::preemption::EndState;
use leases::terms::{Affinity, ReservationTerms};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use serde::Serialize;
use serde_json::Value;

use super::config::{HookConfig, HooksError, Moment, SecretHeader};
use crate::{FleetError, HookedCall, LeaseFacts, Machine, OperationKey};

/// Maximum length of an environment variable for a program, in bytes. The kernel can't start a program with a
/// variable of 128 KiB. Longer texts are in the JSON only.
const LONGEST_VARIABLE: usize = 64 * 1024;

/// Hooks that a call can run, one after another.
fn moments(call: HookedCall) -> &'static [Moment] {
    match call {
        HookedCall::Adopt => &[Moment::Check, Moment::OnAdopt],
        HookedCall::Abandon => &[Moment::OnAbandon],
        HookedCall::Step(action) => match action {
            Action::Fence(..) => &[Moment::OnFence],
            Action::Unfence(..) => &[Moment::OnRelease, Moment::OnFinish, Moment::OnUnfence],
            Action::Verify(..) => &[Moment::OnFence, Moment::OnRelease, Moment::OnFinish, Moment::Check],
            Action::Hold(..) => &[Moment::OnPrepare, Moment::OnHold],
            Action::Release(..) => &[Moment::OnRelease, Moment::OnFinish],
            Action::Grant(..) => &[Moment::OnPrepare, Moment::OnGrant],
            Action::Withdraw(..) => &[Moment::OnWithdraw, Moment::OnFinish],
            Action::Assign(..) => &[Moment::OnPrepare, Moment::OnAssign],
            Action::Unassign(..) => &[Moment::OnUnassign, Moment::OnFinish],
            Action::StartGuest(..) => &[Moment::OnStart],
            Action::StopGuest(..) => &[Moment::OnStop],
            Action::ResumeGuest(..) => &[Moment::OnResume],
            Action::MoveGuest(..) => &[Moment::OnMigrate],
            Action::DeleteGuest(..) | Action::DestroyGuest(..) => &[Moment::OnDelete],
            Action::Snapshot(..) => &[Moment::OnSnapshot],
            Action::PowerOn(..) => &[Moment::OnPowerOn],
            Action::PowerOff(..) => &[Moment::Check, Moment::OnPowerOff],
            Action::SetRatios(..) | Action::Prepare(..) | Action::Finish(..) => &[],
        },
    }
}

/// The configured hooks and the running calls.
#[derive(Debug)]
pub(super) struct Hooks {
    by_moment: BTreeMap<Moment, Hook>,
    /// Names of additional variables for programs.
    pass_environment: Vec<String>,
    running: Mutex<BTreeMap<u64, RunningHook>>,
}

/// A hook that was called and hasn't returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningHook {
    /// Moment, and host if there is one: `on_hold of node1`.
    pub name: String,
    /// End of the hook's time limit.
    pub until: Timestamp,
}

/// Lists a hook as running until dropped.
struct Running<'a> {
    hooks: &'a Hooks,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.hooks.running().remove(&self.number);
    }
}

#[derive(Debug)]
struct Hook {
    kind: Kind,
    time_limit: Duration,
}

#[derive(Debug)]
pub(super) enum Kind {
    Exec { program: String, arguments: Vec<String> },
    Webhook { client: Client, url: Url, secret: Option<SecretHeader> },
}

/// Data that a hook receives.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Subject {
    pub(super) host: Option<u64>,
    pub(super) host_name: Option<String>,
    pub(super) reservation: Option<String>,
    pub(super) lease: Option<String>,
    pub(super) lease_name: Option<String>,
    pub(super) resource_type: Option<&'static str>,
    pub(super) amount: Option<u32>,
    pub(super) affinity: Option<bool>,
    pub(super) guest: Option<String>,
    pub(super) guest_name: Option<String>,
    pub(super) guest_kind: Option<&'static str>,
    pub(super) backfills: Option<String>,
    pub(super) end_state: Option<&'static str>,
    pub(super) resumes: Option<String>,
    pub(super) project: Option<String>,
    pub(super) user: Option<String>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) properties: Option<Value>,
    pub(super) vcpus: Option<u64>,
    pub(super) memory_mib: Option<u64>,
    pub(super) disk_gib: Option<u64>,
    pub(super) to_host: Option<u64>,
    pub(super) to_host_name: Option<String>,
    pub(super) floating_ip: Option<String>,
    pub(super) address: Option<IpAddr>,
    pub(super) network: Option<String>,
    pub(super) slots: Option<u32>,
    pub(super) operation: Option<String>,
    pub(super) fence: Option<u64>,
}

#[derive(Serialize)]
struct Told<'a> {
    moment: Moment,
    #[serde(flatten)]
    subject: &'a Subject,
}

impl Subject {
    pub(super) fn host(machine: &Machine) -> Self {
        Self { host: Some(machine.id.0), host_name: Some(machine.name.clone()), ..Self::default() }
    }

    pub(super) fn address(ip: FloatingIpId, known: Option<&FloatingIp>) -> Self {
        Self {
            floating_ip: Some(ip.to_string()),
            address: known.map(|ip| ip.address),
            network: known.map(|ip| ip.network.0.clone()),
            ..Self::default()
        }
    }

    pub(super) fn of(self, reservation: ReservationId, lease: Option<LeaseId>) -> Self {
        let lease = lease.map(|lease| lease.to_string());
        Self { reservation: Some(reservation.to_string()), lease, ..self }
    }

    pub(super) fn guest(self, guest: GuestId) -> Self {
        Self { guest: Some(guest.to_string()), ..self }
    }

    /// Sets whether the guest's state is kept after preemption.
    pub(super) fn kept(self, keep: bool) -> Self {
        Self { end_state: keep.then_some(EndState::Stop.name()), ..self }
    }

    pub(super) fn instance(self, instance: &Instance) -> Self {
        let GuestSize { vcpus, memory_mib, disk_gib } = instance.size;
        Self {
            guest_name: Some(instance.name.clone()),
            guest_kind: Some(instance.kind.name()),
            backfills: instance.backfills.map(|lease| lease.to_string()),
            end_state: instance.is_kept().then_some(EndState::Stop.name()),
            resumes: instance.resumes.map(|id| id.to_string()),
            project: Some(instance.owner.project.0.clone()),
            user: Some(instance.owner.user.0.clone()),
            vcpus: Some(vcpus.into()),
            memory_mib: Some(memory_mib.into()),
            disk_gib: Some(disk_gib.into()),
            ..self.guest(instance.id)
        }
    }

    pub(super) fn to(self, machine: &Machine) -> Self {
        Self { to_host: Some(machine.id.0), to_host_name: Some(machine.name.clone()), ..self }
    }

    /// Adds the claim and facts of the lease. Must be called last: the subject can be about another lease
    /// than the claim's, if a handover to the other lease was begun. Then the facts don't apply and are left
    /// out.
    pub(super) fn under(self, key: &OperationKey) -> Self {
        let lease_of_key = key.lease.map(|lease| lease.to_string());
        let own = self.lease.is_none() || self.lease == lease_of_key;
        let (operation, fence) = (Some(key.key.clone()), Some(key.fence));
        let under = Self { lease: self.lease.or(lease_of_key), operation, fence, ..self };
        match key.facts.as_deref().filter(|_| own) {
            Some(facts) => under.with(facts),
            None => under,
        }
    }

    /// Adds facts of the lease. Project, user and size of an instance take precedence.
    fn with(self, facts: &LeaseFacts) -> Self {
        let about = |id: &ReservationId| self.reservation.as_ref() == Some(&id.to_string());
        let terms = facts.reservation.as_ref().filter(|(id, _)| about(id)).map(|(_, terms)| terms);
        let slots = terms.and_then(ReservationTerms::slots);
        let size = slots.as_ref().map(|slots| &slots.size);
        Self {
            lease_name: Some(facts.name.clone()),
            project: self.project.or_else(|| Some(facts.project.0.clone())),
            user: self.user.or_else(|| Some(facts.user.0.clone())),
            start: Some(in_seconds(facts.window.start())),
            end: Some(in_seconds(facts.window.end())),
            properties: terms.and(facts.properties.clone()),
            resource_type: terms.map(ReservationTerms::resource_type),
            amount: terms.map(ReservationTerms::number),
            affinity: slots.as_ref().and_then(|slots| match slots.affinity {
                Affinity::Any => None,
                Affinity::OneHost => Some(true),
                Affinity::DistinctHosts => Some(false),
            }),
            vcpus: self.vcpus.or(size.map(|size| size.vcpus)),
            memory_mib: self.memory_mib.or(size.map(|size| size.memory_mib)),
            disk_gib: self.disk_gib.or(size.map(|size| size.disk_gib)),
            ..self
        }
    }

    /// Environment variables with the most important fields. All are set, for scripts with `set -u`. Variables
    /// of missing fields and long texts are empty.
    fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        // A variable ends at a NUL byte, and the kernel starts no program with one in a variable.
        let chosen = |text: &Option<String>| text.as_ref().map(|text| text.replace('\0', " "));
        let property = |name: &str| {
            let text = self.properties.as_ref().and_then(|properties| properties.get(name)?.as_str());
            chosen(&text.map(str::to_owned))
        };
        let variables = [
            ("ALLOT_HOST", self.host_name.clone()),
            ("ALLOT_HOST_ID", number(self.host)),
            ("ALLOT_RESERVATION", self.reservation.clone()),
            ("ALLOT_LEASE", self.lease.clone()),
            ("ALLOT_LEASE_NAME", chosen(&self.lease_name)),
            ("ALLOT_RESOURCE_TYPE", self.resource_type.map(str::to_owned)),
            ("ALLOT_AMOUNT", number(self.amount.map(u64::from))),
            ("ALLOT_AFFINITY", self.affinity.map(|affinity| affinity.to_string())),
            ("ALLOT_GUEST", self.guest.clone()),
            ("ALLOT_GUEST_NAME", chosen(&self.guest_name)),
            ("ALLOT_PROJECT", chosen(&self.project)),
            ("ALLOT_USER_ID", chosen(&self.user)),
            ("ALLOT_START", self.start.map(|start| start.to_string())),
            ("ALLOT_END", self.end.map(|end| end.to_string())),
            ("ALLOT_HYPERVISOR_PROPERTIES", property("hypervisor_properties")),
            ("ALLOT_RESOURCE_PROPERTIES", property("resource_properties")),
            ("ALLOT_VCPUS", number(self.vcpus)),
            ("ALLOT_MEMORY_MIB", number(self.memory_mib)),
            ("ALLOT_DISK_GIB", number(self.disk_gib)),
            ("ALLOT_TO_HOST", self.to_host_name.clone()),
            ("ALLOT_TO_HOST_ID", number(self.to_host)),
            ("ALLOT_FLOATING_IP", self.floating_ip.clone()),
            ("ALLOT_ADDRESS", self.address.map(|address| address.to_string())),
            ("ALLOT_NETWORK", self.network.clone()),
            ("ALLOT_SLOTS", number(self.slots.map(u64::from))),
            ("ALLOT_OPERATION", self.operation.clone()),
            ("ALLOT_FENCE", number(self.fence)),
        ];
        let short = |value: &String| value.len() <= LONGEST_VARIABLE;
        variables.into_iter().map(move |(name, value)| (name, value.filter(short).unwrap_or_default()))
    }
}

/// The instant without fractions of a second, as programs expect dates.
fn in_seconds(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

impl Hooks {
    pub(super) fn new(
        hooks: &BTreeMap<Moment, HookConfig>,
        pass_environment: &[String],
    ) -> Result<Self, HooksError> {
        if let Some(name) = pass_environment.iter().find(|name| !can_be_passed_on(name)) {
            return Err(HooksError::Variable(name.clone()));
        }
        // Fails only if a provider was installed before, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let hook = |(moment, hook): (&Moment, &HookConfig)| {
            Ok((*moment, Hook { kind: kind(*moment, hook)?, time_limit: hook.time_limit(*moment)? }))
        };
        let by_moment = hooks.iter().map(hook).collect::<Result<_, HooksError>>()?;
        Ok(Self { by_moment, pass_environment: pass_environment.to_vec(), running: Mutex::default() })
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, RunningHook>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn running_hooks(&self) -> Vec<RunningHook> {
        self.running().values().cloned().collect()
    }

    fn note(&self, moment: Moment, subject: &Subject, limit: Duration) -> Running<'_> {
        let host = subject.host_name.as_ref().map(|host| format!(" of {host}")).unwrap_or_default();
        let limit = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
        let until = SystemClock.now().checked_add(limit).unwrap_or(Timestamp::MAX);
        let mut running = self.running();
        let number = running.last_key_value().map_or(0, |(number, _)| number + 1);
        running.insert(number, RunningHook { name: format!("{moment}{host}"), until });
        Running { hooks: self, number }
    }

    /// Additional variables of the service's environment that the configuration passes to programs.
    fn passed_on(&self) -> impl Iterator<Item = (&str, OsString)> {
        let names = self.pass_environment.iter().map(String::as_str);
        names.filter_map(|name| Some((name, std::env::var_os(name)?)))
    }

    /// Maximum duration of all hooks of a call together.
    pub(super) fn time_for(&self, call: HookedCall) -> Duration {
        moments(call).iter().filter_map(|moment| self.by_moment.get(moment)).map(|hook| hook.time_limit).sum()
    }

    pub(super) fn has(&self, moment: Moment) -> bool {
        self.by_moment.contains_key(&moment)
    }

    /// Calls the moment's hook and returns its output, which is empty if there is no hook.
    pub(super) async fn call(&self, moment: Moment, subject: &Subject) -> Result<Vec<u8>, FleetError> {
        let Some(hook) = self.by_moment.get(&moment) else { return Ok(Vec::new()) };
        let told = serde_json::to_vec(&Told { moment, subject });
        let told = told.map_err(|error| unavailable(moment, &error.to_string()))?;
        let called = async {
            match &hook.kind {
                Kind::Exec { program, arguments } => {
                    let mut child = ChildCommand::new(program, None);
                    child.command.args(arguments).env_clear();
                    child.command.envs(inherited_environment()).envs(self.passed_on());
                    child.command.env("ALLOT_MOMENT", moment.to_string()).envs(subject.variables());
                    run(program, child, &told).await
                }
                Kind::Webhook { client, url, secret } => {
                    post(client, url.clone(), secret.as_ref(), told).await
                }
            }
        };
        let _running = self.note(moment, subject, hook.time_limit);
        let Ok(answer) = tokio::time::timeout(hook.time_limit, called).await else {
            let seconds = hook.time_limit.as_secs();
            return Err(unavailable(moment, &format!("not done within {seconds} s")));
        };
        answer.map_err(|message| unavailable(moment, &message))
    }
}

/// Whether the configuration can pass a variable of the service's environment to programs.
pub(super) fn can_be_passed_on(name: &str) -> bool {
    // The service's own settings start with `ALLOT_`, including the password of the database.
    !name.is_empty() && !name.contains(['=', '\0']) && !name.starts_with("ALLOT_")
}

fn unavailable(moment: Moment, message: &str) -> FleetError {
    FleetError::Unavailable(format!("hook {moment}: {message}"))
}

pub(super) fn kind(moment: Moment, config: &HookConfig) -> Result<Kind, HooksError> {
    match (config.exec.as_deref(), &config.webhook) {
        (Some([program, arguments @ ..]), None) => {
            if config.secret_header.is_some() {
                return Err(HooksError::WebhookOnly(moment, "secret_header"));
            }
            if config.authorities_file.is_some() {
                return Err(HooksError::WebhookOnly(moment, "authorities_file"));
            }
            Ok(Kind::Exec { program: program.clone(), arguments: arguments.to_vec() })
        }
        (None, Some(url)) => {
            let wrong = |message: String| HooksError::Webhook { moment, message };
            let url: Url = url.parse().map_err(|error| wrong(format!("{url:?}: {error}")))?;
            if !["http", "https"].contains(&url.scheme()) {
                return Err(wrong(format!("{url}: give an address that begins with http:// or https://")));
            }
            if let Some(secret) = &config.secret_header
                && HeaderName::try_from(&secret.name).is_err()
            {
                return Err(wrong(format!("secret_header: {:?} is not the name of a header", secret.name)));
            }
            let client = client(config.authorities_file.as_deref()).map_err(wrong)?;
            Ok(Kind::Webhook { client, url, secret: config.secret_header.clone() })
        }
        _ => Err(HooksError::Kind(moment)),
    }
}

fn client(authorities: Option<&Path>) -> Result<Client, String> {
    // A redirect leads to a server that isn't configured and would receive the secret.
    let mut builder = Client::builder().redirect(Policy::none());
    if let Some(path) = authorities {
        let wrong = |message: String| format!("authorities_file: {}: {message}", path.display());
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| error.to_string())
}

async fn run(program: &str, command: ChildCommand, told: &[u8]) -> Result<Vec<u8>, String> {
    let output = run_program(command, told).await.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let line = output.last_line().unwrap_or_default();
    Err(format!("{program}: {}: {line}", output.status))
}

async fn post(
    client: &Client,
    url: Url,
    secret: Option<&SecretHeader>,
    told: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let mut request = client.post(url).header(CONTENT_TYPE, "application/json").body(told);
    if let Some(secret) = secret {
        let value = value_of(secret).map_err(|error| format!("{}: {error}", secret.file.display()))?;
        request = request.header(&secret.name, value);
    }
    let mut answer = request.send().await.map_err(|error| innermost(&error))?;
    let status = answer.status();
    let mut said = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| innermost(&error))? {
        keep_last(&mut said, &chunk);
    }
    if status.is_success() {
        return Ok(said);
    }
    Err(format!("{status}: {}", last_line(&said).unwrap_or_default()))
}

pub(super) fn value_of(secret: &SecretHeader) -> io::Result<HeaderValue> {
    let text = std::fs::read_to_string(&secret.file)?;
    let not_a_value = |_| io::Error::other("does not hold the value of a header");
    let mut value = HeaderValue::from_str(text.trim_end()).map_err(not_a_value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Innermost cause of an error, such as "connection refused".
fn innermost(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}
