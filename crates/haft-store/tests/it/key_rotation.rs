//! Rotation of the key of the credentials: a crash at any point loses nothing.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{GrantId, RefreshTokens as _, Secret, SecretSource as _};
use haft_store::{KeyRotation, Store, StoreSettings};

use crate::harness::{Harness, on_both};

on_both![
    every_value_is_encrypted_with_a_configured_key,
    a_node_without_the_new_key_reports_it_and_changes_nothing,
    signing_keys_are_encrypted_and_stay_the_same,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn grant() -> GrantId {
    GrantId { tenant: tenant(), key: "a".into(), credential: "KEY".into() }
}

async fn store_values(store: &Store) {
    store.vault().put(tenant(), "KEY".into(), secret("value")).await.unwrap();
    store.vault().put(TenantId::new("acme").unwrap(), "KEY".into(), secret("theirs")).await.unwrap();
    let lease = store.vault().begin(&grant()).await.unwrap();
    store.vault().end(&grant(), lease.number, Some(&secret("refresh-1"))).await.unwrap();
}

async fn assert_values(store: &Store) {
    assert_eq!(store.vault().secret(&tenant(), "KEY").await.unwrap(), Some(secret("value")));
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(store.vault().secret(&acme, "KEY").await.unwrap(), Some(secret("theirs")));
    assert_eq!(store.vault().read(&grant()).await.unwrap(), Some(secret("refresh-1")));
}

async fn open(harness: &Harness, settings: StoreSettings) -> Result<std::sync::Arc<Store>, StoreError> {
    Store::open(settings, harness.clock.clone(), harness.sink.clone()).await
}

const OLD: &str = "ab";
const NEW: &str = "ef";

/// Returns settings with keys that repeat these digits.
fn configured(harness: &Harness, key: &str, new_key: Option<&str>) -> StoreSettings {
    let key_of = |digits: &str| secret(&digits.repeat(32));
    StoreSettings { key: Some(key_of(key)), new_key: new_key.map(key_of), ..harness.settings() }
}

async fn every_value_is_encrypted_with_a_configured_key(harness: Harness) {
    let settings = |old: &str, new: Option<&str>| configured(&harness, old, new);
    let store = open(&harness, settings(OLD, Some(NEW))).await.unwrap();
    store_values(&store).await;
    let rotated = store.vault().rotate_key().await.unwrap();
    assert_eq!(rotated, KeyRotation { generation: 2, credentials: 2, is_configured: true });
    assert_values(&store).await;
    store.vault().put(tenant(), "LATER".into(), secret("later")).await.unwrap();
    let again = store.vault().rotate_key().await.unwrap_err();
    assert!(again.to_string().contains("already in force"), "{again}");
    store.close().await;
    // Both keys, and the new one alone.
    for (key, new) in [(OLD, Some(NEW)), (NEW, None)] {
        let store = open(&harness, settings(key, new)).await.unwrap();
        assert_values(&store).await;
        assert_eq!(store.vault().secret(&tenant(), "LATER").await.unwrap(), Some(secret("later")));
        store.close().await;
    }
    let refused = open(&harness, settings(OLD, None)).await.err().unwrap();
    let text = refused.with_cause();
    assert!(text.contains("not the key that the stored credentials are encrypted with"), "{text}");
    let store = open(&harness, settings(NEW, None)).await.unwrap();
    let missing = store.vault().rotate_key().await.unwrap_err();
    assert!(missing.to_string().contains("HAFT_KEY_NEW"), "{missing}");
    assert_values(&store).await;
    store.close().await;
}

async fn a_node_without_the_new_key_reports_it_and_changes_nothing(harness: Harness) {
    let rotating = open(&harness, configured(&harness, OLD, Some(NEW))).await.unwrap();
    store_values(&rotating).await;
    let stale = open(&harness, configured(&harness, OLD, None)).await.unwrap();
    assert_values(&stale).await;
    rotating.vault().rotate_key().await.unwrap();
    let error = stale.vault().put(tenant(), "KEY".into(), secret("other")).await.unwrap_err();
    assert!(error.with_cause().contains("set `HAFT_KEY` to the new one"), "{}", error.with_cause());
    assert_values(&rotating).await;
    for store in [stale, rotating] {
        store.close().await;
    }
}

async fn signing_keys_are_encrypted_and_stay_the_same(harness: Harness) {
    use base64::Engine as _;
    use sqlx::{Connection as _, Row as _};

    let url = match harness.settings().database_url {
        Some(url) => url.expose().to_owned(),
        None => format!("sqlite://{}", harness.path("haft.db").display()),
    };
    let stored = async || {
        let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
        let query = sqlx::query("SELECT value FROM signing_keys WHERE purpose = 'test'");
        let value: String = query.fetch_one(&mut connection).await.unwrap().get(0);
        value
    };
    // A version that knew no better left it in clear.
    let key = harness.store.signing_key("test").await.unwrap();
    assert_eq!(base64::engine::general_purpose::STANDARD.decode(stored().await).unwrap(), key);
    let store = open(&harness, configured(&harness, OLD, Some(NEW))).await.unwrap();
    assert!(stored().await.starts_with("sealed:"), "encrypted with the configured key");
    assert_eq!(store.signing_key("test").await.unwrap(), key);
    let before = stored().await;
    store.vault().rotate_key().await.unwrap();
    assert_ne!(stored().await, before);
    assert_eq!(store.signing_key("test").await.unwrap(), key, "a rotation ends no application");
    store.close().await;
    assert!(open(&harness, configured(&harness, OLD, None)).await.is_err());
    let store = open(&harness, configured(&harness, NEW, None)).await.unwrap();
    assert_eq!(store.signing_key("test").await.unwrap(), key);
    store.close().await;
}

#[tokio::test]
async fn a_home_gets_its_key_when_something_is_signed() {
    let harness = Harness::sqlite().await;
    let key = harness.store.signing_key("test").await.unwrap();
    assert!(!harness.path("key").exists());
    harness.store.protect_signing_keys().await.unwrap();
    assert!(harness.path("key").exists());
    assert_eq!(harness.store.signing_key("test").await.unwrap(), key);
}

#[tokio::test]
async fn a_key_file_is_rotated_without_a_restart() {
    let mut harness = Harness::sqlite().await;
    store_values(&harness.store).await;
    let (other, _) = harness.another().await;
    let before = std::fs::read_to_string(harness.path("key")).unwrap();
    let rotated = harness.store.vault().rotate_key().await.unwrap();
    assert_eq!(rotated, KeyRotation { generation: 2, credentials: 2, is_configured: false });
    let after = std::fs::read_to_string(harness.path("key")).unwrap();
    assert_ne!(before, after);
    assert!(!harness.path("key.new").exists());
    // A process that was open before uses the new key.
    other.vault().put(tenant(), "LATER".into(), secret("later")).await.unwrap();
    assert_values(&other).await;
    other.close().await;
    harness.restart().await;
    assert_values(&harness.store).await;
    assert_eq!(harness.store.vault().secret(&tenant(), "LATER").await.unwrap(), Some(secret("later")));
    assert_eq!(harness.store.vault().rotate_key().await.unwrap().generation, 3);
    assert_values(&harness.store).await;
}

#[tokio::test]
async fn an_empty_store_can_be_rotated() {
    let mut harness = Harness::sqlite().await;
    assert_eq!(harness.store.vault().rotate_key().await.unwrap().credentials, 0);
    store_values(&harness.store).await;
    harness.restart().await;
    assert_values(&harness.store).await;
}

#[tokio::test]
async fn a_crash_before_the_commit_keeps_the_old_key() {
    let mut harness = Harness::sqlite().await;
    store_values(&harness.store).await;
    let key = std::fs::read_to_string(harness.path("key")).unwrap();
    // Complete, truncated and empty files.
    for pending in ["cd".repeat(32), "cd".repeat(8), String::new()] {
        std::fs::write(harness.path("key.new"), &pending).unwrap();
        harness.restart().await;
        assert_values(&harness.store).await;
        assert!(!harness.path("key.new").exists(), "{pending}");
        assert_eq!(std::fs::read_to_string(harness.path("key")).unwrap(), key);
    }
}

#[tokio::test]
async fn a_crash_after_the_commit_keeps_the_new_key() {
    let mut harness = Harness::sqlite().await;
    store_values(&harness.store).await;
    let old = std::fs::read_to_string(harness.path("key")).unwrap();
    harness.store.vault().rotate_key().await.unwrap();
    let new = std::fs::read_to_string(harness.path("key")).unwrap();
    // The key file is the old one, or was removed by hand, or is damaged.
    for current in [Some(old.as_str()), None, Some("damaged")] {
        std::fs::write(harness.path("key.new"), &new).unwrap();
        match current {
            Some(text) => std::fs::write(harness.path("key"), text).unwrap(),
            None => std::fs::remove_file(harness.path("key")).unwrap(),
        }
        // A running process does not need the rename.
        harness.store.vault().put(tenant(), "LATER".into(), secret("later")).await.unwrap();
        assert_values(&harness.store).await;
        harness.restart().await;
        assert_values(&harness.store).await;
        assert_eq!(harness.store.vault().secret(&tenant(), "LATER").await.unwrap(), Some(secret("later")));
        assert_eq!(std::fs::read_to_string(harness.path("key")).unwrap(), new);
        assert!(!harness.path("key.new").exists());
    }
    // A rotation after an unfinished one does not overwrite the key in force.
    std::fs::rename(harness.path("key"), harness.path("key.new")).unwrap();
    std::fs::write(harness.path("key"), old).unwrap();
    harness.store.vault().rotate_key().await.unwrap();
    assert_values(&harness.store).await;
    harness.restart().await;
    assert_values(&harness.store).await;
}

#[tokio::test]
async fn a_rotation_that_fails_changes_nothing() {
    let mut harness = Harness::sqlite().await;
    store_values(&harness.store).await;
    let url = format!("sqlite://{}", harness.path("haft.db").display());
    let database = sqlx::SqlitePool::connect(&url).await.unwrap();
    let spoil = "UPDATE credentials SET sealed = 'AAAA' WHERE tenant = 'acme'";
    sqlx::query(spoil).execute(&database).await.unwrap();
    let error = harness.store.vault().rotate_key().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the credential `KEY` of the tenant `acme` cannot be decrypted; delete it or store it again, then rotate the key"
    );
    harness.restart().await;
    assert_eq!(harness.store.vault().secret(&tenant(), "KEY").await.unwrap(), Some(secret("value")));
    assert!(!harness.path("key.new").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_reads_the_rotated_credentials() {
    let harness = Harness::postgres().await;
    let rotating = open(&harness, configured(&harness, OLD, Some(NEW))).await.unwrap();
    store_values(&rotating).await;
    let other = open(&harness, configured(&harness, OLD, Some(NEW))).await.unwrap();
    rotating.vault().rotate_key().await.unwrap();
    other.vault().put(tenant(), "LATER".into(), secret("later")).await.unwrap();
    assert_values(&other).await;
    for store in [other, rotating] {
        store.close().await;
    }
    let last = open(&harness, configured(&harness, NEW, None)).await.unwrap();
    assert_values(&last).await;
    last.close().await;
}
