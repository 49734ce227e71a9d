//! Tests of reload.
