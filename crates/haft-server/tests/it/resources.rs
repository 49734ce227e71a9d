//! Operations that agents, retrieval pipelines and code artifacts share: usage, deletion, undelete, quotas.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token};
use crate::harness::{Server, code, function_tool};
use crate::runs::ended;
use crate::tenants::{tenant, with};

/// A kind: its path, the definition of one, the implementation of a tool that refers to it, the field that does.
struct Kind {
    path: &'static str,
    noun: &'static str,
    limit: &'static str,
    definition: Value,
    implementation: Value,
    field: &'static str,
}

const SLUG: &str = "shared";

fn kinds() -> [Kind; 3] {
    [
        Kind {
            path: "/api/agents",
            noun: "agent",
            limit: "max_agents",
            definition: scripted(SLUG, &[], "turns: [{text: hi}]"),
            implementation: json!({"type": "agent_call", "target_agent_slug": SLUG}),
            field: "implementation.target_agent_slug",
        },
        Kind {
            path: "/api/pipelines",
            noun: "pipeline",
            limit: "max_pipelines",
            definition: json!({"slug": SLUG}),
            implementation: json!({"type": "rag_retrieval", "pipeline_id": SLUG}),
            field: "implementation.pipeline_id",
        },
        Kind {
            path: "/api/code-artifacts",
            noun: "artifact",
            limit: "max_artifacts",
            definition: json!({"slug": SLUG, "runtime": "bash", "source": "echo ok"}),
            implementation: json!({"type": "artifact", "artifact_id": SLUG}),
            field: "implementation.artifact_id",
        },
    ]
}

impl Kind {
    fn one(&self) -> String {
        format!("{}/{SLUG}", self.path)
    }

    fn plural(&self) -> String {
        format!("{}s", self.noun)
    }

    async fn create(&self, server: &Server) -> Value {
        let (status, answer) = server.post(self.path, self.definition.clone()).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"].clone()
    }

    /// Stores a tool that refers to it, one that calls this tool in a step, and an agent that may call it.
    async fn use_it(&self, server: &Server) {
        let tool = json!({"name": "user", "description": "Uses it", "implementation": self.implementation});
        server.create(tool).await;
        let steps = json!([{"id": "one", "tool": "user"}]);
        let tool = json!({"name": "indirect", "description": "Calls the user", "input_schema": {"type": "object"},
                          "implementation": {"type": "steps", "steps": steps}});
        server.create(tool).await;
        create(server, scripted("boss", &["user"], "turns: [{text: hi}]")).await;
    }
}

#[tokio::test]
async fn what_is_in_use_names_its_users_and_is_deleted_by_force_only() {
    for kind in kinds() {
        let server = Server::start().await;
        kind.create(&server).await;
        let one = kind.one();
        kind.use_it(&server).await;
        let (status, answer) = server.get(&format!("{one}/usage")).await;
        assert_eq!(status, 200, "{answer}");
        let usage = &answer["data"];
        let tools: Vec<(&Value, &Value)> =
            usage["tools"].as_array().unwrap().iter().map(|tool| (&tool["tool"], &tool["field"])).collect();
        let expected = [
            (&json!("user-created:user@1.0.0"), &json!(kind.field)),
            (&json!("user-created:indirect@1.0.0"), &json!("implementation.steps")),
        ];
        assert_eq!(tools, expected, "{usage}");
        assert_eq!(
            (&usage["agents"][0]["agent"], &usage["agents"][0]["rules"]),
            (&json!("boss"), &json!(["user"]))
        );
        let (status, answer) = server.delete(&one).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        let noun = kind.noun;
        assert_eq!(
            answer["error"]["message"],
            format!(
                "{noun} `{SLUG}` is in use by `user-created:user@1.0.0`; change these, or delete it anyway with \
                 `force=true` (`haft {noun} delete --force`)"
            )
        );
        assert_eq!(answer["error"]["details"]["used_by"], json!(["user-created:user@1.0.0"]), "{answer}");
        assert_eq!(server.get(&one).await.0, 200);
        assert_eq!(server.delete(&format!("{one}?force=true")).await.0, 200);
        assert_eq!(server.get(&one).await.0, 404);
        assert_eq!(server.get("/api/tools/user").await.1["data"]["ready"], false);
        let (status, answer) = server.post(&format!("{one}/undelete"), json!({})).await;
        assert_eq!((status, &answer["data"]["slug"]), (200, &json!(SLUG)), "{answer}");
        assert_eq!(server.get("/api/tools/user").await.1["data"]["ready"], true);
    }
}

#[tokio::test]
async fn a_deleted_resource_comes_back_as_it_was() {
    for kind in kinds() {
        let server = Server::start().await;
        let one = kind.one();
        let id = kind.create(&server).await["id"].clone();
        assert_eq!(server.post(&format!("{one}/publish"), json!({})).await.0, 200);
        let mut changed = kind.definition.clone();
        changed["description"] = json!("changed");
        assert_eq!(server.put(&one, changed).await.0, 200);
        let before = server.get(&one).await.1["data"].clone();
        assert_eq!((&before["published_revision"], &before["revision"]), (&json!(1), &json!(2)), "{before}");

        // A viewer may neither delete nor restore, another tenant sees nothing.
        let (viewer, stranger) = (token(&server, "viewer").await, tenant(&server, "acme").await);
        let undelete = format!("{one}/undelete");
        for (method, path) in
            [(Method::DELETE, &one), (Method::POST, &undelete), (Method::GET, &format!("{one}/usage"))]
        {
            assert_eq!(with(&server, &viewer, method.clone(), path, json!({})).await.0, 403, "{path}");
            assert_eq!(with(&server, &stranger, method, path, json!({})).await.0, 404, "{path}");
        }
        let (status, answer) = server.delete(&one).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            answer["data"]["message"],
            format!("deleted {} `{SLUG}`; it can be restored for 48 hours", kind.noun)
        );
        let by_id = format!("{}/{}", kind.path, id.as_str().unwrap());
        for path in [one.clone(), by_id.clone(), format!("{by_id}/diff"), format!("{by_id}/usage")] {
            assert_eq!(server.get(&path).await.0, 404, "{path}");
        }
        assert_eq!(server.get(kind.path).await.1["data"]["total"], 0);
        let deleted = format!("{}?deleted=true", kind.path);
        assert_eq!(with(&server, &viewer, Method::GET, &deleted, json!({})).await.0, 403);
        assert_eq!(with(&server, &stranger, Method::GET, &deleted, json!({})).await.1["data"]["total"], 0);
        let (_, listed) = server.get(&deleted).await;
        let item = &listed["data"][kind.plural()][0];
        assert_eq!((&listed["data"]["total"], &item["id"], &item["slug"]), (&json!(1), &id, &json!(SLUG)));
        assert!(item["deleted_at"].is_string(), "{listed}");
        assert_eq!(with(&server, &stranger, Method::POST, &undelete, json!({})).await.0, 404);

        let server = server.restart().await;
        let (status, answer) = server.post(&undelete, json!({})).await;
        assert_eq!((status, &answer["data"]), (200, &before), "{answer}");
        assert_eq!(server.get(&one).await.1["data"], before);
        let (status, answer) = server.post(&undelete, json!({})).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");

        // Its name is free for another one, which then keeps it.
        server.delete(&one).await;
        let other = kind.create(&server).await;
        assert_ne!(other["id"], id);
        let (status, answer) = server.post(&format!("{by_id}/undelete"), json!({})).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("has this slug now"), "{answer}");
        let (_, log) = server.get("/api/audit?page_size=100").await;
        let actions: Vec<&str> =
            log["data"]["records"].as_array().unwrap().iter().filter_map(|r| r["action"].as_str()).collect();
        let kind_name = if kind.noun == "artifact" { "code_artifact" } else { kind.noun };
        for action in ["delete", "undelete"] {
            assert!(actions.contains(&format!("{kind_name}.{action}").as_str()), "{actions:?}");
        }
    }
}

#[tokio::test]
async fn lists_are_filtered_and_paged_and_a_dry_run_stores_nothing() {
    for kind in kinds() {
        let server = Server::start().await;
        for slug in ["a", "b", "c"] {
            let mut definition = kind.definition.clone();
            definition["slug"] = json!(slug);
            let (status, answer) =
                server.post(&format!("{}?dry_run=true", kind.path), definition.clone()).await;
            assert_eq!((status, &answer["data"]["valid"]), (200, &json!(true)), "{answer}");
            assert_eq!(server.post(kind.path, definition).await.0, 201);
        }
        let mut wrong = kind.definition.clone();
        wrong["description"] = json!("x".repeat(5000));
        let (status, answer) = server.post(&format!("{}?dry_run=true", kind.path), wrong).await;
        assert_eq!((status, &answer["data"]["valid"]), (200, &json!(false)), "{answer}");
        assert!(!answer["data"]["errors"].as_array().unwrap().is_empty(), "{answer}");
        let list = async |query: &str| {
            let (status, answer) = server.get(&format!("{}?{query}", kind.path)).await;
            assert_eq!(status, 200, "{answer}");
            let items = answer["data"][kind.plural()].as_array().unwrap();
            let slugs: Vec<String> =
                items.iter().map(|item| item["slug"].as_str().unwrap().to_owned()).collect();
            (slugs, answer["data"]["next_page_token"].as_str().map(str::to_owned))
        };
        let (slugs, token) = list("page_size=2").await;
        assert_eq!(slugs, ["a", "b"]);
        assert_eq!(
            list(&format!("page_size=2&page_token={}", token.unwrap())).await,
            (vec!["c".into()], None)
        );
        assert_eq!(list("source=store&q=b").await.0, ["b"]);
        assert_eq!(list("source=file").await.0.len(), 0);
        let (status, answer) = server.get(&format!("{}?source=row", kind.path)).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
        // Deleted ones are paged, too.
        for slug in ["a", "b", "c"] {
            assert_eq!(server.delete(&format!("{}/{slug}", kind.path)).await.0, 200);
        }
        let (slugs, token) = list("deleted=true&page_size=2").await;
        assert_eq!(slugs, ["a", "b"]);
        let rest = list(&format!("deleted=true&page_size=2&page_token={}", token.unwrap())).await;
        assert_eq!(rest, (vec!["c".into()], None));
    }
}

#[tokio::test]
async fn a_tenant_has_as_many_of_a_kind_as_its_limits_allow() {
    for kind in kinds() {
        let server = Server::start().await;
        server.patch("/api/tenants/default", json!({"limits": {kind.limit: 1}})).await;
        kind.create(&server).await;
        let mut second = kind.definition.clone();
        second["slug"] = json!("second");
        let (status, answer) = server.post(kind.path, second.clone()).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        let details = &answer["error"]["details"];
        assert_eq!(
            (&details["limit"], &details["value"]),
            (&json!(format!("tenant.{}", kind.limit)), &json!(1))
        );
        assert!(answer["error"]["message"].as_str().unwrap().contains(kind.limit), "{answer}");
        let (_, limits) = server.get("/api/limits").await;
        let limits = limits["data"]["limits"].as_array().unwrap();
        let shown = limits.iter().find(|limit| limit["name"] == format!("tenant.{}", kind.limit)).unwrap();
        assert_eq!(shown["used"], 1, "{shown}");
        // A deleted one does not count, and comes back only where there is room.
        server.delete(&kind.one()).await;
        assert_eq!(server.post(kind.path, second).await.0, 201);
        let (status, answer) = server.post(&format!("{}/undelete", kind.one()), json!({})).await;
        assert_eq!((status, &answer["error"]["details"]["value"]), (409, &json!(1)), "{answer}");
    }
}

#[tokio::test]
async fn a_token_reads_only_the_resources_on_its_list() {
    let server = Server::start().await;
    for kind in kinds() {
        for slug in [SLUG, "shared-too", "hidden"] {
            let mut definition = kind.definition.clone();
            definition["slug"] = json!(slug);
            let (status, answer) = server.post(kind.path, definition).await;
            assert_eq!(status, 201, "{answer}");
        }
        let lists = [
            (vec!["weather".to_owned(), SLUG.to_owned()], vec![]),
            (vec![format!("{}s:{SLUG}", kind.noun), "other:hidden".to_owned()], vec![SLUG]),
            (vec![format!("{}s:shared*", kind.noun)], vec![SLUG, "shared-too"]),
            (vec!["*".to_owned()], vec!["hidden", SLUG, "shared-too"]),
        ];
        for (tools, expected) in lists {
            let body = json!({"name": tools.join(" "), "role": "viewer", "tools": tools});
            let token = crate::waiting::token(&server, body).await;
            let read = async |path: String| with(&server, &token, Method::GET, &path, json!({})).await;
            let (_, list) = read(format!("{}?page_size=10", kind.path)).await;
            let data = &list["data"];
            let items = data.as_object().unwrap().values().find_map(serde_json::Value::as_array).unwrap();
            let slugs: Vec<_> = items.iter().map(|item| item["slug"].as_str().unwrap()).collect();
            assert_eq!((&slugs, data["total"].as_u64()), (&expected, Some(expected.len() as u64)), "{list}");
            let revisions = if kind.noun == "artifact" { "versions" } else { "revisions" };
            for path in ["", "/diff", &format!("/{revisions}"), &format!("/{revisions}/1")] {
                let status = read(format!("{}/hidden{path}", kind.path)).await.0;
                assert_eq!(status == 200, expected.contains(&"hidden"), "{tools:?} {path}: {status}");
            }
        }
    }
}

#[tokio::test]
async fn the_usage_of_an_agent_names_tokens_rules_and_callers() {
    let server = Server::start().await;
    create(&server, scripted(SLUG, &[], "turns: [{text: hi}]")).await;
    let body = json!({"name": "named", "role": "caller", "tools": [format!("agents:{SLUG}")]});
    let (_, answer) = server.post("/api/tokens", body).await;
    let named = answer["data"]["token"].as_str().unwrap().to_owned();
    let rules = json!({"rules": [
        {"name": "no-agents", "match": {"tools": ["agents:*"], "roles": ["viewer"]}, "effect": "deny"},
        {"name": "others", "match": {"tools": ["other"]}, "effect": "deny"},
    ]});
    assert_eq!(server.put("/api/policy", rules).await.0, 200);
    let run = format!("/api/agents/{SLUG}/runs");
    for _ in 0..2 {
        let (status, answer) = with(&server, &named, Method::POST, &run, json!({"input": "go"})).await;
        assert_eq!(status, 200, "{answer}");
    }
    let usage = server.get(&format!("/api/agents/{SLUG}/usage")).await.1["data"].clone();
    assert_eq!(usage["resource"], format!("agents:{SLUG}"));
    assert_eq!(
        (&usage["tokens"][0]["name"], &usage["policy_rules"][0]["name"]),
        (&json!("named"), &json!("no-agents"))
    );
    assert_eq!(usage["policy_rules"].as_array().unwrap().len(), 1, "{usage}");
    assert_eq!(
        (&usage["callers"][0]["name"], &usage["callers"][0]["calls"]),
        (&json!("named"), &json!(2)),
        "{usage}"
    );
    assert_eq!((&usage["agents"], &usage["tools"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn a_run_of_a_deleted_agent_ends() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    let (_, answer) = server.post("/api/agents/waiter/runs?async=true", json!({"input": "go"})).await;
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    server.gate.entered(1).await;
    assert_eq!(server.delete("/api/agents/waiter").await.0, 200);
    let (status, answer) = server.post("/api/agents/waiter/runs", json!({"input": "go"})).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    server.gate.open();
    let run = ended(&server, &id).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("success"), &json!("done")), "{run}");
    assert_eq!(server.post("/api/agents/waiter/undelete", json!({})).await.0, 200);
    let (_, answer) = server.post("/api/agents/waiter/runs", json!({"input": "go"})).await;
    assert_eq!(answer["data"]["output"], "done", "{answer}");
}
