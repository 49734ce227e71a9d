//! What makes a request wrong before it is ever sent.

use std::collections::{BTreeMap, HashSet};

use super::{Checked, MAX_ENTRIES};
use crate::implementation::{Auth, Http, HttpRequest};

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(super) const NOT_WEB: &str = "expected a URL that starts with `http://` or `https://`";

pub(super) fn check(http: &Http, checked: &mut Checked) {
    request(&http.request, "implementation", checked);
    if http.steps.is_empty() && http.request.url.is_empty() {
        checked.error("implementation.url", "missing_field", NOT_WEB);
    }
    if http.steps.len() > MAX_ENTRIES {
        checked.error(
            "implementation.steps",
            "too_large",
            format!("at most {MAX_ENTRIES} steps are allowed"),
        );
    }
    let mut names = HashSet::new();
    for (index, step) in http.steps.iter().enumerate() {
        let path = format!("implementation.steps.{index}");
        if step.name.trim().is_empty() {
            checked.error(
                format!("{path}.name"),
                "missing_field",
                "is empty; later steps read its value by this name",
            );
        } else if !names.insert(&step.name) {
            checked.error(
                format!("{path}.name"),
                "duplicate_name",
                format!("`{}` is the name of an earlier step", step.name),
            );
        }
        if step.request.url.is_empty() && http.request.url.is_empty() {
            checked.error(format!("{path}.url"), "missing_field", NOT_WEB);
        }
        request(&step.request, &path, checked);
    }
    if let Some(auth) = &http.auth {
        self::auth(auth, checked);
    }
}

fn request(request: &HttpRequest, path: &str, checked: &mut Checked) {
    if !request.url.is_empty() && !is_web(&request.url) {
        checked.error(format!("{path}.url"), "invalid_url", NOT_WEB);
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
            format!("{path}.success_codes.{index}"),
            "invalid_value",
            format!("{code} is no status code; they go from 100 to 599"),
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

pub(super) fn headers(headers: &BTreeMap<String, String>, path: &str, checked: &mut Checked) {
    for (name, value) in headers {
        let shown = crate::problem::excerpt(name, 60);
        if !is_token(name) {
            checked.error(
                format!("{path}.{shown}"),
                "invalid_header",
                "is not the name of a header: letters, digits and `-`",
            );
        }
        if value.contains(['\r', '\n', '\0']) {
            checked.error(format!("{path}.{shown}"), "invalid_header", "the value of a header is one line");
        }
    }
}

fn auth(auth: &Auth, checked: &mut Checked) {
    let path = "implementation.auth";
    match auth {
        Auth::Bearer { token } => filled(token, "token", checked),
        Auth::Basic { username, .. } => filled(username, "username", checked),
        Auth::ApiKey { name, value, .. } => {
            if !is_token(name) {
                checked.error(
                    format!("{path}.name"),
                    "invalid_header",
                    "is not the name of a header or parameter",
                );
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
                if name.is_some_and(|name| !is_token(name)) {
                    checked.error(format!("{path}.{field}"), "invalid_header", "is not the name of a header");
                }
            }
        }
        Auth::Oauth2(oauth) => {
            filled(&oauth.client_id, "client_id", checked);
            if !is_web(&oauth.token_url) {
                checked.error(format!("{path}.token_url"), "invalid_url", NOT_WEB);
            }
        }
    }
}

fn filled(text: &str, field: &str, checked: &mut Checked) {
    if text.is_empty() {
        checked.error(format!("implementation.auth.{field}"), "missing_field", "is empty");
    }
}

fn one_of(text: &str, words: &[&str], field: &str, checked: &mut Checked) {
    if !words.contains(&text) {
        checked.error(
            format!("implementation.auth.{field}"),
            "invalid_value",
            format!("is not one of {}", words.join(", ")),
        );
    }
}

pub(super) fn is_web(url: &str) -> bool {
    let start = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    (start.starts_with("http://") && url.len() > 7) || (start.starts_with("https://") && url.len() > 8)
}

/// Tells whether a text is a token of HTTP, as header names are.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
