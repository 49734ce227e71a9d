//! Persistent data: catalog, definition files, call ledger, credentials, tenants, tokens, audit records.
//!
//! The only crate with SQL. Embedded, the definition files in `skills/` are the source of truth and SQLite is their
//! index. Scaled out, PostgreSQL is the source of truth and there are no files. Both use the same statements.

mod audit;
mod catalog;
mod engine;
mod files;
mod inspect;
mod ledger;
mod logins;
mod migrate;
mod reaper;
mod rows;
mod session;
mod settings;
mod store;
mod tenants;
mod time;
mod tokens;
mod vault;
mod watch;

pub use catalog::mcp::PendingToolChange;
pub use catalog::sync::ReindexReport;
pub use reaper::ReapReport;
pub use settings::{Retention, StoreSettings};
pub use store::Store;
pub use tenants::TenantChange;
pub use tokens::TokenRotation;
pub use vault::CredentialInfo;
pub use watch::WatchTasks;
