//! Logins to MCP servers, with an authorisation server and an MCP server on loopback.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::{Query, State};
use haft_testkit::upstream::axum::http::{HeaderMap, StatusCode, Uri, header};
use haft_testkit::upstream::axum::response::{IntoResponse as _, Redirect, Response};
use haft_testkit::upstream::axum::{Json, Router, routing};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::harness::{Server, code, send};

/// What the two servers do, and what they saw.
#[derive(Default)]
struct World {
    /// The address of both.
    base: String,
    /// The one access token that is good, and the one refresh token.
    access: String,
    refresh: String,
    /// The lifetime of the first token.
    expires_in: Option<u64>,
    /// Whether refresh tokens are taken.
    refuses_refresh: bool,
    /// What stands in the metadata instead of the truth.
    issuer: Option<String>,
    resource: Option<String>,
    token_endpoint: Option<String>,
    /// Where everybody who comes to the MCP server is sent.
    redirect: Option<String>,
    /// The codes that are good, and the proof that goes with each.
    codes: HashMap<String, String>,
    clients: u32,
    /// The forms that the token endpoint was sent, and the tokens that the MCP server was sent.
    asked: Vec<HashMap<String, String>>,
    shown: Vec<String>,
}

type Shared = Arc<Mutex<World>>;
type Pairs = HashMap<String, String>;

fn decode(form: &str) -> Pairs {
    url::form_urlencoded::parse(form.as_bytes()).into_owned().collect()
}

async fn mcp(State(world): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let token = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let mut world = world.lock().unwrap();
    world.shown.extend(token.clone());
    if let Some(target) = &world.redirect {
        return Redirect::temporary(target).into_response();
    }
    if token != Some(format!("Bearer {}", world.access)) {
        let challenge = format!(
            "Bearer error=\"invalid_token\", scope=\"read\", resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
            world.base
        );
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": body["id"], "result": result})).into_response();
    match body["method"].as_str().unwrap() {
        "initialize" => answer(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        })),
        "tools/list" => answer(json!({"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]})),
        "tools/call" => {
            answer(json!({"content": [{"type": "text", "text": format!("you sent {}", token.unwrap())}]}))
        }
        "ping" => answer(json!({})),
        method if method.starts_with("notifications/") => StatusCode::ACCEPTED.into_response(),
        _ => {
            Json(json!({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32601, "message": "unknown"}}))
                .into_response()
        }
    }
}

async fn resource_metadata(State(world): State<Shared>) -> Json<Value> {
    let world = world.lock().unwrap();
    let resource = world.resource.clone().unwrap_or_else(|| format!("{}/mcp", world.base));
    Json(json!({"resource": resource, "authorization_servers": [world.base]}))
}

async fn server_metadata(State(world): State<Shared>) -> Json<Value> {
    let world = world.lock().unwrap();
    let base = &world.base;
    Json(json!({
        "issuer": world.issuer.as_ref().unwrap_or(base),
        "authorization_endpoint": format!("{base}/authorize?kept=yes"),
        "token_endpoint": world.token_endpoint.clone().unwrap_or_else(|| format!("{base}/token")),
        "registration_endpoint": format!("{base}/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(world): State<Shared>, Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut world = world.lock().unwrap();
    world.clients += 1;
    assert_eq!(body["redirect_uris"].as_array().unwrap().len(), 1, "{body}");
    let client =
        json!({"client_id": format!("client-{}", world.clients), "client_secret": "registered-secret"});
    (StatusCode::CREATED, Json(client))
}

/// The page on which a person would agree.
async fn authorize(State(world): State<Shared>, Query(query): Query<Pairs>) -> Redirect {
    let mut world = world.lock().unwrap();
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    assert_eq!(query["resource"], format!("{}/mcp", world.base));
    assert_eq!((query["scope"].as_str(), query["kept"].as_str()), ("read", "yes"));
    let code = format!("code-{}", world.codes.len());
    world.codes.insert(code.clone(), query["code_challenge"].clone());
    let back = [("code", code.as_str()), ("state", &query["state"]), ("iss", &world.base)];
    let mut to = url::Url::parse(&query["redirect_uri"]).unwrap();
    to.query_pairs_mut().extend_pairs(back);
    Redirect::to(to.as_str())
}

async fn token(State(world): State<Shared>, headers: HeaderMap, form: String) -> Response {
    let form = decode(&form);
    let mut world = world.lock().unwrap();
    assert!(form.contains_key("client_id"), "{form:?}");
    world.asked.push(form.clone());
    let no = |error: &str| {
        (StatusCode::BAD_REQUEST, Json(json!({"error": error, "error_description": format!("{form:?}")})))
            .into_response()
    };
    if !headers.get("authorization").is_some_and(|value| value.to_str().unwrap().starts_with("Basic ")) {
        return no("invalid_client");
    }
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let proof = Sha256::digest(form["code_verifier"].as_bytes());
            let proof = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, proof);
            if world.codes.remove(&form["code"]) != Some(proof) {
                return no("invalid_grant");
            }
        }
        "refresh_token" if form["refresh_token"] == world.refresh && !world.refuses_refresh => {}
        "client_credentials" => {}
        _ => return no("invalid_grant"),
    }
    let count = world.asked.len();
    (world.access, world.refresh) = (format!("access-token-{count}"), format!("refresh-token-{count}"));
    let mut answer = json!({"access_token": world.access, "token_type": "Bearer"});
    if form["grant_type"] != "client_credentials" {
        answer["refresh_token"] = world.refresh.clone().into();
    }
    let expires_in = world.expires_in.take().unwrap_or(3600);
    answer["expires_in"] = expires_in.into();
    Json(answer).into_response()
}

/// Starts both servers, as a test wants them.
async fn world(change: impl FnOnce(&mut World)) -> (Upstream, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/mcp", routing::post(mcp))
        .route("/.well-known/oauth-protected-resource/mcp", routing::get(resource_metadata))
        .route("/.well-known/oauth-authorization-server", routing::get(server_metadata))
        .route("/register", routing::post(register))
        .route("/authorize", routing::get(authorize))
        .route("/token", routing::post(token))
        .with_state(Arc::clone(&shared));
    let upstream = Upstream::serve(router).await.unwrap();
    {
        let mut world = shared.lock().unwrap();
        world.base = upstream.url("");
        world.access = "nobody has this".into();
        change(&mut world);
    }
    (upstream, shared)
}

async fn phase(server: &Server, wanted: &str) -> Value {
    loop {
        let (_, answer) = server.get("/api/mcp-servers/guarded").await;
        if answer["data"]["state"]["phase"] == wanted {
            return answer["data"].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn add(server: &Server, upstream: &Upstream) {
    let body = json!({"id": "guarded", "url": upstream.url("/mcp")});
    let (status, answer) = server.post("/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
}

/// Begins a login and agrees to it; returns where the person is sent back to.
async fn agree(server: &Server) -> String {
    let (status, answer) = server.post("/api/mcp-servers/guarded/login", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let page = client.get(answer["data"]["authorization_url"].as_str().unwrap()).send().await.unwrap();
    let uri: Uri = page.headers()[header::LOCATION].to_str().unwrap().parse().unwrap();
    uri.path_and_query().unwrap().to_string()
}

async fn visit(server: &Server, path: &str) -> (u16, String) {
    let response = server.bare(Method::GET, path).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn log_in(server: &Server) {
    let (status, page) = visit(server, &agree(server).await).await;
    assert_eq!(page, "Logged in to MCP server `guarded`. You can close this page.");
    assert_eq!(status, 200);
    phase(server, "connected").await;
}

/// Calls the tool; what the server echoes of the token is hidden.
async fn call(server: &Server) {
    let (_, answer) = server.invoke("guarded:tell", json!({})).await;
    assert_eq!(answer["value"], "you sent Bearer ***", "{answer}");
}

#[tokio::test]
async fn a_person_logs_in_and_the_login_outlives_a_restart_and_ends_with_a_logout() {
    let (upstream, world) = world(|_| {}).await;
    let server = Server::start().await;
    add(&server, &upstream).await;
    let state = phase(&server, "needs_auth").await;
    let error = state["state"]["error"].as_str().unwrap();
    assert!(error.contains("haft mcp-server login guarded"), "{error}");
    log_in(&server).await;
    call(&server).await;
    let (_, audit) = server.get("/api/audit").await;
    assert!(audit.to_string().contains("mcp_server.logged_in"), "{audit}");

    let server = server.restart().await;
    phase(&server, "connected").await;
    call(&server).await;
    assert_eq!(world.lock().unwrap().asked.len(), 1, "the token was good all the time");
    for file in ["haft.db", "haft.db-wal"] {
        let bytes = std::fs::read(server.home.path().join(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["access-token-", "refresh-token-", "registered-secret"] {
            assert!(!text.contains(secret), "{file} holds {secret}");
        }
    }

    // Another login needs no other client, unless this server has another address.
    log_in(&server).await;
    log_in(&server).await;
    assert_eq!(world.lock().unwrap().clients, 2);
    let (_, answer) = server.post("/api/mcp-servers/guarded/logout", json!({})).await;
    assert_eq!(answer["data"]["was_logged_in"], true);
    phase(&server, "needs_auth").await;
    log_in(&server).await;
    assert_eq!(world.lock().unwrap().clients, 3, "a logout forgets the client, too");
}

#[tokio::test]
async fn a_login_callback_is_accepted_once_and_only_with_a_known_state() {
    let (upstream, world) = world(|_| {}).await;
    let server = Server::start().await;
    add(&server, &upstream).await;
    phase(&server, "needs_auth").await;
    let unknown = "Login failed: unknown login: already used, expired after 10 minutes, or started on another server; log in again.";
    let callback = "/api/mcp-servers/oauth/callback";
    for path in [callback.to_owned(), format!("{callback}?state=guess&code=x"), format!("{callback}?code=x")]
    {
        assert_eq!(visit(&server, &path).await, (400, unknown.to_owned()), "{path}");
    }
    let back = agree(&server).await;
    assert_eq!(visit(&server, &back).await.0, 200);
    assert_eq!(visit(&server, &back).await, (400, unknown.to_owned()));

    // A code that was used, or that belongs to another login, is refused by who gave it; the reason shows no secret.
    let (first, second) = (agree(&server).await, agree(&server).await);
    let part = |path: &str, name: &str| {
        let query = path.split_once('?').unwrap().1.to_owned();
        decode(&query)[name].clone()
    };
    let mixed = second.replace(&part(&second, "code"), &part(&first, "code"));
    let (status, page) = visit(&server, &mixed).await;
    assert!(status == 400 && page.contains("/token returned HTTP status 400: invalid_grant"), "{page}");
    assert!(!page.contains(&part(&first, "code")), "{page}");
    assert!(page.contains("***"), "{page}");

    // A callback of another issuer, without an issuer, and with an error.
    let base = world.lock().unwrap().base.clone();
    for (iss, expected) in [
        (Some("https://evil.example"), "the callback names the issuer `https://evil.example`"),
        (Some(&*format!("{base}/")), "the callback names the issuer"),
        (None, "the callback does not name its issuer"),
    ] {
        let state = part(&agree(&server).await, "state");
        let iss = iss.map(|iss| format!("&iss={iss}")).unwrap_or_default();
        let (status, page) = visit(&server, &format!("{callback}?state={state}&code=x{iss}")).await;
        assert!(status == 400 && page.contains(expected), "{page}");
    }
    let state = part(&agree(&server).await, "state");
    let no = format!("{callback}?state={state}&iss={base}&error=access_denied&error_description=%3Cb%3E");
    let (status, page) = visit(&server, &no).await;
    assert_eq!((status, page.as_str()), (400, "Login failed: login denied: access_denied: <b>."));
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused_by_one_request_at_a_time() {
    let (upstream, world) = world(|world| world.expires_in = Some(0)).await;
    let server = Server::start().await;
    add(&server, &upstream).await;
    phase(&server, "needs_auth").await;
    log_in(&server).await;
    call(&server).await;
    {
        let world = world.lock().unwrap();
        let kinds: Vec<_> = world.asked.iter().map(|form| form["grant_type"].as_str()).collect();
        assert_eq!(kinds, ["authorization_code", "refresh_token"]);
        assert_eq!(world.asked[1]["resource"], format!("{}/mcp", world.base));
        assert!(!world.shown.iter().any(|token| token == "Bearer access-token-1"), "it had ended");
    }
    // Someone took the token back: the next requests get another one, once.
    world.lock().unwrap().access = "another".to_owned();
    tokio::join!(call(&server), call(&server), call(&server), call(&server));
    assert_eq!(world.lock().unwrap().asked.len(), 3);
    // The one that came of it is the one that is kept.
    world.lock().unwrap().access = "yet another".to_owned();
    let server = server.restart().await;
    phase(&server, "connected").await;
    call(&server).await;
    assert_eq!(world.lock().unwrap().asked.len(), 4);
}

#[tokio::test]
async fn a_rejected_refresh_ends_the_login() {
    let (upstream, world) = world(|_| {}).await;
    let server = Server::start().await;
    add(&server, &upstream).await;
    phase(&server, "needs_auth").await;
    log_in(&server).await;
    {
        let mut world = world.lock().unwrap();
        (world.access, world.refuses_refresh) = ("another".to_owned(), true);
    }
    let (_, answer) = server.invoke("guarded:tell", json!({})).await;
    assert_eq!(answer["ok"], false, "{answer}");
    let state = phase(&server, "needs_auth").await.to_string();
    assert!(!state.contains("-token-"), "{state}");
    log_in(&server).await;
    call(&server).await;
}

#[tokio::test]
async fn metadata_of_another_origin_is_rejected() {
    let private = "http://10.0.0.1/token";
    for (change, expected) in [
        (
            Box::new(|world: &mut World| world.issuer = Some("https://evil.example".to_owned()))
                as Box<dyn FnOnce(&mut World)>,
            "belongs to another issuer: `https://evil.example`",
        ),
        (
            Box::new(|world: &mut World| world.resource = Some("https://evil.example/mcp".to_owned())),
            "belongs to another server: `https://evil.example/mcp`",
        ),
        (
            Box::new(|world: &mut World| world.token_endpoint = Some("file:///etc/passwd".to_owned())),
            "invalid `token_endpoint` `file:///etc/passwd`: expected `http` or `https`",
        ),
    ] {
        let (upstream, world) = world(change).await;
        let server = Server::start().await;
        add(&server, &upstream).await;
        phase(&server, "needs_auth").await;
        let (status, answer) = server.post("/api/mcp-servers/guarded/login", json!({})).await;
        assert_eq!((status, code(&answer)), (500, "invalid_response"), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
        assert_eq!(world.lock().unwrap().clients, 0, "nobody was told anything");
    }
    // A private address is refused when it would be gone to: the code and the secret stay here.
    let (upstream, _world) = world(|world| world.token_endpoint = Some(private.to_owned())).await;
    let server = Server::start().await;
    add(&server, &upstream).await;
    phase(&server, "needs_auth").await;
    let (status, page) = visit(&server, &agree(&server).await).await;
    assert!(status == 400 && page.contains("`10.0.0.1` is a private address"), "{page}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_gets_no_token() {
    let (upstream, world) = world(|_| {}).await;
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let elsewhere = {
        let seen = Arc::clone(&seen);
        let take = move |headers: HeaderMap| async move {
            seen.lock().unwrap().push(format!("{headers:?}"));
            StatusCode::OK
        };
        Upstream::serve(Router::new().fallback(take)).await.unwrap()
    };
    let server = Server::start().await;
    add(&server, &upstream).await;
    phase(&server, "needs_auth").await;
    log_in(&server).await;
    world.lock().unwrap().redirect = Some(elsewhere.url("/mcp"));
    let (_, answer) = server.invoke("guarded:tell", json!({})).await;
    assert_eq!(answer["ok"], false, "{answer}");
    let (_, answer) = server.post("/api/mcp-servers/guarded/refresh", json!({})).await;
    assert_eq!(answer["status"], "error", "{answer}");
    assert_eq!(*seen.lock().unwrap(), Vec::<String>::new());
    assert_eq!(world.lock().unwrap().asked.len(), 1);
}

#[tokio::test]
async fn a_client_may_act_for_itself() {
    let (upstream, world) = world(|_| {}).await;
    let server = Server::start().await;
    server.put("/api/credentials/CLIENT_SECRET", json!({"value": "the client's own"})).await;
    let oauth = json!({"grant": "client_credentials", "client_id": "me", "client_secret": "${CLIENT_SECRET}", "scopes": ["a", "b"]});
    let body = json!({"id": "guarded", "url": upstream.url("/mcp"), "oauth": oauth});
    let (status, answer) = server.post("/api/mcp-servers", body).await;
    assert_eq!((status, &answer["data"]["oauth"]), (201, &oauth), "{answer}");
    phase(&server, "connected").await;
    call(&server).await;
    world.lock().unwrap().access = "another".to_owned();
    call(&server).await;
    let world = world.lock().unwrap();
    assert_eq!((world.clients, world.asked.len(), world.asked[0]["scope"].as_str()), (0, 2, "a b"));
}

#[tokio::test]
async fn a_login_needs_an_admin_and_a_server_with_oauth() {
    let server = Server::start().await;
    let (_, made) = server.post("/api/tokens", json!({"name": "e", "role": "editor"})).await;
    let editor = made["data"]["token"].as_str().unwrap().to_owned();
    server.post("/api/mcp-servers", json!({"id": "guarded", "command": "no-such-program"})).await;
    for path in ["login", "logout"] {
        let path = format!("/api/mcp-servers/guarded/{path}");
        let (status, _) = send(server.bare(Method::POST, &path).bearer_auth(&editor)).await;
        assert_eq!(status, 403, "{path}");
    }
    let (status, answer) = server.post("/api/mcp-servers/guarded/login", json!({})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
    let (status, _) = server.post("/api/mcp-servers/none/login", json!({})).await;
    assert_eq!(status, 404);
    for (oauth, expected) in [
        (json!({"client_secret": "${X}"}), "missing `oauth.client_id`"),
        (json!({"client_id": "a", "client_secret": "literal"}), "must be a reference `${NAME}`"),
        (json!({"grant": "password"}), "`oauth.grant` must be"),
        (json!({"scopes": ["a b"]}), "must not contain empty entries or spaces"),
    ] {
        let body = json!({"id": "x", "url": "https://x.test/mcp", "oauth": oauth});
        let (status, answer) = server.post("/api/mcp-servers", body).await;
        assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
}
