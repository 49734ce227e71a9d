//! Everything that haft stores, again and again: with a retention, no table grows without bound.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use haft_core::Clock as _;
use haft_core::account::{AccountId, AccountKind, AccountProvider};
use haft_core::approval::{Remember, RememberScope};
use haft_core::audit::AuditRecord;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::Backup;
use haft_core::chat::MessageRole;
use haft_core::executor::CallEvent;
use haft_core::id::{ActorId, AgentId, ArtifactId, ChatId, GroupId, TokenId, ToolId};
use haft_core::ledger::{CallQuery, CallQueue as _, Enqueued, Ledger as _, NumberedEvent};
use haft_core::name::TenantId;
use haft_core::retrieval::Pipeline;
use haft_core::run::{Run, RunStore as _, RunUsage};
use haft_core::secret::Secret;
use haft_core::token::TokenRecord;
use haft_core::webhook::{DeliveryStatus, WebhookEvent, WebhookScope};
use haft_core::workspace::{ManifestSource, WorkspaceName};
use haft_store::{
    ApprovalDecision, AuditLog, ClientLimits, DeliveryLimits, DeliveryResult, DeviceConnection,
    DeviceConnectionState, DeviceLoginLimits, DocumentChunks, NewChat, NewManifest, NewMessage, PendingLogin,
    ResourceUpdate, Retention, SignOnResult, Store, StoreSettings, StoredChunks, UsedAssertion,
};
use serde_json::json;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};

use crate::agents::{definition, with_instructions};
use crate::applications;
use crate::approvals::{claimed, decide, waiting};
use crate::artifacts::{self, artifact};
use crate::audit::record;
use crate::device_logins::device_login;
use crate::examples::example;
use crate::harness::{Harness, Recorder, call_id, on_both, spec};
use crate::ledger::{call_with, principal};
use crate::logins::{link, session};
use crate::mcp::{listed, lists, server};
use crate::people::{group, membership, person};
use crate::pipelines::{self, chunk, chunks, upload};
use crate::policies::{of_tenant, rules};
use crate::runs::{finished, run_at, step, webhook};
use crate::sign_on::{ISSUER, assignment, logged_in, sign_on_login};
use crate::tokens::token_of;

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

/// Tables that are empty after a cycle, and the rule that bounds them.
const EMPTY: [(&str, &str); 27] = [
    ("accounts", "each cycle adds one, which goes with its person"),
    ("actor_groups", "each cycle adds one and deletes it"),
    ("actors", "each cycle adds one and deletes it"),
    ("applies", "one row"),
    ("assigned_groups", "each cycle adds one and deletes it"),
    ("assigned_rights", "each cycle adds one and deletes it"),
    ("device_connections", "each cycle adds one, which goes with its person"),
    ("group_members", "each cycle adds one and deletes it"),
    ("identities", "each cycle adds one, which goes with its person"),
    ("login_links", "each cycle makes one, which goes with its token"),
    ("mcp_pins", "one row per tool of an MCP server"),
    ("mcp_servers", "each cycle adds one and deletes it"),
    ("memberships", "each cycle adds one and deletes it"),
    ("nodes", "one row per living node"),
    ("oauth_grants", "each cycle adds one, which goes with its token"),
    ("parallel_calls", "one row per call that runs; only with several nodes"),
    ("rate_windows", "removed when the rate counts them no longer; only with several nodes"),
    ("refresh_tokens", "one row per credential; removed after it is unused for long"),
    ("resource_files", "one row per definition file"),
    ("run_waits", "one row per call that an open run waits for"),
    ("signing_keys", "one row per purpose"),
    ("tokens", "each cycle adds one and deletes it"),
    ("tool_examples", "each cycle adds one and deletes it with its tool"),
    ("toolset_packages", "one row per installed package"),
    ("toolset_tools", "one row per tool of an installed package"),
    ("toolsets", "one row per installed package"),
    ("unreadable", "one row per definition file that cannot be read"),
];

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
        tool_revisions: 5,
        agent_revisions: 5,
        pipeline_revisions: 5,
        artifact_versions: 5,
        audit_days: 1,
        ..Retention::default()
    }
}

/// An installation that is in use.
pub(crate) struct Used {
    pub(crate) harness: Harness,
    pub(crate) pipeline: Pipeline,
    pub(crate) artifact: ArtifactId,
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) chat: Option<ChatId>,
    /// The tables that have had rows.
    seen: BTreeSet<String>,
}

impl Used {
    /// Opens the store again with a short retention.
    pub(crate) async fn new(mut harness: Harness) -> Self {
        harness.store.close().await;
        let settings = StoreSettings { keep_days: 1, retention: short_retention(), ..harness.settings() };
        let sink = Arc::new(Recorder::default());
        harness.store = Store::open(settings, harness.clock.clone(), sink).await.unwrap();
        let store = &harness.store;
        let pipeline = pipelines::create(store, &tenant(), "handbook").await.unwrap();
        let artifact =
            store.artifacts().create(&tenant(), artifact("count", "zero"), "ann").await.unwrap().id;
        let agent = store.agents().create(&tenant(), definition("assistant"), "ann").await.unwrap().id;
        let tool = harness.create(spec("weather", "one")).await.unwrap().id;
        webhook(&harness, WebhookScope::Tenant, WebhookEvent::RunFinished).await;
        Self { harness, pipeline, artifact, agent, tool, chat: None, seen: BTreeSet::new() }
    }

    /// Uses everything once.
    pub(crate) async fn cycle(&mut self, number: u32) {
        self.call(number).await;
        self.approval(number).await;
        self.chat(number).await;
        self.workspace(number).await;
        self.document(number).await;
        self.definitions(number).await;
        self.passing(number).await;
        self.accounts(number).await;
        self.deliveries().await;
        self.harness.clock.advance(HOURS_PER_CYCLE);
    }

    async fn reap(&self) {
        // A list needs the calls that are still in the journal: from then on they are in the table.
        self.harness.store.calls().calls(CallQuery::of_tenant(tenant())).await.unwrap();
        self.harness.store.reap().await.unwrap();
    }

    async fn finish(&self, mut call: CallRecord) {
        call.finish(Ok(json!("done")), self.harness.clock.now(), 1.0);
        self.harness.store.calls().record(Arc::new(call)).await.unwrap();
    }

    async fn call(&self, number: u32) {
        let (store, clock) = (&self.harness.store, &self.harness.clock);
        let keyed = call_with(clock, CallStatus::Running, |call| {
            call.idempotency_key = Some(format!("key {number}"));
        });
        store.calls().reserve(keyed.clone()).await.unwrap();
        self.finish(keyed).await;
        let queued = call_with(clock, CallStatus::Pending, |call| {
            call.principal = principal("default", "test");
            call.definition_hash = Some("hash".to_owned());
        });
        assert_eq!(store.calls().enqueue(queued, 10).await.unwrap(), Enqueued::Queued);
        for call in claimed(&self.harness).await {
            let event = NumberedEvent { number: 1, event: CallEvent::Output("line".to_owned()) };
            store.calls().append_events(call.id(), vec![event]).await.unwrap();
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
            store.chats().create(&tenant(), new).await.unwrap().id
        };
        self.chat = Some(chat);
        let new = NewMessage {
            parent_id: None,
            role: MessageRole::User,
            content: json!(format!("message {number}")),
            run_id: None,
        };
        let message = store.chats().add_message(&tenant(), chat, new).await.unwrap().unwrap();
        let name = WorkspaceName::Chat(chat);
        store.workspaces().create(&tenant(), &name).await.unwrap();
        let state = NewManifest { message: Some(message.id), ..state(number) };
        store.workspaces().add_manifest(&tenant(), &name, None, state).await.unwrap();
        for chat_id in [Some(chat), None] {
            let run = Run { chat_id, ..run_at(&*self.harness.clock, "default") };
            let (run, lease) = store.runs().create_claimed(run).await.unwrap();
            let usage = RunUsage::default();
            store.runs().append_steps(&lease, vec![step(&*self.harness.clock, 1)], &usage).await.unwrap();
            store.runs().release_run(&lease, finished(json!("answer")), &usage).await.unwrap();
            let stored = store.runs().get(&tenant(), run.id).await.unwrap().unwrap();
            assert!(stored.input.is_null(), "nobody continues the run");
        }
    }

    async fn workspace(&self, number: u32) {
        let (store, name) = (&self.harness.store, "work".parse::<WorkspaceName>().unwrap());
        store.workspaces().create(&tenant(), &name).await.unwrap();
        store.workspaces().add_manifest(&tenant(), &name, None, state(number)).await.unwrap();
    }

    async fn document(&self, number: u32) {
        let store = &self.harness.store;
        let text = format!("text {number}");
        store.documents().add(&self.pipeline, upload("a.txt", text.as_bytes())).await.unwrap();
        for claim in store.documents().claim(5).await.unwrap() {
            let new = chunk(&claim.info, &text, &text, None);
            let earlier = store.documents().stored_chunks(claim.info.id).await.unwrap();
            let remove = earlier.into_iter().map(|chunk| chunk.id).collect();
            let new = DocumentChunks { remove, ..chunks(&self.pipeline, vec![new]) };
            assert_eq!(store.documents().store_chunks(&claim, new).await.unwrap(), StoredChunks::Stored);
        }
    }

    async fn definitions(&self, number: u32) {
        let (store, text) = (&self.harness.store, number.to_string());
        artifacts::update(store, &tenant(), self.artifact, artifact("count", &text)).await.unwrap();
        let definition = with_instructions("assistant", &text);
        let update = ResourceUpdate { definition, expected_revision: None, author: "ann".to_owned() };
        store.agents().update(&tenant(), self.agent, update).await.unwrap();
        store.catalog().update_tool(self.tool, spec("weather", &text).into()).await.unwrap();
        let put = store.vault().put(tenant(), "KEY".into(), Secret::new(format!("hunter2-hunter2-{text}")));
        AuditLog::recorded(store.audit().new_record(record("local", "credential.put", "")), put)
            .await
            .unwrap();
    }

    /// Logs somebody in at an issuer; returns the person.
    async fn sign_on(&self, subject: &str, group: GroupId) -> ActorId {
        let access = self.harness.store.access();
        let limits = DeviceLoginLimits { per_address: 1000, total: 1000 };
        let login = sign_on_login(&self.harness, subject);
        access.insert_sign_on_login(login.clone(), limits).await.unwrap();
        access.take_sign_on_login("other", &login.browser_hash).await.unwrap();
        let login = logged_in(&self.harness, subject, vec![assignment(&tenant(), vec![group])]);
        let done = access.sign_on(login).await.unwrap();
        let SignOnResult::Person { id, .. } = done else { panic!("{done:?}") };
        access.find_identity(ISSUER, subject).await.unwrap();
        access.has_identity(ISSUER, id).await.unwrap();
        access.assigned_rights().await.unwrap();
        id
    }

    /// Connects an account of a person, and begins another login.
    async fn connect_account(&self, actor: ActorId) {
        let accounts = self.harness.store.accounts();
        let provider = AccountProvider {
            name: "github".to_owned(),
            display_name: String::new(),
            help: String::new(),
            shared: None,
            oauth: None,
            token_exchange: None,
        };
        accounts.put_provider(&tenant(), &provider).await.unwrap();
        let id = AccountId { tenant: tenant(), actor, provider: provider.name.clone() };
        accounts.put_key(&id, &Secret::new("hunter2-hunter2".to_owned())).await.unwrap();
        accounts.connected(&id, AccountKind::ApiKey, None).await.unwrap();
        accounts.used(&id).await.unwrap();
        let login = PendingLogin {
            tenant: tenant(),
            actor: Some(actor),
            provider: provider.name.clone(),
            requested_by: "ann".to_owned(),
            data: Secret::new("verifier".to_owned()),
            expires_at: self.harness.clock.now() + Duration::from_mins(10),
        };
        accounts.begin_login(&Secret::new(format!("state of {actor}")), login).await.unwrap();
        let device = DeviceConnection {
            id: format!("device of {actor}"),
            tenant: tenant(),
            actor,
            provider: provider.name,
            requested_by: "ann".to_owned(),
            state: DeviceConnectionState::Pending,
            poll_seconds: 0,
            expires_at: self.harness.clock.now() + Duration::from_mins(10),
        };
        accounts.begin_device_connection(device.clone(), Secret::new("code".to_owned())).await.unwrap();
        let (claimed, data) = accounts.claim_device_connection().await.unwrap().unwrap();
        assert_eq!((claimed.id, data.is_some()), (device.id.clone(), true));
        accounts.next_device_poll().await.unwrap();
        accounts.postpone_device_poll(&device.id, 5).await.unwrap();
        accounts.device_connection(&tenant(), actor, &device.id).await.unwrap().unwrap();
        assert!(accounts.end_device_connection(&device.id, None).await.unwrap());
    }

    /// Creates everything that people define, and deletes it again.
    async fn passing(&self, number: u32) {
        let store = &self.harness.store;
        let pipeline = pipelines::create(store, &tenant(), &format!("p-{number}")).await.unwrap();
        store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
        store.pipelines().delete(&tenant(), pipeline.id).await.unwrap();
        let name = format!("tool-{number}");
        let tool = self.harness.create(spec(&name, "one")).await.unwrap().id;
        store.catalog().put_example(&tenant(), tool, example("a", &json!({}), None)).await.unwrap();
        store.catalog().delete_tool(tool, Backup::Keep).await.unwrap();
        let server = server(&format!("s-{number}"));
        store.catalog().put_mcp_server(server.clone()).await.unwrap();
        lists(&self.harness, &server, &[listed("search", "Searches")]).await;
        store.catalog().delete_mcp_server(tenant(), server.id.clone()).await.unwrap();
        let workspace = format!("w-{number}").parse().unwrap();
        store.workspaces().create(&tenant(), &workspace).await.unwrap();
        store.workspaces().add_manifest(&tenant(), &workspace, None, state(number)).await.unwrap();
        assert!(store.workspaces().delete(&tenant(), &workspace).await.unwrap());
    }

    async fn accounts(&self, number: u32) {
        let store = &self.harness.store;
        let of_cycle = |text: &str| format!("{text} {number}");
        let token = TokenRecord {
            id: TokenId(call_id(&self.harness.clock).0),
            hash: of_cycle("token"),
            ..token_of(&tenant())
        };
        store.access().insert_token(&token).await.unwrap();
        for hash in ["session", "forgotten"] {
            // The second one outlives its token.
            let owner = if hash == "session" { token.hash.clone() } else { of_cycle("other") };
            let session = session(&self.harness, &of_cycle(hash), &owner);
            store.access().insert_session(session, None).await.unwrap();
        }
        store.access().insert_login_link(link(&self.harness, &of_cycle("link"), &token.hash)).await.unwrap();
        let limits = DeviceLoginLimits { per_address: 100, total: 100 };
        let login = device_login(&self.harness, &of_cycle("device"));
        store.access().insert_device_login(login, limits).await.unwrap();
        store.access().delete_token(token.id).await.unwrap();
        self.connect_application(&of_cycle("client")).await;
        let person = person(&self.harness, &of_cycle("ann"));
        let membership = membership(person.id, &tenant());
        let group = group(&self.harness, &of_cycle("finance"), vec![person.id]);
        store.access().insert_actor(person.clone(), membership, Vec::new()).await.unwrap();
        store.access().insert_group(group.clone()).await.unwrap();
        self.connect_account(person.id).await;
        store.access().delete_membership(person.id, tenant()).await.unwrap();
        let person = self.sign_on(&of_cycle("subject"), group.id).await;
        store.access().delete_membership(person, tenant()).await.unwrap();
        store.access().delete_group(group.id).await.unwrap();
        store.policies().set(&of_tenant("default"), &rules(&of_cycle("rule"))).await.unwrap();
        if number.is_multiple_of(3) {
            let acme = TenantId::new(&format!("acme-{number}")).unwrap();
            store.tenants().create(acme.clone(), "Acme".to_owned()).await.unwrap();
            let record = AuditRecord { tenant: acme.clone(), ..record("ann", "tool.create", "") };
            store.audit().record(store.audit().new_record(record)).await.unwrap();
            store.tenants().delete(acme).await.unwrap();
        }
    }

    async fn connect_application(&self, id: &str) {
        let access = self.harness.store.access();
        let limits = ClientLimits { per_address: 100, unused: 100 };
        let client = applications::client(&self.harness, id);
        access.insert_registered_client(client, limits).await.unwrap();
        assert!(access.find_client(id).await.unwrap().is_some());
        access.clients(&tenant()).await.unwrap();
        access.insert_code(id.to_owned(), applications::code(&self.harness, "described"), 100).await.unwrap();
        access.find_code(id).await.unwrap();
        let (token, grant) = applications::grant(&self.harness, "described");
        access.exchange_code(id, "approver", token, grant.clone()).await.unwrap();
        access.find_grant(grant.id).await.unwrap();
        access.rotate_refresh_token(grant.id, ("first", "second"), self.harness.clock.now()).await.unwrap();
        access.delete_token(grant.id).await.unwrap();
        let (token, grant) = applications::grant(&self.harness, "described");
        let used = UsedAssertion {
            hash: format!("assertion of {id}"),
            expires_at: self.harness.clock.now() + Duration::from_hours(1),
        };
        assert!(access.exchange_assertion(used, token, grant.clone()).await.unwrap());
        access.delete_token(grant.id).await.unwrap();
    }

    async fn deliveries(&self) {
        let store = &self.harness.store;
        let limits = DeliveryLimits { max: 10, per_webhook: 10, sending: HashMap::new() };
        for claimed in store.webhooks().claim(limits).await.unwrap() {
            let result = DeliveryResult {
                id: claimed.delivery.id,
                claim: claimed.claim,
                status: DeliveryStatus::Delivered,
                not_before: self.harness.clock.now(),
                response_status: Some(200),
                error: None,
            };
            store.webhooks().finish(result).await.unwrap();
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

    async fn note_tables(&mut self) {
        let rows = self.rows().await;
        self.seen.extend(rows.into_iter().filter(|(_, rows)| *rows > 0).map(|(table, _)| table));
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
        added: 1,
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
        if number < 2 * CYCLES_PER_REAP {
            used.note_tables().await;
        }
        if number == cycles / 2 - 1 {
            used.reap().await;
            halfway = used.rows().await;
        }
    }
    used.reap().await;
    let end = used.rows().await;
    let is_excused = |table: &str| EMPTY.iter().any(|(name, _)| *name == table);
    let unknown: Vec<_> =
        end.keys().filter(|table| !used.seen.contains(*table) && !is_excused(table)).collect();
    assert!(unknown.is_empty(), "use these tables, or say in EMPTY what bounds them: {unknown:?}");
    // Whatever gets a row with each fourth cycle has more than this.
    let most = i64::from(cycles / 8);
    let grown: Vec<_> = end.iter().filter(|(table, rows)| **rows - halfway[*table] > most).collect();
    assert!(grown.is_empty(), "these tables grow: {grown:?}; halfway: {halfway:?}");
    for (table, _) in EMPTY {
        assert!(end.contains_key(table), "there is no table {table}");
    }
    for table in ["calls", "runs", "run_steps", "chats", "messages", "approvals", "workspace_manifests"] {
        assert!(end[table] > 0, "{table} was not used");
    }
    used.harness.store.close().await;
}
