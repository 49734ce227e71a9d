//! Filters of queries, in a short and in the full form.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_retrieval::{Filter, MetadataValue};
use serde_json::{Map, Value};

/// The maximum nesting that is read; the filter itself is checked against its own limit.
const MAX_DEPTH: usize = 32;

/// Parses a filter: `{"team": "core", "year": [2025, 2026]}` is all of these, an array is one of its values;
/// `{"range": {"key": "year", "min": 2020}}`, `all`, `any`, `not`, `equals`, `in` and `exists` are the full form.
pub(super) fn parse(filter: &Value) -> Result<Filter, CallError> {
    let parsed = read(filter, 0)?;
    parsed.check().map_err(|error| invalid(error.to_string()))?;
    Ok(parsed)
}

fn invalid(message: impl AsRef<str>) -> CallError {
    CallError::new(ErrorCode::InvalidArguments, format!("invalid `filter`: {}", message.as_ref()))
}

fn read(filter: &Value, depth: usize) -> Result<Filter, CallError> {
    if depth > MAX_DEPTH {
        return Err(invalid("nested too deeply"));
    }
    let Value::Object(map) = filter else {
        return Err(invalid("expected an object such as `{\"team\": \"core\"}`"));
    };
    let mut entries = map.iter();
    match (entries.next(), entries.next()) {
        (Some((key, value)), None) => match operator(key, value, depth)? {
            Some(filter) => Ok(filter),
            None => short(map),
        },
        _ => short(map),
    }
}

/// Reads an operator of the full form; a key of metadata with the same name is one if its value has another form.
fn operator(key: &str, value: &Value, depth: usize) -> Result<Option<Filter>, CallError> {
    let all = |items: &[Value]| items.iter().map(|item| read(item, depth + 1)).collect::<Result<Vec<_>, _>>();
    Ok(match (key, value) {
        ("all", Value::Array(items)) if items.iter().all(Value::is_object) => Some(Filter::All(all(items)?)),
        ("any", Value::Array(items)) if items.iter().all(Value::is_object) => Some(Filter::Any(all(items)?)),
        ("not", Value::Object(_)) => Some(Filter::Not(Box::new(read(value, depth + 1)?))),
        ("equals" | "in" | "range" | "exists", Value::Object(_)) => {
            let one = Map::from_iter([(key.to_owned(), value.clone())]);
            let parsed = serde_json::from_value(Value::Object(one));
            Some(parsed.map_err(|error| invalid(excerpt(&error.to_string(), 200)))?)
        }
        _ => None,
    })
}

fn short(map: &Map<String, Value>) -> Result<Filter, CallError> {
    let scalar = |key: &str, value: &Value| {
        let expected = || {
            let message =
                format!("`{}` must be a text, a number, a boolean, or an array of these", excerpt(key, 60));
            invalid(message)
        };
        if value.is_array() {
            return Err(expected());
        }
        serde_json::from_value::<MetadataValue>(value.clone()).map_err(|_| expected())
    };
    let condition = |(key, value): (&String, &Value)| match value {
        Value::Array(values) => {
            let values = values.iter().map(|value| scalar(key, value)).collect::<Result<Vec<_>, _>>()?;
            Ok(Filter::In { key: key.clone(), values })
        }
        value => Ok(Filter::Equals { key: key.clone(), value: scalar(key, value)? }),
    };
    Ok(Filter::All(map.iter().map(condition).collect::<Result<_, CallError>>()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_filters() {
        let check = |filter: Value, expected: Value| {
            assert_eq!(serde_json::to_value(parse(&filter).unwrap()).unwrap(), expected, "{filter}");
        };
        check(json!({}), json!({"all": []}));
        check(
            json!({"team": "core", "year": [2025]}),
            json!({"all": [
                {"equals": {"key": "team", "value": "core"}}, {"in": {"key": "year", "values": [2025.0]}},
            ]}),
        );
        check(
            json!({"range": {"key": "year", "min": 2020}}),
            json!({"range": {"key": "year", "min": 2020.0}}),
        );
        check(
            json!({"all": [{"a": 1}, {"not": {"exists": {"key": "draft"}}}]}),
            json!({"all": [
                {"all": [{"equals": {"key": "a", "value": 1.0}}]}, {"not": {"exists": {"key": "draft"}}},
            ]}),
        );
        check(json!({"not": true}), json!({"all": [{"equals": {"key": "not", "value": true}}]}));
    }

    #[test]
    fn bad_filters_are_reported() {
        for (filter, expected) in [
            (json!([]), "expected an object"),
            (json!({"a": null}), "`a` must be a text"),
            (json!({"a": [[1]]}), "`a` must be a text"),
            (json!({"range": {"key": "a"}}), "range of `a` is invalid"),
            (json!({"equals": {"key": "a", "valu": 1}}), "unknown field"),
        ] {
            let error = parse(&filter).unwrap_err();
            assert!(error.message.contains(expected), "{filter}: {}", error.message);
            assert_eq!(error.code, ErrorCode::InvalidArguments);
        }
        let deep = (0..100).fold(json!({"a": 1}), |inner, _| json!({"not": inner}));
        assert!(parse(&deep).is_err());
    }
}
