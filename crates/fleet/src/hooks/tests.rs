//! Tests of the rack without a cloud.
