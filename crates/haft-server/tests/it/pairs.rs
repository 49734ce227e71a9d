//! Features of a governed call, each met by each other: on two nodes that share a database.

use std::fmt;

use haft_testkit::postgres;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::postgres::on;
use crate::tenants::with;
use crate::waiting::{decide, finished};

/// What a call meets on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feature {
    /// An earlier approval is remembered for the caller.
    Remembered,
    /// The approver changes the arguments.
    Edited,
    /// The caller does not wait: `?async=true`.
    Queued,
    /// The call has an idempotency key.
    Keyed,
    /// The token is rotated while the call waits, and the grace of its old value ends.
    Rotated,
    /// A `steps` tool makes the call.
    Nested,
    /// The token is revoked while the call waits.
    Revoked,
    /// Another node decides, and answers from then on.
    OtherNode,
}

const FEATURES: [Feature; 8] = [
    Feature::Remembered,
    Feature::Edited,
    Feature::Queued,
    Feature::Keyed,
    Feature::Rotated,
    Feature::Nested,
    Feature::Revoked,
    Feature::OtherNode,
];

/// A caller of a tool that needs approval.
struct Pair<'a> {
    features: [Feature; 2],
    one: &'a Server,
    /// Another node, which may run queued calls.
    other: &'a Server,
    /// The node that decides and answers later.
    there: &'a Server,
    /// The tool that needs approval.
    guarded: String,
    /// The tool that the caller calls: `guarded`, or the one around it.
    target: String,
    token_id: String,
    token: String,
}

impl fmt::Display for Pair<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.features;
        write!(formatter, "{first:?} × {second:?}")
    }
}

impl<'a> Pair<'a> {
    async fn new(one: &'a Server, other: &'a Server, features: [Feature; 2]) -> Self {
        let [first, second] = features.map(|feature| format!("{feature:?}").to_lowercase());
        let guarded = format!("guarded_{first}_{second}");
        let mut tool = function_tool(&guarded, "echo");
        tool["requires_confirmation"] = json!(true);
        one.create(tool).await;
        let has = |feature| features.contains(&feature);
        let mut target = guarded.clone();
        if has(Feature::Nested) {
            target = format!("outer_{first}_{second}");
            one.create(json!({
                "name": target, "description": "Calls another tool",
                "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
                "implementation": {"type": "steps", "steps": [
                    {"id": "only", "tool": guarded, "args": {"n": "$args.n"}},
                ]},
            }))
            .await;
        }
        let (status, made) = one.post("/api/tokens", json!({"name": guarded, "role": "caller"})).await;
        assert_eq!(status, 201, "{made}");
        let there = if has(Feature::OtherNode) { other } else { one };
        let token = made["data"]["token"].as_str().unwrap().to_owned();
        let path = format!("/api/tools/{target}");
        poll(async || (with(there, &token, Method::GET, &path, json!({})).await.0 == 200).then_some(()))
            .await;
        let token_id = made["data"]["id"].as_str().unwrap().to_owned();
        Self { features, one, other, there, guarded, target, token_id, token }
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Calls a tool as its caller; returns the record once the call has ended or waits for approval.
    async fn call(&self, node: &Server, tool: &str, args: Value, key: &str) -> (u16, Value) {
        let asynchronous = if self.has(Feature::Queued) { "?async=true" } else { "" };
        let path = format!("/api/tools/{tool}/invoke{asynchronous}");
        let mut request = node.bare(Method::POST, &path).bearer_auth(&self.token);
        if self.has(Feature::Keyed) {
            request = request.header("idempotency-key", format!("{} {key}", self.guarded));
        }
        let (status, answer) = send(request.body(json!({"args": args}).to_string())).await;
        if status == 202 && code(&answer) != "approval_required" {
            return (200, outcome(node, &answer["call_id"]).await);
        }
        (status, answer)
    }

    /// Approves the call that waits, on the other node if there is one. Returns its id.
    async fn approve(&self, body: Value) -> Value {
        let approval = poll(async || {
            let list = self.there.get("/api/approvals?status=waiting").await.1;
            let list = list["data"]["approvals"].as_array().unwrap().clone();
            let is_own = |approval: &&Value| approval["tool"].as_str().unwrap().contains(&self.guarded);
            list.iter().find(is_own).cloned()
        })
        .await;
        let (status, answer) = decide(self.there, &self.there.token, &approval["id"], "approve", body).await;
        assert_eq!(status, 200, "{self}: {answer}");
        approval["call_id"].clone()
    }

    async fn rotate(&mut self) {
        let path = format!("/api/tokens/{}/rotate", self.token_id);
        let (status, made) = self.one.post(&path, json!({"grace": "1s"})).await;
        assert_eq!(status, 200, "{self}: {made}");
        self.until_rejected().await;
        made["data"]["token"].as_str().unwrap().clone_into(&mut self.token);
    }

    async fn revoke(&self) {
        assert_eq!(self.one.delete(&format!("/api/tokens/{}", self.token_id)).await.0, 200, "{self}");
        self.until_rejected().await;
    }

    /// Waits until no node accepts the token.
    async fn until_rejected(&self) {
        for node in [self.one, self.other] {
            let status = async || with(node, &self.token, Method::GET, "/api/tools", json!({})).await.0;
            poll(async || (status().await == 401).then_some(())).await;
        }
    }

    /// The number of times that the tool ran.
    async fn runs(&self) -> Value {
        let path = format!("/api/calls?tool={}&status=success", self.guarded);
        self.there.get(&path).await.1["data"]["total"].clone()
    }

    /// What happens between the request and the decision, or the next call.
    async fn meanwhile(&mut self) {
        if self.has(Feature::Rotated) {
            self.rotate().await;
        }
        if self.has(Feature::Revoked) {
            self.revoke().await;
        }
    }

    /// Checks that the target asked for approval. A step does not wait: the tool around it fails with the error of the step.
    fn assert_asked(&self, answer: &Value) {
        let (expected, asked) = if self.has(Feature::Nested) {
            ("execution_failed", &answer["error"]["details"])
        } else {
            ("approval_required", answer)
        };
        assert_eq!((code(answer), code(asked)), (expected, "approval_required"), "{self}: {answer}");
    }

    /// A call that waits for approval: it runs once, with the arguments of the approver, and its caller gets the outcome.
    async fn asks(mut self) {
        let (_, answer) = self.call(self.one, &self.target, json!({"n": 1}), "first").await;
        self.assert_asked(&answer);
        self.meanwhile().await;
        let edited = if self.has(Feature::Edited) { json!({"args": {"n": 2}}) } else { json!({}) };
        let call = self.approve(edited).await;
        let done = finished(self.there, &call).await;
        if self.has(Feature::Revoked) {
            assert_eq!((&done["status"], code(&done)), (&json!("error"), "unauthorized"), "{self}: {done}");
            assert_eq!(self.runs().await, 0, "{self}");
            return;
        }
        let expected = json!({"n": if self.has(Feature::Edited) { 2 } else { 1 }});
        assert_eq!((&done["status"], &done["value"]), (&json!("success"), &expected), "{self}: {done}");
        if self.has(Feature::Nested) && self.has(Feature::Keyed) {
            // The outer call has ended: its key returns its outcome, and another key is another call.
            let (_, answer) = self.call(self.there, &self.target, json!({"n": 1}), "first").await;
            self.assert_asked(&answer);
        }
        let key = if self.has(Feature::Nested) { "second" } else { "first" };
        let (status, answer) = self.call(self.there, &self.target, json!({"n": 1}), key).await;
        assert_eq!((status, &answer["value"]), (200, &expected), "{self}: {answer}");
        if !self.has(Feature::Nested) {
            assert_eq!(answer["call_id"], call, "{self}");
        }
        assert_eq!(self.runs().await, 1, "{self}");
    }

    /// A call that a remembered approval covers: it runs at once.
    async fn runs_at_once(mut self) {
        let (_, answer) = self.call(self.one, &self.guarded, json!({"n": 0}), "zeroth").await;
        assert_eq!(code(&answer), "approval_required", "{self}: {answer}");
        let edited = self.has(Feature::Edited);
        let mut body = json!({"remember": {"scope": "token", "any_args": !edited}});
        if edited {
            body["args"] = json!({"n": 2});
        }
        let call = self.approve(body).await;
        assert_eq!(finished(self.one, &call).await["status"], "success", "{self}");
        // The outcome of the approved call.
        let (_, answer) = self.call(self.one, &self.guarded, json!({"n": 0}), "zeroth").await;
        assert_eq!(answer["call_id"], call, "{self}: {answer}");
        self.meanwhile().await;
        let (status, answer) = self.call(self.there, &self.target, json!({"n": 2}), "first").await;
        if self.has(Feature::Revoked) {
            assert_eq!((status, self.runs().await), (401, json!(1)), "{self}: {answer}");
            return;
        }
        assert_eq!((status, &answer["value"]), (200, &json!({"n": 2})), "{self}: {answer}");
        let runs = self.runs().await;
        assert_eq!(runs, 2, "{self}");
        let (status, again) = self.call(self.there, &self.target, json!({"n": 2}), "first").await;
        assert_eq!(status, 200, "{self}: {again}");
        let is_same = again["call_id"] == answer["call_id"];
        assert_eq!(is_same, self.has(Feature::Keyed), "{self}: {again}");
        if edited {
            // What was requested then was not approved.
            let (_, answer) = self.call(self.there, &self.target, json!({"n": 0}), "second").await;
            assert_eq!(code(&answer), "approval_required", "{self}: {answer}");
        }
    }
}

/// Returns a call that has ended, in the form of a direct answer.
async fn outcome(node: &Server, call: &Value) -> Value {
    let mut done = finished(node, call).await;
    done["call_id"] = call.clone();
    done
}

#[tokio::test]
async fn every_pair_of_features_keeps_both_promises() {
    let database = postgres::database().unwrap();
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    for (index, first) in FEATURES.into_iter().enumerate() {
        for second in FEATURES.into_iter().skip(index + 1) {
            let pair = Pair::new(&one, &other, [first, second]).await;
            if pair.has(Feature::Remembered) {
                Box::pin(pair.runs_at_once()).await;
            } else {
                Box::pin(pair.asks()).await;
            }
        }
    }
}
