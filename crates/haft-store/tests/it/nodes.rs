//! Tests of nodes.
