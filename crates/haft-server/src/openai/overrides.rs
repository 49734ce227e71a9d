//! What a request may change of an agent: the form and the length of the answer, and how it is sampled.

use haft_core::agent::AgentDefinition;
use haft_core::problem::{excerpt, join};
use haft_core::schema::Schema;
use serde_json::{Value, json};

use super::error::OpenAiError;
use super::fields::Fields;
use haft_platform::runs::RunOverrides;

/// What a request changes. The definition of the agent comes first: what its author has set stays.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Overrides {
    pub(super) format: Option<Format>,
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
}

/// The form of the answer, and the field that requests it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Format {
    pub(super) param: String,
    pub(super) schema: Value,
    /// Whether any JSON object will do.
    pub(super) any_object: bool,
}

impl Format {
    /// Reads `response_format` or `text.format`; `None` is plain text.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Self>, OpenAiError> {
        let param = fields.path("type");
        match fields.required_text("type")? {
            "text" => Ok(None),
            "json_object" => Ok(Some(Self { param, schema: json!({"type": "object"}), any_object: true })),
            "json_schema" => {
                // Chat completions nest the schema, responses do not.
                let nested = fields.object("json_schema")?;
                let holder = nested.as_ref().unwrap_or(fields);
                let schema = holder.get("schema").ok_or_else(|| holder.missing("schema"))?;
                let param = holder.path("schema");
                Schema::compile("", schema)
                    .map_err(|problems| OpenAiError::invalid(param.clone(), join(&problems)))?;
                Ok(Some(Self { param, schema: schema.clone(), any_object: false }))
            }
            other => {
                let other = excerpt(other, 40);
                let message =
                    format!("unknown format `{other}`; expected `text`, `json_object` or `json_schema`");
                Err(OpenAiError::invalid(param, message))
            }
        }
    }
}

impl Overrides {
    /// Reads the fields that both endpoints have.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, OpenAiError> {
        let temperature = fields.number("temperature")?;
        if temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            return Err(OpenAiError::invalid("temperature", "expected a number from 0 to 2"));
        }
        Ok(Self { temperature, ..Self::default() })
    }

    /// Reads the limit of an answer.
    pub(super) fn set_max_tokens(&mut self, fields: &Fields<'_>, names: &[&str]) -> Result<(), OpenAiError> {
        for name in names {
            if let Some(limit) = fields.count(name)? {
                let limit = u32::try_from(limit).unwrap_or(u32::MAX);
                if limit == 0 {
                    return Err(OpenAiError::invalid(fields.path(name), "expected a number above 0"));
                }
                self.max_tokens = Some(limit);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns what the run sets instead of the agent. What the author of the agent has set stays; a limit only shrinks.
    pub(super) fn resolve(&self, definition: &AgentDefinition) -> Result<RunOverrides, OpenAiError> {
        let model = &definition.model;
        let output_schema = match (&self.format, &definition.output_schema) {
            (None, _) => None,
            (Some(format), None) => Some(format.schema.clone()),
            (Some(format), Some(own)) if format.any_object || *own == format.schema => None,
            (Some(format), Some(_)) => {
                let message = format!(
                    "the agent `{}` has an output schema of its own, which differs from this one; leave it out",
                    definition.slug
                );
                return Err(OpenAiError::unsupported(format.param.clone(), message));
            }
        };
        Ok(RunOverrides {
            temperature: self.temperature.filter(|_| model.temperature.is_none()),
            max_tokens: self.max_tokens.map(|limit| model.max_tokens.map_or(limit, |own| own.min(limit))),
            output_schema,
            instructions: None,
        })
    }
}
