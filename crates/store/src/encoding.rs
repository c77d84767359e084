//! Domain values as text for columns.
