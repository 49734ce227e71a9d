//! Credentials: encrypted at rest, available to calls, never listed with their value.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{CredentialSelector, GrantId, RefreshTokens as _, Secret, SecretSource as _};
use haft_store::{Credential, CredentialPurpose, CredentialValue, Store};

use crate::harness::{Harness, eventually, on_both};

on_both![
    a_credential_is_stored_replaced_and_deleted,
    a_credential_with_fields_is_found_by_field_and_by_provider,
    names_and_values_are_checked,
    tenants_cannot_read_each_others_credentials,
    a_rotated_refresh_token_is_stored_with_its_credential,
    one_process_at_a_time_uses_a_refresh_token,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

async fn a_credential_is_stored_replaced_and_deleted(mut harness: Harness) {
    let put = async |harness: &Harness, value: &str| {
        harness.store.vault().put(tenant(), "API_KEY".into(), secret(value)).await
    };
    put(&harness, "hunter2").await.unwrap();
    assert_eq!(harness.store.vault().secret(&tenant(), "API_KEY").await.unwrap(), Some(secret("hunter2")));
    let first = harness.store.vault().list(&tenant()).await.unwrap();
    put(&harness, "hunter3").await.unwrap();
    let second = harness.store.vault().list(&tenant()).await.unwrap();
    assert_eq!(
        (second.len(), second[0].name.as_str(), second[0].created_at),
        (1, "API_KEY", first[0].created_at)
    );
    assert!(second[0].modified_at > first[0].modified_at);
    harness.restart().await;
    assert_eq!(harness.store.vault().secret(&tenant(), "API_KEY").await.unwrap(), Some(secret("hunter3")));
    harness.store.vault().delete(tenant(), "API_KEY".into()).await.unwrap();
    assert_eq!(harness.store.vault().secret(&tenant(), "API_KEY").await.unwrap(), None);
    let gone = harness.store.vault().delete(tenant(), "API_KEY".into()).await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: "credential", .. })));
}

async fn a_credential_with_fields_is_found_by_field_and_by_provider(mut harness: Harness) {
    let credential = |key: &str, variant: Option<&str>| Credential {
        value: CredentialValue::Fields(
            [("api_key", key), ("endpoint", "https://x")]
                .into_iter()
                .map(|(name, value)| (name.to_owned(), secret(value)))
                .collect(),
        ),
        purpose: CredentialPurpose {
            provider_key: Some("web_search".to_owned()),
            provider_variant: variant.map(str::to_owned),
            ..CredentialPurpose::default()
        },
    };
    for (name, key, variant) in
        [("first", "key-1", Some("serper")), ("second", "key-2", Some("serper")), ("plain", "key-3", None)]
    {
        let credential = credential(key, variant);
        harness.store.vault().store(tenant(), name.to_owned(), credential).await.unwrap();
    }
    let find = async |harness: &Harness, variant: Option<&'static str>| {
        let selector = CredentialSelector::Provider { category: "custom", key: "web_search", variant };
        let found = harness.store.vault().credential(&tenant(), selector).await.unwrap();
        found.map(|text| text.expose().to_owned())
    };
    for _ in 0..2 {
        let value = async |name: &str| {
            harness
                .store
                .vault()
                .secret(&tenant(), name)
                .await
                .unwrap()
                .map(|value| value.expose().to_owned())
        };
        assert_eq!(value("first").await.as_deref(), Some("key-1"));
        assert_eq!(value("first.endpoint").await.as_deref(), Some("https://x"));
        assert_eq!(value("first.missing").await, None);
        let newest = Some(r#"{"api_key":"key-2","endpoint":"https://x"}"#);
        assert_eq!(find(&harness, Some("serper")).await.as_deref(), newest, "the one that changed last");
        assert!(find(&harness, None).await.unwrap().contains("key-3"));
        assert_eq!(find(&harness, Some("brave")).await, None);
        harness.restart().await;
    }
    let listed = harness.store.vault().list(&tenant()).await.unwrap();
    assert_eq!(listed[0].fields.as_deref(), Some(&["api_key".to_owned(), "endpoint".to_owned()][..]));
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
        let result = harness.store.vault().put(tenant(), name.into(), secret(value)).await;
        assert_eq!(result.is_ok(), good, "{name} {result:?}");
    }
    let large = harness.store.vault().put(tenant(), "L".into(), secret(&"x".repeat(64 * 1024 + 1))).await;
    assert_eq!(large.unwrap_err().to_string(), "`value`: 65537 bytes exceed the limit of 65536");
}

async fn tenants_cannot_read_each_others_credentials(harness: Harness) {
    let other = TenantId::new("acme").unwrap();
    harness.store.vault().put(other.clone(), "KEY".into(), secret("theirs")).await.unwrap();
    assert_eq!(harness.store.vault().secret(&tenant(), "KEY").await.unwrap(), None);
    assert!(harness.store.vault().list(&tenant()).await.unwrap().is_empty());
    assert_eq!(harness.store.vault().secret(&other, "KEY").await.unwrap(), Some(secret("theirs")));
}

#[tokio::test]
async fn the_value_is_never_stored_in_plain_text() {
    let harness = Harness::sqlite().await;
    harness.store.vault().put(tenant(), "KEY".into(), secret("correct-horse-battery")).await.unwrap();
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
async fn a_wrong_or_missing_key_stops_the_start_and_loses_nothing() {
    let mut harness = Harness::sqlite().await;
    harness.store.vault().put(tenant(), "KEY".into(), secret("value")).await.unwrap();
    harness.store.close().await;
    let key = std::fs::read_to_string(harness.path("key")).unwrap();
    for (wrong, expected) in [
        (Some("cd".repeat(32)), "is not the key that the stored credentials are encrypted with"),
        (Some("cd".repeat(3)), "expected 64 hexadecimal digits"),
        (None, "is missing; restore it"),
    ] {
        match &wrong {
            Some(wrong) => std::fs::write(harness.path("key"), wrong).unwrap(),
            None => std::fs::remove_file(harness.path("key")).unwrap(),
        }
        let opened = Store::open(harness.settings(), harness.clock.clone(), harness.sink.clone()).await;
        let text = opened.err().unwrap().with_cause();
        assert!(text.contains(expected) && text.contains("key`"), "{text}");
        // No new key is created while the old one is needed.
        assert_eq!(harness.path("key").exists(), wrong.is_some());
    }
    std::fs::write(harness.path("key"), key).unwrap();
    harness.reopen().await;
    assert_eq!(harness.store.vault().secret(&tenant(), "KEY").await.unwrap(), Some(secret("value")));
}

fn grant(key: &str) -> GrantId {
    GrantId { tenant: tenant(), key: key.into(), credential: "REFRESH".into() }
}

/// Acquires the lease, stores a token, and returns the previous one.
async fn rotate(harness: &Harness, key: &str, next: Option<&str>) -> Option<Secret> {
    let lease = harness.store.vault().begin(&grant(key)).await.unwrap();
    harness.store.vault().end(&grant(key), lease.number, next.map(secret).as_ref()).await.unwrap();
    lease.token
}

async fn a_rotated_refresh_token_is_stored_with_its_credential(mut harness: Harness) {
    let put = async |harness: &Harness, value: &str| {
        harness.store.vault().put(tenant(), "REFRESH".into(), secret(value)).await.unwrap();
    };
    put(&harness, "refresh-0").await;
    assert_eq!(rotate(&harness, "a", Some("refresh-1")).await, None);
    assert_eq!(rotate(&harness, "a", Some("refresh-2")).await, Some(secret("refresh-1")));
    assert_eq!(rotate(&harness, "b", None).await, None, "another grant has its own");
    harness.restart().await;
    assert_eq!(rotate(&harness, "a", Some("refresh-2")).await, Some(secret("refresh-2")));
    if harness.is_embedded() {
        harness.store.close().await;
        let database = std::fs::read(harness.path("haft.db")).unwrap();
        assert!(!database.windows(9).any(|part| part == b"refresh-2"), "it is encrypted");
        harness.reopen().await;
    }
    // Storing the same value keeps the token; another value or a deletion removes it.
    put(&harness, "refresh-0").await;
    assert_eq!(rotate(&harness, "a", Some("refresh-3")).await, Some(secret("refresh-2")));
    put(&harness, "from-a-new-login").await;
    assert_eq!(rotate(&harness, "a", Some("refresh-4")).await, None);
    harness.store.vault().delete(tenant(), "REFRESH".into()).await.unwrap();
    assert_eq!(rotate(&harness, "a", Some("refresh-5")).await, None);
    // The server rejected the token.
    assert_eq!(rotate(&harness, "a", None).await, Some(secret("refresh-5")));
    assert_eq!(rotate(&harness, "a", Some("refresh-6")).await, None);
    harness.clock.advance(24 * 401);
    harness.store.reap().await.unwrap();
    assert_eq!(rotate(&harness, "a", None).await, None, "unused for more than the retention time");
}

async fn one_process_at_a_time_uses_a_refresh_token(harness: Harness) {
    let (other, _) = harness.another().await;
    let mine = harness.store.vault().begin(&grant("a")).await.unwrap();
    let waiting = tokio::spawn({
        let other = std::sync::Arc::clone(&other);
        async move { other.vault().begin(&grant("a")).await.unwrap() }
    });
    // Every attempt reads the clock, which nothing else does meanwhile.
    let start = harness.clock.peek();
    eventually("several attempts", || harness.clock.peek() >= start + 3000).await;
    assert!(!waiting.is_finished(), "the lease is held");
    harness.store.vault().end(&grant("a"), mine.number, Some(&secret("newest"))).await.unwrap();
    let theirs = waiting.await.unwrap();
    assert_eq!(theirs.token, Some(secret("newest")));
    // An expired lease blocks nobody, and its token is not stored.
    harness.clock.advance(1);
    let next = harness.store.vault().begin(&grant("a")).await.unwrap();
    other.vault().end(&grant("a"), theirs.number, Some(&secret("stale"))).await.unwrap();
    harness.store.vault().end(&grant("a"), next.number, Some(&secret("fresh"))).await.unwrap();
    assert_eq!(rotate(&harness, "a", None).await, Some(secret("fresh")));
    other.close().await;
}
