//! Persistent data: catalog, definition files, call ledger, queue, approvals, agents and their runs, chats, credentials,
//! tenants, tokens, policy rules, audit records.
//!
//! The only crate with SQL. Embedded, the definition files in `skills/` are the source of truth and SQLite is their
//! index. Scaled out, PostgreSQL is the source of truth and there are no files. Both use the same statements.

mod access;
mod accounts;
mod approvals;
mod audit;
mod audit_log;
mod blobs;
mod catalog;
mod chats;
mod claims;
mod database;
mod engine;
mod files;
mod ledger;
mod limits;
mod list_page;
mod loops;
mod migrate;
mod notification;
mod outbox;
mod pipelines;
mod policies;
mod reaper;
mod resources;
mod rows;
mod runs;
mod settings;
mod signing_keys;
mod store;
mod stored_bytes;
mod tenants;
mod time;
mod vault;
mod watch;
mod webhooks;
mod workspaces;

pub use access::{
    Access, AccessChanges, ActorChange, ClientInsert, ClientLimits, CodeExchange, DeviceLoginDecision,
    DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert, GroupChange, HandedOver,
    MemberKey, MemberRecords, MembersChange, OwnedByToken, SignOnAssignment, SignOnLogin, SignOnLoginStart,
    SignOnPerson, SignOnResult, StoredCode, TokenRotation, UsedAssertion,
};
pub use accounts::{
    DeviceConnection, DeviceConnectionState, PendingLogin, PendingLoginStart, StoredAccounts,
};
pub use approvals::{ApprovalDecision, ApprovalQuery, StoredApprovals};
pub use audit_log::AuditLog;
pub use blobs::{BlobSettings, Blobs};
pub use catalog::Catalog;
pub use catalog::apply::{ApplyChanges, BundleFields, ToolStep, ToolsetStep};
pub use catalog::apply_state::{ApplyScope, ApplyState};
pub use catalog::deleted::DeletedTool;
pub use catalog::mcp::PendingToolChange;
pub use catalog::sync::ReindexReport;
pub use catalog::toolsets::{InstallReport, ToolsetInstall};
pub use chats::{ChatChange, ChatQuery, ChatScope, Chats, NewChat, NewMessage};
pub use claims::Claim;
pub use ledger::Calls;
pub use ledger::callers::{COUNTED_CALLS, ToolCaller};
pub use ledger::histogram::CallCounts;
pub use limits::{Limits, TenantUsage};
pub use list_page::ListPage;
pub use loops::{StoreLoop, WatchTasks};
pub use pipelines::{
    ClaimedDocument, DocumentChunks, Documents, IndexChanges, IndexedDocument, KeptChunk, NewDocument,
    PipelineChange, StoredChunk, StoredChunks,
};
pub use policies::{Policies, StoredPolicies};
pub use reaper::ReapReport;
pub use resources::{
    FileDefinitions, ResourceChange, ResourceFileError, ResourceHead, ResourceName, ResourceNames,
    ResourceQuery, ResourceSource, ResourceUpdate, Resources, RevisionSelector, StoredKind,
};
pub use runs::Runs;
pub use runs::claim::ClaimedRun;
pub use runs::read::RunQuery;
pub use settings::{LedgerSync, Retention, StoreSettings};
pub use store::Store;
pub use tenants::{TenantChange, Tenants};
pub use vault::{
    Credential, CredentialInfo, CredentialPurpose, CredentialValue, DEFAULT_CATEGORY, KeyRotation, Vault,
};
pub use webhooks::{
    ClaimedDelivery, DeliveryLimits, DeliveryQuery, DeliveryResult, NewWebhook, WebhookChange, Webhooks,
};
pub use workspaces::{NewManifest, StoredManifest, WorkspaceInfo, Workspaces};
