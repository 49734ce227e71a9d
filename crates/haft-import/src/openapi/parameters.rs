//! Parameters of path, query, headers and cookies.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::arguments::ParamLocation;
use super::document::{Document, Operation, Origin};
use super::operation::Draft;
use super::servers::escape_template;
use haft_core::encode::percent_encode;
use haft_core::implementation::{ParamStyle, TextStyle};
use haft_core::problem::excerpt;

/// Headers that are set by other parts of a definition.
const HANDLED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];
/// Headers that the HTTP client sets.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];
/// The maximum number of parameters of one operation.
const MAX_PARAMETERS: usize = 300;

/// A parameter of the document.
struct Parameter<'d> {
    name: &'d str,
    location: ParamLocation,
    map: &'d Map<String, Value>,
}

/// The shape of a parameter's value, which determines how it is serialized.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Scalar,
    List,
    Map,
    Unknown,
}

/// Adds the parameters of an operation to the draft of its tool, and returns the path as a URL template.
///
/// Path parameters come first, so that they keep their names.
pub(super) fn read<'d>(document: &'d Document, operation: &Operation<'d>, draft: &mut Draft<'d>) -> String {
    let parameters = collect(document, operation, draft);
    let path = path(document, operation.path, &parameters, draft);
    for parameter in &parameters {
        match parameter.location {
            ParamLocation::Query => query(document, parameter, draft),
            ParamLocation::Header => header(document, parameter, draft),
            ParamLocation::Cookie => cookie(document, parameter, draft),
            ParamLocation::Path | ParamLocation::Body => {}
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
        out.push_str(&escape_template(before));
        let parameter = parameters.iter().find(|p| p.location == ParamLocation::Path && p.name == name);
        let template = known.entry(name).or_insert_with(|| path_argument(document, parameter, name, draft));
        match parameter.map_or("", |parameter| parameter.text("style")) {
            "label" => out.push('.'),
            "matrix" => {
                out.push(';');
                // The entries of a map are written without their parent key.
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
    out.push_str(&escape_template(rest));
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
        draft.warn(
            "undescribed_parameter",
            format!("path parameter `{{{shown}}}` is not declared; it is assumed to be a string"),
        );
        json!({"type": "string"})
    };
    let template = draft.arguments.add(ParamLocation::Path, name, require_non_empty(schema), true);
    draft.style_text(&template, style);
    template
}

/// Returns how lists and maps are serialized in a path, header or cookie; `None` for scalars.
fn text_style<'d>(
    document: &'d Document,
    parameter: &Parameter<'d>,
    draft: &mut Draft<'d>,
) -> Option<TextStyle> {
    if parameter.schema().1 || parameter.shape(document) == Shape::Scalar {
        return None;
    }
    let style = match (parameter.text("style"), parameter.location, parameter.explodes()) {
        ("label", ParamLocation::Path, true) => TextStyle::Dot,
        ("matrix", ParamLocation::Path, true) => TextStyle::Semicolon,
        ("" | "simple", ParamLocation::Path | ParamLocation::Header, true) => TextStyle::Pairs,
        ("label" | "matrix", ParamLocation::Path, false)
        | ("" | "simple", ParamLocation::Path | ParamLocation::Header, false)
        | ("" | "form" | "cookie", ParamLocation::Cookie, _) => TextStyle::Comma,
        (style, ..) => {
            let message = format!(
                "unsupported style `{}` of `{}` in this location; lists are comma-separated",
                excerpt(style, 40),
                excerpt(parameter.name, 60)
            );
            draft.warn("unsupported_style", message);
            TextStyle::Comma
        }
    };
    Some(style)
}

/// Requires a non-empty value: an empty path parameter would address another operation.
fn require_non_empty(mut schema: Value) -> Value {
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

/// Collects the parameters of the path and of the operation; the latter take precedence.
fn collect<'d>(
    document: &'d Document,
    operation: &Operation<'d>,
    draft: &mut Draft<'d>,
) -> Vec<Parameter<'d>> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    let lists =
        [operation.item, operation.value].map(|holder| holder.get("parameters").and_then(Value::as_array));
    for value in lists.into_iter().flatten().flatten() {
        if found.len() == MAX_PARAMETERS {
            draft.warn(
                "too_many_parameters",
                format!("only the first {MAX_PARAMETERS} parameters are imported"),
            );
            break;
        }
        let map = match document.follow(value) {
            Ok(Value::Object(map)) => map,
            Ok(_) => continue,
            Err(error) => {
                draft.warn(error.code(), format!("a parameter is skipped: {error}"));
                continue;
            }
        };
        let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let location = match text("in") {
            "path" => ParamLocation::Path,
            // `querystring` is a map that is the whole query.
            "query" | "querystring" => ParamLocation::Query,
            "header" => ParamLocation::Header,
            "cookie" => ParamLocation::Cookie,
            // The request body has them.
            "body" | "formData" if document.origin == Origin::Swagger => continue,
            other => {
                let message = format!(
                    "the parameter `{}` is skipped: unknown location `{}`",
                    excerpt(text("name"), 60),
                    excerpt(other, 40)
                );
                draft.warn("invalid_parameter", message);
                continue;
            }
        };
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            draft.warn("invalid_parameter", "a parameter without a name is skipped".to_owned());
            continue;
        }
        found.retain(|known| !(known.location == location && known.name == name));
        found.push(Parameter { name, location, map });
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

    /// Returns the schema, and whether the value is serialized as JSON.
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

    /// Converts the schema, with the annotations of the parameter.
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
        let description = crate::api::text::clean(self.text("description"), 1000);
        if !description.is_empty() {
            map.insert("description".to_owned(), json!(description));
        }
        if let Some(example) =
            self.map.get("example").filter(|example| super::schema::is_small_literal(example))
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
    let template = draft.arguments.add(ParamLocation::Query, parameter.name, schema, parameter.is_required());
    draft.request.query.insert(parameter.name.to_owned(), json!(template));
    if let Some(style) = style {
        draft.request.styles.insert(parameter.name.to_owned(), style);
    }
    if parameter.map.get("allowReserved") == Some(&Value::Bool(true)) {
        draft.request.allow_reserved.push(parameter.name.to_owned());
    }
}

fn style<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) -> Option<ParamStyle> {
    if parameter.text("in") == "querystring" {
        return Some(ParamStyle::Spread);
    }
    if parameter.schema().1 {
        return Some(ParamStyle::Json);
    }
    let shape = parameter.shape(document);
    if shape == Shape::Scalar {
        return None;
    }
    let explode = parameter.map.get("explode").and_then(Value::as_bool);
    match param_encoding(parameter.text("style"), explode, shape == Shape::Map) {
        Some(ParamEncoding::As(style)) => Some(style),
        Some(ParamEncoding::Repeated) => None,
        None => {
            let message = format!(
                "unsupported style `{}` of `{}`; lists are sent as repeated parameters",
                excerpt(parameter.text("style"), 40),
                excerpt(parameter.name, 60)
            );
            draft.warn("unsupported_style", message);
            None
        }
    }
}

/// How lists and maps are serialized in a query or form.
pub(super) enum ParamEncoding {
    /// The parameter is repeated for each item.
    Repeated,
    As(ParamStyle),
}

/// Returns the encoding of an OpenAPI style; `None` if it is not supported in a query or form.
pub(super) fn param_encoding(style: &str, explode: Option<bool>, is_map: bool) -> Option<ParamEncoding> {
    Some(match (style, explode.unwrap_or(matches!(style, "" | "form"))) {
        ("" | "form", true) if is_map => ParamEncoding::As(ParamStyle::Spread),
        ("" | "form" | "spaceDelimited" | "pipeDelimited", true) => ParamEncoding::Repeated,
        ("" | "form", false) => ParamEncoding::As(ParamStyle::Comma),
        ("spaceDelimited", false) => ParamEncoding::As(ParamStyle::Space),
        ("pipeDelimited", false) => ParamEncoding::As(ParamStyle::Pipe),
        ("deepObject", _) => ParamEncoding::As(ParamStyle::DeepObject),
        _ => return None,
    })
}

fn header<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) {
    let lower = parameter.name.to_ascii_lowercase();
    if HANDLED_HEADERS.contains(&lower.as_str()) {
        return;
    }
    let plain = parameter.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !plain || OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
        let message = format!("the header `{}` cannot be set and is skipped", excerpt(parameter.name, 60));
        return draft.warn("invalid_parameter", message);
    }
    if draft.request.headers.keys().any(|name| name.eq_ignore_ascii_case(parameter.name)) {
        return;
    }
    let style = text_style(document, parameter, draft);
    let schema = parameter.converted(draft);
    let template =
        draft.arguments.add(ParamLocation::Header, parameter.name, schema, parameter.is_required());
    draft.style_text(&template, style);
    draft.request.headers.insert(parameter.name.to_owned(), template);
}

fn cookie<'d>(document: &'d Document, parameter: &Parameter<'d>, draft: &mut Draft<'d>) {
    let plain = parameter.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !plain {
        let message = format!("the cookie `{}` cannot be set and is skipped", excerpt(parameter.name, 60));
        return draft.warn("invalid_parameter", message);
    }
    // A `;` in a value would start another cookie.
    let style = text_style(document, parameter, draft);
    let mut schema = parameter.converted(draft);
    if let Value::Object(map) = &mut schema
        && map.get("type").is_some_and(|kind| kind == "string")
    {
        map.entry("pattern").or_insert_with(|| json!("^[^;]*$"));
    }
    let template =
        draft.arguments.add(ParamLocation::Cookie, parameter.name, schema, parameter.is_required());
    draft.style_text(&template, style);
    draft.cookies.push(format!("{}={template}", parameter.name));
}
