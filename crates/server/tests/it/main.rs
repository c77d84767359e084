//! The server through its router, on a store in memory and a simulated fleet.

mod audit;
mod authentication;
mod authorisation;
mod contract;
mod enforcement;
mod free_pools;
mod fuzz;
mod hints;
mod hostile;
mod hosts;
mod instances;
mod isolation;
mod lease_pools;
mod leases;
mod limits;
mod native;
mod operations;
mod protocol;
mod sharing;
mod site;
mod sockets;
mod suiting;
mod types;
mod usage;
mod vectors;
mod webhook;
