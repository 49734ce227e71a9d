//! Logins at issuers of OpenID Connect, with an issuer on loopback that can misbehave.

use std::collections::HashMap;

use haft_core::secret::Secret;
use haft_server::settings::{Settings, declared_issuer};
use haft_testkit::issuer::{CLIENT_ID, CLIENT_SECRET, SigningKey, StubIssuer};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::{Server, send};
use crate::login::browser;
use crate::postgres::database;

/// The audience of bearer tokens.
const AUDIENCE: &str = "https://haft.test";

/// Configures an issuer.
fn configure(settings: &mut Settings, id: &str, issuer: &StubIssuer, rules: &Value) {
    let secret = ("STUB_SECRET".to_owned(), Secret::new(CLIENT_SECRET.to_owned()));
    settings.secrets.environment.push(secret);
    let table = json!({
        "id": id, "name": "Example <Corp>", "issuer": issuer.url(), "client_id": CLIENT_ID,
        "client_secret": "${env:STUB_SECRET}", "private_hosts": ["127.0.0.1"], "audiences": [AUDIENCE],
        "rules": rules,
    });
    settings.sign_on.issuers.push(declared_issuer(table).unwrap());
}

async fn start(rules: Value) -> (Server, StubIssuer) {
    let issuer = StubIssuer::start().await.unwrap();
    let server = Server::start_with(|settings| configure(settings, "corp", &issuer, &rules)).await;
    (server, issuer)
}

/// A browser: its cookies, and where it is.
#[derive(Default)]
struct Browser(HashMap<String, String>);

/// A page that a browser shows.
struct Page {
    status: u16,
    text: String,
}

impl Browser {
    async fn get(&mut self, url: &str) -> Response {
        let cookies: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = browser().get(url).header("cookie", cookies.join("; "));
        let response = request.send().await.unwrap();
        for cookie in response.headers().get_all("set-cookie") {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
        response
    }

    /// Begins a login; returns where the issuer sends the browser back to.
    async fn begin(&mut self, url: &str) -> String {
        let begun = self.get(url).await;
        assert_eq!(begun.status(), 303, "{}", begun.text().await.unwrap());
        let back = browser().get(location(&begun)).send().await.unwrap();
        assert_eq!(back.status(), 303);
        location(&back)
    }

    async fn page(&mut self, url: &str) -> Page {
        let response = self.get(url).await;
        Page { status: response.status().as_u16(), text: response.text().await.unwrap() }
    }

    async fn log_in(&mut self, server: &Server) -> Page {
        let back = self.begin(&server.url("/login/oidc/corp?next=/ui/calls")).await;
        self.page(&back).await
    }

    /// Returns the session of the browser.
    async fn session(&self, server: &Server) -> (u16, Value) {
        let cookie =
            format!("haft_session={}", self.0.get("haft_session").map(String::as_str).unwrap_or_default());
        let (status, answer) = send(server.bare(Method::GET, "/api/session").header("cookie", cookie)).await;
        (status, answer["data"].clone())
    }
}

fn location(response: &Response) -> String {
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// Returns a parameter of an address.
fn parameter(url: &str, name: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap()
}

fn ann() -> Value {
    json!({"sub": "00u1", "name": "Ann", "email": "ann@example.com", "email_verified": true, "groups": ["ops"]})
}

fn rules() -> Value {
    json!([{"when": "'ops' in claims.groups", "role": "editor", "groups_claim": "groups"}])
}

async fn people(server: &Server) -> Vec<Value> {
    let (_, answer) = server.get("/api/people").await;
    // The local owner logs in at no issuer.
    let is_other = |person: &&Value| person["name"] != "local";
    answer["data"]["people"].as_array().unwrap().iter().filter(is_other).cloned().collect()
}

/// Changes the claims of an ID token.
type ChangeClaims = fn(&mut Value);
/// Makes another token of a key and the claims of an ID token.
type MakeToken = fn(&SigningKey, &Value) -> String;

#[tokio::test]
async fn a_person_logs_in_at_an_issuer() {
    let (server, issuer) = start(rules()).await;
    server.post("/api/groups", json!({"name": "ops", "role": "caller"})).await;
    issuer.log_in_as(&ann());
    let mut ann = Browser::default();
    let login = ann.page(&server.url("/login?next=/ui/tools?q=%22")).await;
    let button =
        r#"href="/login/oidc/corp?next=%2Fui%2Ftools%3Fq%3D%22">Log in with Example &lt;Corp&gt;</a>"#;
    assert!(login.text.contains(button) || login.text.contains("Example &lt;Corp&gt;"), "{}", login.text);

    let begun = ann.get(&server.url("/login/oidc/corp?next=/ui/calls")).await;
    let set = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        set.starts_with("haft_sign_on=") && set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=600"),
        "{set}"
    );
    let address = location(&begun);
    let callback = server.url("/login/oidc/corp/callback");
    assert_eq!(
        (parameter(&address, "redirect_uri"), parameter(&address, "code_challenge_method")),
        (callback, "S256".to_owned())
    );
    assert_eq!(parameter(&address, "scope"), "openid email profile");
    let back = location(&browser().get(&address).send().await.unwrap());
    let page = ann.page(&back).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains(r#"<meta http-equiv="refresh" content="0; url=/ui/calls">"#), "{}", page.text);
    let (status, who) = ann.session(&server).await;
    assert_eq!(
        (status, &who["name"], &who["role"], &who["is_session"]),
        (200, &json!("Ann"), &json!("editor"), &json!(true))
    );
    assert_eq!(
        (&who["actor"]["email"], &who["actor"]["groups"]),
        (&json!("ann@example.com"), &json!(["ops"]))
    );
    // Neither the code nor the state works again.
    let again = ann.page(&back).await;
    assert_eq!(again.status, 400);
    assert!(again.text.contains("This login is unknown"), "{}", again.text);

    let found = people(&server).await;
    assert_eq!(
        (found.len(), &found[0]["status"], &found[0]["membership"]["tools"]),
        (1, &json!("active"), &json!([]))
    );
    assert_eq!((&found[0]["rights"]["role"], &found[0]["rights"]["tools"]), (&json!("editor"), &json!(null)));
    let (_, audit) = server.get("/api/audit?page_size=50").await;
    let records = audit["data"]["records"].as_array().unwrap();
    let record = records.iter().find(|record| record["action"] == "person.sign_on").unwrap();
    assert_eq!((&record["actor"], &record["target"]), (&json!("sign-on corp"), &json!("Ann (corp: 00u1)")));
    let database = std::fs::read(server.home.path().join("haft.db-wal")).unwrap();
    for secret in [parameter(&address, "state"), parameter(&address, "nonce"), ann.0["haft_sign_on"].clone()]
    {
        let is_part = database.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_part, "only hashes are stored");
    }

    let request = browser().post(server.url("/logout")).header("sec-fetch-site", "same-origin");
    let cookies = format!("haft_session={}; haft_issuer={}", ann.0["haft_session"], ann.0["haft_issuer"]);
    let out = request.header("cookie", cookies).send().await.unwrap();
    assert_eq!((out.status().as_u16(), location(&out)), (303, "/login/oidc/corp/logout".to_owned()));
    let page = ann.page(&server.url("/login/oidc/corp/logout")).await;
    let target = format!("url={}/logout?client_id=haft&amp;post_logout_redirect_uri=", issuer.url());
    assert!(page.text.contains(&target), "{}", page.text);
    assert_eq!(ann.session(&server).await.0, 401);
}

#[tokio::test]
async fn tokens_of_misbehaving_issuers_are_refused() {
    let (server, issuer) = start(rules()).await;
    issuer.log_in_as(&ann());
    let change = |change: fn(&mut Value)| issuer.change(|behavior| behavior.change = change);
    let cases: [(&str, ChangeClaims); 9] = [
        ("issuer", |claims| claims["iss"] = json!("https://evil.test")),
        ("audience", |claims| claims["aud"] = json!("other")),
        ("two audiences", |claims| claims["aud"] = json!([CLIENT_ID, "other"])),
        ("azp", |claims| claims["azp"] = json!("other")),
        ("nonce", |claims| claims["nonce"] = json!("of another login")),
        ("no nonce", |claims| claims["nonce"] = Value::Null),
        ("expired", |claims| claims["exp"] = json!(1_700_000_000)),
        ("not yet valid", |claims| claims["nbf"] = json!(4_000_000_000_i64)),
        ("no subject", |claims| claims["sub"] = json!("")),
    ];
    for (case, changed) in cases {
        change(changed);
        let page = Browser::default().log_in(&server).await;
        assert_eq!(page.status, 502, "{case}: {}", page.text);
        assert!(
            page.text.contains("The answer of `Example &lt;Corp&gt;` is not valid"),
            "{case}: {}",
            page.text
        );
    }
    change(|_| {});
    let replacements: [(&str, MakeToken); 3] = [
        ("none", |key, claims| {
            let token = key.sign(&json!({"alg": "none"}), claims);
            format!("{}.", token.rsplit_once('.').unwrap().0)
        }),
        ("HS256", |key, claims| key.sign(&json!({"alg": "HS256", "kid": key.kid}), claims)),
        ("another key", |key, claims| SigningKey::p256(&key.kid).token(claims)),
    ];
    for (case, replace) in replacements {
        issuer.change(|behavior| behavior.replace = Some(Box::new(replace)));
        assert_eq!(Browser::default().log_in(&server).await.status, 502, "{case}");
    }
    issuer.change(|behavior| behavior.replace = None);
    for (issuer_name, expected) in [("https://evil.test", 400), ("", 400)] {
        issuer.change(|behavior| behavior.callback_issuer = Some(issuer_name.to_owned()));
        let page = Browser::default().log_in(&server).await;
        assert_eq!(page.status, expected, "{}", page.text);
        assert!(page.text.contains("another issuer"), "{}", page.text);
    }
    issuer.change(|behavior| {
        behavior.callback_issuer = None;
        behavior.error = Some("access_denied".to_owned());
    });
    let page = Browser::default().log_in(&server).await;
    assert_eq!(page.status, 403);
    assert!(page.text.contains("access_denied: &lt;b&gt;not today&lt;/b&gt;"), "{}", page.text);
    assert_eq!(people(&server).await.len(), 0);
}

#[tokio::test]
async fn a_login_belongs_to_its_browser_and_its_issuer() {
    let (one, two) = (StubIssuer::start().await.unwrap(), StubIssuer::start().await.unwrap());
    let server = Server::start_with(|settings| {
        configure(settings, "corp", &one, &rules());
        configure(settings, "other", &two, &rules());
    })
    .await;
    one.log_in_as(&ann());
    two.log_in_as(&ann());
    let mut victim = Browser::default();
    let back = victim.begin(&server.url("/login/oidc/corp")).await;
    // The attempt of another browser does not use the login up.
    let mut attacker = Browser::default();
    assert_eq!(attacker.page(&back).await.status, 400);
    attacker.begin(&server.url("/login/oidc/corp")).await;
    assert_eq!(attacker.page(&back).await.status, 400);
    let state = parameter(&back, "state");
    for wrong in [state.to_lowercase(), state[1..].to_owned(), format!("{state}A"), String::new()] {
        assert_eq!(victim.page(&back.replace(&state, &wrong)).await.status, 400, "{wrong}");
    }
    // The answer to a login at one issuer does not finish one at the other.
    let mixed = back.replace("/corp/", "/other/");
    let page = victim.page(&mixed).await;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("another issuer"), "{}", page.text);
    // Two logins at once in one browser.
    let first = victim.begin(&server.url("/login/oidc/corp?next=/ui/a")).await;
    let second = victim.begin(&server.url("/login/oidc/corp?next=/ui/b")).await;
    assert!(victim.page(&first).await.text.contains("url=/ui/a"));
    assert!(victim.page(&second).await.text.contains("url=/ui/b"));
    // A code of one login with the state of another one: the verifier does not fit.
    let first = victim.begin(&server.url("/login/oidc/corp")).await;
    let second = victim.begin(&server.url("/login/oidc/corp")).await;
    let swapped = first.replace(&parameter(&first, "code"), &parameter(&second, "code"));
    assert_eq!(victim.page(&swapped).await.status, 502);
    for next in ["https://evil.test/", "//evil.test", "/ui/../api/key", "/\\evil.test", "javascript:alert(1)"]
    {
        let mut url = url::Url::parse(&server.url("/login/oidc/corp")).unwrap();
        url.query_pairs_mut().append_pair("next", next);
        let back = victim.begin(url.as_str()).await;
        assert!(victim.page(&back).await.text.contains("url=/\""), "{next}");
    }
    assert_eq!(victim.page(&server.url("/login/oidc/unknown")).await.status, 404);
    assert_eq!(victim.page(&server.url("/login/oidc/corp?tenant=a%20b")).await.status, 400);
    let page = victim.page(&server.url("/login/oidc/corp/callback?state=a&state=b")).await;
    assert_eq!(page.status, 400);
}

#[tokio::test]
async fn people_are_found_by_verified_addresses_only() {
    let (server, issuer) = start(json!([{"when": "has(claims.groups)", "role": "caller"}])).await;
    let invite = json!({"name": "Ann", "email": "Ann@Example.com", "role": "viewer"});
    let (_, invited) = server.post("/api/people", invite).await;
    let id = invited["data"]["id"].clone();
    let without_groups = |subject: &str, verified: Value| json!({"sub": subject, "email": "ann@example.com", "email_verified": verified});
    for verified in [json!(false), json!("true"), json!(1), Value::Null] {
        issuer.log_in_as(&without_groups("1", verified));
        let page = Browser::default().log_in(&server).await;
        assert_eq!(page.status, 403, "{}", page.text);
        assert!(
            page.text.contains("nothing in haft is assigned to you") && page.text.contains("your subject: 1")
        );
    }
    // No rule matches, but the person was invited.
    issuer.log_in_as(&without_groups("1", json!(true)));
    let mut ann = Browser::default();
    assert_eq!(ann.log_in(&server).await.status, 200);
    let (_, who) = ann.session(&server).await;
    assert_eq!((&who["actor"]["id"], &who["role"]), (&id, &json!("viewer")), "{who}");
    // Another subject with the same address is somebody else, without the address.
    issuer.log_in_as(&json!({"sub": "2", "name": "Other", "email": "ann@example.com", "email_verified": true, "groups": []}));
    let mut other = Browser::default();
    assert_eq!(other.log_in(&server).await.status, 200);
    let (_, who) = other.session(&server).await;
    assert!(who["actor"]["id"] != id && who["actor"]["email"] == Value::Null, "{who}");
    // The identity counts, not the address: the first subject stays Ann.
    issuer.log_in_as(&json!({"sub": "1", "email": "new@example.com", "email_verified": true}));
    assert_eq!(ann.log_in(&server).await.status, 200);
    assert_eq!(ann.session(&server).await.1["actor"]["id"], id);
    // Disabled people do not come back, by whatever way.
    let path = format!("/api/people/{}", id.as_str().unwrap());
    assert_eq!(server.patch(&path, json!({"status": "disabled"})).await.0, 200);
    assert_eq!(ann.session(&server).await.0, 401);
    let page = ann.log_in(&server).await;
    assert_eq!(page.status, 403);
    assert!(page.text.contains("Your account is disabled"), "{}", page.text);
    assert_eq!(people(&server).await.len(), 2);
}

#[tokio::test]
async fn what_the_issuer_takes_away_goes_and_what_was_given_by_hand_stays() {
    let (server, issuer) = start(json!([
        {"when": "'ops' in claims.groups", "role": "editor", "groups": ["leads"]},
        {"when": "'acme' in claims.groups", "tenant": "acme", "role": "caller"},
    ]))
    .await;
    server.post("/api/tenants", json!({"id": "acme", "name": "Acme"})).await;
    server.post("/api/groups", json!({"name": "by-hand", "role": "viewer"})).await;
    server.post("/api/groups", json!({"name": "leads", "role": "viewer"})).await;
    let claims = |groups: Value| json!({"sub": "1", "email": "ann@example.com", "email_verified": true, "groups": groups});
    let invite = json!({"name": "Ann", "email": "ann@example.com", "role": "viewer", "groups": ["by-hand"]});
    assert_eq!(server.post("/api/people", invite).await.0, 201);
    issuer.log_in_as(&claims(json!(["ops", "acme"])));
    let mut ann = Browser::default();
    assert_eq!(ann.log_in(&server).await.status, 200);
    let (_, who) = ann.session(&server).await;
    assert_eq!(
        (&who["tenant"], &who["role"], &who["actor"]["groups"]),
        (&json!("default"), &json!("editor"), &json!(["by-hand", "leads"])),
        "{who}"
    );
    let mut acme = Browser::default();
    let back = acme.begin(&server.url("/login/oidc/corp?tenant=acme")).await;
    assert_eq!(acme.page(&back).await.status, 200);
    assert_eq!(acme.session(&server).await.1["tenant"], "acme");
    // A list of groups that comes back as it was shown does not make assigned ones stay.
    let patch = json!({"groups": ["by-hand", "leads"]});
    assert_eq!(server.patch("/api/people/ann@example.com", patch).await.0, 200);

    issuer.log_in_as(&claims(json!([])));
    assert_eq!(ann.log_in(&server).await.status, 200);
    let (_, who) = ann.session(&server).await;
    assert_eq!((&who["role"], &who["actor"]["groups"]), (&json!("viewer"), &json!(["by-hand"])), "{who}");
    assert_eq!(acme.session(&server).await.0, 401, "the membership of the other tenant has ended");
    let back = acme.begin(&server.url("/login/oidc/corp?tenant=acme")).await;
    let page = acme.page(&back).await;
    assert_eq!(page.status, 403);
    assert!(page.text.contains("You are not a member of the tenant `acme`"), "{}", page.text);
}

#[tokio::test]
async fn first_logins_at_once_make_one_person() {
    let (server, issuer) = start(rules()).await;
    issuer.log_in_as(&ann());
    let logins = (0..4).map(|_| async {
        let mut browser = Browser::default();
        browser.log_in(&server).await.status
    });
    let statuses = futures_util::future::join_all(logins).await;
    assert_eq!(statuses, [200; 4]);
    assert_eq!(people(&server).await.len(), 1);
}

#[tokio::test]
async fn a_login_begins_on_one_node_and_ends_on_another() {
    let database = database().await;
    let issuer = StubIssuer::start().await.unwrap();
    let start = async |public_url: Option<String>| {
        Server::start_with(|settings| {
            settings.database_url = Some(Secret::new(database.url.clone()));
            settings.key = Some(Secret::new("00".repeat(32)));
            settings.mcp.public_url = public_url;
            configure(settings, "corp", &issuer, &rules());
        })
        .await
    };
    let one = start(None).await;
    // Both have the same address for browsers.
    let other = start(Some(one.url(""))).await;
    issuer.log_in_as(&ann());
    let mut ann = Browser::default();
    let back = ann.begin(&other.url("/login/oidc/corp?next=/ui/calls")).await;
    assert!(back.starts_with(&one.url("/login/oidc/corp/callback")), "{back}");
    let page = ann.page(&back).await;
    assert!(page.text.contains("url=/ui/calls"), "{}", page.text);
    for server in [&other, &one] {
        assert_eq!(ann.session(server).await.1["name"], "Ann");
    }
    assert_eq!(ann.page(&back.replace(&one.url(""), &other.url(""))).await.status, 400, "used up");
    let token = issuer.token(AUDIENCE, &json!({"sub": "2", "name": "Bob", "groups": ["ops"]}));
    for server in [&one, &other] {
        let (status, who) = send(server.bare(Method::GET, "/api/session").bearer_auth(&token)).await;
        assert_eq!((status, &who["data"]["name"]), (200, &json!("Bob")));
    }
}

#[tokio::test]
async fn an_issuer_that_is_down_stops_nobody_who_is_logged_in() {
    let (server, issuer) = start(rules()).await;
    issuer.change(|behavior| behavior.is_down = true);
    let page = Browser::default().page(&server.url("/login/oidc/corp")).await;
    assert_eq!(page.status, 502);
    assert!(page.text.contains("`Example &lt;Corp&gt;` does not answer"), "{}", page.text);
    assert!(!page.text.contains("127.0.0.1"), "{}", page.text);
    let (_, answer) = server.get("/api/sign-on").await;
    let shown = &answer["data"]["issuers"][0];
    assert_eq!(
        (&shown["is_ready"], &shown["error"]),
        (&json!(false), &json!("`/.well-known/openid-configuration` returned HTTP status 503"))
    );
    let (server, issuer) = start(rules()).await;
    issuer.log_in_as(&ann());
    let mut ann = Browser::default();
    assert_eq!(ann.log_in(&server).await.status, 200);
    let bearer = issuer.token(AUDIENCE, &json!({"sub": "00u1"}));
    assert_eq!(send(server.bare(Method::GET, "/api/session").bearer_auth(&bearer)).await.0, 200);
    let back = ann.begin(&server.url("/login/oidc/corp")).await;
    issuer.change(|behavior| behavior.is_down = true);
    assert_eq!(ann.page(&back).await.status, 502);
    assert_eq!(ann.session(&server).await.0, 200);
    // Its keys are known, so its tokens go on.
    let second = issuer.token(AUDIENCE, &json!({"sub": "00u1", "jti": "2"}));
    for token in [&bearer, &second] {
        assert_eq!(send(server.bare(Method::GET, "/api/session").bearer_auth(token)).await.0, 200);
    }
}

#[tokio::test]
async fn claims_of_the_userinfo_endpoint_are_read() {
    let (server, issuer) = start(rules()).await;
    issuer.log_in_as(&json!({"sub": "1"}));
    issuer.change(|behavior| behavior.userinfo = Some(json!({"sub": "1", "name": "Ann", "groups": ["ops"]})));
    let mut ann = Browser::default();
    assert_eq!(ann.log_in(&server).await.status, 200);
    assert_eq!(ann.session(&server).await.1["name"], "Ann");
    issuer.change(|behavior| behavior.userinfo = Some(json!({"sub": "2", "groups": ["ops"]})));
    assert_eq!(ann.log_in(&server).await.status, 502);
}

#[tokio::test]
async fn an_issuer_ends_the_sessions_of_a_person() {
    let (server, issuer) = start(rules()).await;
    issuer.log_in_as(&ann());
    let mut ann = Browser::default();
    assert_eq!(ann.log_in(&server).await.status, 200);
    let end = async |token: String| {
        let form =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("logout_token", &token).finish();
        let request = server.bare(Method::POST, "/login/oidc/corp/backchannel-logout").body(form);
        request
            .header("content-type", "application/x-www-form-urlencoded")
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    for (token, expected) in [
        (issuer.token(CLIENT_ID, &json!({"sub": "00u1"})), 400),
        (issuer.token("other", &json!({"sub": "00u1", "events": events})), 400),
        (issuer.token(CLIENT_ID, &json!({"sub": "00u1", "events": events, "nonce": "n"})), 400),
        (issuer.token(CLIENT_ID, &json!({"sub": "nobody", "events": events})), 200),
        (String::new(), 400),
    ] {
        assert_eq!(end(token).await, expected);
    }
    assert_eq!(ann.session(&server).await.0, 200);
    assert_eq!(end(issuer.token(CLIENT_ID, &json!({"sub": "00u1", "events": events}))).await, 200);
    assert_eq!(ann.session(&server).await.0, 401);

    // With the name of a session, that one ends, and no other one.
    let log_in = async |session: Option<&str>| {
        let mut claims = self::ann();
        if let Some(session) = session {
            claims["sid"] = json!(session);
        }
        issuer.log_in_as(&claims);
        let mut browser = Browser::default();
        assert_eq!(browser.log_in(&server).await.status, 200);
        browser
    };
    let (one, two, unnamed) = (log_in(Some("1")).await, log_in(Some("2")).await, log_in(None).await);
    let states = async || {
        [one.session(&server).await.0, two.session(&server).await.0, unnamed.session(&server).await.0]
    };
    for (claims, expected) in [
        (json!({"events": events}), 400),
        (json!({"sid": "", "events": events}), 400),
        (json!({"sid": "1"}), 400),
        (json!({"sid": "of nobody", "events": events}), 200),
        (json!({"sid": "1", "sub": "nobody", "events": events}), 200),
    ] {
        assert_eq!(end(issuer.token(CLIENT_ID, &claims)).await, expected, "{claims}");
    }
    assert_eq!(states().await, [200, 200, 200]);
    assert_eq!(end(issuer.token(CLIENT_ID, &json!({"sid": "1", "events": events}))).await, 200);
    assert_eq!(states().await, [401, 200, 200]);
    // Whose session it is names those that the issuer did not name at the login.
    let both = json!({"sid": "2", "sub": "00u1", "events": events});
    assert_eq!(end(issuer.token(CLIENT_ID, &both)).await, 200);
    assert_eq!(states().await, [401, 401, 401]);
}

#[tokio::test]
async fn tokens_of_an_issuer_are_bearer_tokens() {
    let (server, issuer) = start(rules()).await;
    let who = async |token: &str| {
        let (status, answer) = send(server.bare(Method::GET, "/api/session").bearer_auth(token)).await;
        (status, answer["data"].clone())
    };
    let token = issuer.token(AUDIENCE, &json!({"sub": "1", "name": "Ann", "groups": ["ops"]}));
    let (status, session) = who(&token).await;
    assert_eq!(
        (status, &session["name"], &session["role"], &session["is_session"]),
        (200, &json!("Ann"), &json!("editor"), &json!(false)),
        "{session}"
    );
    assert!(session["expires_at"].is_string() && session["token_id"].is_null(), "{session}");
    // The claims of later tokens change nothing: only a login does.
    let poor = issuer.token(AUDIENCE, &json!({"sub": "1"}));
    assert_eq!(who(&poor).await.1["role"], "editor");
    let refused = [
        ("no rule", issuer.token(AUDIENCE, &json!({"sub": "2", "groups": []}))),
        ("audience", issuer.token("https://other.test", &json!({"sub": "1"}))),
        ("the client", issuer.token(CLIENT_ID, &json!({"sub": "1"}))),
        ("an ID token", issuer.token(AUDIENCE, &json!({"sub": "1", "nonce": "n"}))),
        ("issuer", issuer.token(AUDIENCE, &json!({"sub": "1", "iss": "https://evil.test"}))),
        ("expired", issuer.token(AUDIENCE, &json!({"sub": "1", "exp": 1_700_000_000}))),
        ("another tenant", issuer.token(AUDIENCE, &json!({"sub": "1", "haft_tenant": "acme"}))),
        (
            "another key",
            SigningKey::p256("first")
                .token(&json!({"iss": issuer.url(), "aud": AUDIENCE, "sub": "1", "exp": 4_000_000_000_i64})),
        ),
    ];
    for (case, token) in &refused {
        assert_eq!(who(token).await.0, 401, "{case}");
    }
    assert_eq!(who(&issuer.token(AUDIENCE, &json!({"sub": "1", "haft_tenant": "default"}))).await.0, 200);
    // On every surface.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let request = server
        .bare(Method::POST, "/mcp")
        .bearer_auth(&token)
        .header("accept", "application/json, text/event-stream");
    let mcp = request.header("content-type", "application/json").body(list.to_string()).send().await.unwrap();
    assert_ne!(mcp.status(), 401);
    assert_eq!(
        server.bare(Method::GET, "/v1/models").bearer_auth(&token).send().await.unwrap().status(),
        200
    );
    // It cannot prolong itself.
    assert_eq!(send(server.bare(Method::POST, "/api/login-links").bearer_auth(&token)).await.0, 403);
    let body = json!({"name": "mine", "role": "caller"}).to_string();
    let (status, created) =
        send(server.bare(Method::POST, "/api/tokens").bearer_auth(&token).body(body)).await;
    assert_eq!(status, 201, "{created}");
    assert!(created["data"]["expires_at"].is_string(), "{created}");
    // A disabled person has no access, whatever was verified before.
    let id = session["actor"]["id"].as_str().unwrap();
    assert_eq!(server.patch(&format!("/api/people/{id}"), json!({"status": "disabled"})).await.0, 200);
    assert_eq!(who(&token).await.0, 401);
}

#[tokio::test]
async fn unknown_keys_cause_few_requests_and_a_new_key_is_found() {
    let (server, issuer) = start(rules()).await;
    let status =
        async |token: &str| send(server.bare(Method::GET, "/api/session").bearer_auth(token)).await.0;
    let claims = json!({"sub": "1", "groups": ["ops"]});
    assert_eq!(status(&issuer.token(AUDIENCE, &claims)).await, 200);
    issuer.change(|behavior| behavior.keys = vec![SigningKey::rsa("second")]);
    assert_eq!(status(&issuer.token(AUDIENCE, &claims)).await, 200, "the key was rotated");
    let before = issuer.requests("/jwks");
    for number in 0..20 {
        let key = SigningKey::ed25519(&format!("unknown-{number}"));
        let token =
            key.token(&json!({"iss": issuer.url(), "aud": AUDIENCE, "sub": "1", "exp": 4_000_000_000_i64}));
        assert_eq!(status(&token).await, 401);
    }
    assert_eq!((before, issuer.requests("/jwks")), (2, 2));
    assert_eq!(issuer.requests("/.well-known/openid-configuration"), 1);
}

#[tokio::test]
async fn a_test_shows_what_a_login_would_get() {
    let (server, issuer) = start(json!([
        {"when": "'ops' in claims.groups", "role": "editor", "tools": ["web:*"], "groups": ["leads", "missing"]},
        {"when": "claims.department == 'it'", "tenant": "nowhere", "role": "admin"},
        {"tenant": "nowhere", "role": "viewer"},
    ]))
    .await;
    server.post("/api/groups", json!({"name": "leads", "role": "viewer"})).await;
    let test = async |claims: Value| server.post("/api/sign-on/test", json!({"claims": claims})).await;
    let (status, answer) = test(ann()).await;
    assert_eq!(status, 200, "{answer}");
    let data = &answer["data"];
    assert_eq!(
        data["person"],
        json!({"outcome": "new", "id": null, "name": "Ann", "email": "ann@example.com"})
    );
    assert_eq!(
        data["rules"],
        json!([
            {"number": 1, "when": "'ops' in claims.groups", "tenant": "default", "role": "editor", "matched": true, "error": null},
            {"number": 2, "when": "claims.department == 'it'", "tenant": "nowhere", "role": "admin", "matched": false, "error": "`department` is missing"},
            {"number": 3, "when": null, "tenant": "nowhere", "role": "viewer", "matched": true, "error": null},
        ])
    );
    let rights = json!({"role": "editor", "elevated": false, "platform": false, "tools": ["web:*"]});
    assert_eq!(data["tenants"], json!([{"tenant": "default", "rights": rights, "groups": ["leads"]}]));
    assert_eq!(
        data["warnings"],
        json!([
            "the tenant `default` has no group `missing`",
            "the tenant `nowhere` does not exist or is disabled"
        ])
    );
    assert_eq!(people(&server).await.len(), 0, "nothing has changed");
    let outcome = async |claims: Value| test(claims).await.1["data"]["person"]["outcome"].clone();
    assert_eq!(outcome(json!({"sub": "2"})).await, "nothing_assigned");
    server.post("/api/people", json!({"name": "Ann", "email": "ann@example.com"})).await;
    assert_eq!(outcome(ann()).await, "linked");
    issuer.log_in_as(&ann());
    assert_eq!(Browser::default().log_in(&server).await.status, 200);
    assert_eq!(outcome(ann()).await, "known");
    server.patch("/api/people/ann@example.com", json!({"status": "disabled"})).await;
    assert_eq!(outcome(ann()).await, "disabled");

    for (body, expected) in [
        (json!({"claims": {}}), 400),
        (json!({"claims": []}), 400),
        (json!({"claims": {"sub": "1"}, "issuer": "other"}), 404),
        (json!({"claims": {"sub": "1", "x": "y".repeat(70_000)}}), 413),
    ] {
        let (status, answer) = server.post("/api/sign-on/test", body).await;
        assert_eq!(status, expected, "{answer}");
    }
    let (_, answer) = server.get("/api/sign-on").await;
    let shown = &answer["data"]["issuers"][0];
    assert_eq!(shown["callback_url"], server.url("/login/oidc/corp/callback"));
    assert_eq!(
        (&shown["is_ready"], &shown["error"], shown["rules"].as_array().unwrap().len()),
        (&json!(true), &json!(null), 3)
    );
    assert!(!answer.to_string().contains("SECRET"), "{answer}");
    let (_, editor) = server.post("/api/tokens", json!({"name": "e", "role": "admin"})).await;
    let token = editor["data"]["token"].as_str().unwrap().to_owned();
    assert_eq!(send(server.bare(Method::GET, "/api/sign-on").bearer_auth(&token)).await.0, 403);
}
