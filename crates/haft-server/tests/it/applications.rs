//! Applications that people connect: haft as authorization server, from the first request of a hosted client to the end of
//! its access.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::State;
use haft_testkit::upstream::axum::http::HeaderMap;
use haft_testkit::upstream::axum::{Router, routing};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::login::{browser, cookie, submit};
use crate::{agents, postgres};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk-haft";
pub(crate) const CALLBACK: &str = "http://127.0.0.1:7777/callback";

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

fn encoded(fields: &[(&str, &str)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(fields);
    text.finish()
}

/// Sends a form to an endpoint.
async fn form(server: &Server, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    send(server.bare(Method::POST, path).body(encoded(fields))).await
}

/// A person with an open session.
pub(crate) struct Person {
    id: String,
    cookie: String,
}

impl Person {
    pub(crate) async fn invite(server: &Server, name: &str, role: &str) -> Self {
        let (status, answer) = server.post("/api/people", json!({"name": name, "role": role})).await;
        assert_eq!(status, 201, "{answer}");
        let url = answer["data"]["invitation"]["url"].as_str().unwrap();
        let response = submit(server, &format!("code={}", url.split_once("?invitation=").unwrap().1)).await;
        Self { id: answer["data"]["id"].as_str().unwrap().to_owned(), cookie: cookie(&response) }
    }

    fn request(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        let request = browser().request(method, server.url(path)).header("cookie", &self.cookie);
        request.header("sec-fetch-site", "same-origin")
    }

    async fn get(&self, server: &Server, path: &str) -> (u16, Value) {
        send(self.request(server, Method::GET, path)).await
    }
}

/// An application that has registered itself.
struct Client {
    id: String,
}

impl Client {
    async fn register(server: &Server) -> Self {
        let body = json!({
            "client_name": "Example <b>Chat</b>",
            "redirect_uris": [CALLBACK, "https://chat.example.com/callback"],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
        });
        let (status, answer) = server.post("/oauth/register", body).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(answer["client_secret"], json!(null));
        Self { id: answer["client_id"].as_str().unwrap().to_owned() }
    }

    fn query(&self, changes: &[(&str, &str)]) -> String {
        let challenge = challenge();
        let mut fields: Vec<(&str, &str)> = vec![
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", CALLBACK),
            ("state", "a&b"),
            ("scope", "haft:call"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        for (name, value) in changes {
            fields.retain(|(own, _)| own != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        encoded(&fields)
    }

    /// Exchanges a code.
    async fn exchange(&self, server: &Server, code: &str) -> (u16, Value) {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", self.id.as_str()),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", CALLBACK),
        ];
        form(server, "/oauth/token", &fields).await
    }

    async fn refresh(&self, server: &Server, token: &Value) -> (u16, Value) {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", self.id.as_str()),
            ("refresh_token", token.as_str().unwrap()),
        ];
        form(server, "/oauth/token", &fields).await
    }

    /// Connects the application: returns its tokens.
    async fn connect(&self, server: &Server, person: &Person) -> Value {
        let code = allow(server, person, &self.query(&[]), &[]).await;
        let (status, tokens) = self.exchange(server, &code["code"]).await;
        assert_eq!(status, 200, "{tokens}");
        tokens
    }
}

/// Creates an application and connects it in a session; returns their ids.
pub(crate) async fn connect(server: &Server, cookie: &str, name: &str) -> (String, String) {
    let new = json!({"name": name, "redirect_uris": [CALLBACK]});
    let (status, created) = server.post("/api/application-clients", new).await;
    assert_eq!(status, 201, "{created}");
    let client = Client { id: created["data"]["client_id"].as_str().unwrap().to_owned() };
    let person = Person { id: String::new(), cookie: cookie.to_owned() };
    client.connect(server, &person).await;
    let (_, list) = server.get("/api/applications").await;
    (client.id, list["data"]["applications"][0]["id"].as_str().unwrap().to_owned())
}

/// Returns the value of a hidden field of a page.
fn hidden(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let rest = page.split_once(&start).unwrap_or_else(|| panic!("no `{name}`: {page}")).1;
    unescape(rest.split_once('"').unwrap().0)
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

async fn consent_page(server: &Server, person: &Person, query: &str) -> Response {
    person.request(server, Method::GET, &format!("/oauth/authorize?{query}")).send().await.unwrap()
}

/// Opens the page and sends its form with some fields changed.
async fn decide(server: &Server, person: &Person, query: &str, changes: &[(&str, &str)]) -> Response {
    let page = consent_page(server, person, query).await.text().await.unwrap();
    let (request, token) = (hidden(&page, "request"), hidden(&page, "form_token"));
    let mut fields = vec![
        ("request", request.as_str()),
        ("form_token", token.as_str()),
        ("role", "caller"),
        ("tools", "all"),
        ("expires", "never"),
        ("decision", "allow"),
    ];
    for (name, value) in changes {
        if *name != "bundle" {
            fields.retain(|(own, _)| own != name);
        }
        fields.push((name, value));
    }
    person.request(server, Method::POST, "/oauth/authorize").body(encoded(&fields)).send().await.unwrap()
}

/// Allows what a client asks for that somebody opens in a browser; returns the address to which that leads.
pub(crate) async fn open_in_browser(server: &Server, person: &Person, url: &str) -> String {
    let query = url.split_once('?').unwrap().1;
    target(decide(server, person, query, &[]).await).await
}

/// Returns the parameters of the answer to which a page leads.
async fn answer(response: Response) -> HashMap<String, String> {
    let url = url::Url::parse(&target(response).await).unwrap();
    url.query_pairs().into_owned().collect()
}

/// Returns the address to which a page leads.
async fn target(response: Response) -> String {
    assert_eq!(response.status(), 200);
    let page = response.text().await.unwrap();
    let target = page.split_once("content=\"0; url=").unwrap_or_else(|| panic!("{page}")).1;
    unescape(target.split_once('"').unwrap().0)
}

async fn allow(
    server: &Server,
    person: &Person,
    query: &str,
    changes: &[(&str, &str)],
) -> HashMap<String, String> {
    answer(decide(server, person, query, changes).await).await
}

async fn who(server: &Server, token: &Value) -> (u16, Value) {
    let (status, answer) =
        send(server.bare(Method::GET, "/api/session").bearer_auth(token.as_str().unwrap())).await;
    (status, answer["data"].clone())
}

#[tokio::test]
async fn a_person_connects_an_application() {
    let server = Server::start().await;
    server.create(function_tool("worker", "double")).await;
    let ann = Person::invite(&server, "Ann", "editor").await;
    let client = Client::register(&server).await;
    let page = consent_page(&server, &ann, &client.query(&[])).await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"), "{policy}");
    let text = page.text().await.unwrap();
    for part in [
        "Example &lt;b&gt;Chat&lt;/b&gt;",
        "name not verified",
        "a program on this computer",
        "<dd>Ann</dd>",
        "<dd>default</dd>",
        "worker",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // It asked for less than what Ann may do.
    assert!(!text.contains("value=\"editor\"") && !text.contains("<script"), "{text}");

    let answer = allow(&server, &ann, &client.query(&[]), &[]).await;
    assert_eq!((&*answer["state"], &*answer["iss"]), ("a&b", &*server.url("")));
    let (status, tokens) = client.exchange(&server, &answer["code"]).await;
    assert_eq!((status, &tokens["token_type"], &tokens["expires_in"]), (200, &json!("Bearer"), &json!(3600)));
    assert_eq!(tokens["scope"], "haft:read haft:call offline_access");
    let (status, session) = who(&server, &tokens["access_token"]).await;
    assert_eq!((status, &session["role"], &session["name"]), (200, &json!("caller"), &json!("Ann")));
    assert_eq!(session["actor"]["id"], json!(ann.id));
    let bearer = tokens["access_token"].as_str().unwrap();
    let call = server.bare(Method::POST, "/api/tools/invoke/worker").bearer_auth(bearer);
    let (status, called) = send(call.body(r#"{"args":{"n":4}}"#)).await;
    assert!(status == 200 || status == 404, "{called}");

    let (_, list) = ann.get(&server, "/api/applications").await;
    let own = &list["data"]["applications"][0];
    assert_eq!(
        (&list["data"]["total"], &own["name"], &own["destination"], &own["role"], &own["actor"]["name"]),
        (
            &json!(1),
            &json!("Example <b>Chat</b>"),
            &json!("a program on this computer"),
            &json!("caller"),
            &json!("Ann")
        )
    );
    let (_, ordinary) = ann.get(&server, "/api/tokens").await;
    assert_eq!(ordinary["data"]["total"], 0, "it is not one of Ann's tokens");
    let id = own["id"].as_str().unwrap();
    let rotate = server.post(&format!("/api/tokens/{id}/rotate"), json!({})).await;
    assert_eq!((rotate.0, code(&rotate.1)), (404, "not_found"));

    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    for secret in [answer["code"].as_str(), bearer, tokens["refresh_token"].as_str().unwrap()] {
        assert!(!database.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
    let (_, audit) = server.get("/api/audit?page_size=50").await;
    let actions: Vec<_> =
        audit["data"]["records"].as_array().unwrap().iter().map(|record| &record["action"]).collect();
    for action in ["application.allow", "application.connect"] {
        assert!(actions.contains(&&json!(action)), "{actions:?}");
    }
}

#[tokio::test]
async fn a_person_reduces_what_an_application_gets() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    server.create(function_tool("other", "echo")).await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    let query = client.query(&[("scope", "haft:admin offline_access openid")]);
    for (changes, expected) in [
        (&[("role", "admin")][..], 400),
        (&[("role", "")], 400),
        (&[("tools", "some")], 400),
        (&[("tools", "some"), ("patterns", "a b:c:d")], 400),
        (&[("expires", "soon")], 400),
        (&[("decision", "maybe")], 400),
        (&[("form_token", "x")], 403),
        (&[("request", "client_id=other")], 403),
    ] {
        let response = decide(&server, &ann, &query, changes).await;
        assert_eq!(response.status(), expected, "{changes:?}");
        let text = response.text().await.unwrap();
        assert!(text.contains("role=\"alert\"") && !text.contains("http-equiv"), "{changes:?} {text}");
    }
    let changes = [
        ("role", "viewer"),
        ("tools", "some"),
        ("bundle", "user-created"),
        ("patterns", "x, tag:safe"),
        ("expires", "30"),
    ];
    let answer = allow(&server, &ann, &query, &changes).await;
    let (_, tokens) = client.exchange(&server, &answer["code"]).await;
    assert_eq!(tokens["scope"], "haft:read offline_access");
    let (_, session) = who(&server, &tokens["access_token"]).await;
    assert_eq!(
        (&session["role"], &session["tools"]),
        (&json!("viewer"), &json!(["user-created:*", "x", "tag:safe"]))
    );
    // The next time, the page proposes the same.
    let text = consent_page(&server, &ann, &query).await.text().await.unwrap();
    assert!(
        text.contains(r#"value="user-created" checked"#) && text.contains(r#"value="x, tag:safe""#),
        "{text}"
    );
    assert!(text.contains(r#"<option value="30" selected>"#), "{text}");
}

#[tokio::test]
async fn a_denied_request_gives_no_code() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    let denied = allow(&server, &ann, &client.query(&[]), &[("decision", "deny")]).await;
    assert_eq!((&*denied["error"], &*denied["state"]), ("access_denied", "a&b"));
    assert!(!denied.contains_key("code"));
}

#[tokio::test]
async fn nobody_is_led_to_an_address_that_is_not_registered() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    for changes in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "https://chat.example.com/callback/"),
        ("redirect_uri", "https://chat.example.com/Callback"),
        ("redirect_uri", "https://chat.example.com:8443/callback"),
        ("redirect_uri", "https://user@chat.example.com/callback"),
        ("redirect_uri", "https://chat.example.com@evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:7777/other"),
        ("redirect_uri", "http://127.0.0.1.evil.example:7777/callback"),
        ("redirect_uri", "http://localhost:7777/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
        ("client_id", "haft_client_unknown"),
        ("client_id", ""),
        ("client_id", "http://192.168.0.1/client.json"),
        ("client_id", "https://169.254.169.254/client.json"),
    ] {
        let response = consent_page(&server, &ann, &client.query(&[changes])).await;
        let status = response.status();
        let location = response.headers().get("location").cloned();
        let text = response.text().await.unwrap();
        assert_eq!((status.as_u16(), location), (400, None), "{changes:?} {text}");
        assert!(text.contains("role=\"alert\"") && !text.contains("http-equiv"), "{changes:?} {text}");
    }
    // A program on this computer listens on any port.
    let query = client.query(&[("redirect_uri", "http://127.0.0.1:51234/callback")]);
    assert_eq!(consent_page(&server, &ann, &query).await.status(), 200);
    let twice = format!("{}&client_id=x", client.query(&[]));
    assert_eq!(consent_page(&server, &ann, &twice).await.status(), 400);
}

#[tokio::test]
async fn other_errors_of_a_request_go_to_the_application() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    let mcp = server.url("/mcp");
    for (changes, expected) in [
        (("response_type", "token"), Some("unsupported_response_type")),
        (("code_challenge", ""), Some("invalid_request")),
        (("code_challenge", "short"), Some("invalid_request")),
        (("code_challenge_method", "plain"), Some("invalid_request")),
        (("resource", "https://other.example/mcp"), Some("invalid_target")),
        (("prompt", "none"), Some("consent_required")),
        (("resource", &*mcp), None),
        (("prompt", "consent"), None),
    ] {
        let response = consent_page(&server, &ann, &client.query(&[changes])).await;
        let location = response.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        let error = location.map(|location| {
            assert!(location.starts_with(&format!("{CALLBACK}?error=")), "{location}");
            let url = url::Url::parse(&location).unwrap();
            let parameters: HashMap<_, _> = url.query_pairs().into_owned().collect();
            assert_eq!((&*parameters["state"], &*parameters["iss"]), ("a&b", &*server.url("")));
            parameters["error"].clone()
        });
        assert_eq!(error.as_deref(), expected, "{changes:?}");
    }
}

#[tokio::test]
async fn the_page_needs_a_session_and_comes_back_after_the_login() {
    let server = Server::start().await;
    let client = Client::register(&server).await;
    let address = server.url(&format!("/oauth/authorize?{}", client.query(&[])));
    // The cookie is not sent with a request from another site, so the page repeats the request once.
    let first = browser().get(&address).header("sec-fetch-site", "cross-site").send().await.unwrap();
    assert_eq!(first.status(), 200);
    let text = first.text().await.unwrap();
    let again = text.split_once("content=\"0; url=").unwrap().1.split_once('"').unwrap().0;
    let second = browser().get(server.url(&unescape(again))).send().await.unwrap();
    assert_eq!(second.status(), 303);
    let login = second.headers()["location"].to_str().unwrap().to_owned();
    let next = login.strip_prefix("/login?next=").unwrap();
    let logged_in = submit(&server, &format!("token={}&next={next}", server.token)).await;
    let back = logged_in.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(server.url(&back), address);
    let local = Person { id: String::new(), cookie: cookie(&logged_in) };
    let tokens = client.connect(&server, &local).await;
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 200);
    let unknown = client.query(&[("client_id", "haft_client_unknown")]);
    let stale = browser().get(server.url(&format!("/oauth/authorize?{unknown}"))).send().await.unwrap();
    assert_eq!(stale.status(), 400, "clients register again");
    // A token is no person who could consent.
    let page = server.request(Method::GET, &back).header("sec-fetch-site", "none").send().await.unwrap();
    let led_to_login = page.url().path() == "/login";
    assert!(led_to_login, "{}", page.url());
}

#[tokio::test]
async fn the_form_is_not_clicked_by_another_origin() {
    let server = Server::start().await;
    let (ann, bob) =
        (Person::invite(&server, "Ann", "caller").await, Person::invite(&server, "Bob", "caller").await);
    let client = Client::register(&server).await;
    let query = client.query(&[]);
    let page = consent_page(&server, &ann, &query).await.text().await.unwrap();
    let (request, token) = (hidden(&page, "request"), hidden(&page, "form_token"));
    let fields = [
        ("request", request.as_str()),
        ("form_token", token.as_str()),
        ("role", "caller"),
        ("tools", "all"),
        ("decision", "allow"),
    ];
    let post = |person: &Person, name: &str, value: &str| {
        let request = browser().post(server.url("/oauth/authorize")).header("cookie", &person.cookie);
        request.header(name, value).body(encoded(&fields)).send()
    };
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("x-other", "1"),
    ] {
        assert_eq!(post(&ann, name, value).await.unwrap().status(), 403, "{name}: {value}");
    }
    // The form of one person does not work for another one.
    assert_eq!(post(&bob, "sec-fetch-site", "same-origin").await.unwrap().status(), 403);
    assert_eq!(post(&ann, "sec-fetch-site", "same-origin").await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_code_works_once_for_its_application() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let (client, other) = (Client::register(&server).await, Client::register(&server).await);
    let answer = allow(&server, &ann, &client.query(&[]), &[]).await;
    let code = answer["code"].as_str();
    let good = [
        ("grant_type", "authorization_code"),
        ("client_id", client.id.as_str()),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", CALLBACK),
    ];
    for (name, value, expected) in [
        ("client_id", other.id.as_str(), "invalid_grant"),
        ("client_id", "haft_client_unknown", "invalid_client"),
        ("client_id", "", "invalid_client"),
        ("code", "wrong", "invalid_grant"),
        ("code", "", "invalid_request"),
        ("code_verifier", "wrong", "invalid_grant"),
        ("code_verifier", "", "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1:7778/callback", "invalid_grant"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("grant_type", "", "invalid_request"),
    ] {
        let fields: Vec<_> =
            good.iter().map(|(own, old)| if *own == name { (*own, value) } else { (*own, *old) }).collect();
        let (status, answer) = form(&server, "/oauth/token", &fields).await;
        assert_eq!(answer["error"], json!(expected), "{name}={value} {status} {answer}");
    }
    let wrong_target = [good.as_slice(), &[("resource", "https://other.example")]].concat();
    assert_eq!(form(&server, "/oauth/token", &wrong_target).await.1["error"], "invalid_target");
    let (status, tokens) = client.exchange(&server, code).await;
    assert_eq!((status, who(&server, &tokens["access_token"]).await.0), (200, 200));
    // Somebody else has the code, too: the first use is undone.
    assert_eq!(client.exchange(&server, code).await.1["error"], "invalid_grant");
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 401);
    assert_eq!(client.refresh(&server, &tokens["refresh_token"]).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn a_reused_refresh_token_ends_the_grant_but_a_repeated_request_does_not() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    let first = client.connect(&server, &ann).await;
    let (one, other) = tokio::join!(
        client.refresh(&server, &first["refresh_token"]),
        client.refresh(&server, &first["refresh_token"])
    );
    assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
    assert_eq!(one.1["refresh_token"], other.1["refresh_token"]);
    assert_ne!(one.1["refresh_token"], first["refresh_token"]);
    let (status, third) = client.refresh(&server, &one.1["refresh_token"]).await;
    assert_eq!(status, 200, "{third}");
    assert_eq!(who(&server, &third["access_token"]).await.0, 200);
    // More than is allowed, another application, another server.
    let token = third["refresh_token"].as_str().unwrap();
    let good = [("grant_type", "refresh_token"), ("client_id", client.id.as_str()), ("refresh_token", token)];
    for (field, expected) in [
        (("scope", "haft:admin"), "invalid_scope"),
        (("resource", "https://other.example"), "invalid_target"),
    ] {
        let fields = [good.as_slice(), &[field]].concat();
        assert_eq!(form(&server, "/oauth/token", &fields).await.1["error"], expected);
    }
    let other_client = Client::register(&server).await;
    assert_eq!(other_client.refresh(&server, &third["refresh_token"]).await.0, 401);
    let invented = json!(token.replace("haft_rt_A", "haft_rt_B"));
    assert_eq!(client.refresh(&server, &json!(format!("{}x", invented.as_str().unwrap()))).await.0, 400);
    assert_eq!(who(&server, &third["access_token"]).await.0, 200, "nobody can invent an old one");
    // The first one was replaced twice.
    assert_eq!(client.refresh(&server, &first["refresh_token"]).await.1["error"], "invalid_grant");
    assert_eq!(who(&server, &third["access_token"]).await.0, 401);
    assert_eq!(client.refresh(&server, &third["refresh_token"]).await.1["error"], "invalid_grant");
    let (_, audit) = server.get("/api/audit?action=application.refresh_token_reused").await;
    assert_eq!(audit["data"]["records"][0]["actor"], "Ann", "{audit}");
}

#[tokio::test]
async fn access_ends_with_a_disconnection_also_in_the_middle_of_a_stream() {
    let server = Server::start().await;
    let (ann, bob) =
        (Person::invite(&server, "Ann", "caller").await, Person::invite(&server, "Bob", "caller").await);
    let client = Client::register(&server).await;
    let (tokens, kept) = (client.connect(&server, &ann).await, client.connect(&server, &bob).await);
    let bearer = tokens["access_token"].as_str().unwrap();
    let stream = server.bare(Method::GET, "/api/events").bearer_auth(bearer).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let (_, list) = ann.get(&server, "/api/applications").await;
    assert_eq!(list["data"]["total"], 1, "Ann does not see what Bob has connected");
    let id = list["data"]["applications"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/applications/{id}");
    let of_bob = send(bob.request(&server, Method::DELETE, &path)).await;
    assert_eq!((of_bob.0, code(&of_bob.1)), (404, "not_found"));
    assert_eq!(send(ann.request(&server, Method::DELETE, &path)).await.0, 200);
    // The stream ends by itself.
    stream.bytes().await.unwrap();
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 401);
    assert_eq!(client.refresh(&server, &tokens["refresh_token"]).await.0, 400);
    assert_eq!(who(&server, &kept["access_token"]).await.0, 200);
    // An admin sees all and ends any.
    let (_, all) = server.get("/api/applications").await;
    assert_eq!(all["data"]["total"], 1);
    server.patch(&format!("/api/people/{}", bob.id), json!({"status": "disabled"})).await;
    assert_eq!(who(&server, &kept["access_token"]).await.0, 401);
    assert_eq!(client.refresh(&server, &kept["refresh_token"]).await.0, 400);
}

#[tokio::test]
async fn an_application_revokes_and_introspects_its_own_tokens() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let client = Client::register(&server).await;
    let tokens = client.connect(&server, &ann).await;
    let access = tokens["access_token"].as_str().unwrap();
    let new = json!({"name": "Intranet", "redirect_uris": [CALLBACK], "confidential": true});
    let (status, created) = server.post("/api/application-clients", new).await;
    assert_eq!(status, 201, "{created}");
    let secret = created["data"]["client_secret"].as_str().unwrap().to_owned();
    let own = Client { id: created["data"]["client_id"].as_str().unwrap().to_owned() };
    let code = allow(&server, &ann, &own.query(&[]), &[]).await["code"].clone();
    assert_eq!(own.exchange(&server, &code).await.0, 401, "it has a secret");
    let fields = [("grant_type", "authorization_code"), ("code", code.as_str()), ("code_verifier", VERIFIER)];
    let request = server.bare(Method::POST, "/oauth/token").basic_auth(&own.id, Some(&secret));
    let (status, of_own) = send(request.body(encoded(&fields))).await;
    assert_eq!(status, 200, "{of_own}");

    let introspect = async |token: &str, secret: &str| {
        let request = server.bare(Method::POST, "/oauth/introspect").basic_auth(&own.id, Some(secret));
        send(request.body(encoded(&[("token", token)]))).await
    };
    let (status, described) = introspect(of_own["access_token"].as_str().unwrap(), &secret).await;
    assert_eq!(
        (status, &described["active"], &described["scope"], &described["sub"]),
        (200, &json!(true), &json!("haft:read haft:call offline_access"), &json!(ann.id))
    );
    assert_eq!(introspect(of_own["refresh_token"].as_str().unwrap(), &secret).await.1["active"], true);
    for other in [access, "haft_at_x", &server.token] {
        assert_eq!(introspect(other, &secret).await.1, json!({"active": false}), "{other}");
    }
    assert_eq!(introspect(access, "wrong").await.0, 401);
    let fields = [("token", access), ("client_id", client.id.as_str())];
    assert_eq!(form(&server, "/oauth/introspect", &fields).await.0, 401, "it has no secret");

    assert_eq!(
        form(&server, "/oauth/revoke", &[("token", access), ("client_id", own.id.as_str())]).await.0,
        401
    );
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 200);
    assert_eq!(form(&server, "/oauth/revoke", &fields).await.0, 200);
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 401);
    assert_eq!(form(&server, "/oauth/revoke", &[("token", "unknown")]).await.0, 200);
    // Deleting an application disconnects it from everybody.
    let path = format!("/api/application-clients/{}", own.id);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(who(&server, &of_own["access_token"]).await.0, 401);
}

#[tokio::test]
async fn an_application_creates_neither_tokens_nor_logins() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "admin").await;
    let client = Client::register(&server).await;
    let query = client.query(&[("scope", "haft:admin")]);
    let code = allow(&server, &ann, &query, &[("role", "admin")]).await["code"].clone();
    let (_, tokens) = client.exchange(&server, &code).await;
    let bearer = tokens["access_token"].as_str().unwrap();
    let post = async |path: &str, body: Value| {
        send(server.bare(Method::POST, path).bearer_auth(bearer).body(body.to_string())).await
    };
    assert_eq!(post("/api/tokens", json!({"name": "x", "owner": "me"})).await.0, 403);
    assert_eq!(post("/api/login-links", json!({})).await.0, 403);
    assert_eq!(submit(&server, &format!("token={bearer}")).await.status(), 401);
    assert_eq!(
        post("/api/application-clients", json!({"name": "x", "redirect_uris": [CALLBACK]})).await.0,
        201
    );
}

#[tokio::test]
async fn a_role_that_is_too_low_says_which_scope_to_ask_for() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let ann = Person::invite(&server, "Ann", "editor").await;
    let client = Client::register(&server).await;
    let code = allow(&server, &ann, &client.query(&[]), &[("role", "viewer")]).await["code"].clone();
    let (_, tokens) = client.exchange(&server, &code).await;
    let bearer = tokens["access_token"].as_str().unwrap();
    let challenge = async |method: Method, path: &str, body: Value| {
        let request = server.bare(method, path).bearer_auth(bearer).body(body.to_string());
        let request = request.header("accept", "application/json, text/event-stream");
        let response = request.header("content-type", "application/json").send().await.unwrap();
        let header =
            response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), header)
    };
    let expected = |scope: &str, path: &str| {
        let metadata = server.url(&format!("/.well-known/oauth-protected-resource{path}"));
        Some(format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
        ))
    };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "worker", "arguments": {}}});
    assert_eq!(challenge(Method::POST, "/mcp", call).await, (403, expected("haft:read haft:call", "/mcp")));
    agents::create(&server, agents::scripted("helper", &[], agents::DOUBLE)).await;
    let chat = json!({"model": "helper", "messages": [{"role": "user", "content": "hi"}]});
    let chat = challenge(Method::POST, "/v1/chat/completions", chat).await;
    assert_eq!(chat, (403, expected("haft:read haft:call", "")));
    let edit = challenge(Method::POST, "/api/tools", function_tool("new", "echo")).await;
    assert_eq!(edit, (403, expected("haft:read haft:call haft:edit", "")));
    // Ann may not do it herself.
    assert_eq!(challenge(Method::GET, "/api/people", json!({})).await, (403, None));
}

/// A host that describes an application.
#[derive(Default)]
struct Host {
    document: Mutex<String>,
}

async fn document(State(host): State<Arc<Host>>) -> (HeaderMap, String) {
    (HeaderMap::new(), host.document.lock().unwrap().clone())
}

async fn described(uris: Value) -> (Upstream, Arc<Host>, Client) {
    let host: Arc<Host> = Arc::default();
    let router = Router::new().route("/client.json", routing::get(document)).with_state(Arc::clone(&host));
    let upstream = Upstream::serve(router).await.unwrap();
    let id = format!("http://{}/client.json", upstream.address);
    let document = json!({"client_id": id, "client_name": "Described", "redirect_uris": uris});
    *host.document.lock().unwrap() = document.to_string();
    (upstream, host, Client { id })
}

#[tokio::test]
async fn an_application_describes_itself_at_its_own_host() {
    let server = Server::start().await;
    let ann = Person::invite(&server, "Ann", "caller").await;
    let (upstream, host, client) = described(json!([CALLBACK])).await;
    let page = consent_page(&server, &ann, &client.query(&[])).await.text().await.unwrap();
    assert!(page.contains("<strong>127.0.0.1</strong>") && !page.contains("not verified"), "{page}");
    let tokens = client.connect(&server, &ann).await;
    assert_eq!(who(&server, &tokens["access_token"]).await.0, 200);
    assert_eq!(client.refresh(&server, &tokens["refresh_token"]).await.0, 200);
    assert_eq!(upstream.seen().len(), 1, "it is kept");
    let (_, list) = ann.get(&server, "/api/applications").await;
    assert_eq!(list["data"]["applications"][0]["client_host"], "127.0.0.1");
    // Invalid descriptions, each at an address of its own, so that none is kept.
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(100_000));
    for (text, expected) in [
        (long.as_str(), "size limit (65536 bytes) exceeded"),
        ("<html>", "not the metadata of a client"),
        (r#"{"client_id":"https://other.example/x","redirect_uris":[]}"#, "not the URL of the document"),
    ] {
        let server = Server::start().await;
        let ann = Person::invite(&server, "Ann", "caller").await;
        text.clone_into(&mut host.document.lock().unwrap());
        let response = consent_page(&server, &ann, &client.query(&[])).await;
        let (status, page) = (response.status(), response.text().await.unwrap());
        assert!(status == 400 && page.contains(expected), "{expected}: {page}");
    }
    let strict = Server::start_with(|settings| settings.egress.private_hosts = Vec::new()).await;
    let ann = Person::invite(&strict, "Ann", "caller").await;
    assert_eq!(consent_page(&strict, &ann, &client.query(&[])).await.status(), 400);
}

#[tokio::test]
async fn every_node_answers_for_every_application() {
    let database = postgres::database().await;
    let (one, other) = (postgres::on(&database.url).await, postgres::on(&database.url).await);
    let ann = Person::invite(&one, "Ann", "caller").await;
    let client = Client::register(&other).await;
    let code = allow(&one, &ann, &client.query(&[]), &[]).await["code"].clone();
    let (status, tokens) = client.exchange(&other, &code).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(who(&one, &tokens["access_token"]).await.0, 200, "at once, on the other node");
    // An honest client that sends the same refresh token to both nodes at the same moment.
    let (first, second) = tokio::join!(
        client.refresh(&one, &tokens["refresh_token"]),
        client.refresh(&other, &tokens["refresh_token"])
    );
    assert_eq!((first.0, second.0), (200, 200), "{first:?} {second:?}");
    assert_eq!(first.1["refresh_token"], second.1["refresh_token"]);
    assert_eq!(who(&other, &first.1["access_token"]).await.0, 200);
    let (_, list) = ann.get(&one, "/api/applications").await;
    let id = list["data"]["applications"][0]["id"].as_str().unwrap();
    assert_eq!(send(ann.request(&one, Method::DELETE, &format!("/api/applications/{id}"))).await.0, 200);
    poll(async || (who(&other, &first.1["access_token"]).await.0 == 401).then_some(())).await;

    // A description that changes between the page and the exchange, which another node reads.
    let (_upstream, host, described) = described(json!([CALLBACK])).await;
    let code = allow(&one, &ann, &described.query(&[]), &[]).await["code"].clone();
    let changed = host.document.lock().unwrap().replace(CALLBACK, "https://moved.example/cb");
    *host.document.lock().unwrap() = changed;
    assert_eq!(described.exchange(&other, &code).await.1["error"], "invalid_grant");
}
