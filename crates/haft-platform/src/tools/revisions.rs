//! The revisions of a tool, and what differs between two definitions.

use haft_core::redact;
use haft_core::tool::Revision;
use haft_runtime::registry::Entry;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::ServiceError;

/// Returns the revision that another one is compared with: the published one, otherwise the one before the newest.
pub fn default_base(entry: &Entry) -> u32 {
    let published = entry.tool.published.as_ref().map(|(number, _)| *number);
    published.filter(|number| *number != entry.tool.revision).unwrap_or((entry.tool.revision - 1).max(1))
}

/// Finds a revision by its number.
pub fn find_revision<'a>(revisions: &'a [Revision], number: &str) -> Result<&'a Revision, ServiceError> {
    let revision =
        number.parse().ok().and_then(|n: u32| revisions.iter().find(|revision| revision.number == n));
    revision.ok_or_else(|| ServiceError::not_found("revision", number))
}

fn masked(revision: &Revision) -> Value {
    // A spec always serialises.
    serde_json::to_value(redact::masked(&revision.spec)).unwrap_or_default()
}

/// A field that differs between two definitions.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FieldChange {
    /// The dotted path of the field.
    #[schema(example = "description")]
    pub field: String,
    /// The earlier value; `null` if the field is missing there.
    pub before: Value,
    /// The later value; `null` if the field is missing there.
    pub after: Value,
}

/// Returns the fields in which two revisions differ, with secrets masked.
pub fn differences(before: &Revision, after: &Revision) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", &masked(before), &masked(after), &mut changes);
    changes
}

/// Collects the fields in which two values differ.
pub fn compare(field: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for key in keys(old, new) {
                let path = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                let (old, new) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
                compare(&path, old, new, changes);
            }
        }
        _ => changes.push(FieldChange {
            field: field.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}
