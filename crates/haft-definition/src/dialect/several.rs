//! Splits a text with several definitions: documents of a YAML stream, items of a JSON array, or one skill.

use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use serde_json::Value;

use super::document::Document;

/// The largest number of definitions in one text.
pub const MAX_DEFINITIONS: usize = 1000;

/// The line that separates documents, and encloses the front matter of a skill.
const SEPARATOR: &str = "---";

/// One definition of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionText {
    /// The format.
    pub form: FileForm,
    /// The text.
    pub text: String,
}

/// Splits a text into its definitions. A definition that cannot be parsed is returned as it is.
pub fn split(text: &str) -> Result<Vec<DefinitionText>, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    let found = match text.trim_start().chars().next() {
        None => Vec::new(),
        Some('{' | '[') => split_json(text),
        Some(_) if is_skill(text) => {
            vec![DefinitionText { form: FileForm::Skill, text: text.trim_start().to_owned() }]
        }
        Some(_) => split_yaml(text),
    };
    match found.len() {
        0 => Err(Problem::new("", "empty", "the text has no definition")),
        length if length > MAX_DEFINITIONS => {
            let message =
                format!("the text has {length} definitions, which exceeds the limit of {MAX_DEFINITIONS}");
            Err(Problem::new("", "too_many", message))
        }
        _ => Ok(found),
    }
}

fn split_json(text: &str) -> Vec<DefinitionText> {
    let whole = || vec![DefinitionText { form: FileForm::Json, text: text.to_owned() }];
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => items.iter().map(json_item).collect(),
        Ok(Value::Object(map)) if !map.contains_key("name") => match map.get("tools") {
            Some(Value::Array(items)) => items.iter().map(json_item).collect(),
            _ => whole(),
        },
        Ok(_) => whole(),
        // Perhaps one object per line.
        Err(_) => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let is_object =
                |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
            if lines.len() < 2 || !lines.iter().all(is_object) {
                return whole();
            }
            let item = |line: &str| DefinitionText { form: FileForm::Json, text: line.to_owned() };
            lines.into_iter().map(item).collect()
        }
    }
}

fn json_item(value: &Value) -> DefinitionText {
    DefinitionText { form: FileForm::Json, text: format!("{value:#}") }
}

fn split_yaml(text: &str) -> Vec<DefinitionText> {
    let mut found = Vec::new();
    for part in documents(text) {
        match Document::parse(part, FileForm::Yaml).map(|document| document.value) {
            Ok(Value::Array(items)) => found.extend(items.iter().map(json_item)),
            Ok(Value::Null) => {}
            _ => found.push(DefinitionText { form: FileForm::Yaml, text: part.to_owned() }),
        }
    }
    found
}

/// Returns the documents of a YAML stream that are not empty.
fn documents(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == SEPARATOR {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + line.len();
        }
        at += line.len();
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Returns whether a text is a skill: front matter, followed by something that is not another definition.
fn is_skill(text: &str) -> bool {
    if text.trim_start().lines().next().is_none_or(|line| line.trim_end() != SEPARATOR) {
        return false;
    }
    let parts = documents(text);
    let is_definition = |part: &&str| {
        let value = Document::parse(part, FileForm::Yaml).map(|document| document.value);
        value.is_ok_and(|value| value.get("name").is_some())
    };
    match parts.as_slice() {
        [] => false,
        // Without a body, the front matter itself tells.
        [only] => {
            let value = Document::parse(only, FileForm::Yaml).map(|document| document.value);
            let closing =
                text.trim_end().lines().next_back().is_some_and(|line| line.trim_end() == SEPARATOR);
            closing && value.is_ok_and(|value| value.get("runtime").is_some())
        }
        [_, rest @ ..] => !rest.iter().all(is_definition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(FileForm, &str)]) {
        let found = split(text).unwrap();
        let found: Vec<_> = found.iter().map(|part| (part.form, part.text.trim())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn texts_are_split_into_definitions() {
        check("name: a\n", &[(FileForm::Yaml, "name: a")]);
        check("name: a\n---\nname: b\n---\n", &[(FileForm::Yaml, "name: a"), (FileForm::Yaml, "name: b")]);
        check("---\nname: a\n---\nname: b\n", &[(FileForm::Yaml, "name: a"), (FileForm::Yaml, "name: b")]);
        let skill = "---\nname: a\nruntime: bash\n---\necho hello\n---\necho more";
        check(skill, &[(FileForm::Skill, skill)]);
        check("{\"name\": \"a\"}", &[(FileForm::Json, "{\"name\": \"a\"}")]);
        check(
            "{\"name\": \"a\"}\n{\"name\": \"b\"}\n",
            &[(FileForm::Json, "{\"name\": \"a\"}"), (FileForm::Json, "{\"name\": \"b\"}")],
        );
        check("[{\"name\": \"a\"}]", &[(FileForm::Json, "{\n  \"name\": \"a\"\n}")]);
        check("{\"tools\": [{\"name\": \"a\"}]}", &[(FileForm::Json, "{\n  \"name\": \"a\"\n}")]);
        check("- name: a\n", &[(FileForm::Json, "{\n  \"name\": \"a\"\n}")]);
        check("{broken", &[(FileForm::Json, "{broken")]);
        assert_eq!(split(" \n").unwrap_err().code, "empty");
        let many = "---\nname: a\n".repeat(MAX_DEFINITIONS + 1);
        assert_eq!(split(&many).unwrap_err().code, "too_many");
    }
}
