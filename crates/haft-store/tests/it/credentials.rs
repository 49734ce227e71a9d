//! Tests of credentials.
