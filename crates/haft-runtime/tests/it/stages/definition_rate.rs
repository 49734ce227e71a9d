//! `execution.rate_limit` of a definition.

use serde_json::json;

use super::rig::{Rig, secs};

#[tokio::test(start_paused = true)]
async fn the_rate_limit_of_a_definition_holds() {
    let rig = Rig::new(Vec::new());
    rig.tool("quick", json!({"rate_limit": {"calls": 2, "per": "1m"}}));
    for _ in 0..2 {
        rig.call("quick", json!({})).await.unwrap();
    }
    let error = rig.call("quick", json!({})).await.unwrap_err();
    insta::assert_json_snapshot!(error, @r#"
{
  "code": "rate_limited",
  "message": "rate limit exceeded for `user-created:quick@1.0.0`: 2 calls per 1m; retry in 1m",
  "retryable": true,
  "details": {
    "limit": "tool.rate_limit",
    "value": 2,
    "reset_seconds": 60,
    "calls": 2,
    "per": "1m",
    "retry_after_ms": 60000
  },
  "for_model": "rate limit exceeded for `quick`: 2 calls per 1m; retry in 1m",
  "retry_after": {
    "secs": 60,
    "nanos": 0
  }
}
"#);
    tokio::time::advance(secs(60)).await;
    assert_eq!(rig.code("quick", json!({})).await, "ok");
    assert_eq!(rig.runs(), 3, "what was refused did not run");
}

#[tokio::test(start_paused = true)]
async fn an_edit_does_not_reset_the_count() {
    let rig = Rig::new(Vec::new());
    for (calls, expected) in [(2, "ok"), (2, "ok"), (2, "rate_limited"), (3, "ok"), (3, "rate_limited")] {
        rig.tool("quick", json!({"rate_limit": {"calls": calls, "per": "1m"}}));
        assert_eq!(rig.code("quick", json!({})).await, expected, "{calls}");
    }
    rig.tool("quick", json!({}));
    assert_eq!(rig.code("quick", json!({})).await, "ok", "no rate limit, no rejection");
}

#[tokio::test]
async fn a_tool_with_an_invalid_stored_rate_does_not_run() {
    for (calls, per, expected) in [
        (0, "1m", "`execution.rate_limit.calls`: must be at least 1"),
        (1, "0s", "`execution.rate_limit.per`: must be longer than zero"),
        (1, "often", "`execution.rate_limit.per`: invalid duration `often`"),
    ] {
        let rig = Rig::new(Vec::new());
        rig.tool("quick", json!({"rate_limit": {"calls": calls, "per": per}}));
        let error = rig.call("quick", json!({})).await.unwrap_err();
        assert_eq!(error.code.as_str(), "not_ready");
        assert!(error.message.contains(expected), "{}", error.message);
    }
}
