//! The life cycle of a tool besides its status: authors, deprecation, and the fields of an earlier registry.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;

/// Who changed a tool, why it is deprecated, and where it was imported from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lifecycle {
    /// Who created it: the name of a token, or `file`.
    pub created_by: Option<Arc<str>>,
    /// Who stored the newest revision.
    pub modified_by: Option<Arc<str>>,
    /// Who published the published revision.
    pub published_by: Option<Arc<str>>,
    /// The details of its deprecation. A tool can be deprecated without them.
    pub deprecation: Option<Arc<Deprecation>>,
    /// The registry row that it was imported from.
    pub legacy: Option<Arc<LegacyFields>>,
}

/// Why a tool is deprecated, what replaces it, and until when it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deprecation {
    /// The tool to call instead, as `bundle:name` or `bundle:name@version`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, example = "user-created:greet2"))]
    pub replaced_by: Option<String>,
    /// From this time on, calls are rejected.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub removal_date: Option<Timestamp>,
    /// A message for callers.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub message: Option<String>,
    /// When the tool was deprecated.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub deprecated_at: Option<Timestamp>,
    /// Who deprecated it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub deprecated_by: Option<String>,
}

impl Deprecation {
    /// Returns whether the removal date has passed.
    pub fn is_removed(&self, now: Timestamp) -> bool {
        self.removal_date.is_some_and(|at| at <= now)
    }

    /// Returns the warning for callers; `replacement` is the name of the replacement for them, if there is one.
    pub fn notice(&self, replacement: Option<&str>) -> String {
        let mut notice = "this tool is deprecated".to_owned();
        if let Some(at) = self.removal_date {
            let _ = write!(notice, " and will be removed on {}", format_date(at));
        }
        self.add_advice(&mut notice, replacement);
        notice
    }

    /// Returns why calls are rejected after the removal date.
    pub fn removal_reason(&self, replacement: Option<&str>) -> String {
        let mut reason = match self.removal_date {
            Some(at) => format!("was removed on {}", format_date(at)),
            None => "was removed".to_owned(),
        };
        self.add_advice(&mut reason, replacement);
        reason
    }

    fn add_advice(&self, text: &mut String, replacement: Option<&str>) {
        if let Some(replacement) = replacement {
            let _ = write!(text, "; use `{replacement}` instead");
        }
        if let Some(message) = &self.message {
            text.push_str(": ");
            text.push_str(message);
        }
    }
}

/// Writes a time; midnight as a date.
fn format_date(at: Timestamp) -> String {
    let text = at.to_string();
    text.strip_suffix("T00:00:00Z").map_or_else(|| text.clone(), str::to_owned)
}

/// The fields of a registry row that haft keeps but does not use to run the tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LegacyFields {
    /// The id of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tenant of the row; missing for a global row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The built-in tool that the row represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin_key: Option<String>,
    /// The template that the row was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin_template_id: Option<String>,
    /// Whether the row was a template.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_builtin_template: bool,
    /// Whether the row belonged to the system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_system: bool,
    /// Fields that haft does not know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub other: Map<String, Value>,
}

impl LegacyFields {
    /// Returns whether the row stands for a built-in tool.
    pub fn is_built_in(&self) -> bool {
        self.is_system || self.builtin_key.is_some()
    }

    /// Returns whether the row is a tenant's copy of a built-in tool, which lists hide.
    pub fn is_built_in_copy(&self) -> bool {
        self.tenant_id.is_some()
            && (self.builtin_key.is_some() || self.builtin_template_id.is_some() || self.is_builtin_template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_name_the_date_the_replacement_and_the_message() {
        let date: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let time: Timestamp = "2027-01-01T12:30:00Z".parse().unwrap();
        let plain = Deprecation::default();
        assert_eq!(plain.notice(None), "this tool is deprecated");
        let full = Deprecation {
            removal_date: Some(date),
            message: Some("the API is going away".to_owned()),
            ..Deprecation::default()
        };
        assert_eq!(
            full.notice(Some("new")),
            "this tool is deprecated and will be removed on 2027-01-01; use `new` instead: the API is going away"
        );
        assert_eq!(
            Deprecation { removal_date: Some(time), ..Deprecation::default() }.removal_reason(Some("new")),
            "was removed on 2027-01-01T12:30:00Z; use `new` instead"
        );
    }

    #[test]
    fn a_tool_is_removed_from_its_date_on() {
        let date: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let deprecation = Deprecation { removal_date: Some(date), ..Deprecation::default() };
        let second = std::time::Duration::from_secs(1);
        assert!(deprecation.is_removed(date) && deprecation.is_removed(date + second));
        assert!(!deprecation.is_removed(date - second) && !Deprecation::default().is_removed(date));
    }

    #[test]
    fn copies_of_built_in_tools_belong_to_a_tenant() {
        let global = LegacyFields { builtin_key: Some("web_search".into()), ..LegacyFields::default() };
        let copy = LegacyFields { tenant_id: Some("t".into()), ..global.clone() };
        let template = LegacyFields {
            tenant_id: Some("t".into()),
            builtin_template_id: Some("1".into()),
            ..LegacyFields::default()
        };
        let own = LegacyFields { tenant_id: Some("t".into()), ..LegacyFields::default() };
        assert_eq!(
            [&global, &copy, &template, &own].map(|row| (row.is_built_in(), row.is_built_in_copy())),
            [(true, false), (true, true), (false, true), (false, false)]
        );
    }
}
