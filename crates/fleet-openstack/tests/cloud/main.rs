//! Tests of the driver on a stand-in for a cloud, on recorded exchanges with a real one and, if available, on
//! a real one.

mod addresses;
mod creating;
mod drifting;
mod faults;
mod flavors;
mod handing_over;
mod images;
mod keeping;
mod lab;
mod moving;
mod open_pool;
mod over_committing;
mod power;
mod promises;
mod recorded;
mod rounds;
mod standin;
mod taking_over;
mod tenant;
mod traits;
