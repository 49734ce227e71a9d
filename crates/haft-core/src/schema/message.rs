//! What a violation says: enough to send a value that fits.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::problem::excerpt;

/// The most characters of one message: it quotes the value, which may be huge.
pub(super) const MAX_MESSAGE: usize = 300;
/// The most characters of a value, where what is expected of it is said after it.
const MAX_VALUE: usize = 60;
/// The most alternatives that are told, and the most that is told of one.
const MAX_TOLD: usize = 3;

/// Says what is wrong with a value.
pub(super) fn message(error: &ValidationError<'_>) -> String {
    let text = match error.kind() {
        ValidationErrorKind::Enum { options } => {
            let value = excerpt(&error.instance().to_string(), MAX_VALUE);
            format!("{value} is not one of {}", either(options))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            format!("fits none of the alternatives: {}", alternatives(error, context))
        }
        ValidationErrorKind::FalseSchema => "is not taken; leave it out".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => "fits more than one of the alternatives".to_owned(),
        _ => error.to_string(),
    };
    excerpt(&text, MAX_MESSAGE)
}

/// Says of properties that none is taken.
pub(super) fn unexpected<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let mut told: Vec<String> = keys.take(MAX_TOLD + 1).map(|key| format!("`{key}`")).collect();
    let last = if told.len() > MAX_TOLD { Some("all others".to_owned()) } else { None };
    told.truncate(MAX_TOLD);
    told.extend(last);
    let told = match told.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => told.concat(),
    };
    excerpt(&format!("takes no properties; leave out {told}"), MAX_MESSAGE)
}

fn either(options: &Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(ToString::to_string).collect();
    match options.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// Says what is missing to the alternatives that are nearest to the value.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let own = error.instance_path().as_str();
    // What has to be another kind of thing, or is marked as another one, was not meant.
    let is_meant = |errors: &&Vec<ValidationError<'static>>| {
        !errors.iter().any(|error| match error.kind() {
            ValidationErrorKind::Type { .. } => error.instance_path().as_str() == own,
            ValidationErrorKind::Constant { .. } => true,
            _ => false,
        })
    };
    if let Some(told) = marks(own, context) {
        return told;
    }
    let mut candidates: Vec<_> = context.iter().filter(is_meant).collect();
    if candidates.is_empty() {
        candidates = context.iter().collect();
    }
    let fewest = candidates.iter().map(|errors| errors.len()).min().unwrap_or_default();
    candidates.retain(|errors| errors.len() == fewest);
    let mut told: Vec<String> = Vec::new();
    for errors in candidates {
        let said =
            errors.iter().take(MAX_TOLD).map(|error| placed(own, error)).collect::<Vec<_>>().join("; ");
        if !told.contains(&said) {
            told.push(said);
        }
    }
    let more = if told.len() > MAX_TOLD { "; or …" } else { "" };
    told.truncate(MAX_TOLD);
    told.join("; or: ") + more
}

/// Alternatives that are told apart by the constant of one property, none of which the value has: lists them all.
fn marks(own: &str, context: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let mark = |errors: &Vec<ValidationError<'static>>| {
        errors.iter().find_map(|error| match error.kind() {
            ValidationErrorKind::Constant { expected_value } => {
                let path =
                    error.instance_path().as_str().strip_prefix(own).filter(|path| !path.is_empty())?;
                Some((path.to_owned(), expected_value.as_ref().clone(), error.instance().to_string()))
            }
            _ => None,
        })
    };
    let marks: Option<Vec<_>> = context.iter().map(mark).collect();
    let marks = marks?;
    let (path, _, value) = marks.first()?;
    let is_one = marks.iter().all(|(other, ..)| other == path) && marks.len() > 1;
    let options = Value::Array(marks.iter().map(|(_, expected, _)| expected.clone()).collect());
    is_one.then(|| format!("{path}: {} is not one of {}", excerpt(value, MAX_VALUE), either(&options)))
}

fn placed(own: &str, error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    match path.strip_prefix(own).unwrap_or(path) {
        "" => message(error),
        below => format!("{below}: {}", message(error)),
    }
}
