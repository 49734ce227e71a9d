//! Reads rows of a `tool_registry` table as tools, and plans what to do with each.

use std::collections::{HashMap, HashSet};

use haft_core::Timestamp;
use haft_core::catalog::ImportedTool;
use haft_core::lifecycle::LegacyFields;
use haft_core::name::{BundleSlug, ToolName, Version};
use haft_core::problem::{Problem, excerpt, join};
use haft_core::redact;
use haft_core::secret::MASK;
use haft_core::tool::{Status, Tool};
use haft_definition::dialect::{self, Defaults, Dialect, UNKNOWN_FIELD};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::definition;
use crate::identity::Identity;

/// The maximum number of rows.
const MAX_ROWS: usize = 10_000;
/// The largest size of the unknown fields of a row that are kept, as JSON.
const MAX_OTHER_BYTES: usize = 8 * 1024;

/// The action for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowAction {
    /// A tool was created.
    Created,
    /// The tool of an earlier import was updated.
    Updated,
    /// The tool of an earlier import matches the row.
    Unchanged,
    /// The row was skipped.
    Skipped,
    /// The row is invalid; nothing was imported.
    Failed,
}

/// One row of the report.
#[derive(Debug, Serialize)]
pub struct RowReport {
    /// The line of the row, from 1.
    pub line: usize,
    /// The id of the row.
    pub row_id: Option<String>,
    /// The tool, as `bundle:name@version`.
    pub tool: Option<String>,
    pub action: RowAction,
    /// The status of the tool.
    pub status: Option<Status>,
    /// Whether lists hide the tool, because it is a tenant's copy of a built-in tool.
    pub hidden: bool,
    /// Why it was skipped or is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// What to do with all rows.
pub struct RegistryPlan {
    pub rows: Vec<RowReport>,
    pub tools: Vec<ImportedTool>,
}

/// Plans the import of rows into a bundle.
pub struct RegistryImport<'a> {
    pub app: &'a Context,
    pub identity: &'a Identity,
    pub bundle: &'a BundleSlug,
    /// Only rows of this tenant, and global ones.
    pub tenant_id: Option<&'a str>,
}

/// A line of the file.
struct Line {
    /// The number, from 1.
    number: usize,
    /// The row, or why it cannot be read.
    row: Result<Map<String, Value>, String>,
}

/// The tools of the bundle that exist already.
struct ExistingTools {
    by_row: HashMap<String, Tool>,
    by_name: HashMap<(ToolName, Version), Tool>,
}

/// Why a row is not imported.
enum RowRejection {
    Skipped(String),
    Failed(String),
}

impl RegistryImport<'_> {
    /// Reads the rows, one JSON object per line.
    pub async fn plan(&self, text: &str) -> Result<RegistryPlan, String> {
        let lines: Vec<(usize, &str)> =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return Err("no rows: expected one JSON object per line".to_owned());
        }
        if lines.len() > MAX_ROWS {
            return Err(format!("{} rows exceed the limit of {MAX_ROWS}; split the file", lines.len()));
        }
        let rows: Vec<Line> =
            lines.into_iter().map(|(index, line)| Line { number: index + 1, row: parse_row(line) }).collect();
        self.check_tenants(&rows)?;
        let existing = self.existing();
        let mut plan = RegistryPlan { rows: Vec::with_capacity(rows.len()), tools: Vec::new() };
        let mut names = HashSet::new();
        for line in rows {
            self.plan_row(line, &existing, &mut names, &mut plan).await;
        }
        Ok(plan)
    }

    /// Rows of several tenants must not end up in one.
    fn check_tenants(&self, rows: &[Line]) -> Result<(), String> {
        let rows = rows.iter().filter_map(|line| line.row.as_ref().ok());
        let tenants: HashSet<String> = rows.filter_map(|row| text(row, "tenant_id")).collect();
        if self.tenant_id.is_some() || tenants.len() <= 1 {
            return Ok(());
        }
        let mut names: Vec<String> = tenants.iter().map(|id| format!("`{}`", excerpt(id, 60))).collect();
        names.sort();
        Err(format!(
            "the rows belong to {} tenants ({}); select one with `tenant_id`",
            names.len(),
            excerpt(&names.join(", "), 200)
        ))
    }

    fn existing(&self) -> ExistingTools {
        let snapshot = self.app.registry().snapshot();
        let own = snapshot.tools(&self.identity.tenant).filter(|entry| entry.tool.bundle == *self.bundle);
        let mut existing = ExistingTools { by_row: HashMap::new(), by_name: HashMap::new() };
        for entry in own {
            let tool = &entry.tool;
            if let Some(id) = tool.lifecycle.legacy.as_ref().and_then(|legacy| legacy.id.clone()) {
                existing.by_row.insert(id, tool.clone());
            }
            existing.by_name.insert((tool.spec.name.clone(), tool.spec.version.clone()), tool.clone());
        }
        existing
    }

    async fn plan_row(
        &self,
        Line { number, row }: Line,
        existing: &ExistingTools,
        names: &mut HashSet<(ToolName, Version)>,
        plan: &mut RegistryPlan,
    ) {
        let row_id = row.as_ref().ok().and_then(|row| text(row, "id"));
        let mut report = RowReport {
            line: number,
            row_id,
            tool: None,
            action: RowAction::Failed,
            status: None,
            hidden: false,
            reason: None,
            warnings: Vec::new(),
        };
        let planned = match row {
            Ok(row) => self.read_row(row, existing, names, &mut report).await,
            Err(reason) => Err(RowRejection::Failed(reason)),
        };
        match planned {
            Ok(None) => report.action = RowAction::Unchanged,
            Ok(Some(tool)) => {
                report.action = if tool.id.is_some() { RowAction::Updated } else { RowAction::Created };
                plan.tools.push(tool);
            }
            Err(RowRejection::Skipped(reason)) => {
                (report.action, report.reason) = (RowAction::Skipped, Some(reason));
            }
            Err(RowRejection::Failed(reason)) => report.reason = Some(reason),
        }
        plan.rows.push(report);
    }

    /// Returns the tool to store; `None` if an earlier import stored the same.
    async fn read_row(
        &self,
        mut row: Map<String, Value>,
        existing: &ExistingTools,
        names: &mut HashSet<(ToolName, Version)>,
        report: &mut RowReport,
    ) -> Result<Option<ImportedTool>, RowRejection> {
        row.retain(|_, value| !value.is_null());
        let mut legacy = legacy_fields(&row);
        if self.tenant_id.is_some_and(|own| legacy.tenant_id.as_deref().is_some_and(|id| id != own)) {
            return Err(RowRejection::Skipped("it belongs to another tenant".to_owned()));
        }
        if let Some(name) = self.own_built_in(&row, &legacy) {
            return Err(RowRejection::Skipped(format!("haft has `{name}` as a built-in tool")));
        }
        let state = RowState::take(&mut row).map_err(RowRejection::Failed)?;
        apply_defaults(&mut row, &legacy);
        let failed = |problems: &[Problem]| RowRejection::Failed(join(problems));
        let parsed = dialect::read_value(Value::Object(row.clone()), &Defaults::default())
            .map_err(|problems| failed(&problems))?;
        if parsed.dialect != Dialect::Registry {
            report.warnings.push(Problem::new(
                "",
                "dialect",
                "the row is not in the form of `tool_registry`",
            ));
        }
        legacy.other = unknown_fields(&row, &parsed.warnings, &mut report.warnings);
        let key = (parsed.spec.name.clone(), parsed.spec.version.clone());
        report.tool = Some(format!("{}:{}@{}", self.bundle, key.0, key.1));
        report.status = Some(state.status);
        report.hidden = legacy.is_built_in_copy();
        if !names.insert(key.clone()) {
            return Err(RowRejection::Failed("another row has the same name and version".to_owned()));
        }
        let stored = legacy.id.as_ref().and_then(|id| existing.by_row.get(id));
        if stored.is_none() && existing.by_name.contains_key(&key) {
            let reason = "a tool with this name and version exists that was not imported from this row";
            return Err(RowRejection::Failed(reason.to_owned()));
        }
        let folder = self.app.store().catalog().bundle_folder(&self.identity.tenant, self.bundle);
        let earlier = stored.map(|tool| &*tool.spec);
        let checked = definition::check(self.app, &self.identity.tenant, (parsed, None), earlier, folder)
            .await
            .map_err(|error| RowRejection::Failed(error.message))?;
        report.warnings.extend(checked.warnings.into_iter().filter(|warning| warning.code != UNKNOWN_FIELD));
        let tool = ImportedTool {
            id: stored.map(|tool| tool.id),
            bundle: self.bundle.clone(),
            spec: checked.spec,
            status: state.status,
            enabled: state.enabled,
            published_at: state.published_at,
            legacy,
        };
        Ok(Some(tool).filter(|tool| stored.is_none_or(|stored| !is_same(stored, tool))))
    }

    /// Returns the name of the built-in tool of haft that a global row stands for.
    fn own_built_in(&self, row: &Map<String, Value>, legacy: &LegacyFields) -> Option<String> {
        if legacy.tenant_id.is_some() || !legacy.is_built_in() {
            return None;
        }
        let name = legacy.builtin_key.clone().or_else(|| text(row, "slug"))?;
        let snapshot = self.app.registry().snapshot();
        let mut tools = snapshot.tools(&self.identity.tenant);
        tools.any(|entry| entry.tool.built_in && entry.tool.spec.name.as_str() == name).then_some(name)
    }
}

/// Returns whether an earlier import stored the same.
fn is_same(stored: &Tool, tool: &ImportedTool) -> bool {
    *stored.spec == tool.spec
        && stored.status == tool.status
        && stored.enabled == tool.enabled
        && stored.lifecycle.legacy.as_deref() == Some(&tool.legacy)
}

/// The state of a row, with the defaults of the registry's migration.
struct RowState {
    status: Status,
    enabled: bool,
    published_at: Option<Timestamp>,
}

impl RowState {
    /// Takes the state out of a row. An active row without a status is published, an inactive one disabled.
    fn take(row: &mut Map<String, Value>) -> Result<Self, String> {
        let is_active = match row.shift_remove("is_active") {
            None => true,
            Some(Value::Bool(active)) => active,
            Some(other) => return Err(format!("`is_active`: expected a boolean, found `{}`", short(&other))),
        };
        let status = match row.shift_remove("status") {
            None if is_active => Status::Published,
            None => Status::Disabled,
            Some(value) => value.as_str().and_then(Status::parse).ok_or_else(|| {
                format!(
                    "`status`: unknown value `{}`; expected one of `draft`, `published`, `deprecated`, `disabled`",
                    short(&value)
                )
            })?,
        };
        let published_at = match row.shift_remove("published_at") {
            None => None,
            Some(value) => Some(
                parse_time(&value)
                    .ok_or_else(|| format!("`published_at`: expected a time, found `{}`", short(&value)))?,
            ),
        };
        Ok(Self { status, enabled: is_active && status != Status::Disabled, published_at })
    }
}

/// Parses a time as databases write it, with or without a zone; without one it is UTC.
fn parse_time(value: &Value) -> Option<Timestamp> {
    let text = value.as_str()?.trim().replacen(' ', "T", 1);
    text.parse()
        .ok()
        .or_else(|| format!("{text}Z").parse().ok())
        .or_else(|| format!("{text}:00").parse().ok())
}

/// Applies the defaults of the registry's migration: the version, and the type of the system's own tools.
fn apply_defaults(row: &mut Map<String, Value>, legacy: &LegacyFields) {
    let has_text = |row: &Map<String, Value>, key: &str| text(row, key).is_some_and(|text| !text.is_empty());
    if !has_text(row, "version") {
        row.insert("version".to_owned(), "1.0.0".into());
    }
    let is_typed = has_text(row, "implementation_type")
        || row.get("config_schema").and_then(|config| config.get("implementation")?.get("type")).is_some();
    if !is_typed && legacy.is_system && !row.contains_key("artifact_id") && !row.contains_key("builtin_key") {
        // A tool of the system without a type is a function of the same name.
        if let Some(slug) = text(row, "slug") {
            row.insert("builtin_key".to_owned(), slug.into());
        }
    }
    // Every imported tool belongs to the tenant.
    row.shift_remove("scope");
}

fn legacy_fields(row: &Map<String, Value>) -> LegacyFields {
    let flag = |key: &str| row.get(key).and_then(Value::as_bool).unwrap_or_default();
    LegacyFields {
        id: text(row, "id"),
        tenant_id: text(row, "tenant_id"),
        builtin_key: text(row, "builtin_key"),
        builtin_template_id: text(row, "builtin_template_id"),
        is_builtin_template: flag("is_builtin_template"),
        is_system: flag("is_system"),
        other: Map::new(),
    }
}

/// Returns the fields that haft does not know, secrets masked. Too large ones are dropped with a warning.
fn unknown_fields(
    row: &Map<String, Value>,
    problems: &[Problem],
    warnings: &mut Vec<Problem>,
) -> Map<String, Value> {
    let unknown = problems.iter().filter(|problem| problem.code == UNKNOWN_FIELD);
    let mut other: Map<String, Value> = unknown
        .filter_map(|problem| Some((problem.field.clone(), row.get(&problem.field)?.clone())))
        .collect();
    other.iter_mut().for_each(|(key, value)| mask(key, value));
    if Value::Object(other.clone()).to_string().len() > MAX_OTHER_BYTES {
        let message = format!("the unknown fields exceed {MAX_OTHER_BYTES} bytes and are not kept");
        warnings.push(Problem::new("", "too_large", message));
        return Map::new();
    }
    other
}

fn mask(key: &str, value: &mut Value) {
    match value {
        Value::String(text) if redact::is_sensitive(key) => MASK.clone_into(text),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| mask(key, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(key, item)),
        _ => {}
    }
}

fn parse_row(line: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(line) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(_) => Err("expected a JSON object".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

/// Returns an id or a name, which databases may write as a number.
fn text(row: &Map<String, Value>, key: &str) -> Option<String> {
    match row.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn short(value: &Value) -> String {
    excerpt(&value.to_string(), 60)
}
