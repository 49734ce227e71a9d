//! Approvals: calls that wait for a person, the decisions, and the decisions that are remembered.

mod accounts;
mod decisions;
mod grants;
mod retention;

pub use decisions::{ApprovalDecision, ApprovalQuery, StoredApprovals};
