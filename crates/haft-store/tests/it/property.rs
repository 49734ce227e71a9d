//! Tests of property.
