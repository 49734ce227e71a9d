//! Connected applications: registered clients, codes, and refresh tokens.

use haft_core::application::{AllowedRequest, ClientRecord, GrantRecord, RefreshState, grant_key};
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::token::{Role, TokenRecord};
use haft_core::{Clock as _, Timestamp};
use haft_store::{ClientInsert, ClientLimits, CodeExchange, StoredCode, UsedAssertion};

use crate::harness::{Harness, call_id, on_both};
use crate::tokens::token_of;

on_both![
    a_code_is_exchanged_once,
    an_assertion_is_used_once,
    a_code_needs_the_token_of_whoever_allowed_it,
    a_refresh_token_is_replaced_once,
    registrations_are_limited,
    what_nobody_uses_is_removed,
    an_application_of_an_admin_goes_with_its_grants,
];

const HOUR: i64 = 3_600_000_000;

fn after(harness: &Harness, hours: i64) -> Timestamp {
    Timestamp::from_microsecond(harness.clock.now().as_microsecond() + hours * HOUR).unwrap()
}

pub(crate) fn client(harness: &Harness, id: &str) -> ClientRecord {
    ClientRecord {
        id: id.to_owned(),
        tenant: None,
        name: "Chat".to_owned(),
        redirect_uris: vec!["https://chat.example/cb".to_owned()],
        auth_method: "none".to_owned(),
        secret_hash: None,
        refreshes: true,
        address: "192.0.2.1".to_owned(),
        created_at: harness.clock.now(),
        used_at: None,
    }
}

pub(crate) fn code(harness: &Harness, client_id: &str) -> StoredCode {
    StoredCode {
        request: AllowedRequest {
            client_id: client_id.to_owned(),
            client_name: "Chat".to_owned(),
            client_host: None,
            redirect_uri: "https://chat.example/cb".to_owned(),
            challenge: "challenge".to_owned(),
            resource: None,
            role: Role::Caller,
            tools: Some(vec!["web:*".to_owned()]),
            expires_at: None,
            approver: "approver".to_owned(),
        },
        grant: None,
        expires_at: after(harness, 1),
    }
}

/// A grant with the refresh token `first`.
pub(crate) fn grant(harness: &Harness, client_id: &str) -> (TokenRecord, GrantRecord) {
    let id = TokenId(call_id(&harness.clock).0);
    let token = TokenRecord { id, hash: grant_key(id), ..token_of(&TenantId::default_tenant()) };
    let grant = GrantRecord {
        id,
        client_id: client_id.to_owned(),
        client_host: Some("chat.example".to_owned()),
        destination: "chat.example".to_owned(),
        refresh: Some(RefreshState {
            hash: "first".to_owned(),
            previous_hash: None,
            rotated_at: None,
            expires_at: after(harness, 10),
        }),
    };
    (token, grant)
}

async fn connect(harness: &Harness, client_id: &str) -> GrantRecord {
    let (token, grant) = grant(harness, client_id);
    let access = harness.store.access();
    let hash = grant.id.to_string();
    assert!(access.insert_code(hash.clone(), code(harness, client_id), 10).await.unwrap());
    let exchanged = access.exchange_code(&hash, "approver", token, grant.clone()).await.unwrap();
    assert_eq!(exchanged, CodeExchange::Stored);
    grant
}

async fn a_code_is_exchanged_once(harness: Harness) {
    let access = harness.store.access();
    let stored = code(&harness, "client");
    for (hash, expected) in [("one", true), ("other", true), ("third", false)] {
        assert_eq!(access.insert_code(hash.to_owned(), stored.clone(), 2).await.unwrap(), expected);
    }
    assert_eq!(access.find_code("one").await.unwrap(), Some(stored));
    assert_eq!(access.find_code("unknown").await.unwrap(), None);
    let (token, first) = grant(&harness, "client");
    let again = grant(&harness, "client");
    for (hash, (token, grant), expected) in [
        ("unknown", again.clone(), CodeExchange::CodeGone),
        ("one", (token.clone(), first.clone()), CodeExchange::Stored),
        ("one", again.clone(), CodeExchange::CodeGone),
    ] {
        assert_eq!(access.exchange_code(hash, "approver", token, grant).await.unwrap(), expected);
    }
    assert_eq!(access.find_code("one").await.unwrap().unwrap().grant, Some(first.id));
    assert_eq!(access.grants().await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(access.tokens().await.unwrap(), [token]);
    assert_eq!(access.find_grant(again.1.id).await.unwrap(), None);
    access.delete_token(first.id).await.unwrap();
    assert_eq!(access.find_grant(first.id).await.unwrap(), None, "it goes with its token");
    harness.clock.advance(2);
    let late = access.exchange_code("other", "approver", again.0, again.1).await.unwrap();
    assert_eq!(late, CodeExchange::CodeGone, "it has expired");
}

async fn an_assertion_is_used_once(harness: Harness) {
    let access = harness.store.access();
    let used = UsedAssertion { hash: "one".to_owned(), expires_at: after(&harness, 1) };
    let exchange = async || {
        let (token, grant) = grant(&harness, "agent");
        let id = grant.id;
        (access.exchange_assertion(used.clone(), token, grant).await.unwrap(), id)
    };
    // Two nodes at the same moment.
    let (one, other) = tokio::join!(exchange(), exchange());
    assert_eq!(u8::from(one.0) + u8::from(other.0), 1);
    for (stored, id) in [one, other] {
        assert_eq!(access.find_grant(id).await.unwrap().is_some(), stored, "a grant needs its assertion");
    }
    assert!(!exchange().await.0);
}

async fn a_code_needs_the_token_of_whoever_allowed_it(harness: Harness) {
    let access = harness.store.access();
    let parent = token_of(&TenantId::default_tenant());
    access.insert_token(&parent).await.unwrap();
    access.insert_code("one".to_owned(), code(&harness, "client"), 10).await.unwrap();
    let (token, grant) = grant(&harness, "client");
    let token = TokenRecord { parent: Some(parent.id), ..token };
    let gone = access.exchange_code("one", "another value", token.clone(), grant.clone()).await.unwrap();
    assert_eq!(gone, CodeExchange::ApproverGone);
    let stored = access.exchange_code("one", &parent.hash, token, grant.clone()).await.unwrap();
    assert_eq!(stored, CodeExchange::Stored);
    access.delete_token(parent.id).await.unwrap();
    assert_eq!(access.find_grant(grant.id).await.unwrap(), None, "it goes with its parent");
}

async fn a_refresh_token_is_replaced_once(harness: Harness) {
    let access = harness.store.access();
    let grant = connect(&harness, "client").await;
    let end = after(&harness, 20);
    let rotate =
        |old: &'static str, new: &'static str| access.rotate_refresh_token(grant.id, (old, new), end);
    assert!(!rotate("wrong", "second").await.unwrap());
    assert!(rotate("first", "second").await.unwrap());
    assert!(!rotate("first", "third").await.unwrap());
    let state = access.find_grant(grant.id).await.unwrap().unwrap().refresh.unwrap();
    assert_eq!((state.hash.as_str(), state.previous_hash.as_deref()), ("second", Some("first")));
    assert!(state.rotated_at.is_some() && state.expires_at == end);
    harness.clock.advance(21);
    assert!(!rotate("second", "third").await.unwrap(), "it has expired");
}

async fn registrations_are_limited(harness: Harness) {
    let limits = ClientLimits { per_address: 2, unused: 3 };
    let access = harness.store.access();
    let insert = |id: &str, address: &str| {
        let client = ClientRecord { address: address.to_owned(), ..client(&harness, id) };
        access.insert_registered_client(client, limits)
    };
    assert_eq!(insert("a", "192.0.2.1").await.unwrap(), ClientInsert::Stored);
    assert_eq!(insert("b", "192.0.2.1").await.unwrap(), ClientInsert::Stored);
    assert_eq!(insert("c", "192.0.2.1").await.unwrap(), ClientInsert::TooManyOfAddress);
    assert_eq!(insert("c", "192.0.2.2").await.unwrap(), ClientInsert::Stored);
    assert_eq!(insert("d", "192.0.2.3").await.unwrap(), ClientInsert::TooMany);
    // One that somebody has connected does not count.
    connect(&harness, "a").await;
    assert_eq!(insert("d", "192.0.2.3").await.unwrap(), ClientInsert::Stored);
    harness.clock.advance(2);
    connect(&harness, "b").await;
    assert_eq!(insert("e", "192.0.2.1").await.unwrap(), ClientInsert::Stored);
}

async fn what_nobody_uses_is_removed(harness: Harness) {
    let access = harness.store.access();
    let limits = ClientLimits { per_address: 10, unused: 10 };
    for id in ["unused", "used"] {
        access.insert_registered_client(client(&harness, id), limits).await.unwrap();
    }
    let grant = connect(&harness, "used").await;
    access.insert_code("code".to_owned(), code(&harness, "used"), 10).await.unwrap();
    harness.clock.advance(3 * 24 + 1);
    harness.store.reap().await.unwrap();
    assert_eq!(access.find_client("unused").await.unwrap(), None);
    assert!(access.find_client("used").await.unwrap().unwrap().used_at.is_some());
    assert_eq!(access.find_code("code").await.unwrap(), None);
    assert!(access.find_grant(grant.id).await.unwrap().is_some(), "a person can see what it was");
    harness.clock.advance(8 * 24);
    harness.store.reap().await.unwrap();
    assert_eq!(access.find_grant(grant.id).await.unwrap(), None);
    assert_eq!(access.tokens().await.unwrap(), []);
    harness.clock.advance(90 * 24);
    harness.store.reap().await.unwrap();
    assert_eq!(access.find_client("used").await.unwrap(), None);
}

async fn an_application_of_an_admin_goes_with_its_grants(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let created = ClientRecord { tenant: Some(tenant.clone()), ..client(&harness, "own") };
    access.insert_client(created.clone()).await.unwrap();
    assert_eq!(access.clients(&tenant).await.unwrap(), [created]);
    let grant = connect(&harness, "own").await;
    let other = TenantId::new("acme").unwrap();
    assert!(access.delete_client("own", &other).await.is_err());
    access.delete_client("own", &tenant).await.unwrap();
    assert_eq!(access.find_grant(grant.id).await.unwrap(), None);
    assert!(access.delete_client("own", &tenant).await.is_err());
}
