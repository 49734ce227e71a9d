//! No statement reads the whole of a table that grows with use. The statements are those that the store runs while
//! everything is used; both engines are asked for their plans.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};

use haft_core::id::CallId;
use haft_core::ledger::{CallQuery, Ledger as _};
use haft_core::name::TenantId;
use haft_core::run::{RunEnd, RunStore as _, RunUsage};
use haft_core::tenant::TenantLimits;
use haft_store::{
    ApprovalQuery, ChatQuery, ChatScope, DeliveryQuery, ListPage, ResourceQuery, RunQuery, Store,
    TenantChange,
};
use sqlx::{AnyConnection, AssertSqlSafe, Executor as _, Row as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::growth::Used;
use crate::harness::{Harness, call_id, on_both};
use crate::runs::run_at;

on_both![no_statement_reads_a_whole_growing_table];

/// The tables that grow with use.
const GROWING: [&str; 18] = [
    "approval_grants",
    "approvals",
    "audit",
    "call_events",
    "calls",
    "chats",
    "messages",
    "pipeline_chunks",
    "pipeline_contents",
    "pipeline_documents",
    "resource_revisions",
    "revisions",
    "run_steps",
    "run_waits",
    "runs",
    "webhook_deliveries",
    "workspace_manifests",
    "workspaces",
];

/// Indexes that have few rows however large their table is, so that all of them may be read.
const SMALL_INDEXES: [&str; 11] = [
    "approvals_waiting",
    "approvals_waiting_of_tenant",
    "calls_pending",
    "calls_running",
    "calls_to_cancel",
    "calls_unfinished",
    "pipeline_documents_claimed",
    "runs_open",
    "runs_open_in_chat",
    "webhook_deliveries_claimed",
    "webhook_deliveries_due",
];

/// Statements that may read a whole table, with the reason.
const ALLOWED: [(&str, &str); 2] = [
    ("SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET", "it ends at the largest number of records"),
    (
        "SELECT webhook_id FROM webhook_deliveries WHERE status <> 'pending' GROUP BY",
        "it counts along an index, each ten minutes, what a week leaves",
    ),
];

static STATEMENTS: OnceLock<Mutex<BTreeSet<String>>> = OnceLock::new();

fn statements() -> &'static Mutex<BTreeSet<String>> {
    STATEMENTS.get_or_init(Mutex::default)
}

/// Collects the statements that the database library reports.
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query" || metadata.target() == "haft_store::statements"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut statement = Statement::default();
        event.record(&mut statement);
        let text = if statement.text.trim().is_empty() { statement.summary } else { statement.text };
        statements().lock().unwrap().insert(text.trim().to_owned());
    }
}

#[derive(Default)]
struct Statement {
    summary: String,
    text: String,
}

impl Visit for Statement {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.text),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "summary" || field.name() == "db.statement" {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}

/// Uses everything, also what the cycle does not.
async fn use_everything(used: &mut Used) {
    let tenant = TenantId::default_tenant();
    for number in 0..20 {
        used.cycle(number).await;
    }
    let store = &used.harness.store;
    // A run that waits for a call, and continues.
    let (_, lease) = store.runs().create_claimed(run_at(&*used.harness.clock, "default")).await.unwrap();
    let calls: Vec<CallId> = vec![call_id(&used.harness.clock)];
    store.runs().release_run(&lease, RunEnd::Waiting(calls), &RunUsage::default()).await.unwrap();
    store.runs().claim_next(10).await.unwrap();
    store.runs().claim_next(10).await.unwrap();
    store.runs().cancelled().await.unwrap();
    store.limits().waiting_counts().await.unwrap();
    let all = CallQuery::of_tenant(tenant.clone());
    store.calls().calls(all.clone()).await.unwrap();
    store.calls().calls(CallQuery { text: Some("x".to_owned()), ..all }).await.unwrap();
    store.runs().list(&RunQuery::new(tenant.clone())).await.unwrap();
    for scope in [ChatScope::All, ChatScope::Shared, ChatScope::Owner("ann".to_owned())] {
        let query = ChatQuery { scope, q: None, before: None, limit: 10 };
        store.chats().list(&tenant, &query).await.unwrap();
    }
    store
        .approvals()
        .list(ApprovalQuery {
            tenant: tenant.clone(),
            status: None,
            requested_by: None,
            before: None,
            limit: 10,
        })
        .await
        .unwrap();
    for webhook in store.webhooks().list(&tenant).await.unwrap() {
        let query = DeliveryQuery {
            tenant: tenant.clone(),
            webhook: webhook.id,
            status: None,
            before: None,
            limit: 10,
        };
        store.webhooks().deliveries(query).await.unwrap();
    }
    store.artifacts().list(&tenant, &ResourceQuery::default()).await.unwrap();
    store.documents().list_pipelines(&tenant, &ResourceQuery::default()).await.unwrap();
    store.catalog().mcp_servers_of(&tenant, &ListPage::ALL).await.unwrap();
    store.workspaces().manifest_roots().await.unwrap();
    count_against_limits(used).await;
    read_single_things(used).await;
    let store = &used.harness.store;
    store.reap().await.unwrap();
    // Another node recovers what dead ones were running.
    let (other, _) = used.harness.another().await;
    other.close().await;
}

/// Creates things while each limit is set, and reads what counts against them.
async fn count_against_limits(used: &mut Used) {
    let tenant = TenantId::default_tenant();
    let many = Some(1_000_000);
    let limits = TenantLimits {
        max_tools: many,
        max_stored_bytes: Some(1 << 40),
        max_runs: many,
        max_parallel_runs: many,
        max_chats: many,
        max_messages_per_chat: many,
        max_workspaces: many,
        max_documents: many,
        ..TenantLimits::default()
    };
    let limit = async |store: &Store, limits| {
        let change = TenantChange { limits: Some(limits), ..TenantChange::default() };
        store.tenants().update(TenantId::default_tenant(), change).await.unwrap();
    };
    limit(&used.harness.store, limits).await;
    for number in 20..26 {
        used.cycle(number).await;
    }
    let store = &used.harness.store;
    // One that makes room.
    limit(store, TenantLimits { max_runs: Some(1), ..limits }).await;
    drop(store.runs().create(run_at(&*used.harness.clock, "default")).await);
    limit(store, limits).await;
    store.limits().tenant_usage(&tenant).await.unwrap();
    for (name, _) in limits.stored() {
        store.limits().stored_count(&tenant, name).await.unwrap();
    }
    store.limits().check_stored_bytes(&tenant, 1).await.unwrap();
}

/// Reads and lists what the pages of one thing show.
async fn read_single_things(used: &Used) {
    let (store, tenant) = (&used.harness.store, TenantId::default_tenant());
    store.calls().tool_callers(&tenant, used.tool).await.unwrap();
    store.catalog().revisions(used.tool).await.unwrap();
    store.agents().revisions(&tenant, used.agent).await.unwrap();
    store.artifacts().revisions(&tenant, used.artifact).await.unwrap();
    let all = CallQuery::of_tenant(tenant.clone());
    let of_tool = CallQuery { tool_id: Some(used.tool), ..all.clone() };
    let of_caller = CallQuery { caller: Some("ann".to_owned()), ..all.clone() };
    let of_surface = CallQuery { surface: Some("rest".to_owned()), ..all.clone() };
    let of_chat = CallQuery { chat_id: Some("chat".to_owned()), ..all.clone() };
    for query in [all, of_tool, of_caller, of_surface, of_chat] {
        store.calls().calls(query.clone()).await.unwrap();
        store.calls().audited(&query).await.unwrap();
        store.calls().count(&query).await.unwrap();
    }
    store.approvals().grants(&tenant, Some("ann"), None, 10).await.unwrap();
    store.approvals().expire().await.unwrap();
    store.webhooks().trim_deliveries().await.unwrap();
    let workspace = "work".parse().unwrap();
    store.workspaces().active_manifest(&tenant, &workspace).await.unwrap();
    store.workspaces().manifests(&tenant, &workspace, None, 10).await.unwrap();
    store.workspaces().list(&tenant, None, 10).await.unwrap();
    let documents = store.documents().list(&used.pipeline, &[], None, 10).await.unwrap();
    store.documents().get(&used.pipeline, documents[0].id).await.unwrap();
    store.documents().ingest_status(&used.pipeline).await.unwrap();
    store.documents().reingest(&used.pipeline).await.unwrap();
    let chat = used.chat.unwrap();
    let messages = store.chats().messages(&tenant, chat, None, 10).await.unwrap();
    store.chats().branch(&tenant, chat, messages[0].id).await.unwrap();
    store.chats().manifest_of_message(&tenant, chat, messages[0].id).await.unwrap();
    store.chats().manifest_before_messages(&tenant, chat).await.unwrap();
    store.runs().open_of_chat(&tenant, chat).await.unwrap();
    for run in store.runs().list(&RunQuery::new(tenant.clone())).await.unwrap() {
        store.runs().steps(&tenant, run.id, 0, 10).await.unwrap();
        store.runs().request_cancel(&tenant, run.id).await.unwrap();
    }
    store.chats().delete(&tenant, chat).await.unwrap();
    store.audit().page(&crate::audit::all()).await.unwrap();
}

async fn no_statement_reads_a_whole_growing_table(harness: Harness) {
    // An error: another test of this process has set it.
    let _ = tracing::subscriber::set_global_default(Collector);
    let mut used = Used::new(harness).await;
    statements().lock().unwrap().clear();
    use_everything(&mut used).await;
    let found = statements().lock().unwrap().clone();
    let is_query = |sql: &&String| {
        ["SELECT ", "WITH ", "UPDATE ", "DELETE "].iter().any(|start| sql.starts_with(start))
            && GROWING.iter().any(|table| sql.contains(table))
    };
    let found: Vec<&String> = found.iter().filter(is_query).collect();
    assert!(found.len() > 30, "the statements are not reported: {found:?}");
    let mut connection = used.connect().await;
    let mut problems = String::new();
    for sql in found {
        let scans = if used.harness.is_embedded() {
            scans_in_sqlite(&mut connection, sql).await
        } else {
            scans_in_postgres(&mut connection, sql).await
        };
        if !scans.is_empty() && !ALLOWED.iter().any(|(part, _)| sql.contains(part)) {
            let _ = write!(problems, "\n{sql}\n    {}\n", scans.join("\n    "));
        }
    }
    assert!(problems.is_empty(), "these statements read a whole table:\n{problems}");
    used.harness.store.close().await;
}

/// Returns the names and aliases of growing tables in a statement.
fn growing_names(sql: &str) -> HashSet<String> {
    let words: Vec<&str> = sql
        .split(|c: char| c.is_whitespace() || "(),".contains(c))
        .filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("as"))
        .collect();
    let mut names: HashSet<String> = HashSet::new();
    for pair in words.windows(2) {
        if GROWING.contains(&pair[0]) {
            names.extend([pair[0].to_owned(), pair[1].to_owned()]);
        }
    }
    names.extend(GROWING.iter().filter(|table| sql.contains(**table)).map(|table| (*table).to_owned()));
    names
}

/// Returns the steps of the plan that read a whole growing table.
async fn scans_in_sqlite(connection: &mut AnyConnection, sql: &str) -> Vec<String> {
    let names = growing_names(sql);
    let plan = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")));
    let rows = connection.fetch_all(plan).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let steps = rows.iter().map(|row| row.get::<String, _>("detail"));
    let is_scan = |step: &String| {
        let words: Vec<&str> = step.split_whitespace().collect();
        words.first() == Some(&"SCAN")
            && words.get(1).is_some_and(|table| names.contains(*table))
            && !words.iter().any(|word| SMALL_INDEXES.contains(word))
    };
    steps.filter(is_scan).collect()
}

/// Returns the steps of the plan that read a whole growing table. The tables of the test are small: what
/// reads all of them is switched off, so that it appears only where no index serves.
async fn scans_in_postgres(connection: &mut AnyConnection, sql: &str) -> Vec<String> {
    let count = (1..=1000).rev().find(|number| sql.contains(&format!("${number}"))).unwrap_or_default();
    let values = vec!["NULL"; count].join(", ");
    let values = if count == 0 { String::new() } else { format!("({values})") };
    let script = format!(
        "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
         SET plan_cache_mode = force_generic_plan; DEALLOCATE ALL; PREPARE statement AS {sql}"
    );
    let prepared = connection.execute(sqlx::raw_sql(AssertSqlSafe(script))).await;
    prepared.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE statement{values}");
    let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut scans = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        let step = line.trim_start().trim_start_matches("->").trim();
        let table = step.split(" on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("");
        let is_whole = if step.starts_with("Seq Scan") {
            true
        } else if step.starts_with("Index") {
            let depth = line.len() - line.trim_start().len();
            let is_small =
                SMALL_INDEXES.iter().any(|index| step.split_whitespace().any(|word| word == *index));
            let details = lines.iter().skip(position + 1);
            let mut details = details.take_while(|line| line.len() - line.trim_start().len() > depth);
            !is_small && !details.any(|line| line.trim_start().starts_with("Index Cond"))
        } else {
            false
        };
        if is_whole && GROWING.contains(&table) {
            scans.push(step.to_owned());
        }
    }
    scans
}
