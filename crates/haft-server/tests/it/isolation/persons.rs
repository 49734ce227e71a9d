//! People of one tenant do not see what belongs to another one, nor does a token with fewer rights see what its person
//! created with others: a walk through the OpenAPI document in their names.
//!
//! To add something that belongs to people: create it in [`Ann::create`], name its collection in [`PRIVATE`], and its ids
//! in [`Ann::value`].

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::first_tenant::collect_ids;
use crate::applications;
use crate::harness::{Server, function_tool, send};
use crate::people::Person;
use crate::tenants::with;

/// The collections whose items belong to whoever created them.
const PRIVATE: [&str; 7] =
    ["applications", "approval-grants", "approvals", "calls", "chats", "runs", "tokens"];
/// The collections that belong to the tenant, to its admins, or to nobody.
const SHARED: [&str; 37] = [
    "account-providers",
    // Each person has those of their own, by the name of a provider.
    "accounts",
    "agents",
    "application-clients",
    "apply",
    "audit",
    "code-artifacts",
    "credentials",
    "doctor",
    "events",
    "export",
    "groups",
    "healthz",
    "import",
    "key",
    "limits",
    "login",
    "login-links",
    "logout",
    "mcp-servers",
    "metrics",
    "models",
    "people",
    "pipelines",
    "policy",
    "readyz",
    "service-accounts",
    "session",
    // Each person has those of their own.
    "sessions",
    "settings",
    "sign-on",
    "stats",
    "tenants",
    "tools",
    "toolsets",
    "webhooks",
    "workspaces",
];
/// Words of Ann, which nobody else reads.
const WORDS: [&str; 6] =
    ["lapis-title", "gneiss-message", "shale-file", "ruby-argument", "calcite-question", "onyx-laptop"];
const ABSENT: &str = "01900000-0000-7000-8000-00000000abcd";

/// A person with one of everything.
struct Ann {
    token: String,
    chat: String,
    message: String,
    manifest: String,
    run: String,
    call: String,
    application: String,
    approval: String,
    grant: String,
    token_id: String,
    /// All ids and words that nobody else learns.
    secrets: BTreeSet<String>,
}

impl Ann {
    async fn create(server: &Server) -> Self {
        let person = Person::invite(server, json!({"name": "Ann", "role": "caller"})).await;
        let (status, created) =
            person.send(server, Method::POST, "/api/tokens", json!({"name": "onyx-laptop"})).await;
        assert_eq!(status, 201, "{created}");
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
        let token = text(&created["data"]["token"]);
        let do_it = async |method: Method, path: &str, body: Value| {
            let (status, answer) = with(server, &token, method, path, body).await;
            assert!((200..300).contains(&status), "{path}: {status} {answer}");
            answer
        };
        let post = async |path: &str, body: Value| do_it(Method::POST, path, body).await;
        let chat = text(&post("/api/chats", json!({"title": "lapis-title"})).await["data"]["id"]);
        let message = json!({"content": "gneiss-message"});
        let message = post(&format!("/api/chats/{chat}/messages"), message).await;
        let file = format!("/api/chats/{chat}/workspace/files/shale-file");
        let written = do_it(Method::PUT, &file, json!("content")).await;
        let (_, application) = applications::connect(server, &person.cookie, "garnet-program").await;
        let run = post("/api/agents/scripted-agent/runs", json!({"input": "calcite-question"})).await;
        let args = json!({"args": {"topic": "ruby-argument"}, "chat_id": chat});
        let call = post("/api/tools/echo/invoke", args.clone()).await;
        let asked = post("/api/tools/confirm/invoke", json!({"args": {"topic": "remembered"}})).await;
        let approve = format!("/api/approvals/{}/approve", text(&asked["approval_id"]));
        post(&approve, json!({"remember": {"scope": "token"}})).await;
        let grants = do_it(Method::GET, "/api/approval-grants", Value::Null).await;
        let waiting = post("/api/tools/confirm/invoke", args).await;
        let mut ann = Self {
            message: text(&message["data"]["message"]["id"]),
            manifest: text(&written["data"]["post_manifest"]),
            run: text(&run["data"]["id"]),
            call: text(&call["call_id"]),
            application,
            approval: text(&waiting["approval_id"]),
            grant: text(&grants["data"]["grants"][0]["id"]),
            token_id: text(&created["data"]["id"]),
            secrets: WORDS.map(str::to_owned).into(),
            chat,
            token: token.clone(),
        };
        for collection in PRIVATE {
            let list = do_it(Method::GET, &format!("/api/{collection}"), Value::Null).await;
            collect_ids(&list["data"], &mut ann.secrets);
        }
        ann.secrets.insert(person.id);
        // An agent belongs to the tenant.
        let agent = do_it(Method::GET, "/api/agents/scripted-agent", Value::Null).await;
        let mut shared = BTreeSet::new();
        collect_ids(&agent, &mut shared);
        let (_, tools) = server.get("/api/tools").await;
        collect_ids(&tools, &mut shared);
        ann.secrets.retain(|secret| !shared.contains(secret));
        assert!(ann.secrets.contains(&ann.chat) && ann.secrets.contains(&ann.grant));
        ann
    }

    /// Returns what a path parameter is for a thing of Ann.
    fn value(&self, path: &str, parameter: &str) -> &str {
        let (before, _) = path.split_once(&format!("/{{{parameter}}}")).unwrap();
        match (before.rsplit('/').next().unwrap(), parameter) {
            ("chats", "id") => &self.chat,
            ("messages", "message_id") => &self.message,
            ("runs", "id") => &self.run,
            ("calls", "id") => &self.call,
            ("applications", "id") => &self.application,
            ("approvals", "id") => &self.approval,
            ("approval-grants", "id") => &self.grant,
            ("tokens", "id") => &self.token_id,
            ("files", "path") => "shale-file",
            _ => panic!(
                "no value for `{{{parameter}}}` of `{path}`: add what a person has to `Ann::value` in \
                 `tests/it/isolation/persons.rs`"
            ),
        }
    }

    fn body(&self, method: &str, path: &str) -> Value {
        match (method, path) {
            ("get" | "delete", _) => Value::Null,
            ("post", "/chats/{id}/messages") => json!({"content": "changed"}),
            ("patch", "/chats/{id}") => json!({"title": "changed"}),
            ("post", "/chats/{id}/workspace/restore") => json!({"manifest_id": self.manifest}),
            ("patch", "/tokens/{id}") => json!({"rate_limit": null}),
            _ => json!({}),
        }
    }

    fn check_secrets(&self, request: &str, response: &str) {
        for secret in self.secrets.iter().filter(|secret| !request.contains(secret.as_str())) {
            assert!(!response.contains(secret), "{request} reveals `{secret}`:\n{response}");
        }
    }

    /// Fails unless Ann still has everything.
    async fn check_unchanged(&self, server: &Server) {
        for path in [
            format!("/api/chats/{}/messages", self.chat),
            format!("/api/chats/{}/workspace/files/shale-file", self.chat),
            format!("/api/runs/{}", self.run),
            format!("/api/applications/{}", self.application),
            format!("/api/calls/{}", self.call),
            format!("/api/tokens/{}", self.token_id),
        ] {
            let response = server.bare(Method::GET, &path).bearer_auth(&self.token).send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
        }
        let path = format!("/api/approvals/{}", self.approval);
        let (_, approval) = with(server, &self.token, Method::GET, &path, Value::Null).await;
        assert_eq!(approval["data"]["status"], "waiting", "{approval}");
    }
}

/// Sends a request; returns the status and the text of the response.
async fn text(server: &Server, token: &str, (method, path): (&str, &str), body: &Value) -> (u16, String) {
    let method: Method = method.to_uppercase().parse().unwrap();
    let mut request = server.bare(method, path).bearer_auth(token).header("x-request-id", "probe");
    request = request.timeout(Duration::from_secs(20));
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    let mut response = request.send().await.unwrap();
    let status = response.status().as_u16();
    if path.starts_with("/api/events") {
        // A stream has no end.
        let chunk = response.chunk().await.unwrap().unwrap();
        return (status, String::from_utf8(chunk.to_vec()).unwrap());
    }
    (status, response.text().await.unwrap())
}

/// Sends every request for things of Ann, and every request for a list.
async fn walk(server: &Server, ann: &Ann, token: &str) {
    let (_, document) = send(server.bare(Method::GET, "/api/openapi.json")).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let collection = path.split('/').nth(1).unwrap();
        let is_private = PRIVATE.contains(&collection);
        assert!(
            is_private || SHARED.contains(&collection),
            "say in `tests/it/isolation/persons.rs` whether `{collection}` belongs to people: {path}"
        );
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let names = |place: &'static str| {
                let of_place = parameters.iter().filter(move |parameter| parameter["in"] == place);
                of_place.map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            };
            let prefix = if operation["servers"][0]["url"] == "/" { "" } else { "/api" };
            if names("path").next().is_none() {
                if method == "get" {
                    let queries = names("query").filter_map(|name| query(ann, path, &name));
                    for query in std::iter::once(String::new()).chain(queries) {
                        let request = format!("{prefix}{path}{query}");
                        let response = text(server, token, ("get", &request), &Value::Null).await;
                        ann.check_secrets(&request, &response.1);
                    }
                }
                continue;
            }
            if !is_private {
                continue;
            }
            let fill = |value: &dyn Fn(&str) -> String| {
                let template = format!("{prefix}{path}");
                names("path").fold(template, |path, name| path.replace(&format!("{{{name}}}"), &value(&name)))
            };
            let own = fill(&|name| ann.value(path, name).to_owned());
            let absent = fill(&|_| ABSENT.to_owned());
            let body = ann.body(method, path);
            let response = text(server, token, (method, &own), &body).await;
            let context = format!("{method} {own}");
            assert!([403, 404].contains(&response.0), "{context}: {response:?}");
            ann.check_secrets(&context, &response.1);
            // What somebody else has is like what nobody has.
            let expected = text(server, token, (method, &absent), &body).await;
            let mut shown = response.1;
            for name in names("path") {
                shown = shown.replace(ann.value(path, &name), ABSENT);
            }
            assert_eq!((response.0, shown), expected, "the response tells that it exists: {context}");
        }
    }
}

/// Returns a query that asks for things of Ann.
fn query(ann: &Ann, path: &str, name: &str) -> Option<String> {
    let value = match name {
        "q" => "gneiss-message",
        "caller" => "Ann",
        "actor" => &ann.token_id,
        "chat_id" => &ann.chat,
        "parent_id" if path == "/runs" => &ann.run,
        "parent_id" => &ann.call,
        "agent" => "scripted-agent",
        "tool" => "echo",
        _ => return None,
    };
    Some(format!("?{name}={value}"))
}

async fn tenant_with_ann() -> (Server, Ann) {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let mut confirmed = function_tool("confirm", "echo");
    confirmed["requires_confirmation"] = json!(true);
    server.create(confirmed).await;
    let agent = json!({
        "slug": "scripted-agent", "instructions": "Answer.", "tools": ["echo"],
        "model": {"name": "scripted/model", "script": "turns: [{text: answer}]"},
    });
    let (status, answer) = server.post("/api/agents", agent).await;
    assert_eq!(status, 201, "{answer}");
    let ann = Ann::create(&server).await;
    (server, ann)
}

#[tokio::test]
async fn every_route_keeps_people_of_a_tenant_apart() {
    let (server, ann) = tenant_with_ann().await;
    let bob = Person::invite(&server, json!({"name": "Bob", "role": "caller"})).await;
    let (_, of_bob) = bob.token(&server, json!({})).await;
    let (status, of_nobody) = server.post("/api/tokens", json!({"name": "program", "role": "caller"})).await;
    assert_eq!(status, 201, "{of_nobody}");
    for token in [&of_bob, of_nobody["data"]["token"].as_str().unwrap()] {
        walk(&server, &ann, token).await;
    }
    ann.check_unchanged(&server).await;
}

#[tokio::test]
async fn every_route_keeps_a_reduced_token_from_what_its_person_has() {
    let (server, mut ann) = tenant_with_ann().await;
    let new = json!({"name": "reduced", "tools": ["echo", "confirm", "agents:scripted-agent"]});
    let (status, reduced) = with(&server, &ann.token, Method::POST, "/api/tokens", new).await;
    assert_eq!(status, 201, "{reduced}");
    // The token knows whose it is.
    let (_, session) = with(&server, &ann.token, Method::GET, "/api/session", Value::Null).await;
    ann.secrets.remove(session["data"]["actor"]["id"].as_str().unwrap());
    walk(&server, &ann, reduced["data"]["token"].as_str().unwrap()).await;
    ann.check_unchanged(&server).await;
}

#[tokio::test]
#[should_panic(expected = "reveals `")]
async fn the_walk_of_people_notices_what_a_person_sees() {
    let (server, ann) = tenant_with_ann().await;
    walk(&server, &ann, &ann.token).await;
}
