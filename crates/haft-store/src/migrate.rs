//! Migrates a database to the newest schema with numbered scripts.

use haft_core::catalog::StoreError;
use sqlx::{Any, Row as _, Transaction};

use crate::engine::{self, Engine, failed_to};
use crate::ledger;

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
];

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
            let id = "018faf50-b7b6-7a01-9a05-000000000007";
            let record = serde_json::json!({
                "id": id, "tenant": "default", "tool_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
                "tool": "web:weather@1.0.0", "revision": 1, "mode": "debug", "status": "success", "args": {},
                "value": 1, "caller": "c", "surface": "rest", "started_at": "2026-01-31T12:00:00Z",
            });
            let sql = "INSERT INTO calls (id, tenant, tool_id, status, final, node, record) \
                       VALUES ($1, 'default', '018faf50-b7b6-7a01-9a05-a22a6e0af101', 'success', 1, '', $2)";
            let insert = sqlx::query(sql).bind(id).bind(record.to_string());
            insert.execute(&engine.pool).await.unwrap();
            engine.close().await;
            let store = crate::store::tests::open(home.path()).await;
            let (tenant, id) = ("default".parse().unwrap(), id.parse().unwrap());
            let call = store.call(&tenant, id).await.unwrap();
            assert!(call.is_some(), "version {version}: the call is lost");
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
