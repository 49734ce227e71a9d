//! The durable queue: order, fairness, limits, cancellation, events, recovery.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::call::{CallRecord, CallStatus};
use haft_core::executor::CallEvent;
use haft_core::ledger::{CallQueue as _, Cancellation, ClaimLimits, Enqueued, Ledger as _, NumberedEvent};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use serde_json::json;

use crate::harness::{Harness, on_both};
use crate::ledger::{call_with, principal};

on_both![
    queued_calls_are_claimed_once_in_turn_of_their_tenants,
    a_tenant_does_not_take_every_worker,
    a_full_queue_rejects,
    a_key_is_queued_once,
    a_call_that_was_put_back_runs_later,
    waiting_and_running_calls_are_cancelled,
    events_are_read_after_a_number,
    waiting_calls_survive_and_running_ones_are_recovered,
    two_nodes_claim_every_call_once,
];

fn queued(harness: &Harness, tenant: &str, number: usize) -> CallRecord {
    call_with(&harness.clock, CallStatus::Pending, |call| {
        call.principal = principal(tenant, "test");
        call.definition_hash = Some("hash".to_owned());
        call.args = json!({"number": number});
    })
}

async fn enqueue(harness: &Harness, tenant: &str, number: usize) -> CallRecord {
    let call = queued(harness, tenant, number);
    assert_eq!(harness.store.calls().enqueue(call.clone(), 1000).await.unwrap(), Enqueued::Queued);
    call
}

fn limits(max: usize, per_tenant: usize) -> ClaimLimits {
    ClaimLimits { max, per_tenant, running: HashMap::new() }
}

fn names(calls: &[CallRecord]) -> Vec<String> {
    calls.iter().map(|call| format!("{}{}", call.tenant(), call.invocation.args["number"])).collect()
}

async fn queued_calls_are_claimed_once_in_turn_of_their_tenants(harness: Harness) {
    for number in 0..5 {
        enqueue(&harness, "a", number).await;
    }
    enqueue(&harness, "b", 0).await;
    enqueue(&harness, "c", 0).await;
    let first = harness.store.calls().claim(limits(4, 10)).await.unwrap();
    assert_eq!(names(&first), ["a0", "a1", "b0", "c0"]);
    assert!(first.iter().all(|call| call.status == CallStatus::Running));
    let stored = harness.store.calls().call(first[0].tenant(), first[0].id()).await.unwrap().unwrap();
    assert_eq!(stored.status, CallStatus::Running);
    enqueue(&harness, "b", 1).await;
    assert_eq!(names(&harness.store.calls().claim(limits(2, 10)).await.unwrap()), ["a2", "b1"]);
    enqueue(&harness, "c", 1).await;
    // The turn continues after the tenant that was served last.
    assert_eq!(names(&harness.store.calls().claim(limits(1, 10)).await.unwrap()), ["c1"]);
    assert_eq!(names(&harness.store.calls().claim(limits(10, 10)).await.unwrap()), ["a3", "a4"]);
    assert_eq!(harness.store.calls().claim(limits(10, 10)).await.unwrap(), []);
}

async fn a_tenant_does_not_take_every_worker(harness: Harness) {
    for number in 0..5 {
        enqueue(&harness, "a", number).await;
    }
    let claimed = harness.store.calls().claim(limits(4, 3)).await.unwrap();
    assert_eq!(names(&claimed), ["a0", "a1", "a2"]);
    enqueue(&harness, "b", 0).await;
    let running = HashMap::from([(TenantId::new("a").unwrap(), 3)]);
    let claimed = harness.store.calls().claim(ClaimLimits { running, ..limits(4, 3) }).await.unwrap();
    assert_eq!(names(&claimed), ["b0"]);
}

async fn a_full_queue_rejects(harness: Harness) {
    enqueue(&harness, "a", 0).await;
    assert_eq!(harness.store.calls().enqueue(queued(&harness, "a", 1), 1).await.unwrap(), Enqueued::Full(1));
    assert_eq!(harness.store.calls().enqueue(queued(&harness, "b", 1), 1).await.unwrap(), Enqueued::Queued);
}

async fn a_key_is_queued_once(harness: Harness) {
    let keyed = || {
        let mut call = queued(&harness, "a", 0);
        call.invocation.idempotency_key = Some("k".to_owned());
        call
    };
    let first = keyed();
    assert_eq!(harness.store.calls().enqueue(first.clone(), 9).await.unwrap(), Enqueued::Queued);
    let again = harness.store.calls().enqueue(keyed(), 9).await.unwrap();
    assert_eq!(again, Enqueued::Existing(Box::new(first)));
    assert_eq!(harness.store.calls().claim(limits(9, 9)).await.unwrap().len(), 1);
}

async fn a_call_that_was_put_back_runs_later(harness: Harness) {
    enqueue(&harness, "a", 0).await;
    let mut claimed = harness.store.calls().claim(limits(1, 1)).await.unwrap();
    let call = claimed.pop().unwrap();
    let later = haft_core::Clock::now(&*harness.clock) + jiff::SignedDuration::from_hours(1);
    harness.store.calls().requeue(call.clone(), later).await.unwrap();
    let stored = harness.store.calls().call(call.tenant(), call.id()).await.unwrap().unwrap();
    assert_eq!(stored.status, CallStatus::Pending);
    assert_eq!(harness.store.calls().claim(limits(1, 1)).await.unwrap(), []);
    harness.clock.advance(2);
    assert_eq!(harness.store.calls().claim(limits(1, 1)).await.unwrap().len(), 1);
}

async fn waiting_and_running_calls_are_cancelled(harness: Harness) {
    let store = &harness.store;
    let (waiting, running) = (enqueue(&harness, "a", 0).await, enqueue(&harness, "b", 0).await);
    let cancel = async |call: &CallRecord| store.calls().cancel(call.tenant(), call.id()).await.unwrap();
    assert_eq!(cancel(&waiting).await, Some(Cancellation::Cancelled));
    assert_eq!(cancel(&waiting).await, Some(Cancellation::Ended(CallStatus::Cancelled)));
    assert_eq!(names(&store.calls().claim(limits(9, 9)).await.unwrap()), ["b0"]);
    assert_eq!(store.calls().cancellations().await.unwrap(), []);
    // From another node, which does not run it.
    let (other, _) = harness.another().await;
    assert_eq!(
        other.calls().cancel(running.tenant(), running.id()).await.unwrap(),
        Some(Cancellation::Requested)
    );
    assert_eq!(store.calls().cancellations().await.unwrap(), [running.id()]);
    assert_eq!(other.calls().cancellations().await.unwrap(), []);
    other.close().await;
    let stranger = TenantId::new("stranger").unwrap();
    assert_eq!(store.calls().cancel(&stranger, running.id()).await.unwrap(), None);
}

async fn events_are_read_after_a_number(harness: Harness) {
    let call = enqueue(&harness, "a", 0).await;
    let event = |number, event| NumberedEvent { number, event };
    let events = vec![
        event(1, CallEvent::Output("one\0".to_owned())),
        event(2, CallEvent::Value("two".to_owned())),
        event(3, CallEvent::Progress(0.5, "half".to_owned())),
    ];
    harness.store.calls().append_events(call.id(), events.clone()).await.unwrap();
    harness.store.calls().append_events(call.id(), events.clone()).await.unwrap();
    assert_eq!(harness.store.calls().events(call.id(), 1).await.unwrap(), events[1..]);
    assert_eq!(harness.store.calls().events(call.id(), 3).await.unwrap(), []);
    harness.store.reap().await.unwrap();
    assert_eq!(harness.store.calls().events(call.id(), 0).await.unwrap().len(), 3);
}

async fn waiting_calls_survive_and_running_ones_are_recovered(mut harness: Harness) {
    let mut pure = queued(&harness, "a", 0);
    pure.invocation.is_pure = true;
    harness.store.calls().enqueue(pure.clone(), 9).await.unwrap();
    let impure = enqueue(&harness, "a", 1).await;
    let claimed = harness.store.calls().claim(limits(2, 2)).await.unwrap();
    assert_eq!(claimed.len(), 2);
    let waiting = enqueue(&harness, "a", 2).await;
    let (other, _) = harness.another().await;
    // Like a crash: dropped, not closed.
    drop(std::mem::replace(&mut harness.store, other));
    let watching = harness.store.watch();
    let status = async |call: &CallRecord| {
        harness.store.calls().call(call.tenant(), call.id()).await.unwrap().unwrap().status
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while status(&impure).await != CallStatus::Interrupted || status(&pure).await != CallStatus::Pending {
        assert!(
            Instant::now() < deadline,
            "not recovered: {:?} {:?}",
            status(&impure).await,
            status(&pure).await
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status(&waiting).await, CallStatus::Pending);
    assert_eq!(names(&harness.store.calls().claim(limits(9, 9)).await.unwrap()), ["a0", "a2"]);
    // A node that was only cut off reports its outcome late, under its claim: it is not lost, because nobody else runs it.
    let mut done = claimed.into_iter().find(|call| call.id() == impure.id()).unwrap();
    done.finish(Ok(json!(1)), done.started_at, 1.0);
    harness.store.calls().record(Arc::new(done)).await.unwrap();
    watching.stop().await;
    assert_eq!(status(&impure).await, CallStatus::Success);
    let interrupted = harness.store.calls().call(waiting.tenant(), waiting.id()).await.unwrap().unwrap();
    assert_ne!(interrupted.error.map(|error| error.code), Some(ErrorCode::Interrupted));
}

async fn two_nodes_claim_every_call_once(harness: Harness) {
    for number in 0..60 {
        enqueue(&harness, ["a", "b", "c"][number % 3], number).await;
    }
    let (other, _) = harness.another().await;
    let mut tasks = tokio::task::JoinSet::new();
    for store in [Arc::clone(&harness.store), Arc::clone(&other)] {
        tasks.spawn(async move {
            let (mut claimed, mut empty) = (Vec::new(), 0);
            while empty < 3 {
                let calls = store.calls().claim(limits(4, 4)).await.unwrap();
                empty = if calls.is_empty() { empty + 1 } else { 0 };
                claimed.extend(calls.iter().map(CallRecord::id));
            }
            claimed
        });
    }
    let mut claimed: Vec<_> = tasks.join_all().await.concat();
    claimed.sort();
    assert_eq!(claimed.len(), 60);
    claimed.dedup();
    assert_eq!(claimed.len(), 60, "no call was claimed twice");
    other.close().await;
}
