//! Calls: recording, finding, listing, reserving, recovery and retention.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::audit::AuditDecision;
use haft_core::call::{CallDecision, CallRecord, CallStatus};
use haft_core::id::{CallId, ToolId};
use haft_core::invocation::{Invocation, Lineage};
use haft_core::ledger::{CallPage, CallQuery, Ledger as _, Reservation};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_core::runnable::Mode;
use haft_core::tenant::TenantLimits;
use haft_core::token::Role;
use haft_core::{Clock as _, Timestamp};
use haft_store::{CallCounts, Retention, Store, StoreSettings, TenantChange};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Harness, TestClock, call_id, eventually, on_both};

on_both![
    a_call_is_found_immediately_and_after_a_restart,
    the_newest_state_of_a_call_wins,
    calls_are_listed_newest_first,
    calls_are_filtered,
    calls_are_counted_per_period,
    calls_with_a_text_are_found_page_by_page,
    a_chat_id_that_an_index_rejects_is_recorded,
    an_idempotency_key_is_reserved_once,
    an_idempotency_key_is_free_after_its_retention,
    calls_are_audited_without_their_bodies,
    concurrent_calls_are_all_stored,
    a_call_of_a_dead_process_is_marked_as_interrupted,
    old_calls_are_removed,
    many_old_calls_are_removed_in_several_transactions,
    a_call_is_stored_even_if_its_caller_stops_waiting,
    the_oldest_bodies_are_removed_at_the_size_limit,
    the_calls_of_a_tenant_are_reduced_at_its_own_limit,
    the_largest_tenant_is_reduced_at_the_total_limit,
    the_oldest_calls_are_removed_if_no_bodies_are_left,
];

fn tool() -> ToolId {
    "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap()
}

pub(crate) fn invocation(id: CallId) -> Invocation {
    Invocation {
        id,
        lineage: Lineage::default(),
        principal: principal("default", "test"),
        surface: "rest".into(),
        tool_id: tool(),
        tool: "web:weather@1.0.0".into(),
        revision: 1,
        definition_hash: None,
        mode: Mode::Debug,
        args: json!({"q": "Zürich \u{0}"}),
        args_digest: None,
        idempotency_key: None,
        request_id: None,
        chat_id: None,
        message_id: None,
        workspace: None,
        session: None,
        webhook: None,
        timeout_ms: None,
        is_pure: false,
        fence: 0,
    }
}

fn call(clock: &TestClock, status: CallStatus) -> CallRecord {
    let now = haft_core::Timestamp::from_microsecond(clock.now().as_microsecond()).unwrap();
    let mut record = CallRecord::open(invocation(call_id(clock)), status, now);
    record.value = (status == CallStatus::Success).then(|| json!({"temp": 1.5}));
    record.finished_at = status.is_final().then_some(now);
    record.duration_ms = status.is_final().then_some(1.25);
    record
}

pub(crate) fn principal(tenant: &str, name: &str) -> Arc<Principal> {
    Arc::new(Principal::new(TenantId::new(tenant).unwrap(), name, Role::Caller))
}

/// Returns the record of a call with changes to what was requested.
pub(crate) fn call_with(
    clock: &TestClock,
    status: CallStatus,
    change: impl FnOnce(&mut Invocation),
) -> CallRecord {
    let mut record = call(clock, status);
    change(&mut record.invocation);
    record
}

fn all() -> CallQuery {
    CallQuery::of_tenant(TenantId::default_tenant())
}

async fn a_call_is_found_immediately_and_after_a_restart(mut harness: Harness) {
    let record = call(&harness.clock, CallStatus::Success);
    let tenant = TenantId::default_tenant();
    harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
    assert_eq!(harness.store.calls().call(&tenant, record.id()).await.unwrap(), Some(record.clone()));
    let other = TenantId::new("acme").unwrap();
    assert_eq!(harness.store.calls().call(&other, record.id()).await.unwrap(), None);
    harness.restart().await;
    assert_eq!(harness.store.calls().call(&tenant, record.id()).await.unwrap(), Some(record.clone()));
    assert_eq!(harness.store.calls().call(&other, record.id()).await.unwrap(), None);
    assert_eq!(
        harness.store.calls().calls(all()).await.unwrap(),
        CallPage { calls: vec![record], total: 1, searched_to: None }
    );
}

async fn the_newest_state_of_a_call_wins(mut harness: Harness) {
    let running = call(&harness.clock, CallStatus::Running);
    let done = CallRecord { status: CallStatus::Success, value: Some(json!(1)), ..running.clone() };
    harness.store.calls().record(Arc::new(running.clone())).await.unwrap();
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, std::slice::from_ref(&running));
    harness.store.calls().record(Arc::new(done.clone())).await.unwrap();
    assert_eq!(harness.store.calls().call(done.tenant(), done.id()).await.unwrap(), Some(done.clone()));
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, std::slice::from_ref(&done));
    // A finished call stays finished.
    harness.store.calls().record(Arc::new(running)).await.unwrap();
    harness.restart().await;
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, [done]);
}

async fn calls_are_listed_newest_first(harness: Harness) {
    let mut records = Vec::new();
    for number in 0..7 {
        let status = if number % 2 == 0 { CallStatus::Success } else { CallStatus::Cancelled };
        let record = call(&harness.clock, status);
        harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
        records.insert(0, record);
    }
    let theirs =
        call_with(&harness.clock, CallStatus::Success, |call| call.principal = principal("acme", "test"));
    harness.store.calls().record(Arc::new(theirs)).await.unwrap();
    let ids = |page: CallPage| (page.calls.iter().map(CallRecord::id).collect::<Vec<_>>(), page.total);
    let expected =
        |range: std::ops::Range<usize>| records[range].iter().map(CallRecord::id).collect::<Vec<_>>();
    let list = async |query: CallQuery| ids(harness.store.calls().calls(query).await.unwrap());
    assert_eq!(list(all()).await, (expected(0..7), 7));
    assert_eq!(list(CallQuery { limit: 3, ..all() }).await, (expected(0..3), 7));
    assert_eq!(list(CallQuery { limit: 3, skip: 3, ..all() }).await, (expected(3..6), 7));
    assert_eq!(list(CallQuery { before: Some(records[4].id()), ..all() }).await, (expected(5..7), 7));
    let cancelled = list(CallQuery { statuses: vec![CallStatus::Cancelled], ..all() }).await;
    assert_eq!(cancelled, (vec![records[1].id(), records[3].id(), records[5].id()], 3));
    let other = "018faf50-b7b6-7a01-9a05-a22a6e0af1ff".parse().unwrap();
    assert_eq!(list(CallQuery { tool_id: Some(other), ..all() }).await, (vec![], 0));
    assert_eq!(list(CallQuery { tool_id: Some(tool()), limit: 1, ..all() }).await, (expected(0..1), 7));
}

/// Records one call per change, oldest first.
async fn record_all(harness: &Harness, changes: &[fn(&mut CallRecord)]) -> Vec<CallRecord> {
    let mut records = Vec::new();
    for change in changes {
        let mut record = call(&harness.clock, CallStatus::Success);
        change(&mut record);
        harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
        records.push(record);
    }
    records
}

async fn numbers(harness: &Harness, records: &[CallRecord], query: CallQuery) -> (Vec<usize>, u64) {
    let page = harness.store.calls().calls(query).await.unwrap();
    let number = |call: &CallRecord| records.iter().position(|record| record.id() == call.id()).unwrap();
    (page.calls.iter().map(number).collect(), page.total)
}

async fn calls_are_filtered(mut harness: Harness) {
    let records = record_all(
        &harness,
        &[
            |call| call.invocation.principal = principal("default", "ci"),
            |call| {
                call.invocation.chat_id = Some("chat-1".to_owned());
                call.invocation.surface = "mcp".into();
            },
            |call| {
                call.invocation.lineage.parent = Some(CallId(Uuid::from_u128(7)));
                call.status = CallStatus::Error;
                call.error = Some(CallError::new(ErrorCode::Timeout, "too slow"));
                call.invocation.chat_id = Some("chat-1".to_owned());
            },
            |_| {},
        ],
    )
    .await;
    for _ in 0..2 {
        let list = async |query: CallQuery| numbers(&harness, &records, query).await;
        assert_eq!(list(CallQuery { caller: Some("ci".into()), ..all() }).await, (vec![0], 1));
        assert_eq!(list(CallQuery { caller: Some("c".into()), ..all() }).await, (vec![], 0));
        let chat = || CallQuery { chat_id: Some("chat-1".into()), ..all() };
        assert_eq!(list(chat()).await, (vec![2, 1], 2));
        assert_eq!(list(CallQuery { limit: 1, ..chat() }).await, (vec![2], 2));
        assert_eq!(list(CallQuery { before: Some(records[2].id()), ..chat() }).await, (vec![1], 2));
        let timeout = CallQuery { error_code: Some(ErrorCode::Timeout), ..all() };
        assert_eq!(list(timeout).await, (vec![2], 1));
        let surface = |surface: &str| CallQuery { surface: Some(surface.to_owned()), ..all() };
        assert_eq!(list(surface("mcp")).await, (vec![1], 1));
        assert_eq!(list(surface("rest")).await, (vec![3, 2, 0], 3));
        let of_parent = |id| CallQuery { parent_id: Some(CallId(Uuid::from_u128(id))), ..all() };
        assert_eq!(list(of_parent(7)).await, (vec![2], 1));
        assert_eq!(list(of_parent(8)).await, (vec![], 0));
        let statuses = |statuses: &[CallStatus]| CallQuery { statuses: statuses.to_vec(), ..all() };
        assert_eq!(list(statuses(&[CallStatus::Error, CallStatus::Success])).await.1, 4);
        assert_eq!(list(statuses(&[CallStatus::Error, CallStatus::Denied])).await, (vec![2], 1));
        let (from, to) = (Some(records[1].started_at), Some(records[3].started_at));
        assert_eq!(list(CallQuery { since: from, ..all() }).await, (vec![3, 2, 1], 3));
        assert_eq!(list(CallQuery { since: from, until: to, ..all() }).await, (vec![2, 1], 2));
        assert_eq!(list(CallQuery { until: from, ..all() }).await, (vec![0], 1));
        harness.restart().await;
    }
}

async fn calls_are_counted_per_period(harness: Harness) {
    let records = record_all(
        &harness,
        &[
            |_| {},
            |call| {
                call.status = CallStatus::Error;
                call.error = Some(CallError::new(ErrorCode::Timeout, "too slow"));
            },
            |call| call.status = CallStatus::Denied,
            |call| call.invocation.surface = "mcp".into(),
        ],
    )
    .await;
    let at = |index: usize| records[index].started_at;
    let end = at(3).checked_add(std::time::Duration::from_secs(1)).unwrap();
    let counts = |success, error, other| CallCounts { success, error, other };
    let count = async |query: CallQuery, bounds: &[Timestamp]| {
        harness.store.calls().counts(&query, bounds).await.unwrap()
    };
    let all_bounds = [at(0), at(1), at(3), end];
    let expected = [counts(1, 0, 0), counts(0, 1, 1), counts(1, 0, 0)];
    assert_eq!(count(all(), &all_bounds).await, expected);
    assert_eq!(count(all(), &[at(0), end]).await, [counts(2, 1, 1)]);
    // The period of the query counts, too.
    let later = CallQuery { since: Some(at(2)), ..all() };
    assert_eq!(count(later, &[at(0), end]).await, [counts(1, 0, 1)]);
    let mcp = CallQuery { surface: Some("mcp".to_owned()), ..all() };
    assert_eq!(count(mcp, &all_bounds).await, [counts(0, 0, 0), counts(0, 0, 0), counts(1, 0, 0)]);
    let other = CallQuery::of_tenant(TenantId::new("acme").unwrap());
    assert_eq!(count(other, &[at(0), end]).await, [counts(0, 0, 0)]);
    assert_eq!(count(all(), &[]).await, []);
    assert_eq!(count(all(), &[end]).await, []);
    // As many periods as the API allows.
    let step = std::time::Duration::from_millis(1);
    let many: Vec<Timestamp> = (0..=500).map(|number| at(0).checked_add(step * number).unwrap()).collect();
    let last = many[499];
    let within = records.iter().filter(|record| record.started_at < last).count();
    let counted: u64 = count(all(), &many).await.iter().map(|count| count.total()).sum();
    assert_eq!(counted, u64::try_from(within).unwrap());
}

async fn calls_with_a_text_are_found_page_by_page(harness: Harness) {
    let records = record_all(
        &harness,
        &[
            |call| call.invocation.args = json!({"city": "Bern 100% \"old_town\""}),
            |call| call.value = Some(json!(["in BERN"])),
            |call| {
                call.status = CallStatus::Error;
                call.value = None;
                call.error = Some(CallError::new(ErrorCode::Network, "bern.example is unreachable"));
            },
            |call| call.invocation.tool = "web:bern@1.0.0".into(),
            // A name inside the record does not count.
            |call| call.invocation.args = json!({"bern": 1234}),
        ],
    )
    .await;
    let list = async |query: CallQuery| numbers(&harness, &records, query).await;
    let find = |text: &str| CallQuery { text: Some(text.to_owned()), ..all() };
    assert_eq!(list(find("bern")).await, (vec![3, 2, 1, 0], 4));
    assert_eq!(list(CallQuery { limit: 2, ..find("bern") }).await, (vec![3, 2], 4));
    assert_eq!(list(CallQuery { before: Some(records[2].id()), ..find("bern") }).await, (vec![1, 0], 2));
    assert_eq!(list(CallQuery { skip: 1, limit: 2, ..find("bern") }).await, (vec![2, 1], 4));
    assert_eq!(list(CallQuery { error_code: Some(ErrorCode::Network), ..find("bern") }).await, (vec![2], 1));
    assert_eq!(list(find("100% \"old_")).await, (vec![0], 1));
    assert_eq!(list(find("100_")).await, (vec![], 0));
    assert_eq!(list(find("234")).await, (vec![4], 1));
    assert_eq!(list(find("caller")).await, (vec![], 0));
    assert_eq!(list(find("z\u{fc}rich \u{0}")).await.1, 3);
    let many =
        record_all(&harness, &[(|call| call.invocation.args = json!("lake")) as fn(&mut CallRecord); 120])
            .await;
    let (found, total) = numbers(&harness, &many, CallQuery { skip: 60, limit: 50, ..find("LAKE") }).await;
    assert_eq!((found, total), ((10..60).rev().collect(), 120));
}

async fn a_chat_id_that_an_index_rejects_is_recorded(harness: Harness) {
    for chat in ["a\0b".to_owned(), "x".repeat(5000)] {
        let record = call_with(&harness.clock, CallStatus::Success, |call| call.chat_id = Some(chat));
        harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
        assert_eq!(
            harness.store.calls().calls(CallQuery { limit: 1, ..all() }).await.unwrap().calls,
            [record]
        );
    }
}

async fn an_idempotency_key_is_reserved_once(mut harness: Harness) {
    let key = |key: &'static str| move |call: &mut Invocation| call.idempotency_key = Some(key.to_owned());
    let keyed = |harness: &Harness| call_with(&harness.clock, CallStatus::Running, key("k1"));
    let first = keyed(&harness);
    assert_eq!(harness.store.calls().reserve(first.clone()).await.unwrap(), Reservation::Taken);
    let existing = |record: &CallRecord| Reservation::Existing(Box::new(record.clone()));
    assert_eq!(harness.store.calls().reserve(keyed(&harness)).await.unwrap(), existing(&first));
    let done = CallRecord { status: CallStatus::Success, value: Some(json!(7)), ..first.clone() };
    harness.store.calls().record(Arc::new(done.clone())).await.unwrap();
    assert_eq!(harness.store.calls().reserve(keyed(&harness)).await.unwrap(), existing(&done));
    for (tenant, name) in [("acme", "test"), ("default", "somebody else")] {
        let mut other = keyed(&harness);
        other.invocation.principal = principal(tenant, name);
        assert_eq!(harness.store.calls().reserve(other).await.unwrap(), Reservation::Taken);
    }
    harness.restart().await;
    assert_eq!(harness.store.calls().reserve(keyed(&harness)).await.unwrap(), existing(&done));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = Arc::clone(&harness.store);
        let record = call_with(&harness.clock, CallStatus::Running, key("k2"));
        tasks.spawn(async move { store.calls().reserve(record).await.unwrap() });
    }
    let taken = tasks.join_all().await.into_iter().filter(|result| *result == Reservation::Taken).count();
    assert_eq!(taken, 1);
}

async fn an_idempotency_key_is_free_after_its_retention(harness: Harness) {
    let store = &harness.store;
    let keyed = |status, key: &str| {
        call_with(&harness.clock, status, |call| call.idempotency_key = Some(key.to_owned()))
    };
    let finish = async |first: CallRecord| {
        assert_eq!(store.calls().reserve(first.clone()).await.unwrap(), Reservation::Taken);
        let done = CallRecord { status: CallStatus::Success, value: Some(json!(7)), ..first };
        store.calls().record(Arc::new(done)).await.unwrap();
        // The end of the call is in the table.
        store.calls().calls(all()).await.unwrap();
    };
    finish(keyed(CallStatus::Running, "read")).await;
    finish(keyed(CallStatus::Running, "reaped")).await;
    let running = keyed(CallStatus::Running, "running");
    assert_eq!(store.calls().reserve(running.clone()).await.unwrap(), Reservation::Taken);
    harness.clock.advance(23);
    let repeated = store.calls().reserve(keyed(CallStatus::Running, "read")).await.unwrap();
    assert!(matches!(repeated, Reservation::Existing(_)), "{repeated:?}");
    harness.clock.advance(2);
    // At once, even if the reaper has not run.
    finish(keyed(CallStatus::Running, "read")).await;
    store.reap().await.unwrap();
    assert_eq!(
        store.calls().reserve(keyed(CallStatus::Running, "reaped")).await.unwrap(),
        Reservation::Taken
    );
    let repeated = store.calls().reserve(keyed(CallStatus::Running, "running")).await.unwrap();
    assert_eq!(repeated, Reservation::Existing(Box::new(running)), "a call that runs keeps its key");
    let repeated = store.calls().reserve(keyed(CallStatus::Running, "read")).await.unwrap();
    assert!(matches!(repeated, Reservation::Existing(_)), "the new call has the key: {repeated:?}");
}

async fn calls_are_audited_without_their_bodies(harness: Harness) {
    let store = &harness.store;
    let mut ids = Vec::new();
    for (rule, by, code) in [
        (None, None, None),
        (Some("no-pay"), None, Some(ErrorCode::PolicyDenied)),
        (Some("ask"), Some("ada"), None),
    ] {
        let mut record = call(&harness.clock, CallStatus::Success);
        record.decision = rule.map(|rule| {
            let decided_by = by.map(str::to_owned);
            Box::new(CallDecision {
                rule: Some(rule.to_owned()),
                approval_id: None,
                decided_by,
                account: None,
            })
        });
        if let Some(code) = code {
            record.status = CallStatus::Error;
            record.error = Some(CallError::new(code, "Zürich"));
        }
        ids.push(record.id().0);
        store.calls().record(Arc::new(record)).await.unwrap();
    }
    let found = async |query: CallQuery| {
        let entries = store.calls().audited(&query).await.unwrap();
        assert_eq!(store.calls().count(&query).await.unwrap(), entries.len() as u64);
        assert!(!serde_json::to_string(&entries).unwrap().contains("Zürich"));
        entries
            .iter()
            .rev()
            .map(|entry| ids.iter().position(|id| *id == entry.id()).unwrap())
            .collect::<Vec<_>>()
    };
    let rule = |rule: &str| CallQuery { rule: Some(rule.to_owned()), ..all() };
    let decision = |decision| CallQuery { decision: Some(decision), ..all() };
    assert_eq!(found(all()).await, [0, 1, 2]);
    assert_eq!(found(rule("ask")).await, [2]);
    assert_eq!(found(rule("other")).await, [0; 0]);
    assert_eq!(found(decision(AuditDecision::Allowed)).await, [0]);
    assert_eq!(found(decision(AuditDecision::DeniedByPolicy)).await, [1]);
    assert_eq!(found(decision(AuditDecision::Approved)).await, [2]);
    assert_eq!(found(CallQuery { actor: Some("test".to_owned()), ..all() }).await, [0, 1, 2]);
    assert_eq!(found(CallQuery { actor: Some("tes".to_owned()), ..all() }).await, [0; 0]);
}

async fn concurrent_calls_are_all_stored(mut harness: Harness) {
    let watching = harness.store.watch();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (store, clock) = (Arc::clone(&harness.store), Arc::clone(&harness.clock));
        tasks.spawn(async move {
            for _ in 0..40 {
                store.calls().record(Arc::new(call(&clock, CallStatus::Success))).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().total, 640);
    watching.stop().await;
    harness.restart().await;
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().total, 640);
    if harness.is_embedded() {
        let left = std::fs::read_dir(harness.path("journal")).unwrap().count();
        assert_eq!(left, 2, "the lock and the segment of the open store");
    }
}

async fn a_call_of_a_dead_process_is_marked_as_interrupted(mut harness: Harness) {
    let running = call(&harness.clock, CallStatus::Running);
    let done = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(running.clone())).await.unwrap();
    harness.store.calls().record(Arc::new(done.clone())).await.unwrap();
    // A second process changes nothing while the first is alive.
    let (other, _) = harness.another().await;
    other.close().await;
    let state = harness.store.calls().call(running.tenant(), running.id()).await.unwrap().unwrap();
    assert_eq!(state.status, CallStatus::Running);
    // Like a crash: the store is dropped, not closed.
    let tenant = running.tenant().clone();
    drop(std::mem::replace(&mut harness.store, other));
    harness.reopen().await;
    let watching = harness.store.watch();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !harness.store.calls().call(&tenant, running.id()).await.unwrap().unwrap().status.is_final() {
        assert!(Instant::now() < deadline, "the call of a dead process still runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ended = harness.store.calls().call(&tenant, running.id()).await.unwrap().unwrap();
    assert_eq!(ended.status, CallStatus::Interrupted);
    assert_eq!(ended.error.unwrap().code, ErrorCode::Interrupted);
    assert_eq!(harness.store.calls().call(&tenant, done.id()).await.unwrap(), Some(done));
    watching.stop().await;
}

async fn old_calls_are_removed(harness: Harness) {
    let old = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(old)).await.unwrap();
    harness.clock.advance(24 * 29);
    let new = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(new.clone())).await.unwrap();
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().total, 2);
    assert_eq!(harness.store.reap().await.unwrap().calls, 0);
    harness.clock.advance(48);
    assert_eq!(harness.store.reap().await.unwrap().calls, 1);
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, [new]);
}

async fn many_old_calls_are_removed_in_several_transactions(harness: Harness) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..2500 {
        let status = if number % 100 == 0 { CallStatus::Running } else { CallStatus::Success };
        let tenant = if number % 5 == 0 { "acme" } else { "default" };
        let record = call_with(&harness.clock, status, |call| call.principal = principal(tenant, "test"));
        let store = Arc::clone(&harness.store);
        tasks.spawn(async move { store.calls().record(Arc::new(record)).await.unwrap() });
    }
    tasks.join_all().await;
    // Listing drains the journal.
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().total, 2000);
    harness.clock.advance(24 * 31);
    let new = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(new.clone())).await.unwrap();
    assert_eq!(harness.store.reap().await.unwrap().calls, 2475);
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, [new]);
}

async fn a_call_is_stored_even_if_its_caller_stops_waiting(harness: Harness) {
    for _ in 0..100 {
        let record = Arc::new(call(&harness.clock, CallStatus::Success));
        let mut work = harness.store.calls().record(record);
        let _ = futures_util::poll!(&mut work);
        drop(work);
        tokio::task::yield_now().await;
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while harness.store.calls().calls(all()).await.unwrap().total != 100 {
        assert!(Instant::now() < deadline, "some calls are missing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens a store with limits at the same location.
async fn limited(harness: &Harness, tenant_bytes: u64, ledger_bytes: u64) -> Arc<Store> {
    let retention = Retention { tenant_bytes, ledger_bytes, ..Retention::default() };
    let settings = StoreSettings { retention, ..harness.settings() };
    Store::open(settings, harness.clock.clone(), harness.sink.clone()).await.unwrap()
}

/// Records calls with arguments of this size, and moves them to the database now and then.
async fn record_large(harness: &Harness, store: &Store, tenant: &str, count: usize, bytes: usize) {
    for number in 0..count {
        let record = call_with(&harness.clock, CallStatus::Success, |call| {
            call.principal = principal(tenant, "test");
            call.args = json!({"text": "x".repeat(bytes)});
        });
        store.calls().record(Arc::new(record)).await.unwrap();
        harness.clock.advance(1);
        if number % 4 == 3 {
            store.calls().calls(all()).await.unwrap();
        }
    }
    store.calls().calls(all()).await.unwrap();
}

pub(crate) async fn every_call(store: &Store, tenant: &str) -> Vec<CallRecord> {
    let query = CallQuery { tenant: TenantId::new(tenant).unwrap(), limit: 10_000, ..all() };
    store.calls().calls(query).await.unwrap().calls
}

async fn the_oldest_bodies_are_removed_at_the_size_limit(harness: Harness) {
    let store = limited(&harness, 1 << 20, 0).await;
    record_large(&harness, &store, "default", 40, 64 << 10).await;
    let calls = every_call(&store, "default").await;
    assert_eq!(calls.len(), 40, "every call is still recorded");
    let kept = calls.iter().take_while(|call| !call.body_removed).count();
    assert!((8..=18).contains(&kept), "{kept} bodies of 64 KiB fit in 1 MiB");
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(call.body_removed, number >= kept, "the oldest bodies are removed first");
        assert_eq!(call.invocation.args.is_null(), call.body_removed);
        assert_eq!((&*call.invocation.principal.name, call.status), ("test", CallStatus::Success));
    }
    let removed = calls.last().unwrap();
    let outcome = removed.outcome().unwrap().unwrap_err();
    assert!(outcome.message.contains("no longer stored"), "{outcome:?}");
    store.close().await;
    // The sizes are known after a restart.
    let store = limited(&harness, 1 << 20, 0).await;
    record_large(&harness, &store, "default", 20, 64 << 10).await;
    let calls = every_call(&store, "default").await;
    let kept = calls.iter().filter(|call| !call.body_removed).count();
    assert!(calls.len() == 60 && (8..=18).contains(&kept), "{kept} of {}", calls.len());
    store.close().await;
}

async fn the_calls_of_a_tenant_are_reduced_at_its_own_limit(harness: Harness) {
    let store = &harness.store;
    let acme = TenantId::new("acme").unwrap();
    store.tenants().create(acme.clone(), "Acme".to_owned()).await.unwrap();
    let limits = TenantLimits { max_stored_bytes: Some(1 << 20), ..TenantLimits::default() };
    let change = TenantChange { limits: Some(limits), ..TenantChange::default() };
    store.tenants().update(acme.clone(), change).await.unwrap();
    record_large(&harness, store, "acme", 40, 64 << 10).await;
    record_large(&harness, store, "default", 20, 64 << 10).await;
    let calls = every_call(store, "acme").await;
    let kept = calls.iter().filter(|call| !call.body_removed).count();
    assert!(calls.len() == 40 && (8..=18).contains(&kept), "{kept} of {}", calls.len());
    assert!(calls.iter().all(|call| call.args_digest().is_some()));
    assert!(every_call(store, "default").await.iter().all(|call| !call.body_removed));
    let usage = store.limits().tenant_usage(&acme).await.unwrap();
    assert!((400_000..1_300_000).contains(&usage.call_bytes), "{usage:?}");
}

async fn the_largest_tenant_is_reduced_at_the_total_limit(harness: Harness) {
    let store = limited(&harness, 0, 1 << 20).await;
    record_large(&harness, &store, "acme", 4, 64 << 10).await;
    record_large(&harness, &store, "default", 40, 64 << 10).await;
    assert!(every_call(&store, "acme").await.iter().all(|call| !call.body_removed));
    let kept = every_call(&store, "default").await.iter().filter(|call| !call.body_removed).count();
    assert!((4..=14).contains(&kept), "{kept}");
    store.close().await;
}

async fn the_oldest_calls_are_removed_if_no_bodies_are_left(harness: Harness) {
    let store = limited(&harness, 128 << 10, 0).await;
    record_large(&harness, &store, "default", 600, 10).await;
    let calls = every_call(&store, "default").await;
    let bytes: usize = calls.iter().map(|call| serde_json::to_string(call).unwrap().len()).sum();
    assert!(calls.len() > 100 && bytes < (192 << 10), "{} calls, {bytes} bytes", calls.len());
    store.close().await;
}

/// A process whose lock file was removed may still have written calls.
#[tokio::test]
async fn a_journal_without_its_lock_file_is_recovered() {
    let mut harness = Harness::sqlite().await;
    let record = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
    for entry in std::fs::read_dir(harness.path("journal")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "node") {
            std::fs::remove_file(path).unwrap();
        }
    }
    harness.reopen().await;
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, [record]);
    assert_eq!(
        std::fs::read_dir(harness.path("journal")).unwrap().count(),
        2,
        "only the files of the open store"
    );
}

#[tokio::test]
async fn a_closed_store_rejects_calls() {
    let harness = Harness::sqlite().await;
    harness.store.close().await;
    assert!(harness.store.calls().record(Arc::new(call(&harness.clock, CallStatus::Success))).await.is_err());
    assert_eq!(std::fs::read_dir(harness.path("journal")).unwrap().count(), 0);
}

/// An incomplete last write is ignored; all records before it are recovered.
#[tokio::test]
async fn a_torn_journal_loses_nothing_that_was_acknowledged() {
    let mut harness = Harness::sqlite().await;
    let record = call(&harness.clock, CallStatus::Success);
    harness.store.calls().record(Arc::new(record.clone())).await.unwrap();
    let journal = harness.path("journal");
    let log = std::fs::read_dir(&journal)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "log"))
        .unwrap();
    let (idle, _) = harness.another().await;
    drop(std::mem::replace(&mut harness.store, idle));
    let mut bytes = std::fs::read(&log).unwrap();
    let half = bytes[..bytes.len() / 2].to_vec();
    bytes.extend(half);
    std::fs::write(&log, bytes).unwrap();
    harness.reopen().await;
    assert_eq!(harness.store.calls().calls(all()).await.unwrap().calls, [record]);
    let path = log.clone();
    eventually("the journal of the dead process is gone", move || !path.exists()).await;
}
