//! Accounts without a browser that comes back: logins with a code on any device, and tokens that the issuer of the person's
//! login exchanges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use haft_core::secret::Secret;
use haft_server::settings::declared_issuer;
use haft_testkit::issuer::{CLIENT_ID, CLIENT_SECRET, StubIssuer};
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::State;
use haft_testkit::upstream::axum::http::{HeaderMap, StatusCode};
use haft_testkit::upstream::axum::response::{IntoResponse as _, Response};
use haft_testkit::upstream::axum::{Json, Router, routing};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll, send};
use crate::login::browser;
use crate::people::Person;
use crate::postgres::{database, on};

/// A provider with logins by code, and an API that knows its tokens.
#[derive(Default)]
struct Provider {
    /// What happens to each code: nothing yet, or the answer of the token endpoint.
    answers: HashMap<String, (u16, Value)>,
    begun: usize,
    polls: usize,
}

type Shared = Arc<Mutex<Provider>>;

async fn device(State(provider): State<Shared>, form: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    if form.get("client_id").map(String::as_str) != Some("haft") {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_client"}))).into_response();
    }
    let mut provider = provider.lock().unwrap();
    provider.begun += 1;
    let number = provider.begun;
    Json(json!({
        "device_code": format!("device-{number}"), "user_code": format!("CODE-{number}"), "interval": 1,
        "verification_uri": "https://provider.test/device", "expires_in": 600,
    }))
    .into_response()
}

async fn token(State(provider): State<Shared>, form: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    let mut provider = provider.lock().unwrap();
    provider.polls += 1;
    let is_device = form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code";
    let pending = (400, json!({"error": "authorization_pending"}));
    let answer = match form.get("device_code").filter(|_| is_device) {
        Some(code) => provider.answers.get(code).cloned().unwrap_or(pending),
        None => (400, json!({"error": "unsupported_grant_type"})),
    };
    (StatusCode::from_u16(answer.0).unwrap(), Json(answer.1)).into_response()
}

async fn api(headers: HeaderMap) -> String {
    headers["authorization"].to_str().unwrap().to_owned()
}

async fn provider() -> (Upstream, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/device", routing::post(device))
        .route("/token", routing::post(token))
        .route("/api", routing::get(api))
        .with_state(Arc::clone(&shared));
    (Upstream::serve(router).await.unwrap(), shared)
}

fn granted(person: &str) -> (u16, Value) {
    let token = format!("token-of-{person}");
    (200, json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r"}))
}

/// Defines a provider that only has codes, and a tool that uses it.
async fn define(server: &Server, upstream: &Upstream) {
    let oauth = json!({
        "token_endpoint": upstream.url("/token"), "device_authorization_endpoint": upstream.url("/device"),
        "client_id": "haft", "scopes": ["read"],
    });
    let (status, answer) = server.put("/api/account-providers/tv", json!({"oauth": oauth})).await;
    assert_eq!(status, 200, "{answer}");
    define_tool(server, upstream, "tv").await;
}

async fn define_tool(server: &Server, upstream: &Upstream, provider: &str) {
    let authorization = format!("Bearer ${{account:{provider}}}");
    let tool = json!({
        "name": "mine", "description": "Mine", "params": [],
        "implementation": {"type": "http", "url": upstream.url("/api"), "headers": {"authorization": authorization}},
    });
    server.create(tool).await;
}

async fn invite(server: &Server, name: &str) -> Person {
    let body = json!({"name": name, "email": format!("{name}@example.com"), "role": "caller"});
    Person::invite(server, body).await
}

async fn begin(person: &Person, server: &Server, body: Value) -> Value {
    let (status, answer) = person.send(server, Method::POST, "/api/accounts/tv/connect", body).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// Waits for the end of a login; returns its state and the reason.
async fn ended(person: &Person, server: &Server, begun: &Value) -> (String, Value) {
    let path = format!("/api/accounts/tv/logins/{}", begun["device"]["id"].as_str().unwrap());
    poll(async || {
        let (status, answer) = person.get(server, &path).await;
        assert_eq!(status, 200, "{answer}");
        let state = answer["data"]["state"].as_str().unwrap().to_owned();
        (state != "pending").then(|| (state, answer["data"]["error"].clone()))
    })
    .await
}

async fn invoke(person: &Person, server: &Server) -> (u16, Value) {
    person.send(server, Method::POST, "/api/tools/mine/invoke", json!({"args": {}})).await
}

#[tokio::test]
async fn an_account_is_connected_with_a_code() {
    let (upstream, provider) = provider().await;
    let server = Server::start().await;
    define(&server, &upstream).await;
    let (ann, bob) = (invite(&server, "ann").await, invite(&server, "bob").await);
    // The provider only has codes, so the flow needs no name.
    let begun = begin(&ann, &server, Value::Null).await;
    assert_eq!(
        (&begun["device"]["user_code"], &begun["device"]["verification_uri"], &begun["authorization_url"]),
        (&json!("CODE-1"), &json!("https://provider.test/device"), &json!("https://provider.test/device"))
    );
    assert_eq!(begun["redirect_uri"], Value::Null);
    let path = format!("/api/accounts/tv/logins/{}", begun["device"]["id"].as_str().unwrap());
    assert_eq!(bob.get(&server, &path).await.0, 404, "the login of another person");
    let (status, queued) =
        ann.send(&server, Method::POST, "/api/tools/mine/invoke?async=true", json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");

    // The server asks more than once, and slows down if it has to.
    poll(async || (provider.lock().unwrap().polls >= 2).then_some(())).await;
    provider.lock().unwrap().answers.insert("device-1".to_owned(), (503, json!({})));
    let polls = provider.lock().unwrap().polls;
    poll(async || (provider.lock().unwrap().polls > polls).then_some(())).await;
    provider.lock().unwrap().answers.insert("device-1".to_owned(), granted("ann"));
    assert_eq!(ended(&ann, &server, &begun).await, ("connected".to_owned(), Value::Null));
    let call = format!("/api/calls/{}", queued["call_id"].as_str().unwrap());
    let call = poll(async || {
        let call = server.get(&call).await.1["data"].clone();
        (call["status"] == "success").then_some(call)
    })
    .await;
    assert_eq!(call["value"], "Bearer ***", "the waiting call went on: {call}");
    let (status, answer) = invoke(&ann, &server).await;
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.to_string().contains("token-of-ann"), "masked: {answer}");
    assert_eq!(code(&invoke(&bob, &server).await.1), "credential_required");
    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    for secret in ["device-1", "token-of-ann"] {
        let is_part = database.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_part, "`{secret}` is stored in clear");
    }

    // What the person denies fails with the reason.
    let begun = begin(&bob, &server, json!({"flow": "device"})).await;
    let denied = (400, json!({"error": "access_denied", "error_description": "not today"}));
    provider.lock().unwrap().answers.insert("device-2".to_owned(), denied);
    let (state, error) = ended(&bob, &server, &begun).await;
    assert_eq!((state.as_str(), &error), ("failed", &json!("login denied: access_denied: not today")));
    for body in [json!({"flow": "browser"}), json!({"flow": "fax"})] {
        let (status, answer) = bob.send(&server, Method::POST, "/api/accounts/tv/connect", body).await;
        assert!(status == 400 || status == 502 || status == 500, "{status} {answer}");
    }
    let (status, _) =
        bob.send(&server, Method::POST, "/api/accounts/mcp:x/connect", json!({"flow": "device"})).await;
    assert!(status == 400 || status == 404, "{status}");
}

#[tokio::test]
async fn a_login_with_a_code_goes_on_after_a_restart() {
    let (upstream, provider) = provider().await;
    let server = Server::start().await;
    define(&server, &upstream).await;
    let ann = invite(&server, "ann").await;
    let begun = begin(&ann, &server, Value::Null).await;
    let server = server.restart().await;
    provider.lock().unwrap().answers.insert("device-1".to_owned(), granted("ann"));
    assert_eq!(ended(&ann, &server, &begun).await.0, "connected");
    assert_eq!(invoke(&ann, &server).await.0, 200);
    // Whoever loses access while the login waits gets no account.
    let begun = begin(&ann, &server, Value::Null).await;
    let (_, people) = server.get("/api/people").await;
    let id = people["data"]["people"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.patch(&format!("/api/people/{id}"), json!({"status": "disabled"})).await.0, 200);
    provider.lock().unwrap().answers.insert("device-2".to_owned(), granted("ann"));
    assert_eq!(server.patch(&format!("/api/people/{id}"), json!({"status": "active"})).await.0, 200);
    assert!(begun["device"]["id"].is_string());
}

#[tokio::test]
async fn another_node_asks_for_the_result() {
    let database = database().await;
    let (upstream, provider) = provider().await;
    let mut one = on(&database.url).await;
    define(&one, &upstream).await;
    let ann = invite(&one, "ann").await;
    let begun = begin(&ann, &one, Value::Null).await;
    let two = on(&database.url).await;
    one.halt().await;
    provider.lock().unwrap().answers.insert("device-1".to_owned(), granted("ann"));
    assert_eq!(ended(&ann, &two, &begun).await.0, "connected");
}

/// Logs somebody in at the issuer; returns the cookie of the session.
async fn log_in(server: &Server, issuer: &StubIssuer, subject: &str) -> String {
    issuer.log_in_as(&json!({"sub": subject, "name": subject, "groups": ["ops"]}));
    let begun = browser().get(server.url("/login/oidc/corp?next=/ui/accounts")).send().await.unwrap();
    let cookie = |response: &reqwest::Response, name: &str| {
        let all = response.headers().get_all("set-cookie").iter();
        let found = all.filter_map(|value| value.to_str().unwrap().split(';').next());
        found.filter(|pair| pair.starts_with(name)).map(str::to_owned).next().unwrap()
    };
    let location = |response: &reqwest::Response| response.headers()["location"].to_str().unwrap().to_owned();
    let sign_on = cookie(&begun, "haft_sign_on");
    let back = browser().get(location(&begun)).send().await.unwrap();
    let page = browser().get(location(&back)).header("cookie", sign_on).send().await.unwrap();
    assert_eq!(page.status(), 200);
    cookie(&page, "haft_session")
}

/// A server whose people log in at an issuer that exchanges tokens for `crm`, and an API that needs them.
struct Corp {
    server: Server,
    issuer: StubIssuer,
    upstream: Upstream,
}

impl Corp {
    async fn start() -> Self {
        let issuer = StubIssuer::start().await.unwrap();
        issuer.change(|behavior| behavior.refreshes = true);
        let (upstream, _) = provider().await;
        let table = json!({
            "id": "corp", "issuer": issuer.url(), "client_id": CLIENT_ID, "client_secret": "${env:STUB_SECRET}",
            "private_hosts": ["127.0.0.1"], "token_exchange": ["crm"], "audiences": ["https://haft.test"],
            "rules": [{"when": "'ops' in claims.groups", "role": "caller"}],
        });
        let server = Server::start_with(|settings| {
            let secret = ("STUB_SECRET".to_owned(), Secret::new(CLIENT_SECRET.to_owned()));
            settings.secrets.environment.push(secret);
            settings.sign_on.issuers.push(declared_issuer(table).unwrap());
        })
        .await;
        let exchange = json!({"token_exchange": {"issuer": "corp", "audience": "crm"}});
        assert_eq!(server.put("/api/account-providers/crm", exchange).await.0, 200);
        define_tool(&server, &upstream, "crm").await;
        Self { server, issuer, upstream }
    }

    /// Calls the tool in a session.
    async fn call(&self, cookie: &str) -> (u16, Value) {
        let request = self.server.bare(Method::POST, "/api/tools/mine/invoke").header("cookie", cookie);
        let request = request.header("sec-fetch-site", "same-origin");
        send(request.body(json!({"args": {}}).to_string())).await
    }

    /// Calls the tool as Ann, with a bearer token of the issuer.
    async fn call_with_bearer(&self) -> (u16, Value) {
        let bearer = self.issuer.token("https://haft.test", &json!({"sub": "ann", "groups": ["ops"]}));
        let request = self.server.bare(Method::POST, "/api/tools/mine/invoke").bearer_auth(&bearer);
        send(request.body(json!({"args": {}}).to_string())).await
    }

    /// Returns what the API got at last.
    fn authorization(&self) -> Option<String> {
        let last = self.upstream.seen().into_iter().rfind(|request| request.target == "/api");
        last.map(|request| request.headers["authorization"].clone())
    }
}

#[tokio::test]
async fn the_token_of_a_login_is_exchanged() {
    let corp = Corp::start().await;
    let Corp { server, issuer, .. } = &corp;
    // A bearer token that a client sent is no login of the person.
    let (status, answer) = corp.call_with_bearer().await;
    assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
    assert_eq!((corp.authorization(), issuer.requests("/token")), (None, 0));

    let (ann, bob) = (log_in(server, issuer, "ann").await, log_in(server, issuer, "bob").await);
    for (cookie, name) in [(&ann, "ann"), (&bob, "bob")] {
        let (status, answer) = corp.call(cookie).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(corp.authorization(), Some(format!("Bearer crm-of-{name}")));
    }
    // The token is kept until it expires.
    let requests = issuer.requests("/token");
    assert_eq!(corp.call(&ann).await.0, 200);
    assert_eq!(issuer.requests("/token"), requests);
    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    for secret in ["refresh-1-ann", "access-2-ann", "crm-of-ann"] {
        let is_part = database.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_part, "`{secret}` is stored in clear");
    }
    let list = send(server.bare(Method::GET, "/api/accounts").header("cookie", &ann)).await.1;
    let account = &list["data"]["accounts"][0];
    assert_eq!(
        (&account["kind"], &account["account"]["state"]),
        (&json!("token_exchange"), &json!("connected"))
    );
}

#[tokio::test]
async fn an_exchange_ends_with_the_login() {
    let corp = Corp::start().await;
    let Corp { server, issuer, .. } = &corp;
    let (ann, bob) = (log_in(server, issuer, "ann").await, log_in(server, issuer, "bob").await);
    assert_eq!((corp.call(&ann).await.0, corp.call(&bob).await.0), (200, 200));
    // The issuer ends the login of one: the other's goes on.
    let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let logout = issuer.token(CLIENT_ID, &json!({"sub": "ann", "events": events}));
    let form =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("logout_token", &logout).finish();
    let request = server.bare(Method::POST, "/login/oidc/corp/backchannel-logout").body(form);
    let ended = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    assert_eq!(ended.status(), 200);
    let (status, answer) = corp.call_with_bearer().await;
    assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
    assert_eq!(corp.call(&bob).await.0, 200);

    // To connect is to log in again.
    let request = server.bare(Method::POST, "/api/accounts/crm/connect").header("cookie", &bob);
    let (status, answer) = send(request.header("sec-fetch-site", "same-origin")).await;
    let expected = server.url("/login/oidc/corp?next=%2Fui%2Faccounts&tenant=default");
    assert_eq!((status, &answer["data"]["authorization_url"]), (200, &json!(expected)), "{answer}");
    let ann = log_in(server, issuer, "ann").await;
    issuer.change(|behavior| behavior.token_error = Some("temporarily_unavailable"));
    assert_eq!(code(&corp.call(&ann).await.1), "network", "the login may still be good");
    issuer.change(|behavior| behavior.token_error = Some("invalid_grant"));
    assert_eq!(code(&corp.call(&ann).await.1), "credential_required", "the refresh token was rejected");
}

#[tokio::test]
async fn an_admin_of_the_platform_chooses_the_services_of_exchanges() {
    let corp = Corp::start().await;
    for (exchange, expected) in [
        (json!({"issuer": "corp", "audience": "payroll"}), "does not exchange tokens for `payroll`"),
        (json!({"issuer": "other", "audience": "crm"}), "does not exchange tokens for `crm`"),
        (json!({"issuer": "corp"}), "set either `token_exchange.audience`"),
        (json!({"issuer": "corp", "audience": "crm", "resource": "https://a.test"}), "set either"),
    ] {
        let body = json!({"token_exchange": exchange});
        let (status, answer) = corp.server.put("/api/account-providers/other", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
}
