//! Helpers to read values from responses.

use haft_core::Timestamp;
use haft_core::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::CliError;

/// Reads a response; an error names the field that is missing or has another type.
pub(crate) fn read<T: DeserializeOwned>(data: &Value) -> Result<T, CliError> {
    serde_path_to_error::deserialize(data).map_err(|error| CliError::UnreadableResponse {
        path: error.path().to_string(),
        error: error.into_inner(),
    })
}

/// Returns the JSON name of an enum value, such as the phase of a server.
pub(crate) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).map(|value| readable(&value)).unwrap_or_default()
}

/// Formats an optional value; empty for `None`.
pub(crate) fn optional(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

/// Formats a time to the second, such as `2026-01-31 12:30:00`; empty for `None`.
pub(crate) fn moment(at: impl Into<Option<Timestamp>>) -> String {
    let text = at.into().map(|at| at.to_string()).unwrap_or_default();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// Returns `yes` or `no`.
pub(crate) fn yes_no(flag: bool) -> String {
    if flag { "yes" } else { "no" }.to_owned()
}

/// Formats the rules of an allow-list; `None` allows every tool.
pub(crate) fn allow_list(rules: Option<&[String]>) -> String {
    match rules {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(rules) => rules.join(","),
    }
}

/// Returns the text at a dotted path; empty if it is missing or null. For values without a haft-api type.
pub(crate) fn text(value: &Value, path: &str) -> String {
    match path.split('.').try_fold(value, |value, key| value.get(key)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns the array under a key.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the first line of a text, at most `limit` characters of it.
pub(crate) fn first_line(text: &str, limit: usize) -> String {
    haft_core::problem::excerpt(text.trim().lines().next().unwrap_or_default(), limit)
}

/// Formats a problem with its line and field.
pub(crate) fn problem(problem: &Problem) -> String {
    let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    match problem.field.as_str() {
        "" => format!("{line}{}", problem.message),
        field => format!("{line}`{field}`: {}", problem.message),
    }
}

/// Formats a value: a string as it is, everything else as JSON.
pub(crate) fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}

#[cfg(test)]
mod tests {
    use haft_api::token::TokenList;
    use serde_json::json;

    use super::*;

    fn tokens() -> Value {
        let token = json!({
            "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "name": "ci", "tenant": "default", "role": "caller",
            "elevated": false, "platform": false, "tools": null, "rate_limit": null,
            "created_at": "2026-01-31T12:30:00.25Z", "expires_at": null, "last_used_at": null,
            "previous_expires_at": null, "parent_id": null, "actor": null,
        });
        json!({"tokens": [token], "total": 1, "next_page_token": null})
    }

    fn renamed(pointer: &str, from: &str, to: &str) -> Value {
        let mut data = tokens();
        let map = data.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap();
        let value = map.remove(from).unwrap();
        map.insert(to.to_owned(), value);
        data
    }

    #[test]
    fn a_renamed_field_is_an_error_that_names_it() {
        let error = |data: &Value| read::<TokenList>(data).unwrap_err().message();
        let versions = "client and server have different versions";
        assert_eq!(
            error(&renamed("/tokens/0", "name", "title")),
            format!("cannot read the response at `tokens[0]`: missing field `name`; {versions}")
        );
        // A nullable field must be present, too.
        assert_eq!(
            error(&renamed("/tokens/0", "last_used_at", "used_at")),
            format!("cannot read the response at `tokens[0]`: missing field `last_used_at`; {versions}")
        );
        assert_eq!(
            error(&renamed("", "tokens", "items")),
            format!("cannot read the response: missing field `tokens`; {versions}")
        );
        let mut other_type = tokens();
        *other_type.pointer_mut("/tokens/0/elevated").unwrap() = json!("no");
        assert_eq!(
            error(&other_type),
            format!(
                "cannot read the response at `tokens[0].elevated`: invalid type: string \"no\", expected a boolean; {versions}"
            )
        );
    }

    #[test]
    fn fields_of_a_newer_server_are_ignored() {
        let mut data = tokens();
        data.pointer_mut("/tokens/0")
            .and_then(Value::as_object_mut)
            .unwrap()
            .insert("new".to_owned(), json!(1));
        let list: TokenList = read(&data).unwrap();
        assert_eq!(
            list.tokens.iter().map(|token| moment(token.created_at)).collect::<Vec<_>>(),
            ["2026-01-31 12:30:00"]
        );
        assert_eq!(moment(None), "");
    }
}
