//! Messages of violations: they say what was expected, so that a model can correct its arguments.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::problem::excerpt;

/// The maximum length of a message, in characters: it quotes the value, which may be huge.
pub(super) const MAX_MESSAGE: usize = 300;
/// The maximum length of a quoted value in a message that says more than the value.
const MAX_VALUE: usize = 60;
/// The maximum number of alternatives in a message, and of errors per alternative.
const MAX_LISTED: usize = 3;

/// Returns the message of a violation.
pub(super) fn message(error: &ValidationError<'_>) -> String {
    let value = || excerpt(&error.instance().to_string(), MAX_VALUE);
    let text = match error.kind() {
        ValidationErrorKind::Required { property } => match property.as_str() {
            Some(name) => format!("missing required property `{name}`"),
            None => format!("missing required property {property}"),
        },
        ValidationErrorKind::Type { kind } => format!("expected {}, got {}", expected(kind), value()),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => match unexpected.as_slice() {
            [only] => format!("unknown property `{only}`"),
            several => format!("unknown properties {}", names(several.iter())),
        },
        ValidationErrorKind::Enum { options } => format!("{} is not one of {}", value(), choices(options)),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            format!("matches none of the alternatives: {}", alternatives(error, context))
        }
        ValidationErrorKind::FalseSchema => "is not allowed; remove it".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "matches more than one of the alternatives".to_owned()
        }
        _ => error.to_string(),
    };
    excerpt(&text, MAX_MESSAGE)
}

/// Returns the message for an object that must be empty.
pub(super) fn not_empty<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    excerpt(&format!("no properties are allowed; remove {}", names(keys)), MAX_MESSAGE)
}

fn expected(kind: &TypeKind) -> String {
    let types: Vec<String> = match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    let with_article = |name: &String| match name.as_str() {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    types.iter().map(with_article).collect::<Vec<_>>().join(" or ")
}

/// Lists property names, at most [`MAX_LISTED`] of them.
fn names<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<String> = keys.take(MAX_LISTED + 1).map(|key| format!("`{key}`")).collect();
    if names.len() > MAX_LISTED {
        names.truncate(MAX_LISTED);
        names.push("others".to_owned());
    }
    enumerate(&names, "and")
}

fn choices(options: &Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(ToString::to_string).collect();
    enumerate(&options, "or")
}

fn enumerate(items: &[String], conjunction: &str) -> String {
    match items.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} {conjunction} {last}", first.join(", ")),
        _ => items.concat(),
    }
}

/// Returns the errors of the alternatives that are nearest to the value.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let own = error.instance_path().as_str();
    // An alternative of another type, or with another discriminator, was not meant.
    let is_candidate = |errors: &&Vec<ValidationError<'static>>| {
        !errors.iter().any(|error| match error.kind() {
            ValidationErrorKind::Type { .. } => error.instance_path().as_str() == own,
            ValidationErrorKind::Constant { .. } => true,
            _ => false,
        })
    };
    if let Some(message) = discriminators(own, context) {
        return message;
    }
    let mut candidates: Vec<_> = context.iter().filter(is_candidate).collect();
    if candidates.is_empty() {
        candidates = context.iter().collect();
    }
    let fewest = candidates.iter().map(|errors| errors.len()).min().unwrap_or_default();
    candidates.retain(|errors| errors.len() == fewest);
    let mut messages: Vec<String> = Vec::new();
    for errors in candidates {
        let message: Vec<String> =
            errors.iter().take(MAX_LISTED).map(|error| with_path(own, error)).collect();
        let message = message.join("; ");
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    let more = if messages.len() > MAX_LISTED { "; or …" } else { "" };
    messages.truncate(MAX_LISTED);
    messages.join("; or: ") + more
}

/// If the alternatives differ by the constant of one property, and the value has none of these constants, lists them.
fn discriminators(own: &str, context: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let discriminator = |errors: &Vec<ValidationError<'static>>| {
        errors.iter().find_map(|error| match error.kind() {
            ValidationErrorKind::Constant { expected_value } => {
                let path =
                    error.instance_path().as_str().strip_prefix(own).filter(|path| !path.is_empty())?;
                Some((path.to_owned(), expected_value.as_ref().clone(), error.instance().to_string()))
            }
            _ => None,
        })
    };
    let all = context.iter().map(discriminator).collect::<Option<Vec<_>>>()?;
    let (path, _, value) = all.first()?;
    let is_same = all.iter().all(|(other, ..)| other == path) && all.len() > 1;
    let options = Value::Array(all.iter().map(|(_, expected, _)| expected.clone()).collect());
    is_same.then(|| format!("{path}: {} is not one of {}", excerpt(value, MAX_VALUE), choices(&options)))
}

fn with_path(own: &str, error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    match path.strip_prefix(own).unwrap_or(path) {
        "" => message(error),
        below => format!("{below}: {}", message(error)),
    }
}
