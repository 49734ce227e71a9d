//! Access tokens.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::token::{Role, TokenRecord};

use crate::harness::{Harness, on_both};

on_both![a_token_is_stored_listed_and_deleted];

async fn a_token_is_stored_listed_and_deleted(mut harness: Harness) {
    let token = TokenRecord {
        id: "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap(),
        tenant: TenantId::default_tenant(),
        name: "first".into(),
        hash: haft_core::hash::of_bytes(b"secret"),
        role: Role::Admin,
        elevated: true,
        created_at: "2026-08-01T10:00:00Z".parse().unwrap(),
        expires_at: Some("2027-08-01T10:00:00Z".parse().unwrap()),
    };
    harness.store.insert_token(&token).await.unwrap();
    assert!(matches!(harness.store.insert_token(&token).await, Err(StoreError::Conflict(_))));
    harness.restart().await;
    assert_eq!(harness.store.tokens().await.unwrap(), std::slice::from_ref(&token));
    harness.store.delete_token(token.id).await.unwrap();
    assert!(matches!(harness.store.delete_token(token.id).await, Err(StoreError::NotFound { .. })));
    assert!(harness.store.tokens().await.unwrap().is_empty());
}
