//! Audit records: who changed or called what, and with which result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::call::{CallRecord, CallStatus};
use crate::id::TokenId;
use crate::name::TenantId;
use crate::outcome::ErrorCode;
use crate::token::Role;

/// One attempted change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditRecord {
    /// The id; records sort by it.
    pub id: Uuid,
    /// The tenant whose data was to change.
    #[serde(skip, default = "TenantId::global")]
    pub tenant: TenantId,
    /// The time of the attempt.
    pub at: Timestamp,
    /// The name of the person, the service account, or the token without an owner.
    #[cfg_attr(feature = "openapi", schema(example = "local"))]
    pub actor: String,
    /// The id of the person, the service account, or the token without an owner; `None` in records of the
    /// token of the home folder and of the environment that are older than people.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub actor_id: Option<Uuid>,
    /// The id of the token that was used, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub token_id: Option<TokenId>,
    /// The action, such as `tool.update`.
    #[cfg_attr(feature = "openapi", schema(example = "tool.update"))]
    pub action: String,
    /// The object of the action.
    #[cfg_attr(feature = "openapi", schema(example = "user-created:greet@1.0.0"))]
    pub target: String,
    /// `success`, or the error code.
    #[cfg_attr(feature = "openapi", schema(example = "success"))]
    pub outcome: String,
    /// The id of the request.
    pub request_id: String,
}

/// A query for audit records; results are sorted newest first.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// Only records of this action.
    pub action: Option<String>,
    /// Only records whose target contains this text.
    pub target: Option<String>,
    /// Only records of the token with this name or id.
    pub actor: Option<String>,
    /// Only records from this time on.
    pub since: Option<Timestamp>,
    /// Only records before this time.
    pub until: Option<Timestamp>,
    /// Only records with this outcome.
    pub outcome: Option<String>,
    /// Only records before this one, the last of the previous page.
    pub before: Option<Uuid>,
    /// How many records to skip.
    pub skip: u32,
    /// The maximum number of records.
    pub limit: u32,
}

/// A page of audit records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The records, newest first.
    pub records: Vec<AuditRecord>,
    /// The total number of records that match the query.
    pub total: u64,
}

/// How a call was authorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditDecision {
    /// It was allowed without a person's decision.
    Allowed,
    /// A rule, the policy of the tool, the role or the list of tools denied it.
    #[serde(rename = "denied")]
    DeniedByPolicy,
    /// It waits for a person's decision.
    AwaitingApproval,
    /// A person approved it.
    Approved,
    /// A person denied it.
    #[serde(rename = "rejected")]
    DeniedByApprover,
    /// Nobody decided in time.
    Expired,
}

impl AuditDecision {
    /// Every decision.
    pub const ALL: [AuditDecision; 6] = [
        AuditDecision::Allowed,
        AuditDecision::DeniedByPolicy,
        AuditDecision::AwaitingApproval,
        AuditDecision::Approved,
        AuditDecision::DeniedByApprover,
        AuditDecision::Expired,
    ];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            AuditDecision::Allowed => "allowed",
            AuditDecision::DeniedByPolicy => "denied",
            AuditDecision::AwaitingApproval => "awaiting_approval",
            AuditDecision::Approved => "approved",
            AuditDecision::DeniedByApprover => "rejected",
            AuditDecision::Expired => "expired",
        }
    }

    /// Parses the name that [`AuditDecision::as_str`] returns.
    pub fn parse(text: &str) -> Option<AuditDecision> {
        AuditDecision::ALL.into_iter().find(|decision| decision.as_str() == text)
    }

    /// Returns the decision about a call.
    pub fn of(call: &CallRecord) -> Self {
        let code = call.error.as_ref().map(|error| error.code);
        match (call.status, code) {
            (CallStatus::AwaitingApproval, _) => AuditDecision::AwaitingApproval,
            (CallStatus::Denied, _) | (_, Some(ErrorCode::ApprovalDenied)) => AuditDecision::DeniedByApprover,
            (CallStatus::Expired, _) | (_, Some(ErrorCode::ApprovalExpired)) => AuditDecision::Expired,
            (
                _,
                Some(
                    ErrorCode::PolicyDenied
                    | ErrorCode::Forbidden
                    | ErrorCode::Unauthorized
                    | ErrorCode::ApprovalRequired,
                ),
            ) => AuditDecision::DeniedByPolicy,
            _ if call.decision.as_ref().is_some_and(|decision| decision.decided_by.is_some()) => {
                AuditDecision::Approved
            }
            _ => AuditDecision::Allowed,
        }
    }
}

/// The audit record of one call: everything about it but its arguments, its value and its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallAudit {
    /// The role of the caller.
    pub role: Role,
    /// Whether the caller was elevated.
    pub elevated: bool,
    /// The person on whose behalf the call was made, if the surface knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub user: Option<Arc<str>>,
    /// The interface that the call came through: `rest`, `cli`, `mcp`, …
    #[cfg_attr(feature = "openapi", schema(example = "mcp"))]
    pub surface: String,
    /// The chat, or the connection of an MCP client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub session: Option<Arc<str>>,
    /// The call that made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uuid>,
    /// The revision of the tool.
    pub revision: u32,
    /// The SHA-256 of the arguments, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<String>,
    /// How it was authorised.
    pub decision: AuditDecision,
    /// The policy rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The approval of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// Who approved or denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The state of the call.
    pub status: CallStatus,
    /// The duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

impl CallAudit {
    /// Returns the audit record of a call.
    pub fn new(call: &CallRecord) -> Self {
        let invocation = &call.invocation;
        let principal = &invocation.principal;
        let decision = call.decision.as_deref();
        Self {
            role: principal.role,
            elevated: principal.elevated,
            user: principal.user.clone(),
            surface: invocation.surface.to_string(),
            session: invocation.session.clone(),
            parent: invocation.lineage.parent.map(|id| id.0),
            revision: invocation.revision,
            args_digest: call.args_digest(),
            decision: AuditDecision::of(call),
            rule: decision.and_then(|decision| decision.rule.clone()),
            approval_id: decision.and_then(|decision| decision.approval_id),
            decided_by: decision.and_then(|decision| decision.decided_by.clone()),
            status: call.status,
            duration_ms: call.duration_ms,
        }
    }
}

/// The kind of an [`AuditEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// An attempted change.
    Change,
    /// A call.
    Call,
}

/// A change or a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// Whether it is a change or a call.
    pub kind: AuditKind,
    /// Who did what, when, and with which outcome. A call has the action `call` and the tool as its target.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// More about a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallAudit>,
}

impl AuditEntry {
    /// Returns the entry of a change.
    pub fn of_change(record: AuditRecord) -> Self {
        Self { kind: AuditKind::Change, record, call: None }
    }

    /// Returns the entry of a call.
    pub fn of_call(call: &CallRecord) -> Self {
        let invocation = &call.invocation;
        let code = call.error.as_ref().map(|error| error.code.as_str());
        let record = AuditRecord {
            id: call.id().0,
            tenant: call.tenant().clone(),
            at: call.started_at,
            actor: invocation.principal.name.to_string(),
            actor_id: invocation.principal.actor_or_token_id(),
            token_id: invocation.principal.token,
            action: "call".to_owned(),
            target: invocation.tool.to_string(),
            // Of a call that has not ended, the state.
            outcome: code.unwrap_or(call.status.as_str()).to_owned(),
            request_id: invocation.request_id.clone().unwrap_or_default(),
        };
        Self { kind: AuditKind::Call, record, call: Some(CallAudit::new(call)) }
    }

    /// Returns the id; entries sort by it.
    pub fn id(&self) -> Uuid {
        self.record.id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(status: &str, code: Option<&str>, decision: &serde_json::Value) -> CallRecord {
        let mut record = json!({
            "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "tenant": "acme", "caller": "ci", "surface": "rest",
            "tool_id": "018faf50-b7b6-7a01-9a05-a22a6e0af102", "tool": "web:t@1.0.0", "revision": 1,
            "mode": "debug", "args": {"password": "hunter2"}, "status": status,
            "started_at": "2026-01-31T12:00:00Z", "decision": decision, "duration_ms": 1.5,
        });
        if let Some(code) = code {
            record["error"] = json!({"code": code, "message": "hunter2", "retryable": false});
        }
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn the_decision_follows_from_the_record() {
        let none = serde_json::Value::Null;
        let approved = json!({"rule": "r", "decided_by": "ada"});
        for (record, expected) in [
            (call("success", None, &none), AuditDecision::Allowed),
            (call("error", Some("timeout"), &json!({"rule": "r"})), AuditDecision::Allowed),
            (call("error", Some("policy_denied"), &json!({"rule": "r"})), AuditDecision::DeniedByPolicy),
            (call("error", Some("forbidden"), &none), AuditDecision::DeniedByPolicy),
            (call("awaiting_approval", None, &none), AuditDecision::AwaitingApproval),
            (call("success", None, &approved), AuditDecision::Approved),
            (
                call("denied", Some("approval_denied"), &json!({"decided_by": "ada"})),
                AuditDecision::DeniedByApprover,
            ),
            (call("expired", Some("approval_expired"), &none), AuditDecision::Expired),
        ] {
            assert_eq!(AuditDecision::of(&record), expected, "{record:?}");
        }
    }

    #[test]
    fn an_entry_has_neither_arguments_nor_messages() {
        let record = call("error", Some("execution_failed"), &json!({"rule": "r"}));
        let digest = record.args_digest().unwrap();
        let entry = serde_json::to_value(AuditEntry::of_call(&record)).unwrap();
        assert!(!entry.to_string().contains("hunter2"), "{entry}");
        assert_eq!(
            entry,
            json!({
                "kind": "call", "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "at": "2026-01-31T12:00:00Z",
                "actor": "ci", "actor_id": null, "action": "call", "target": "web:t@1.0.0",
                "outcome": "execution_failed", "request_id": "",
                "call": {"role": "caller", "elevated": false, "surface": "rest", "revision": 1,
                    "args_digest": digest, "decision": "allowed", "rule": "r", "status": "error",
                    "duration_ms": 1.5},
            })
        );
        let trimmed = record.without_body();
        assert_eq!(AuditEntry::of_call(&trimmed).call.unwrap().args_digest, Some(digest));
    }
}
