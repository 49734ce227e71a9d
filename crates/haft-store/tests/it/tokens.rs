//! Access tokens.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource as _};
use haft_core::token::{Role, TokenRecord};

use crate::harness::{Harness, on_both};

on_both![a_token_is_stored_listed_and_deleted, other_processes_receive_token_and_credential_changes];

fn token() -> TokenRecord {
    TokenRecord {
        id: "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap(),
        tenant: TenantId::default_tenant(),
        name: "first".into(),
        hash: haft_core::hash::of_bytes(b"secret"),
        role: Role::Admin,
        elevated: true,
        created_at: "2026-08-01T10:00:00Z".parse().unwrap(),
        expires_at: Some("2027-08-01T10:00:00Z".parse().unwrap()),
    }
}

async fn a_token_is_stored_listed_and_deleted(mut harness: Harness) {
    let token = token();
    let mut changes = harness.store.token_changes();
    harness.store.insert_token(&token).await.unwrap();
    assert!(matches!(harness.store.insert_token(&token).await, Err(StoreError::Conflict(_))));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    harness.restart().await;
    assert_eq!(harness.store.tokens().await.unwrap(), std::slice::from_ref(&token));
    harness.store.delete_token(token.id).await.unwrap();
    assert!(matches!(harness.store.delete_token(token.id).await, Err(StoreError::NotFound { .. })));
    assert!(harness.store.tokens().await.unwrap().is_empty());
}

async fn other_processes_receive_token_and_credential_changes(harness: Harness) {
    let (other, _) = harness.another().await;
    let watching = other.watch();
    let mut changes = other.token_changes();
    let tenant = TenantId::default_tenant();
    let limit = std::time::Duration::from_mins(1);
    // The first change may be the start of the watch itself.
    for stored in [true, false, true] {
        if stored {
            harness.store.insert_token(&token()).await.unwrap();
        } else {
            harness.store.delete_token(token().id).await.unwrap();
        }
        tokio::time::timeout(limit, changes.changed()).await.unwrap().unwrap();
    }
    assert_eq!(other.tokens().await.unwrap(), [token()]);
    for (value, expected) in [(Some("one"), Some("one")), (Some("two"), Some("two")), (None, None)] {
        match value {
            Some(value) => {
                let value = Secret::new(value.to_owned());
                harness.store.put_credential(tenant.clone(), "KEY".into(), value).await.unwrap();
            }
            None => harness.store.delete_credential(tenant.clone(), "KEY".into()).await.unwrap(),
        }
        let expected = expected.map(|text: &str| Secret::new(text.to_owned()));
        tokio::time::timeout(limit, async {
            while other.secret(&tenant, "KEY").await.unwrap() != expected {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
    }
    watching.stop().await;
    other.close().await;
}
