//! Options for the reservations of a lease.

use std::collections::BTreeMap;

use api::v1::body::ReservationCreate;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::amount::Amount;
use super::suiting::Suiting;
use crate::client::sizes::{gibibytes, mebibytes};
use crate::client::{ClientError, requirement};

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Reservations")]
pub(super) struct Reservations {
    /// Number of whole hosts, or a minimum and a maximum (2-4)
    #[arg(long, value_name = "N[-M]")]
    hosts: Option<Amount>,
    /// Requirements on hosts: 'rack=r1 and vcpus>=16', or the service's JSON `["==", "$rack", "r1"]`
    #[arg(long = "where", value_name = "EXPRESSION", default_value = "")]
    requirement: String,
    /// Action for instances on hosts before the end
    #[arg(long, value_enum, value_name = "ACTION", requires = "hosts")]
    before_end: Option<BeforeEnd>,
    /// Number of instances; with --vcpus, --memory and --disk each, or with --flavor
    #[arg(long, value_name = "N")]
    instances: Option<u32>,
    /// Virtual CPUs of each instance
    #[arg(long, value_name = "N", requires = "instances", conflicts_with = "flavor")]
    vcpus: Option<u32>,
    /// Memory of each instance: 4096, 512M, 4G
    #[arg(long, value_name = "MIB", value_parser = mebibytes, requires = "instances", conflicts_with = "flavor")]
    memory: Option<u32>,
    /// Disk of each instance: 20, 20G, 1T
    #[arg(long, value_name = "GIB", value_parser = gibibytes, requires = "instances", conflicts_with = "flavor")]
    disk: Option<u32>,
    /// Placement of the instances
    #[arg(long, value_enum, value_name = "WHERE", requires = "instances", conflicts_with = "flavor")]
    affinity: Option<Affinity>,
    /// ID of the flavor of each instance
    #[arg(long, value_name = "FLAVOR", requires = "instances")]
    flavor: Option<String>,
    /// Number of addresses of a --network
    #[arg(long, value_name = "N", requires = "network")]
    floating_ips: Option<u32>,
    /// ID of the network of the addresses
    #[arg(long, value_name = "NETWORK", requires = "floating_ips")]
    network: Option<String>,
    /// Include this address; can be repeated
    #[arg(long, value_name = "IP", requires = "floating_ips")]
    address: Vec<std::net::IpAddr>,
    /// Any reservation as the service's JSON; can be repeated
    #[arg(long, value_name = "JSON", value_parser = document)]
    reservation: Vec<Value>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BeforeEnd {
    /// The service's default
    Default,
    /// Take an image of each
    Snapshot,
    /// Do nothing
    Nothing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Affinity {
    /// On any hosts
    Any,
    /// All on one host
    Together,
    /// Each on a different host
    Apart,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Reserved {
    Described(Box<ReservationCreate>),
    /// As the user wrote it. The service validates it.
    Given(Value),
}

impl Reservations {
    /// As the service has it.
    pub(super) fn wire(&self, suiting: &Suiting) -> Result<Vec<Reserved>, ClientError> {
        let requirement = requirement::parse(&self.requirement)?;
        let heeded = self.hosts.is_some() || (self.instances.is_some() && self.flavor.is_none());
        if !requirement.is_empty() && !heeded {
            return Err(ClientError::Usage(
                "--where needs --hosts, or --instances without a --flavor".to_owned(),
            ));
        }
        if suiting.survive.is_some() && self.hosts.is_none() && self.instances.is_none() {
            return Err(ClientError::Usage("--survive needs --hosts or --instances".to_owned()));
        }
        if suiting.is_of_hosts() && self.hosts.is_none() {
            return Err(ClientError::Usage("requirements on whole hosts need --hosts".to_owned()));
        }
        let hosts = self.hosts.map(|amount| {
            let before_end = self.before_end.map(BeforeEnd::wire);
            suiting.hosts(amount, requirement.clone(), before_end.map(str::to_owned))
        });
        let instances =
            self.instances.map(|amount| self.wire_instances(amount, &requirement, suiting)).transpose()?;
        let addresses = self.floating_ips.zip(self.network.as_ref()).map(|(amount, network)| {
            let required_floatingips = self.address.iter().map(ToString::to_string).collect();
            ReservationCreate::FloatingIps { network_id: network.clone(), amount, required_floatingips }
        });
        let described = [hosts, instances, addresses].into_iter().flatten();
        let described = described.map(|one| Reserved::Described(Box::new(one)));
        Ok(described.chain(self.reservation.iter().cloned().map(Reserved::Given)).collect())
    }

    fn wire_instances(
        &self,
        amount: u32,
        requirement: &str,
        suiting: &Suiting,
    ) -> Result<ReservationCreate, ClientError> {
        let survives = suiting.survive.clone();
        if let Some(flavor_id) = self.flavor.clone() {
            return Ok(ReservationCreate::Flavor { flavor_id, amount, affinity: None, survives });
        }
        let (Some(vcpus), Some(memory_mb), Some(disk_gb)) = (self.vcpus, self.memory, self.disk) else {
            return Err(ClientError::Usage(
                "--instances needs --vcpus, --memory and --disk, or a --flavor".to_owned(),
            ));
        };
        let affinity = match self.affinity {
            None | Some(Affinity::Any) => None,
            Some(Affinity::Together) => Some(true),
            Some(Affinity::Apart) => Some(false),
        };
        let resource_properties = Some(requirement.to_owned());
        Ok(ReservationCreate::Instances {
            vcpus,
            memory_mb,
            disk_gb,
            ephemeral_gb: None,
            amount,
            affinity,
            resource_properties,
            extra_specs: BTreeMap::new(),
            survives,
        })
    }
}

impl BeforeEnd {
    fn wire(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Snapshot => "snapshot",
            Self::Nothing => "",
        }
    }
}

fn document(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))
}
