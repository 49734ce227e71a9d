//! Logins of command lines: the endpoints of RFC 8628 and the page on which a person decides.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};
use crate::login::{browser, cookie, submit};
use crate::tenants::tenant;

/// The codes of a started login.
struct Codes {
    device: String,
    user: String,
}

/// Sends a form without a token; returns status and answer.
async fn form(server: &Server, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(fields);
    let request = server.bare(Method::POST, path).body(text.finish());
    send(request.header("content-type", "application/x-www-form-urlencoded")).await
}

async fn start(server: &Server) -> Codes {
    let fields = [("client_id", "haft-cli"), ("device_name", "laptop")];
    let (status, started) = form(server, "/oauth/device_authorization", &fields).await;
    assert_eq!(status, 200, "{started}");
    let text = |key: &str| started[key].as_str().unwrap().to_owned();
    assert_eq!((&started["expires_in"], &started["interval"]), (&json!(600), &json!(5)));
    assert_eq!(text("verification_uri"), server.url("/device"));
    let complete = server.url(&format!("/device?user_code={}", text("user_code")));
    assert_eq!(text("verification_uri_complete"), complete);
    Codes { device: text("device_code"), user: text("user_code") }
}

async fn fetch(server: &Server, device_code: &str) -> (u16, Value) {
    let grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    let fields = [("grant_type", grant_type), ("device_code", device_code), ("client_id", "haft-cli")];
    form(server, "/oauth/token", &fields).await
}

/// Returns the error of a request for a token.
async fn refused(server: &Server, device_code: &str) -> String {
    let (status, answer) = fetch(server, device_code).await;
    assert_eq!(status, 400, "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

/// Decides with the session of a browser.
async fn decide(server: &Server, cookie: &str, user_code: &str, decision: &str) -> Response {
    let form = format!("user_code={user_code}&decision={decision}");
    let request = browser().post(server.url("/device")).header("cookie", cookie).body(form);
    request.header("sec-fetch-site", "same-origin").send().await.unwrap()
}

/// Decides with a token, as a program may.
async fn decide_with_token(server: &Server, token: &str, user_code: &str, decision: &str) -> u16 {
    let form = format!("user_code={user_code}&decision={decision}");
    let request = server.bare(Method::POST, "/device").bearer_auth(token).body(form);
    request.send().await.unwrap().status().as_u16()
}

async fn session(server: &Server, token: &Value) -> (u16, Value) {
    let (status, answer) =
        send(server.bare(Method::GET, "/api/session").bearer_auth(token.as_str().unwrap())).await;
    (status, answer["data"].clone())
}

#[tokio::test]
async fn a_person_approves_a_command_line() {
    let server = Server::start().await;
    let codes = start(&server).await;
    let letters = codes.user.replace('-', "");
    assert!(codes.user.len() == 9 && letters.len() == 8, "{}", codes.user);
    assert!(!letters.contains(['A', 'E', 'I', 'O', 'U', 'Y']), "{letters}");
    assert_eq!(refused(&server, &codes.device).await, "authorization_pending");
    assert_eq!(refused(&server, &codes.device).await, "slow_down");

    // The page needs a login, which leads back to it.
    let address = server.url(&format!("/device?user_code={}", codes.user));
    let page = browser().get(&address).send().await.unwrap();
    let login = page.headers()["location"].to_str().unwrap().to_owned();
    let next = format!("%2Fdevice%3Fuser%5Fcode%3D{}", codes.user.replace('-', "%2D"));
    assert_eq!((page.status().as_u16(), login), (303, format!("/login?next={next}")));
    let logged_in = submit(&server, &format!("token={}&next={next}", server.token)).await;
    let back = logged_in.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(back, format!("/device?user_code={}", codes.user));
    let cookie = cookie(&logged_in);

    let page = browser().get(server.url(&back)).header("cookie", &cookie).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"), "{policy}");
    let text = page.text().await.unwrap();
    for part in [
        codes.user.as_str(),
        "says it is laptop (127.0.0.1)",
        "<dd>Admin</dd>",
        "<dd>default</dd>",
        "every tool",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("<script") && !text.contains(&codes.device), "{text}");

    let approved = decide(&server, &cookie, &codes.user, "approve").await;
    assert_eq!(approved.status(), 200);
    assert!(approved.text().await.unwrap().contains("Approved"));
    let (status, token) = fetch(&server, &codes.device).await;
    assert_eq!((status, &token["token_type"]), (200, &json!("Bearer")), "{token}");
    let days = token["expires_in"].as_i64().unwrap() / 86_400;
    assert!((89..=90).contains(&days), "{token}");
    let (_, who) = session(&server, &token["access_token"]).await;
    let rights =
        ["tenant", "name", "role", "elevated", "platform", "tools", "rate_limit"].map(|key| &who[key]);
    let expected = [
        json!("default"),
        json!("local"),
        json!("admin"),
        json!(false),
        json!(false),
        json!(null),
        json!(null),
    ];
    assert_eq!(rights, expected.each_ref(), "{who}");
    assert!(who["token_id"].is_string() && who["is_session"] == false, "{who}");

    assert_eq!(refused(&server, &codes.device).await, "invalid_grant", "the code works once");
    assert_eq!(decide(&server, &cookie, &codes.user, "approve").await.status(), 404);
    let (_, audit) = server.get("/api/audit?page_size=50").await;
    for (action, target) in [("device_login.approve", "laptop"), ("token.create", "haft-cli on laptop")] {
        let records = audit["data"]["records"].as_array().unwrap();
        let found = records.iter().find(|record| record["action"] == action).unwrap();
        assert_eq!((&found["target"], &found["actor"]), (&json!(target), &json!("local")), "{found}");
    }
    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    for secret in [codes.device.as_str(), token["access_token"].as_str().unwrap(), &letters, &codes.user] {
        let is_part = database.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_part, "only hashes are stored");
    }
}

#[tokio::test]
async fn a_denied_login_gives_no_token() {
    let server = Server::start().await;
    let codes = start(&server).await;
    assert_eq!(decide_with_token(&server, &server.token, &codes.user, "maybe").await, 400);
    assert_eq!(decide_with_token(&server, &server.token, &codes.user, "deny").await, 200);
    assert_eq!(decide_with_token(&server, &server.token, &codes.user, "approve").await, 404);
    assert_eq!(refused(&server, &codes.device).await, "access_denied");
    assert_eq!(server.get("/api/tokens").await.1["data"]["total"], 0);
    let (_, audit) = server.get("/api/audit?action=device_login.deny").await;
    assert_eq!(audit["data"]["total"], 1, "{audit}");
}

#[tokio::test]
async fn the_token_has_the_rights_of_the_person_and_no_more() {
    let server = Server::start().await;
    let admin = tenant(&server, "acme").await;
    let body = json!({
        "name": "ann", "role": "caller", "tools": ["weather", "web:*"], "expires_in": "2h", "elevated": true,
        "rate_limit": {"calls": 5, "per": "1m"},
    });
    let request = server.bare(Method::POST, "/api/tokens").bearer_auth(&admin).body(body.to_string());
    let (status, ann) = send(request).await;
    assert_eq!(status, 201, "{ann}");
    let bearer = ann["data"]["token"].as_str().unwrap();
    let codes = start(&server).await;
    // Lower case and without the hyphen, as a person may type it.
    let typed = codes.user.replace('-', "").to_lowercase();
    assert_eq!(decide_with_token(&server, bearer, &typed, "approve").await, 200);
    let (_, token) = fetch(&server, &codes.device).await;
    let (_, who) = session(&server, &token["access_token"]).await;
    assert_eq!((&who["tenant"], &who["role"]), (&json!("acme"), &json!("caller")), "{who}");
    assert_eq!((&who["tools"], &who["elevated"]), (&json!(["weather", "web:*"]), &json!(false)), "{who}");
    assert_eq!(who["rate_limit"], json!({"calls": 5, "per": "1m"}), "{who}");
    let other = ann["data"]["id"].as_str().unwrap();
    let (_, stored) = server.get(&format!("/api/tokens/{other}")).await;
    assert_eq!(
        who["expires_at"], stored["data"]["expires_at"],
        "it does not outlive the token of the person"
    );
    let (_, issued) = server.get(&format!("/api/tokens/{}", who["token_id"].as_str().unwrap())).await;
    assert_eq!(
        (&issued["data"]["parent_id"], &stored["data"]["parent_id"]),
        (&ann["data"]["id"], &json!(null))
    );
    // Whoever has a token may revoke it, and no other one.
    let (own, value) = (who["token_id"].as_str().unwrap(), token["access_token"].as_str().unwrap());
    for (id, expected) in [(other, 403), (own, 200), (own, 401)] {
        let request = server.bare(Method::DELETE, &format!("/api/tokens/{id}")).bearer_auth(value);
        assert_eq!(send(request).await.0, expected, "{id}");
    }
}

#[tokio::test]
async fn a_revoked_person_gives_no_token() {
    let server = Server::start().await;
    let (_, ann) = server.post("/api/tokens", json!({"name": "ann"})).await;
    let codes = start(&server).await;
    let bearer = ann["data"]["token"].as_str().unwrap();
    assert_eq!(decide_with_token(&server, bearer, &codes.user, "approve").await, 200);
    server.delete(&format!("/api/tokens/{}", ann["data"]["id"].as_str().unwrap())).await;
    assert_eq!(refused(&server, &codes.device).await, "access_denied");
    assert_eq!(refused(&server, &codes.device).await, "invalid_grant", "the login is used up");
    assert_eq!(server.get("/api/tokens").await.1["data"]["total"], 0);
}

/// Logs a command line in with the token of a person; returns the answer with its token.
async fn log_in(server: &Server, bearer: &str) -> Value {
    let codes = start(server).await;
    assert_eq!(decide_with_token(server, bearer, &codes.user, "approve").await, 200);
    let (status, token) = fetch(server, &codes.device).await;
    assert_eq!(status, 200, "{token}");
    token
}

#[tokio::test]
async fn a_revocation_ends_the_command_lines_of_the_person() {
    let server = Server::start().await;
    let (_, ann) = server.post("/api/tokens", json!({"name": "ann", "role": "caller"})).await;
    let first = log_in(&server, ann["data"]["token"].as_str().unwrap()).await["access_token"].clone();
    let second = log_in(&server, first.as_str().unwrap()).await["access_token"].clone();
    let of_local = log_in(&server, &server.token).await["access_token"].clone();
    assert_eq!(session(&server, &second).await.0, 200);
    server.delete(&format!("/api/tokens/{}", ann["data"]["id"].as_str().unwrap())).await;
    for (token, expected) in [(&first, 401), (&second, 401), (&of_local, 200)] {
        assert_eq!(session(&server, token).await.0, expected);
    }
    assert_eq!(server.get("/api/tokens").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn a_rotation_without_grace_ends_the_command_lines_of_the_person() {
    let server = Server::start().await;
    let (_, ann) = server.post("/api/tokens", json!({"name": "ann", "role": "caller"})).await;
    let rotate = format!("/api/tokens/{}/rotate", ann["data"]["id"].as_str().unwrap());
    let child = log_in(&server, ann["data"]["token"].as_str().unwrap()).await["access_token"].clone();
    let (_, rotated) = server.post(&rotate, json!({"grace": "10m"})).await;
    assert_eq!(session(&server, &child).await.0, 200);
    let later = log_in(&server, rotated["data"]["token"].as_str().unwrap()).await["access_token"].clone();
    let (status, last) = server.post(&rotate, json!({})).await;
    assert_eq!(status, 200, "{last}");
    for (token, expected) in [(&child, 401), (&later, 401), (&last["data"]["token"], 200)] {
        assert_eq!(session(&server, token).await.0, expected);
    }
}

#[tokio::test]
async fn a_command_line_does_not_outlive_the_person() {
    let server = Server::start().await;
    let (_, ann) = server.post("/api/tokens", json!({"name": "ann", "role": "caller"})).await;
    let child = log_in(&server, ann["data"]["token"].as_str().unwrap()).await["access_token"].clone();
    let rotate = format!("/api/tokens/{}/rotate", ann["data"]["id"].as_str().unwrap());
    let (status, answer) = server.post(&rotate, json!({"grace": "10m", "expires_in": "1s"})).await;
    assert_eq!(status, 200, "{answer}");
    let ended = async || (session(&server, &child).await.0 == 401).then_some(());
    crate::harness::poll(ended).await;
}

#[tokio::test]
async fn command_lines_share_the_rate_of_the_person() {
    let server = Server::start().await;
    server.create(function_tool("double", "double")).await;
    let body = json!({"name": "ann", "role": "caller", "rate_limit": {"calls": 2, "per": "1h"}});
    let (_, ann) = server.post("/api/tokens", body).await;
    let ann_token = &ann["data"]["token"];
    let first = log_in(&server, ann_token.as_str().unwrap()).await["access_token"].clone();
    let second = log_in(&server, first.as_str().unwrap()).await["access_token"].clone();
    for (token, expected) in [(ann_token, 200), (&first, 200), (&second, 429), (ann_token, 429)] {
        let request = server.bare(Method::POST, "/api/tools/double/invoke");
        let request =
            request.bearer_auth(token.as_str().unwrap()).body(json!({"args": {"n": 1}}).to_string());
        assert_eq!(send(request).await.0, expected);
    }
    // A lower rate of the person holds for the command lines, too.
    let path = format!("/api/tokens/{}", ann["data"]["id"].as_str().unwrap());
    let (status, _) = server.patch(&path, json!({"rate_limit": {"calls": 1, "per": "1h"}})).await;
    assert_eq!(status, 200);
    let request = server.bare(Method::POST, "/api/tools/double/invoke");
    let request = request.bearer_auth(second.as_str().unwrap()).body(json!({"args": {"n": 1}}).to_string());
    assert_eq!(send(request).await.0, 429);
}

#[tokio::test]
async fn the_old_value_of_a_token_gives_nothing_that_outlives_it() {
    let server = Server::start().await;
    let (_, ann) = server.post("/api/tokens", json!({"name": "ann", "role": "admin"})).await;
    let old = ann["data"]["token"].as_str().unwrap();
    let rotate = format!("/api/tokens/{}/rotate", ann["data"]["id"].as_str().unwrap());
    assert_eq!(server.post(&rotate, json!({"grace": "10m"})).await.0, 200);
    let token = log_in(&server, old).await;
    assert!(token["expires_in"].as_i64().unwrap() <= 600, "{token}");
    for (path, body) in [
        (rotate.as_str(), json!({"expires_in": "1h"})),
        ("/api/tokens", json!({"name": "x", "expires_in": "1h"})),
    ] {
        let request = server.bare(Method::POST, path).bearer_auth(old).body(body.to_string());
        assert_eq!(send(request).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn the_address_of_a_proxy_is_not_shown() {
    let server = Server::start_with(|settings| {
        settings.mcp.public_url = Some("https://public.example.com".to_owned());
    })
    .await;
    let fields = [("client_id", "haft-cli"), ("device_name", "laptop")];
    let (_, started) = form(&server, "/oauth/device_authorization", &fields).await;
    let page = format!("/device?user_code={}", started["user_code"].as_str().unwrap());
    let text = server.request(Method::GET, &page).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("says it is laptop") && !text.contains("127.0.0.1"), "{text}");
}

#[tokio::test]
async fn pages_of_other_sites_cannot_start_logins() {
    let server = Server::start().await;
    let path = "/oauth/device_authorization";
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let request = server.bare(Method::POST, path).header(name, value).body("client_id=haft-cli");
        let (status, answer) = send(request).await;
        assert_eq!((status, &answer["error"]), (403, &json!("invalid_request")), "{name}: {answer}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_cannot_approve() {
    let server = Server::start().await;
    let cookie = cookie(&submit(&server, &format!("token={}", server.token)).await);
    let codes = start(&server).await;
    let form = format!("user_code={}&decision=approve", codes.user);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("x-other", "1"),
    ] {
        let request = browser().post(server.url("/device")).header("cookie", &cookie).header(name, value);
        assert_eq!(request.body(form.clone()).send().await.unwrap().status(), 403, "{name}: {value}");
    }
    // Without a login nobody approves.
    let request = browser().post(server.url("/device")).header("sec-fetch-site", "same-origin");
    assert_eq!(request.body(form).send().await.unwrap().status(), 401);
    assert_eq!(refused(&server, &codes.device).await, "authorization_pending");
}

#[tokio::test]
async fn invalid_requests_have_the_errors_of_oauth() {
    let server = Server::start().await;
    let grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    let client = ("client_id", "haft-cli");
    for (path, fields, expected) in [
        ("/oauth/device_authorization", &[("client_id", "other")][..], "invalid_client"),
        ("/oauth/device_authorization", &[], "invalid_client"),
        ("/oauth/token", &[("grant_type", grant_type), ("device_code", "x")], "invalid_client"),
        ("/oauth/token", &[client, ("grant_type", "password")], "unsupported_grant_type"),
        ("/oauth/token", &[client, ("grant_type", grant_type)], "invalid_request"),
        ("/oauth/token", &[client, ("grant_type", grant_type), ("device_code", "x")], "invalid_grant"),
    ] {
        let (status, answer) = form(&server, path, fields).await;
        assert_eq!((status, &answer["error"]), (400, &json!(expected)), "{path} {fields:?} {answer}");
        assert!(answer["error_description"].is_string(), "{answer}");
    }
    let long = "x".repeat(30_000);
    let large = [client, ("device_name", long.as_str())];
    assert_eq!(form(&server, "/oauth/device_authorization", &large).await.0, 413);
    let (status, answer) = send(server.bare(Method::GET, "/oauth/token")).await;
    assert_eq!((status, code(&answer)), (405, "method_not_allowed"));
}

#[tokio::test]
async fn wrong_codes_and_logins_of_an_address_are_limited() {
    let server = Server::start().await;
    let statuses = async |user_code: &str| {
        let request = server.request(Method::GET, &format!("/device?user_code={user_code}"));
        request.send().await.unwrap().status().as_u16()
    };
    for user_code in ["nonsense", "BCDF-GHJ"] {
        assert_eq!(statuses(user_code).await, 404, "{user_code}");
    }
    for _ in 0..20 {
        assert_eq!(statuses("BCDF-GHJK").await, 404);
    }
    let codes = start(&server).await;
    assert_eq!(statuses(&codes.user).await, 429, "not even the right one");
    let (_, other) = server.post("/api/tokens", json!({"name": "ann"})).await;
    let bearer = other["data"]["token"].as_str().unwrap();
    assert_eq!(decide_with_token(&server, bearer, &codes.user, "deny").await, 200, "others may go on");
    for _ in 1..60 {
        start(&server).await;
    }
    let (status, answer) = form(&server, "/oauth/device_authorization", &[("client_id", "haft-cli")]).await;
    assert_eq!((status, &answer["error"]), (429, &json!("slow_down")), "{answer}");
}
