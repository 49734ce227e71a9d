//! Reads the fields of a manifest that describe the toolset as a whole.

use haft_core::name::{BundleSlug, Version};
use haft_core::problem::excerpt;
use haft_definition::check::{MAX_DESCRIPTION, MAX_LABEL};
use haft_definition::dialect::{Fields, describe, item_path};
use serde_json::Value;

use crate::requirements::{MAX_REQUIREMENTS, Requirement};
use crate::toolset::MANIFEST_VERSION;

pub(super) fn manifest_version(fields: &mut Fields<'_>) {
    let version = match fields.value("manifest_version") {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => {
            let message = format!("expected `\"{MANIFEST_VERSION}\"`, found {}", describe(&other));
            return fields.error("manifest_version", "wrong_type", message);
        }
        None => return fields.missing("manifest_version", &format!("`\"{MANIFEST_VERSION}\"`")),
    };
    if version != MANIFEST_VERSION {
        let shown = excerpt(&version, 40);
        let message =
            format!("unsupported version `{shown}`; this version of haft reads `{MANIFEST_VERSION}`");
        fields.error("manifest_version", "unsupported_version", message);
    }
}

pub(super) fn id(fields: &mut Fields<'_>) -> Option<BundleSlug> {
    let text = fields.required_text("id", "the id of the toolset, such as `my-toolset`")?;
    let id = BundleSlug::new(&text).map_err(|error| {
        fields.error("id", "invalid_name", error.to_string().replacen("bundle name", "toolset id", 1));
    });
    let id = id.ok()?;
    if id == BundleSlug::built_in() {
        fields.error(
            "id",
            "invalid_name",
            format!("`{id}` is the bundle of the built-in tools; choose another id"),
        );
        return None;
    }
    Some(id)
}

pub(super) fn version(fields: &mut Fields<'_>) -> Option<Version> {
    let text = fields.required_text("version", "a version such as `1.0.0`")?;
    let version = Version::new(&text).ok().filter(Version::is_three_numbers);
    if version.is_none() {
        let message =
            format!("invalid version `{}`; expected three numbers such as `1.0.0`", excerpt(&text, 40));
        fields.error("version", "invalid_version", message);
    }
    version
}

pub(super) fn label(fields: &mut Fields<'_>) -> String {
    let name = fields.text("name").unwrap_or_default();
    let length = name.chars().count();
    if length > MAX_LABEL {
        fields.error("name", "too_large", format!("has {length} characters; the limit is {MAX_LABEL}"));
    }
    if name.chars().any(char::is_control) {
        fields.error("name", "invalid_value", "contains a control character; expected a single line of text");
    }
    name
}

pub(super) fn description(fields: &mut Fields<'_>) -> String {
    let description = fields.text("description").unwrap_or_default();
    if description.len() > MAX_DESCRIPTION {
        let message = format!("has {} bytes; the limit is {MAX_DESCRIPTION}", description.len());
        fields.error("description", "too_large", message);
    }
    description
}

/// Reads a list of requirements.
pub(super) fn dependencies(fields: &mut Fields<'_>, key: &'static str) -> Vec<Requirement> {
    let lines = fields.texts(key).unwrap_or_default();
    if lines.len() > MAX_REQUIREMENTS {
        let message = format!("has {} entries; the limit is {MAX_REQUIREMENTS}", lines.len());
        fields.error(key, "too_large", message);
        return Vec::new();
    }
    let mut found = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match Requirement::new(line) {
            Ok(requirement) => found.push(requirement),
            Err(error) => {
                let path = item_path(&fields.path(key), index);
                fields.report().error(path, "invalid_requirement", error.to_string());
            }
        }
    }
    found
}
