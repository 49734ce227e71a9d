//! What an approval covers, and what it does not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::tenants::with;
use crate::waiting::{decide, finished, guarded, invoke, token};

/// A rule that only admins decide about, for large amounts.
async fn rule_for_large(server: &Server) {
    let rules = json!({"rules": [{"name": "large", "match": {"tools": ["guarded"]}, "when": "args.n > 100",
                                  "effect": "approve", "approvers": {"roles": ["admin"]}}]});
    let (status, answer) = server.put("/api/policy", rules).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn a_confirmation_does_not_stand_for_the_approvers_of_a_rule() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    // A rule that was added while the call waits.
    let early = invoke(&server, &agent, json!({"n": 600})).await.1;
    rule_for_large(&server).await;
    let (status, refused) = decide(&server, &agent, &early["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    // Arguments that the requester changes into what the rule holds back.
    let small = invoke(&server, &agent, json!({"n": 1})).await.1;
    let edited = json!({"args": {"n": 7777}});
    let (status, refused) = decide(&server, &agent, &small["approval_id"], "approve", edited.clone()).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    // A confirmation that the requester has remembered.
    let remember = json!({"remember": {"scope": "token", "any_args": true}});
    assert_eq!(decide(&server, &agent, &small["approval_id"], "approve", remember).await.0, 200);
    let done = finished(&server, &small["call_id"]).await;
    assert_eq!(done["value"], json!({"n": 1}), "{done}");
    assert_eq!(invoke(&server, &agent, json!({"n": 2})).await.1["value"], json!({"n": 2}));
    let large = invoke(&server, &agent, json!({"n": 8888})).await;
    assert_eq!((large.0, code(&large.1)), (202, "approval_required"), "{}", large.1);
    // An approver of the rule may change the arguments, and what was asked stays known.
    let (status, approved) = decide(&server, &server.token, &large.1["approval_id"], "approve", edited).await;
    assert_eq!((status, &approved["data"]["requested_args"]), (200, &json!({"n": 8888})), "{approved}");
    let done = finished(&server, &large.1["call_id"]).await;
    assert_eq!((&done["value"], &done["decision"]["rule"]), (&json!({"n": 7777}), &json!("large")), "{done}");
}

#[tokio::test]
async fn a_call_that_a_rule_denies_meanwhile_is_not_approved() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let answer = invoke(&server, &agent, json!({"n": 600})).await.1;
    let deny = json!({"rules": [{"name": "no", "match": {"tools": ["guarded"]}, "effect": "deny"}]});
    assert_eq!(server.put("/api/policy", deny).await.0, 200);
    let (status, refused) = decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (403, "policy_denied"), "{refused}");
}

#[tokio::test]
async fn remembered_approvals_are_listed_and_forgotten_and_only_admins_grant_for_everyone() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let other = token(&server, json!({"name": "other", "role": "caller"})).await;
    let answer = invoke(&server, &agent, json!({"n": 1})).await.1;
    let everyone = json!({"remember": {"scope": "tool", "any_args": true}});
    let (status, refused) =
        decide(&server, &agent, &answer["approval_id"], "approve", everyone.clone()).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    let (status, decided) = decide(&server, &server.token, &answer["approval_id"], "approve", everyone).await;
    assert_eq!((status, &decided["data"]["remembered"]["scope"]), (200, &json!("tool")), "{decided}");
    assert_eq!(invoke(&server, &other, json!({"n": 3})).await.1["value"], json!({"n": 3}));

    let (_, grants) = server.get("/api/approval-grants").await;
    let grant = &grants["data"]["grants"][0];
    assert_eq!(grant["cause"], "requires_confirmation", "{grants}");
    assert!(grant["tool"].as_str().unwrap().contains("guarded"), "{grants}");
    let path = format!("/api/approval-grants/{}", grant["id"].as_str().unwrap());
    let list = send(server.bare(Method::GET, "/api/approval-grants").bearer_auth(&other)).await.1;
    assert_eq!(list["data"]["grants"], json!([]), "callers see their own");
    assert_eq!(send(server.bare(Method::DELETE, &path).bearer_auth(&other)).await.0, 404);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(server.delete(&path).await.0, 404);
    assert_eq!(code(&invoke(&server, &other, json!({"n": 3})).await.1), "approval_required");
}

#[tokio::test]
async fn a_key_belongs_to_one_tool_and_its_arguments_while_the_call_waits_too() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    server.create(function_tool("other", "echo")).await;
    let call = async |path: &str, args: Value| {
        let request = server.bare(Method::POST, path).bearer_auth(&agent);
        let (status, body) =
            send(request.header("Idempotency-Key", "k").body(json!({"args": args}).to_string())).await;
        (status, code(&body).to_owned())
    };
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 1})).await.0, 202);
    let conflict = (409, "idempotency_conflict".to_owned());
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 2})).await, conflict);
    assert_eq!(call("/api/tools/other/invoke", json!({"n": 1})).await, conflict);
    assert_eq!(call("/api/tools/other/invoke?async=true", json!({"n": 1})).await, conflict);
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 1})).await.0, 202);
}

#[tokio::test]
async fn a_running_call_with_a_key_is_cancelled() {
    let server = Server::start().await;
    server.create(function_tool("slow", "sleep")).await;
    let request = server.request(Method::POST, "/api/tools/slow/invoke").header("Idempotency-Key", "k");
    let running = tokio::spawn(send(request.body(r#"{"args":{}}"#)));
    let id = poll(async || {
        let list = server.get("/api/calls?status=running").await.1;
        list["data"]["calls"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let (status, answer) = server.post(&format!("/api/calls/{id}/cancel"), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let (_, outcome) = running.await.unwrap();
    assert_eq!(code(&outcome), "cancelled", "{outcome}");
    assert_eq!(finished(&server, &json!(id)).await["status"], "cancelled");
}

#[tokio::test]
async fn waiting_approvals_are_limited_and_lists_leave_out_long_arguments() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let limits = json!({"limits": {"max_queued_calls": 2}});
    assert_eq!(server.patch("/api/tenants/default", limits).await.0, 200);
    let long = "x".repeat(20_000);
    assert_eq!(invoke(&server, &agent, json!({"text": long})).await.0, 202);
    assert_eq!(invoke(&server, &agent, json!({"n": 2})).await.0, 202);
    let (status, refused) = invoke(&server, &agent, json!({"n": 3})).await;
    assert_eq!((status, code(&refused)), (503, "overloaded"), "{refused}");
    assert_eq!(server.get("/api/approvals?status=waiting").await.1["data"]["total"], 2);
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    let shown = &list["data"]["approvals"][1];
    assert_eq!((&shown["shortened"], &shown["args"]), (&json!(true), &Value::Null), "{shown}");
    let path = format!("/api/approvals/{}", shown["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["data"]["args"]["text"].as_str().unwrap().len(), 20_000);
}

fn args_of(tool: &str) -> Value {
    if tool == "by-agent" { json!({"args": {"input": "hi"}}) } else { json!({"args": {}}) }
}

/// Asks for a call that needs approval; returns the approval.
async fn held(server: &Server, agent: &str, tool: &str) -> Value {
    let (status, answer) =
        with(server, agent, Method::POST, &format!("/api/tools/{tool}/invoke"), args_of(tool)).await;
    assert_eq!((status, code(&answer)), (202, "approval_required"), "{answer}");
    answer["approval_id"].clone()
}

/// Asks for a run of the agent `helper` by a tool that needs approval; returns the caller and the approval.
async fn held_agent(server: &Server) -> (String, Value) {
    let agent = json!({"slug": "helper", "instructions": "i",
                       "model": {"provider": "scripted", "script": "turns: [{text: done}]"}});
    assert_eq!(server.post("/api/agents", agent).await.0, 201);
    server
        .create(json!({"name": "by-agent", "description": "d", "requires_confirmation": true,
                       "implementation": {"type": "agent_call", "target_agent_slug": "helper"}}))
        .await;
    let caller = token(server, json!({"name": "caller", "role": "caller"})).await;
    let approval = held(server, &caller, "by-agent").await;
    (caller, approval)
}

/// Checks that approvals of calls of `tool` do not cover what runs after `change`.
async fn check_a_change_is_asked_about(server: &Server, tool: &str, change: impl AsyncFn(u32)) {
    let agent = token(server, json!({"name": tool, "role": "caller"})).await;
    let approval = held(server, &agent, tool).await;
    change(1).await;
    let (status, refused) = decide(server, &server.token, &approval, "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (409, "conflict"), "{tool}: {refused}");
    // Neither does one that is remembered.
    let approval = held(server, &agent, tool).await;
    let remember = json!({"remember": {"scope": "token", "any_args": true}});
    let (status, answer) = decide(server, &server.token, &approval, "approve", remember).await;
    assert_eq!(status, 200, "{tool}: {answer}");
    let call = async || {
        let path = format!("/api/tools/{tool}/invoke");
        with(server, &agent, Method::POST, &path, args_of(tool)).await
    };
    poll(async || (call().await.0 == 200).then_some(())).await;
    change(2).await;
    let (status, answer) = call().await;
    assert_eq!((status, code(&answer)), (202, "approval_required"), "{tool}: {answer}");
}

#[tokio::test]
async fn an_approval_covers_everything_that_the_tool_runs() {
    let server = Server::start_whole(|_| {}).await;
    let artifact =
        |number: u32| json!({"slug": "code", "runtime": "bash", "source": format!("echo {number}")});
    assert_eq!(server.post("/api/code-artifacts", artifact(0)).await.0, 201);
    server
        .create(json!({"name": "by-artifact", "description": "d", "requires_confirmation": true,
                       "implementation": {"type": "artifact", "artifact_id": "code"}}))
        .await;
    check_a_change_is_asked_about(&server, "by-artifact", async |number| {
        let (status, answer) = server.put("/api/code-artifacts/code", artifact(number)).await;
        assert_eq!(status, 200, "{answer}");
    })
    .await;

    let inner = |number: u32| {
        json!({"name": "inner", "description": format!("d{number}"),
               "implementation": {"type": "script", "runtime": "bash", "body": "echo 1"}})
    };
    server.create(inner(0)).await;
    let steps = |name: &str, tool: &str| {
        json!({"name": name, "description": "d", "requires_confirmation": name == "by-steps",
               "implementation": {"type": "steps", "steps": [{"id": "a", "tool": tool}]}})
    };
    server.create(steps("middle", "inner")).await;
    server.create(steps("by-steps", "middle")).await;
    check_a_change_is_asked_about(&server, "by-steps", async |number| {
        let (status, answer) = server.put("/api/tools/inner", inner(number)).await;
        assert_eq!(status, 200, "{answer}");
    })
    .await;

    let agent = |number: u32| {
        let script = "turns: [{text: done}]";
        json!({"slug": "helper", "instructions": format!("{number}"), "model": {"provider": "scripted", "script": script}})
    };
    assert_eq!(server.post("/api/agents", agent(0)).await.0, 201);
    server
        .create(json!({"name": "by-agent", "description": "d", "requires_confirmation": true,
                       "implementation": {"type": "agent_call", "target_agent_slug": "helper"}}))
        .await;
    check_a_change_is_asked_about(&server, "by-agent", async |number| {
        let (status, answer) = server.put("/api/agents/helper", agent(number)).await;
        assert_eq!(status, 200, "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_queued_call_ends_if_what_it_runs_is_gone() {
    let server = Server::start_with(|settings| settings.queue.workers = 1).await;
    let (caller, approval) = held_agent(&server).await;
    let remember = json!({"remember": {"scope": "token", "any_args": true}});
    assert_eq!(decide(&server, &server.token, &approval, "approve", remember).await.0, 200);
    // The only worker is busy: the next call waits in the queue.
    let held_call = crate::postgres::start_held_call(&server).await;
    let path = "/api/tools/by-agent/invoke?async=true";
    // Other arguments: the same ones would return the outcome of the approved call.
    let next = json!({"args": {"input": "next"}});
    let (status, queued) = with(&server, &caller, Method::POST, path, next).await;
    assert_eq!(status, 202, "{queued}");
    assert_eq!(server.patch("/api/agents/helper", json!({"enabled": false})).await.0, 200);
    server.gate.open();
    let ended = finished(&server, &queued["call_id"]).await;
    assert_eq!(ended["status"], "error", "{ended}");
    assert_eq!(server.get(&held_call).await.1["data"]["status"], "success");
}

#[tokio::test]
async fn an_approval_of_what_is_gone_ends() {
    let server = Server::start().await;
    let (_, approval) = held_agent(&server).await;
    assert_eq!(server.delete("/api/agents/helper?force=true").await.0, 200);
    let (status, refused) = decide(&server, &server.token, &approval, "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (409, "conflict"), "{refused}");
    let shown = server.get(&format!("/api/approvals/{}", approval.as_str().unwrap())).await.1;
    assert_ne!(shown["data"]["status"], "waiting", "{shown}");
}

#[tokio::test]
async fn rules_approvers_and_records_see_the_arguments_that_run() {
    let server = Server::start().await;
    let path = json!({"type": "object", "properties": {"path": {"type": "string", "default": "/etc"}}});
    let mut tool = function_tool("open", "echo");
    tool["input_schema"] = path.clone();
    server.create(tool).await;
    // The default of a template holds, whatever the schema says.
    server
        .create(json!({
            "name": "list", "description": "Lists a folder", "policy": "allow",
            "input_schema": {"type": "object", "properties": {"path": {"type": ["string", "null"]}}},
            "implementation": {"type": "exec", "argv": ["echo", "{{path | default:/etc}}"]},
        }))
        .await;
    let rule = async |effect: &str| {
        let guard = json!({"name": "guard", "match": {"tools": ["open", "list"]}, "effect": effect,
                           "when": "has(args.path) && args.path.startsWith('/etc')"});
        assert_eq!(server.put("/api/policy", json!({"rules": [guard]})).await.0, 200);
    };
    rule("deny").await;
    for (tool, args, expected) in [
        ("open", json!({}), 403),
        ("open", json!({"path": "/tmp"}), 200),
        ("list", json!({}), 403),
        ("list", json!({"path": null}), 403),
        ("list", json!({"path": "/tmp"}), 200),
    ] {
        let (status, answer) = server.invoke(tool, args.clone()).await;
        assert_eq!(status, expected, "{tool} {args}: {answer}");
        let (_, explained) = server.post("/api/policy/explain", json!({"tool": tool, "args": args})).await;
        let effect = if expected == 403 { "deny" } else { "allow" };
        assert_eq!(explained["data"]["effect"], effect, "{tool} {args}: {explained}");
    }
    // The approver sees the default, and the same call with it is the same call.
    rule("approve").await;
    let agent = token(&server, json!({"name": "agent", "role": "caller"})).await;
    let open = async |args: Value| {
        with(&server, &agent, Method::POST, "/api/tools/open/invoke", json!({"args": args})).await.1
    };
    let asked = open(json!({})).await;
    assert_eq!(code(&asked), "approval_required", "{asked}");
    assert_eq!(open(json!({"path": "/etc"})).await["approval_id"], asked["approval_id"]);
    let shown = server.get(&format!("/api/approvals/{}", asked["approval_id"].as_str().unwrap())).await.1;
    assert_eq!(shown["data"]["args"], json!({"path": "/etc"}), "{shown}");
    decide(&server, &server.token, &asked["approval_id"], "approve", json!({})).await;
    let done = finished(&server, &asked["call_id"]).await;
    assert_eq!(
        (&done["value"], &done["args"]),
        (&json!({"path": "/etc"}), &json!({"path": "/etc"})),
        "{done}"
    );
}

#[tokio::test]
async fn rules_see_the_defaults_of_a_stored_artifact() {
    let server = Server::start().await;
    let artifact = json!({"slug": "show", "runtime": "bash", "source": "echo \"$path\"",
                          "inputs": [{"name": "path", "type": "string", "default": "/etc"}]});
    assert_eq!(server.post("/api/code-artifacts", artifact).await.0, 201);
    let tool = |name: &str, schema: Value| {
        json!({"name": name, "description": "d", "input_schema": schema,
               "implementation": {"type": "artifact", "artifact_id": "show"}})
    };
    let path = json!({"type": "object", "properties": {"path": {"type": ["string", "null"]}}});
    server.create(tool("open", path)).await;
    // The caller cannot even pass the input.
    server.create(tool("closed", json!({"type": "object", "additionalProperties": false}))).await;
    let rule = async |effect: &str| {
        let guard = json!({"name": "guard", "match": {"tools": ["open", "closed"]}, "effect": effect,
                           "when": "has(args.path) && args.path.startsWith('/etc')"});
        assert_eq!(server.put("/api/policy", json!({"rules": [guard]})).await.0, 200);
    };
    rule("deny").await;
    for (tool, args, expected) in [
        ("open", json!({}), 403),
        ("open", json!({"path": null}), 403),
        ("open", json!({"path": "/tmp"}), 200),
        ("closed", json!({}), 403),
    ] {
        let (status, answer) = server.invoke(tool, args.clone()).await;
        assert_eq!(status, expected, "{tool} {args}: {answer}");
        let (_, explained) = server.post("/api/policy/explain", json!({"tool": tool, "args": args})).await;
        let effect = if expected == 403 { "deny" } else { "allow" };
        assert_eq!(explained["data"]["effect"], effect, "{tool} {args}: {explained}");
    }
    // The approver and the record see it, too, and the call passes its checks again when it runs.
    rule("approve").await;
    let agent = token(&server, json!({"name": "agent", "role": "caller"})).await;
    for tool in ["open", "closed"] {
        let path = format!("/api/tools/{tool}/invoke");
        let asked = with(&server, &agent, Method::POST, &path, json!({"args": {}})).await.1;
        assert_eq!(code(&asked), "approval_required", "{asked}");
        let shown = server.get(&format!("/api/approvals/{}", asked["approval_id"].as_str().unwrap())).await.1;
        assert_eq!(shown["data"]["args"], json!({"path": "/etc"}), "{shown}");
        decide(&server, &server.token, &asked["approval_id"], "approve", json!({})).await;
        let done = finished(&server, &asked["call_id"]).await;
        assert_eq!((&done["value"], &done["args"]), (&json!("/etc"), &json!({"path": "/etc"})), "{done}");
    }
}

#[tokio::test]
async fn a_default_need_not_match_the_schema_while_a_call_waits() {
    let server = Server::start().await;
    let tool = json!({
        "name": "guarded", "description": "d", "requires_confirmation": true,
        "implementation": {"type": "exec", "command": "echo {{n | default:ten}}"},
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    });
    server.create(tool).await;
    let agent = token(&server, json!({"name": "agent", "role": "caller"})).await;
    let (status, asked) = invoke(&server, &agent, json!({})).await;
    assert_eq!((status, code(&asked)), (202, "approval_required"), "{asked}");
    let (status, answer) = decide(&server, &server.token, &asked["approval_id"], "approve", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(finished(&server, &asked["call_id"]).await["value"], json!("ten"));
}

#[tokio::test]
async fn what_a_tool_runs_is_looked_at_as_deep_as_calls_go() {
    let server = Server::start().await;
    server.create(function_tool("tool0", "echo")).await;
    for number in 1..=40 {
        server
            .create(json!({
                "name": format!("tool{number}"), "description": "d", "requires_confirmation": true,
                "implementation": {"type": "steps", "steps": [{"id": "a", "tool": format!("tool{}", number - 1)}]},
            }))
            .await;
    }
    let agent = token(&server, json!({"name": "agent", "role": "caller"})).await;
    for (number, expected) in [(10, "approval_required"), (40, "too_deep")] {
        let path = format!("/api/tools/tool{number}/invoke");
        let (_, answer) = with(&server, &agent, Method::POST, &path, json!({})).await;
        assert_eq!(code(&answer), expected, "{answer}");
    }
    // The call that was rejected is recorded, too.
    assert_eq!(server.get("/api/calls?tool=tool40").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn what_a_client_says_about_itself_never_allows() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let call = async |surface: &str| {
        let request = server.bare(Method::POST, "/api/tools/guarded/invoke").bearer_auth(&agent);
        send(request.header("x-haft-surface", surface).body(json!({"args": {}}).to_string())).await
    };
    let rule = async |effect: &str, surface: &str| {
        let rule =
            json!({"name": "r", "match": {"tools": ["guarded"], "surfaces": [surface]}, "effect": effect});
        assert_eq!(server.put("/api/policy", json!({"rules": [rule]})).await.0, 200);
    };
    rule("allow", "cli").await;
    for surface in ["cli", "rest", "CLI"] {
        assert_eq!(code(&call(surface).await.1), "approval_required", "{surface}");
    }
    rule("deny", "cli").await;
    assert_eq!((call("cli").await.0, call("rest").await.0), (403, 202));
    rule("deny", "rest").await;
    assert_eq!((call("cli").await.0, call("rest").await.0), (403, 403));
}
