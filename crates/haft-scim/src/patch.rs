//! Patches (RFC 7644, section 3.5.2), in the forms that identity providers send: operations in any case, objects without
//! a path, paths as keys of such objects, booleans as texts, single values in a list.

use haft_core::problem::excerpt;
use serde_json::{Map, Value};

use crate::MAX_VALUES;
use crate::error::{ScimError, ScimType};
use crate::filter::{Expression, Parser};
use crate::json::{self, with_usual_names};
use crate::path::{AttributePath, Schema};
use crate::schema::{Attribute, Kind, Mutability, ResourceType};

/// The most operations of a patch.
const MAX_OPERATIONS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Replace,
    Remove,
}

/// What an operation changes.
struct Target {
    path: AttributePath,
    filter: Option<Expression>,
}

/// Applies a patch to a resource as haft returns it.
pub fn patch(
    resource: ResourceType,
    current: &mut Map<String, Value>,
    body: &Map<String, Value>,
) -> Result<(), ScimError> {
    let Some(Value::Array(operations)) = json::get(body, "Operations") else {
        let detail = "`Operations` is missing: expected a list of objects with `op`, `path` and `value`";
        return Err(ScimError::new(ScimType::InvalidSyntax, detail));
    };
    if operations.len() > MAX_OPERATIONS {
        let detail = format!("{} operations; the limit is {MAX_OPERATIONS}", operations.len());
        return Err(ScimError::new(ScimType::InvalidSyntax, detail));
    }
    let mut patch = Patch { resource, current };
    for operation in operations {
        patch.apply(operation)?;
    }
    Ok(())
}

struct Patch<'a> {
    resource: ResourceType,
    current: &'a mut Map<String, Value>,
}

impl Patch<'_> {
    fn apply(&mut self, operation: &Value) -> Result<(), ScimError> {
        let Some(object) = operation.as_object() else {
            return Err(ScimError::new(ScimType::InvalidSyntax, "an operation is not an object"));
        };
        let name = json::get(object, "op").and_then(Value::as_str).unwrap_or_default();
        let operation = match name.to_ascii_lowercase().as_str() {
            "add" => Operation::Add,
            "replace" => Operation::Replace,
            "remove" => Operation::Remove,
            _ => {
                let detail =
                    format!("invalid `op`: `{}`; expected `add`, `replace` or `remove`", excerpt(name, 60));
                return Err(ScimError::new(ScimType::InvalidSyntax, detail));
            }
        };
        let value = json::get(object, "value").unwrap_or(&Value::Null);
        match json::get(object, "path") {
            None | Some(Value::Null) => self.apply_object(operation, value),
            Some(Value::String(path)) if path.is_empty() => self.apply_object(operation, value),
            Some(Value::String(path)) => self.change(operation, path, value),
            Some(_) => Err(ScimError::new(ScimType::InvalidPath, "`path` is not a text")),
        }
    }

    /// Applies an operation without a path: each key of its value is one.
    fn apply_object(&mut self, operation: Operation, value: &Value) -> Result<(), ScimError> {
        if operation == Operation::Remove {
            return Err(ScimError::new(ScimType::NoTarget, "`remove` needs a `path`"));
        }
        let Some(object) = value.as_object() else {
            let detail = "without a `path`, `value` is an object with attributes";
            return Err(ScimError::new(ScimType::InvalidValue, detail));
        };
        for (key, value) in object {
            // Clients send them back as they got them; an id that differs is an error.
            let is_copy = ["schemas", "meta", "groups"].iter().any(|name| key.eq_ignore_ascii_case(name))
                || json::get(self.current, key) == Some(value);
            if !is_copy {
                self.change(operation, key, value)?;
            }
        }
        Ok(())
    }

    fn change(&mut self, operation: Operation, path: &str, value: &Value) -> Result<(), ScimError> {
        let Target { path: found, filter } = parse_path(path)?;
        if found.schema == Schema::Enterprise {
            return Ok(());
        }
        if found.schema == Schema::Core && found.name.is_empty() {
            return self.apply_object(operation, value);
        }
        let attribute = Some(&found).filter(|found| found.schema == Schema::Core);
        let attribute = attribute.and_then(|found| self.resource.attribute(&found.name));
        let attribute = attribute.ok_or_else(|| unknown_path(path, self.resource))?;
        match attribute.mutability {
            Mutability::Ignored => return Ok(()),
            Mutability::ReadOnly => {
                let detail = format!("`{}` is read-only", attribute.name);
                return Err(ScimError::new(ScimType::Mutability, detail));
            }
            Mutability::ReadWrite => {}
        }
        let sub = match found.sub.as_deref() {
            Some(sub) => Some(attribute.sub(sub).ok_or_else(|| unknown_path(path, self.resource))?),
            None => None,
        };
        // Some clients remove a value by setting it to `null`.
        let operation = if value.is_null() { Operation::Remove } else { operation };
        match attribute.kind {
            Kind::Text | Kind::Boolean if filter.is_none() => {
                self.set(attribute.name, operation, &unwrapped(value));
                Ok(())
            }
            Kind::Complex(_) if filter.is_none() => self.change_object(attribute, sub, operation, value),
            Kind::Multi(_) => self.change_values(attribute, (filter.as_ref(), sub), operation, value),
            Kind::Text | Kind::Boolean | Kind::Complex(_) => Err(unknown_path(path, self.resource)),
        }
    }

    fn set(&mut self, name: &str, operation: Operation, value: &Value) {
        if operation == Operation::Remove {
            self.current.remove(name);
        } else {
            self.current.insert(name.to_owned(), value.clone());
        }
    }

    fn change_object(
        &mut self,
        attribute: &Attribute,
        sub: Option<&'static str>,
        operation: Operation,
        value: &Value,
    ) -> Result<(), ScimError> {
        if operation == Operation::Remove && sub.is_none() {
            self.current.remove(attribute.name);
            return Ok(());
        }
        let object = self.current.entry(attribute.name).or_insert_with(|| Value::Object(Map::new()));
        let Some(object) = object.as_object_mut() else { return Ok(()) };
        change_parts(object, attribute, (sub, operation), value)
    }

    fn change_values(
        &mut self,
        attribute: &Attribute,
        (filter, sub): (Option<&Expression>, Option<&'static str>),
        operation: Operation,
        value: &Value,
    ) -> Result<(), ScimError> {
        let list = self.current.entry(attribute.name).or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { return Ok(()) };
        match (filter, sub, operation) {
            (None, None, Operation::Replace) => *list = elements(attribute, value),
            (None, None, Operation::Add) => add(list, elements(attribute, value)),
            (None, None, Operation::Remove) if value.is_null() => list.clear(),
            (None, None, Operation::Remove) => {
                let removed = elements(attribute, value);
                list.retain(|value| !removed.iter().any(|removed| is_same(value, removed)));
            }
            (Some(filter), None, Operation::Remove) => {
                list.retain(|value| !is_selected(value, filter, attribute));
            }
            (filter, sub, operation) => {
                let is_target =
                    |value: &Value| filter.is_none_or(|filter| is_selected(value, filter, attribute));
                let mut found = false;
                for target in list.iter_mut().filter(|value| is_target(value)) {
                    found = true;
                    if let Some(object) = target.as_object_mut() {
                        change_parts(object, attribute, (sub, operation), value)?;
                    }
                }
                if !found && operation != Operation::Remove {
                    let mut new = from_filter(filter, attribute)?;
                    change_parts(&mut new, attribute, (sub, operation), value)?;
                    list.push(Value::Object(new));
                }
            }
        }
        if list.len() > MAX_VALUES {
            let detail = format!("too many `{}`: at most {MAX_VALUES}", attribute.name);
            return Err(ScimError::new(ScimType::InvalidValue, detail));
        }
        Ok(())
    }
}

/// Changes one part of an object, or all that a value names.
fn change_parts(
    object: &mut Map<String, Value>,
    attribute: &Attribute,
    (sub, operation): (Option<&'static str>, Operation),
    value: &Value,
) -> Result<(), ScimError> {
    match (sub, operation) {
        (Some(sub), Operation::Remove) => {
            object.remove(sub);
        }
        (Some(sub), _) => {
            object.insert(sub.to_owned(), unwrapped(value));
        }
        (None, _) => match with_usual_names(attribute.kind, value) {
            Value::Object(parts) => object.extend(parts),
            // The value of `emails[type eq "work"]`, for example.
            Value::String(text) if matches!(attribute.kind, Kind::Multi(_)) => {
                object.insert("value".to_owned(), text.into());
            }
            _ => {
                let detail = format!("invalid `{}`: expected an object", attribute.name);
                return Err(ScimError::new(ScimType::InvalidValue, detail));
            }
        },
    }
    Ok(())
}

/// Returns a new value that a filter selects, such as that of `emails[type eq "work"]`.
fn from_filter(filter: Option<&Expression>, attribute: &Attribute) -> Result<Map<String, Value>, ScimError> {
    let parts = filter.map_or_else(|| Some(Vec::new()), Expression::required_values);
    let parts = parts.ok_or_else(|| {
        let detail = format!("no value of `{}` matches the filter of `path`", attribute.name);
        ScimError::new(ScimType::NoTarget, detail)
    })?;
    let named =
        parts.into_iter().filter_map(|(name, value)| Some((attribute.sub(name)?.to_owned(), value.clone())));
    Ok(named.collect())
}

/// Returns the values of a list, or a single one, as objects.
fn elements(attribute: &Attribute, value: &Value) -> Vec<Value> {
    let values = match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    let object = |value: Value| match value {
        Value::String(text) => Value::Object(Map::from_iter([("value".to_owned(), Value::String(text))])),
        value => with_usual_names(attribute.kind, &value),
    };
    values.into_iter().map(object).collect()
}

fn add(list: &mut Vec<Value>, new: Vec<Value>) {
    for value in new {
        // One too many shows that there are too many.
        if list.len() <= MAX_VALUES && !list.iter().any(|known| is_same(known, &value)) {
            list.push(value);
        }
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a.get("value"), b.get("value")) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn is_selected(value: &Value, filter: &Expression, attribute: &Attribute) -> bool {
    value.as_object().is_some_and(|value| filter.matches(value, Some(attribute.name)))
}

/// Takes a single value out of the list or object in which some clients put it.
fn unwrapped(value: &Value) -> Value {
    let inner = match value {
        Value::Array(values) => match values.as_slice() {
            [only] => only,
            _ => value,
        },
        value => value,
    };
    inner.as_object().and_then(|object| json::get(object, "value")).unwrap_or(inner).clone()
}

fn parse_path(text: &str) -> Result<Target, ScimError> {
    if let Some(path) = AttributePath::parse(text) {
        return Ok(Target { path, filter: None });
    }
    let invalid = |error: ScimError| {
        ScimError::new(ScimType::InvalidPath, error.detail.replacen("invalid filter", "invalid path", 1))
    };
    let mut parser = Parser::new(text).map_err(invalid)?;
    let path = parser.attribute().map_err(invalid)?;
    let filter = parser.value_filter(0).map_err(invalid)?;
    let sub = if parser.symbol(".") { Some(parser.attribute().map_err(invalid)?) } else { None };
    parser.end().map_err(invalid)?;
    match sub {
        // The parts of values have no parts.
        Some(AttributePath { schema: Schema::Core, name, sub: None }) if path.sub.is_none() => {
            Ok(Target { path: AttributePath { sub: Some(name), ..path }, filter: Some(filter) })
        }
        None if path.sub.is_none() => Ok(Target { path, filter: Some(filter) }),
        _ => {
            let detail = format!("invalid path `{}`: too many parts", excerpt(text, 120));
            Err(ScimError::new(ScimType::InvalidPath, detail))
        }
    }
}

fn unknown_path(path: &str, resource: ResourceType) -> ScimError {
    let detail =
        format!("invalid path `{}`: a {} has no such attribute", excerpt(path, 120), resource.as_str());
    ScimError::new(ScimType::InvalidPath, detail)
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
