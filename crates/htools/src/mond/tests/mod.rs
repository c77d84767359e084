//! Reports from files and from the network.

mod files;
mod network;
