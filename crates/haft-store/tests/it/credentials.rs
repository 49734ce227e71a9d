//! Credentials: sealed at rest, open for calls, never listed with their value.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource as _};

use crate::harness::{Harness, on_both};

on_both![
    a_credential_is_stored_replaced_and_deleted,
    names_and_values_are_checked,
    tenants_do_not_see_each_others,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

async fn a_credential_is_stored_replaced_and_deleted(mut harness: Harness) {
    let put = async |harness: &Harness, value: &str| {
        harness.store.put_credential(tenant(), "API_KEY".into(), secret(value)).await
    };
    put(&harness, "hunter2").await.unwrap();
    assert_eq!(harness.store.secret(&tenant(), "API_KEY").await.unwrap(), Some(secret("hunter2")));
    let first = harness.store.credentials(&tenant()).await.unwrap();
    put(&harness, "hunter3").await.unwrap();
    let second = harness.store.credentials(&tenant()).await.unwrap();
    assert_eq!(
        (second.len(), second[0].name.as_str(), second[0].created_at),
        (1, "API_KEY", first[0].created_at)
    );
    assert!(second[0].modified_at > first[0].modified_at);
    harness.restart().await;
    assert_eq!(harness.store.secret(&tenant(), "API_KEY").await.unwrap(), Some(secret("hunter3")));
    harness.store.delete_credential(tenant(), "API_KEY".into()).await.unwrap();
    assert_eq!(harness.store.secret(&tenant(), "API_KEY").await.unwrap(), None);
    let gone = harness.store.delete_credential(tenant(), "API_KEY".into()).await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: "credential", .. })));
}

async fn names_and_values_are_checked(harness: Harness) {
    let long = "x".repeat(129);
    for (name, value, good) in [
        ("API_KEY", "v", true),
        ("_a.b-c9", "v", true),
        ("", "v", false),
        ("9a", "v", false),
        ("a b", "v", false),
        ("a/b", "v", false),
        ("ä", "v", false),
        (long.as_str(), "v", false),
        ("EMPTY", "", false),
        ("MASKED", "***", false),
    ] {
        let result = harness.store.put_credential(tenant(), name.into(), secret(value)).await;
        assert_eq!(result.is_ok(), good, "{name} {result:?}");
    }
    let large = harness.store.put_credential(tenant(), "L".into(), secret(&"x".repeat(64 * 1024 + 1))).await;
    assert_eq!(large.unwrap_err().to_string(), "`value`: it has 65537 bytes; at most 65536 are kept");
}

async fn tenants_do_not_see_each_others(harness: Harness) {
    let other = TenantId::new("acme").unwrap();
    harness.store.put_credential(other.clone(), "KEY".into(), secret("theirs")).await.unwrap();
    assert_eq!(harness.store.secret(&tenant(), "KEY").await.unwrap(), None);
    assert!(harness.store.credentials(&tenant()).await.unwrap().is_empty());
    assert_eq!(harness.store.secret(&other, "KEY").await.unwrap(), Some(secret("theirs")));
}

#[tokio::test]
async fn the_value_is_nowhere_on_disk() {
    let harness = Harness::sqlite().await;
    harness.store.put_credential(tenant(), "KEY".into(), secret("correct-horse-battery")).await.unwrap();
    harness.store.close().await;
    for entry in std::fs::read_dir(harness.home()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("correct-horse-battery"), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn a_wrong_or_lost_key_is_said_and_loses_nothing() {
    let mut harness = Harness::sqlite().await;
    harness.store.put_credential(tenant(), "KEY".into(), secret("value")).await.unwrap();
    let key = std::fs::read_to_string(harness.path("key")).unwrap();
    for (wrong, expected) in
        [(Some("cd".repeat(32)), "is not the one it was encrypted with"), (None, "is missing")]
    {
        match wrong {
            Some(wrong) => std::fs::write(harness.path("key"), wrong).unwrap(),
            None => std::fs::remove_file(harness.path("key")).unwrap(),
        }
        harness.restart().await;
        let error = harness.store.secret(&tenant(), "KEY").await.unwrap_err();
        let text = error.source.to_string();
        assert!(text.contains(expected) && text.contains("key`"), "{text}");
        assert_eq!(harness.store.credentials(&tenant()).await.unwrap().len(), 1);
    }
    // A new key must not be made while the old one is needed.
    assert!(harness.store.put_credential(tenant(), "OTHER".into(), secret("x")).await.is_err());
    std::fs::write(harness.path("key"), key).unwrap();
    harness.restart().await;
    assert_eq!(harness.store.secret(&tenant(), "KEY").await.unwrap(), Some(secret("value")));
}
