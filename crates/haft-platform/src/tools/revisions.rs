//! The revisions of a tool, and what differs between two definitions.

use haft_core::redact;
use haft_core::tool::Revision;
use haft_runtime::registry::Entry;
use serde_json::Value;

use crate::error::ServiceError;
use crate::field_changes::{FieldChange, compare};

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

/// Returns the fields in which two revisions differ, with secrets masked.
pub fn differences(before: &Revision, after: &Revision) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", &masked(before), &masked(after), &mut changes);
    changes
}
