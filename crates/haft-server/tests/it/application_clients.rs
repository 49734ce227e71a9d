//! What clients find out about the authorization server, and how they register.

use reqwest::Method;
use serde_json::json;

use crate::applications::CALLBACK;
use crate::harness::{Server, send};

#[tokio::test]
async fn the_metadata_names_the_endpoints() {
    let server = Server::start_with(|settings| settings.oauth.dynamic_registration = false).await;
    for path in ["", "/mcp", "/mcp/bundles/x"] {
        let path = format!("/.well-known/oauth-authorization-server{path}");
        let (status, document) = send(server.bare(Method::GET, &path)).await;
        assert_eq!((status, &document["issuer"]), (200, &json!(server.url(""))), "{path}");
        assert_eq!(document["token_endpoint"], json!(server.url("/oauth/token")));
        assert_eq!(document["registration_endpoint"], json!(null));
    }
    for path in ["/.well-known/oauth-authorization-server/other", "/.well-known/openid-configuration"] {
        assert_eq!(send(server.bare(Method::GET, path)).await.0, 404, "{path}");
    }
    let (status, answer) = server.post("/oauth/register", json!({"redirect_uris": [CALLBACK]})).await;
    assert_eq!((status, &answer["error"]), (403, &json!("access_denied")));
    // Clients in browsers of any origin.
    for path in ["/oauth/token", "/oauth/register", "/.well-known/oauth-authorization-server"] {
        let request = server.bare(Method::OPTIONS, path).header("origin", "https://app.example");
        let response = request.header("access-control-request-method", "POST").send().await.unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], "*", "{path}");
        let response = server.bare(Method::POST, path).header("origin", "https://app.example");
        assert_eq!(response.send().await.unwrap().headers()["access-control-allow-origin"], "*", "{path}");
    }
    let page = server.bare(Method::OPTIONS, "/oauth/authorize").header("origin", "https://app.example");
    assert!(page.send().await.unwrap().headers().get("access-control-allow-origin").is_none());
}

#[tokio::test]
async fn registrations_are_checked_and_limited() {
    let server = Server::start().await;
    for (body, expected) in [
        (json!({}), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://a.example/#x"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "x"}), "invalid_client_metadata"),
    ] {
        let (status, answer) = server.post("/oauth/register", body.clone()).await;
        assert_eq!((status, &answer["error"]), (400, &json!(expected)), "{body} {answer}");
    }
    let large = json!({"redirect_uris": [CALLBACK], "client_name": "x".repeat(100_000)});
    assert_eq!(server.post("/oauth/register", large).await.0, 413);
    let body = json!({"redirect_uris": [CALLBACK]});
    for _ in 0..100 {
        let (status, answer) = server.post("/oauth/register", body.clone()).await;
        assert_eq!(status, 201, "{answer}");
        assert!(answer["client_secret"].is_string() && answer["client_secret_expires_at"] == 0, "{answer}");
    }
    let (status, answer) = server.post("/oauth/register", body).await;
    assert_eq!((status, &answer["error"]), (429, &json!("slow_down")), "{answer}");
}
