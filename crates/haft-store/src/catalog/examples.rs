//! Examples of tools: rows of a tenant that are deleted with their tool.

use haft_core::catalog::StoreError;
use haft_core::example::{MAX_EXAMPLES, ToolExample};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::state::{Catalog, CatalogState};
use crate::audit;
use crate::engine::failed_to;

const READ: &str = "read the examples of the tool";
const STORE: &str = "store the example of the tool";

impl Catalog {
    /// Returns the examples that a tenant has of a tool, sorted by name.
    pub async fn examples(&self, tenant: &TenantId, tool: ToolId) -> Result<Vec<ToolExample>, StoreError> {
        let sql = "SELECT name, description, args, expected FROM tool_examples WHERE tenant = $1 AND tool_id = $2 \
                   AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.id = $2 AND t.gone_at IS NOT NULL) ORDER BY name";
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(tool.to_string());
        let found = found.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(example).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Stores an example, which replaces the one of the same name. The caller has checked it.
    pub async fn put_example(
        &self,
        tenant: &TenantId,
        tool: ToolId,
        example: ToolExample,
    ) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        self.run(move |catalog| async move { catalog.put_example(&tenant, tool, &example).await }).await
    }

    /// Deletes an example.
    pub async fn delete_example(
        &self,
        tenant: &TenantId,
        tool: ToolId,
        name: &str,
    ) -> Result<(), StoreError> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.run(move |catalog| async move { catalog.delete_example(&tenant, tool, &name).await }).await
    }
}

impl CatalogState {
    async fn put_example(
        &self,
        tenant: &TenantId,
        tool: ToolId,
        example: &ToolExample,
    ) -> Result<(), StoreError> {
        let json =
            |value: serde_json::Result<String>| value.map_err(|error| StoreError::unavailable(STORE, error));
        let args = json(serde_json::to_string(&example.args))?;
        let expected = example.expect.as_ref().map(serde_json::to_string).map(json).transpose()?;
        // One change at a time, so that the limit holds.
        let _lock = self.db.generation.lock().await;
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(STORE))?;
        let sql = "SELECT COUNT(*) FROM tool_examples WHERE tenant = $1 AND tool_id = $2 AND name <> $3";
        let others = sqlx::query(sql).bind(tenant.as_str()).bind(tool.to_string()).bind(&example.name);
        let others = others.fetch_one(&mut *tx).await.and_then(|row| row.try_get::<i64, _>(0));
        let others = usize::try_from(others.map_err(failed_to(STORE))?).unwrap_or(usize::MAX);
        if others >= MAX_EXAMPLES {
            let message =
                format!("the limit of {MAX_EXAMPLES} examples of a tool is reached; delete one first");
            return Err(StoreError::Conflict(message));
        }
        sqlx::query(
            "INSERT INTO tool_examples (tenant, tool_id, name, description, args, expected, modified_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, tool_id, name) DO UPDATE SET \
             description = excluded.description, args = excluded.args, expected = excluded.expected, \
             modified_at = excluded.modified_at",
        )
        .bind(tenant.as_str())
        .bind(tool.to_string())
        .bind(&example.name)
        .bind(&example.description)
        .bind(args)
        .bind(expected)
        .bind(self.db.now().as_microsecond())
        .execute(&mut *tx)
        .await
        .map_err(failed_to(STORE))?;
        audit::store_current_record(&mut tx, &example.name).await.map_err(failed_to(STORE))?;
        tx.commit().await.map_err(failed_to(STORE))
    }

    async fn delete_example(&self, tenant: &TenantId, tool: ToolId, name: &str) -> Result<(), StoreError> {
        let action = "delete the example of the tool";
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(action))?;
        let done = sqlx::query("DELETE FROM tool_examples WHERE tenant = $1 AND tool_id = $2 AND name = $3")
            .bind(tenant.as_str())
            .bind(tool.to_string())
            .bind(name)
            .execute(&mut *tx)
            .await
            .map_err(failed_to(action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("example", name));
        }
        audit::store_current_record(&mut tx, name).await.map_err(failed_to(action))?;
        tx.commit().await.map_err(failed_to(action))
    }
}

fn example(row: &AnyRow) -> Result<ToolExample, sqlx::Error> {
    let decode = |error: serde_json::Error| sqlx::Error::Decode(error.into());
    let expected: Option<String> = row.try_get("expected")?;
    Ok(ToolExample {
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        args: serde_json::from_str(row.try_get("args")?).map_err(decode)?,
        expect: expected.map(|text| serde_json::from_str(&text)).transpose().map_err(decode)?,
    })
}
