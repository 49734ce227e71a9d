//! Tenants: their records, and the removal of everything that a deleted one owned.

mod api;
mod purge;

pub use api::{TenantChange, Tenants};
