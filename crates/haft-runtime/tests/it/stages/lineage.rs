//! Rules about a surface hold for the steps of a tool that was called through it.

use haft_core::outcome::ErrorCode;
use haft_core::policy::PolicyRules;
use haft_runtime::policy::Policy;
use serde_json::{Value, json};

use super::rig::Rig;

const DENIED: &str = "the policy rule `platform:r` denies the call";

/// A rig with a tool of two levels of steps, and a rule of the platform.
fn rig(rule: Value) -> Rig {
    let rig = Rig::new(Vec::new());
    rig.tool("quick", json!({}));
    for (name, tool) in [("inner", "quick"), ("outer", "inner")] {
        rig.defined(json!({
            "name": name, "version": "1.0.0",
            "implementation": {"type": "steps", "steps": [{"id": "a", "tool": tool, "args": {"x": 1}}]},
        }));
    }
    let mut rule = rule;
    rule["name"] = json!("r");
    let rules: PolicyRules = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
    rig.policy.replace(Policy::compile(&rules, &[]).unwrap());
    rig
}

/// Returns why a call failed, or nothing. A step that was denied is a failure of the call whose step it is.
async fn failure(rig: &Rig, surface: &'static str, tool: &str) -> String {
    rig.call_through(surface, tool, json!({})).await.map_or_else(|error| error.message, |_| String::new())
}

#[tokio::test]
async fn a_rule_on_a_surface_holds_for_steps_below_it() {
    for when in [None, Some("args.x == 1")] {
        let rig =
            rig(json!({"match": {"tools": ["quick"], "surfaces": ["mcp"]}, "when": when, "effect": "deny"}));
        for tool in ["quick", "inner", "outer"] {
            // Without the argument the condition fails, which counts as a match.
            assert!(failure(&rig, "mcp", tool).await.ends_with(DENIED), "{tool}");
            assert_eq!(failure(&rig, "rest", tool).await, "", "{tool}");
        }
    }
}

#[tokio::test]
async fn a_rule_on_a_surface_between_holds() {
    let rig = rig(json!({"match": {"tools": ["quick"], "surfaces": ["steps"]}, "effect": "deny"}));
    assert_eq!(failure(&rig, "rest", "quick").await, "");
    assert!(failure(&rig, "rest", "outer").await.ends_with(DENIED));
}

#[tokio::test]
async fn a_rule_that_allows_holds_for_the_direct_caller_only() {
    let allowed = rig(json!({"match": {"tools": ["quick"], "surfaces": ["mcp"]}, "effect": "allow"}));
    allowed.defined(json!({
        "name": "quick", "version": "1.0.0", "policy": "elevated",
        "implementation": {"type": "function", "function": "quick"},
    }));
    assert_eq!(failure(&allowed, "mcp", "quick").await, "");
    let nested = failure(&allowed, "mcp", "inner").await;
    assert!(nested.ends_with("only an elevated token may call it"), "{nested}");
}

#[tokio::test]
async fn a_certain_denial_comes_before_the_arguments() {
    let strict = json!({
        "name": "strict", "version": "1.0.0",
        "implementation": {"type": "function", "function": "quick"},
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    });
    for (rule, expected) in [
        (json!({"match": {"tools": ["strict"]}, "effect": "deny"}), ErrorCode::PolicyDenied),
        (json!({"when": "surface == 'rest'", "effect": "deny"}), ErrorCode::PolicyDenied),
        (
            json!({"match": {"tools": ["strict"]}, "when": "args.n > 1", "effect": "deny"}),
            ErrorCode::InvalidArguments,
        ),
        (json!({"match": {"tools": ["strict"]}, "effect": "approve"}), ErrorCode::InvalidArguments),
    ] {
        let rig = rig(rule.clone());
        rig.defined(strict.clone());
        let error = rig.call_through("rest", "strict", json!({"n": "x"})).await.unwrap_err();
        assert_eq!(error.code, expected, "{rule}");
        if expected == ErrorCode::PolicyDenied {
            assert!(error.details.is_none() && !error.message.contains("`n`"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_viewer_calls_nothing() {
    let rig = rig(json!({"match": {"tools": ["nothing"]}, "effect": "deny"}));
    let error = rig.call_with_role("viewer", "quick").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    assert_eq!(error.message, "role `caller` required; the token has `viewer`");
    assert!(rig.call_with_role("caller", "quick").await.is_ok());
}
