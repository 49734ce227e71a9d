//! Access tokens.

use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::secret::{Secret, SecretSource as _};
use haft_core::token::{PreviousToken, Role, TokenRecord};
use haft_store::TokenRotation;

use crate::harness::{Harness, on_both};

on_both![
    a_token_is_stored_listed_and_deleted,
    a_rotated_token_has_a_new_value,
    the_rate_of_a_token_is_stored,
    the_last_use_never_moves_back,
    other_processes_receive_token_and_credential_changes,
];

fn token() -> TokenRecord {
    token_of(&TenantId::default_tenant())
}

/// Returns a token of a tenant.
pub(crate) fn token_of(tenant: &TenantId) -> TokenRecord {
    let number = if tenant.is_default() { 1 } else { 2 };
    TokenRecord {
        id: format!("018faf50-b7b6-7a01-9a05-a22a6e0af10{number}").parse().unwrap(),
        tenant: tenant.clone(),
        name: "first".into(),
        hash: haft_core::hash::of_bytes(tenant.as_str().as_bytes()),
        role: Role::Admin,
        elevated: true,
        platform: tenant.is_default(),
        tools: AllowList::new(["weather", "web:*", "tag:safe"]).unwrap(),
        rate_limit: None,
        created_at: "2026-08-01T10:00:00Z".parse().unwrap(),
        expires_at: Some("2027-08-01T10:00:00Z".parse().unwrap()),
        last_used_at: None,
        previous: None,
        parent: None,
        actor: None,
    }
}

async fn the_rate_of_a_token_is_stored(harness: Harness) {
    let rate = |calls, seconds| Some(CallRate { calls, period: Duration::from_secs(seconds) });
    let token = TokenRecord { rate_limit: rate(60, 90), ..token() };
    harness.store.access().insert_token(&token).await.unwrap();
    for rate_limit in [rate(60, 90), rate(1, 86_400), None] {
        harness.store.access().set_token_rate(token.id, rate_limit).await.unwrap();
        let expected = TokenRecord { rate_limit, ..token.clone() };
        assert_eq!(harness.store.access().tokens().await.unwrap(), [expected]);
    }
    let unknown = "018faf50-b7b6-7a01-9a05-a22a6e0af199".parse().unwrap();
    let error = harness.store.access().set_token_rate(unknown, None).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error:?}");
}

async fn a_rotated_token_has_a_new_value(mut harness: Harness) {
    let token = token();
    harness.store.access().insert_token(&token).await.unwrap();
    let expires_at = "2026-08-01T11:00:00Z".parse().unwrap();
    let previous = Some(PreviousToken { hash: token.hash.clone(), expires_at });
    let rotation = TokenRotation { id: token.id, hash: "new".into(), previous, expires_at: token.expires_at };
    let mut changes = harness.store.access().token_changes();
    changes.mark_unchanged();
    harness.store.access().rotate_token(rotation.clone()).await.unwrap();
    assert!(changes.has_changed().unwrap());
    let rotated = TokenRecord { hash: "new".into(), previous: rotation.previous.clone(), ..token };
    harness.restart().await;
    assert_eq!(harness.store.access().tokens().await.unwrap(), [rotated]);
    let unknown = TokenRotation { id: "018faf50-b7b6-7a01-9a05-a22a6e0af109".parse().unwrap(), ..rotation };
    assert!(matches!(harness.store.access().rotate_token(unknown).await, Err(StoreError::NotFound { .. })));
}

async fn the_last_use_never_moves_back(harness: Harness) {
    harness.store.access().insert_token(&token()).await.unwrap();
    let mut changes = harness.store.access().token_changes();
    changes.mark_unchanged();
    for (use_at, expected) in
        [("2026-08-01T10:00:00Z", "10"), ("2026-08-01T12:00:00Z", "12"), ("2026-08-01T11:00:00Z", "12")]
    {
        harness.store.access().record_token_use(vec![(token().id, use_at.parse().unwrap())]).await.unwrap();
        let stored = harness.store.access().tokens().await.unwrap()[0].last_used_at;
        assert_eq!(stored, Some(format!("2026-08-01T{expected}:00:00Z").parse().unwrap()));
    }
    assert!(!changes.has_changed().unwrap(), "no node loads the tokens again");
}

async fn a_token_is_stored_listed_and_deleted(mut harness: Harness) {
    let token = token();
    let mut changes = harness.store.access().token_changes();
    harness.store.access().insert_token(&token).await.unwrap();
    assert!(matches!(harness.store.access().insert_token(&token).await, Err(StoreError::Conflict(_))));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    harness.restart().await;
    assert_eq!(harness.store.access().tokens().await.unwrap(), std::slice::from_ref(&token));
    harness.store.access().delete_token(token.id).await.unwrap();
    assert!(matches!(harness.store.access().delete_token(token.id).await, Err(StoreError::NotFound { .. })));
    assert!(harness.store.access().tokens().await.unwrap().is_empty());
}

async fn other_processes_receive_token_and_credential_changes(harness: Harness) {
    let (other, _) = harness.another().await;
    let watching = other.watch();
    let mut changes = other.access().token_changes();
    let tenant = TenantId::default_tenant();
    let limit = std::time::Duration::from_mins(1);
    // The first change may be the start of the watch itself.
    for stored in [true, false, true] {
        if stored {
            harness.store.access().insert_token(&token()).await.unwrap();
        } else {
            harness.store.access().delete_token(token().id).await.unwrap();
        }
        tokio::time::timeout(limit, changes.changed()).await.unwrap().unwrap();
    }
    assert_eq!(other.access().tokens().await.unwrap(), [token()]);
    for (value, expected) in [(Some("one"), Some("one")), (Some("two"), Some("two")), (None, None)] {
        match value {
            Some(value) => {
                let value = Secret::new(value.to_owned());
                harness.store.vault().put(tenant.clone(), "KEY".into(), value).await.unwrap();
            }
            None => harness.store.vault().delete(tenant.clone(), "KEY".into()).await.unwrap(),
        }
        let expected = expected.map(|text: &str| Secret::new(text.to_owned()));
        tokio::time::timeout(limit, async {
            while other.vault().secret(&tenant, "KEY").await.unwrap() != expected {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
    }
    watching.stop().await;
    other.close().await;
}
