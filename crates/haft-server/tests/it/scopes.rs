//! Global tools in every tenant: everybody sees and calls them, and only the platform changes them.

use std::sync::Arc;

use haft_core::catalog::{Change, ChangeSink};
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::secret::Secret;
use haft_core::token::{Role, TokenRecord};
use haft_core::{Clock, hash};
use haft_runtime::clock::SystemClock;
use haft_store::{Store, StoreSettings};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Server, code, function_tool, poll, send};
use crate::mcp::client::{modern, names, send as send_message};

struct Ignored;

impl ChangeSink for Ignored {
    fn apply(&self, _changes: Vec<Change>) {}
    fn replace(&self, _everything: Vec<Change>) {}
}

/// A caller of a tenant.
struct Caller<'a> {
    server: &'a Server,
    token: String,
}

impl<'a> Caller<'a> {
    /// Stores a token as another process would, and waits until the server knows it.
    async fn new(server: &'a Server, url: Option<&str>, tenant: &str, role: Role) -> Self {
        let token = format!("{tenant}-{}", Uuid::now_v7());
        let settings = match url {
            Some(url) => StoreSettings {
                key: Some(Secret::new("00".repeat(32))),
                ..StoreSettings::postgres(Secret::new(url.to_owned()))
            },
            None => StoreSettings::embedded(server.home.path().to_owned()),
        };
        let store = Store::open(settings, Arc::new(SystemClock), Arc::new(Ignored)).await.unwrap();
        let record = TokenRecord {
            id: TokenId(Uuid::now_v7()),
            tenant: TenantId::new(tenant).unwrap(),
            name: tenant.to_owned(),
            hash: hash::of_bytes(token.as_bytes()),
            role,
            elevated: false,
            platform: false,
            tools: AllowList::default(),
            rate_limit: None,
            created_at: SystemClock.now(),
            expires_at: None,
            last_used_at: None,
            previous: None,
            parent: None,
            actor: None,
        };
        // It exists already if an earlier caller is of the same tenant.
        let _ = store.tenants().create(record.tenant.clone(), tenant.to_owned()).await;
        store.access().insert_token(&record).await.unwrap();
        store.close().await;
        let caller = Self { server, token };
        poll(async || (caller.get("/api/tools").await.0 == 200).then_some(())).await;
        caller
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        send(self.server.bare(method, path).bearer_auth(&self.token).body(body.to_string())).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        send(self.server.bare(Method::GET, path).bearer_auth(&self.token)).await
    }

    async fn invoke(&self, tool: &str, args: Value) -> (u16, Value) {
        self.send(Method::POST, &format!("/api/tools/{tool}/invoke"), json!({"args": args})).await
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let (status, answer) = self.get(path).await;
        assert_eq!(status, 200, "{answer}");
        let tools = answer["data"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

async fn every_tenant_sees_and_calls_global_tools(server: &Server, url: Option<&str>) {
    server.create(function_tool("private", "echo")).await;
    let acme = Caller::new(server, url, "acme", Role::Admin).await;
    for path in ["/api/tools", "/api/tools/builtins/templates", "/api/tools?filter=built-in"] {
        assert_eq!(acme.names(path).await, ["clock", "hello"], "{path}");
    }
    assert_eq!(acme.names("/api/tools/search?q=hello").await.first().map(String::as_str), Some("hello"));
    let found = acme.names("/api/tools/search?q=private").await;
    assert!(!found.contains(&"private".to_owned()), "{found:?}");
    let (_, tool) = acme.get("/api/tools/builtin:hello").await;
    assert_eq!((&tool["data"]["tenant"], &tool["data"]["built_in"]), (&Value::Null, &json!(true)), "{tool}");
    let (_, bundles) = acme.get("/api/tools/bundles").await;
    let bundles = bundles["data"]["bundles"].as_array().unwrap();
    assert_eq!(bundles.len(), 1);
    assert_eq!((&bundles[0]["slug"], &bundles[0]["tool_count"]), (&json!("builtin"), &json!(2)));
    let (_, definitions) = acme.get("/api/tools/definitions/all?format=mcp").await;
    assert_eq!(definitions["data"].as_array().map(Vec::len), Some(2), "{definitions}");
    let list = send_message(modern(server, "/mcp", &acme.token, "tools/list", json!({}))).await.last();
    assert_eq!(names(&list), ["clock", "hello"]);
    let params = json!({"name": "hello", "arguments": {"x": 1}});
    let called = send_message(modern(server, "/mcp", &acme.token, "tools/call", params)).await.last();
    assert_eq!(called["result"]["structuredContent"], json!({"x": 1}));

    let (status, answer) = acme.invoke("hello", json!({"x": 2})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"x": 2})), "{answer}");
    // The calls are those of the caller's tenant, and nobody else learns of them.
    assert_eq!(acme.get("/api/calls").await.1["data"]["total"], 2);
    assert_eq!(server.get("/api/calls").await.1["data"]["total"], 0);
    assert_eq!(acme.get("/api/tools/hello").await.1["data"]["usage"]["call_count"], 0);
    assert_eq!(server.get("/api/tools/hello").await.1["data"]["usage"]["call_count"], 2);
}

async fn only_the_platform_changes_global_tools(server: &Server, url: Option<&str>) {
    let acme = Caller::new(server, url, "acme", Role::Admin).await;
    let editor = Caller::new(server, url, "default", Role::Editor).await;
    let off = json!({"enabled": false});
    for caller in [&acme, &editor] {
        for path in ["/api/tools/hello", "/api/tools/bundles/builtin"] {
            let (status, answer) = caller.send(Method::PATCH, path, off.clone()).await;
            assert_eq!((status, code(&answer)), (403, "forbidden"), "{path}: {answer}");
        }
        for (method, path, body) in [
            (Method::PUT, "/api/tools/hello", function_tool("hello", "echo")),
            (Method::DELETE, "/api/tools/hello", json!({})),
            (Method::POST, "/api/tools/hello/deprecate", json!({})),
            (Method::PUT, "/api/tools/bundles/builtin", json!({"description": "mine"})),
            (Method::DELETE, "/api/tools/bundles/builtin", json!({})),
            (Method::POST, "/api/tools?bundle=builtin", function_tool("mine", "echo")),
        ] {
            let (status, answer) = caller.send(method.clone(), path, body).await;
            assert!((400..500).contains(&status), "{method} {path}: {answer}");
        }
    }
    let (status, answer) = server.patch("/api/tools/hello", off).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(code(&acme.invoke("hello", json!({})).await.1), "disabled");
    server.patch("/api/tools/hello", json!({"enabled": true})).await;
    assert_eq!(acme.invoke("hello", json!({})).await.0, 200);
}

async fn tenants_do_not_see_each_other(server: &Server, url: Option<&str>) {
    let acme = Caller::new(server, url, "acme", Role::Admin).await;
    let mut own = function_tool("clock", "echo");
    own["description"] = json!("The clock of a tenant");
    let (status, answer) = acme.send(Method::POST, "/api/tools", own).await;
    assert_eq!((status, &answer["data"]["tenant"]), (201, &json!("acme")), "{answer}");
    let id = answer["data"]["id"].as_str().unwrap();
    assert_eq!(acme.names("/api/tools").await, ["clock", "clock", "hello"]);
    assert_eq!(server.get(&format!("/api/tools/{id}")).await.0, 404);
    assert_eq!(server.get("/api/tools/user-created:clock").await.0, 404);
    // A bare name means the built-in tool in every tenant.
    assert_eq!(acme.get("/api/tools/clock").await.1["data"]["built_in"], true);
    assert_eq!(acme.get("/api/tools/user-created:clock").await.1["data"]["id"], id);
    // Both are found, although they are in different indexes.
    assert_eq!(acme.names("/api/tools/search?q=clock").await.len(), 2);
    assert_eq!(acme.get("/api/tools/search?q=clock&page_size=1").await.1["data"]["total"], 2);
}

#[tokio::test]
async fn global_tools_in_every_tenant() {
    let server = Server::start().await;
    every_tenant_sees_and_calls_global_tools(&server, None).await;
    only_the_platform_changes_global_tools(&server, None).await;
    tenants_do_not_see_each_other(&server, None).await;
}

#[tokio::test]
async fn global_tools_in_every_tenant_on_postgres() {
    let database = crate::postgres::database().await;
    let url = database.url.clone();
    let server = Server::start_with(move |settings| {
        settings.database_url = Some(Secret::new(url));
        settings.key = Some(Secret::new("00".repeat(32)));
    })
    .await;
    let url = Some(database.url.as_str());
    every_tenant_sees_and_calls_global_tools(&server, url).await;
    only_the_platform_changes_global_tools(&server, url).await;
    tenants_do_not_see_each_other(&server, url).await;
}

#[tokio::test]
async fn built_in_file_tools_use_the_folders_of_the_tenant() {
    let server = Server::start_whole(|_| {}).await;
    let acme = Caller::new(&server, None, "acme", Role::Caller).await;
    let (_, answer) = acme.invoke("write_file", json!({"path": "notes.txt", "content": "of acme"})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    acme.invoke("append_file", json!({"path": "notes.txt", "content": "!"})).await;
    let file = server.home.path().join("files/acme/notes.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "of acme!");
    assert_eq!(acme.invoke("read_file", json!({"path": "notes.txt"})).await.1["value"], "of acme!");
    assert_eq!(acme.invoke("list_files", json!({})).await.1["value"][0]["name"], "notes.txt");

    server.invoke("write_file", json!({"path": "own.txt", "content": "mine"})).await;
    for path in ["notes.txt", "../files/acme/notes.txt"] {
        assert_eq!(server.invoke("read_file", json!({"path": path})).await.1["ok"], false, "{path}");
    }
    let listed = server.invoke("list_files", json!({})).await.1;
    assert_eq!(listed["value"].as_array().map(Vec::len), Some(1), "{listed}");
    let (_, answer) = acme.invoke("read_file", json!({"path": "../../workspace/own.txt"})).await;
    assert_eq!(answer["error"]["code"], "path_escapes", "{answer}");
}
