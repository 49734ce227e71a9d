//! Parameters of path, query, headers and cookies.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::arguments::Place;
use super::document::{Document, Operation};
use super::operation::Draft;
use super::servers::escaped;
use haft_core::encode::percent_encode;
use haft_core::implementation::{ParamStyle, TextStyle};
use haft_core::problem::excerpt;

/// Headers that other parts of a definition say.
const SAID_ELSEWHERE: [&str; 3] = ["accept", "content-type", "authorization"];
/// Headers that the connection sets.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];
/// The most parameters of one operation.
const MAX_COUNT: usize = 300;

/// One parameter as the document describes it.
struct Parameter<'d> {
    name: &'d str,
    place: Place,
    map: &'d Map<String, Value>,
}

/// What kind of value a parameter takes, as far as that changes how it is spelled.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Scalar,
    List,
    Map,
    Unknown,
}

/// Reads the parameters of an operation into the draft of its tool and returns the path as the end of a URL template.
///
/// Those of the path come first, so that theirs are the names that stay.
pub(super) fn read<'d>(document: &'d Document, operation: &Operation<'d>, draft: &mut Draft<'d>) -> String {
    let parameters = collect(document, operation, draft);
    let path = path(document, operation.path, &parameters, draft);
    for parameter in &parameters {
        match parameter.place {
            Place::Query => query(document, parameter, draft),
            Place::Header => header(document, parameter, draft),
            Place::Cookie => cookie(document, parameter, draft),
            Place::Path | Place::Body => {}
        }
    }
    path
}

fn path<'d>(
    document: &'d Document,
    path: &'d str,
    parameters: &[Parameter<'d>],
    draft: &mut Draft<'d>,
) -> String {
    let mut known: HashMap<&str, String> = HashMap::new();
    let mut out = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(&escaped(before));
        let parameter = parameters.iter().find(|p| p.place == Place::Path && p.name == name);
        let template = known.entry(name).or_insert_with(|| path_argument(document, parameter, name, draft));
        match parameter.map_or("", |parameter| parameter.text("style")) {
            "label" => out.push('.'),
            "matrix" => {
                out.push(';');
                // The entries of a map stand for themselves.
                if !parameter.is_some_and(|p| p.explodes() && p.shape(document) == Shape::Map) {
                    out.push_str(&percent_encode(name));
                    out.push('=');
                }
            }
            _ => {}
        }
        out.push_str(template);
        rest = after;
    }
    out.push_str(&escaped(rest));
    out
}

fn path_argument<'d>(
    document: &'d Document,
    parameter: Option<&Parameter<'d>>,
    name: &str,
    draft: &mut Draft<'d>,
) -> String {
    let mut style = None;
    let schema = if let Some(parameter) = parameter {
        style = text_style(document, parameter, draft);
        parameter.converted(draft)
    } else {
        let shown = excerpt(name, 60);
        draft.doubt(
            "undescribed_parameter",
            format!("`{{{shown}}}` of the path is not described; it is taken as a text"),
        );
        json!({"type": "string"})
    };
    let template = draft.arguments.add(Place::Path, name, not_empty(schema), true);
    draft.style_text(&template, style);
    template
}

/// Returns how lists and maps are spelled in a path, a header or a cookie; `None` for what is written as it is.
fn text_style<'d>(
    document: &'d Document,
    parameter: &Parameter<'d>,
    draft: &mut Draft<'d>,
) -> Option<TextStyle> {
    if parameter.schema().1 || parameter.shape(document) == Shape::Scalar {
        return None;
    }
    let style = match (parameter.text("style"), parameter.place, parameter.explodes()) {
        ("label", Place::Path, true) => TextStyle::Dot,
        ("matrix", Place::Path, true) => TextStyle::Semicolon,
        ("label" | "matrix", Place::Path, false) => TextStyle::Comma,
        ("" | "simple", Place::Path | Place::Header, true) => TextStyle::Pairs,
        ("" | "simple", Place::Path | Place::Header, false) | ("" | "form", Place::Cookie, _) => {
            TextStyle::Comma
        }
        (odd, ..) => {
            let message = format!(
                "the style `{}` of `{}` is not known in its place; lists are separated by commas",
                excerpt(odd, 40),
                excerpt(parameter.name, 60)
            );
            draft.doubt("unsupported_style", message);
            TextStyle::Comma
        }
    };
    Some(style)
}

/// An empty path parameter would lead to another operation.
fn not_empty(mut schema: Value) -> Value {
    let Value::Object(map) = &mut schema else { return schema };
    let least = match map.get("type").and_then(Value::as_str) {
        Some("string") => "minLength",
        Some("array") => "minItems",
        Some("object") => "minProperties",
        _ => return schema,
    };
    if !["enum", "const", "format", least].iter().any(|key| map.contains_key(*key)) {
        map.insert(least.to_owned(), json!(1));
    }
    schema
}

/// Joins the parameters of the path with those of the operation, which win.
fn collect<'d>(
    document: &'d Document,
    operation: &Operation<'d>,
    draft: &mut Draft<'d>,
) -> Vec<Parameter<'d>> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    let lists =
        [operation.item, operation.value].map(|holder| holder.get("parameters").and_then(Value::as_array));
    for value in lists.into_iter().flatten().flatten() {
        if found.len() == MAX_COUNT {
            draft.doubt("too_many_parameters", format!("only the first {MAX_COUNT} parameters are taken"));
            break;
        }
        let map = match document.follow(value) {
            Ok(Value::Object(map)) => map,
            Ok(_) => continue,
            Err(error) => {
                draft.doubt(error.code(), format!("a parameter is left out: {error}"));
                continue;
            }
        };
        let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let place = match text("in") {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            "cookie" => Place::Cookie,
            other => {
                let message = format!(
                    "the parameter `{}` is left out: its place is `{}`",
                    excerpt(text("name"), 60),
                    excerpt(other, 40)
                );
                draft.doubt("invalid_parameter", message);
                continue;
            }
        };
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            draft.doubt("invalid_parameter", "a parameter without a name is left out".to_owned());
            continue;
        }
        found.retain(|known| !(known.place == place && known.name == name));
        found.push(Parameter { name, place, map });
    }
    found
}

impl<'d> Parameter<'d> {
    fn text(&self, key: &str) -> &'d str {
        self.map.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_required(&self) -> bool {
        self.map.get("required") == Some(&Value::Bool(true))
    }

    fn explodes(&self) -> bool {
        self.map.get("explode") == Some(&Value::Bool(true))
    }

    /// Returns the schema, and whether the value is spelled as JSON.
    fn schema(&self) -> (Option<&'d Value>, bool) {
        if let Some(schema) = self.map.get("schema") {
            return (Some(schema), false);
        }
        let content =
            self.map.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        content.map_or((None, false), |(media, value)| (value.get("schema"), media.contains("json")))
    }

    fn shape(&self, document: &Document) -> Shape {
        let schema = self.schema().0.and_then(|schema| document.follow(schema).ok());
        let kind = schema.and_then(|schema| schema.get("type"));
        match kind.and_then(Value::as_str) {
            Some("array") => Shape::List,
            Some("object") => Shape::Map,
            Some(_) => Shape::Scalar,
            None if schema.is_some_and(|schema| schema.get("properties").is_some()) => Shape::Map,
            None => Shape::Unknown,
        }
    }

    /// Converts the schema, with the words of the parameter.
    fn converted(&self, draft: &mut Draft<'d>) -> Value {
        let field = format!("parameters.{}", excerpt(self.name, 60));
        let schema =
            self.schema().0.map_or_else(|| json!({}), |schema| draft.converter.convert(schema, &field));
        let mut map = match schema {
            Value::Object(map) if map.contains_key("$ref") => {
                Map::from_iter([("allOf".to_owned(), json!([map]))])
            }
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let description = super::text::clean(self.text("description"), 1000);
        if !description.is_empty() {
            map.insert("description".to_owned(), json!(description));
        }
        if let Some(example) = self.map.get("example").filter(|example| super::data::is_quotable(example))
            && !map.contains_key("examples")
        {
            map.insert("examples".to_owned(), json!([example]));
        }
        if self.map.get("deprecated") == Some(&Value::Bool(true)) {
            map.insert("deprecated".to_owned(), json!(true));
        }
        Value::Object(map)
    }
}

fn query<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) {
    let style = style(document, parameter, draft);
    let schema = parameter.converted(draft);
    let template = draft.arguments.add(Place::Query, parameter.name, schema, parameter.is_required());
    draft.request.query.insert(parameter.name.to_owned(), json!(template));
    if let Some(style) = style {
        draft.request.styles.insert(parameter.name.to_owned(), style);
    }
    if parameter.map.get("allowReserved") == Some(&Value::Bool(true)) {
        draft.request.allow_reserved.push(parameter.name.to_owned());
    }
}

fn style<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) -> Option<ParamStyle> {
    if parameter.schema().1 {
        return Some(ParamStyle::Json);
    }
    let shape = parameter.shape(document);
    if shape == Shape::Scalar {
        return None;
    }
    let explode = parameter.map.get("explode").and_then(Value::as_bool);
    match of_style(parameter.text("style"), explode, shape == Shape::Map) {
        Some(Spelling::As(style)) => Some(style),
        Some(Spelling::Repeated) => None,
        None => {
            let message = format!(
                "the style `{}` of `{}` is not known; lists are repeated",
                excerpt(parameter.text("style"), 40),
                excerpt(parameter.name, 60)
            );
            draft.doubt("unsupported_style", message);
            None
        }
    }
}

/// How lists and maps are spelled.
pub(super) enum Spelling {
    /// Once per item.
    Repeated,
    As(ParamStyle),
}

/// Returns how a style of OpenAPI is spelled; `None` for one that is not known in a query or a form.
pub(super) fn of_style(style: &str, explode: Option<bool>, is_map: bool) -> Option<Spelling> {
    Some(match (style, explode.unwrap_or(matches!(style, "" | "form"))) {
        ("" | "form", true) if is_map => Spelling::As(ParamStyle::Spread),
        ("" | "form" | "spaceDelimited" | "pipeDelimited", true) => Spelling::Repeated,
        ("" | "form", false) => Spelling::As(ParamStyle::Comma),
        ("spaceDelimited", false) => Spelling::As(ParamStyle::Space),
        ("pipeDelimited", false) => Spelling::As(ParamStyle::Pipe),
        ("deepObject", _) => Spelling::As(ParamStyle::DeepObject),
        _ => return None,
    })
}

fn header<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) {
    let lower = parameter.name.to_ascii_lowercase();
    if SAID_ELSEWHERE.contains(&lower.as_str()) {
        return;
    }
    let plain = parameter.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !plain || OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
        let message = format!("the header `{}` cannot be set and is left out", excerpt(parameter.name, 60));
        return draft.doubt("invalid_parameter", message);
    }
    if draft.request.headers.keys().any(|name| name.eq_ignore_ascii_case(parameter.name)) {
        return;
    }
    let style = text_style(document, parameter, draft);
    let schema = parameter.converted(draft);
    let template = draft.arguments.add(Place::Header, parameter.name, schema, parameter.is_required());
    draft.style_text(&template, style);
    draft.request.headers.insert(parameter.name.to_owned(), template);
}

fn cookie<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) {
    let plain = parameter.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !plain {
        let message = format!("the cookie `{}` cannot be set and is left out", excerpt(parameter.name, 60));
        return draft.doubt("invalid_parameter", message);
    }
    // A `;` in a value would begin another cookie.
    let style = text_style(document, parameter, draft);
    let mut schema = parameter.converted(draft);
    if let Value::Object(map) = &mut schema
        && map.get("type").is_some_and(|kind| kind == "string")
    {
        map.entry("pattern").or_insert_with(|| json!("^[^;]*$"));
    }
    let template = draft.arguments.add(Place::Cookie, parameter.name, schema, parameter.is_required());
    draft.style_text(&template, style);
    draft.cookies.push(format!("{}={template}", parameter.name));
}
