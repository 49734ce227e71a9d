//! Conversion of table rows to domain types.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::UnreadableFile;
use haft_core::id::{BundleId, ToolId};
use haft_core::lifecycle::Lifecycle;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Revision, Source, Status, Tool, Usage};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::engine::{Engine, Kind};
use crate::time::from_micros;

/// A column with an invalid value, in a damaged or foreign table.
#[derive(Debug, thiserror::Error)]
#[error("invalid value `{value}` in column `{column}`: {reason}")]
struct InvalidValue {
    column: &'static str,
    value: String,
    reason: String,
}

fn invalid(column: &'static str, value: &str, reason: &dyn ToString) -> sqlx::Error {
    let value = haft_core::problem::excerpt(value, 80);
    sqlx::Error::Decode(Box::new(InvalidValue { column, value, reason: reason.to_string() }))
}

/// Parses a text column.
pub(crate) fn parse_column<T>(row: &AnyRow, column: &'static str) -> Result<T, sqlx::Error>
where
    T: std::str::FromStr<Err: ToString>,
{
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|reason: T::Err| invalid(column, text, &reason))
}

/// Parses a nullable text column.
pub(crate) fn optional_parse_column<T>(row: &AnyRow, column: &'static str) -> Result<Option<T>, sqlx::Error>
where
    T: std::str::FromStr<Err: ToString>,
{
    match row.try_get::<Option<&str>, _>(column)? {
        Some(_) => parse_column(row, column).map(Some),
        None => Ok(None),
    }
}

/// Reads a JSON column.
pub(crate) fn json_column<T>(row: &AnyRow, column: &'static str) -> Result<T, sqlx::Error>
where
    T: serde::de::DeserializeOwned,
{
    let text: &str = row.try_get(column)?;
    serde_json::from_str(text).map_err(|reason| invalid(column, text, &reason))
}

/// Reads a nullable JSON column.
pub(crate) fn optional_json_column<T>(row: &AnyRow, column: &'static str) -> Result<Option<T>, sqlx::Error>
where
    T: serde::de::DeserializeOwned,
{
    match row.try_get::<Option<&str>, _>(column)? {
        Some(_) => json_column(row, column).map(Some),
        None => Ok(None),
    }
}

/// Reads a boolean column.
pub(crate) fn boolean(row: &AnyRow, column: &'static str) -> Result<bool, sqlx::Error> {
    Ok(row.try_get::<i64, _>(column)? != 0)
}

/// Reads a time column.
pub(crate) fn timestamp(row: &AnyRow, column: &'static str) -> Result<Timestamp, sqlx::Error> {
    Ok(from_micros(row.try_get(column)?))
}

/// Reads a nullable time column.
pub(crate) fn optional_timestamp(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(from_micros))
}

/// Reads the owner of a bundle or tool: a tenant, or the global scope.
fn owner(row: &AnyRow) -> Result<TenantId, sqlx::Error> {
    let text: &str = row.try_get("tenant")?;
    TenantId::parse_owner(text).map_err(|reason| invalid("tenant", text, &reason))
}

/// Reads a column with a small number.
pub(crate) fn number(row: &AnyRow, column: &'static str) -> Result<u32, sqlx::Error> {
    let value: i64 = row.try_get(column)?;
    u32::try_from(value).map_err(|reason| invalid(column, &value.to_string(), &reason))
}

fn spec(text: &str) -> Result<Arc<ToolSpec>, sqlx::Error> {
    serde_json::from_str(text).map(Arc::new).map_err(|reason| invalid("spec", text, &reason))
}

/// The columns of a bundle.
pub(crate) const BUNDLE: &str = "SELECT id, tenant, slug, display_name, description, enabled, kind, \
    created_at, modified_at, soft_deleted_at FROM bundles";

pub(crate) fn bundle(row: &AnyRow) -> Result<Bundle, sqlx::Error> {
    Ok(Bundle {
        id: parse_column::<BundleId>(row, "id")?,
        tenant: owner(row)?,
        slug: parse_column::<BundleSlug>(row, "slug")?,
        display_name: row.try_get("display_name")?,
        description: row.try_get("description")?,
        enabled: boolean(row, "enabled")?,
        kind: parse_column::<BundleKind>(row, "kind")?,
        created_at: timestamp(row, "created_at")?,
        modified_at: timestamp(row, "modified_at")?,
        soft_deleted_at: optional_timestamp(row, "soft_deleted_at")?,
    })
}

/// The columns of a tool with its newest and its published definition. The first revision is
/// joined as if it could be missing: otherwise SQLite begins with all revisions of all tools.
macro_rules! tool_query {
    ($visible:literal) => {
        concat!(
            "SELECT t.id AS id, t.tenant AS tenant, t.bundle_id AS bundle_id, b.slug AS bundle, t.revision AS revision, \
             t.published_revision AS published_revision, t.status AS status, t.enabled AS enabled, \
             t.built_in AS built_in, t.source AS source, t.path AS path, t.fault AS fault, t.call_count AS call_count, \
             t.last_called_at AS last_called_at, t.created_at AS created_at, t.modified_at AS modified_at, \
             t.published_at AS published_at, t.created_by AS created_by, t.modified_by AS modified_by, \
             t.published_by AS published_by, t.deprecation AS deprecation, t.legacy AS legacy, t.gone_at AS gone_at, \
             r.spec AS spec, p.spec AS published_spec \
             FROM tools t JOIN bundles b ON b.id = t.bundle_id AND t.gone_at IS ",
            $visible,
            " LEFT JOIN revisions r ON r.tool_id = t.id AND r.number = t.revision \
             LEFT JOIN revisions p ON p.tool_id = t.id AND p.number = t.published_revision \
             AND t.published_revision <> t.revision"
        )
    };
}

/// The tools.
pub(crate) const TOOL: &str = tool_query!("NULL");
/// The deleted tools, and those whose file is missing.
pub(crate) const HIDDEN_TOOL: &str = tool_query!("NOT NULL");

pub(crate) fn tool(row: &AnyRow) -> Result<Tool, sqlx::Error> {
    let newest = spec(row.try_get("spec")?)?;
    let revision = number(row, "revision")?;
    let published = match row.try_get::<Option<i64>, _>("published_revision")? {
        None => None,
        Some(n) => {
            let n =
                u32::try_from(n).map_err(|reason| invalid("published_revision", &n.to_string(), &reason))?;
            let definition = match row.try_get::<Option<&str>, _>("published_spec")? {
                Some(text) => spec(text)?,
                None => Arc::clone(&newest),
            };
            Some((n, definition))
        }
    };
    let status: &str = row.try_get("status")?;
    let source: &str = row.try_get("source")?;
    Ok(Tool {
        id: parse_column::<ToolId>(row, "id")?,
        tenant: owner(row)?,
        bundle_id: parse_column::<BundleId>(row, "bundle_id")?,
        bundle: parse_column::<BundleSlug>(row, "bundle")?,
        spec: newest,
        revision,
        published,
        status: Status::parse(status).ok_or_else(|| invalid("status", status, &"unknown"))?,
        enabled: boolean(row, "enabled")?,
        built_in: boolean(row, "built_in")?,
        fault: row.try_get("fault")?,
        source: Source::parse(source).ok_or_else(|| invalid("source", source, &"unknown"))?,
        path: row.try_get("path")?,
        usage: Usage {
            call_count: u64::try_from(row.try_get::<i64, _>("call_count")?).unwrap_or_default(),
            last_called_at: optional_timestamp(row, "last_called_at")?,
        },
        created_at: timestamp(row, "created_at")?,
        modified_at: timestamp(row, "modified_at")?,
        published_at: optional_timestamp(row, "published_at")?,
        lifecycle: lifecycle(row)?,
    })
}

fn lifecycle(row: &AnyRow) -> Result<Lifecycle, sqlx::Error> {
    let name = |column: &'static str| -> Result<Option<Arc<str>>, sqlx::Error> {
        Ok(row.try_get::<Option<&str>, _>(column)?.map(Arc::from))
    };
    Ok(Lifecycle {
        created_by: name("created_by")?,
        modified_by: name("modified_by")?,
        published_by: name("published_by")?,
        deprecation: optional_json_column(row, "deprecation")?.map(Arc::new),
        legacy: optional_json_column(row, "legacy")?.map(Arc::new),
    })
}

pub(crate) fn revision(row: &AnyRow) -> Result<Revision, sqlx::Error> {
    Ok(Revision {
        number: number(row, "number")?,
        hash: row.try_get("hash")?,
        spec: spec(row.try_get("spec")?)?,
        created_at: timestamp(row, "created_at")?,
        created_by: row.try_get("created_by")?,
        published_at: optional_timestamp(row, "published_at")?,
        published_by: row.try_get("published_by")?,
    })
}

/// The columns of an unreadable file.
pub(crate) const UNREADABLE: &str = "SELECT path, tenant, bundle, name, error, modified_at FROM unreadable";

pub(crate) fn unreadable(row: &AnyRow) -> Result<UnreadableFile, sqlx::Error> {
    Ok(UnreadableFile {
        path: row.try_get("path")?,
        bundle: parse_column::<BundleSlug>(row, "bundle")?,
        tenant: parse_column::<TenantId>(row, "tenant")?,
        name: row.try_get("name")?,
        error: row.try_get("error")?,
        modified_at: timestamp(row, "modified_at")?,
    })
}

/// Returns a text as searches compare it: in lower case, and without NUL, which PostgreSQL rejects.
pub(crate) fn search_text(text: &str) -> String {
    text.to_lowercase().replace('\0', " ")
}

/// Returns the pattern for `LIKE … ESCAPE '!'` of texts from [`search_text`] that contain a text.
pub(crate) fn containing(text: &str) -> String {
    format!("%{}%", escape_like(&search_text(text)))
}

/// Returns the condition that a column matches the pattern in a parameter, made by [`pattern`].
pub(crate) fn matches(engine: &Engine, column: &str, parameter: usize) -> String {
    match engine.kind {
        // `LIKE` would ignore the case.
        Kind::Sqlite => format!("{column} GLOB ${parameter}"),
        Kind::Postgres => format!("{column} LIKE ${parameter} ESCAPE '!'"),
    }
}

/// Returns the engine's notation of a pattern in which `*` matches any text.
pub(crate) fn pattern(engine: &Engine, pattern: &str) -> String {
    match engine.kind {
        Kind::Sqlite => pattern.replace('[', "[[]").replace('?', "[?]"),
        Kind::Postgres => escape_like(pattern).replace('*', "%"),
    }
}

/// Escapes a text for `LIKE … ESCAPE '!'`.
pub(crate) fn escape_like(text: &str) -> String {
    text.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}
