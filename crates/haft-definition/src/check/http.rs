//! Checks HTTP requests.

use std::collections::{BTreeMap, HashSet};

use super::{CheckReport, MAX_STEPS};
use haft_core::implementation::{ApiKeyLocation, Auth, ErrorMode, Http, HttpRequest};
use haft_core::schema::Schema;
use haft_core::spec::ToolSpec;
use serde_json::Value;

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"];

/// The headers that the HTTP client sets, besides `proxy-…`.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];

pub(super) const EXPECTED_URL: &str = "expected a URL that starts with `http://` or `https://`";

pub(super) fn check(http: &Http, checked: &mut CheckReport) {
    request(&http.request, "implementation", checked);
    if http.steps.is_empty() && http.request.url.is_empty() {
        checked.error("implementation.url", "missing_field", EXPECTED_URL);
    }
    if http.steps.len() > MAX_STEPS {
        checked.error("implementation.steps", "too_large", format!("the limit is {MAX_STEPS} steps"));
    }
    let mut names = HashSet::new();
    for (index, step) in http.steps.iter().enumerate() {
        let path = format!("implementation.steps[{index}]");
        if step.name.trim().is_empty() {
            checked.error(
                format!("{path}.name"),
                "missing_field",
                "is empty; later steps refer to its value by this name",
            );
        } else if step.name.contains(is_invalid_in_step_name) {
            checked.error(
                format!("{path}.name"),
                "invalid_name",
                "must not contain dots, braces, `$`, `|` or spaces, because later steps refer to it",
            );
        } else if !names.insert(&step.name) {
            checked.error(
                format!("{path}.name"),
                "duplicate_name",
                format!("duplicate step name `{}`", step.name),
            );
        }
        if step.request.url.is_empty() && http.request.url.is_empty() {
            checked.error(format!("{path}.url"), "missing_field", EXPECTED_URL);
        }
        request(&step.request, &path, checked);
    }
    if let Some(auth) = &http.auth {
        self::auth(auth, checked);
    }
    // Steps inherit from the request.
    if http.steps.is_empty() {
        unused(&http.request, checked);
    }
}

/// Rejects an output schema that does not allow `null`, the value of a failed request with `error_mode: empty`.
pub(super) fn empty_value(spec: &ToolSpec, http: &Http, checked: &mut CheckReport) {
    if http.error_mode != ErrorMode::Empty || spec.output_schema.is_empty() {
        return;
    }
    // An invalid schema is reported elsewhere.
    let Ok(schema) = Schema::compile("output_schema", &spec.output_schema.value()) else { return };
    if schema.check(&Value::Null).is_err() {
        checked.error(
            "output_schema",
            "null_not_allowed",
            "must allow `null`, which `error_mode: empty` returns for a failed request: add `\"null\"` to `type`, or set \
             `error_mode: fail`",
        );
    }
}

/// Warns of names in `text_styles` and `allow_reserved` that the request does not use.
fn unused(request: &HttpRequest, checked: &mut CheckReport) {
    for name in request.text_styles.keys() {
        let named = |text: &String| text.contains(name.as_str());
        if !named(&request.url) && !request.headers.values().any(named) {
            let field = format!("implementation.text_styles.{}", haft_core::problem::excerpt(name, 60));
            checked.warn(
                field,
                "without_use",
                "has no effect: neither the URL nor a header uses this argument",
            );
        }
    }
    // The fields of a body that is one template are unknown.
    if request.body.as_ref().is_some_and(|body| !body.is_object()) {
        return;
    }
    for (index, name) in request.files.iter().enumerate() {
        if request.body.as_ref().is_none_or(|body| body.get(name).is_none()) {
            let shown = haft_core::problem::excerpt(name, 60);
            let message = format!("has no effect: the body has no field `{shown}`");
            checked.warn(format!("implementation.files[{index}]"), "without_use", message);
        }
    }
    for (index, name) in request.allow_reserved.iter().enumerate() {
        let is_field = request.body.as_ref().is_some_and(|body| body.get(name).is_some());
        if !request.query.contains_key(name) && !is_field {
            let shown = haft_core::problem::excerpt(name, 60);
            checked.warn(
                format!("implementation.allow_reserved[{index}]"),
                "without_use",
                format!("has no effect: neither `query` nor the form has a field `{shown}`"),
            );
        }
    }
}

fn is_invalid_in_step_name(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '.' | '{' | '}' | '$' | '|')
}

fn request(request: &HttpRequest, path: &str, checked: &mut CheckReport) {
    if !request.url.is_empty() {
        url(&request.url, &format!("{path}.url"), checked);
    }
    let method = request.method.to_ascii_uppercase();
    if !method.is_empty() && !METHODS.contains(&method.as_str()) {
        let message = format!("is not one of {}", METHODS.join(", "));
        checked.error(format!("{path}.method"), "invalid_value", message);
    }
    if request.body.is_some() && matches!(method.as_str(), "" | "GET" | "HEAD") {
        checked.warn(
            format!("{path}.body"),
            "body_without_use",
            "most servers ignore the body of a GET or HEAD request; did you mean `method: POST`?",
        );
    }
    headers(&request.headers, &format!("{path}.headers"), checked);
    for (index, code) in
        request.success_codes.iter().enumerate().filter(|(_, code)| !(100..=599).contains(*code))
    {
        checked.error(
            format!("{path}.success_codes[{index}]"),
            "invalid_value",
            format!("invalid status code {code}; expected 100 to 599"),
        );
    }
    if request.extract.as_deref().is_some_and(|extract| extract.trim().is_empty()) {
        checked.error(
            format!("{path}.extract"),
            "invalid_value",
            "is empty; expected a JSONPath such as `$.data` or a regular expression",
        );
    }
}

pub(super) fn headers(headers: &BTreeMap<String, String>, path: &str, checked: &mut CheckReport) {
    let mut names = HashSet::new();
    for (name, value) in headers {
        let shown = haft_core::problem::excerpt(name, 60);
        header_name(name, &format!("{path}.{shown}"), checked);
        if !names.insert(name.to_ascii_lowercase()) {
            checked.error(
                format!("{path}.{shown}"),
                "duplicate_name",
                "duplicate header; names are case-insensitive",
            );
        }
        if value.contains(['\r', '\n', '\0']) {
            checked.error(
                format!("{path}.{shown}"),
                "invalid_header",
                "the header value contains a line break",
            );
        }
    }
}

fn auth(auth: &Auth, checked: &mut CheckReport) {
    let path = "implementation.auth";
    match auth {
        Auth::Bearer { token } => filled(token, "token", checked),
        Auth::Basic { username, .. } => filled(username, "username", checked),
        Auth::ApiKey { name, value, location } => {
            match location {
                // Query parameters are percent-encoded and may have any name.
                ApiKeyLocation::Query => filled(name, "name", checked),
                ApiKeyLocation::Header => header_name(name, &format!("{path}.name"), checked),
            }
            filled(value, "value", checked);
        }
        Auth::Hmac(hmac) => {
            filled(&hmac.key, "key", checked);
            one_of(&hmac.algorithm, &["sha256", "sha512"], "algorithm", checked);
            one_of(&hmac.encoding, &["hex", "base64"], "encoding", checked);
            for (field, name) in
                [("header", Some(&hmac.header)), ("timestamp_header", hmac.timestamp_header.as_ref())]
            {
                if let Some(name) = name {
                    header_name(name, &format!("{path}.{field}"), checked);
                }
            }
        }
        Auth::Oauth2(oauth) => {
            filled(&oauth.client_id, "client_id", checked);
            url(&oauth.token_url, &format!("{path}.token_url"), checked);
        }
    }
}

fn header_name(name: &str, field: &str, checked: &mut CheckReport) {
    let plain = name.to_ascii_lowercase();
    if !is_token(name) {
        checked.error(field, "invalid_header", "invalid header name; use letters, digits and `-`");
    } else if OWN_HEADERS.contains(&plain.as_str()) || plain.starts_with("proxy-") {
        checked.error(field, "invalid_header", "is set by the HTTP client; remove it");
    }
}

fn url(text: &str, field: &str, checked: &mut CheckReport) {
    if !is_http_url(text) {
        checked.error(field, "invalid_url", EXPECTED_URL);
    } else if text.trim_end().contains(char::is_control) {
        checked.error(field, "invalid_url", "the URL contains a line break or another control character");
    } else if has_userinfo(text) {
        let message = if field.ends_with("token_url") {
            "contains a user name; use `client_id` and `client_secret`"
        } else {
            "contains a user name; use `auth` with `type: basic`, `username` and `password`"
        };
        checked.error(field, "invalid_url", message);
    }
}

/// Returns whether a URL contains a user name or password, literally or as a template.
pub fn has_userinfo(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // Template values are percent-encoded, so only characters outside of templates count.
    let mut depth = 0_usize;
    for c in rest.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' | '\\' | '?' | '#' if depth == 0 => return false,
            '@' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

fn filled(text: &str, field: &str, checked: &mut CheckReport) {
    if text.is_empty() {
        checked.error(format!("implementation.auth.{field}"), "missing_field", "is empty");
    }
}

fn one_of(text: &str, words: &[&str], field: &str, checked: &mut CheckReport) {
    if !words.contains(&text) {
        checked.error(
            format!("implementation.auth.{field}"),
            "invalid_value",
            format!("is not one of {}", words.join(", ")),
        );
    }
}

pub(super) fn is_http_url(url: &str) -> bool {
    let start = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let length = if start.starts_with("http://") { 7 } else { 8 };
    let has_scheme = length == 7 || start.starts_with("https://");
    has_scheme && url.get(length..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
}

/// Returns whether a text is an HTTP token, such as a header name.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
