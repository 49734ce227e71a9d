//! Converts a Swagger 2.0 document, in place, to what the importer reads of OpenAPI 3.0.
//!
//! Nothing is moved: definitions, parameters and responses stay where they are, so that every reference keeps its target,
//! and new parts refer to them. The document grows by a bounded amount for each parameter and media type.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::document::target;
use crate::api::text::clean;

/// The methods of Swagger 2.0.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// The keywords of a parameter that describe its value.
const SCHEMA_KEYS: [&str; 18] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "x-nullable",
    "example",
];
/// The maximum number of media types of an operation.
const MAX_MEDIA: usize = 20;
/// The maximum number of parameters of an operation.
const MAX_PARAMETERS: usize = 300;
/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 8;
/// The maximum size of a copied description.
const MAX_DESCRIPTION: usize = 1000;

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
const JSON: &str = "application/json";

/// Converts a document. `is_fetched` says that its URL is known, which completes a document without scheme or host.
pub(super) fn convert(root: &mut Value, is_fetched: bool) {
    let bodies = bodies(root);
    let produces = media_types(root.get("produces"));
    let servers = servers(root, is_fetched);
    let schemes = security_schemes(root);
    let Value::Object(map) = root else { return };
    map.insert("components".to_owned(), json!({"securitySchemes": schemes}));
    map.insert("servers".to_owned(), servers);
    for parameter in entries(map.get_mut("parameters")) {
        self::parameter(parameter.1);
    }
    for (name, response) in entries(map.get_mut("responses")) {
        self::response(response, &produces, &format!("#/responses/{}", escape(name)));
    }
    for (path, item) in entries(map.get_mut("paths")) {
        let item_pointer = format!("#/paths/{}", escape(path));
        let Value::Object(item) = item else { continue };
        list(item.get_mut("parameters")).for_each(parameter);
        for method in METHODS {
            let Some(Value::Object(operation)) = item.get_mut(method) else { continue };
            let pointer = format!("{item_pointer}/{method}");
            list(operation.get_mut("parameters")).for_each(parameter);
            if let Some(body) = bodies.get(&pointer) {
                operation.insert("requestBody".to_owned(), body.clone());
            }
            let own = media_types(operation.get("produces"));
            let produces = if own.is_empty() { &produces } else { &own };
            for (code, response) in entries(operation.get_mut("responses")) {
                let pointer = format!("{pointer}/responses/{}", escape(code));
                self::response(response, produces, &pointer);
            }
        }
    }
}

fn entries(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value.and_then(Value::as_object_mut).into_iter().flatten()
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Escapes a key for a JSON pointer in a reference.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1").replace('%', "%25")
}

fn media_types(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
        .filter(|media| media.len() <= 120)
        .take(MAX_MEDIA)
        .map(str::to_owned)
        .collect()
}

/// Moves the description of a parameter's value into a schema, and converts its `collectionFormat`.
fn parameter(parameter: &mut Value) {
    let Value::Object(map) = parameter else { return };
    let location = map.get("in").and_then(Value::as_str).unwrap_or_default().to_owned();
    if map.contains_key("$ref") || map.contains_key("schema") || location == "body" {
        return;
    }
    let mut schema = Map::new();
    for key in SCHEMA_KEYS {
        if let Some(value) = map.shift_remove(key) {
            schema.insert(key.to_owned(), value);
        }
    }
    if schema.get("type").is_some_and(|kind| kind == "file") {
        schema = binary();
    }
    if schema.get("type").is_some_and(|kind| kind == "array") {
        let format = map.get("collectionFormat").and_then(Value::as_str).unwrap_or("csv").to_owned();
        if let Some((style, explode)) = style(&location, &format) {
            map.insert("style".to_owned(), json!(style));
            map.insert("explode".to_owned(), json!(explode));
        }
    }
    // The fields of a form become properties, which have their own descriptions.
    if location == "formData"
        && let Some(description) = map.get("description")
    {
        schema.insert("description".to_owned(), description.clone());
    }
    map.insert("schema".to_owned(), Value::Object(schema));
}

/// Returns the style of a list and whether its items are repeated; `None` for the default of the location.
fn style<'f>(location: &str, format: &'f str) -> Option<(&'f str, bool)> {
    let in_query = matches!(location, "query" | "formData");
    match format {
        "csv" if in_query => Some(("form", false)),
        "multi" if in_query => Some(("form", true)),
        "csv" | "multi" => None,
        "ssv" if in_query => Some(("spaceDelimited", false)),
        "pipes" if in_query => Some(("pipeDelimited", false)),
        // The importer reports it.
        other => Some((other, false)),
    }
}

fn binary() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("string")), ("format".to_owned(), json!("binary"))])
}

/// Adds the content of a response, which refers to the schema.
fn response(response: &mut Value, produces: &[String], pointer: &str) {
    let Value::Object(map) = response else { return };
    let Some(schema) = map.get_mut("schema") else { return };
    if schema.get("type").is_some_and(|kind| kind == "file") {
        *schema = Value::Object(binary());
    }
    let value = json!({"schema": {"$ref": format!("{pointer}/schema")}});
    let media: Vec<&str> =
        if produces.is_empty() { vec![JSON] } else { produces.iter().map(String::as_str).collect() };
    let content: Map<String, Value> =
        media.into_iter().map(|media| (media.to_owned(), value.clone())).collect();
    map.insert("content".to_owned(), Value::Object(content));
}

/// A parameter in the body of a request, and where it is.
struct BodyParameter<'r> {
    map: &'r Map<String, Value>,
    pointer: String,
}

impl BodyParameter<'_> {
    fn text(&self, key: &str) -> &str {
        self.map.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_required(&self) -> bool {
        self.map.get("required") == Some(&Value::Bool(true))
    }

    fn schema(&self) -> Value {
        json!({"$ref": format!("{}/schema", self.pointer)})
    }
}

/// Returns the request bodies by the pointers of their operations.
fn bodies(root: &Value) -> HashMap<String, Value> {
    let mut bodies = HashMap::new();
    let consumes = media_types(root.get("consumes"));
    for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
        let item_pointer = format!("#/paths/{}", escape(path));
        for method in METHODS {
            let Some(operation) = item.get(method).filter(|operation| operation.is_object()) else {
                continue;
            };
            let pointer = format!("{item_pointer}/{method}");
            let own = media_types(operation.get("consumes"));
            let consumes = if own.is_empty() { &consumes } else { &own };
            let lists = [(item, item_pointer.as_str()), (operation, pointer.as_str())];
            if let Some(body) = body(root, lists, consumes) {
                bodies.insert(pointer, body);
            }
        }
    }
    bodies
}

fn body(root: &Value, lists: [(&Value, &str); 2], consumes: &[String]) -> Option<Value> {
    let mut found: Vec<BodyParameter<'_>> = Vec::new();
    for (holder, pointer) in lists {
        let list = holder.get("parameters").and_then(Value::as_array).into_iter().flatten();
        for (index, value) in list.enumerate().take(MAX_PARAMETERS) {
            let Some(parameter) = resolve(root, value, format!("{pointer}/parameters/{index}")) else {
                continue;
            };
            if !matches!(parameter.text("in"), "body" | "formData") {
                continue;
            }
            // A parameter of the operation replaces that of the path.
            let same = |known: &BodyParameter<'_>| {
                known.text("in") == parameter.text("in") && known.text("name") == parameter.text("name")
            };
            found.retain(|known| !same(known));
            found.push(parameter);
        }
    }
    match found.iter().find(|parameter| parameter.text("in") == "body") {
        Some(body) => Some(whole(body, consumes)),
        None if found.is_empty() => None,
        None => Some(form(&found, consumes)),
    }
}

fn resolve<'r>(root: &'r Value, value: &'r Value, pointer: String) -> Option<BodyParameter<'r>> {
    let (mut value, mut pointer) = (value, pointer);
    for _ in 0..MAX_CHAIN {
        let Some(reference) = target(value) else {
            return Some(BodyParameter { map: value.as_object()?, pointer });
        };
        let decoded =
            percent_encoding::percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        value = root.pointer(&decoded)?;
        reference.clone_into(&mut pointer);
    }
    None
}

fn whole(body: &BodyParameter<'_>, consumes: &[String]) -> Value {
    let value = json!({"schema": body.schema()});
    let media: Vec<&str> =
        if consumes.is_empty() { vec![JSON] } else { consumes.iter().map(String::as_str).collect() };
    let content: Map<String, Value> =
        media.into_iter().map(|media| (media.to_owned(), value.clone())).collect();
    let mut out = Map::from_iter([("content".to_owned(), Value::Object(content))]);
    if body.is_required() {
        out.insert("required".to_owned(), json!(true));
    }
    let description = clean(body.text("description"), MAX_DESCRIPTION);
    if !description.is_empty() {
        out.insert("description".to_owned(), json!(description));
    }
    Value::Object(out)
}

fn form(fields: &[BodyParameter<'_>], consumes: &[String]) -> Value {
    let has_file = fields.iter().any(|field| field.text("type") == "file");
    let declares = |media: &str| consumes.iter().any(|known| known.starts_with(media));
    let media = if has_file || (declares(MULTIPART) && !declares(FORM)) { MULTIPART } else { FORM };
    let (mut properties, mut required, mut encoding) = (Map::new(), Vec::new(), Map::new());
    for field in fields {
        let name = field.text("name");
        properties.insert(name.to_owned(), field.schema());
        if field.is_required() {
            required.push(json!(name));
        }
        if field.text("type") == "array" {
            let format = field.map.get("collectionFormat").and_then(Value::as_str).unwrap_or("csv");
            if let Some((style, explode)) = style("formData", format) {
                encoding.insert(name.to_owned(), json!({"style": style, "explode": explode}));
            }
        }
    }
    let is_required = !required.is_empty();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let content = json!({media: {"schema": schema, "encoding": encoding}});
    let mut out = Map::from_iter([("content".to_owned(), content)]);
    if is_required {
        out.insert("required".to_owned(), json!(true));
    }
    Value::Object(out)
}

/// Returns the servers: each supported scheme with the host and the base path; `https` first.
fn servers(root: &Value, is_fetched: bool) -> Value {
    let text = |key: &str| root.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let (host, base) = (text("host"), text("basePath"));
    let base = if base.is_empty() || base.starts_with('/') { base.to_owned() } else { format!("/{base}") };
    let base = if base.is_empty() { "/".to_owned() } else { base };
    if host.is_empty() {
        return json!([{"url": base}]);
    }
    let schemes: Vec<&str> = root
        .get("schemes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let scheme = ["https", "http"].into_iter().find(|known| schemes.contains(known));
    match scheme {
        Some(scheme) => json!([{"url": format!("{scheme}://{host}{base}")}]),
        // That of the document.
        None if is_fetched && schemes.is_empty() => json!([{"url": format!("//{host}{base}")}]),
        None => json!([{"url": format!("https://{host}{base}")}]),
    }
}

fn security_schemes(root: &Value) -> Map<String, Value> {
    let definitions = root.get("securityDefinitions").and_then(Value::as_object);
    let schemes = definitions.into_iter().flatten().map(|(name, definition)| {
        let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
        let scheme = match (text("type"), text("flow")) {
            ("basic", _) => json!({"type": "http", "scheme": "basic"}),
            ("oauth2", "application") => {
                json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": text("tokenUrl")}}})
            }
            ("oauth2", _) => json!({"type": "oauth2", "flows": {}}),
            _ => definition.clone(),
        };
        (name.clone(), scheme)
    });
    schemes.collect()
}
