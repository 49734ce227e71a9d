//! Secrets outside of haft in calls: what is sent, what is masked, and who may read them.

use haft_core::secret::Secret;
use haft_server::settings::{SecretCommandSettings, Settings, VaultSettings};
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::http::HeaderMap;
use haft_testkit::upstream::axum::{Json, Router};
use haft_testkit::vault::TestVault;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};
use crate::tenants::{tenant, with};

const TOKEN: &str = "hvs.token-of-haft";

/// A server that repeats the headers of a request.
async fn echo() -> Upstream {
    let headers = |headers: HeaderMap| async move {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        Json(json!({"key": header("x-key"), "authorization": header("authorization")}))
    };
    Upstream::serve(Router::new().fallback(headers)).await.unwrap()
}

fn http_tool(name: &str, implementation: Value) -> Value {
    let mut tool = function_tool(name, "echo");
    tool["implementation"] = implementation;
    tool
}

fn with_vault(settings: &mut Settings, vault: &TestVault) {
    settings.secrets.sources.vault = VaultSettings {
        address: vault.address(),
        token: Some(Secret::new(TOKEN.to_owned())),
        ..VaultSettings::default()
    };
}

async fn vault() -> TestVault {
    let vault = TestVault::start().await.unwrap();
    vault.accept(TOKEN);
    vault.put("apps/x", r#"{"token":"s3cr3t-of-vault","username":"ada","password":"pass-word-1"}"#);
    vault
}

#[tokio::test]
async fn a_secret_of_vault_is_sent_and_masked() {
    let (vault, site) = (vault().await, echo().await);
    let server = Server::start_with(|settings| with_vault(settings, &vault)).await;
    let headers = json!({"X-Key": "${vault:apps/x#token}"});
    let tool = http_tool("plain", json!({"type": "http", "url": site.url("/"), "headers": headers}));
    let created = server.create(tool).await;
    assert_eq!(created.get("warnings"), None, "{created}");
    assert!(vault.requests("/v1/").is_empty(), "nothing is read when a definition is saved");
    let shown = server.get("/api/tools/plain").await.1.to_string();
    assert!(shown.contains("${vault:apps/x#token}"), "{shown}");

    let (status, answer) = server.invoke("plain", json!({})).await;
    assert_eq!((status, &answer["value"]["key"]), (200, &json!("***")), "{answer}");
    assert_eq!(site.seen().last().unwrap().headers["x-key"], "s3cr3t-of-vault");
    let (_, record) = server.get(&format!("/api/calls/{}", answer["call_id"].as_str().unwrap())).await;
    for text in [&answer, &record] {
        assert!(!text.to_string().contains("s3cr3t-of-vault"), "{text}");
    }

    // The parameter of a URL, and all keys of a path as a credential.
    let url = site.url("/?key=${vault:apps/x#token}");
    server.create(http_tool("in-url", json!({"type": "http", "url": url}))).await;
    assert_eq!(server.invoke("in-url", json!({})).await.1["ok"], true);
    assert_eq!(site.seen().last().unwrap().target, "/?key=s3cr3t-of-vault");
    let shown = server.get("/api/tools/in-url").await.1.to_string();
    assert!(shown.contains("?key=${vault:apps/x#token}"), "{shown}");
    let auth = json!({"type": "basic", "credential": "vault:apps/x"});
    server.create(http_tool("basic", json!({"type": "http", "url": site.url("/"), "auth": auth}))).await;
    let (_, answer) = server.invoke("basic", json!({})).await;
    assert_eq!(answer["value"]["authorization"], "Basic ***", "{answer}");
    let sent = site.seen().last().unwrap().headers["authorization"].clone();
    assert_eq!(sent, "Basic YWRhOnBhc3Mtd29yZC0x");
}

#[tokio::test]
async fn a_stored_reference_stands_for_the_secret() {
    let vault = vault().await;
    let server = Server::start_with(|settings| with_vault(settings, &vault)).await;
    let stored = json!({"value": "${vault:apps/x#token}"});
    assert_eq!(server.put("/api/credentials/DEPLOY_KEY", stored).await.0, 200);
    let script = json!({
        "name": "show", "description": "Prints a secret", "runtime": "bash",
        "body": "echo \"key: $DEPLOY_KEY ${#DEPLOY_KEY}\"",
    });
    let created = server.create(script).await;
    assert_eq!(created.get("warnings"), None, "{created}");
    let (_, answer) = server.invoke("show", json!({})).await;
    assert_eq!(answer["value"], "key: *** 15", "{answer}");

    // A python literal, and the environment of a command.
    let python = json!({
        "name": "python", "description": "Prints a secret", "runtime": "python",
        "body": "print(len('${vault:apps/x#token}'), '${vault:apps/x#token}')",
    });
    server.create(python).await;
    let (_, answer) = server.invoke("python", json!({})).await;
    assert_eq!(answer["value"], "15 ***", "{answer}");
    let argv = json!(["sh", "-c", "printf '%s %s' $${#KEY} $KEY"]);
    let env = json!({"KEY": "${vault:apps/x#token}"});
    server.create(http_tool("command", json!({"type": "exec", "argv": argv, "env": env}))).await;
    let (_, answer) = server.invoke("command", json!({})).await;
    assert_eq!(answer["value"], "15 ***", "{answer}");
}

#[tokio::test]
async fn a_stored_path_has_the_fields_of_the_secret() {
    let (vault, site) = (vault().await, echo().await);
    let server = Server::start_with(|settings| with_vault(settings, &vault)).await;
    for (name, value) in [("DB", "${vault:apps/x}"), ("KEYED", "${vault:apps/x#token}")] {
        let path = format!("/api/credentials/{name}");
        assert_eq!(server.put(&path, json!({"value": value})).await.0, 200);
    }
    let tool = |name: &str, auth: Value, key: &str| {
        let headers = json!({"X-Key": key});
        http_tool(name, json!({"type": "http", "url": site.url("/"), "auth": auth, "headers": headers}))
    };
    let auth = json!({"type": "basic", "credential": "DB"});
    let created = server.create(tool("fields", auth.clone(), "${DB.token}")).await;
    assert_eq!(created.get("warnings"), None, "{created}");
    assert_eq!(server.invoke("fields", json!({})).await.0, 200);
    let sent = site.seen().last().unwrap().headers.clone();
    let expected = ("Basic YWRhOnBhc3Mtd29yZC0x", "s3cr3t-of-vault");
    assert_eq!((sent["authorization"].as_str(), sent["x-key"].as_str()), expected);
    // A reference with a key is one text.
    let created = server.create(tool("keyed", auth, "${KEYED.token}")).await;
    assert!(created["warnings"].to_string().contains("`KEYED.token` is not stored"), "{created}");
    for credential in ["cmd:x", "vault:apps/x#token"] {
        let auth = json!({"type": "basic", "credential": credential});
        let (status, answer) = server.post("/api/tools", tool("bad", auth, "x")).await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
        let expected = format!("`{credential}` is one text and has no `username` and `password`");
        assert!(answer.to_string().contains(&expected), "{answer}");
    }
}

#[tokio::test]
async fn doctor_warns_if_tenants_share_the_paths_of_vault() {
    let vault = vault().await;
    for (prefix, expected) in [("", "warning"), ("tenants/{tenant}", "")] {
        let server = Server::start_with(|settings| {
            with_vault(settings, &vault);
            settings.secrets.sources.vault.tenants = vec!["*".to_owned()];
            settings.secrets.sources.vault.path_prefix = prefix.to_owned();
        })
        .await;
        let (_, doctor) = server.get("/api/doctor").await;
        let checks = doctor["data"]["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "paths in Vault");
        let status = check.map_or("", |check| check["status"].as_str().unwrap());
        assert_eq!(status, expected, "{doctor}");
    }
}

#[tokio::test]
async fn a_source_that_is_missing_or_fails_says_why() {
    let (vault, site) = (vault().await, echo().await);
    let server = Server::start_with(|settings| with_vault(settings, &vault)).await;
    let tool = |name: &str, reference: &str| {
        let headers = json!({"X-Key": reference});
        http_tool(name, json!({"type": "http", "url": site.url("/"), "headers": headers}))
    };
    let created = server.create(tool("file", "${file:db/password}")).await;
    let missing = "secret `file:db/password`: no source for `file:` is configured; set `secrets.files.directory` in `haft.toml`";
    assert_eq!(created["warnings"][0]["message"], missing, "{created}");
    let (_, answer) = server.invoke("file", json!({})).await;
    let error = &answer["error"];
    let message = "failed to read the secret `file:db/password`: no source for `file:` is configured; set `secrets.files.directory` in `haft.toml`";
    assert_eq!((code(&answer), &error["message"]), ("secret_missing", &json!(message)), "{answer}");
    let model = "Tool call failed: a credential of this tool is not configured";
    assert_eq!((&error["model_text"], &error["retryable"]), (&json!(model), &json!(false)));

    let (status, answer) = server.post("/api/tools", tool("bad", "${vault:../sys#key}")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    assert!(answer.to_string().contains("the path has the part `.` or `..`"), "{answer}");

    server.create(tool("sealed", "${vault:apps/x#token}")).await;
    vault.fail_with(Some(503));
    let (_, answer) = server.invoke("sealed", json!({})).await;
    let message = "failed to read the secret `vault:apps/x#token`: Vault is sealed";
    let error = &answer["error"];
    assert_eq!((code(&answer), &error["message"]), ("secret_missing", &json!(message)), "{answer}");
    let model = "Tool call failed: a credential of this tool is currently unavailable";
    assert_eq!((&error["model_text"], &error["retryable"]), (&json!(model), &json!(true)));
    assert!(!answer.to_string().contains(TOKEN));

    let (_, doctor) = server.get("/api/doctor").await;
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "secrets of `vault:`").unwrap();
    assert_eq!((&check["status"], &check["message"]), (&json!("error"), &json!("Vault is sealed")));
}

#[tokio::test]
async fn another_tenant_reads_only_what_the_settings_allow() {
    let (vault, site) = (vault().await, echo().await);
    let server = Server::start_with(|settings| {
        with_vault(settings, &vault);
        settings.secrets.environment = vec![("KEY".to_owned(), Secret::new("of-environment".to_owned()))];
        let print = SecretCommandSettings::new(vec!["echo".to_owned(), "of-command".to_owned()]);
        let open = SecretCommandSettings { tenants: vec!["*".to_owned()], ..print };
        settings.secrets.sources.commands.insert("open".to_owned(), open);
    })
    .await;
    let token = tenant(&server, "acme").await;
    let acme = async |method, path: &str, body| with(&server, &token, method, path, body).await.1;
    for (name, reference, expected) in [
        ("from-vault", "${vault:apps/x#token}", "add the tenant to `secrets.vault.tenants`"),
        ("from-environment", "${env:KEY}", "add it to the `environment` of the tenant"),
        ("from-command", "${cmd:open}", ""),
    ] {
        let headers = json!({"X-Key": reference});
        let tool = http_tool(name, json!({"type": "http", "url": site.url("/"), "headers": headers}));
        server.create(tool.clone()).await;
        let (_, answer) = server.invoke(name, json!({})).await;
        assert_eq!(answer["value"]["key"], "***", "{answer}");
        let created = acme(Method::POST, "/api/tools", tool).await;
        let answer = acme(Method::POST, &format!("/api/tools/{name}/invoke"), json!({})).await;
        if expected.is_empty() {
            assert_eq!(answer["value"]["key"], "***", "{answer}");
            assert_eq!(site.seen().last().unwrap().headers["x-key"], "of-command");
        } else {
            let warning = created["data"]["warnings"][0]["message"].as_str().unwrap();
            assert!(warning.ends_with(expected), "{warning}");
            assert_eq!(code(&answer), "secret_missing", "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().ends_with(expected), "{answer}");
        }
    }
}
