//! Agents and retrieval pipelines are called through the steps of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::callable::{CallableKind, CallableResource};
use haft_core::id::TokenId;
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::policy::PolicyRules;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use haft_runtime::pipeline::{Principal, Request};
use haft_runtime::policy::Policy;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::rig::Rig;

fn caller() -> Principal {
    Principal::new(TenantId::default_tenant(), "ci", Role::Caller)
}

fn rules(rig: &Rig, rules: &Value) {
    let rules: PolicyRules = serde_json::from_value(json!({ "rules": rules })).unwrap();
    rig.policy.replace(Policy::compile(&rules, &[]).unwrap());
}

async fn call(
    rig: &Rig,
    kind: CallableKind,
    principal: Principal,
    input: Result<u32, CallError>,
) -> Result<u32, CallError> {
    let resource = CallableResource { kind, id: Uuid::nil(), slug: "planner".into(), revision: 3 };
    let request = Request::new(Arc::new(principal), "rest", Map::new());
    let work = |input| async move { Ok((input + 1, json!({"run_id": 7}))) };
    rig.pipeline.call_resource(&resource, request, input, work).await
}

async fn start(rig: &Rig, principal: Principal) -> Result<u32, CallError> {
    call(rig, CallableKind::Agent, principal, Ok(1)).await
}

#[tokio::test]
async fn role_allow_list_and_rules_hold_for_agents_and_pipelines() {
    let rig = Rig::new(Vec::new());
    assert_eq!(start(&rig, caller()).await.unwrap(), 2);
    assert_eq!(rig.take_observed(), [("planner".to_owned(), "ok")]);
    let error = start(&rig, Principal { role: Role::Viewer, ..caller() }).await.unwrap_err();
    assert_eq!(error.message, "role `caller` required; the token has `viewer`");

    let listed = |list: &str| Principal { tools: AllowList::new([list]).unwrap(), ..caller() };
    let error = start(&rig, listed("planner")).await.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (
            ErrorCode::Forbidden,
            "the allow-list of the token does not contain agent `planner`; add `agents:planner`, and the tools that it needs"
        )
    );
    assert!(error.call_id.is_some(), "the rejected call has a record");
    assert!(start(&rig, listed("agents:plan*")).await.is_ok());
    assert!(call(&rig, CallableKind::Pipeline, listed("agents:*"), Ok(1)).await.is_err());

    rules(
        &rig,
        &json!([{"name": "r", "match": {"tools": ["pipelines:*"]}, "effect": "deny", "reason": "no"}]),
    );
    assert!(start(&rig, caller()).await.is_ok());
    let error = call(&rig, CallableKind::Pipeline, caller(), Ok(1)).await.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (ErrorCode::PolicyDenied, "the policy rule `platform:r` denies the call: no")
    );

    rules(&rig, &json!([{"name": "r", "match": {"tools": ["agents:planner"]}, "effect": "approve"}]));
    let error = start(&rig, caller()).await.unwrap_err();
    let expected = "the policy rule `platform:r` requires approval, but the start of an agent cannot wait for approval; \
                    limit the rule to tools (`match.tools`), or deny `agents:planner`";
    assert_eq!((error.code, &*error.message), (ErrorCode::PolicyDenied, expected));
}

#[tokio::test]
async fn a_denied_caller_does_not_learn_why_the_request_is_invalid() {
    let rig = Rig::new(Vec::new());
    let invalid = || Err(CallError::new(ErrorCode::InvalidRequest, "`input` is empty"));
    let error = call(&rig, CallableKind::Agent, caller(), invalid()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    rules(&rig, &json!([{"name": "r", "match": {"agents": ["planner"]}, "effect": "deny"}]));
    let error = call(&rig, CallableKind::Agent, caller(), invalid()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyDenied);
}

#[tokio::test]
async fn the_rate_of_a_token_counts_agents_with_tools() {
    let rig = Rig::new(Vec::new());
    let principal = || Principal {
        token: Some(TokenId(Uuid::from_u128(1))),
        rate_limit: Some(CallRate { calls: 2, period: Duration::from_mins(1) }),
        ..caller()
    };
    assert!(start(&rig, principal()).await.is_ok());
    assert!(call(&rig, CallableKind::Pipeline, principal(), Ok(1)).await.is_ok());
    let error = start(&rig, principal()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RateLimited);
}
