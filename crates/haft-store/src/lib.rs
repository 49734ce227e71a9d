//! Persistent data: catalog, definition files, call ledger, queue, approvals, agents and their runs, chats, credentials,
//! tenants, tokens, policy rules, audit records.
//!
//! The only crate with SQL. Embedded, the definition files in `skills/` are the source of truth and SQLite is their
//! index. Scaled out, PostgreSQL is the source of truth and there are no files. Both use the same statements.

mod approval_grants;
mod approvals;
mod audit;
mod blobs;
mod catalog;
mod chats;
mod claims;
mod engine;
mod files;
mod inspect;
mod ledger;
mod limits;
mod list_page;
mod logins;
mod migrate;
mod nodes;
mod pipelines;
mod policies;
mod reaper;
mod resources;
mod retention;
mod rows;
mod runs;
mod session;
mod settings;
mod signing_keys;
mod store;
mod tenants;
mod time;
mod tokens;
mod vault;
mod watch;
mod webhooks;
mod workspaces;

pub use approvals::{ApprovalDecision, ApprovalQuery};
pub use blobs::{BlobSettings, Blobs};
pub use catalog::apply::{ApplyChanges, BundleFields, ToolStep, ToolsetStep};
pub use catalog::apply_state::{ApplyScope, ApplyState};
pub use catalog::mcp::PendingToolChange;
pub use catalog::sync::ReindexReport;
pub use catalog::toolsets::{InstallReport, ToolsetInstall};
pub use chats::{ChatChange, ChatQuery, ChatScope, NewChat, NewMessage};
pub use claims::Claim;
pub use ledger::callers::{COUNTED_CALLS, ToolCaller};
pub use ledger::histogram::CallCounts;
pub use limits::TenantUsage;
pub use list_page::ListPage;
pub use pipelines::{
    ClaimedDocument, DocumentChunks, IndexChanges, IndexedDocument, KeptChunk, NewDocument, PipelineChange,
    StoredChunk, StoredChunks,
};
pub use policies::StoredPolicies;
pub use reaper::ReapReport;
pub use resources::{
    FileDefinitions, ResourceChange, ResourceFileError, ResourceHead, ResourceName, ResourceNames,
    ResourceQuery, ResourceUpdate, Resources, RevisionSelector, StoredKind,
};
pub use runs::claim::ClaimedRun;
pub use runs::read::RunQuery;
pub use settings::{LedgerSync, Retention, StoreSettings};
pub use store::Store;
pub use tenants::TenantChange;
pub use tokens::TokenRotation;
pub use vault::{
    Credential, CredentialInfo, CredentialPurpose, CredentialValue, DEFAULT_CATEGORY, KeyRotation,
};
pub use watch::{StoreLoop, WatchTasks};
pub use webhooks::{
    ClaimedDelivery, DeliveryLimits, DeliveryQuery, DeliveryResult, NewWebhook, WebhookChange,
};
pub use workspaces::{NewManifest, StoredManifest, WorkspaceInfo};
