//! Code artifacts through the API: versions, tools that pin one or follow the newest, inline source.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, send};

async fn create(server: &Server, body: Value) -> Value {
    let (status, answer) = server.post("/api/code-artifacts", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

fn greeting() -> Value {
    json!({"slug": "greet", "runtime": "bash", "source": "echo \"Hello, $name$mark\"",
           "inputs": [{"name": "name", "type": "string", "required": true}, {"name": "mark", "default": "!"}]})
}

fn tool(name: &str, implementation: Value) -> Value {
    let mut implementation = implementation;
    implementation["type"] = json!("artifact");
    json!({"name": name, "description": "Greets", "implementation": implementation, "input_schema": {"type": "object"}})
}

async fn value(server: &Server, tool: &str, args: Value) -> Value {
    let (status, answer) =
        server.post(&format!("/api/tools/{tool}/invoke?mode=debug"), json!({"args": args})).await;
    assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{answer}");
    answer["value"].clone()
}

#[tokio::test]
async fn tools_pin_a_version_or_follow_the_newest() {
    let server = Server::start().await;
    let artifact = create(&server, greeting()).await;
    assert_eq!((&artifact["version"], &artifact["name"]), (&json!(1), &json!("greet")));
    let id = artifact["id"].as_str().unwrap();
    server.create(tool("newest", json!({"artifact_id": "greet"}))).await;
    let pinned = server.create(tool("pinned", json!({"artifact_id": id, "artifact_version": 1}))).await;
    assert_eq!((&pinned["tool_type"], &pinned["ready"]), (&json!("artifact"), &json!(true)), "{pinned}");
    // Values are literal: neither templates nor the shell touch them.
    let name = "${HOME} {{x}} $(id) `id` \"";
    assert_eq!(value(&server, "newest", json!({"name": name})).await, format!("Hello, {name}!"));
    let (status, answer) =
        server.put("/api/code-artifacts/greet", json!({"source": "echo \"Bye, $name\""})).await;
    assert_eq!((status, &answer["data"]["version"]), (200, &json!(2)), "{answer}");
    assert_eq!(answer["data"]["inputs"], artifact["inputs"], "what is missing stays");
    assert_eq!(value(&server, "newest", json!({"name": "Ada"})).await, "Bye, Ada");
    assert_eq!(value(&server, "pinned", json!({"name": "Ada"})).await, "Hello, Ada!");
    let (_, versions) = server.get(&format!("/api/code-artifacts/{id}/versions")).await;
    let numbers: Vec<&Value> =
        versions["data"]["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [2, 1]);
    let (_, first) = server.get("/api/code-artifacts/greet/versions/1").await;
    assert_eq!(first["data"]["source"], artifact["source"]);
    assert_eq!(server.get("/api/code-artifacts/greet/versions/3").await.0, 404);
    let server = server.restart().await;
    assert_eq!(value(&server, "pinned", json!({"name": "Ada"})).await, "Hello, Ada!");
}

#[tokio::test]
async fn required_inputs_are_strict_and_inline_source_works_the_same() {
    let server = Server::start().await;
    create(&server, greeting()).await;
    let inline = json!({"runtime": "bash", "source": "echo \"Hi, $name\"", "inputs": greeting()["inputs"]});
    server.create(tool("inline", inline)).await;
    server.create(tool("stored", json!({"artifact_id": "greet"}))).await;
    assert_eq!(value(&server, "inline", json!({"name": "Ada", "other": 1})).await, "Hi, Ada");
    for name in ["inline", "stored"] {
        for (args, expected) in [
            (json!({}), "missing required input `name` of the artifact"),
            (json!({"name": 1}), "input `name` of the artifact must be of type `string`"),
        ] {
            let (_, answer) =
                server.post(&format!("/api/tools/{name}/invoke?mode=debug"), json!({"args": args})).await;
            assert_eq!((&answer["ok"], code(&answer)), (&json!(false), "invalid_arguments"), "{answer}");
            assert_eq!(answer["error"]["message"], expected);
        }
    }
}

#[tokio::test]
async fn python_source_is_literal() {
    let server = Server::start().await;
    let source = "import json, os\nargs = json.loads(os.environ['HAFT_ARGS'])\nprint(json.dumps({'sum': args['a'] + args['b'], 'text': '${a}'}))\n";
    let inputs = json!([{"name": "a", "type": "integer", "required": true}, {"name": "b", "type": "integer", "default": 2}]);
    create(&server, json!({"slug": "add", "runtime": "python", "source": source, "inputs": inputs})).await;
    server.create(tool("add", json!({"artifact_id": "add"}))).await;
    assert_eq!(value(&server, "add", json!({"a": 40})).await, json!({"sum": 42, "text": "${a}"}));
}

#[tokio::test]
async fn an_artifact_in_use_is_not_deleted() {
    let server = Server::start().await;
    let artifact = create(&server, greeting()).await;
    server.create(tool("newest", json!({"artifact_id": "greet"}))).await;
    let (status, answer) = server.delete("/api/code-artifacts/greet").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(":newest@1.0.0`"), "{answer}");
    let path = format!("/api/code-artifacts/{}?force=true", artifact["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.0, 200);
    let (_, shown) = server.get("/api/tools/newest").await;
    assert_eq!(
        (&shown["data"]["ready"], shown["data"]["error"].as_str().is_some()),
        (&json!(false), true),
        "{shown}"
    );
    let (status, answer) = server.post("/api/tools/newest/publish", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    // A tool may be stored before its artifact.
    let early = server.create(tool("early", json!({"artifact_id": "later"}))).await;
    assert_eq!(early["ready"], false, "{early}");
    create(&server, json!({"slug": "later", "runtime": "bash", "source": "echo ok"})).await;
    assert_eq!(value(&server, "early", json!({})).await, "ok");
}

#[tokio::test]
async fn bad_artifacts_are_rejected() {
    let server = Server::start().await;
    for (body, expected) in [
        (json!({"slug": "a", "source": "x"}), "missing `runtime`"),
        (json!({"slug": "a", "runtime": "bash", "source": " "}), "the source is empty"),
        (json!({"slug": "a", "runtime": "ruby", "source": "x"}), "unknown variant `ruby`"),
        (json!({"slug": "a", "runtime": "bash", "source": "if then"}), "source"),
        (json!({"slug": "a", "runtime": "python", "source": "def ("}), "source"),
        (json!({"slug": "a", "runtime": "wasm", "source": "AAAA"}), "source"),
        (
            json!({"slug": "a", "runtime": "bash", "source": "x", "inputs": [{"name": "a b"}]}),
            "inputs.0.name",
        ),
    ] {
        let (status, answer) = server.post("/api/code-artifacts", body.clone()).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
    let (status, answer) =
        server.post("/api/code-artifacts", json!({"slug": "a b", "runtime": "bash", "source": "x"})).await;
    assert_eq!(status, 400, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("invalid request body: `slug`: "), "{message}");
    create(&server, greeting()).await;
    assert_eq!(server.post("/api/code-artifacts", greeting()).await.0, 409);
    let (_, report) = server
        .post("/api/tools/t/validate", json!({"definition": tool("t", json!({"artifact_id": ""}))}))
        .await;
    let problems: Vec<_> = ["errors", "warnings"]
        .iter()
        .flat_map(|kind| report["data"][kind].as_array().unwrap())
        .filter(|problem| problem["field"] == "implementation.artifact_id")
        .collect();
    assert_eq!(problems.len(), 1, "{report}");
    let (_, listed) = server.get("/api/code-artifacts").await;
    assert_eq!(listed["data"]["total"], 1);
    let bad = tool("bad", json!({"artifact_id": "greet", "artifact_version": "1.0"}));
    assert_eq!(server.post("/api/tools", bad).await.0, 400);
}

#[tokio::test]
async fn artifacts_of_other_tenants_are_closed() {
    let server = Server::start().await;
    let artifact = create(&server, greeting()).await;
    server.post("/api/tenants", json!({"id": "acme", "name": "Acme"})).await;
    let (_, token) =
        server.post("/api/tokens", json!({"tenant": "acme", "role": "admin", "name": "a"})).await;
    let token = token["data"]["token"].as_str().unwrap().to_owned();
    let id = artifact["id"].as_str().unwrap();
    for (method, path) in [
        (Method::GET, format!("/api/code-artifacts/{id}")),
        (Method::GET, format!("/api/code-artifacts/{id}/versions/1")),
        (Method::DELETE, "/api/code-artifacts/greet".to_owned()),
    ] {
        assert_eq!(send(server.bare(method, &path).bearer_auth(&token)).await.0, 404, "{path}");
    }
    let stolen = tool("stolen", json!({"artifact_id": id})).to_string();
    let request = server.bare(Method::POST, "/api/tools").bearer_auth(&token).body(stolen);
    assert_eq!(send(request).await.1["data"]["ready"], false);
    let call = server.bare(Method::POST, "/api/tools/stolen/invoke?mode=debug").bearer_auth(&token);
    let (status, answer) = send(call.body(json!({"args": {"name": "x"}}).to_string())).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
}

#[tokio::test]
async fn production_runs_the_published_version() {
    let server = Server::start().await;
    create(&server, greeting()).await;
    let id = server.create(tool("newest", json!({"artifact_id": "greet"}))).await["id"].clone();
    assert!(id.is_string());
    assert_eq!(server.post("/api/tools/newest/publish", json!({})).await.0, 200);
    let production = async || {
        let path = "/api/tools/newest/invoke?mode=production";
        server.post(path, json!({"args": {"name": "Ada"}})).await.1
    };
    assert_eq!(code(&production().await), "not_published");
    let (status, published) = server.post("/api/code-artifacts/greet/publish", json!({})).await;
    assert_eq!((status, &published["data"]["published_revision"]), (200, &json!(1)), "{published}");
    assert_eq!(production().await["value"], "Hello, Ada!");
    // A draft runs in debug mode only, until it is published.
    let edited = server.put("/api/code-artifacts/greet", json!({"source": "echo \"Bye, $name\""})).await.1;
    assert_eq!((&edited["data"]["version"], &edited["data"]["published_revision"]), (&json!(2), &json!(1)));
    assert_eq!(value(&server, "newest", json!({"name": "Ada"})).await, "Bye, Ada");
    assert_eq!(production().await["value"], "Hello, Ada!");
    let (_, diff) = server.get("/api/code-artifacts/greet/diff").await;
    assert_eq!((&diff["data"]["from"], &diff["data"]["changes"][0]["field"]), (&json!(1), &json!("source")));
    server.post("/api/code-artifacts/greet/publish", json!({})).await;
    assert_eq!(production().await["value"], "Bye, Ada");
    // A restored version is a draft again.
    let (status, restored) = server.post("/api/code-artifacts/greet/versions/1/restore", json!({})).await;
    assert_eq!((status, &restored["data"]["version"]), (200, &json!(3)), "{restored}");
    assert_eq!(production().await["value"], "Bye, Ada");
    let disabled = server.patch("/api/code-artifacts/greet", json!({"enabled": false})).await.1;
    assert_eq!(disabled["data"]["enabled"], false, "{disabled}");
    assert_eq!(code(&production().await), "disabled");
    let (_, found) = server.get("/api/code-artifacts?q=GREE&status=published").await;
    assert_eq!(found["data"]["total"], 1, "{found}");
}
