//! `/settings` and `/doctor`.

use haft_server::settings::{EffectiveSetting, SettingSource};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, function_tool};
use crate::tenants::{tenant, with};

#[tokio::test]
async fn settings_are_for_platform_admins() {
    let setting = EffectiveSetting {
        key: "mode".to_owned(),
        value: json!("debug"),
        source: SettingSource::File,
        description: None,
    };
    let server = Server::start_with(|settings| settings.config.effective = vec![setting]).await;
    let (status, answer) = server.get("/api/settings").await;
    assert_eq!(status, 200, "{answer}");
    let expected = json!({"settings": [{"key": "mode", "value": "debug", "source": "file"}]});
    assert_eq!(answer["data"], expected);
    let stranger = tenant(&server, "acme").await;
    assert_eq!(with(&server, &stranger, Method::GET, "/api/settings", Value::Null).await.0, 403);
}

#[tokio::test]
async fn the_doctor_checks_the_installation() {
    let server = Server::start_with(|settings| settings.config.warnings = vec!["odd key".to_owned()]).await;
    server.create(function_tool("broken", "missing_function")).await;
    let (status, answer) = server.get("/api/doctor").await;
    assert_eq!(status, 200, "{answer}");
    let checks = answer["data"]["checks"].as_array().unwrap();
    let find = |name: &str| checks.iter().find(|check| check["name"].as_str().unwrap().starts_with(name));
    for (name, status) in [
        ("configuration", "warning"),
        ("disk space", "ok"),
        ("file `tokens`", "ok"),
        ("database (SQLite)", "ok"),
        ("definition `", "error"),
    ] {
        let check = find(name).unwrap_or_else(|| panic!("no `{name}`: {answer}"));
        assert_eq!(check["status"], status, "{check}");
    }
    assert!(find("home folder").is_some() && find("sandbox (").is_some(), "{answer}");
    assert_eq!((&answer["data"]["store"], answer["data"]["version"].is_string()), (&json!("SQLite"), true));

    // An admin of another tenant learns nothing of the machine.
    let stranger = tenant(&server, "acme").await;
    let (status, answer) = with(&server, &stranger, Method::GET, "/api/doctor", Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let home = server.home.path().to_str().unwrap();
    assert!(!answer.to_string().contains(home) && !answer.to_string().contains("broken"), "{answer}");
    let (_, made) = server.post("/api/tokens", json!({"name": "editor", "role": "editor"})).await;
    let editor = made["data"]["token"].as_str().unwrap();
    assert_eq!(with(&server, editor, Method::GET, "/api/doctor", Value::Null).await.0, 403);
}
