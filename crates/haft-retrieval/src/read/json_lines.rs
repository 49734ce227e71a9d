//! JSON Lines: every line is a record; objects become `name: value` lines.

use serde_json::Value;

use super::{Format, ReadError, output::Output};
use crate::BlockKind;

/// Reads JSON Lines.
pub(super) fn read(source: &str, output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut at = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let record = line.trim();
        if !record.is_empty() {
            // The parser limits the nesting itself.
            let value: Value = serde_json::from_str(record).map_err(|error| ReadError::InvalidLine {
                format: Format::JsonLines,
                line: number + 1,
                problem: error.to_string(),
            })?;
            let mut text = String::new();
            // Names of objects repeat with every value below them; a record may not grow without end.
            render(&value, &mut String::new(), &mut text, output.limits.max_text)?;
            let start = at + (line.len() - line.trim_start().len());
            output.push(BlockKind::Record, text.trim_end().to_owned(), start..start + record.len())?;
        }
        at += line.len();
    }
    Ok(())
}

fn render(value: &Value, path: &mut String, text: &mut String, limit: usize) -> Result<(), ReadError> {
    if text.len() > limit {
        return Err(ReadError::TextTooLarge { limit });
    }
    let scalar = match value {
        Value::Null => return Ok(()),
        Value::Object(object) => {
            let length = path.len();
            for (name, value) in object {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                render(value, path, text, limit)?;
                path.truncate(length);
            }
            return Ok(());
        }
        Value::Array(elements) => {
            return elements.iter().try_for_each(|element| render(element, path, text, limit));
        }
        Value::String(string) => string.clone(),
        other => other.to_string(),
    };
    if !path.is_empty() {
        text.push_str(path);
        text.push_str(": ");
    }
    text.push_str(&scalar);
    text.push('\n');
    Ok(())
}
