//! One claim for all work: a node that lost it writes nothing, and two nodes never hold the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::chat::MessageRole;
use haft_core::ledger::{CallQueue as _, ClaimLimits, Ledger as _};
use haft_core::name::TenantId;
use haft_core::retrieval::DocumentState;
use haft_core::run::{Run, RunEnd, RunStatus, RunStore as _, RunStoreError, RunUsage};
use haft_core::webhook::{DeliveryStatus, WebhookEvent, WebhookScope};
use haft_core::workspace::{ManifestSource, WorkspaceName};
use haft_store::{
    ClaimedDelivery, DeliveryLimits, DeliveryQuery, DeliveryResult, NewChat, NewManifest, NewMessage, Store,
    StoredChunks, WatchTasks,
};
use serde_json::json;

use crate::harness::{Harness, on_both};
use crate::ledger::{call_with, principal};
use crate::pipelines::{chunk, chunks, pipeline, upload};
use crate::runs::{run_at, step, webhook};

on_both![
    a_lost_claim_writes_no_call,
    a_lost_claim_writes_neither_run_nor_answer,
    a_lost_claim_writes_no_document,
    a_lost_claim_writes_no_delivery,
    a_lost_claim_writes_no_workspace,
    two_nodes_never_hold_the_same,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Opens a second node that considers the first one dead, although it is only slow.
async fn take_over(harness: &Harness) -> (Arc<Store>, WatchTasks) {
    if harness.is_embedded() {
        // The lock on this file shows that a process is alive.
        for entry in std::fs::read_dir(harness.path("journal")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "node") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    let (other, _) = harness.another().await;
    let watching = other.watch();
    (other, watching)
}

/// Polls until there is something.
async fn soon<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "nothing could be claimed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_lost<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::ClaimLost))
}

fn one_call() -> ClaimLimits {
    ClaimLimits { max: 1, per_tenant: 1, running: HashMap::new() }
}

fn ended(call: &CallRecord, value: &str) -> Arc<CallRecord> {
    let mut ended = call.clone();
    ended.finish(Ok(json!(value)), call.started_at, 1.0);
    Arc::new(ended)
}

async fn a_lost_claim_writes_no_call(harness: Harness) {
    let hook = webhook(&harness, WebhookScope::Tenant, WebhookEvent::CallFinished).await;
    let queued = call_with(&harness.clock, CallStatus::Pending, |call| {
        call.principal = principal("default", "test");
        call.definition_hash = Some("hash".to_owned());
        call.is_pure = true;
    });
    harness.store.calls().enqueue(queued.clone(), 9).await.unwrap();
    let late = harness.store.calls().claim(one_call()).await.unwrap().pop().unwrap();
    let (other, watching) = take_over(&harness).await;
    let call = soon(async || other.calls().claim(one_call()).await.unwrap().pop()).await;
    assert_eq!(call.id(), late.id());
    assert!(call.invocation.fence > late.invocation.fence);
    assert!(is_lost(&harness.store.calls().record(ended(&late, "late")).await));
    assert!(is_lost(&harness.store.calls().requeue(late.clone(), late.started_at).await));
    let stored = async || other.calls().call(&tenant(), call.id()).await.unwrap().unwrap();
    assert_eq!(stored().await.status, CallStatus::Running);
    let delivered = async || {
        let query = DeliveryQuery { tenant: tenant(), webhook: hook, status: None, before: None, limit: 10 };
        other.webhooks().deliveries(query).await.unwrap().0.len()
    };
    assert_eq!(delivered().await, 0, "a dropped result is not delivered");
    other.calls().record(ended(&call, "new")).await.unwrap();
    assert!(is_lost(&harness.store.calls().record(ended(&late, "late")).await));
    // Drains the journal of the other node.
    watching.stop().await;
    other.close().await;
    let stored = harness.store.calls().call(&tenant(), call.id()).await.unwrap().unwrap();
    assert_eq!((stored.status, stored.value), (CallStatus::Success, Some(json!("new"))));
}

async fn a_lost_claim_writes_neither_run_nor_answer(harness: Harness) {
    let store = &harness.store;
    let chat =
        NewChat { title: "x".to_owned(), owner: "ann".to_owned(), owner_name: "ann".to_owned(), agent: None };
    let chat = store.chats().create(&tenant(), chat).await.unwrap().id;
    let run = run_at(&*harness.clock, "default");
    let answer = NewMessage {
        parent_id: None,
        role: MessageRole::Assistant,
        content: json!([]),
        run_id: Some(run.id),
    };
    let answer = store.chats().add_message(&tenant(), chat, answer).await.unwrap().unwrap().id;
    let run = Run { chat_id: Some(chat), message_id: Some(answer), ..run };
    let (run, late) = store.runs().create_claimed(run).await.unwrap();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let place = (chat, answer);
    assert!(
        store.chats().write_answer(&tenant(), place, (run.id, Some(&late)), text("partial")).await.unwrap()
    );
    let open = store.chats().write_answer(&tenant(), place, (run.id, None), text("nobody")).await;
    assert!(is_lost(&open), "an open run is written under its lease only");
    let (other, watching) = take_over(&harness).await;
    let (_, _, lease) = soon(async || other.runs().claim(run.id).await.unwrap()).await;
    let usage = RunUsage::default();
    let finished = |output: &str| RunEnd::Finished {
        status: RunStatus::Success,
        output: Some(json!(output)),
        error: None,
    };
    let writes_nothing = async || {
        let appended = store.runs().append_steps(&late, vec![step(&*harness.clock, 1)], &usage).await;
        assert!(matches!(appended, Err(RunStoreError::LeaseLost)));
        let left = store.runs().release_run(&late, finished("late"), &usage).await;
        assert!(matches!(left, Err(RunStoreError::LeaseLost)));
        let written = store.chats().write_answer(&tenant(), place, (run.id, Some(&late)), text("late")).await;
        assert!(is_lost(&written));
    };
    writes_nothing().await;
    assert!(
        other.chats().write_answer(&tenant(), place, (run.id, Some(&lease)), text("final")).await.unwrap()
    );
    other.runs().release_run(&lease, finished("new"), &usage).await.unwrap();
    writes_nothing().await;
    let message = store.chats().message(&tenant(), chat, answer).await.unwrap().unwrap();
    assert_eq!(message.content, text("final"));
    assert_eq!(store.runs().get(&tenant(), run.id).await.unwrap().unwrap().output, Some(json!("new")));
    // What has ended may be written by everybody: it is the same for all.
    assert!(store.chats().write_answer(&tenant(), place, (run.id, None), text("repaired")).await.unwrap());
    watching.stop().await;
    other.close().await;
}

async fn a_lost_claim_writes_no_document(harness: Harness) {
    let (store, pipeline) = (&harness.store, pipeline(&harness).await);
    let document = store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
    let late = store.documents().claim(1).await.unwrap().pop().unwrap();
    let (other, watching) = take_over(&harness).await;
    let claimed = soon(async || other.documents().claim(1).await.unwrap().pop()).await;
    let new = |id: &str| chunks(&pipeline, vec![chunk(&document, id, id, None)]);
    let writes_nothing = async || {
        assert!(is_lost(&store.documents().record_progress(&late, 1, 2).await));
        assert!(is_lost(&store.documents().keep_chunks(&late).await));
        assert!(is_lost(&store.documents().fail(&late, Some("late")).await));
        assert_eq!(
            store.documents().store_chunks(&late, new("late")).await.unwrap(),
            StoredChunks::Superseded
        );
    };
    writes_nothing().await;
    let state = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((state.state, state.chunks), (DocumentState::Running, 0));
    assert_eq!(other.documents().store_chunks(&claimed, new("new")).await.unwrap(), StoredChunks::Stored);
    writes_nothing().await;
    let state = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((state.state, state.error, state.chunks), (DocumentState::Done, None, 1));
    watching.stop().await;
    other.close().await;
}

fn result(claimed: &ClaimedDelivery, status: DeliveryStatus, response: u16) -> DeliveryResult {
    DeliveryResult {
        id: claimed.delivery.id,
        claim: claimed.claim.clone(),
        status,
        not_before: claimed.delivery.not_before,
        response_status: Some(response),
        error: None,
    }
}

fn all_deliveries() -> DeliveryLimits {
    DeliveryLimits { max: 100, per_webhook: 100, sending: HashMap::new() }
}

async fn a_lost_claim_writes_no_delivery(harness: Harness) {
    let store = &harness.store;
    let hook = webhook(&harness, WebhookScope::Tenant, WebhookEvent::RunFinished).await;
    let late = store.webhooks().begin_test_delivery(&tenant(), hook).await.unwrap();
    let (other, watching) = take_over(&harness).await;
    // At once, and not only when the time of the attempt is over: the clock of the test moves by milliseconds.
    let claimed = soon(async || other.webhooks().claim(all_deliveries()).await.unwrap().pop()).await;
    assert_eq!((claimed.delivery.id, claimed.delivery.attempts), (late.delivery.id, 2));
    assert!(is_lost(&store.webhooks().finish(result(&late, DeliveryStatus::Failed, 500)).await));
    other.webhooks().finish(result(&claimed, DeliveryStatus::Delivered, 204)).await.unwrap();
    assert!(is_lost(&store.webhooks().finish(result(&late, DeliveryStatus::Failed, 500)).await));
    assert!(
        is_lost(&other.webhooks().finish(result(&claimed, DeliveryStatus::Failed, 500)).await),
        "once only"
    );
    let query = DeliveryQuery { tenant: tenant(), webhook: hook, status: None, before: None, limit: 10 };
    let (stored, _) = store.webhooks().deliveries(query).await.unwrap();
    assert_eq!((stored[0].status, stored[0].response_status), (DeliveryStatus::Delivered, Some(204)));
    // A person sends it again while an attempt is under way.
    other.webhooks().redeliver(&tenant(), hook, claimed.delivery.id).await.unwrap();
    let attempt = other.webhooks().claim(all_deliveries()).await.unwrap().pop().unwrap();
    other.webhooks().redeliver(&tenant(), hook, claimed.delivery.id).await.unwrap();
    assert!(is_lost(&other.webhooks().finish(result(&attempt, DeliveryStatus::Failed, 500)).await));
    watching.stop().await;
    other.close().await;
}

fn manifest(root: &str) -> NewManifest {
    NewManifest {
        root: root.to_owned(),
        files: 1,
        bytes: 1,
        added: 1,
        source: ManifestSource::Edit,
        source_ref: None,
        created_by: "ann".to_owned(),
        message: None,
    }
}

async fn a_lost_claim_writes_no_workspace(harness: Harness) {
    let (store, name) = (&harness.store, "shared".parse::<WorkspaceName>().unwrap());
    store.workspaces().create(&tenant(), &name).await.unwrap();
    let late = store.workspaces().claim(&tenant(), &name).await.unwrap().unwrap();
    store.workspaces().add_manifest(&tenant(), &name, Some(&late), manifest("first")).await.unwrap();
    let (other, watching) = take_over(&harness).await;
    let claim = soon(async || other.workspaces().claim(&tenant(), &name).await.unwrap()).await;
    let writes_nothing = async || {
        assert!(is_lost(
            &store.workspaces().add_manifest(&tenant(), &name, Some(&late), manifest("late")).await
        ));
        store.workspaces().release(&tenant(), &name, &late).await.unwrap();
    };
    writes_nothing().await;
    other.workspaces().add_manifest(&tenant(), &name, Some(&claim), manifest("new")).await.unwrap();
    other.workspaces().release(&tenant(), &name, &claim).await.unwrap();
    assert!(is_lost(
        &other.workspaces().add_manifest(&tenant(), &name, Some(&claim), manifest("released")).await
    ));
    writes_nothing().await;
    let active = store.workspaces().active_manifest(&tenant(), &name).await.unwrap().flatten().unwrap();
    assert_eq!(active.root, "new");
    // The fences of a deleted workspace are not those of a new one with its name.
    store.workspaces().delete(&tenant(), &name).await.unwrap();
    store.workspaces().create(&tenant(), &name).await.unwrap();
    let fresh = store.workspaces().claim(&tenant(), &name).await.unwrap().unwrap();
    assert_ne!(fresh, late);
    writes_nothing().await;
    watching.stop().await;
    other.close().await;
}

async fn two_nodes_never_hold_the_same(harness: Harness) {
    let pipeline = pipeline(&harness).await;
    let hook = webhook(&harness, WebhookScope::Tenant, WebhookEvent::RunFinished).await;
    let (other, _) = harness.another().await;
    let name = "shared".parse::<WorkspaceName>().unwrap();
    harness.store.workspaces().create(&tenant(), &name).await.unwrap();
    let beating = (harness.store.watch(), other.watch());
    for number in 0..20 {
        harness.store.documents().add(&pipeline, upload(&format!("{number}.txt"), b"x")).await.unwrap();
        let (_, lease) =
            harness.store.runs().create_claimed(run_at(&*harness.clock, "default")).await.unwrap();
        let end = RunEnd::Finished { status: RunStatus::Success, output: None, error: None };
        harness.store.runs().release_run(&lease, end, &RunUsage::default()).await.unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for store in [Arc::clone(&harness.store), Arc::clone(&other)] {
        let name = name.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for _ in 0..25 {
                held.extend(
                    store.documents().claim(1).await.unwrap().iter().map(|one| one.info.id.to_string()),
                );
                let limits = DeliveryLimits { max: 1, ..all_deliveries() };
                let claimed = store.webhooks().claim(limits).await.unwrap();
                held.extend(claimed.iter().map(|one| one.delivery.id.to_string()));
            }
            let workspace = store.workspaces().claim(&tenant(), &name).await.unwrap();
            held.extend(workspace.map(|_| "the workspace".to_owned()));
            held
        });
    }
    let held = tasks.join_all().await.concat();
    assert_eq!(held.len(), 20 + 20 + 1, "each is claimed");
    assert_eq!(held.iter().collect::<HashSet<_>>().len(), held.len(), "and none twice");
    let query = DeliveryQuery { tenant: tenant(), webhook: hook, status: None, before: None, limit: 100 };
    assert_eq!(harness.store.webhooks().deliveries(query).await.unwrap().1, 20);
    beating.0.stop().await;
    beating.1.stop().await;
    other.close().await;
}
