//! Reservations in requests (API-create, API-update).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use leases::admission::{FloatingIpsChange, HostsChange, InstancesChange, TermsChange};
use leases::host::NetworkId;
use leases::lease::Reservation;
use leases::terms::{
    Affinity, BeforeEndAction, Flavor, FlavorTerms, FloatingIpsTerms, HostsTerms, InstanceExtras,
    InstanceSize, InstancesTerms, ReservationTerms,
};
use serde_json::Value;
use store::{FlavorRecord, Wording};

use super::error::RequestError;
use super::fields::{Fields, UnknownFields, amount, count, integer, list, text, word};
use super::flavor;
use super::host_properties::{failure_domain, read_properties, texts};
use super::lease_pool::pool_name;
use super::limits::NAME;
use super::requirement::read_expression;
use super::sent_back;

/// Finds a flavor that the caller may use.
pub type FindFlavor<'a> = &'a dyn Fn(&str) -> Option<FlavorRecord>;

/// Reads a reservation of a new lease. Also returns its unknown fields.
pub(crate) fn read_reservation(
    position: usize,
    value: &Value,
    flavors: FindFlavor<'_>,
) -> Result<(ReservationTerms, Wording, Option<UnknownFields>), RequestError> {
    let mut fields = Fields::entry("reservations", position, value)?;
    let resource_type = text("resource_type", fields.required("resource_type")?)?;
    fields.ignore(sent_back::read_only(&resource_type));
    let (terms, wording) = match resource_type.as_str() {
        "physical:host" => hosts(&mut fields)?,
        "virtual:instance" => instances(&mut fields)?,
        "flavor:instance" => flavor_instances(&mut fields, value, flavors)?,
        "virtual:floatingip" => floating_ips(&mut fields)?,
        _ => return Err(RequestError::ResourceType(resource_type)),
    };
    Ok((terms, wording, fields.unknown(&[])?))
}

/// Reads a reservation that is only asked about, in the form that new leases have.
///
/// # Errors
/// The same as for a reservation of a new lease.
pub fn read_asked(value: &Value, flavors: FindFlavor<'_>) -> Result<ReservationTerms, RequestError> {
    read_reservation(0, value, flavors).map(|(terms, ..)| terms)
}

/// Reads something that was reserved elsewhere, written as a request for the same. Also returns its wording.
///
/// # Errors
/// The same as for a reservation of a new lease.
pub fn read_reserved(
    value: &Value,
    flavors: FindFlavor<'_>,
) -> Result<(ReservationTerms, Wording), RequestError> {
    read_reservation(0, value, flavors).map(|(terms, wording, _)| (terms, wording))
}

fn hosts(fields: &mut Fields<'_>) -> Result<(ReservationTerms, Wording), RequestError> {
    let min = number_of_hosts("min", fields.required("min")?)?;
    let max = number_of_hosts("max", fields.required("max")?)?;
    let hypervisor = read_expression(fields.required("hypervisor_properties")?)?;
    let resource = read_expression(fields.required("resource_properties")?)?;
    let mut terms = HostsTerms::new(min, max)?;
    terms.hypervisor = hypervisor.requirement;
    terms.resource = resource.requirement;
    for property in read_properties(fields)? {
        Arc::make_mut(&mut terms.properties).apply(property);
    }
    terms.before_end = fields.given("before_end").map_or(Ok(BeforeEndAction::Default), before_end)?;
    terms.pool.name = fields.filled("pool_name").map(pool_name).transpose()?;
    let wording =
        Wording { hypervisor_properties: hypervisor.wording, resource_properties: resource.wording };
    Ok((ReservationTerms::Hosts(terms), wording))
}

/// 0 stands for all numbers below 1, since `min` and `max` share one message.
fn number_of_hosts(name: &'static str, value: &Value) -> Result<u32, RequestError> {
    let number = integer(value).ok_or_else(|| RequestError::malformed(name, "a whole number"))?;
    u32::try_from(number.max(0)).map_err(|_| RequestError::malformed(name, "less than 2^32"))
}

fn before_end(value: &Value) -> Result<BeforeEndAction, RequestError> {
    match value.as_str() {
        Some("default") => Ok(BeforeEndAction::Default),
        Some("") => Ok(BeforeEndAction::None),
        Some("snapshot") => Ok(BeforeEndAction::Snapshot),
        _ => Err(RequestError::malformed("before_end", "default, snapshot or empty")),
    }
}

fn instances(fields: &mut Fields<'_>) -> Result<(ReservationTerms, Wording), RequestError> {
    let vcpus = count("vcpus", fields.required("vcpus")?, 1)?;
    let memory_mib = count("memory_mb", fields.required("memory_mb")?, 1)?;
    let disk_gib = count("disk_gb", fields.required("disk_gb")?, 0)?;
    let amount = positive_amount(fields.required("amount")?)?;
    let affinity = affinity(fields.required("affinity")?)?;
    let resource = read_expression(fields.required("resource_properties")?)?;
    let size = InstanceSize::new(vcpus, memory_mib, disk_gib)?;
    let survives = fields.get("survives").map_or(Ok(None), failure_domain)?;
    let ephemeral_gib = ephemeral_gb(fields)?.unwrap_or(0);
    let extra_specs = extra_specs(fields)?.unwrap_or_default();
    let extras = InstanceExtras::new(&size, ephemeral_gib, extra_specs)?;
    let terms =
        InstancesTerms { size, extras, amount, affinity, requirement: resource.requirement, survives };
    let wording = Wording { hypervisor_properties: None, resource_properties: resource.wording };
    Ok((ReservationTerms::Instances(terms), wording))
}

/// Size of the second disk of instances, GiB, if the request has it.
fn ephemeral_gb(fields: &mut Fields<'_>) -> Result<Option<u32>, RequestError> {
    fields.filled("ephemeral_gb").map(|value| count("ephemeral_gb", value, 0)).transpose()
}

/// Extra specs of instances, if the request has them. Their keys follow Nova's rules.
fn extra_specs(fields: &mut Fields<'_>) -> Result<Option<BTreeMap<String, String>>, RequestError> {
    let Some(value) = fields.filled("extra_specs") else { return Ok(None) };
    let specs: BTreeMap<String, String> = texts("extra_specs", value)?.into_iter().collect();
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | ' ');
    if specs.keys().all(|key| (1..=NAME).contains(&key.len()) && key.chars().all(letter)) {
        return Ok(Some(specs));
    }
    let expected = "an object whose keys are 1 to 255 letters, digits, '-', '_', ':', '.' or blanks";
    Err(RequestError::malformed("extra_specs", expected))
}

fn positive_amount(value: &Value) -> Result<NonZeroU32, RequestError> {
    let none = RequestError::TooSmall { parameter: "amount", least: 1 };
    NonZeroU32::new(amount(value, 1)?).ok_or(none)
}

fn affinity(value: &Value) -> Result<Affinity, RequestError> {
    match value {
        Value::Null => Ok(Affinity::Any),
        Value::String(text) if text.eq_ignore_ascii_case("none") => Ok(Affinity::Any),
        other => word(other).map(|truth| Affinity::from(Some(truth))).ok_or(RequestError::Affinity),
    }
}

/// The flavor of a reservation in a request. If the reservation comes from an answer, `flavor_id` is the
/// identifier of the reservation, and `resource_properties` has the flavor.
pub fn asked_flavor(reservation: &Value) -> Option<Cow<'_, str>> {
    let id = reservation["flavor_id"].as_str()?;
    if reservation["id"].as_str() == Some(id)
        && let Some(flavor) = answered_flavor(&reservation["resource_properties"])
    {
        return flavor["id"].as_str().map(|id| Cow::Owned(id.to_owned()));
    }
    Some(Cow::Borrowed(id))
}

/// The flavor that an answer has in place of an expression.
fn answered_flavor(properties: &Value) -> Option<Value> {
    serde_json::from_str(properties.as_str()?).ok().filter(Value::is_object)
}

fn flavor_instances(
    fields: &mut Fields<'_>,
    entry: &Value,
    flavors: FindFlavor<'_>,
) -> Result<(ReservationTerms, Wording), RequestError> {
    let id = text("flavor_id", fields.required("flavor_id")?)?;
    let id = asked_flavor(entry).map_or(id, Cow::into_owned);
    let amount = positive_amount(fields.required("amount")?)?;
    if affinity(fields.required("affinity")?)? != Affinity::Any {
        return Err(RequestError::AffinityOfFlavor);
    }
    // Clients copy it from the other type of reservations for instances, or from an answer.
    if fields.filled("resource_properties").is_some_and(|value| answered_flavor(value).is_none()) {
        let expected = "empty: what hosts must be like follows from the flavor";
        return Err(RequestError::malformed("resource_properties", expected));
    }
    let record = flavors(&id).ok_or(RequestError::Flavor(id))?;
    let survives = fields.get("survives").map_or(Ok(None), failure_domain)?;
    let wording =
        Wording { hypervisor_properties: None, resource_properties: Some(flavor::as_json(&record).into()) };
    let flavor = Flavor::new(record.id, record.size, &record.extra_specs)?;
    Ok((ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives }), wording))
}

fn floating_ips(fields: &mut Fields<'_>) -> Result<(ReservationTerms, Wording), RequestError> {
    let network = NetworkId(text("network_id", fields.required("network_id")?)?);
    let amount = amount(fields.required("amount")?, 0)?;
    let required = addresses(fields.get("required_floatingips"))?;
    let terms = FloatingIpsTerms::new(network, amount, required)?;
    Ok((ReservationTerms::FloatingIps(terms), Wording::default()))
}

fn addresses(value: Option<&Value>) -> Result<BTreeSet<IpAddr>, RequestError> {
    list("required_floatingips", value)?.iter().map(address).collect()
}

/// An IP address.
pub(crate) fn address(value: &Value) -> Result<IpAddr, RequestError> {
    let wrong = || RequestError::Address(super::python::shown(value));
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

/// Reads a change of a reservation whose `id` has been read already. Also returns its unknown fields. Absent
/// numbers stay, so the current reservation must be known.
pub(crate) fn read_change(
    mut fields: Fields<'_>,
    reservation: &Reservation,
) -> Result<(TermsChange, Wording, Option<UnknownFields>), RequestError> {
    let same_type = |value: &Value| value.as_str() == Some(reservation.terms.resource_type());
    if fields.filled("resource_type").is_some_and(|value| !same_type(value)) {
        return Err(RequestError::ResourceTypeChanged);
    }
    if !fields.has_more() {
        return Ok((TermsChange::None, Wording::default(), None));
    }
    let (mut change, wording) = match &reservation.terms {
        ReservationTerms::Hosts(_) => change_hosts(&mut fields)?,
        ReservationTerms::Instances(terms) => change_instances(&mut fields, terms)?,
        ReservationTerms::Flavor(_) => {
            for name in ["flavor_id", "amount", "affinity", "resource_properties"] {
                fields.get(name);
            }
            (TermsChange::Flavor, Wording::default())
        }
        ReservationTerms::FloatingIps(_) => change_floating_ips(&mut fields)?,
    };
    if !fields.has_any_but(&["id", "resource_type"]) {
        change = TermsChange::None;
    }
    let unknown = fields.unknown(sent_back::read_only(reservation.terms.resource_type()))?;
    Ok((change, wording, unknown))
}

fn change_hosts(fields: &mut Fields<'_>) -> Result<(TermsChange, Wording), RequestError> {
    let mut change = HostsChange {
        min: fields.filled("min").map(|value| number_of_hosts("min", value)).transpose()?,
        max: fields.filled("max").map(|value| number_of_hosts("max", value)).transpose()?,
        properties: read_properties(fields)?,
        before_end: fields.given("before_end").map(before_end).transpose()?,
        ..HostsChange::default()
    };
    let mut wording = Wording::default();
    if let Some(value) = fields.given("hypervisor_properties") {
        let read = read_expression(value)?;
        change.hypervisor = Some(read.requirement);
        wording.hypervisor_properties = Some(read.wording.unwrap_or_default());
    }
    if let Some(value) = fields.given("resource_properties") {
        let read = read_expression(value)?;
        change.resource = Some(read.requirement);
        wording.resource_properties = Some(read.wording.unwrap_or_default());
    }
    Ok((TermsChange::Hosts(change), wording))
}

fn change_instances(
    fields: &mut Fields<'_>,
    terms: &InstancesTerms,
) -> Result<(TermsChange, Wording), RequestError> {
    let size = &terms.size;
    if ephemeral_gb(fields)?.is_some_and(|asked| asked != terms.ephemeral_gib()) {
        return Err(RequestError::malformed("ephemeral_gb", "what it is: it can't be changed"));
    }
    if extra_specs(fields)?.is_some_and(|asked| asked != terms.extra_specs()) {
        return Err(RequestError::malformed("extra_specs", "what they are: they can't be changed"));
    }
    let vcpus = fields.filled("vcpus").map(|value| count("vcpus", value, 1)).transpose()?;
    let memory_mib = fields.filled("memory_mb").map(|value| count("memory_mb", value, 1)).transpose()?;
    let disk_gib = fields.filled("disk_gb").map(|value| count("disk_gb", value, 0)).transpose()?;
    let mut change = InstancesChange {
        amount: fields.filled("amount").map(positive_amount).transpose()?,
        affinity: fields.get("affinity").map(affinity).transpose()?,
        ..InstancesChange::default()
    };
    if vcpus.is_some() || memory_mib.is_some() || disk_gib.is_some() {
        change.size = Some(InstanceSize::new(
            vcpus.unwrap_or(size.vcpus()),
            memory_mib.unwrap_or(size.memory_mib()),
            disk_gib.unwrap_or(size.disk_gib()),
        )?);
    }
    let mut wording = Wording::default();
    if let Some(value) = fields.given("resource_properties") {
        let read = read_expression(value)?;
        change.requirement = Some(read.requirement);
        wording.resource_properties = Some(read.wording.unwrap_or_default());
    }
    Ok((TermsChange::Instances(change), wording))
}

fn change_floating_ips(fields: &mut Fields<'_>) -> Result<(TermsChange, Wording), RequestError> {
    let network = fields.filled("network_id").map(|value| text("network_id", value)).transpose()?;
    let change = FloatingIpsChange {
        network: network.map(NetworkId),
        amount: fields.filled("amount").map(|value| amount(value, 0)).transpose()?,
        required: fields.filled("required_floatingips").map(|value| addresses(Some(value))).transpose()?,
    };
    Ok((TermsChange::FloatingIps(change), Wording::default()))
}
