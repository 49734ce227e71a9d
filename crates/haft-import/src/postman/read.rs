//! Reads a collection.

use std::collections::BTreeMap;

use haft_core::problem::Problem;
use haft_definition::dialect::{Bounds, read_foreign};
use serde_json::Value;

use crate::api::{ApiImport, ImportOptions};
use crate::requests::{self, Collection, Field, SavedAuth, SavedBody, SavedRequest, Variable};

/// The maximum nesting of folders.
const MAX_DEPTH: usize = 20;
/// The maximum number of requests that are read; the filters select from them.
const MAX_REQUESTS: usize = 20_000;
/// The maximum number of fields of one request, of each kind.
const MAX_FIELDS: usize = 300;

/// Imports a Postman collection: each request becomes a tool. Scripts are not run.
///
/// ```
/// use haft_import::{api::ImportOptions, postman::read};
///
/// let text = r#"{"info": {"name": "Pets", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
///     "item": [{"name": "Find a pet", "request": {"method": "GET", "url": "https://pets.example/pets/:id"}}]}"#;
/// let import = read(text, &ImportOptions::default()).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "Find-a-pet");
/// ```
pub fn read(text: &str, options: &ImportOptions) -> Result<ApiImport, Problem> {
    options.limits.check_size(text.len())?;
    let bounds = Bounds { nodes: 2_000_000, bytes: options.limits.bytes.saturating_mul(2) };
    let root = read_foreign(text, bounds)?;
    let root = root.get("collection").filter(|inner| inner.get("item").is_some()).unwrap_or(&root);
    let Some(items) = root.get("item").and_then(Value::as_array) else {
        let message = "not a Postman collection: missing `item`; export it as Collection v2.1";
        return Err(Problem::new("item", "not_postman", message));
    };
    let mut reader = Reader { collection: Collection::default() };
    reader.collection.title = text_of(root.pointer("/info/name"));
    reader.collection.version = text_of(root.pointer("/info/version"));
    reader.collection.variables = variables(root.get("variable"));
    reader.collection.scripts = usize::from(has_script(root));
    reader.items(items, &Scope { folders: Vec::new(), auth: auth(root.get("auth")) })?;
    requests::import(&reader.collection, options)
}

/// What the requests of a folder inherit.
struct Scope {
    folders: Vec<String>,
    auth: Option<SavedAuth>,
}

struct Reader {
    collection: Collection,
}

impl Reader {
    fn items(&mut self, items: &[Value], scope: &Scope) -> Result<(), Problem> {
        for item in items {
            let name = text_of(item.get("name"));
            let own = auth(item.get("auth")).or_else(|| scope.auth.clone());
            if let Some(inner) = item.get("item").and_then(Value::as_array) {
                if scope.folders.len() >= MAX_DEPTH {
                    let message = format!("folders are nested deeper than {MAX_DEPTH}");
                    return Err(Problem::new("item", "too_deep", message));
                }
                self.collection.scripts += usize::from(has_script(item));
                let mut folders = scope.folders.clone();
                folders.push(name);
                // A variable of a folder is known to all of its requests; the outermost wins, as names rarely repeat.
                for (name, variable) in variables(item.get("variable")) {
                    self.collection.variables.entry(name).or_insert(variable);
                }
                self.items(inner, &Scope { folders, auth: own })?;
            } else if let Some(request) = item.get("request") {
                if self.collection.requests.len() >= MAX_REQUESTS {
                    let message = format!("the collection has more than {MAX_REQUESTS} requests");
                    return Err(Problem::new("item", "too_large", message));
                }
                let inherited = Scope { folders: scope.folders.clone(), auth: own };
                let mut request = self::request(request, inherited);
                request.name = name;
                request.has_script = has_script(item);
                self.collection.requests.push(request);
            }
        }
        Ok(())
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Object(map)) => text_of(map.get("content").filter(|content| content.is_string())),
        _ => String::new(),
    }
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

/// Returns whether an item has a script that does something.
fn has_script(item: &Value) -> bool {
    let events = item.get("event").and_then(Value::as_array).into_iter().flatten();
    let has_line = |lines: &Value| match lines {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(lines) => {
            lines.iter().any(|line| line.as_str().is_some_and(|line| !line.trim().is_empty()))
        }
        _ => false,
    };
    events.filter_map(|event| event.pointer("/script/exec")).any(has_line)
}

fn variables(list: Option<&Value>) -> BTreeMap<String, Variable> {
    let list = list.and_then(Value::as_array).into_iter().flatten().take(10_000);
    let named = list.filter(|variable| !is_true(variable, "disabled")).filter_map(|variable| {
        let name = text_of(variable.get("key").or_else(|| variable.get("id")));
        let is_secret = variable.get("type").is_some_and(|kind| kind == "secret");
        let value = text_of(variable.get("value"));
        let value = Some(value).filter(|value| !value.is_empty());
        (!name.is_empty()).then_some((name, Variable { value, is_secret }))
    });
    named.collect()
}

fn fields(list: Option<&Value>) -> Vec<Field> {
    let list = list.and_then(Value::as_array).into_iter().flatten().take(MAX_FIELDS);
    let fields = list.map(|field| Field {
        name: text_of(field.get("key").or_else(|| field.get("id"))),
        value: text_of(field.get("value")),
        description: text_of(field.get("description")),
        is_disabled: is_true(field, "disabled"),
        is_file: field.get("type").is_some_and(|kind| kind == "file"),
    });
    fields.filter(|field| !field.name.is_empty()).collect()
}

fn request(request: &Value, scope: Scope) -> SavedRequest {
    let own = auth(request.get("auth")).or(scope.auth).unwrap_or_default();
    // A request may be only a URL.
    let url = if request.is_string() { Some(request) } else { request.get("url") };
    let method = text_of(request.get("method"));
    let mut saved = SavedRequest {
        folders: scope.folders,
        description: text_of(request.get("description")),
        method: if method.is_empty() { "GET".to_owned() } else { method },
        url: url.map(address).unwrap_or_default(),
        query: fields(url.and_then(|url| url.get("query"))),
        path: fields(url.and_then(|url| url.get("variable"))),
        headers: headers(request.get("header")),
        auth: own,
        ..SavedRequest::default()
    };
    saved.body = body(request.get("body"), &mut saved.warnings);
    saved
}

/// Returns the address of a URL, which may be in parts.
fn address(url: &Value) -> String {
    let raw = match url {
        Value::String(text) => text.clone(),
        url => text_of(url.get("raw")),
    };
    if !raw.is_empty() {
        return raw;
    }
    let joined = |key: &str, separator: &str| match url.get(key) {
        Some(Value::Array(parts)) => {
            parts.iter().map(|part| text_of(Some(part))).collect::<Vec<_>>().join(separator)
        }
        other => text_of(other),
    };
    let (protocol, port) = (text_of(url.get("protocol")), text_of(url.get("port")));
    let mut out = joined("host", ".");
    if !protocol.is_empty() {
        out = format!("{protocol}://{out}");
    }
    if !port.is_empty() {
        out = format!("{out}:{port}");
    }
    let path = joined("path", "/");
    if path.is_empty() { out } else { format!("{out}/{}", path.trim_start_matches('/')) }
}

fn headers(value: Option<&Value>) -> Vec<Field> {
    let Some(Value::String(text)) = value else { return fields(value) };
    let pairs = text.lines().filter_map(|line| line.split_once(':')).take(MAX_FIELDS);
    pairs
        .map(|(name, value)| Field {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            ..Field::default()
        })
        .collect()
}

/// Returns the authentication; `None` if it is inherited.
fn auth(value: Option<&Value>) -> Option<SavedAuth> {
    let value = value?;
    let kind = value.get("type").and_then(Value::as_str)?;
    let settings = value.get(kind);
    // Format 2.0 has an object, 2.1 a list.
    let get = |key: &str| match settings {
        Some(Value::Array(list)) => {
            let entry = list.iter().find(|entry| entry.get("key").is_some_and(|name| name == key));
            text_of(entry.and_then(|entry| entry.get("value")))
        }
        Some(settings) => text_of(settings.get(key)),
        None => String::new(),
    };
    Some(match kind {
        "noauth" => SavedAuth::Nothing,
        "bearer" => SavedAuth::Bearer(get("token")),
        "basic" => SavedAuth::Basic { username: get("username"), password: get("password") },
        "apikey" => {
            SavedAuth::ApiKey { name: get("key"), value: get("value"), in_query: get("in") == "query" }
        }
        "oauth2" if get("grant_type") == "client_credentials" => SavedAuth::ClientCredentials {
            token_url: get("accessTokenUrl"),
            client_id: get("clientId"),
            client_secret: get("clientSecret"),
            scope: get("scope"),
        },
        "oauth2" => SavedAuth::Token,
        other => SavedAuth::Unsupported(other.to_owned()),
    })
}

fn body(value: Option<&Value>, warnings: &mut Vec<(&'static str, String)>) -> SavedBody {
    let Some(value) = value.filter(|value| !is_true(value, "disabled")) else { return SavedBody::Nothing };
    match value.get("mode").and_then(Value::as_str).unwrap_or_default() {
        "raw" => {
            let media = match value.pointer("/options/raw/language").and_then(Value::as_str) {
                Some("json") => Some("application/json"),
                Some("xml") => Some("application/xml"),
                Some("html") => Some("text/html"),
                Some("text" | "javascript") => Some("text/plain; charset=utf-8"),
                _ => None,
            };
            SavedBody::Text(text_of(value.get("raw")), media)
        }
        "urlencoded" => SavedBody::Form(fields(value.get("urlencoded"))),
        "formdata" => SavedBody::Multipart(fields(value.get("formdata"))),
        "graphql" => {
            let variables = match value.pointer("/graphql/variables") {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            SavedBody::Graphql { query: text_of(value.pointer("/graphql/query")), variables }
        }
        "file" => SavedBody::File,
        "" => SavedBody::Nothing,
        other => {
            let mode = haft_core::problem::excerpt(other, 40);
            warnings.push((
                "unsupported_body",
                format!("the request body is omitted: the mode `{mode}` is not supported"),
            ));
            SavedBody::Nothing
        }
    }
}
