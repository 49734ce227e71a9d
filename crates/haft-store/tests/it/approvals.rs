//! Approvals: asking, deciding, remembering, expiry.

use std::sync::Arc;

use haft_core::Clock as _;
use haft_core::approval::{
    Approval, ApprovalAnswer, ApprovalCause, ApprovalStatus, Approvals as _, NextWait, Remember,
    RememberScope,
};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::ApprovalId;
use haft_core::ledger::{CallQueue as _, Cancellation, ClaimLimits, Ledger as _};
use haft_core::outcome::ErrorCode;
use haft_store::{ApprovalDecision, ApprovalQuery};
use serde_json::{Value, json};

use crate::harness::{Harness, on_both};
use crate::ledger::{call_with, principal};

on_both![
    an_approved_call_is_queued_once,
    a_denied_call_never_runs,
    a_repeated_call_picks_up_the_decision_once,
    decisions_are_remembered_as_far_as_asked,
    undecided_approvals_expire,
    a_cancelled_call_needs_no_decision,
    approvals_survive_a_restart_and_are_listed,
    a_claimed_call_waits_again,
];

fn requested(harness: &Harness, caller: &str, args: Value) -> (CallRecord, Approval) {
    let digest = hash::of_args(&args);
    let id = ApprovalId(crate::harness::call_id(&harness.clock).0);
    let mut call = call_with(&harness.clock, CallStatus::AwaitingApproval, |call| {
        call.principal = principal("default", caller);
        call.definition_hash = Some("hash".to_owned());
        call.args_digest = Some(digest.clone());
        call.args = args;
        call.chat_id = Some("chat".to_owned());
    });
    call.decision.get_or_insert_default().approval_id = Some(id.0);
    let now = harness.clock.now();
    let approval = Approval {
        id,
        call_id: call.id(),
        tool_id: call.invocation.tool_id,
        tool: Arc::clone(&call.invocation.tool),
        revision: 1,
        definition_hash: "hash".to_owned(),
        args: call.invocation.args.clone(),
        args_digest: digest,
        requested_by: Arc::clone(&call.invocation.principal),
        surface: "rest".to_owned(),
        session: call.invocation.chat_id.clone(),
        cause: ApprovalCause::RequiresConfirmation,
        status: ApprovalStatus::Waiting,
        created_at: now,
        expires_at: now + jiff::SignedDuration::from_hours(24),
        decided_at: None,
        decided_by: None,
        reason: None,
        args_edited: false,
        requested_args: None,
        remembered: None,
    };
    (call, approval)
}

async fn ask(harness: &Harness, caller: &str, args: Value) -> ApprovalAnswer {
    let (call, approval) = requested(harness, caller, args);
    harness.store.approvals().request(call, approval, 1000).await.unwrap()
}

pub(crate) async fn waiting(harness: &Harness, caller: &str, args: Value) -> Approval {
    match ask(harness, caller, args).await {
        ApprovalAnswer::Waiting(approval) => *approval,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn decide(
    harness: &Harness,
    id: ApprovalId,
    decision: ApprovalDecision,
) -> Result<Approval, StoreError> {
    harness.store.approvals().decide(id, &principal("default", "boss"), decision).await
}

pub(crate) fn approve() -> ApprovalDecision {
    ApprovalDecision::Approve { args: None, remember: None, cause: None }
}

pub(crate) async fn claimed(harness: &Harness) -> Vec<CallRecord> {
    let limits = ClaimLimits { max: 100, per_tenant: 100, running: std::collections::HashMap::new() };
    harness.store.calls().claim(limits).await.unwrap()
}

async fn call_of(harness: &Harness, approval: &Approval) -> CallRecord {
    harness.store.calls().call(&approval.requested_by.tenant, approval.call_id).await.unwrap().unwrap()
}

async fn an_approved_call_is_queued_once(harness: Harness) {
    let approval = waiting(&harness, "agent", json!({"n": 1})).await;
    assert_eq!(claimed(&harness).await, [], "it waits");
    let edited = ApprovalDecision::Approve { args: Some(json!({"n": 2})), remember: None, cause: None };
    let decided = decide(&harness, approval.id, edited).await.unwrap();
    assert_eq!((decided.status, decided.args_edited), (ApprovalStatus::Approved, true));
    let calls = claimed(&harness).await;
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].id(), &calls[0].invocation.args), (approval.call_id, &json!({"n": 2})));
    assert_eq!(calls[0].decision.as_ref().unwrap().decided_by.as_deref(), Some("boss"));
    let again = decide(&harness, approval.id, approve()).await.unwrap_err();
    assert!(
        matches!(&again, StoreError::Conflict(why) if why.contains("already decided: approved by `boss`"))
    );
    assert_eq!(claimed(&harness).await, []);
    // Of two who decide at once, one is heard.
    let approval = waiting(&harness, "agent", json!({"n": 3})).await;
    let both = tokio::join!(
        decide(&harness, approval.id, approve()),
        decide(&harness, approval.id, ApprovalDecision::Deny { reason: None })
    );
    assert!(both.0.is_ok() != both.1.is_ok(), "{both:?}");
    let stranger = harness.store.approvals().decide(approval.id, &principal("acme", "boss"), approve()).await;
    assert!(matches!(stranger, Err(StoreError::NotFound { .. })));
}

async fn a_denied_call_never_runs(harness: Harness) {
    let approval = waiting(&harness, "agent", json!({})).await;
    let deny = ApprovalDecision::Deny { reason: Some("not today".to_owned()) };
    assert_eq!(decide(&harness, approval.id, deny).await.unwrap().status, ApprovalStatus::Denied);
    let call = call_of(&harness, &approval).await;
    assert_eq!(call.status, CallStatus::Denied);
    let error = call.error.unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::ApprovalDenied, "`boss` denied the call: not today")
    );
    assert_eq!(error.model_text(), "Tool call failed: a person denied the call: not today");
    assert_eq!(claimed(&harness).await, []);
    assert!(decide(&harness, approval.id, approve()).await.is_err());
}

async fn a_repeated_call_picks_up_the_decision_once(harness: Harness) {
    let first = waiting(&harness, "agent", json!({"n": 1})).await;
    assert_eq!(waiting(&harness, "agent", json!({"n": 1})).await.id, first.id);
    assert_ne!(waiting(&harness, "agent", json!({"n": 2})).await.id, first.id, "other arguments");
    assert_ne!(waiting(&harness, "other", json!({"n": 1})).await.id, first.id, "another caller");
    decide(&harness, first.id, approve()).await.unwrap();
    let mut call = claimed(&harness).await.pop().unwrap();
    let ApprovalAnswer::Decided(_, running) = ask(&harness, "agent", json!({"n": 1})).await else { panic!() };
    assert_eq!(running.status, CallStatus::Running);
    call.finish(Ok(json!("done")), call.started_at, 1.0);
    harness.store.calls().record(Arc::new(call.clone())).await.unwrap();
    let ApprovalAnswer::Decided(_, done) = ask(&harness, "agent", json!({"n": 1})).await else { panic!() };
    // Only the node that ran the call holds a claim; a replayed outcome has no fence.
    assert_eq!(call.invocation.fence, 1);
    call.invocation.fence = 0;
    assert_eq!(*done, call);
    assert_ne!(waiting(&harness, "agent", json!({"n": 1})).await.id, first.id, "the next one asks again");
}

async fn decisions_are_remembered_as_far_as_asked(harness: Harness) {
    let is_granted = async |caller: &str, args: Value| matches!(ask(&harness, caller, args).await, ApprovalAnswer::Granted(by) if by == "boss");
    let remember = async |caller: &str, args: Value, scope, any_args| {
        let approval = waiting(&harness, caller, args).await;
        let remember = Some(Remember { scope, any_args });
        decide(&harness, approval.id, ApprovalDecision::Approve { args: None, remember, cause: None })
            .await
            .unwrap();
        // Until the requester has its outcome, the same call is that one.
        let again = ask(&harness, caller, approval.args.clone()).await;
        assert!(matches!(again, ApprovalAnswer::Decided(..)), "{again:?}");
        harness.store.approvals().collect(approval.id).await.unwrap();
    };
    remember("a", json!({"n": 1}), RememberScope::Token, false).await;
    assert!(is_granted("a", json!({"n": 1})).await);
    assert!(!is_granted("a", json!({"n": 2})).await, "other arguments");
    assert!(!is_granted("b", json!({"n": 1})).await, "another caller");
    remember("c", json!({"n": 1}), RememberScope::Session, true).await;
    assert!(is_granted("c", json!({"n": 9})).await);
    let (mut call, mut approval) = requested(&harness, "c", json!({"n": 8}));
    (call.invocation.chat_id, approval.session) = (None, None);
    let answer = harness.store.approvals().request(call, approval, 1000).await.unwrap();
    assert!(matches!(answer, ApprovalAnswer::Waiting(_)), "another session");
    let (mut call, mut approval) = requested(&harness, "c", json!({"n": 7}));
    (call.invocation.definition_hash, approval.definition_hash) = (Some("new".to_owned()), "new".to_owned());
    let answer = harness.store.approvals().request(call, approval, 1000).await.unwrap();
    assert!(matches!(answer, ApprovalAnswer::Waiting(_)), "another revision");
    remember("d", json!({"n": 5}), RememberScope::Tool, false).await;
    assert!(is_granted("e", json!({"n": 5})).await);
}

async fn undecided_approvals_expire(harness: Harness) {
    let approval = waiting(&harness, "agent", json!({})).await;
    assert_eq!(harness.store.approvals().expire().await.unwrap(), 0);
    harness.clock.advance(25);
    assert!(decide(&harness, approval.id, approve()).await.is_err(), "too late");
    assert_eq!(harness.store.approvals().expire().await.unwrap(), 1);
    assert_eq!(call_of(&harness, &approval).await.status, CallStatus::Expired);
    let stored =
        harness.store.approvals().get(&approval.requested_by.tenant, approval.id).await.unwrap().unwrap();
    assert_eq!(stored.status, ApprovalStatus::Expired);
    assert_ne!(waiting(&harness, "agent", json!({})).await.id, approval.id, "it can be asked for again");
}

async fn a_cancelled_call_needs_no_decision(harness: Harness) {
    let approval = waiting(&harness, "agent", json!({})).await;
    let cancelled =
        harness.store.calls().cancel(&approval.requested_by.tenant, approval.call_id).await.unwrap();
    assert_eq!(cancelled, Some(Cancellation::Cancelled));
    assert!(decide(&harness, approval.id, approve()).await.is_err());
    assert_eq!(claimed(&harness).await, []);
}

async fn approvals_survive_a_restart_and_are_listed(mut harness: Harness) {
    let mut approvals = Vec::new();
    for number in 0..3 {
        approvals
            .insert(0, waiting(&harness, if number == 1 { "b" } else { "a" }, json!({"n": number})).await);
    }
    decide(&harness, approvals[0].id, approve()).await.unwrap();
    harness.restart().await;
    let query = || ApprovalQuery {
        tenant: approvals[0].requested_by.tenant.clone(),
        status: None,
        requested_by: None,
        before: None,
        limit: 10,
    };
    let list = async |query| {
        let (found, total) = harness.store.approvals().list(query).await.unwrap();
        let number = |one: &Approval| approvals.iter().position(|other| other.id == one.id).unwrap();
        (found.iter().map(number).collect::<Vec<_>>(), total)
    };
    assert_eq!(list(query()).await, (vec![0, 1, 2], 3));
    assert_eq!(list(ApprovalQuery { limit: 1, ..query() }).await, (vec![0], 3));
    assert_eq!(list(ApprovalQuery { before: Some(approvals[0].id), ..query() }).await, (vec![1, 2], 3));
    assert_eq!(
        list(ApprovalQuery { status: Some(ApprovalStatus::Waiting), ..query() }).await,
        (vec![1, 2], 2)
    );
    assert_eq!(list(ApprovalQuery { requested_by: Some("b".to_owned()), ..query() }).await, (vec![1], 1));
    let acme = haft_core::name::TenantId::new("acme").unwrap();
    assert_eq!(list(ApprovalQuery { tenant: acme, ..query() }).await, (vec![], 0));
    assert_eq!(claimed(&harness).await.len(), 1, "what was approved runs after the restart");
}

async fn a_claimed_call_waits_again(harness: Harness) {
    let approval = waiting(&harness, "agent", json!({})).await;
    decide(&harness, approval.id, approve()).await.unwrap();
    let call = claimed(&harness).await.remove(0);
    let later = harness.clock.now() + jiff::SignedDuration::from_hours(48);
    let next = || NextWait {
        approval: approval.id,
        cause: ApprovalCause::Rule("second".to_owned()),
        revision: 2,
        definition_hash: "other".to_owned(),
        expires_at: Some(later),
    };
    let approvals = harness.store.approvals();
    assert!(approvals.wait_again(call.clone(), next()).await.unwrap());
    assert_eq!(claimed(&harness).await, [], "it waits");
    let tenant = &approval.requested_by.tenant;
    let (waits, stored) = approvals.with_call(tenant, approval.id).await.unwrap().unwrap();
    assert_eq!((waits.status, stored.status), (ApprovalStatus::Waiting, CallStatus::AwaitingApproval));
    assert_eq!((waits.cause, waits.revision, waits.expires_at), (next().cause, 2, later));
    let lost = approvals.wait_again(call, next()).await;
    assert!(matches!(lost, Err(StoreError::ClaimLost)), "{lost:?}");

    // A cancelled one does not wait, and stays with the node that claimed it.
    decide(&harness, approval.id, approve()).await.unwrap();
    let call = claimed(&harness).await.remove(0);
    let cancelled = harness.store.calls().cancel(tenant, call.id()).await.unwrap();
    assert_eq!(cancelled, Some(Cancellation::Requested));
    assert!(!approvals.wait_again(call, next()).await.unwrap());
    let (decided, _) = approvals.with_call(tenant, approval.id).await.unwrap().unwrap();
    assert_eq!(decided.status, ApprovalStatus::Approved);
}
