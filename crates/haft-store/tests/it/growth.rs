//! Everything that haft stores, again and again: with a retention, no table grows without bound.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use haft_core::Clock as _;
use haft_core::approval::{Remember, RememberScope};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::chat::MessageRole;
use haft_core::executor::CallEvent;
use haft_core::id::{AgentId, ArtifactId, ChatId};
use haft_core::ledger::{CallQuery, CallQueue as _, Enqueued, Ledger as _, NumberedEvent};
use haft_core::name::TenantId;
use haft_core::retrieval::Pipeline;
use haft_core::run::{Run, RunStore as _, RunUsage};
use haft_core::secret::Secret;
use haft_core::webhook::{DeliveryStatus, WebhookEvent, WebhookScope};
use haft_core::workspace::{ManifestSource, WorkspaceName};
use haft_store::{
    AgentUpdate, ApprovalDecision, DeliveryLimits, DeliveryResult, DocumentChunks, NewChat, NewManifest,
    NewMessage, Retention, Store, StoreSettings, StoredChunks,
};
use serde_json::json;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};

use crate::agents::{definition, with_instructions};
use crate::approvals::{claimed, decide, waiting};
use crate::artifacts::artifact;
use crate::audit::record;
use crate::harness::{Harness, Recorder, on_both};
use crate::ledger::{call_with, principal};
use crate::pipelines::{self, chunk, chunks, upload};
use crate::runs::{finished, run_at, step, webhook};

on_both![no_table_grows_without_bound];

/// The cycles of a usual run of the tests, and of a long one (`HAFT_SOAK=1`).
const CYCLES: u32 = 250;
const SOAK_CYCLES: u32 = 10_000;
/// How many cycles pass between two runs of the reaper.
const CYCLES_PER_REAP: u32 = 10;
/// How far the clock advances with each cycle: half of the cycles last longer than the longest retention, that of
/// deliveries.
const HOURS_PER_CYCLE: i64 = 4;
/// A chat gets so many messages.
const CYCLES_PER_CHAT: u32 = 5;

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Keeps everything for a day, or a few of each.
fn short_retention() -> Retention {
    Retention {
        run_days: 1,
        approval_days: 1,
        grant_days: 1,
        chat_days: 1,
        workspace_days: 1,
        workspace_states: 5,
        agent_revisions: 5,
        artifact_versions: 5,
        audit_days: 1,
        ..Retention::default()
    }
}

/// An installation that is in use.
pub(crate) struct Used {
    pub(crate) harness: Harness,
    pipeline: Pipeline,
    artifact: ArtifactId,
    agent: AgentId,
    chat: Option<ChatId>,
}

impl Used {
    /// Opens the store again with a short retention.
    pub(crate) async fn new(mut harness: Harness) -> Self {
        harness.store.close().await;
        let settings = StoreSettings { keep_days: 1, retention: short_retention(), ..harness.settings() };
        let sink = Arc::new(Recorder::default());
        harness.store = Store::open(settings, harness.clock.clone(), sink).await.unwrap();
        let store = &harness.store;
        let pipeline = store.create_pipeline(&tenant(), pipelines::definition("handbook")).await.unwrap();
        let artifact = store.create_artifact(&tenant(), artifact("count", "zero")).await.unwrap().id;
        let agent = store.create_agent(&tenant(), definition("assistant"), "ann").await.unwrap().id;
        webhook(&harness, WebhookScope::Tenant, WebhookEvent::RunFinished).await;
        Self { harness, pipeline, artifact, agent, chat: None }
    }

    /// Uses everything once.
    pub(crate) async fn cycle(&mut self, number: u32) {
        self.call(number).await;
        self.approval(number).await;
        self.chat(number).await;
        self.workspace(number).await;
        self.document(number).await;
        self.definitions(number).await;
        self.deliveries().await;
        self.harness.clock.advance(HOURS_PER_CYCLE);
    }

    async fn reap(&self) {
        // A list needs the calls that are still in the journal: from then on they are in the table.
        self.harness.store.calls(CallQuery::of_tenant(tenant())).await.unwrap();
        self.harness.store.reap().await.unwrap();
    }

    async fn finish(&self, mut call: CallRecord) {
        call.finish(Ok(json!("done")), self.harness.clock.now(), 1.0);
        self.harness.store.record(Arc::new(call)).await.unwrap();
    }

    async fn call(&self, number: u32) {
        let (store, clock) = (&self.harness.store, &self.harness.clock);
        let keyed = call_with(clock, CallStatus::Running, |call| {
            call.idempotency_key = Some(format!("key {number}"));
        });
        store.reserve(keyed.clone()).await.unwrap();
        self.finish(keyed).await;
        let queued = call_with(clock, CallStatus::Pending, |call| {
            call.principal = principal("default", "test");
            call.definition_hash = Some("hash".to_owned());
        });
        assert_eq!(store.enqueue(queued, 10).await.unwrap(), Enqueued::Queued);
        for call in claimed(&self.harness).await {
            let event = NumberedEvent { number: 1, event: CallEvent::Output("line".to_owned()) };
            store.append_events(call.id(), vec![event]).await.unwrap();
            self.finish(call).await;
        }
    }

    async fn approval(&self, number: u32) {
        let approval = waiting(&self.harness, "agent", json!({"number": number})).await;
        let remember = Some(Remember { scope: RememberScope::Token, any_args: false });
        let approved = ApprovalDecision::Approve { args: None, remember, cause: None };
        decide(&self.harness, approval.id, approved).await.unwrap();
        for call in claimed(&self.harness).await {
            self.finish(call).await;
        }
    }

    /// Adds a message and the run that answers it.
    async fn chat(&mut self, number: u32) {
        let store = &self.harness.store;
        let open = self.chat.filter(|_| !number.is_multiple_of(CYCLES_PER_CHAT));
        let chat = if let Some(chat) = open {
            chat
        } else {
            let name = || "ann".to_owned();
            let new = NewChat { title: name(), owner: name(), owner_name: name(), agent: None };
            store.create_chat(&tenant(), new).await.unwrap().id
        };
        self.chat = Some(chat);
        let new = NewMessage {
            parent_id: None,
            role: MessageRole::User,
            content: json!(format!("message {number}")),
            run_id: None,
        };
        let message = store.add_message(&tenant(), chat, new).await.unwrap().unwrap();
        let name = WorkspaceName::Chat(chat);
        store.create_workspace(&tenant(), &name).await.unwrap();
        let state = NewManifest { message: Some(message.id), ..state(number) };
        store.add_manifest(&tenant(), &name, None, state).await.unwrap();
        for chat_id in [Some(chat), None] {
            let run = Run { chat_id, ..run_at(&*self.harness.clock, "default") };
            let (run, lease) = store.create_claimed_run(run).await.unwrap();
            let usage = RunUsage::default();
            store.append_steps(&lease, vec![step(&*self.harness.clock, 1)], &usage).await.unwrap();
            store.leave_run(&lease, finished(json!("answer")), &usage).await.unwrap();
            let stored = store.run_by_id(&tenant(), run.id).await.unwrap().unwrap();
            assert_eq!(stored.input.is_null(), chat_id.is_some(), "the chat has the conversation");
        }
    }

    async fn workspace(&self, number: u32) {
        let (store, name) = (&self.harness.store, "work".parse::<WorkspaceName>().unwrap());
        store.create_workspace(&tenant(), &name).await.unwrap();
        store.add_manifest(&tenant(), &name, None, state(number)).await.unwrap();
    }

    async fn document(&self, number: u32) {
        let store = &self.harness.store;
        let text = format!("text {number}");
        store.add_document(&self.pipeline, upload("a.txt", text.as_bytes())).await.unwrap();
        for claim in store.claim_documents(5).await.unwrap() {
            let new = chunk(&claim.info, &text, &text, None);
            let earlier = store.stored_chunks(claim.info.id).await.unwrap();
            let remove = earlier.into_iter().map(|chunk| chunk.id).collect();
            let new = DocumentChunks { remove, ..chunks(&self.pipeline, vec![new]) };
            assert_eq!(store.store_chunks(&claim, new).await.unwrap(), StoredChunks::Stored);
        }
    }

    async fn definitions(&self, number: u32) {
        let (store, text) = (&self.harness.store, number.to_string());
        store.update_artifact(&tenant(), self.artifact, artifact("count", &text)).await.unwrap().unwrap();
        let definition = with_instructions("assistant", &text);
        let update = AgentUpdate { definition, expected_revision: None, author: "ann".to_owned() };
        store.update_agent(&tenant(), self.agent, update).await.unwrap();
        let put =
            store.put_credential(tenant(), "KEY".into(), Secret::new(format!("hunter2-hunter2-{text}")));
        Store::recorded(store.new_record(record("local", "credential.put", "")), put).await.unwrap();
    }

    async fn deliveries(&self) {
        let store = &self.harness.store;
        let limits = DeliveryLimits { max: 10, per_webhook: 10, sending: HashMap::new() };
        for claimed in store.claim_deliveries(limits).await.unwrap() {
            let result = DeliveryResult {
                id: claimed.delivery.id,
                claim: claimed.claim,
                status: DeliveryStatus::Delivered,
                due_at: self.harness.clock.now(),
                response_status: Some(200),
                error: None,
            };
            store.finish_delivery(result).await.unwrap();
        }
    }

    /// Connects to the database of the installation.
    pub(crate) async fn connect(&self) -> AnyConnection {
        let url = match self.harness.settings().database_url {
            Some(url) => url.expose().to_owned(),
            None => format!("sqlite://{}", self.harness.path("haft.db").display()),
        };
        AnyConnection::connect(&url).await.unwrap()
    }

    /// Returns the number of rows of each table.
    async fn rows(&self) -> BTreeMap<String, i64> {
        let mut connection = self.connect().await;
        let tables = if self.harness.is_embedded() {
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        } else {
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'"
        };
        let mut rows = BTreeMap::new();
        for row in sqlx::query(tables).fetch_all(&mut connection).await.unwrap() {
            let table: String = row.get(0);
            let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            rows.insert(table, sqlx::query(count).fetch_one(&mut connection).await.unwrap().get(0));
        }
        rows
    }
}

fn state(number: u32) -> NewManifest {
    NewManifest {
        root: format!("{{\"number\":{number}}}"),
        files: 1,
        bytes: 1,
        source: ManifestSource::Edit,
        source_ref: None,
        created_by: "ann".to_owned(),
        message: None,
    }
}

async fn no_table_grows_without_bound(harness: Harness) {
    #[expect(clippy::disallowed_methods, reason = "the length of the test is chosen by whoever runs it")]
    let cycles = if std::env::var("HAFT_SOAK").is_ok() { SOAK_CYCLES } else { CYCLES };
    let mut used = Used::new(harness).await;
    let mut halfway = BTreeMap::new();
    for number in 0..cycles {
        used.cycle(number).await;
        if number % CYCLES_PER_REAP == CYCLES_PER_REAP - 1 {
            used.reap().await;
        }
        if number == cycles / 2 - 1 {
            used.reap().await;
            halfway = used.rows().await;
        }
    }
    used.reap().await;
    let end = used.rows().await;
    // Whatever gets a row with each fourth cycle has more than this.
    let most = i64::from(cycles / 8);
    let grown: Vec<_> = end.iter().filter(|(table, rows)| **rows - halfway[*table] > most).collect();
    assert!(grown.is_empty(), "these tables grow: {grown:?}; halfway: {halfway:?}");
    for table in ["calls", "runs", "run_steps", "chats", "messages", "approvals", "workspace_manifests"] {
        assert!(end[table] > 0, "{table} was not used");
    }
    used.harness.store.close().await;
}
