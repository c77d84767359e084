//! The addresses and what they answer: an address, its handler and its part of the document stand together.

pub(crate) mod flavors;
pub(crate) mod floating_ips;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod leases;
pub(crate) mod notifications;
pub(crate) mod operation;
pub(crate) mod versions;
