//! Daemons that behave, and daemons that do not.
