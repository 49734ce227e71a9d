//! Runs of agents: claims, fences, steps, waits, cancellation, recovery, retention.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Clock;
use haft_core::agent::AgentBudget;
use haft_core::catalog::StoreError;
use haft_core::chat::MessageRole;
use haft_core::id::{AgentId, ChatId, RunId, WebhookId};
use haft_core::ledger::Ledger as _;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::{ActingAgent, AllowList};
use haft_core::run::{
    Run, RunEnd, RunLease, RunStatus, RunStep, RunStore as _, RunStoreError, RunUsage, StepBody,
};
use haft_core::runnable::Mode;
use haft_core::secret::Secret;
use haft_core::webhook::{ToolPatterns, Webhook, WebhookEvent, WebhookScope, WebhookTarget};
use haft_store::{
    ApprovalDecision, ClaimedRun, DeliveryQuery, NewChat, NewMessage, NewWebhook, RunQuery, Store,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agents::{definition, slug};
use crate::approvals::{approve, decide, waiting};
use crate::harness::{Harness, call_id, on_both};
use crate::ledger::principal;

on_both![
    a_run_is_stored_claimed_and_read_back,
    of_two_nodes_one_claims_a_run,
    runs_are_claimed_in_turn_of_their_tenants,
    a_lost_lease_writes_nothing,
    a_step_number_is_stored_once,
    steps_of_many_runs_are_stored_at_once,
    a_run_waits_until_its_calls_have_ended,
    a_run_that_waits_for_a_queued_call_continues_after_it,
    runs_are_cancelled,
    a_run_of_a_dead_node_continues,
    a_released_run_continues_elsewhere,
    a_chat_has_one_answer_at_a_time,
    a_deleted_chat_leaves_no_run,
    old_runs_are_removed,
    a_deleted_tenant_leaves_no_run,
    runs_are_filtered,
    the_end_of_a_run_is_delivered,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) fn run_at(clock: &dyn Clock, tenant: &str) -> Run {
    let now = haft_core::Timestamp::from_microsecond(clock.now().as_microsecond()).unwrap();
    let seconds = u64::try_from(now.as_second()).unwrap();
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap();
    let id = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos));
    Run {
        id: RunId(id),
        agent_id: AgentId(Uuid::now_v7()),
        agent_revision: 1,
        definition: Arc::new(definition("assistant")),
        principal: principal(tenant, "ann"),
        surface: "rest".to_owned(),
        mode: Mode::Debug,
        input: json!([{"role": "user", "content": "why \u{0}?"}]),
        variables: BTreeMap::from([("place".to_owned(), json!("Zürich"))]),
        chat_id: None,
        message_id: None,
        parent_call: None,
        parent_run: None,
        ancestors: vec![AgentSlug::new("planner").unwrap()],
        surfaces_above: vec!["mcp".into(), "steps".into()],
        budget: AgentBudget { calls: Some(3), ..AgentBudget::default() },
        webhook: None,
        request_id: Some("r".to_owned()),
        status: RunStatus::Pending,
        output: None,
        error: None,
        usage: RunUsage::default(),
        created_at: now,
        started_at: None,
        finished_at: None,
    }
}

fn new_run(harness: &Harness) -> Run {
    run_at(&*harness.clock, "default")
}

pub(crate) fn step(clock: &dyn Clock, number: u32) -> RunStep {
    let text = format!("step {number} \u{0}");
    RunStep { number, body: StepBody::Correction { text }, started_at: clock.now(), duration_ms: 1.5 }
}

fn usage(answers: u32) -> RunUsage {
    RunUsage { answers, cost: Some(0.25), currency: Some("EUR".to_owned()), ..RunUsage::default() }
}

pub(crate) fn finished(output: Value) -> RunEnd {
    RunEnd::Finished { status: RunStatus::Success, output: Some(output), error: None }
}

async fn created(harness: &Harness) -> Run {
    let run = new_run(harness);
    harness.store.runs().create(run.clone()).await.unwrap();
    run
}

async fn claimed(store: &Store) -> Vec<ClaimedRun> {
    store.runs().claim_next(100).await.unwrap()
}

/// Claims the only run that can be claimed, as soon as there is one.
async fn claim_soon(store: &Store) -> ClaimedRun {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let mut found = claimed(store).await;
        assert!(found.len() < 2, "{found:?}");
        if let Some(found) = found.pop() {
            return found;
        }
        assert!(Instant::now() < deadline, "there is no run to claim");
        store.runs().ready().await;
    }
}

async fn stored(store: &Store, id: RunId) -> Run {
    store.runs().get(&tenant(), id).await.unwrap().unwrap()
}

async fn numbers(store: &Store, id: RunId) -> Vec<u32> {
    let steps = store.runs().steps(&tenant(), id, 0, 1000).await.unwrap();
    steps.iter().map(|step| step.number).collect()
}

fn is_lost(result: &Result<(), RunStoreError>) -> bool {
    matches!(result, Err(RunStoreError::LeaseLost))
}

async fn a_run_is_stored_claimed_and_read_back(mut harness: Harness) {
    let run = created(&harness).await;
    assert_eq!(stored(&harness.store, run.id).await, run);
    assert_eq!(harness.store.runs().get(&TenantId::new("acme").unwrap(), run.id).await.unwrap(), None);
    let (claimed_run, steps, lease) = harness.store.runs().claim(run.id).await.unwrap().unwrap();
    assert_eq!((steps.len(), lease.run, claimed_run.status), (0, run.id, RunStatus::Running));
    let started_at = claimed_run.started_at;
    assert_eq!(claimed_run, Run { status: RunStatus::Running, started_at, ..run.clone() });
    assert!(harness.store.runs().claim(run.id).await.unwrap().is_none(), "it is claimed");
    assert_eq!(claimed(&harness.store).await, []);
    let first = vec![step(&*harness.clock, 1), step(&*harness.clock, 2)];
    harness.store.runs().append_steps(&lease, first.clone(), &usage(1)).await.unwrap();
    assert_eq!(stored(&harness.store, run.id).await.usage, usage(1));
    let output = json!({"answer": "\u{0}"});
    harness.store.runs().release_run(&lease, finished(output.clone()), &usage(2)).await.unwrap();
    harness.restart().await;
    let ended = stored(&harness.store, run.id).await;
    assert_eq!((ended.status, ended.output, ended.usage), (RunStatus::Success, Some(output), usage(2)));
    assert!(ended.finished_at.is_some() && ended.started_at == started_at);
    let steps = harness.store.runs().steps(&tenant(), run.id, 0, 100).await.unwrap();
    assert_eq!(steps, first);
    assert_eq!(harness.store.runs().steps(&tenant(), run.id, 1, 100).await.unwrap(), first[1..]);
    assert_eq!(
        harness.store.runs().steps(&TenantId::new("acme").unwrap(), run.id, 0, 100).await.unwrap(),
        []
    );
    assert_eq!(claimed(&harness.store).await, [], "it has ended");
    // Both steps at once.
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    assert_eq!((run.status, run.started_at.is_some()), (RunStatus::Running, true));
    assert_eq!(stored(&harness.store, run.id).await, run);
    harness.store.runs().append_steps(&lease, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
}

async fn of_two_nodes_one_claims_a_run(harness: Harness) {
    let (other, _) = harness.another().await;
    let mut expected = HashSet::new();
    for _ in 0..40 {
        expected.insert(created(&harness).await.id);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for store in [&harness.store, &other, &harness.store, &other] {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let (mut mine, mut empty) = (Vec::new(), 0);
            while empty < 5 {
                let found = store.runs().claim_next(3).await.unwrap();
                empty = if found.is_empty() { empty + 1 } else { 0 };
                mine.extend(found.into_iter().map(|(run, ..)| run.id));
            }
            mine
        });
    }
    let all: Vec<RunId> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), expected.len(), "a run was claimed twice or never");
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), expected);
    for _ in 0..10 {
        let run = created(&harness).await;
        let (one, two) = tokio::join!(harness.store.runs().claim(run.id), other.runs().claim(run.id));
        assert_ne!(one.unwrap().is_some(), two.unwrap().is_some());
    }
    other.close().await;
}

async fn runs_are_claimed_in_turn_of_their_tenants(harness: Harness) {
    let mut ids = Vec::new();
    for tenant in ["acme", "acme", "acme", "default", "default", "beta"] {
        let run = run_at(&*harness.clock, tenant);
        harness.store.runs().create(run.clone()).await.unwrap();
        ids.push(run.id);
    }
    let claim = async |max| -> Vec<usize> {
        let found = harness.store.runs().claim_next(max).await.unwrap();
        found.iter().map(|(run, ..)| ids.iter().position(|id| *id == run.id).unwrap()).collect()
    };
    assert_eq!(claim(0).await, Vec::<usize>::new());
    assert_eq!(claim(3).await, [0, 3, 5]);
    assert_eq!(claim(10).await, [1, 4, 2]);
}

async fn a_lost_lease_writes_nothing(harness: Harness) {
    let run = created(&harness).await;
    let (_, _, old) = harness.store.runs().claim(run.id).await.unwrap().unwrap();
    harness.store.runs().append_steps(&old, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
    harness.store.runs().release_run(&old, RunEnd::Released, &usage(1)).await.unwrap();
    let (_, steps, new) = harness.store.runs().claim(run.id).await.unwrap().unwrap();
    assert_eq!(steps.len(), 1);
    assert!(new.fence > old.fence);
    let ends = [finished(json!("old")), RunEnd::Released, RunEnd::Waiting(vec![call_id(&harness.clock)])];
    for end in ends.clone() {
        assert!(is_lost(&harness.store.runs().release_run(&old, end, &usage(9)).await));
    }
    let late = harness.store.runs().append_steps(&old, vec![step(&*harness.clock, 2)], &usage(9)).await;
    assert!(is_lost(&late));
    assert_eq!(numbers(&harness.store, run.id).await, [1]);
    let state = stored(&harness.store, run.id).await;
    assert_eq!((state.status, state.usage), (RunStatus::Running, usage(1)));
    harness.store.runs().append_steps(&new, vec![step(&*harness.clock, 2)], &usage(2)).await.unwrap();
    harness.store.runs().release_run(&new, finished(json!("new")), &usage(2)).await.unwrap();
    // Nobody writes to a run that has ended, or does not exist.
    for end in ends {
        assert!(is_lost(&harness.store.runs().release_run(&new, end, &usage(9)).await));
    }
    let unknown = RunLease { run: new_run(&harness).id, fence: 1 };
    assert!(is_lost(&harness.store.runs().append_steps(&unknown, Vec::new(), &usage(9)).await));
    let state = stored(&harness.store, run.id).await;
    assert_eq!((state.output, state.usage), (Some(json!("new")), usage(2)));
}

async fn a_step_number_is_stored_once(harness: Harness) {
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    let first = step(&*harness.clock, 1);
    harness.store.runs().append_steps(&lease, vec![first.clone()], &usage(1)).await.unwrap();
    let other = RunStep { duration_ms: 9.0, ..first.clone() };
    let repeated = harness.store.runs().append_steps(&lease, vec![other], &usage(1)).await;
    assert!(matches!(repeated, Err(RunStoreError::Store(StoreError::Conflict(_)))));
    assert_eq!(harness.store.runs().steps(&tenant(), run.id, 0, 10).await.unwrap(), [first]);
    let many = (2..=1200).map(|number| step(&*harness.clock, number)).collect();
    harness.store.runs().append_steps(&lease, many, &usage(1)).await.unwrap();
    assert_eq!(harness.store.runs().steps(&tenant(), run.id, 1100, 1000).await.unwrap().len(), 100);
}

async fn steps_of_many_runs_are_stored_at_once(harness: Harness) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
        let (store, clock) = (Arc::clone(&harness.store), Arc::clone(&harness.clock));
        tasks.spawn(async move {
            for number in 1..=10 {
                store.runs().append_steps(&lease, vec![step(&*clock, number)], &usage(number)).await.unwrap();
            }
            run.id
        });
    }
    for id in tasks.join_all().await {
        assert_eq!(numbers(&harness.store, id).await, (1..=10).collect::<Vec<_>>());
        assert_eq!(stored(&harness.store, id).await.usage, usage(10));
    }
}

async fn a_run_waits_until_its_calls_have_ended(mut harness: Harness) {
    let one = waiting(&harness, "ann", json!({"n": 1})).await;
    let two = waiting(&harness, "ann", json!({"n": 2})).await;
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    let calls = vec![one.call_id, two.call_id];
    harness.store.runs().release_run(&lease, RunEnd::Waiting(calls), &usage(1)).await.unwrap();
    assert_eq!(stored(&harness.store, run.id).await.status, RunStatus::AwaitingApproval);
    assert_eq!(claimed(&harness.store).await, []);
    assert!(harness.store.runs().claim(run.id).await.unwrap().is_none());
    harness.restart().await;
    assert_eq!(claimed(&harness.store).await, [], "it still waits after a restart");
    decide(&harness, one.id, ApprovalDecision::Deny { reason: None }).await.unwrap();
    assert_eq!(claimed(&harness.store).await, [], "one of them has ended");
    decide(&harness, two.id, ApprovalDecision::Deny { reason: None }).await.unwrap();
    let (again, _, newer) = claimed(&harness.store).await.pop().unwrap();
    assert_eq!((again.id, again.status), (run.id, RunStatus::Running));
    assert!(newer.fence > lease.fence);
    // Calls that have ended already, or are gone, are not waited for.
    let gone = call_id(&harness.clock);
    harness
        .store
        .runs()
        .release_run(&newer, RunEnd::Waiting(vec![one.call_id, gone]), &usage(1))
        .await
        .unwrap();
    assert_eq!(claimed(&harness.store).await.len(), 1);
}

async fn a_run_that_waits_for_a_queued_call_continues_after_it(harness: Harness) {
    let approval = waiting(&harness, "ann", json!({"n": 1})).await;
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    harness
        .store
        .runs()
        .release_run(&lease, RunEnd::Waiting(vec![approval.call_id]), &usage(1))
        .await
        .unwrap();
    decide(&harness, approval.id, approve()).await.unwrap();
    assert_eq!(claimed(&harness.store).await, [], "the call is in the queue");
    let mut call = crate::approvals::claimed(&harness).await.pop().unwrap();
    assert_eq!(claimed(&harness.store).await, [], "the call runs");
    let agent = ActingAgent {
        slug: slug("assistant"),
        run: run.id,
        tools: AllowList::default(),
        excluded: None,
        ancestors: Vec::new(),
        parent: None,
    };
    call.invocation.principal = Arc::new(call.invocation.principal.acting(agent));
    call.finish(Ok(json!(1)), call.started_at, 1.0);
    // The end of the call is in the table as soon as it is recorded, although no task drains the journal here.
    harness.store.calls().record(Arc::new(call)).await.unwrap();
    assert_eq!(claimed(&harness.store).await.len(), 1);
}

async fn runs_are_cancelled(harness: Harness) {
    let store = &harness.store;
    let pending = created(&harness).await;
    let cancel = async |id| store.runs().request_cancel(&tenant(), id).await.unwrap();
    assert_eq!(store.runs().request_cancel(&TenantId::new("acme").unwrap(), pending.id).await.unwrap(), None);
    assert_eq!(cancel(pending.id).await, Some(RunStatus::Cancelled));
    let ended = stored(store, pending.id).await;
    assert_eq!((ended.status, ended.error.unwrap().code), (RunStatus::Cancelled, ErrorCode::Cancelled));
    assert_eq!(cancel(pending.id).await, Some(RunStatus::Cancelled), "again");
    assert_eq!(claimed(store).await, []);
    // The node that runs it sees the request.
    let (running, lease) = store.runs().create_claimed(new_run(&harness)).await.unwrap();
    let (other, _) = harness.another().await;
    assert_eq!(other.runs().request_cancel(&tenant(), running.id).await.unwrap(), Some(RunStatus::Running));
    assert_eq!(store.runs().cancelled().await.unwrap(), [running.id]);
    assert_eq!(other.runs().cancelled().await.unwrap(), []);
    other.close().await;
    let error = Some(CallError::new(ErrorCode::Cancelled, "stopped"));
    let end = RunEnd::Finished { status: RunStatus::Cancelled, output: None, error };
    store.runs().release_run(&lease, end, &usage(1)).await.unwrap();
    assert_eq!(store.runs().cancelled().await.unwrap(), []);
    assert_eq!(cancel(running.id).await, Some(RunStatus::Cancelled));
    // A run that waits ends, and so do the calls that it waits for.
    let status = async |call| store.calls().call(&tenant(), call).await.unwrap().unwrap().status.as_str();
    let approval = waiting(&harness, "ann", json!({"n": 1})).await;
    let (run, lease) = store.runs().create_claimed(new_run(&harness)).await.unwrap();
    store.runs().release_run(&lease, RunEnd::Waiting(vec![approval.call_id]), &usage(1)).await.unwrap();
    assert_eq!(cancel(run.id).await, Some(RunStatus::Cancelled));
    assert_eq!(status(approval.call_id).await, "cancelled");
    assert!(decide(&harness, approval.id, approve()).await.is_err());
    assert_eq!(claimed(store).await, []);
    // Cancelled while it runs, it does not wait any more.
    let approval = waiting(&harness, "ann", json!({"n": 2})).await;
    let (run, lease) = store.runs().create_claimed(new_run(&harness)).await.unwrap();
    assert_eq!(cancel(run.id).await, Some(RunStatus::Running));
    store.runs().release_run(&lease, RunEnd::Waiting(vec![approval.call_id]), &usage(3)).await.unwrap();
    let ended = stored(store, run.id).await;
    assert_eq!((ended.status, ended.usage), (RunStatus::Cancelled, usage(3)));
    assert_eq!(status(approval.call_id).await, "cancelled");
}

async fn a_run_of_a_dead_node_continues(mut harness: Harness) {
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    harness.store.runs().append_steps(&lease, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
    harness.store.runs().request_cancel(&tenant(), run.id).await.unwrap();
    // A second node changes nothing while the first is alive.
    let (other, _) = harness.another().await;
    assert_eq!(claimed(&other).await, []);
    // Like a crash: dropped, not closed.
    drop(std::mem::replace(&mut harness.store, other));
    if harness.is_embedded() {
        // A new process has the runs of the dead one at once.
        harness.reopen().await;
        assert_eq!(stored(&harness.store, run.id).await.status, RunStatus::Pending);
    }
    let watching = harness.store.watch();
    let (again, steps, newer) = claim_soon(&harness.store).await;
    assert_eq!((again.id, steps.len(), again.usage), (run.id, 1, usage(1)));
    assert!(newer.fence > lease.fence);
    assert_eq!(harness.store.runs().cancelled().await.unwrap(), [run.id], "the request is not lost");
    let late = harness.store.runs().append_steps(&lease, vec![step(&*harness.clock, 2)], &usage(9)).await;
    assert!(is_lost(&late), "the first node was only cut off");
    harness.store.runs().append_steps(&newer, vec![step(&*harness.clock, 2)], &usage(2)).await.unwrap();
    watching.stop().await;
}

async fn a_released_run_continues_elsewhere(harness: Harness) {
    let (other, _) = harness.another().await;
    let watching = other.watch();
    let (run, lease) = harness.store.runs().create_claimed(new_run(&harness)).await.unwrap();
    assert_eq!(claimed(&other).await, []);
    let mut changes = harness.store.runs().changes();
    changes.mark_unchanged();
    harness.store.runs().release_run(&lease, RunEnd::Released, &usage(1)).await.unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!(claim_soon(&other).await.0.id, run.id);
    watching.stop().await;
    other.close().await;
}

async fn chat(harness: &Harness) -> ChatId {
    let new = NewChat { title: "x".into(), owner: "ann".into(), owner_name: "ann".into(), agent: None };
    harness.store.chats().create(&tenant(), new).await.unwrap().id
}

async fn a_chat_has_one_answer_at_a_time(harness: Harness) {
    let (store, chat_id) = (&harness.store, Some(chat(&harness).await));
    let answer = || Run { chat_id, ..new_run(&harness) };
    assert_eq!(store.runs().open_of_chat(&tenant(), chat_id.unwrap()).await.unwrap(), None);
    let (run, lease) = store.runs().create_claimed(answer()).await.unwrap();
    let open = store.runs().open_of_chat(&tenant(), chat_id.unwrap()).await.unwrap().unwrap();
    assert_eq!(open.id, run.id);
    let second = store.runs().create(answer()).await;
    assert!(
        matches!(&second, Err(StoreError::Conflict(text)) if text.contains("stop it first")),
        "{second:?}"
    );
    assert!(matches!(store.runs().create_claimed(answer()).await, Err(StoreError::Conflict(_))));
    // The runs inside of the answer belong to it.
    store.runs().create(Run { parent_run: Some(run.id), ..answer() }).await.unwrap();
    store.runs().create(Run { parent_call: Some(call_id(&harness.clock)), ..answer() }).await.unwrap();
    store.runs().release_run(&lease, finished(json!("x")), &usage(1)).await.unwrap();
    assert_eq!(store.runs().open_of_chat(&tenant(), chat_id.unwrap()).await.unwrap(), None);
    store.runs().create(answer()).await.unwrap();
}

async fn a_deleted_chat_leaves_no_run(harness: Harness) {
    let (store, chat_id) = (&harness.store, chat(&harness).await);
    let new = NewMessage { parent_id: None, role: MessageRole::User, content: json!("x"), run_id: None };
    store.chats().add_message(&tenant(), chat_id, new).await.unwrap();
    let answer = Run { chat_id: Some(chat_id), ..new_run(&harness) };
    let (run, lease) = store.runs().create_claimed(answer).await.unwrap();
    let inner = Run { parent_run: Some(run.id), ..new_run(&harness) };
    let (inner, inner_lease) = store.runs().create_claimed(inner).await.unwrap();
    let kept = created(&harness).await;
    let approval = waiting(&harness, "ann", json!({"n": 1})).await;
    store.runs().append_steps(&lease, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
    store.runs().release_run(&inner_lease, RunEnd::Waiting(vec![approval.call_id]), &usage(1)).await.unwrap();
    assert!(store.chats().delete(&tenant(), chat_id).await.unwrap());
    for id in [run.id, inner.id] {
        assert_eq!(store.runs().get(&tenant(), id).await.unwrap(), None);
        assert_eq!(numbers(store, id).await, Vec::<u32>::new());
    }
    let late = store.runs().append_steps(&lease, vec![step(&*harness.clock, 2)], &usage(1)).await;
    assert!(is_lost(&late));
    let call = store.calls().call(&tenant(), approval.call_id).await.unwrap().unwrap();
    assert_eq!(call.status.as_str(), "cancelled");
    assert_eq!(stored(store, kept.id).await, kept);
}

async fn old_runs_are_removed(harness: Harness) {
    let (store, chat_id) = (&harness.store, chat(&harness).await);
    let end = async |run: Run| {
        let (run, lease) = store.runs().create_claimed(run).await.unwrap();
        store.runs().append_steps(&lease, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
        store.runs().release_run(&lease, finished(json!("x")), &usage(1)).await.unwrap();
        run.id
    };
    let old = end(new_run(&harness)).await;
    let answer = end(Run { chat_id: Some(chat_id), ..new_run(&harness) }).await;
    let orphan = end(Run { chat_id: Some(ChatId(Uuid::now_v7())), ..new_run(&harness) }).await;
    let open = created(&harness).await.id;
    harness.clock.advance(24 * 29);
    let newer = end(new_run(&harness)).await;
    let left = async || {
        store.reap().await.unwrap();
        let runs = store.runs().list(&RunQuery::new(tenant())).await.unwrap();
        runs.iter().map(|run| run.id).collect::<HashSet<_>>()
    };
    assert_eq!(left().await, HashSet::from([old, answer, orphan, open, newer]));
    harness.clock.advance(48);
    assert_eq!(left().await, HashSet::from([answer, open, newer]), "the chat still needs its answer");
    assert_eq!(numbers(store, old).await, Vec::<u32>::new());
    assert_eq!(numbers(store, answer).await, [1]);
}

async fn a_deleted_tenant_leaves_no_run(harness: Harness) {
    let (store, acme) = (&harness.store, TenantId::new("acme").unwrap());
    store.tenants().create(acme.clone(), "Acme".into()).await.unwrap();
    let (_, lease) = store.runs().create_claimed(run_at(&*harness.clock, "acme")).await.unwrap();
    store.runs().append_steps(&lease, vec![step(&*harness.clock, 1)], &usage(1)).await.unwrap();
    let kept = created(&harness).await;
    store.tenants().delete(acme.clone()).await.unwrap();
    let runs = async || store.runs().list(&RunQuery::new(acme.clone())).await.unwrap();
    assert_eq!(runs().await, []);
    assert!(is_lost(&store.runs().append_steps(&lease, Vec::new(), &usage(1)).await));
    // Requested while the tenant was deleted.
    store.runs().create(run_at(&*harness.clock, "acme")).await.unwrap();
    store.reap().await.unwrap();
    assert_eq!(runs().await, []);
    assert_eq!(stored(store, kept.id).await, kept);
}

async fn runs_are_filtered(harness: Harness) {
    let (store, chat_id) = (&harness.store, chat(&harness).await);
    let one = created(&harness).await;
    let two = Run { chat_id: Some(chat_id), principal: principal("default", "bob"), ..new_run(&harness) };
    let (two, _) = store.runs().create_claimed(two).await.unwrap();
    let three = Run { parent_run: Some(one.id), ..new_run(&harness) };
    store.runs().create(three.clone()).await.unwrap();
    store.runs().create(run_at(&*harness.clock, "acme")).await.unwrap();
    let all = RunQuery::new(tenant());
    for (query, expected) in [
        (all.clone(), &[three.id, two.id, one.id][..]),
        (RunQuery { limit: 1, ..all.clone() }, &[three.id]),
        (RunQuery { before: Some(two.id), ..all.clone() }, &[one.id]),
        (RunQuery { agent: Some(two.agent_id), ..all.clone() }, &[two.id]),
        (RunQuery { status: Some(RunStatus::Pending), ..all.clone() }, &[three.id, one.id]),
        (RunQuery { status: Some(RunStatus::Success), ..all.clone() }, &[]),
        (RunQuery { chat_id: Some(chat_id), ..all.clone() }, &[two.id]),
        (RunQuery { principal: Some("bob".into()), ..all.clone() }, &[two.id]),
        (RunQuery { parent_run: Some(one.id), ..all.clone() }, &[three.id]),
    ] {
        let found = store.runs().list(&query).await.unwrap();
        assert_eq!(found.iter().map(|run| run.id).collect::<Vec<_>>(), expected, "{query:?}");
        assert!(found.iter().all(|run| run.input.is_null()), "lists leave the conversation out");
    }
}

pub(crate) async fn webhook(harness: &Harness, scope: WebhookScope, event: WebhookEvent) -> WebhookId {
    let now = harness.clock.now();
    let tools = ToolPatterns::new(&["other"]).unwrap();
    let webhook = Webhook {
        id: WebhookId(call_id(&harness.clock).0),
        tenant: tenant(),
        scope,
        target: WebhookTarget { url: "https://example.com".into(), events: vec![event], tools },
        enabled: true,
        created_at: now,
        modified_at: now,
    };
    let new = NewWebhook { webhook: webhook.clone(), secret: Secret::new("s".repeat(32)) };
    harness.store.webhooks().insert(new).await.unwrap();
    webhook.id
}

async fn the_end_of_a_run_is_delivered(harness: Harness) {
    let store = &harness.store;
    let all = webhook(&harness, WebhookScope::Tenant, WebhookEvent::RunFinished).await;
    let calls = webhook(&harness, WebhookScope::Tenant, WebhookEvent::CallFinished).await;
    let own = webhook(&harness, WebhookScope::Call, WebhookEvent::RunFinished).await;
    let (one, lease) =
        store.runs().create_claimed(Run { webhook: Some(own), ..new_run(&harness) }).await.unwrap();
    store.runs().release_run(&lease, RunEnd::Released, &usage(1)).await.unwrap();
    let (_, _, lease) = store.runs().claim(one.id).await.unwrap().unwrap();
    store.runs().release_run(&lease, finished(json!("done")), &usage(2)).await.unwrap();
    let two = created(&harness).await;
    store.runs().request_cancel(&tenant(), two.id).await.unwrap();
    let bodies = async |webhook| {
        let query = DeliveryQuery { tenant: tenant(), webhook, status: None, before: None, limit: 10 };
        let (deliveries, _) = store.webhooks().deliveries(query).await.unwrap();
        let bodies =
            deliveries.iter().map(|delivery| serde_json::from_str::<Value>(&delivery.payload).unwrap());
        let mut ends: Vec<(String, String)> = bodies
            .map(|body| {
                assert_eq!(
                    (&body["type"], &body["data"]["agent"]),
                    (&json!("run.finished"), &json!("assistant"))
                );
                let text = |field: &str| body["data"][field].as_str().unwrap().to_owned();
                (text("run_id"), text("status"))
            })
            .collect();
        ends.sort();
        ends
    };
    let (one, two) =
        ((one.id.to_string(), "success".to_owned()), (two.id.to_string(), "cancelled".to_owned()));
    assert_eq!(bodies(all).await, [one.clone(), two]);
    assert_eq!(bodies(own).await, [one]);
    assert_eq!(bodies(calls).await, []);
}
