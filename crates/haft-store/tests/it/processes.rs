//! Tests of processes.
