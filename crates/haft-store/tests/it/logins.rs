//! Sessions of browsers and login links.

use haft_core::login::{LoginLinkRecord, SessionRecord};
use haft_core::name::TenantId;
use haft_core::{Clock as _, Timestamp};

use crate::harness::{Harness, on_both};
use crate::tokens::token_of;

on_both![a_session_ends, a_token_has_a_bounded_number_of_sessions, a_login_link_works_once];

fn hours_from_now(harness: &Harness, hours: i64) -> Timestamp {
    let micros = harness.clock.now().as_microsecond() + hours * 3_600_000_000;
    Timestamp::from_microsecond(micros).unwrap()
}

pub(crate) fn session(harness: &Harness, hash: &str, token_hash: &str) -> SessionRecord {
    SessionRecord {
        hash: hash.into(),
        token_hash: token_hash.into(),
        created_at: hours_from_now(harness, 0),
        expires_at: hours_from_now(harness, 12),
    }
}

async fn a_session_ends(mut harness: Harness) {
    let token = token_of(&TenantId::default_tenant());
    harness.store.access().insert_token(&token).await.unwrap();
    let sessions = ["logout", "revoked", "expired"].map(|hash| {
        let token_hash = if hash == "revoked" { &token.hash } else { "other" };
        session(&harness, hash, token_hash)
    });
    for session in &sessions {
        harness.store.access().insert_session(session.clone(), None).await.unwrap();
    }
    harness.restart().await;
    assert_eq!(harness.store.access().sessions().await.unwrap().len(), 3);
    assert_eq!(harness.store.access().find_session("logout").await.unwrap().as_ref(), Some(&sessions[0]));
    assert!(harness.store.access().delete_session("logout".into()).await.unwrap());
    assert!(!harness.store.access().delete_session("logout".into()).await.unwrap());
    harness.store.access().delete_token(token.id).await.unwrap();
    assert_eq!(harness.store.access().sessions().await.unwrap(), sessions[2..]);
    harness.clock.advance(13);
    assert_eq!(harness.store.access().find_session("expired").await.unwrap(), None);
    harness.store.reap().await.unwrap();
    assert!(harness.store.access().sessions().await.unwrap().is_empty());
}

async fn a_token_has_a_bounded_number_of_sessions(harness: Harness) {
    for number in 0..103 {
        harness
            .store
            .access()
            .insert_session(session(&harness, &number.to_string(), "token"), None)
            .await
            .unwrap();
    }
    harness.store.access().insert_session(session(&harness, "other", "another token"), None).await.unwrap();
    let sessions = harness.store.access().sessions().await.unwrap();
    assert_eq!(sessions.len(), 101);
    for (hash, exists) in [("2", false), ("3", true), ("102", true), ("other", true)] {
        assert_eq!(sessions.iter().any(|session| session.hash == hash), exists, "{hash}");
    }
}

pub(crate) fn link(harness: &Harness, hash: &str, token_hash: &str) -> LoginLinkRecord {
    LoginLinkRecord {
        hash: hash.into(),
        token_hash: token_hash.into(),
        expires_at: hours_from_now(harness, 1),
    }
}

async fn a_login_link_works_once(harness: Harness) {
    let link = |hash: &str| link(&harness, hash, "token");
    harness.store.access().insert_login_link(link("raced")).await.unwrap();
    harness.store.access().insert_login_link(link("late")).await.unwrap();
    let takes = (0..8).map(|_| harness.store.access().take_login_link("raced"));
    let taken: Vec<_> = futures_util::future::join_all(takes).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(taken.iter().flatten().collect::<Vec<_>>(), ["token"], "one of many gets it");
    harness.clock.advance(2);
    assert_eq!(harness.store.access().take_login_link("late").await.unwrap(), None);
    assert_eq!(harness.store.access().take_login_link("missing").await.unwrap(), None);
}
