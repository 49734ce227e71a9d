//! Completes the OpenAPI document that is generated from the handlers: descriptions of responses, the errors that every
//! route may return, exact types, and an example of every body.

use std::collections::BTreeSet;

use haft_core::outcome::ErrorCode;
use serde_json::{Map, Value, json};

/// An error response that routes share.
struct SharedError {
    status: &'static str,
    name: &'static str,
    description: &'static str,
    code: ErrorCode,
    message: &'static str,
}

const fn shared(
    status: &'static str,
    name: &'static str,
    description: &'static str,
    code: ErrorCode,
    message: &'static str,
) -> SharedError {
    SharedError { status, name, description, code, message }
}

const SHARED_ERRORS: [SharedError; 11] = [
    shared("400", "BadRequest", "The request is invalid", ErrorCode::InvalidRequest, "missing `q`"),
    shared(
        "401",
        "Unauthorized",
        "The token is missing or invalid",
        ErrorCode::Unauthorized,
        "the token is invalid or has expired",
    ),
    shared(
        "403",
        "Forbidden",
        "The token may not do this, or the object is read-only",
        ErrorCode::Forbidden,
        "role `editor` required; the token has `viewer`",
    ),
    shared("404", "NotFound", "Not found", ErrorCode::NotFound, "tool `greet` not found"),
    shared(
        "409",
        "Conflict",
        "The request conflicts with the state of the object",
        ErrorCode::Conflict,
        "tool `user-created:greet@1.0.0` already exists",
    ),
    shared(
        "413",
        "PayloadTooLarge",
        "The body is too large",
        ErrorCode::TooLarge,
        "the request body exceeds the limit of 4194304 bytes (`server.max_body_bytes`)",
    ),
    shared(
        "415",
        "UnsupportedMediaType",
        "The content type is unsupported",
        ErrorCode::UnsupportedMediaType,
        "unsupported media type `image/png`",
    ),
    shared(
        "429",
        "TooManyRequests",
        "The rate limit is exceeded; see `Retry-After`",
        ErrorCode::RateLimited,
        "the rate limit of 10 calls per 1m is exceeded",
    ),
    shared(
        "500",
        "InternalError",
        "An internal error of haft",
        ErrorCode::Internal,
        "an internal error occurred; see the server log",
    ),
    shared(
        "502",
        "BadGateway",
        "Another server is unreachable or failed",
        ErrorCode::Network,
        "MCP server `files` is unreachable",
    ),
    shared(
        "503",
        "Unavailable",
        "The server is overloaded, or the store is unavailable; see `Retry-After`",
        ErrorCode::StoreUnavailable,
        "the store is unavailable (disk full); see the server log",
    ),
];

/// The depth at which examples end.
const MAX_EXAMPLE_DEPTH: usize = 16;

/// Writes `{*path}`, by which the router matches a path with slashes, as OpenAPI does.
pub(crate) fn name_wildcards(document: &mut Value) {
    let Some(Value::Object(paths)) = document.get_mut("paths") else { return };
    let named = std::mem::take(paths).into_iter().map(|(path, item)| (path.replace("{*", "{"), item));
    *paths = named.collect();
}

/// Returns the complete document.
pub(crate) fn complete(document: &utoipa::openapi::OpenApi) -> Value {
    // The document consists of strings, numbers and lists: it always serialises.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    // An empty page is both.
    if let Some(Value::Object(page)) =
        document.pointer_mut("/components/schemas/Success_ToolPage/properties/data")
        && let Some(forms) = page.remove("oneOf")
    {
        page.insert("anyOf".to_owned(), forms);
    }
    type_components(&mut document);
    for_each_operation(&mut document, |_, _, operation| {
        type_parameters(operation);
        type_optional_body(operation);
        share_errors(operation);
        describe_responses(operation);
    });
    add_shared_responses(&mut document);
    add_examples(&mut document);
    document
}

/// Calls a function with the path, the method and the description of every operation.
pub(crate) fn for_each_operation(document: &mut Value, mut visit: impl FnMut(&str, &str, &mut Value)) {
    let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) else { return };
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            visit(path, method, operation);
        }
    }
}

/// A parameter is given or not; none can be `null`.
fn type_parameters(operation: &mut Value) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for schema in parameters.into_iter().flatten().filter_map(|parameter| parameter.get_mut("schema")) {
        remove_null(schema);
    }
}

/// An optional body is given or not; it cannot be `null`.
fn type_optional_body(operation: &mut Value) {
    let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
    for schema in contents.into_iter().flatten().filter_map(|(_, content)| content.get_mut("schema")) {
        remove_null(schema);
    }
}

/// Replaces the bodies of errors by references to the shared ones, and adds those that every route may return.
fn share_errors(operation: &mut Value) {
    let is_public = operation.get("security").is_some();
    let has_body = operation.get("requestBody").is_some();
    let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    let in_path = parameters.iter().any(|parameter| parameter.get("in") == Some(&json!("path")));
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    let is_error = |response: &Value| {
        let schema = response.pointer("/content/application~1json/schema/$ref").and_then(Value::as_str);
        schema == Some("#/components/schemas/ErrorBody")
    };
    for error in &SHARED_ERRORS {
        let added = match error.status {
            "400" | "401" | "403" | "500" | "503" => !is_public,
            "404" => in_path,
            "413" => has_body,
            _ => false,
        };
        let replaced = responses.get(error.status).map_or(added, is_error);
        if replaced {
            let reference = json!({"$ref": format!("#/components/responses/{}", error.name)});
            responses.insert(error.status.to_owned(), reference);
        }
    }
}

fn describe_responses(operation: &mut Value) {
    let summary = operation.get("summary").and_then(Value::as_str).unwrap_or("Success").to_owned();
    for (status, response) in
        operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten()
    {
        let Some(response) = response.as_object_mut().filter(|map| !map.contains_key("$ref")) else {
            continue;
        };
        let is_described = response.get("description").and_then(Value::as_str).is_some_and(|t| !t.is_empty());
        if !is_described {
            let text = match status.as_str() {
                "200" => "The request succeeded",
                "201" => "The object was created",
                _ => &summary,
            };
            response.insert("description".to_owned(), text.into());
        }
    }
}

fn add_shared_responses(document: &mut Value) {
    let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) else { return };
    let responses = SHARED_ERRORS.iter().map(|error| {
        let example = json!({
            "status": "error",
            "error": {"code": error.code, "message": error.message},
            "request_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
        });
        let content = json!({"schema": {"$ref": "#/components/schemas/ErrorBody"}, "example": example});
        let response = json!({"description": error.description, "content": {"application/json": content}});
        (error.name.to_owned(), response)
    });
    components.insert("responses".to_owned(), responses.collect::<Map<_, _>>().into());
}

/// Makes the types exact: an object without known fields may have any, and a field of a response that may be missing is
/// never `null`, unless its description says so.
fn type_components(document: &mut Value) {
    let requested = requested_components(document);
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (name, schema) in schemas.into_iter().flatten() {
        type_schema(schema, !requested.contains(name));
    }
}

fn type_schema(schema: &mut Value, only_in_responses: bool) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| type_schema(schema, only_in_responses)),
        Value::Object(map) => {
            let has_fields = ["properties", "additionalProperties", "propertyNames"]
                .iter()
                .any(|key| map.contains_key(*key));
            let is_object = |kind: &Value| {
                *kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object")))
            };
            if map.get("type").is_some_and(is_object) && !has_fields {
                map.insert("additionalProperties".to_owned(), true.into());
            }
            let required = map.get("required").cloned().unwrap_or_default();
            let is_required =
                |name: &str| required.as_array().is_some_and(|names| names.contains(&name.into()));
            for (name, property) in
                map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
            {
                let is_null_described = property
                    .get("description")
                    .and_then(Value::as_str)
                    .is_some_and(|text| text.contains("`null`"));
                if only_in_responses && !is_required(name) && !is_null_described {
                    remove_null(property);
                }
                if !only_in_responses {
                    describe_default(property);
                }
                type_schema(property, only_in_responses);
            }
            for key in ["items", "allOf", "oneOf", "anyOf", "additionalProperties"] {
                if let Some(inner) = map.get_mut(key) {
                    type_schema(inner, only_in_responses);
                }
            }
        }
        _ => {}
    }
}

/// Moves the default of a field into its description: generators of clients require fields that have one.
fn describe_default(property: &mut Value) {
    let Some(map) = property.as_object_mut() else { return };
    let Some(default) = map.remove("default") else { return };
    let is_evident =
        default.is_null() || default == json!([]) || default == json!({}) || default == json!("");
    if is_evident {
        return;
    }
    let known = map.get("description").and_then(Value::as_str).unwrap_or_default();
    if !known.to_lowercase().contains("default") {
        let text = format!("{known} Default: `{}`.", default.to_string().trim_matches('"'));
        map.insert("description".to_owned(), text.trim().into());
    }
}

/// Removes `null` from the types of a schema.
fn remove_null(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(kinds) = map.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(choices) = map.get_mut("oneOf").and_then(Value::as_array_mut) {
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("oneOf");
            map.extend(only);
        }
    }
}

/// Returns the names of the schemas that request bodies and parameters use.
fn requested_components(document: &mut Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for_each_operation(document, |_, _, operation| {
        for key in ["requestBody", "parameters"] {
            collect_references(operation.get(key).unwrap_or(&Value::Null), &mut names);
        }
    });
    let mut pending: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = pending.pop() {
        let mut inner = BTreeSet::new();
        if let Some(schema) = document.pointer(&format!("/components/schemas/{name}")) {
            collect_references(schema, &mut inner);
        }
        pending.extend(inner.into_iter().filter(|name| names.insert(name.clone())));
    }
    names
}

fn collect_references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        Value::Object(map) => {
            names.extend(map.get("$ref").and_then(Value::as_str).and_then(component_name).map(str::to_owned));
            map.values().for_each(|item| collect_references(item, names));
        }
        _ => {}
    }
}

fn component_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/")
}

/// Adds an example to every body that has none.
fn add_examples(document: &mut Value) {
    let schemas = document.pointer("/components/schemas").cloned().unwrap_or_default();
    for_each_operation(document, |_, _, operation| {
        let mut bodies: Vec<&mut Value> = Vec::new();
        if let Some(operation) = operation.as_object_mut() {
            for (key, value) in operation {
                match key.as_str() {
                    "requestBody" => bodies.push(value),
                    "responses" => {
                        bodies.extend(value.as_object_mut().into_iter().flatten().map(|(_, body)| body));
                    }
                    _ => {}
                }
            }
        }
        let contents = bodies.into_iter().filter_map(|body| body.get_mut("content")?.as_object_mut());
        for (media_type, content) in contents.flatten() {
            let Some(content) = content.as_object_mut() else { continue };
            if content.contains_key("example") || content.contains_key("examples") {
                continue;
            }
            let example = match media_type.as_str() {
                "application/yaml" => YAML_EXAMPLE.into(),
                "application/x-haft-skill" => SKILL_EXAMPLE.into(),
                _ => example(content.get("schema").unwrap_or(&Value::Null), &schemas, 0),
            };
            content.insert("example".to_owned(), example);
        }
    });
}

const YAML_EXAMPLE: &str = "name: greet\ndescription: Greets somebody by name\nimplementation:\n  type: script\n  \
                            runtime: bash\n  body: echo \"Hello, $name!\"\ninput_schema:\n  type: object\n  \
                            properties:\n    name: {type: string}\n";

const SKILL_EXAMPLE: &str = "---\nname: greet\ndescription: Greets somebody by name\nruntime: bash\nparameters:\n  \
                             type: object\n  properties:\n    name: {type: string}\n---\necho \"Hello, $name!\"\n";

/// Returns an example of a schema: its own, or one that is made from those of its parts.
fn example(schema: &Value, schemas: &Value, depth: usize) -> Value {
    if depth > MAX_EXAMPLE_DEPTH {
        return Value::Null;
    }
    let inner = |schema: &Value| example(schema, schemas, depth + 1);
    if let Some(own) = own_example(schema) {
        return own;
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(component_name) {
        return schemas.get(name).map_or(Value::Null, inner);
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let fields = parts.iter().map(inner).filter_map(|part| part.as_object().cloned()).flatten();
        return Value::Object(fields.collect());
    }
    for key in ["oneOf", "anyOf"] {
        let choices = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        if let Some(first) = choices.into_iter().find(|choice| choice.get("type") != Some(&json!("null"))) {
            return inner(first);
        }
    }
    let kind = schema.get("type");
    let kind =
        kind.and_then(Value::as_array).and_then(|kinds| kinds.first()).or(kind).and_then(Value::as_str);
    match kind {
        Some("object") => object_example(schema, inner),
        Some("array") => schema.get("items").map_or_else(|| json!([]), |items| json!([inner(items)])),
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            Some("uuid") => "018faf50-b7b6-7a01-9a05-a22a6e0af101".into(),
            Some("date-time") => "2026-01-31T12:00:00Z".into(),
            _ => "text".into(),
        },
        Some("integer") => 1.into(),
        Some("number") => 1.5.into(),
        Some("boolean") => true.into(),
        _ => Value::Null,
    }
}

fn own_example(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|values| values.first());
    schema
        .get("example")
        .or_else(|| first("examples"))
        .or_else(|| schema.get("const"))
        .or_else(|| first("enum"))
        .cloned()
}

/// Returns the required fields, and the optional ones that have an example of their own.
fn object_example(schema: &Value, example: impl Fn(&Value) -> Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let shown = properties.filter(|(name, property)| {
        required.contains(&name.as_str().into()) || property.get("example").is_some()
    });
    shown.map(|(name, property)| (name.clone(), example(property))).collect::<Map<_, _>>().into()
}
