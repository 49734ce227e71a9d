//! Quotas of tenants: counts, bytes, and the removal of old data.

use haft_core::Clock as _;
use haft_core::call::CallStatus;
use haft_core::catalog::{StoreError, Transition};
use haft_core::chat::MessageRole;
use haft_core::id::{ChatId, MessageId};
use haft_core::ledger::Ledger as _;
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::run::{Run, RunLease, RunStep, RunStore as _, RunUsage, StepBody};
use haft_core::tenant::TenantLimits;
use haft_core::workspace::{ManifestSource, WorkspaceName};
use haft_store::{
    NewChat, NewManifest, NewMessage, Retention, Store, StoreSettings, StoredChunks, TenantChange,
};
use serde_json::json;
use std::sync::Arc;

use crate::artifacts::{artifact, update};
use crate::harness::{Harness, Recorder, new_tool, on_both, spec};
use crate::ledger::{call_with, every_call};
use crate::pipelines::{self, upload};
use crate::runs::{finished, run_at};

on_both![
    the_number_of_each_thing_is_limited,
    old_runs_make_room_for_new_ones,
    a_lowered_limit_of_runs_removes_all_above_it,
    the_bytes_of_all_things_are_limited,
    messages_and_steps_count_as_bytes,
    ended_runs_make_room,
    calls_keep_their_share_whatever_else_is_stored,
    fetched_documents_count_as_bytes,
    results_stored_apart_count_as_bytes,
    nodes_do_not_exceed_a_quota_together,
    a_chat_with_an_open_run_is_kept,
    pinned_versions_are_kept,
    old_revisions_of_tools_are_removed,
    only_responses_keep_their_conversation,
];

fn own() -> TenantId {
    TenantId::default_tenant()
}

async fn limit(store: &Store, limits: TenantLimits) {
    let change = TenantChange { limits: Some(limits), ..TenantChange::default() };
    store.tenants().update(own(), change).await.unwrap();
}

/// Asserts that a limit refused something, and returns its message.
fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: LimitName) -> String {
    match result {
        Err(StoreError::LimitReached { limit, message, .. }) if limit == expected => message,
        other => panic!("{expected:?} did not refuse it: {other:?}"),
    }
}

async fn chat(store: &Store) -> Result<ChatId, StoreError> {
    let ann = || "ann".to_owned();
    let new = NewChat { title: ann(), owner: ann(), owner_name: ann(), agent: None };
    store.chats().create(&own(), new).await.map(|chat| chat.id)
}

async fn message(store: &Store, chat: ChatId, role: MessageRole) -> Result<(), StoreError> {
    let new = NewMessage { parent_id: None, role, content: json!("text"), run_id: None };
    store.chats().add_message(&own(), chat, new).await.map(|message| assert!(message.is_some()))
}

fn state(bytes: u64, added: u64) -> NewManifest {
    NewManifest {
        root: "{}".to_owned(),
        files: 1,
        bytes,
        added,
        source: ManifestSource::Edit,
        source_ref: None,
        created_by: "ann".to_owned(),
        message: None,
    }
}

fn workspace(name: &str) -> WorkspaceName {
    name.parse().unwrap()
}

async fn start(harness: &Harness, run: Run) -> Result<(Run, RunLease), StoreError> {
    harness.store.runs().create_claimed(run).await
}

async fn end(harness: &Harness, lease: &RunLease) {
    harness.store.runs().release_run(lease, finished(json!("done")), &RunUsage::default()).await.unwrap();
}

async fn the_number_of_each_thing_is_limited(harness: Harness) {
    let store = &harness.store;
    let limits = TenantLimits {
        max_chats: Some(1),
        max_messages_per_chat: Some(3),
        max_workspaces: Some(1),
        max_documents: Some(1),
        max_parallel_runs: Some(1),
        max_tools: Some(1),
        ..TenantLimits::default()
    };
    limit(store, limits).await;
    let mut messages = Vec::new();

    let first = chat(store).await.unwrap();
    messages.push(refused(chat(store).await, LimitName::Chats));
    message(store, first, MessageRole::User).await.unwrap();
    message(store, first, MessageRole::Assistant).await.unwrap();
    messages.push(refused(message(store, first, MessageRole::User).await, LimitName::ChatMessages));
    message(store, first, MessageRole::Assistant).await.unwrap();
    refused(message(store, first, MessageRole::Assistant).await, LimitName::ChatMessages);

    store.workspaces().create(&own(), &workspace("one")).await.unwrap();
    store.workspaces().create(&own(), &workspace("one")).await.unwrap();
    messages.push(refused(store.workspaces().create(&own(), &workspace("two")).await, LimitName::Workspaces));
    store.workspaces().create(&own(), &WorkspaceName::Chat(first)).await.unwrap();

    let pipeline = pipelines::create(store, &own(), "handbook").await.unwrap();
    store.documents().add(&pipeline, upload("a.txt", b"a")).await.unwrap();
    store.documents().add(&pipeline, upload("a.txt", b"changed")).await.unwrap();
    messages
        .push(refused(store.documents().add(&pipeline, upload("b.txt", b"b")).await, LimitName::Documents));

    let (one, lease) = start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
    messages
        .push(refused(start(&harness, run_at(&*harness.clock, "default")).await, LimitName::ParallelRuns));
    let inside = Run { parent_run: Some(one.id), ..run_at(&*harness.clock, "default") };
    start(&harness, inside).await.unwrap();
    end(&harness, &lease).await;
    start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
    start(&harness, run_at(&*harness.clock, "acme")).await.unwrap();

    harness.create(spec("one", "x")).await.unwrap();
    messages.push(refused(
        store.catalog().create_tool(new_tool("web", spec("two", "x"))).await,
        LimitName::Tools,
    ));

    let counts = limits.stored().map(|(name, _)| name);
    for (name, expected) in counts.into_iter().zip([1, 3, 1, 1, 1, 1]) {
        assert_eq!(store.limits().stored_count(&own(), name).await.unwrap(), expected, "{name:?}");
    }
    let expected = [
        "the tenant `default` has 1 chats; its limit is 1 (`limits.max_chats`); delete a chat first",
        "the chat has 2 messages; the limit of the tenant `default` is 3 (`limits.max_messages_per_chat`), and a question \
         needs room for its answer; start another chat",
        "the tenant `default` has 1 workspaces; its limit is 1 (`limits.max_workspaces`); delete a workspace first",
        "the tenant `default` has 1 documents; its limit is 1 (`limits.max_documents`); delete documents first",
        "the tenant `default` has 1 runs that have not ended; its limit is 1 (`limits.max_parallel_runs`); wait until one \
         has ended, or cancel one",
        "the tenant `default` has 1 tools; its limit is 1 (`limits.max_tools`); delete a tool first",
    ];
    assert_eq!(messages, expected);
}

async fn old_runs_make_room_for_new_ones(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_runs: Some(3), ..TenantLimits::default() }).await;
    let chat = chat(store).await.unwrap();
    let mut ids = Vec::new();
    for chat_id in [Some(chat), None, None] {
        let run = Run { chat_id, ..run_at(&*harness.clock, "default") };
        let (run, lease) = start(&harness, run).await.unwrap();
        end(&harness, &lease).await;
        ids.push(run.id);
        harness.clock.advance(1);
    }
    let exists = async |index: usize| store.runs().get(&own(), ids[index]).await.unwrap().is_some();
    start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
    assert_eq!((exists(0).await, exists(1).await, exists(2).await), (true, false, true));
    start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
    assert!(!exists(2).await);
    let message = refused(start(&harness, run_at(&*harness.clock, "default")).await, LimitName::Runs);
    assert!(message.contains("has 3 runs that answer in chats or have not ended"), "{message}");
    assert!(exists(0).await, "the conversation of the chat continues from it");
}

async fn a_lowered_limit_of_runs_removes_all_above_it(harness: Harness) {
    let store = &harness.store;
    for _ in 0..120 {
        let (_, lease) = start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
        end(&harness, &lease).await;
    }
    limit(store, TenantLimits { max_runs: Some(3), ..TenantLimits::default() }).await;
    start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
    assert_eq!(store.limits().stored_count(&own(), LimitName::Runs).await.unwrap(), 3);
}

async fn calls_keep_their_share_whatever_else_is_stored(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_stored_bytes: Some(200_000), ..TenantLimits::default() }).await;
    let name = workspace("work");
    store.workspaces().create(&own(), &name).await.unwrap();
    store.workspaces().add_manifest(&own(), &name, None, state(200_000, 200_000)).await.unwrap();
    let (run, lease) = start(&harness, run_at(&*harness.clock, "acme")).await.unwrap();
    end(&harness, &lease).await;
    for _ in 0..4 {
        store.calls().record(Arc::new(call_with(&harness.clock, CallStatus::Success, |_| {}))).await.unwrap();
    }
    let before = every_call(store, "default").await;
    store.reap().await.unwrap();
    assert_eq!(every_call(store, "default").await, before);
    assert!(store.runs().get(&run.principal.tenant, run.id).await.unwrap().is_some());
}

async fn fetched_documents_count_as_bytes(harness: Harness) {
    let store = &harness.store;
    let pipeline = pipelines::create(store, &own(), "handbook").await.unwrap();
    let document = store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
    let claimed = store.documents().claim(1).await.unwrap().pop().unwrap();
    limit(store, TenantLimits { max_stored_bytes: Some(10_000), ..TenantLimits::default() }).await;
    let chunk = pipelines::chunk(&document, "one", "text", None);
    let mut large = pipelines::chunks(&pipeline, vec![chunk]);
    large.content.1 = 10_001;
    let message =
        refused(store.documents().store_chunks(&claimed, large.clone()).await, LimitName::StoredBytes);
    assert!(message.contains("this change adds 9997; its limit is 10000"), "{message}");
    large.content.1 = 10_000;
    assert_eq!(store.documents().store_chunks(&claimed, large).await.unwrap(), StoredChunks::Stored);
}

async fn the_bytes_of_all_things_are_limited(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_stored_bytes: Some(10_000), ..TenantLimits::default() }).await;
    let (work, other) = (workspace("work"), workspace("other"));
    store.workspaces().create(&own(), &work).await.unwrap();
    store.workspaces().create(&own(), &other).await.unwrap();
    let add =
        async |name: &WorkspaceName, new| store.workspaces().add_manifest(&own(), name, None, new).await;
    add(&work, state(4000, 4000)).await.unwrap();
    // The same file written again and again: older states keep their bytes.
    let second = add(&work, state(4000, 4000)).await.unwrap();
    let message = refused(add(&work, state(4000, 4000)).await, LimitName::StoredBytes);
    assert_eq!(
        message,
        "the tenant `default` stores 8000 bytes and this change adds 4000; its limit is 10000 \
         (`limits.max_stored_bytes`); delete files, workspaces, documents, chats or definitions first"
    );
    let active = store.workspaces().active_manifest(&own(), &work).await.unwrap().flatten().unwrap();
    assert_eq!(active.info.id, second.id, "nothing was stored");
    refused(add(&other, state(2001, 2001)).await, LimitName::StoredBytes);
    add(&other, state(1000, 1000)).await.unwrap();
    store.limits().check_stored_bytes(&own(), 1000).await.unwrap();
    refused(store.limits().check_stored_bytes(&own(), 1001).await, LimitName::StoredBytes);

    let pipeline = pipelines::create(store, &own(), "handbook").await.unwrap();
    let large = [b'x'; 900];
    store.documents().add(&pipeline, upload("a.txt", &large)).await.unwrap();
    refused(store.documents().add(&pipeline, upload("b.txt", &large)).await, LimitName::StoredBytes);
    assert_eq!(store.documents().list(&pipeline, &[], None, 10).await.unwrap().len(), 1);
    refused(
        store.catalog().create_tool(new_tool("web", spec("one", &"x".repeat(500)))).await,
        LimitName::StoredBytes,
    );
    // Changes that free space are never rejected, even above the limit.
    limit(store, TenantLimits { max_stored_bytes: Some(100), ..TenantLimits::default() }).await;
    store.documents().add(&pipeline, upload("a.txt", b"small")).await.unwrap();
    add(&work, state(1, 0)).await.unwrap();
    assert!(store.workspaces().delete(&own(), &work).await.unwrap());
    assert!(store.workspaces().delete(&own(), &other).await.unwrap());
    store.workspaces().create(&own(), &work).await.unwrap();
    add(&work, state(50, 50)).await.unwrap();
    let usage = store.limits().tenant_usage(&own()).await.unwrap();
    assert_eq!((usage.workspace_bytes, usage.document_bytes), (50, 5));
}

async fn say(store: &Store, chat: ChatId, bytes: usize) -> Result<MessageId, StoreError> {
    let content = json!("x".repeat(bytes - 2));
    let new = NewMessage { parent_id: None, role: MessageRole::User, content, run_id: None };
    store.chats().add_message(&own(), chat, new).await.map(|message| message.unwrap().id)
}

fn large_step(harness: &Harness, number: u32, bytes: usize) -> RunStep {
    let text = "x".repeat(bytes);
    RunStep { number, body: StepBody::Correction { text }, started_at: harness.clock.now(), duration_ms: 1.0 }
}

async fn messages_and_steps_count_as_bytes(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_stored_bytes: Some(10_000), ..TenantLimits::default() }).await;
    let usage = async || {
        let usage = store.limits().tenant_usage(&own()).await.unwrap();
        (usage.chat_bytes, usage.run_bytes)
    };
    let chat = chat(store).await.unwrap();
    let first = say(store, chat, 4000).await.unwrap();
    assert_eq!(usage().await, (4000, 0));
    store.chats().set_message_content(&own(), chat, first, json!("short")).await.unwrap();
    let unknown = MessageId(uuid::Uuid::nil());
    store.chats().set_message_content(&own(), chat, unknown, json!("no message")).await.unwrap();
    assert_eq!(usage().await, (7, 0));
    say(store, chat, 6000).await.unwrap();
    let message = refused(say(store, chat, 4000).await, LimitName::StoredBytes);
    assert!(message.contains("stores 6007 bytes and this change adds 4000; its limit is 10000"), "{message}");
    assert_eq!(store.chats().messages(&own(), chat, None, 10).await.unwrap().len(), 2, "nothing was stored");

    let input = json!("x".repeat(998));
    let run = Run { chat_id: Some(chat), input, ..run_at(&*harness.clock, "default") };
    let (run, lease) = start(&harness, run).await.unwrap();
    assert_eq!(usage().await, (6007, 1000));
    let steps = vec![large_step(&harness, 1, 2000), large_step(&harness, 2, 10)];
    let runs = store.runs();
    runs.append_steps(&lease, steps.clone(), &RunUsage::default()).await.unwrap();
    let with_steps = usage().await.1;
    assert!((3000..3500).contains(&with_steps), "{with_steps}");
    // Repeated, since the answer of the database was lost.
    assert!(runs.append_steps(&lease, steps, &RunUsage::default()).await.is_err());
    assert_eq!(usage().await.1, with_steps);
    refused(say(store, chat, 1000).await, LimitName::StoredBytes);
    let other = Run { input: json!("x".repeat(998)), ..run_at(&*harness.clock, "default") };
    refused(start(&harness, other).await, LimitName::StoredBytes);
    // The answer was admitted with its question.
    let answer = NewMessage {
        parent_id: None,
        role: MessageRole::Assistant,
        content: json!("x".repeat(998)),
        run_id: Some(run.id),
    };
    store.chats().add_message(&own(), chat, answer).await.unwrap().unwrap();
    end(&harness, &lease).await;
    // The conversation is gone, the output is new.
    assert_eq!(usage().await, (7007, with_steps - 1000 + 4 + 6));
    assert!(store.chats().delete(&own(), chat).await.unwrap());
    assert_eq!(usage().await, (0, 0));
}

/// Runs outside of chats cannot be deleted manually: the oldest are removed, as calls are.
async fn ended_runs_make_room(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_stored_bytes: Some(100_000), ..TenantLimits::default() }).await;
    let mut ids = Vec::new();
    for _ in 0..30 {
        let (run, lease) = start(&harness, run_at(&*harness.clock, "default")).await.unwrap();
        let steps = vec![large_step(&harness, 1, 4000)];
        store.runs().append_steps(&lease, steps, &RunUsage::default()).await.unwrap();
        end(&harness, &lease).await;
        ids.push(run.id);
        harness.clock.advance(1);
    }
    assert!(store.limits().tenant_usage(&own()).await.unwrap().run_bytes > 120_000);
    let chat = chat(store).await.unwrap();
    say(store, chat, 40_000).await.unwrap();
    store.reap().await.unwrap();
    let usage = store.limits().tenant_usage(&own()).await.unwrap();
    assert!(usage.run_bytes <= 30_000 && usage.stored_bytes() <= 100_000, "{usage:?}");
    let exists = async |id| store.runs().get(&own(), id).await.unwrap().is_some();
    assert_eq!((exists(ids[0]).await, exists(ids[29]).await), (false, true));
}

async fn results_stored_apart_count_as_bytes(harness: Harness) {
    let store = &harness.store;
    limit(store, TenantLimits { max_stored_bytes: Some(200_000), ..TenantLimits::default() }).await;
    for number in 0..4 {
        let mut call = call_with(&harness.clock, CallStatus::Success, |_| {});
        call.stored_bytes = Some(if number == 3 { 100_000 } else { 60_000 });
        store.calls().record(Arc::new(call)).await.unwrap();
        harness.clock.advance(24);
    }
    every_call(store, "default").await;
    store.reap().await.unwrap();
    let calls = every_call(store, "default").await;
    let kept: Vec<bool> = calls.iter().rev().map(|call| call.stored_bytes.is_some()).collect();
    assert_eq!(kept, [false, false, true, true]);
    let usage = store.limits().tenant_usage(&own()).await.unwrap();
    assert!((160_000..200_000).contains(&usage.call_bytes), "{usage:?}");
}

async fn nodes_do_not_exceed_a_quota_together(harness: Harness) {
    let limits = TenantLimits { max_chats: Some(5), ..TenantLimits::default() };
    limit(&harness.store, limits).await;
    let (other, _) = harness.another().await;
    let nodes = [&harness.store, &other].into_iter().cycle().take(16);
    let created = futures_util::future::join_all(nodes.map(|store| chat(store))).await;
    assert_eq!(created.iter().filter(|chat| chat.is_ok()).count(), 5, "{created:?}");
    other.close().await;
}

async fn a_chat_with_an_open_run_is_kept(harness: Harness) {
    let store = &harness.store;
    let (open, idle) = (chat(store).await.unwrap(), chat(store).await.unwrap());
    let run = Run { chat_id: Some(open), ..run_at(&*harness.clock, "default") };
    let (_, lease) = start(&harness, run).await.unwrap();
    harness.clock.advance(24 * 366);
    store.reap().await.unwrap();
    assert!(store.chats().get(&own(), idle).await.unwrap().is_none(), "a year is the default");
    assert!(store.chats().get(&own(), open).await.unwrap().is_some());
    end(&harness, &lease).await;
    store.reap().await.unwrap();
    assert!(store.chats().get(&own(), open).await.unwrap().is_none());
}

/// Opens the store again, so that it keeps few revisions.
async fn keeping(harness: &mut Harness, revisions: u32) {
    harness.store.close().await;
    let retention =
        Retention { artifact_versions: revisions, tool_revisions: revisions, ..Retention::default() };
    let settings = StoreSettings { retention, ..harness.settings() };
    harness.store =
        Store::open(settings, harness.clock.clone(), Arc::new(Recorder::default())).await.unwrap();
}

async fn pinned_versions_are_kept(mut harness: Harness) {
    keeping(&mut harness, 2).await;
    let store = &harness.store;
    let id = store.artifacts().create(&own(), artifact("count", "one"), "ann").await.unwrap().id;
    for source in ["two", "three", "four", "five", "six"] {
        update(store, &own(), id, artifact("count", source)).await.unwrap();
        if source == "three" {
            store.artifacts().publish(&own(), id, None).await.unwrap();
        }
    }
    let mut pinning = spec("pinning", "x");
    pinning.implementation =
        serde_json::from_value(json!({"type": "artifact", "artifact_id": "count", "artifact_version": "2"}))
            .unwrap();
    let mut unrelated = pinning.clone();
    unrelated.name = "unrelated".parse().unwrap();
    unrelated.implementation =
        serde_json::from_value(json!({"type": "artifact", "artifact_id": "other", "artifact_version": "1"}))
            .unwrap();
    harness.create(pinning.clone()).await.unwrap();
    harness.create(unrelated).await.unwrap();
    let versions = async || {
        let mut kept = Vec::new();
        for number in 1..=6 {
            if store.artifacts().revision(&own(), id, number).await.unwrap().is_some() {
                kept.push(number);
            }
        }
        kept
    };
    store.reap().await.unwrap();
    assert_eq!(versions().await, [2, 3, 5, 6]);
}

async fn old_revisions_of_tools_are_removed(mut harness: Harness) {
    keeping(&mut harness, 2).await;
    let tool = harness.create(spec("weather", "1")).await.unwrap().id;
    for number in 2..=6 {
        harness.store.catalog().update_tool(tool, spec("weather", &number.to_string()).into()).await.unwrap();
        if number == 3 {
            harness.store.catalog().transition(tool, Transition::Publish).await.unwrap();
        }
    }
    harness.store.reap().await.unwrap();
    let revisions = harness.store.catalog().revisions(tool).await.unwrap();
    assert_eq!(revisions.iter().map(|revision| revision.number).collect::<Vec<_>>(), [6, 5, 3]);
    harness.restart().await;
    harness.assert_consistent().await;
}

async fn only_responses_keep_their_conversation(harness: Harness) {
    for (surface, is_kept) in [("rest", false), ("cli", false), ("openai", true)] {
        let run = Run { surface: surface.to_owned(), ..run_at(&*harness.clock, "default") };
        let (run, lease) = start(&harness, run).await.unwrap();
        let open = harness.store.runs().get(&own(), run.id).await.unwrap().unwrap();
        assert_eq!(open.input, run.input, "another node may have to continue it");
        end(&harness, &lease).await;
        let ended = harness.store.runs().get(&own(), run.id).await.unwrap().unwrap();
        assert_eq!(!ended.input.is_null(), is_kept, "{surface}");
    }
}
