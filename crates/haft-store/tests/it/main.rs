//! The store, tested on both engines.
