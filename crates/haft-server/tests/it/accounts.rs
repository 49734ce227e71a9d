//! Accounts of people: two people, one server, each with an account of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::{Query, State};
use haft_testkit::upstream::axum::http::{HeaderMap, StatusCode, header};
use haft_testkit::upstream::axum::response::{IntoResponse as _, Redirect, Response};
use haft_testkit::upstream::axum::{Json, Router, routing};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll, send};
use crate::login::browser;
use crate::people::Person;
use crate::postgres::{database, on};
use crate::tenants::with;

/// An authorization server, an MCP server and an API, which know people by their tokens.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) base: String,
    /// Who agreed, by code.
    codes: HashMap<String, String>,
    /// Whose token it is.
    tokens: HashMap<String, String>,
    /// The lifetime of new tokens.
    expires_in: Option<u64>,
    refuses_refresh: bool,
    /// Whose data was read, in turn.
    pub(crate) read: Vec<String>,
    requests: u32,
}

pub(crate) type Shared = Arc<Mutex<World>>;
type Pairs = HashMap<String, String>;

impl World {
    fn issue(&mut self, person: &str) -> Response {
        self.requests += 1;
        let token = format!("token-{}-{person}", self.requests);
        self.tokens.insert(token.clone(), person.to_owned());
        let refresh = format!("refresh-{person}");
        let expires_in = self.expires_in.unwrap_or(3600);
        Json(json!({"access_token": token, "token_type": "Bearer", "refresh_token": refresh,
            "expires_in": expires_in, "scope": "read"}))
        .into_response()
    }

    fn person(&self, headers: &HeaderMap) -> Option<String> {
        let value = headers.get("authorization")?.to_str().ok()?;
        let token = value.strip_prefix("Bearer ")?;
        // API keys name their person.
        token.strip_prefix("key-of-").map(str::to_owned).or_else(|| self.tokens.get(token).cloned())
    }
}

async fn mcp(State(world): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let world = world.lock().unwrap();
    let Some(person) = world.person(&headers) else {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", world.base);
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": body["id"], "result": result})).into_response();
    match body["method"].as_str().unwrap() {
        "initialize" => answer(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "mail", "version": "1"},
        })),
        "tools/list" => answer(json!({"tools": [{"name": "inbox", "inputSchema": {"type": "object"}}]})),
        "tools/call" => answer(json!({"content": [{"type": "text", "text": format!("mail of {person}")}]})),
        "ping" => answer(json!({})),
        method if method.starts_with("notifications/") => StatusCode::ACCEPTED.into_response(),
        _ => {
            Json(json!({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32601, "message": "unknown"}}))
                .into_response()
        }
    }
}

async fn api(State(world): State<Shared>, headers: HeaderMap) -> Response {
    let mut world = world.lock().unwrap();
    match world.person(&headers) {
        Some(person) => {
            world.read.push(person.clone());
            Json(json!({"data_of": person})).into_response()
        }
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn resource_metadata(State(world): State<Shared>) -> Json<Value> {
    let base = world.lock().unwrap().base.clone();
    Json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
}

async fn server_metadata(State(world): State<Shared>) -> Json<Value> {
    let base = world.lock().unwrap().base.clone();
    Json(json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register() -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({"client_id": "client", "client_secret": "registered-secret"})))
}

/// The page on which `as` agrees.
async fn authorize(State(world): State<Shared>, Query(query): Query<Pairs>) -> Redirect {
    let mut world = world.lock().unwrap();
    let code = format!("code-{}", world.codes.len());
    world.codes.insert(code.clone(), query["as"].clone());
    let mut to = url::Url::parse(&query["redirect_uri"]).unwrap();
    to.query_pairs_mut().extend_pairs([
        ("code", code.as_str()),
        ("state", &query["state"]),
        ("iss", &world.base),
    ]);
    Redirect::to(to.as_str())
}

async fn token(State(world): State<Shared>, form: String) -> Response {
    let form: Pairs = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    let mut world = world.lock().unwrap();
    let person = match form["grant_type"].as_str() {
        "authorization_code" => world.codes.remove(&form["code"]),
        "refresh_token" if !world.refuses_refresh => {
            form["refresh_token"].strip_prefix("refresh-").map(str::to_owned)
        }
        _ => None,
    };
    match person {
        Some(person) => world.issue(&person),
        None => (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response(),
    }
}

pub(crate) async fn world() -> (Upstream, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/mcp", routing::post(mcp))
        .route("/api", routing::get(api))
        .route("/.well-known/oauth-protected-resource/mcp", routing::get(resource_metadata))
        .route("/.well-known/oauth-authorization-server", routing::get(server_metadata))
        .route("/register", routing::post(register))
        .route("/authorize", routing::get(authorize))
        .route("/token", routing::post(token))
        .with_state(Arc::clone(&shared));
    let upstream = Upstream::serve(router).await.unwrap();
    shared.lock().unwrap().base = upstream.url("");
    (upstream, shared)
}

pub(crate) async fn invite(server: &Server, name: &str) -> Person {
    let body = json!({"name": name, "email": format!("{name}@example.com"), "role": "caller"});
    Person::invite(server, body).await
}

/// Creates a provider of API keys, and a tool that needs an account there.
pub(crate) async fn data_tool(server: &Server, upstream: &Upstream, change: Value) {
    let (status, answer) = server.put("/api/account-providers/files", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let mut tool = json!({
        "name": "data", "description": "Reads data", "input_schema": {"type": "object"},
        "implementation": {"type": "http", "method": "GET", "url": upstream.url("/api"),
            "headers": {"authorization": "Bearer ${account:files}"}},
    });
    let fields = change.as_object().unwrap().clone();
    tool.as_object_mut().unwrap().extend(fields);
    server.create(tool).await;
}

/// Connects an account with an API key.
pub(crate) async fn put_key(person: &Person, server: &Server, provider: &str, key: &str) {
    let path = format!("/api/accounts/{provider}");
    let (status, answer) = person.send(server, Method::PUT, &path, json!({"api_key": key})).await;
    assert_eq!(status, 200, "{answer}");
}

/// Begins a login, and agrees to it as somebody; returns the callback.
pub(crate) async fn agree(person: &Person, server: &Server, provider: &str, name: &str) -> String {
    let path = format!("/api/accounts/{provider}/connect");
    let (status, answer) = person.send(server, Method::POST, &path, Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let url = format!("{}&as={name}", answer["data"]["authorization_url"].as_str().unwrap());
    let page = browser().get(url).send().await.unwrap();
    let to = url::Url::parse(page.headers()[header::LOCATION].to_str().unwrap()).unwrap();
    format!("{}?{}", to.path(), to.query().unwrap())
}

pub(crate) async fn visit(person: &Person, server: &Server, path: &str) -> (u16, String) {
    let response = browser().get(server.url(path)).header("cookie", &person.cookie).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

pub(crate) async fn connect(person: &Person, server: &Server, provider: &str, name: &str) {
    let callback = agree(person, server, provider, name).await;
    let (status, page) = visit(person, server, &callback).await;
    assert_eq!(status, 303, "{page}");
}

pub(crate) async fn invoke(person: &Person, server: &Server, tool: &str) -> (u16, Value) {
    let path = format!("/api/tools/{tool}/invoke");
    person.send(server, Method::POST, &path, json!({"args": {}})).await
}

/// Waits until the tools of the server are known.
pub(crate) async fn listed(person: &Person, server: &Server) {
    poll(async || (invoke(person, server, "mail:inbox").await.0 != 404).then_some(())).await;
}

pub(crate) async fn add_server(server: &Server, upstream: &Upstream, credentials: &str) {
    let body = json!({"id": "mail", "url": upstream.url("/mcp"), "credentials": credentials});
    let (status, answer) = server.post("/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
}

/// Makes the tools of the server known with a login of an admin, which nobody else uses.
pub(crate) async fn share_list(server: &Server, upstream: &Upstream) {
    let (_, answer) = server.post("/api/mcp-servers/mail/login", json!({})).await;
    let url = format!("{}&as=admin", answer["data"]["authorization_url"].as_str().unwrap());
    let page = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
    let text = page.text().await.unwrap();
    assert!(text.contains("Logged in to MCP server `mail`"), "{text} {}", upstream.url(""));
    poll(async || {
        let (_, answer) = server.get("/api/mcp-servers/mail").await;
        (answer["data"]["state"]["phase"] == "connected").then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_person_sees_only_their_own_data() {
    let (upstream, _world) = world().await;
    let server = Server::start().await;
    let (ann, bob) = (invite(&server, "ann").await, invite(&server, "bob").await);
    add_server(&server, &upstream, "person").await;
    share_list(&server, &upstream).await;
    listed(&ann, &server).await;

    // Without an account, the answer names the page.
    let (status, answer) = invoke(&ann, &server, "mail:inbox").await;
    assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
    let details = &answer["error"]["details"];
    assert_eq!(details["provider"], "mcp:mail");
    assert!(details["url"].as_str().unwrap().ends_with("/ui/accounts?connect=mcp:mail"), "{answer}");
    // A token of nobody has no account, and no page either.
    let (_, created) = server.post("/api/tokens", json!({"name": "machine", "role": "caller"})).await;
    let machine = created["data"]["token"].as_str().unwrap();
    let call = server.bare(Method::POST, "/api/tools/mail:inbox/invoke").bearer_auth(machine);
    let (_, answer) = send(call.body(json!({"args": {}}).to_string())).await;
    assert_eq!((code(&answer), &answer["error"]["details"]["url"]), ("credential_required", &Value::Null));

    // A queued call waits, and goes on by itself.
    let (status, queued) =
        ann.send(&server, Method::POST, "/api/tools/mail:inbox/invoke?async=true", json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");
    assert!(queued["error"]["details"]["expires_at"].is_string(), "{queued}");
    let call = format!("/api/calls/{}", queued["call_id"].as_str().unwrap());
    let approval = format!("/api/approvals/{}/approve", queued["approval_id"].as_str().unwrap());
    let (status, answer) = server.post(&approval, json!({})).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "nobody decides about it: {answer}");
    connect(&bob, &server, "mcp:mail", "bob").await;
    assert_eq!(
        server.get(&call).await.1["data"]["status"],
        "awaiting_approval",
        "bob's account is not ann's"
    );
    connect(&ann, &server, "mcp:mail", "ann").await;
    let ended = poll(async || {
        let call = server.get(&call).await.1["data"].clone();
        (call["status"] == "success").then_some(call)
    })
    .await;
    assert_eq!(ended["value"], "mail of ann", "{ended}");

    for (person, name) in [(&ann, "ann"), (&bob, "bob")] {
        let (_, answer) = invoke(person, &server, "mail:inbox").await;
        assert_eq!(answer["value"], format!("mail of {name}"), "{answer}");
        let (_, list) = person.get(&server, "/api/accounts").await;
        let account = &list["data"]["accounts"][0];
        assert_eq!(
            (&account["provider"], &account["account"]["scope"]),
            (&json!("mcp:mail"), &json!("read"))
        );
        assert!(
            account["account"]["last_used_at"].is_string() && !list.to_string().contains("token-"),
            "{list}"
        );
    }
    // Over MCP, too.
    let (_, token) = bob.token(&server, json!({"role": "caller"})).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "inbox", "arguments": {}, "_meta": meta()}});
    let answer = mcp_call(&server, &token, call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "mail of bob", "{answer}");

    // An admin sees that there is an account, and revokes it; that of the other one stays.
    let path = format!("/api/accounts?person={}", ann.id);
    let (_, list) = server.get(&path).await;
    assert_eq!(list["data"]["accounts"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(bob.get(&server, &path).await.0, 403);
    let (status, answer) = server.delete(&format!("/api/accounts/mcp:mail?person={}", ann.id)).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(code(&invoke(&ann, &server, "mail:inbox").await.1), "credential_required");
    assert_eq!(invoke(&bob, &server, "mail:inbox").await.1["value"], "mail of bob");
    let (_, audit) = server.get("/api/audit").await;
    for action in ["account.login", "account.connected", "account.revoke"] {
        assert!(audit.to_string().contains(action), "{action}: {audit}");
    }
}

/// What every request of the stateless protocol carries.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(crate) async fn mcp_call(server: &Server, token: &str, body: Value) -> Value {
    let request = server
        .bare(Method::POST, "/mcp")
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "inbox");
    send(request.body(body.to_string())).await.1
}

#[tokio::test]
async fn a_login_belongs_to_who_began_it() {
    let (upstream, _world) = world().await;
    let server = Server::start().await;
    let (ann, bob) = (invite(&server, "ann").await, invite(&server, "bob").await);
    add_server(&server, &upstream, "person").await;
    // Somebody else opens the link, or sends the own callback to somebody else.
    let callback = agree(&ann, &server, "mcp:mail", "bob").await;
    let (status, page) = visit(&bob, &server, &callback).await;
    assert!(status == 403 && page.contains("Another person"), "{page}");
    // It is used up.
    assert_eq!(visit(&ann, &server, &callback).await.0, 400);
    // From another site, the browser sends no session: the page repeats the request.
    let callback = agree(&ann, &server, "mcp:mail", "ann").await;
    let page = server.bare(Method::GET, &callback).send().await.unwrap();
    let (status, text) = (page.status().as_u16(), page.text().await.unwrap());
    assert!(status == 200 && text.contains("&amp;repeated=1"), "{text}");
    let repeated = format!("{callback}&repeated=1");
    assert_eq!(server.bare(Method::GET, &repeated).send().await.unwrap().status(), 403);
    assert_eq!(visit(&ann, &server, &repeated).await.0, 303);
    assert_eq!(visit(&ann, &server, &repeated).await.0, 400, "a state works once");
    for path in ["/api/accounts/callback?state=guess&code=x&repeated=1", "/api/accounts/callback?repeated=1"]
    {
        assert_eq!(visit(&ann, &server, path).await.0, 400, "{path}");
    }
    // A server that all callers share is nobody's own.
    let (status, _) = server.patch("/api/mcp-servers/mail", json!({"credentials": "shared"})).await;
    assert_eq!(status, 200);
    let path = "/api/accounts/mcp:mail/connect";
    assert_eq!(ann.send(&server, Method::POST, path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn an_api_key_is_that_of_the_person_who_calls() {
    let (upstream, world) = world().await;
    let server = Server::start().await;
    let (ann, bob) = (invite(&server, "ann").await, invite(&server, "bob").await);
    let (status, answer) = server
        .put("/api/account-providers/files", json!({"display_name": "Files", "help": "Ask Eve."}))
        .await;
    assert_eq!(status, 200, "{answer}");
    server
        .create(json!({
            "name": "data", "description": "Reads data", "input_schema": {"type": "object"},
            "implementation": {"type": "http", "method": "GET", "url": upstream.url("/api"),
                "headers": {"authorization": "Bearer ${account:files}"}},
        }))
        .await;
    let (status, answer) = invoke(&ann, &server, "data").await;
    assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
    let put = async |person: &Person, key: &str| {
        person.send(&server, Method::PUT, "/api/accounts/files", json!({"api_key": key})).await
    };
    for key in ["", "a\r\nX-Admin: 1", &*"x".repeat(1 << 20)] {
        let (status, answer) = put(&ann, key).await;
        assert!(matches!(status, 400 | 413) && !answer.to_string().contains("X-Admin"), "{status} {answer}");
    }
    assert_eq!(put(&ann, "key-of-ann").await.0, 200);
    assert_eq!(put(&bob, "key-of-bob").await.0, 200);
    for (person, name) in [(&ann, "ann"), (&bob, "bob")] {
        let (_, answer) = invoke(person, &server, "data").await;
        assert_eq!(answer["value"]["data_of"], name, "{answer}");
    }
    // Admins see who is affected by a change of the provider.
    let (status, holders) = server.get("/api/account-providers/files/accounts").await;
    let names: Vec<&str> = holders["data"]["actors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!((status, names, &holders["data"]["total"]), (200, vec!["ann", "bob"], &json!(2)), "{holders}");
    assert_eq!(ann.get(&server, "/api/account-providers/files/accounts").await.0, 403);
    assert_eq!(server.get("/api/account-providers/other/accounts").await.0, 404);
    // A fallback is used for those without an account only.
    server.put("/api/credentials/SHARED", json!({"value": "key-of-everybody"})).await;
    let (status, answer) = server.put("/api/account-providers/files", json!({"shared": "${SHARED}"})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.invoke("data", json!({})).await.1["value"]["data_of"], "everybody");
    assert_eq!(invoke(&bob, &server, "data").await.1["value"]["data_of"], "bob");
    assert_eq!(bob.send(&server, Method::DELETE, "/api/accounts/files", Value::Null).await.0, 200);
    assert_eq!(bob.send(&server, Method::DELETE, "/api/accounts/files", Value::Null).await.0, 404);
    assert_eq!(invoke(&bob, &server, "data").await.1["value"]["data_of"], "everybody");

    // With a login, the accounts with keys are gone; the key of the vault seals all of it.
    let oauth = json!({"issuer": world.lock().unwrap().base, "client_id": "haft"});
    let (status, answer) = server.put("/api/account-providers/files", json!({"oauth": oauth})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(code(&invoke(&ann, &server, "data").await.1), "credential_required");
    assert_eq!(put(&ann, "key-of-ann").await.0, 400);
    world.lock().unwrap().expires_in = Some(0);
    connect(&ann, &server, "files", "ann").await;
    assert_eq!(invoke(&ann, &server, "data").await.1["value"]["data_of"], "ann");
    let (status, answer) = server.post("/api/key/rotate", json!({})).await;
    assert!(status == 200 || status == 404, "{answer}");
    assert_eq!(invoke(&ann, &server, "data").await.1["value"]["data_of"], "ann");
    // A provider that no longer accepts the login.
    world.lock().unwrap().refuses_refresh = true;
    let (_, answer) = invoke(&ann, &server, "data").await;
    assert_eq!(code(&answer), "credential_required", "{answer}");
    let (_, list) = ann.get(&server, "/api/accounts").await;
    assert_eq!(list["data"]["accounts"][0]["account"]["state"], "expired", "{list}");
    for file in ["haft.db", "haft.db-wal"] {
        let bytes = std::fs::read(server.home.path().join(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["key-of-", "refresh-ann"] {
            assert!(!text.contains(secret), "{file} holds {secret}");
        }
    }
}

#[tokio::test]
async fn a_call_that_waits_ends_with_its_provider() {
    let server = Server::start().await;
    let ann = invite(&server, "ann").await;
    server.put("/api/account-providers/files", json!({})).await;
    server
        .create(json!({
            "name": "data", "description": "Reads data", "input_schema": {"type": "object"},
            "implementation": {"type": "http", "method": "GET", "url": "http://127.0.0.1:9/",
                "headers": {"authorization": "Bearer ${account:files}"}},
        }))
        .await;
    let (status, queued) =
        ann.send(&server, Method::POST, "/api/tools/data/invoke?async=true", json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");
    let call = format!("/api/calls/{}", queued["call_id"].as_str().unwrap());
    assert_eq!(server.delete("/api/account-providers/files").await.0, 200);
    let ended = poll(async || {
        let call = server.get(&call).await.1["data"].clone();
        (call["status"] != "awaiting_approval").then_some(call)
    })
    .await;
    assert_eq!(ended["error"]["code"], "credential_required", "{ended}");
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.contains("the provider `files` was deleted"), "{message}");
}

#[tokio::test]
async fn a_login_begins_on_one_node_and_ends_on_another() {
    let (upstream, _world) = world().await;
    let database = database().await;
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    let ann = invite(&one, "ann").await;
    add_server(&one, &upstream, "person_or_shared").await;
    share_list(&one, &upstream).await;
    poll(async || (invoke(&ann, &other, "mail:inbox").await.1["value"] == "mail of admin").then_some(()))
        .await;
    let callback = agree(&ann, &one, "mcp:mail", "ann").await;
    assert_eq!(visit(&ann, &other, &callback).await.0, 303);
    for server in [&other, &one] {
        assert_eq!(invoke(&ann, server, "mail:inbox").await.1["value"], "mail of ann");
    }
    // What one node revokes, the other does not use any more.
    let (status, _) = ann.send(&one, Method::DELETE, "/api/accounts/mcp:mail", Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(invoke(&ann, &other, "mail:inbox").await.1["value"], "mail of admin");
    // A token of the person is the person.
    let (_, token) = ann.token(&one, json!({"role": "caller"})).await;
    connect(&ann, &other, "mcp:mail", "ann").await;
    let path = "/api/tools/mail:inbox/invoke";
    poll(async || {
        let (status, answer) = with(&one, &token, Method::POST, path, json!({"args": {}})).await;
        (status == 200).then(|| assert_eq!(answer["value"], "mail of ann"))
    })
    .await;
}
