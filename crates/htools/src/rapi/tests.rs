//! Servers that behave, and servers that do not.
