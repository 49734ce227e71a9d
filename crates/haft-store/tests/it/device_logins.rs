//! Logins of command lines that a person approves.

use std::time::Duration;

use haft_core::id::TokenId;
use haft_core::login::{DeviceLoginRecord, DeviceLoginState};
use haft_core::name::TenantId;
use haft_core::token::TokenRecord;
use haft_core::{Clock as _, Timestamp};
use haft_store::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
    TokenRotation,
};

use crate::harness::{Harness, call_id, on_both};
use crate::logins::session;
use crate::tokens::token_of;

on_both![
    an_approved_login_is_used_once,
    the_token_needs_that_of_the_approver,
    tokens_are_deleted_with_their_parent,
    old_tokens_of_logins_are_removed,
    a_denied_login_gives_nothing,
    a_login_expires,
    requests_have_an_interval,
    logins_are_limited_per_address_and_in_total,
    any_node_decides_and_answers,
];

const INTERVAL: Duration = Duration::from_secs(5);
const LIMITS: DeviceLoginLimits = DeviceLoginLimits { per_address: 3, total: 5 };

/// A login that lasts for two hours of the harness's clock.
pub(crate) fn device_login(harness: &Harness, hash: &str) -> DeviceLoginRecord {
    let now = harness.clock.now();
    DeviceLoginRecord {
        hash: hash.into(),
        user_code_hash: format!("user code of {hash}"),
        device: "laptop".into(),
        address: "192.0.2.1".into(),
        state: DeviceLoginState::Pending,
        created_at: now,
        expires_at: Timestamp::from_microsecond(now.as_microsecond() + 2 * 3_600_000_000).unwrap(),
    }
}

async fn start(harness: &Harness, login: DeviceLoginRecord) -> DeviceLoginStart {
    harness.store.access().insert_device_login(login, LIMITS).await.unwrap()
}

async fn decide(harness: &Harness, hash: &str, decision: DeviceLoginDecision) -> bool {
    let code = format!("user code of {hash}");
    harness.store.access().decide_device_login(&code, decision).await.unwrap()
}

async fn poll(harness: &Harness, hash: &str) -> DeviceLoginPoll {
    harness.store.access().poll_device_login(hash, INTERVAL).await.unwrap()
}

fn approve() -> DeviceLoginDecision {
    DeviceLoginDecision::Approve { token_hash: "token".into() }
}

fn approved() -> DeviceLoginPoll {
    DeviceLoginPoll::Approved { token_hash: "token".into(), device: "laptop".into() }
}

async fn an_approved_login_is_used_once(harness: Harness) {
    let login = device_login(&harness, "a");
    assert_eq!(start(&harness, login.clone()).await, DeviceLoginStart::Stored);
    let found = harness.store.access().find_device_login("user code of a").await.unwrap();
    assert_eq!(found, Some(login));
    assert_eq!(harness.store.access().find_device_login("a").await.unwrap(), None, "another code");
    assert!(!decide(&harness, "b", approve()).await);
    assert!(decide(&harness, "a", approve()).await);
    assert!(!decide(&harness, "a", DeviceLoginDecision::Deny).await, "it is decided");
    assert_eq!(poll(&harness, "a").await, approved());
    assert_eq!(poll(&harness, "a").await, approved(), "asking does not use it up");
    let tokens: Vec<TokenRecord> = (0..8).map(|_| new_token(&harness, None)).collect();
    let inserts = tokens.iter().map(|token| insert(&harness, "a", "token", token));
    let inserted: Vec<_> = futures_util::future::join_all(inserts).await;
    let got = inserted.iter().filter(|one| **one == DeviceTokenInsert::Stored).count();
    assert_eq!(got, 1, "one of many gets it: {inserted:?}");
    assert_eq!(harness.store.access().tokens().await.unwrap().len(), 1);
    assert_eq!(poll(&harness, "a").await, DeviceLoginPoll::Unknown);
    assert_eq!(harness.store.access().find_device_login("user code of a").await.unwrap(), None);
}

/// A token with a hash of its own.
fn new_token(harness: &Harness, parent: Option<TokenId>) -> TokenRecord {
    let id = TokenId(call_id(&harness.clock).0);
    TokenRecord { id, hash: id.to_string(), parent, ..token_of(&TenantId::default_tenant()) }
}

async fn insert(harness: &Harness, login: &str, approver: &str, token: &TokenRecord) -> DeviceTokenInsert {
    harness.store.access().insert_device_token(login, approver, token).await.unwrap()
}

async fn the_token_needs_that_of_the_approver(harness: Harness) {
    let (parent, access) = (new_token(&harness, None), harness.store.access());
    let child = || new_token(&harness, Some(parent.id));
    let approve = || DeviceLoginDecision::Approve { token_hash: parent.hash.clone() };
    for hash in ["a", "b"] {
        start(&harness, device_login(&harness, hash)).await;
        assert!(decide(&harness, hash, approve()).await);
    }
    let of_unknown = child();
    assert_eq!(insert(&harness, "a", &parent.hash, &of_unknown).await, DeviceTokenInsert::ApproverGone);
    access.insert_token(&parent).await.unwrap();
    assert_eq!(insert(&harness, "a", "other", &of_unknown).await, DeviceTokenInsert::LoginGone);
    assert_eq!(insert(&harness, "a", &parent.hash, &of_unknown).await, DeviceTokenInsert::Stored);
    let mut stored = access.tokens().await.unwrap();
    stored.retain(|token| token.id == of_unknown.id);
    assert_eq!(stored, [of_unknown]);
    // The value that approved no longer works.
    let hash = "new".to_owned();
    let rotation = TokenRotation { id: parent.id, hash, previous: None, expires_at: parent.expires_at };
    access.rotate_token(rotation).await.unwrap();
    assert_eq!(insert(&harness, "b", &parent.hash, &child()).await, DeviceTokenInsert::ApproverGone);
    // A rotation without grace leaves nothing of what came from the old value.
    assert_eq!(access.tokens().await.unwrap().iter().map(|token| token.id).collect::<Vec<_>>(), [parent.id]);
}

async fn tokens_are_deleted_with_their_parent(harness: Harness) {
    let access = harness.store.access();
    let (parent, other) = (new_token(&harness, None), new_token(&harness, None));
    let child = new_token(&harness, Some(parent.id));
    let grandchild = new_token(&harness, Some(child.id));
    for token in [&parent, &other, &child, &grandchild] {
        access.insert_token(token).await.unwrap();
        access.insert_session(session(&harness, &token.hash, &token.hash), None).await.unwrap();
    }
    access.delete_token(parent.id).await.unwrap();
    assert_eq!(access.tokens().await.unwrap(), std::slice::from_ref(&other));
    let sessions = access.sessions().await.unwrap();
    assert_eq!(sessions.iter().map(|session| &session.token_hash).collect::<Vec<_>>(), [&other.hash]);
}

async fn old_tokens_of_logins_are_removed(harness: Harness) {
    let access = harness.store.access();
    let expires_at = Some(harness.clock.now());
    let parent = TokenRecord { expires_at, ..new_token(&harness, None) };
    let child = TokenRecord { expires_at, ..new_token(&harness, Some(parent.id)) };
    for token in [&parent, &child] {
        access.insert_token(token).await.unwrap();
    }
    harness.clock.advance(29 * 24);
    harness.store.reap().await.unwrap();
    assert_eq!(access.tokens().await.unwrap().len(), 2);
    harness.clock.advance(2 * 24);
    harness.store.reap().await.unwrap();
    assert_eq!(access.tokens().await.unwrap(), [parent], "only those of logins");
}

async fn a_denied_login_gives_nothing(harness: Harness) {
    start(&harness, device_login(&harness, "a")).await;
    assert!(decide(&harness, "a", DeviceLoginDecision::Deny).await);
    assert!(!decide(&harness, "a", approve()).await, "it is decided");
    for _ in 0..2 {
        assert_eq!(poll(&harness, "a").await, DeviceLoginPoll::Denied);
    }
}

async fn a_login_expires(harness: Harness) {
    start(&harness, device_login(&harness, "pending")).await;
    start(&harness, device_login(&harness, "approved")).await;
    assert!(decide(&harness, "approved", approve()).await);
    harness.clock.advance(3);
    assert!(!decide(&harness, "pending", approve()).await);
    assert_eq!(harness.store.access().find_device_login("user code of pending").await.unwrap(), None);
    for hash in ["pending", "approved"] {
        assert_eq!(poll(&harness, hash).await, DeviceLoginPoll::Expired, "{hash}");
    }
    harness.store.reap().await.unwrap();
    assert_eq!(poll(&harness, "approved").await, DeviceLoginPoll::Unknown);
}

async fn requests_have_an_interval(harness: Harness) {
    start(&harness, device_login(&harness, "a")).await;
    assert_eq!(poll(&harness, "a").await, DeviceLoginPoll::Pending);
    assert_eq!(poll(&harness, "a").await, DeviceLoginPoll::TooFast);
    harness.clock.advance(1);
    assert_eq!(poll(&harness, "a").await, DeviceLoginPoll::Pending);
    // A decision does not wait for the interval.
    assert!(decide(&harness, "a", approve()).await);
    assert_eq!(poll(&harness, "a").await, approved());
    assert_eq!(poll(&harness, "unknown").await, DeviceLoginPoll::Unknown);
}

async fn logins_are_limited_per_address_and_in_total(harness: Harness) {
    let of_address = |hash: &str, address: &str| DeviceLoginRecord {
        address: address.into(),
        ..device_login(&harness, hash)
    };
    for hash in ["a", "b", "c"] {
        assert_eq!(start(&harness, of_address(hash, "192.0.2.1")).await, DeviceLoginStart::Stored);
    }
    assert!(decide(&harness, "a", DeviceLoginDecision::Deny).await, "it counts until it expires");
    assert_eq!(start(&harness, of_address("d", "192.0.2.1")).await, DeviceLoginStart::TooManyOfAddress);
    for hash in ["d", "e"] {
        assert_eq!(start(&harness, of_address(hash, "192.0.2.2")).await, DeviceLoginStart::Stored);
    }
    assert_eq!(start(&harness, of_address("f", "192.0.2.3")).await, DeviceLoginStart::TooMany);
    harness.clock.advance(3);
    assert_eq!(start(&harness, of_address("f", "192.0.2.1")).await, DeviceLoginStart::Stored);
}

async fn any_node_decides_and_answers(harness: Harness) {
    let (other, _) = harness.another().await;
    start(&harness, device_login(&harness, "a")).await;
    assert!(other.access().decide_device_login("user code of a", approve()).await.unwrap());
    assert_eq!(poll(&harness, "a").await, approved());
    assert_eq!(other.access().poll_device_login("a", INTERVAL).await.unwrap(), approved());
    let token = new_token(&harness, None);
    assert_eq!(insert(&harness, "a", "token", &token).await, DeviceTokenInsert::Stored);
    assert_eq!(other.access().poll_device_login("a", INTERVAL).await.unwrap(), DeviceLoginPoll::Unknown);
    other.close().await;
}
