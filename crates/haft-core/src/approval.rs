//! Approvals: a person's durable yes or no to one call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::Timestamp;
use crate::account::{AccountId, AccountUser};
use crate::call::CallRecord;
use crate::catalog::StoreError;
use crate::id::{ApprovalId, CallId, ToolId};
use crate::name::TenantId;
use crate::policy::{Approvers, PLATFORM_RULE};
use crate::principal::Principal;
use crate::token::Role;

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Nobody has decided yet.
    Waiting,
    /// Approved: the call runs or has run.
    Approved,
    /// Denied.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// The call was cancelled.
    Cancelled,
}

impl ApprovalStatus {
    /// Every status.
    pub const ALL: [ApprovalStatus; 5] = [
        ApprovalStatus::Waiting,
        ApprovalStatus::Approved,
        ApprovalStatus::Denied,
        ApprovalStatus::Expired,
        ApprovalStatus::Cancelled,
    ];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            ApprovalStatus::Waiting => "waiting",
            ApprovalStatus::Approved => "approved",
            ApprovalStatus::Denied => "denied",
            ApprovalStatus::Expired => "expired",
            ApprovalStatus::Cancelled => "cancelled",
        }
    }

    /// Parses the name that [`ApprovalStatus::as_str`] returns.
    pub fn parse(text: &str) -> Option<ApprovalStatus> {
        ApprovalStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a call needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum ApprovalCause {
    /// The tool has `requires_confirmation: true`.
    RequiresConfirmation,
    /// The tool has `policy: elevated`.
    ElevatedPolicy,
    /// A policy rule with the effect `approve`, by its name.
    Rule(String),
    /// Not an approval: the caller must connect an account at this provider; the call then runs by itself.
    Account(String),
}

impl ApprovalCause {
    /// Returns the text by which remembered approvals are found: an approval covers its own cause only.
    pub fn key(&self) -> String {
        match self {
            Self::RequiresConfirmation => "requires_confirmation".to_owned(),
            Self::ElevatedPolicy => "elevated_policy".to_owned(),
            Self::Rule(rule) => format!("rule:{rule}"),
            Self::Account(provider) => format!("account:{provider}"),
        }
    }

    /// Returns why, as the end of a sentence: "the call needs approval: …".
    pub fn reason(&self, tool: &str) -> String {
        match self {
            Self::RequiresConfirmation => format!("`{tool}` has `requires_confirmation: true`"),
            Self::ElevatedPolicy => format!("`{tool}` has `policy: elevated`"),
            Self::Rule(rule) => format!("the policy rule `{rule}` asks for it"),
            Self::Account(provider) => {
                format!("the person who called has to connect an account at `{provider}`")
            }
        }
    }
}

/// How far a decision is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RememberScope {
    /// Later calls of the same caller in the same chat or session.
    Session,
    /// Later calls of the same caller.
    Token,
    /// Later calls of everyone in the tenant.
    Tool,
}

impl RememberScope {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            RememberScope::Session => "session",
            RememberScope::Token => "token",
            RememberScope::Tool => "tool",
        }
    }
}

/// The scope of a remembered approval: the same revision of the tool with the same arguments, or with any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// How far.
    pub scope: RememberScope,
    /// Whether it covers other arguments, too.
    #[serde(default)]
    pub any_args: bool,
}

/// A call that needs approval, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The id.
    pub id: ApprovalId,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool_id: ToolId,
    /// `bundle:name@version`.
    pub tool: Arc<str>,
    /// The revision that the approver sees and that will run.
    pub revision: u32,
    /// The hash of that revision.
    pub definition_hash: String,
    /// The arguments as requested, or as the approver changed them.
    pub args: Value,
    /// The hash of the arguments as requested.
    pub args_digest: String,
    /// Who asks.
    pub requested_by: Arc<Principal>,
    /// The surface of the call.
    pub surface: String,
    /// The chat or session of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Why the call needs approval.
    pub cause: ApprovalCause,
    /// The state.
    pub status: ApprovalStatus,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The reason given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the approver changed the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args_edited: bool,
    /// The arguments as requested, if the approver changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_args: Option<Value>,
    /// The scope that the approver chose for remembering the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Remember>,
}

/// An approval that is remembered for later calls.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalGrant {
    /// The id.
    pub id: ApprovalId,
    /// The tool; its definition must be the one that was approved.
    pub tool_id: ToolId,
    /// The [key](ApprovalCause::key) of the cause that it covers.
    pub cause: String,
    /// The later calls that it covers.
    pub remember: Remember,
    /// The id of the caller whose calls it covers; empty for everyone.
    pub principal: String,
    /// Who approved.
    pub granted_by: String,
    /// When.
    pub created_at: Timestamp,
}

/// A call that a remembered approval may cover.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantQuery {
    /// The tool.
    pub tool_id: ToolId,
    /// The hash of the definition that will run.
    pub definition_hash: String,
    /// The hash of the arguments.
    pub args_digest: String,
    /// Who asks.
    pub requested_by: Arc<Principal>,
    /// The chat or session of the call.
    pub session: Option<String>,
    /// Why the call needs approval.
    pub cause: ApprovalCause,
}

/// The reason why a caller may not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotDecide {
    /// The requester asks for a second person.
    #[error("requesters cannot decide about their own calls (`four_eyes` is on)")]
    FourEyes,
    /// A person asked, and whoever decides may be that person with a token of nobody.
    #[error(
        "a person asked for this call, so another person has to decide (`four_eyes` is on); log in, or use a token of a person"
    )]
    NeedsPerson,
    /// The requester may decide only about calls that need confirmation.
    #[error("you asked for this call: {0}, so an admin or an elevated token has to decide")]
    OwnRequest(String),
    /// Neither the requester, nor an admin, nor elevated.
    #[error("only an admin or an elevated token may decide about this call")]
    NotAnApprover,
    /// The rule names others.
    #[error("only the approvers that the policy rule names may decide about this call")]
    NotNamed,
    /// There is nothing to decide.
    #[error("the call waits until the person who asked for it connects an account at `{0}`")]
    NeedsAccount(String),
    /// The requester may remember an approval for itself only.
    #[error(
        "only an admin or an elevated token may remember an approval for everyone; use the scope `token`"
    )]
    NotForEveryone,
}

impl Approval {
    /// Returns whether it waits for this account.
    pub fn waits_for_account(&self, account: &AccountId) -> bool {
        self.status == ApprovalStatus::Waiting
            && matches!(&self.cause, ApprovalCause::Account(provider) if *provider == account.provider)
            && AccountUser::from(&*self.requested_by).account(&account.provider).as_ref() == Some(account)
    }

    /// Returns what a remembered approval of the call must match.
    pub fn grant_query(&self) -> GrantQuery {
        GrantQuery {
            tool_id: self.tool_id,
            definition_hash: self.definition_hash.clone(),
            args_digest: self.args_digest.clone(),
            requested_by: Arc::clone(&self.requested_by),
            session: self.session.clone(),
            cause: self.cause.clone(),
        }
    }

    /// Checks whether a principal may decide. By default, the requester may confirm a call of a tool with
    /// `requires_confirmation`; an admin or an elevated token decides about all others. A policy rule may name others.
    pub fn check_approver(
        &self,
        approver: &Principal,
        approvers: Option<&Approvers>,
        four_eyes: bool,
    ) -> Result<(), CannotDecide> {
        let is_requester =
            approver.tenant == self.requested_by.tenant && approver.is_same_actor(&self.requested_by);
        let may_decide = self.may_decide_for_others(approver, approvers);
        match (is_requester, &self.cause) {
            (_, ApprovalCause::Account(provider)) => Err(CannotDecide::NeedsAccount(provider.clone())),
            (true, _) if four_eyes => Err(CannotDecide::FourEyes),
            // Whoever administers tokens can have one without an owner, or one of a service account.
            (false, _) if four_eyes && self.requested_by.is_person() && !approver.is_person() => {
                Err(CannotDecide::NeedsPerson)
            }
            (true, ApprovalCause::RequiresConfirmation) => Ok(()),
            (true, cause) if !may_decide && approvers.is_none() => {
                Err(CannotDecide::OwnRequest(cause.reason(&self.tool)))
            }
            _ if may_decide => Ok(()),
            _ if approvers.is_some() => Err(CannotDecide::NotNamed),
            _ => Err(CannotDecide::NotAnApprover),
        }
    }

    fn may_decide_for_others(&self, approver: &Principal, approvers: Option<&Approvers>) -> bool {
        let is_platform_rule =
            matches!(&self.cause, ApprovalCause::Rule(rule) if rule.starts_with(PLATFORM_RULE));
        match approvers {
            Some(approvers) => approvers.include(approver, is_platform_rule),
            None => approver.role >= Role::Admin || (approver.elevated && approver.role >= Role::Caller),
        }
    }

    /// Checks whether an approver may have an approval remembered. Who only confirms its own call cannot speak for
    /// others.
    pub fn check_remember(
        &self,
        approver: &Principal,
        approvers: Option<&Approvers>,
        remember: Remember,
    ) -> Result<(), CannotDecide> {
        let is_for_everyone = remember.scope == RememberScope::Tool;
        if is_for_everyone && !self.may_decide_for_others(approver, approvers) {
            return Err(CannotDecide::NotForEveryone);
        }
        Ok(())
    }
}

/// What is known about a call that needs approval.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalAnswer {
    /// An earlier decision covers it; the name is that of the approver.
    Granted(String),
    /// It waits, or an earlier request of the same call does.
    Waiting(Box<Approval>),
    /// An earlier request of the same call was decided: its record, which is final unless the call still runs.
    Decided(Box<Approval>, Box<CallRecord>),
    /// Its idempotency key belongs to this call.
    Existing(Box<CallRecord>),
    /// As many calls of the tenant wait as may; this is the limit.
    Full(u64),
}

/// What a call waits for after an account that it waited for was connected.
#[derive(Debug, Clone, PartialEq)]
pub struct NextWait {
    /// The id of the wait; it stays the same.
    pub approval: ApprovalId,
    /// Another account, or why the call needs approval.
    pub cause: ApprovalCause,
    /// The revision that will run.
    pub revision: u32,
    /// The hash of that revision.
    pub definition_hash: String,
    /// The new end of the wait; `None` if it does not change.
    pub expires_at: Option<Timestamp>,
}

/// The store of approvals, as the pipeline needs it.
pub trait Approvals: Send + Sync {
    /// Returns an earlier decision about the same call, or stores the call and its approval. Both are durable when this
    /// returns. At most `limit` calls of a tenant wait.
    fn request(
        &self,
        call: CallRecord,
        approval: Approval,
        limit: u64,
    ) -> BoxFuture<'_, Result<ApprovalAnswer, StoreError>>;

    /// Returns who granted a remembered approval that covers a call.
    fn granted(&self, query: GrantQuery) -> BoxFuture<'_, Result<Option<String>, StoreError>>;

    /// Lets a call that this node has claimed wait again. Returns `false` if somebody has cancelled it meanwhile.
    fn wait_again(&self, call: CallRecord, next: NextWait) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns an approval with its call.
    fn with_call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: ApprovalId,
    ) -> BoxFuture<'a, Result<Option<(Approval, CallRecord)>, StoreError>>;
}
