//! SCIM 2.0 (RFC 7643, RFC 7644): how identity providers describe, find and change users and groups.
//!
//! Resources are JSON objects. This crate reads and changes them: it parses [`Filter`]s, applies patches ([`patch()`]),
//! selects attributes ([`Projection`]), and reads what a request says ([`UserFields`], [`GroupFields`]). Who a user is and
//! what may be changed is up to haft-platform. No I/O, no clock; everything is bounded.

mod discovery;
mod error;
mod fields;
mod filter;
mod json;
mod patch;
mod path;
mod projection;
mod schema;

pub use discovery::{resource_types, schemas, service_provider_config};
pub use error::{ScimError, ScimType};
pub use fields::{GroupFields, UserFields};
pub use filter::Filter;
pub use patch::patch;
pub use projection::Projection;
pub use schema::{GROUP_SCHEMA, LIST_SCHEMA, ResourceType, USER_SCHEMA};

/// The most resources of a page.
pub const MAX_RESULTS: usize = 500;
/// The most values of an attribute, such as the members of a group.
pub const MAX_VALUES: usize = 1000;
