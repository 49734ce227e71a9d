//! Tests of disk.
