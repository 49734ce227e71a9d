//! Enterprise-managed access: an issuer vouches for a person, and an application gets access without a consent page.

use haft_core::secret::Secret;
use haft_server::settings::declared_issuer;
use haft_testkit::issuer::{CLIENT_ID, CLIENT_SECRET, SigningKey, StubIssuer};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYPE: &str = "oauth-id-jag+jwt";
const AUDIENCE: &str = "https://haft.test";

/// A server with an issuer, and an application that may use its assertions.
struct World {
    server: Server,
    issuer: StubIssuer,
    client: String,
    secret: String,
}

#[expect(clippy::disallowed_methods, reason = "tokens have real times")]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// Creates an application with a secret; returns its id and the secret.
async fn create(server: &Server, name: &str) -> (String, String) {
    let new = json!({"name": name, "redirect_uris": ["https://a.test/cb"], "confidential": true});
    let (status, answer) = server.post("/api/application-clients", new).await;
    assert_eq!(status, 201, "{answer}");
    let text = |name: &str| answer["data"][name].as_str().unwrap().to_owned();
    (text("client_id"), text("client_secret"))
}

impl World {
    /// Starts everything. The id of an application is made by the server, so the server starts twice.
    async fn start() -> Self {
        let issuer = StubIssuer::start().await.unwrap();
        let home = Server::start().await;
        let (client, secret) = create(&home, "Agent").await;
        let clients = vec![client.clone(), "unknown".to_owned()];
        let table = json!({
            "id": "corp", "issuer": issuer.url(), "client_id": CLIENT_ID, "client_secret": "${env:STUB_SECRET}",
            "private_hosts": ["127.0.0.1"], "assertion_clients": clients,
            "rules": [{"when": "'ops' in claims.groups", "role": "editor"}],
        });
        let server = home
            .restart_with(|settings| {
                let secret = ("STUB_SECRET".to_owned(), Secret::new(CLIENT_SECRET.to_owned()));
                settings.secrets.environment.push(secret);
                settings.mcp.public_url = Some(format!("{AUDIENCE}/"));
                settings.sign_on.issuers.push(declared_issuer(table).unwrap());
            })
            .await;
        Self { server, issuer, client, secret }
    }

    fn claims(&self, change: &Value) -> Value {
        let mut claims = json!({
            "iss": self.issuer.url(), "sub": "00u1", "aud": AUDIENCE, "client_id": self.client, "iat": now(),
            "exp": now() + 300, "name": "Ann", "groups": ["ops"], "jti": uuid::Uuid::now_v7().to_string(),
        });
        let object = claims.as_object_mut().unwrap();
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                object.remove(name)
            } else {
                object.insert(name.clone(), value.clone())
            };
        }
        claims
    }

    /// Returns an assertion with some claims changed.
    fn assertion(&self, change: &Value) -> String {
        self.issuer.sign(TYPE, &self.claims(change))
    }

    async fn exchange_with(&self, assertion: &str, more: &[(&str, &str)]) -> (u16, Value) {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", GRANT_TYPE).append_pair("assertion", assertion).extend_pairs(more);
        send(self.server.bare(Method::POST, "/oauth/token").body(form.finish())).await
    }

    async fn exchange(&self, assertion: &str) -> (u16, Value) {
        let client = [("client_id", self.client.as_str()), ("client_secret", self.secret.as_str())];
        self.exchange_with(assertion, &client).await
    }

    async fn who(&self, token: &Value) -> (u16, Value) {
        let request = self.server.bare(Method::GET, "/api/session").bearer_auth(token.as_str().unwrap());
        let (status, answer) = send(request).await;
        (status, answer["data"].clone())
    }
}

#[tokio::test]
async fn an_assertion_connects_an_application_once() {
    let world = World::start().await;
    let (_, metadata) = send(world.server.bare(Method::GET, "/.well-known/oauth-authorization-server")).await;
    assert!(metadata["grant_types_supported"].as_array().unwrap().contains(&json!(GRANT_TYPE)), "{metadata}");
    assert_eq!(
        metadata["authorization_grant_profiles_supported"],
        json!(["urn:ietf:params:oauth:grant-profile:id-jag"])
    );
    let resource = format!("{AUDIENCE}/mcp");
    let assertion = world.assertion(&json!({"resource": resource, "scope": "haft:read haft:call"}));
    let (status, tokens) = world.exchange(&assertion).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(
        (&tokens["scope"], &tokens["token_type"], &tokens["refresh_token"]),
        (&json!("haft:read haft:call"), &json!("Bearer"), &Value::Null)
    );
    let (status, who) = world.who(&tokens["access_token"]).await;
    assert_eq!((status, &who["role"], &who["name"]), (200, &json!("caller"), &json!("Ann")), "{who}");
    let (status, answer) = world.exchange(&assertion).await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")), "used twice: {answer}");

    // It is a connected application as every other one: visible, limited, revocable.
    let (_, list) = world.server.get("/api/applications").await;
    let application = &list["data"]["applications"][0];
    assert_eq!(list["data"]["applications"].as_array().unwrap().len(), 1);
    assert!(application["expires_at"].is_string(), "it ends with its only token: {application}");
    let (status, answer) = send(
        world
            .server
            .bare(Method::POST, "/api/tools")
            .bearer_auth(tokens["access_token"].as_str().unwrap())
            .body(function_tool("x", "echo").to_string()),
    )
    .await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    let (_, audit) = world.server.get("/api/audit?page_size=50").await;
    let records = audit["data"]["records"].as_array().unwrap();
    let record = records.iter().find(|record| record["action"] == "application.connect").unwrap();
    assert_eq!((&record["actor"], &record["target"]), (&json!("Ann"), &json!("Agent")));
    let path = format!("/api/applications/{}", application["id"].as_str().unwrap());
    assert_eq!(world.server.delete(&path).await.0, 200);
    assert_eq!(world.who(&tokens["access_token"]).await.0, 401);

    // Without a scope it is that of a caller; the request may ask for less, not for more.
    let client = [("client_id", world.client.as_str()), ("client_secret", world.secret.as_str())];
    let with_scope = async |claims: Value, scope: &str| {
        let form = [client.as_slice(), &[("scope", scope)]].concat();
        let (status, answer) = world.exchange_with(&world.assertion(&claims), &form).await;
        (status, answer["scope"].clone(), answer["error"].clone())
    };
    assert_eq!(with_scope(json!({}), "").await.1, "haft:read haft:call");
    assert_eq!(with_scope(json!({"scope": "haft:edit"}), "haft:read").await.1, "haft:read");
    assert_eq!(with_scope(json!({"scope": "haft:read"}), "haft:call").await.2, "invalid_scope");
    assert_eq!(with_scope(json!({"scope": "chat.read"}), "").await.2, "invalid_scope");
    // Never more than the person.
    assert_eq!(with_scope(json!({"scope": "haft:admin"}), "").await.1, "haft:read haft:call haft:edit");
}

#[tokio::test]
async fn bad_assertions_are_rejected() {
    let world = World::start().await;
    let key = SigningKey::p256("first");
    let unsigned = key.sign(&json!({"alg": "none", "typ": TYPE}), &world.claims(&json!({})));
    let cases = [
        ("none", format!("{}.", unsigned.rsplit_once('.').unwrap().0)),
        (
            "shared secret",
            key.sign(&json!({"alg": "HS256", "kid": "first", "typ": TYPE}), &world.claims(&json!({}))),
        ),
        (
            "another key",
            key.sign(&json!({"alg": "ES256", "kid": "first", "typ": TYPE}), &world.claims(&json!({}))),
        ),
        ("type", world.issuer.sign("JWT", &world.claims(&json!({})))),
        (
            "an ID token",
            world.issuer.token(CLIENT_ID, &json!({"sub": "00u1", "groups": ["ops"], "nonce": "n"})),
        ),
        ("an access token", world.issuer.sign("at+jwt", &world.claims(&json!({})))),
        ("audience", world.assertion(&json!({"aud": "https://other.test"}))),
        ("two audiences", world.assertion(&json!({"aud": [AUDIENCE, "https://other.test"]}))),
        ("client", world.assertion(&json!({"client_id": "unknown"}))),
        ("no client", world.assertion(&json!({"client_id": null}))),
        ("no id", world.assertion(&json!({"jti": null}))),
        ("expired", world.assertion(&json!({"exp": now() - 300}))),
        ("lives too long", world.assertion(&json!({"exp": now() + 7200}))),
        ("not yet valid", world.assertion(&json!({"iat": now() + 600}))),
        ("foreign issuer", world.assertion(&json!({"iss": "https://evil.test"}))),
        ("unknown subject", world.assertion(&json!({"sub": "00u2", "groups": []}))),
        ("tenant", world.assertion(&json!({"authorization_details": []}))),
        ("no token", "x".to_owned()),
    ];
    for (case, assertion) in cases {
        let (status, answer) = world.exchange(&assertion).await;
        assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")), "{case}: {answer}");
    }
    let foreign = world.assertion(&json!({"resource": ["https://other.test/mcp"]}));
    assert_eq!(world.exchange(&foreign).await.1["error"], "invalid_target");
    let (_, people) = world.server.get("/api/people").await;
    assert_eq!(people["data"]["total"], 1, "only the local owner: {people}");

    // The application must authenticate, and be one that may.
    let good = world.assertion(&json!({}));
    let wrong = [("client_id", world.client.as_str()), ("client_secret", "wrong")];
    assert_eq!(world.exchange_with(&good, &wrong).await.1["error"], "invalid_client");
    assert_eq!(world.exchange_with(&good, &wrong[..1]).await.1["error"], "invalid_client");
    let (other, secret) = create(&world.server, "Other").await;
    let other = [("client_id", other.as_str()), ("client_secret", secret.as_str())];
    let of_other = world.assertion(&json!({"client_id": other[0].1}));
    assert_eq!(world.exchange_with(&of_other, &other).await.1["error"], "unauthorized_client");

    // Nobody comes back this way who was disabled.
    assert_eq!(world.exchange(&good).await.0, 200);
    let (_, people) = world.server.get("/api/people").await;
    let path = format!("/api/people/{}", people["data"]["people"][0]["id"].as_str().unwrap());
    assert_eq!(world.server.patch(&path, json!({"status": "disabled"})).await.0, 200);
    assert_eq!(world.exchange(&world.assertion(&json!({}))).await.1["error"], "invalid_grant");

    world.issuer.change(|behavior| {
        behavior.is_down = true;
        behavior.keys = vec![SigningKey::p256("second")];
    });
    let (status, _) = world.exchange(&world.assertion(&json!({}))).await;
    assert!(status == 503 || status == 400, "{status}");
}

#[tokio::test]
async fn assertions_are_off_by_default() {
    let server = Server::start().await;
    let (client, secret) = create(&server, "Agent").await;
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", GRANT_TYPE).append_pair("assertion", "a.b.c");
    form.append_pair("client_id", &client).append_pair("client_secret", &secret);
    let (status, answer) = send(server.bare(Method::POST, "/oauth/token").body(form.finish())).await;
    assert_eq!((status, &answer["error"]), (400, &json!("unsupported_grant_type")), "{answer}");
    let (_, metadata) = send(server.bare(Method::GET, "/.well-known/oauth-authorization-server")).await;
    assert!(!metadata["grant_types_supported"].as_array().unwrap().contains(&json!(GRANT_TYPE)));
    assert_eq!(metadata["authorization_grant_profiles_supported"], Value::Null);
}
