//! The plan: what applying a folder changes.

use haft_core::hash;
use haft_core::problem::{Problem, excerpt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::field_changes::{FieldChange, compare};

/// The largest number of fields of one change, and the longest text in a field.
const MAX_FIELDS: usize = 50;
const MAX_TEXT: usize = 2_000;

/// How a folder is applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions {
    /// Whether items that are not in the folder are deleted.
    pub prune: bool,
    /// Whether tools of toolsets that request it may run without isolation.
    pub allow_unsandboxed: bool,
}

/// The planned or applied changes of a folder.
#[derive(Debug, Serialize)]
pub struct ApplyReport {
    /// Identifies the folder and the state that it was compared with. Applying with this id fails if either has changed.
    pub plan: String,
    /// Whether the changes were applied.
    pub applied: bool,
    pub summary: ApplySummary,
    pub changes: Vec<PlannedChange>,
    /// Warnings about the folder.
    pub warnings: Vec<Problem>,
}

/// The number of items per action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ApplySummary {
    pub create: usize,
    pub update: usize,
    pub publish: usize,
    pub delete: usize,
    pub unchanged: usize,
    /// Items that are not in the folder; `prune` would delete them.
    pub unmanaged: usize,
}

/// One item of a plan and its action.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedChange {
    pub kind: ChangeKind,
    pub action: ChangeAction,
    /// The bundle of a tool.
    pub bundle: Option<String>,
    pub name: String,
    pub version: Option<String>,
    /// The file or folder that defines it.
    pub file: Option<String>,
    /// The description of a new item, or the content of a pipeline that is or would be deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The fields that change; secrets are masked.
    pub fields: Vec<FieldChange>,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Bundle,
    Tool,
    Toolset,
    McpServer,
    Policy,
    Agent,
    Pipeline,
    CodeArtifact,
}

/// The action for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    Create,
    Update,
    /// Its newest revision is published; its definition does not change.
    Publish,
    Delete,
    /// It matches the folder.
    Unchanged,
    /// It is not in the folder; `prune` would delete it.
    Unmanaged,
}

impl ChangeKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Tool => "tool",
            Self::Toolset => "toolset",
            Self::McpServer => "mcp_server",
            Self::Policy => "policy",
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
            Self::CodeArtifact => "code_artifact",
        }
    }
}

impl ChangeAction {
    /// Returns whether something changes.
    pub const fn is_change(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Publish | Self::Delete => true,
            Self::Unchanged | Self::Unmanaged => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Publish => "publish",
            Self::Delete => "delete",
            Self::Unchanged => "unchanged",
            Self::Unmanaged => "unmanaged",
        }
    }
}

impl PlannedChange {
    /// Creates a change of a thing that is not a tool.
    pub fn new(kind: ChangeKind, action: ChangeAction, name: impl Into<String>) -> Self {
        Self {
            kind,
            action,
            bundle: None,
            name: name.into(),
            version: None,
            file: None,
            summary: String::new(),
            fields: Vec::new(),
        }
    }

    /// Returns the name for people: `bundle:name@version` for a tool.
    pub fn target(&self) -> String {
        match (&self.bundle, &self.version) {
            (Some(bundle), Some(version)) => format!("{bundle}:{}@{version}", self.name),
            (Some(bundle), None) => format!("{bundle}:{}", self.name),
            (None, _) => self.name.clone(),
        }
    }
}

impl ApplySummary {
    /// Counts the actions of a plan.
    pub fn of(changes: &[PlannedChange]) -> Self {
        let count = |action| changes.iter().filter(|change| change.action == action).count();
        Self {
            create: count(ChangeAction::Create),
            update: count(ChangeAction::Update),
            publish: count(ChangeAction::Publish),
            delete: count(ChangeAction::Delete),
            unchanged: count(ChangeAction::Unchanged),
            unmanaged: count(ChangeAction::Unmanaged),
        }
    }

    /// Returns the number of changes.
    pub fn changes(&self) -> usize {
        self.create + self.update + self.publish + self.delete
    }
}

/// Returns the fields in which two values differ, within limits.
pub(super) fn fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", before, after, &mut changes);
    changes.truncate(MAX_FIELDS);
    for change in &mut changes {
        shorten(&mut change.before);
        shorten(&mut change.after);
    }
    changes
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().nth(MAX_TEXT).is_some() => *text = excerpt_lines(text),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX_TEXT {
                *value = Value::String(excerpt(&text, MAX_TEXT));
            }
        }
        _ => {}
    }
}

/// Returns the beginning of a text; its line breaks are kept.
fn excerpt_lines(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_TEXT).collect();
    out.push('…');
    out
}

/// Returns a change of one field.
pub(super) fn field(name: &str, before: impl Into<Value>, after: impl Into<Value>) -> FieldChange {
    FieldChange { field: name.to_owned(), before: before.into(), after: after.into() }
}

/// Returns the id of a plan: a hash of the folder, the state and the options.
pub(super) fn id_of(parts: &Value) -> String {
    hash::of_value(&json!({ "plan": parts })).unwrap_or_default()
}
