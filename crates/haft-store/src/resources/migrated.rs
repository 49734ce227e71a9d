//! Completes the rows that the migration to resources has moved.

use haft_core::hash;
use serde_json::Value;
use sqlx::{Any, Row as _, Transaction};

use crate::rows;

/// Fills in the texts for searches and the hashes of revisions, which SQL cannot compute.
pub(crate) async fn fill_migrated(tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
    let found = sqlx::query("SELECT id, revision, slug FROM resources WHERE search = ''");
    for row in found.fetch_all(&mut **tx).await? {
        let (id, number): (&str, i64) = (row.try_get("id")?, row.try_get("revision")?);
        let select = sqlx::query(
            "SELECT definition, hash FROM resource_revisions WHERE resource_id = $1 AND number = $2",
        );
        let revision = select.bind(id).bind(number).fetch_one(&mut **tx).await?;
        let definition: Value = rows::json_column(&revision, "definition")?;
        let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
        let slug: &str = row.try_get("slug")?;
        let search = rows::search_text(&format!("{slug}\n{}\n{}", text("name"), text("description")));
        let update = sqlx::query("UPDATE resources SET search = $1 WHERE id = $2");
        update.bind(search).bind(id).execute(&mut **tx).await?;
        if revision.try_get::<&str, _>("hash")?.is_empty() {
            let hash = hash::of_value(&definition).map_err(|error| sqlx::Error::Encode(error.into()))?;
            let update =
                sqlx::query("UPDATE resource_revisions SET hash = $1 WHERE resource_id = $2 AND number = $3");
            update.bind(hash).bind(id).bind(number).execute(&mut **tx).await?;
        }
    }
    Ok(())
}
