//! Writes the definition of a tool for a request.

use std::collections::{BTreeMap, HashSet};

use haft_core::name::ToolName;
use haft_core::problem::{Problem, excerpt};
use haft_core::redact::{is_sensitive, is_sensitive_parameter};
use haft_definition::dialect::{Defaults, ParsedDefinition, read_value};
use serde_json::{Map, Value, json};
use url::Url;

use super::command::{self, Command, Data};
use super::{CurlError, MAX_BYTES};
use crate::api::names::{argument_name, secret_name};

/// The largest number of arguments; further fields stay constant.
const MAX_ARGUMENTS: usize = 100;
/// Headers that the HTTP client sets itself.
const OWN_HEADERS: [&str; 4] = ["content-length", "host", "accept-encoding", "connection"];
/// The name of an argument that is the whole body.
const BODY: &str = "body";

/// The definition of a tool, as a document in the canonical dialect.
#[derive(Debug, Clone, PartialEq)]
pub struct CurlTool {
    /// The definition.
    pub definition: Value,
    /// What was changed or left out.
    pub warnings: Vec<Problem>,
}

impl CurlTool {
    /// Reads the definition.
    pub fn parse(&self) -> Result<ParsedDefinition, Vec<Problem>> {
        let mut parsed = read_value(self.definition.clone(), &Defaults::default())?;
        parsed.warnings.extend(self.warnings.iter().cloned());
        Ok(parsed)
    }
}

/// Reads a curl command. The name is derived from the URL if none is given.
///
/// ```
/// let tool = haft_import::curl::read("curl 'https://api.example.com/users?page=2'", None)?;
/// assert_eq!(tool.definition["name"], "example_users");
/// assert_eq!(tool.definition["input_schema"]["properties"]["page"]["type"], "integer");
/// # Ok::<_, haft_import::curl::CurlError>(())
/// ```
pub fn read(text: &str, name: Option<&str>) -> Result<CurlTool, CurlError> {
    if text.len() > MAX_BYTES {
        return Err(CurlError::TooLong);
    }
    let mut command = command::parse(text)?;
    let url = RequestUrl::parse(&command.url.take().ok_or(CurlError::NoUrl)?)?;
    let mut draft = Draft::new(&url);
    for text in std::mem::take(&mut command.ignored) {
        draft.warn("", "ignored_option", text);
    }
    draft.request(command, &url, name)
}

/// A URL in parts; its path may contain references to secrets.
struct RequestUrl {
    /// Everything before the query.
    base: String,
    query: String,
    /// `user:password`, if the URL has them.
    user: Option<String>,
    host: String,
    path: String,
}

impl RequestUrl {
    fn parse(text: &str) -> Result<Self, CurlError> {
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let invalid = |reason: String| CurlError::Url { url: excerpt(&text, 100), reason };
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(invalid("expected `http://` or `https://`".to_owned()));
        }
        let without_fragment = text.split('#').next().unwrap_or(&text);
        let (base, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
        // References are no syntax of a URL.
        let plain = base.replace("${", "x").replace('}', "x");
        let parsed = Url::parse(&plain).map_err(|error| invalid(error.to_string()))?;
        let host = parsed.host_str().unwrap_or_default().to_owned();
        let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
        let authority = rest.split('/').next().unwrap_or(rest);
        let (user, base) = match authority.rsplit_once('@') {
            Some((user, host)) => {
                let path = rest.get(authority.len()..).unwrap_or_default();
                (Some(user.to_owned()), format!("{scheme}://{host}{path}"))
            }
            None => (None, base.to_owned()),
        };
        Ok(Self { base, query: query.to_owned(), user, host, path: parsed.path().to_owned() })
    }

    /// Returns the word of the host that people know it by, such as `github` of `api.github.com`.
    fn label(&self) -> String {
        let is_address = self.host.parse::<std::net::IpAddr>().is_ok() || self.host.starts_with('[');
        let labels: Vec<&str> = self.host.split('.').collect();
        let word = match labels.as_slice() {
            _ if is_address => "local",
            [.., second, _] => second,
            [only] => only,
            [] => "local",
        };
        let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        if word.is_empty() { "local".to_owned() } else { word.to_ascii_lowercase() }
    }

    /// Returns a name for the tool, from the host and the last word of the path.
    fn tool_name(&self) -> String {
        let is_word = |part: &&str| part.chars().any(|c| c.is_ascii_alphabetic()) && part.len() <= 40;
        // Without `.json` and the like.
        let stem = |part: &'_ str| part.rsplit_once('.').map_or(part, |(stem, _)| stem).to_owned();
        let last = self.path.rsplit('/').map(stem).find(|part| is_word(&part.as_str()));
        let last = argument_name(&last.unwrap_or_default());
        let name = if self.path.len() > 1 && last != "value" {
            format!("{}_{last}", self.label())
        } else {
            self.label()
        };
        let name: String = name.replace('-', "_").chars().take(60).collect();
        if ToolName::new(&name).is_ok() { name } else { "imported_request".to_owned() }
    }
}

/// A definition in the making.
struct Draft {
    /// The prefix of the names of secrets.
    prefix: String,
    properties: Map<String, Value>,
    names: HashSet<String>,
    warnings: Vec<Problem>,
}

impl Draft {
    fn new(url: &RequestUrl) -> Self {
        Self { prefix: url.label(), properties: Map::new(), names: HashSet::new(), warnings: Vec::new() }
    }

    fn warn(&mut self, field: &str, code: &str, message: String) {
        self.warnings.push(Problem::new(field, code, message));
    }

    fn request(
        mut self,
        command: Command,
        url: &RequestUrl,
        name: Option<&str>,
    ) -> Result<CurlTool, CurlError> {
        let has_body = !command.data.is_empty() && !command.data_in_query;
        let method = command.method.unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned());
        if method.is_empty() || method.len() > 20 || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(CurlError::Method(excerpt(&method, 20)));
        }
        let method = method.to_ascii_uppercase();
        let mut implementation = Map::new();
        implementation.insert("type".to_owned(), json!("http"));
        implementation.insert("method".to_owned(), json!(method));
        implementation.insert("url".to_owned(), json!(url.base));
        let mut query = form_pairs(&url.query);
        let mut body = command.data;
        if command.data_in_query {
            query.extend(std::mem::take(&mut body).into_iter().flat_map(pairs));
        }
        let query = self.pairs(query, "query");
        if !query.is_empty() {
            implementation.insert("query".to_owned(), Value::Object(query));
        }
        let (mut headers, auth) = self.headers(command.headers);
        let auth = auth.or_else(|| command.user.or(url.user.clone()).map(|user| self.basic(&user)));
        if !body.is_empty() {
            let body = self.body(body, &mut headers, command.is_json);
            implementation.insert("body".to_owned(), body);
        }
        if !headers.is_empty() {
            implementation.insert("headers".to_owned(), json!(headers));
        }
        if let Some(auth) = auth {
            implementation.insert("auth".to_owned(), auth);
        }
        if let Some(millis) = command.timeout_ms {
            implementation.insert("timeout_ms".to_owned(), json!(millis));
        }
        let name = name.map_or_else(|| url.tool_name(), str::to_owned);
        let definition = json!({
            "name": name,
            "description": format!("{method} {}{}", url.host, url.path),
            "input_schema": {"type": "object", "properties": self.properties, "additionalProperties": false},
            "implementation": implementation,
        });
        Ok(CurlTool { definition, warnings: self.warnings })
    }

    /// Turns query parameters or form fields into arguments.
    fn pairs(&mut self, pairs: Vec<(String, String)>, location: &str) -> Map<String, Value> {
        let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in pairs {
            match grouped.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => grouped.push((name, vec![value])),
            }
        }
        let mut out = Map::new();
        for (name, values) in grouped {
            let template = match values.as_slice() {
                [value] if has_reference(value) => json!(value),
                [value] if !value.is_empty() && is_sensitive_parameter(&name) => {
                    json!(self.secret(&format!("implementation.{location}.{name}"), &name))
                }
                [value] => self.argument(&name, typed(value)),
                _ => self.argument(&name, values.iter().map(|value| typed(value)).collect()),
            };
            out.insert(name, template);
        }
        out
    }

    /// Adds an argument whose default is the value of the command; returns its template.
    fn argument(&mut self, name: &str, default: Value) -> Value {
        if self.properties.len() >= MAX_ARGUMENTS {
            return default;
        }
        let plain = argument_name(name);
        let mut unique = plain.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{plain}_{number}");
            number += 1;
        }
        let mut schema = schema_of(&default);
        if let (Some(schema), false) = (schema.as_object_mut(), default.is_null()) {
            schema.insert("default".to_owned(), default);
        }
        self.properties.insert(unique.clone(), schema);
        json!(format!("${{{unique}}}"))
    }

    /// Replaces a credential by a reference to a secret.
    fn secret(&mut self, field: &str, name: &str) -> String {
        let secret = secret_name(&[&self.prefix, name]);
        self.names.insert(secret.clone());
        let message = format!(
            "the credential in the command is replaced by `${{{secret}}}`; store it with `haft secret set {secret}`"
        );
        self.warn(field, "replaced_credential", message);
        format!("${{{secret}}}")
    }

    fn headers(&mut self, pairs: Vec<(String, String)>) -> (BTreeMap<String, String>, Option<Value>) {
        let mut headers = BTreeMap::new();
        let mut auth = None;
        for (name, value) in pairs {
            let lower = name.to_ascii_lowercase();
            let field = format!("implementation.headers.{name}");
            if OWN_HEADERS.contains(&lower.as_str()) {
                continue;
            }
            if lower == "authorization" {
                let scheme = value.split_once(' ').map(|(scheme, rest)| (scheme, rest.trim()));
                match scheme {
                    Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                        let known = has_reference(token).then(|| token.to_owned());
                        let token =
                            known.unwrap_or_else(|| self.secret("implementation.auth.token", "token"));
                        auth = Some(json!({"type": "bearer", "token": token}));
                        continue;
                    }
                    Some((scheme, rest)) if !has_reference(rest) => {
                        let secret = self.secret(&field, "authorization");
                        headers.insert(name, format!("{scheme} {secret}"));
                        continue;
                    }
                    _ => {}
                }
            }
            let is_credential = is_sensitive_parameter(&name) && !has_reference(&value);
            let value = if is_credential { self.secret(&field, &lower) } else { value };
            headers.insert(name, value);
        }
        (headers, auth)
    }

    fn basic(&mut self, user: &str) -> Value {
        // With an empty password the user name is the credential, as in `-u sk_test_…:`.
        if let Some((key, "")) = user.split_once(':')
            && !key.is_empty()
        {
            let known = has_reference(key).then(|| key.to_owned());
            let key = known.unwrap_or_else(|| self.secret("implementation.auth.username", "key"));
            return json!({"type": "basic", "username": key, "password": ""});
        }
        let (username, password) = user.split_once(':').unwrap_or((user, ""));
        let known = has_reference(password).then(|| password.to_owned());
        let password = known.unwrap_or_else(|| self.secret("implementation.auth.password", "password"));
        json!({"type": "basic", "username": username, "password": password})
    }

    fn body(&mut self, data: Vec<Data>, headers: &mut BTreeMap<String, String>, is_json: bool) -> Value {
        let is_multipart = data.iter().any(|part| matches!(part, Data::Form(..)));
        if is_multipart {
            headers.retain(|name, _| !name.eq_ignore_ascii_case("content-type"));
            let message = "multipart forms are not supported: the fields are sent as \
                           `application/x-www-form-urlencoded`";
            self.warn("implementation.body", "multipart_form", message.to_owned());
        }
        let declared = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let declared = declared.map(|(_, value)| value.to_ascii_lowercase());
        let is_form = declared.as_deref().is_none_or(|kind| kind.contains("x-www-form-urlencoded"));
        let text = raw_text(&data);
        let parsed = text.as_deref().filter(|text| text.trim_start().starts_with(['{', '[']));
        let parsed = parsed.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let is_json = is_json || declared.as_deref().is_some_and(|kind| kind.contains("json"));
        if let Some(value) = parsed.filter(|_| is_json || declared.is_none()) {
            if declared.is_none() {
                headers.insert("Content-Type".to_owned(), "application/json".to_owned());
                if !is_json {
                    let message =
                        "the data is JSON and is sent as `application/json`; curl would send it as a form";
                    self.warn("implementation.headers", "content_type", message.to_owned());
                }
            }
            return self.json_body(value);
        }
        if is_form || is_multipart {
            let fields = data.into_iter().flat_map(pairs).collect::<Vec<_>>();
            if fields.iter().all(|(name, _)| !name.is_empty()) {
                if declared.is_none() || is_multipart {
                    let form = "application/x-www-form-urlencoded";
                    headers.insert("Content-Type".to_owned(), form.to_owned());
                }
                return Value::Object(self.pairs(fields, "body"));
            }
        }
        self.argument(BODY, Value::String(text.unwrap_or_default()))
    }

    fn json_body(&mut self, value: Value) -> Value {
        let Value::Object(fields) = value else { return self.argument(BODY, value) };
        let mut out = Map::new();
        for (name, value) in fields {
            let template = match &value {
                Value::String(text) if has_reference(text) => value,
                Value::String(text) if !text.is_empty() && is_sensitive(&name) => {
                    json!(self.secret(&format!("implementation.body.{name}"), &name))
                }
                _ => self.argument(&name, value),
            };
            out.insert(name, template);
        }
        Value::Object(out)
    }
}

/// Returns the text that curl would send, unless it is a multipart form.
fn raw_text(data: &[Data]) -> Option<String> {
    let part = |part: &Data| match part {
        Data::Raw(text) => Some(text.clone()),
        Data::Encoded(name, value) => Some(format!("{name}={}", haft_core::encode::percent_encode(value))),
        Data::Form(..) => None,
    };
    Some(data.iter().map(part).collect::<Option<Vec<_>>>()?.join("&"))
}

fn pairs(data: Data) -> Vec<(String, String)> {
    match data {
        Data::Raw(text) => form_pairs(&text),
        Data::Encoded(name, value) | Data::Form(name, value) => vec![(name, value)],
    }
}

fn form_pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns whether a text refers to a secret.
fn has_reference(text: &str) -> bool {
    text.split_once("${").is_some_and(|(_, rest)| rest.contains('}'))
}

/// Returns the value of a text whose type is evident.
fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => number.into(),
            _ => text.into(),
        },
    }
}

fn schema_of(value: &Value) -> Value {
    let kind = match value {
        Value::Null => return json!({}),
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Object(_) => "object",
        Value::Array(items) => {
            let schemas: Vec<Value> = items.iter().map(schema_of).collect();
            let same = schemas.first().filter(|first| schemas.iter().all(|schema| schema == *first));
            return match same {
                Some(item) => json!({"type": "array", "items": item}),
                None => json!({"type": "array"}),
            };
        }
    };
    json!({"type": kind})
}
