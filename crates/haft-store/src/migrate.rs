//! Migrates a database to the newest schema with numbered scripts.

use haft_core::catalog::StoreError;
use sqlx::{Any, Row as _, Transaction};

use crate::engine::{self, Engine, failed_to};
use crate::ledger;
use crate::resources::fill_migrated;

/// All scripts, in order. A released script is never edited; a change needs a new script.
const SCRIPTS: &[&str] = &[
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_refresh_tokens.sql"),
    include_str!("../migrations/0003_audit.sql"),
    include_str!("../migrations/0004_mcp.sql"),
    include_str!("../migrations/0005_gone.sql"),
    include_str!("../migrations/0006_bundle_kind.sql"),
    include_str!("../migrations/0007_ledger_sizes.sql"),
    CALL_FILTERS,
    include_str!("../migrations/0009_waiting_calls.sql"),
    include_str!("../migrations/0010_access.sql"),
    include_str!("../migrations/0011_policies.sql"),
    include_str!("../migrations/0012_scopes.sql"),
    include_str!("../migrations/0013_vault_key.sql"),
    include_str!("../migrations/0014_webhooks.sql"),
    include_str!("../migrations/0016_limits.sql"),
    include_str!("../migrations/0017_life_cycle.sql"),
    include_str!("../migrations/0018_credentials.sql"),
    CALL_SURFACES,
    include_str!("../migrations/0020_causes_of_grants.sql"),
    include_str!("../migrations/0021_workspaces.sql"),
    include_str!("../migrations/0022_toolsets.sql"),
    include_str!("../migrations/0024_applies.sql"),
    include_str!("../migrations/0025_agents.sql"),
    include_str!("../migrations/0026_runs.sql"),
    include_str!("../migrations/0027_pipelines.sql"),
    include_str!("../migrations/0028_artifacts.sql"),
    include_str!("../migrations/0029_claims.sql"),
    include_str!("../migrations/0030_bounds.sql"),
    RESOURCES,
    include_str!("../migrations/0032_quotas.sql"),
    include_str!("../migrations/0033_bytes.sql"),
    include_str!("../migrations/0034_names.sql"),
    include_str!("../migrations/0035_device_logins.sql"),
    include_str!("../migrations/0036_token_parent.sql"),
    include_str!("../migrations/0037_people.sql"),
    include_str!("../migrations/0038_sign_on.sql"),
    include_str!("../migrations/0039_scim.sql"),
    include_str!("../migrations/0040_applications.sql"),
    include_str!("../migrations/0041_accounts.sql"),
    include_str!("../migrations/0042_grants.sql"),
    include_str!("../migrations/0043_local_owner.sql"),
    include_str!("../migrations/0044_mcp_findings.sql"),
];

/// The script after which the moved rows of resources are completed.
const RESOURCES: &str = include_str!("../migrations/0031_resources.sql");
/// The scripts after which columns of recorded calls are filled from their records.
const CALL_FILTERS: &str = include_str!("../migrations/0008_call_filters.sql");
const CALL_SURFACES: &str = include_str!("../migrations/0019_web_interface.sql");

const MIGRATE: &str = "migrate the database schema";

/// Runs the missing scripts.
pub(crate) async fn run(engine: &Engine) -> Result<(), StoreError> {
    run_scripts(engine, SCRIPTS).await
}

async fn run_scripts(engine: &Engine, scripts: &[&str]) -> Result<(), StoreError> {
    let mut tx = engine.begin().await.map_err(failed_to(MIGRATE))?;
    let found = prepare(engine, &mut tx).await.map_err(failed_to(MIGRATE))?;
    let known = scripts.len();
    if found > known {
        return Err(StoreError::unavailable(
            MIGRATE,
            format!(
                "the database has schema version {found}, but this version of haft supports at most {known}; upgrade haft"
            ),
        ));
    }
    for (index, script) in scripts.iter().enumerate().skip(found) {
        let step = format!("{MIGRATE}, step {}", index + 1);
        engine::run_script(&mut tx, script).await.map_err(failed_to(&step))?;
        match *script {
            CALL_FILTERS => ledger::fill_filter_columns(&mut tx).await.map_err(failed_to(&step))?,
            CALL_SURFACES => ledger::fill_surface_columns(&mut tx).await.map_err(failed_to(&step))?,
            RESOURCES => fill_migrated(&mut tx).await.map_err(failed_to(&step))?,
            _ => {}
        }
        sqlx::query("INSERT INTO haft_schema (version) VALUES ($1)")
            .bind(i64::try_from(index + 1).unwrap_or(i64::MAX))
            .execute(&mut *tx)
            .await
            .map_err(failed_to(&step))?;
    }
    tx.commit().await.map_err(failed_to(MIGRATE))
}

async fn prepare(engine: &Engine, tx: &mut Transaction<'static, Any>) -> Result<usize, sqlx::Error> {
    engine.lock_schema(tx).await?;
    engine::run_script(tx, "CREATE TABLE IF NOT EXISTS haft_schema (version BIGINT PRIMARY KEY)").await?;
    let row = sqlx::query("SELECT COUNT(*) FROM haft_schema").fetch_one(&mut **tx).await?;
    Ok(usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ledger::Ledger as _;
    use haft_core::secret::Secret;

    async fn check_bundle_kinds(engine: Engine) {
        run_scripts(&engine, &SCRIPTS[..5]).await.unwrap();
        for (slug, built_in) in [("builtin", 1_i64), ("files", 1), ("web", 0)] {
            let sql = "INSERT INTO bundles (id, tenant, slug, display_name, description, enabled, built_in, created_at, \
                       modified_at) VALUES ($1, 'default', $2, '', '', 1, $3, 0, 0)";
            sqlx::query(sql).bind(slug).bind(slug).bind(built_in).execute(&engine.pool).await.unwrap();
        }
        let server = "INSERT INTO mcp_servers (tenant, id, body) VALUES ('default', 'files', '{}')";
        sqlx::query(server).execute(&engine.pool).await.unwrap();
        run(&engine).await.unwrap();
        run(&engine).await.unwrap();
        let rows = sqlx::query("SELECT slug, kind, tenant FROM bundles ORDER BY slug")
            .fetch_all(&engine.pool)
            .await
            .unwrap();
        let kinds: Vec<[String; 3]> =
            rows.iter().map(|row| ["slug", "kind", "tenant"].map(|column| row.get(column))).collect();
        let expected =
            [["builtin", "built_in", "*"], ["files", "mcp", "default"], ["web", "user", "default"]];
        assert_eq!(kinds, expected.map(|row| row.map(str::to_owned)));
        engine.close().await;
    }

    #[tokio::test]
    async fn bundles_get_their_kind_in_sqlite() {
        let home = tempfile::tempdir().unwrap();
        check_bundle_kinds(Engine::sqlite(&home.path().join("haft.db")).await.unwrap()).await;
    }

    #[tokio::test]
    async fn bundles_get_their_kind_in_postgres() {
        let database = tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap();
        let url = Secret::new(database.url.clone());
        check_bundle_kinds(Engine::postgres(&url).await.unwrap()).await;
    }

    async fn check_call_filters(engine: Engine) {
        run_scripts(&engine, &SCRIPTS[..6]).await.unwrap();
        let record = |number: u32| {
            serde_json::json!({
                "id": format!("018faf50-b7b6-7a01-9a05-{number:012}"), "tenant": "default",
                "tool_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "tool": "web:weather@1.0.0", "revision": 1,
                "mode": "debug", "status": "error", "args": {"caller": "\0"}, "caller": format!("c{number}"),
                "error": {"code": "timeout", "message": "", "retryable": true}, "surface": "rest",
                "chat_id": format!("chat-{number}"), "started_at": "2026-01-31T12:00:00Z",
            })
            .to_string()
        };
        for number in 0..250_u32 {
            let sql = "INSERT INTO calls (id, tenant, tool_id, status, final, node, record) \
                       VALUES ($1, 'default', '', 'error', 1, '', $2)";
            let record = if number == 7 { "{".to_owned() } else { record(number) };
            sqlx::query(sql).bind(format!("{number:04}")).bind(record).execute(&engine.pool).await.unwrap();
        }
        run(&engine).await.unwrap();
        let rows = sqlx::query("SELECT id, caller, error_code, chat_id FROM calls ORDER BY id")
            .fetch_all(&engine.pool)
            .await
            .unwrap();
        for (number, row) in rows.iter().enumerate() {
            let found: (String, Option<String>, Option<String>) =
                (row.get("caller"), row.get("error_code"), row.get("chat_id"));
            let filled = (format!("c{number}"), Some("timeout".to_owned()), Some(format!("chat-{number}")));
            let expected = if number == 7 { (String::new(), None, None) } else { filled };
            assert_eq!(found, expected, "{number}");
        }
        assert_eq!(rows.len(), 250);
        let sql = "SELECT COUNT(*) FROM calls WHERE surface = 'rest' AND parent_id IS NULL";
        let surfaces = sqlx::query(sql).fetch_one(&engine.pool).await.unwrap();
        assert_eq!(surfaces.get::<i64, _>(0), 249);
        engine.close().await;
    }

    #[tokio::test]
    async fn recorded_calls_get_their_filter_columns_in_sqlite() {
        let home = tempfile::tempdir().unwrap();
        check_call_filters(Engine::sqlite(&home.path().join("haft.db")).await.unwrap()).await;
    }

    #[tokio::test]
    async fn recorded_calls_get_their_filter_columns_in_postgres() {
        let database = tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap();
        let url = Secret::new(database.url.clone());
        check_call_filters(Engine::postgres(&url).await.unwrap()).await;
    }

    const AGENT_ID: &str = "018faf50-b7b6-7a01-9a05-0000000000a1";
    const PIPELINE_ID: &str = "018faf50-b7b6-7a01-9a05-0000000000b1";
    const ARTIFACT_ID: &str = "018faf50-b7b6-7a01-9a05-0000000000c1";
    /// The versions of the schema that had tables of their own for agents, pipelines and artifacts.
    const SEPARATE_TABLES: std::ops::Range<usize> = 26..29;

    /// Stores an agent, a pipeline with a document, and an artifact in their old tables.
    async fn store_separately(engine: &Engine) {
        let document = "018faf50-b7b6-7a01-9a05-0000000000d1";
        let agent = |text: &str| serde_json::json!({"slug": "assistant", "name": "Assistant", "model": {"name": "m"}, "instructions": text});
        let pipeline = r#"{"slug":"handbook","name":"Größe","description":"","chunking":{"size":500,"unit":"tokens","overlap":40},"embedding":null}"#;
        let artifact = |source: &str| format!(r#"{{"name":"Count","runtime":"bash","source":"{source}"}}"#);
        let mut statements = vec![
            format!(
                "INSERT INTO agents (id, tenant, slug, search, revision, published_revision, status, enabled, created_by, \
                 modified_by, created_at, modified_at, published_at) VALUES ('{AGENT_ID}', 'default', 'assistant', \
                 'assistant', 2, 1, 'published', 1, 'ann', 'bob', 1, 2, 3)"
            ),
            format!(
                "INSERT INTO pipelines (id, tenant, slug, definition, status, revision, generation, created_by, created_at, \
                 modified_at) VALUES ('{PIPELINE_ID}', 'default', 'handbook', '{pipeline}', 'published', 3, 7, 'ann', 1, 2)"
            ),
            format!(
                "INSERT INTO pipeline_documents (id, tenant, pipeline_id, name, source, metadata, bytes, state, chunks, \
                 node, fence, generation, created_at, modified_at) VALUES ('{document}', 'default', '{PIPELINE_ID}', \
                 'a.txt', '{{\"type\":\"upload\"}}', '{{}}', 4, 'done', 0, '', 1, 1, 1, 1)"
            ),
            format!(
                "INSERT INTO code_artifacts (id, tenant, slug, version, created_by, created_at) \
                 VALUES ('{ARTIFACT_ID}', 'default', 'count', 2, 'ann', 1)"
            ),
        ];
        for (number, text) in [(1, "one"), (2, "two")] {
            statements.push(format!(
                "INSERT INTO agent_revisions (agent_id, number, hash, definition, created_by, created_at) \
                 VALUES ('{AGENT_ID}', {number}, 'hash {number}', '{}', 'ann', {number})",
                agent(text)
            ));
            statements.push(format!(
                "INSERT INTO code_artifact_versions (artifact_id, version, hash, content, created_by, created_at) \
                 VALUES ('{ARTIFACT_ID}', {number}, 'hash {number}', '{}', 'bob', {number})",
                artifact(text)
            ));
        }
        for sql in statements {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&engine.pool).await.unwrap();
        }
    }

    async fn assert_resources_are_kept(store: &crate::Store) {
        use haft_core::tool::Status;

        let tenant = haft_core::name::TenantId::default_tenant();
        let agent = store.agents().find(&tenant, "assistant").await.unwrap().unwrap();
        assert_eq!(
            (agent.id.to_string().as_str(), agent.revision, agent.status),
            (AGENT_ID, 2, Status::Published)
        );
        assert_eq!((agent.created_by.as_deref(), agent.modified_by.as_deref()), (Some("ann"), Some("bob")));
        let (number, published) = agent.published.unwrap();
        assert_eq!((number, published.instructions.as_str()), (1, "one"));
        assert_eq!(agent.definition.instructions, "two");

        let pipeline = store.documents().pipeline(&tenant, PIPELINE_ID).await.unwrap().unwrap();
        assert_eq!((pipeline.revision, pipeline.published_revision()), (1, Some(1)));
        assert_eq!((pipeline.ingest_revision, pipeline.generation, pipeline.documents), (3, 7, 1));
        assert_eq!((pipeline.definition.chunking.size, pipeline.created_by.as_deref()), (500, Some("ann")));
        assert_eq!(pipeline.hash, haft_core::hash::of_value(&*pipeline.definition).unwrap());
        let found = crate::ResourceQuery { q: Some("größe".to_owned()), ..crate::ResourceQuery::default() };
        assert_eq!(store.documents().list_pipelines(&tenant, &found).await.unwrap().1, 1);

        let artifacts = store.artifacts();
        let artifact = artifacts.find(&tenant, "count").await.unwrap().unwrap();
        assert_eq!((artifact.revision, artifact.published_revision()), (2, Some(2)));
        assert_eq!(
            (artifact.status, artifact.definition.content.source.as_str()),
            (Status::Published, "two")
        );
        let first = artifacts.revision(&tenant, artifact.id, 1).await.unwrap().unwrap();
        assert_eq!((first.hash.as_str(), first.definition.content.source.as_str()), ("hash 1", "one"));
    }

    #[tokio::test]
    async fn definitions_become_resources_in_postgres() {
        let database = tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap();
        let engine = Engine::postgres(&Secret::new(database.url.clone())).await.unwrap();
        run_scripts(&engine, &SCRIPTS[..28]).await.unwrap();
        store_separately(&engine).await;
        run(&engine).await.unwrap();
        let sql = "SELECT r.kind, r.slug, r.revision, r.published_revision, COUNT(*) FROM resources r \
                   JOIN resource_revisions v ON v.resource_id = r.id AND v.hash <> '' \
                   WHERE r.search <> '' GROUP BY r.kind, r.slug, r.revision, r.published_revision ORDER BY r.kind";
        let rows = sqlx::query(sql).fetch_all(&engine.pool).await.unwrap();
        let found: Vec<(String, String, i64, i64, i64)> =
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))).collect();
        let expected = [
            ("agent", "assistant", 2, 1, 2),
            ("code_artifact", "count", 2, 2, 2),
            ("pipeline", "handbook", 1, 1, 1),
        ];
        let expected = expected.map(|(kind, slug, newest, published, count)| {
            (kind.to_owned(), slug.to_owned(), newest, published, count)
        });
        assert_eq!(found, expected);
        engine.close().await;
    }

    const CALL_ID: &str = "018faf50-b7b6-7a01-9a05-000000000007";

    async fn store_call(engine: &Engine) {
        let record = serde_json::json!({
            "id": CALL_ID, "tenant": "default", "tool_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
            "tool": "web:weather@1.0.0", "revision": 1, "mode": "debug", "status": "success", "args": {},
            "value": 1, "caller": "c", "surface": "rest", "started_at": "2026-01-31T12:00:00Z",
        });
        let sql = "INSERT INTO calls (id, tenant, tool_id, status, final, node, record) \
                   VALUES ($1, 'default', '018faf50-b7b6-7a01-9a05-a22a6e0af101', 'success', 1, '', $2)";
        let insert = sqlx::query(sql).bind(CALL_ID).bind(record.to_string());
        insert.execute(&engine.pool).await.unwrap();
    }

    /// The first versions of the schema with chats, with runs, and with the bytes of both.
    const CHATS: usize = 20;
    const RUNS: usize = 24;
    const BYTES: usize = 31;

    /// Stores a chat with a message and a run with a step, as far as the schema has them.
    async fn store_conversation(engine: &Engine, version: usize) {
        let mut statements = Vec::new();
        if version >= CHATS {
            statements.push(
                "INSERT INTO chats (id, tenant, owner, owner_name, title, created_at, modified_at) \
                 VALUES ('018faf50-b7b6-7a01-9a05-0000000000e1', 'default', 'ann', 'ann', 'Hello', 1, 1)",
            );
            statements.push(
                "INSERT INTO messages (id, tenant, chat_id, role, body, created_at) VALUES \
                 ('018faf50-b7b6-7a01-9a05-0000000000e2', 'default', '018faf50-b7b6-7a01-9a05-0000000000e1', 'user', \
                 '\"Größe\"', 1)",
            );
        }
        if version >= RUNS {
            statements.push(
                "INSERT INTO runs (id, tenant, agent_id, principal, is_answer, status, final, node, fence, \
                 cancel_requested, record, input, usage, output, created_at) VALUES \
                 ('018faf50-b7b6-7a01-9a05-0000000000f1', 'default', '018faf50-b7b6-7a01-9a05-0000000000f2', 'ann', 0, \
                 'success', 1, '', 1, 0, '{}', '[1]', '{}', '\"ok\"', 1)",
            );
            statements.push(
                "INSERT INTO run_steps (run_id, number, step) \
                 VALUES ('018faf50-b7b6-7a01-9a05-0000000000f1', 1, '{\"step\": 1}')",
            );
        }
        for sql in statements {
            sqlx::query(sql).execute(&engine.pool).await.unwrap();
        }
    }

    /// Returns the bytes of chats and runs after the migration: those of the newest version are counted with the write.
    fn conversation_bytes(version: usize) -> (u64, u64) {
        let has = |first: usize| u64::from((first..BYTES).contains(&version));
        (has(CHATS) * 9, has(RUNS) * (3 + 4 + 11))
    }

    /// Tables and columns of a PostgreSQL database.
    async fn columns(engine: &Engine) -> Vec<(String, String, String)> {
        let sql = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns \
                   WHERE table_schema = 'public' ORDER BY table_name, column_name";
        let rows = sqlx::query(sql).fetch_all(&engine.pool).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
    }

    #[tokio::test]
    async fn a_postgres_database_of_every_schema_version_is_migrated() {
        let open = async |version: usize| {
            let database =
                tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap();
            let engine = Engine::postgres(&Secret::new(database.url.clone())).await.unwrap();
            run_scripts(&engine, &SCRIPTS[..version]).await.unwrap();
            (engine, database)
        };
        let (fresh, _database) = open(SCRIPTS.len()).await;
        let newest = columns(&fresh).await;
        fresh.close().await;
        for version in 1..SCRIPTS.len() {
            let (engine, _database) = open(version).await;
            store_call(&engine).await;
            store_conversation(&engine, version).await;
            run(&engine).await.unwrap();
            assert_eq!(columns(&engine).await, newest, "version {version}");
            let sql = "SELECT (SELECT COUNT(*) FROM calls WHERE surface = 'rest'), \
                       (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM chats), \
                       (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM runs)";
            let row = sqlx::query(sql).fetch_one(&engine.pool).await.unwrap();
            let found: [i64; 3] = [0, 1, 2].map(|column| row.get(column));
            let (chats, runs) = conversation_bytes(version);
            // Newer versions store the surface in its own column.
            let with_surface = i64::from(version < 18);
            assert_eq!(
                found.map(i64::unsigned_abs),
                [with_surface.unsigned_abs(), chats, runs],
                "version {version}"
            );
            engine.close().await;
        }
    }

    /// The tables and indexes of a SQLite database.
    async fn schema(engine: &Engine) -> Vec<(String, String)> {
        let sql =
            "SELECT name, COALESCE(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
        let rows = sqlx::query(sql).fetch_all(&engine.pool).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    #[tokio::test]
    async fn a_home_of_every_schema_version_opens() {
        let fresh = tempfile::tempdir().unwrap();
        let engine = Engine::sqlite(&fresh.path().join("haft.db")).await.unwrap();
        run(&engine).await.unwrap();
        let newest = schema(&engine).await;
        engine.close().await;
        for version in 1..=SCRIPTS.len() {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("haft.db");
            let engine = Engine::sqlite(&file).await.unwrap();
            run_scripts(&engine, &SCRIPTS[..version]).await.unwrap();
            store_call(&engine).await;
            store_conversation(&engine, version).await;
            if SEPARATE_TABLES.contains(&version) {
                store_separately(&engine).await;
            }
            engine.close().await;
            let store = crate::store::tests::open(home.path()).await;
            if SEPARATE_TABLES.contains(&version) {
                assert_resources_are_kept(&store).await;
            }
            let (tenant, id) = ("default".parse().unwrap(), CALL_ID.parse().unwrap());
            let call = store.calls().call(&tenant, id).await.unwrap();
            assert!(call.is_some(), "version {version}: the call is lost");
            let usage = store.limits().tenant_usage(&tenant).await.unwrap();
            assert_eq!((usage.chat_bytes, usage.run_bytes), conversation_bytes(version), "version {version}");
            store.close().await;
            let engine = Engine::sqlite(&file).await.unwrap();
            assert_eq!(schema(&engine).await, newest, "version {version}");
            engine.close().await;
        }
    }

    #[tokio::test]
    async fn a_newer_schema_is_rejected() {
        let home = tempfile::tempdir().unwrap();
        let engine = Engine::sqlite(&home.path().join("haft.db")).await.unwrap();
        run(&engine).await.unwrap();
        let error = run_scripts(&engine, &SCRIPTS[..5]).await.unwrap_err();
        let newest = SCRIPTS.len();
        assert_eq!(
            error.with_cause(),
            format!(
                "cannot migrate the database schema: the database has schema version {newest}, but this version of haft \
                 supports at most 5; upgrade haft"
            )
        );
        engine.close().await;
    }
}
