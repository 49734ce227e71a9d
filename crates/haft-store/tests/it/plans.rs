//! No statement reads the whole of a table that grows with use. The statements are those that the store runs while
//! everything is used; both engines are asked for their plans.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};

use haft_core::id::CallId;
use haft_core::ledger::{CallQuery, Ledger as _};
use haft_core::name::TenantId;
use haft_core::run::{RunEnd, RunStore as _, RunUsage};
use haft_store::{ApprovalQuery, ChatQuery, ChatScope, DeliveryQuery, ListPage, RunQuery};
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
    "agent_revisions",
    "approval_grants",
    "approvals",
    "audit",
    "call_events",
    "calls",
    "chats",
    "code_artifact_versions",
    "messages",
    "pipeline_chunks",
    "pipeline_contents",
    "pipeline_documents",
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
const ALLOWED: [(&str, &str); 1] =
    [("SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET", "it ends at the largest number of records")];

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
    let (_, lease) = store.create_claimed_run(run_at(&*used.harness.clock, "default")).await.unwrap();
    let calls: Vec<CallId> = vec![call_id(&used.harness.clock)];
    store.leave_run(&lease, RunEnd::Waiting(calls), &RunUsage::default()).await.unwrap();
    store.claim_runs(10).await.unwrap();
    store.claim_runs(10).await.unwrap();
    store.cancelled_runs().await.unwrap();
    store.waiting_counts().await.unwrap();
    let all = CallQuery::of_tenant(tenant.clone());
    store.calls(all.clone()).await.unwrap();
    store.calls(CallQuery { text: Some("x".to_owned()), ..all }).await.unwrap();
    store.runs(&RunQuery::new(tenant.clone())).await.unwrap();
    for scope in [ChatScope::All, ChatScope::Shared, ChatScope::Owner("ann".to_owned())] {
        let query = ChatQuery { scope, q: None, before: None, limit: 10 };
        store.chats(&tenant, &query).await.unwrap();
    }
    store
        .approvals(ApprovalQuery {
            tenant: tenant.clone(),
            status: None,
            requested_by: None,
            before: None,
            limit: 10,
        })
        .await
        .unwrap();
    for webhook in store.webhooks(&tenant).await.unwrap() {
        let query = DeliveryQuery {
            tenant: tenant.clone(),
            webhook: webhook.id,
            status: None,
            before: None,
            limit: 10,
        };
        store.deliveries(query).await.unwrap();
    }
    store.artifacts(&tenant, &ListPage::ALL).await.unwrap();
    store.pipelines(&tenant, &ListPage::ALL).await.unwrap();
    store.mcp_servers_of(&tenant, &ListPage::ALL).await.unwrap();
    store.manifest_roots().await.unwrap();
    store.reap().await.unwrap();
    // Another node recovers what dead ones were running.
    let (other, _) = used.harness.another().await;
    other.close().await;
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
