//! Browser logins: the page, links, sessions, and requests of other sites.

use reqwest::{Method, Response, redirect};
use serde_json::{Value, json};

use crate::harness::{Server, code, send};

/// A browser that does not follow redirects.
pub(crate) fn browser() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).build().unwrap()
}

/// Returns the session of a response to a login.
pub(crate) fn cookie(response: &Response) -> String {
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

pub(crate) async fn submit(server: &Server, form: &str) -> Response {
    let request = browser().post(server.url("/login")).body(form.to_owned());
    let origin = format!("http://{}", server.addr);
    let form = request.header("content-type", "application/x-www-form-urlencoded").header("origin", origin);
    form.header("sec-fetch-site", "same-origin").send().await.unwrap()
}

async fn session(server: &Server, cookie: &str) -> (u16, Value) {
    send(server.bare(Method::GET, "/api/session").header("cookie", cookie)).await
}

#[tokio::test]
async fn a_token_opens_a_session_without_scripts() {
    let server = Server::start().await;
    let page = browser().get(server.url("/login")).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = page.text().await.unwrap();
    assert!(text.contains("<form method=\"post\" action=\"/login\">") && !text.contains("<script"), "{text}");

    let response = submit(&server, &format!("token={}", server.token)).await;
    assert_eq!((response.status().as_u16(), &response.headers()["location"]), (303, &"/".parse().unwrap()));
    let set = response.headers()["set-cookie"].to_str().unwrap();
    assert!(
        set.contains("; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200") && !set.contains("Secure"),
        "{set}"
    );
    let cookie = cookie(&response);
    let (status, who) = session(&server, &cookie).await;
    assert_eq!(status, 200, "{who}");
    let who = &who["data"];
    assert_eq!(
        (&who["tenant"], &who["role"], &who["platform"]),
        (&json!("default"), &json!("admin"), &json!(true))
    );
    assert!(who["is_session"] == true && who["expires_at"].is_string(), "{who}");
    let value = cookie.split_once('=').unwrap().1.as_bytes();
    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    assert!(!database.windows(value.len()).any(|part| part == value), "only the hash is stored");

    for (form, expected) in
        [("token=wrong", 401), ("token=", 400), ("", 400), ("code=..%2F", 401), ("code=unknown", 401)]
    {
        let response = submit(&server, form).await;
        assert_eq!(response.status(), expected, "{form}");
        assert!(response.headers().get("set-cookie").is_none());
        assert!(response.text().await.unwrap().contains("role=\"alert\""));
    }
    let large = submit(&server, &format!("token={}", "x".repeat(20_000))).await;
    assert_eq!(large.status(), 413);
}

#[tokio::test]
async fn a_login_leads_back_to_the_page_that_needed_it() {
    let server = Server::start().await;
    let page =
        browser().get(server.url("/login?next=/ui/calls?status=error%26q=%3Cb%3E")).send().await.unwrap();
    let text = page.text().await.unwrap();
    assert!(text.contains(r#"name="next" value="/ui/calls?status=error&amp;q=&lt;b&gt;""#), "{text}");
    let outside = browser().get(server.url("/login?next=https://evil.test/ui/")).send().await.unwrap();
    assert!(!outside.text().await.unwrap().contains("name=\"next\""));
    for (next, expected) in [
        ("%2Fui%2Ftools%3Fq%3Da", "/ui/tools?q=a"),
        ("%2F%2Fevil.test%2Fui%2F", "/"),
        ("%2Fui%2F..%2Fapi%2Fkey", "/"),
        ("javascript:alert(1)", "/"),
    ] {
        let response = submit(&server, &format!("token={}&next={next}", server.token)).await;
        assert_eq!(response.status(), 303, "{next}");
        assert_eq!(response.headers()["location"], expected, "{next}");
    }
    // A wrong token keeps the page in the form.
    let text = submit(&server, "token=wrong&next=/ui/tools").await.text().await.unwrap();
    assert!(text.contains("name=\"next\" value=\"/ui/tools\""), "{text}");
    let (_, link) = server.post("/api/login-links", json!({})).await;
    let url = format!("{}&next=/ui/tools", link["data"]["url"].as_str().unwrap());
    let response = browser().get(url).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (303, &"/ui/tools".parse().unwrap())
    );
}

#[tokio::test]
async fn a_login_link_opens_one_session() {
    let server = Server::start().await;
    let (status, link) = server.post("/api/login-links", json!({})).await;
    assert_eq!(status, 201, "{link}");
    let url = link["data"]["url"].as_str().unwrap();
    assert!(url.starts_with(&server.url("/login?code=")), "{url}");
    // Neither previews nor pages of other sites use it up.
    for (name, value) in [("sec-purpose", "prefetch"), ("sec-fetch-site", "cross-site")] {
        let response = browser().get(url).header(name, value).send().await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
        assert!(response.text().await.unwrap().contains("type=\"hidden\" name=\"code\""));
    }
    assert_eq!(browser().head(url).send().await.unwrap().status(), 200);
    let first = browser().get(url).send().await.unwrap();
    assert_eq!(first.status(), 303);
    let cookie = cookie(&first);
    assert_eq!(session(&server, &cookie).await.0, 200);
    assert_eq!(browser().get(url).send().await.unwrap().status(), 401);
    let code = url.split_once('=').unwrap().1;
    assert_eq!(submit(&server, &format!("code={code}")).await.status(), 401);
    // A session cannot prolong itself.
    let request = server.bare(Method::POST, "/api/login-links").header("cookie", &cookie);
    assert_eq!(send(request.header("sec-fetch-site", "same-origin")).await.0, 403);
    // A link whose token was revoked.
    let (_, token) = server.post("/api/tokens", json!({"name": "ci"})).await;
    let bearer = token["data"]["token"].as_str().unwrap();
    let (_, link) = send(server.bare(Method::POST, "/api/login-links").bearer_auth(bearer)).await;
    server.delete(&format!("/api/tokens/{}", token["data"]["id"].as_str().unwrap())).await;
    let late = browser().get(link["data"]["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(late.status(), 401);
}

#[tokio::test]
async fn requests_of_other_sites_are_rejected() {
    let server = Server::start().await;
    let cookie = cookie(&submit(&server, &format!("token={}", server.token)).await);
    let own = format!("http://{}", server.addr);
    let other_port = "http://127.0.0.1:1".to_owned();
    let check = async |headers: &[(&str, &str)], expected: u16| {
        let mut request = server.bare(Method::PUT, "/api/credentials/KEY").header("cookie", &cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, answer) = send(request.body(r#"{"value":"v"}"#)).await;
        assert_eq!(status, expected, "{headers:?} {answer}");
    };
    check(&[], 403).await;
    check(&[("x-haft-session", "1")], 200).await;
    check(&[("sec-fetch-site", "same-origin")], 200).await;
    check(&[("sec-fetch-site", "same-origin"), ("origin", &own)], 200).await;
    check(&[("origin", &own)], 200).await;
    for site in ["cross-site", "same-site", "odd"] {
        check(&[("sec-fetch-site", site), ("x-haft-session", "1")], 403).await;
        check(&[("sec-fetch-site", site), ("origin", &own)], 403).await;
    }
    for origin in ["https://evil.example", "null", &other_port] {
        check(&[("origin", origin), ("x-haft-session", "1")], 403).await;
    }
    // Reading is allowed: the browser hides the response from pages of other sites.
    let read = server.bare(Method::GET, "/api/session").header("cookie", &cookie);
    assert_eq!(send(read.header("sec-fetch-site", "cross-site")).await.0, 200);
    // A token in the header is no cookie: nothing sends it unasked.
    let request = server.request(Method::PUT, "/api/credentials/KEY").header("cookie", "haft_session=x");
    assert_eq!(send(request.body(r#"{"value":"v"}"#)).await.0, 200);
    // MCP clients use tokens.
    let mcp = server.bare(Method::POST, "/mcp").header("cookie", &cookie).header("x-haft-session", "1");
    assert_eq!(mcp.body("{}").send().await.unwrap().status(), 401);
    // The login form, too.
    let form = browser().post(server.url("/login")).header("origin", "https://evil.example");
    let response = form.body(format!("token={}", server.token)).send().await.unwrap();
    assert_eq!(response.status(), 403);
}

#[tokio::test]
async fn a_session_ends_with_logout_revocation_rotation_and_time() {
    let server =
        Server::start_with(|settings| settings.server.session_lifetime = std::time::Duration::from_hours(1))
            .await;
    let mut ended = Vec::new();
    for end in ["logout", "revoke", "rotate", "disable"] {
        crate::tenants::tenant(&server, end).await;
        let (_, token) = server.post("/api/tokens", json!({"name": end, "tenant": end})).await;
        let value = token["data"]["token"].as_str().unwrap();
        let cookie = cookie(&submit(&server, &format!("token={value}")).await);
        assert_eq!(session(&server, &cookie).await.0, 200);
        let path = format!("/api/tokens/{}", token["data"]["id"].as_str().unwrap());
        match end {
            "logout" => {
                let post = || browser().post(server.url("/logout")).header("cookie", &cookie);
                let foreign = post().header("sec-fetch-site", "cross-site").send().await.unwrap();
                assert_eq!((foreign.status().as_u16(), session(&server, &cookie).await.0), (403, 200));
                let response = post().header("sec-fetch-site", "same-origin").send().await.unwrap();
                assert_eq!(response.status(), 303);
                assert!(response.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
            }
            "revoke" => drop(server.delete(&path).await),
            "rotate" => drop(server.post(&format!("{path}/rotate"), json!({})).await),
            _ => drop(server.patch("/api/tenants/disable", json!({"enabled": false})).await),
        }
        let (status, answer) = session(&server, &cookie).await;
        assert_eq!((status, code(&answer)), (401, "unauthorized"), "{end}");
        ended.push(cookie);
    }
    let short = server.post("/api/tokens", json!({"name": "short", "expires_in": "2s"})).await.1;
    let response = submit(&server, &format!("token={}", short["data"]["token"].as_str().unwrap())).await;
    let set = response.headers()["set-cookie"].to_str().unwrap();
    assert!(set.contains("Max-Age=1") || set.contains("Max-Age=2"), "the session ends with its token: {set}");
    let server = server.restart().await;
    for cookie in ended {
        assert_eq!(session(&server, &cookie).await.0, 401);
    }
}

#[tokio::test]
async fn the_cookie_is_secure_behind_https_and_sessions_survive_a_restart() {
    let server = Server::start().await;
    let form = browser().post(server.url("/login")).header("x-forwarded-proto", "https");
    let response = form.body(format!("token={}", server.token)).send().await.unwrap();
    let set = response.headers()["set-cookie"].to_str().unwrap();
    assert!(set.ends_with("; Secure"), "{set}");
    let cookie = cookie(&response);
    let server = server.restart().await;
    assert_eq!(session(&server, &cookie).await.0, 200);
    let (_, audit) = server.get("/api/audit?action=session.open").await;
    assert_eq!(audit["data"]["total"], 1, "{audit}");
}

#[tokio::test]
async fn frames_of_the_interface_stay_on_the_server() {
    let server = Server::start().await;
    for path in ["/ui/", "/ui/tools/x", "/login"] {
        let page = browser().get(server.url(path)).send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}");
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        // A frame that is not allowed here cannot be navigated to either.
        let frames = policy.split(';').map(str::trim).find(|part| part.starts_with("frame-src"));
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(frames.is_none_or(|frames| frames == "frame-src 'self'"), "{path}: {policy}");
    }
}
