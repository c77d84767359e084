//! What every store promises, as functions that hold a store to it.
