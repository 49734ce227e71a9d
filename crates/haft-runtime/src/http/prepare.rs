//! From a definition to a plan, with everything that is wrong on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft_core::implementation::{Http, HttpRequest, HttpStep, Notation};
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;
use haft_core::template::{Place, Scope, Template, ValueTemplate, percent_encode};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};
use url::Url;

use super::auth::AuthPlan;
use super::extract::Extract;
use super::plan::{Body, Plan, Step};
use super::request::is_header_text;
use super::response::Reader;
use crate::retry;

/// How many steps a tool may have.
const MOST_STEPS: usize = 20;

/// The headers that the connection itself sets.
const OWN_HEADERS: [HeaderName; 7] =
    [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE, TE, TRAILER];

/// Compiles a definition; names every fault.
pub(super) fn plan(spec: &ToolSpec, http: &Http) -> Result<Plan, Vec<Problem>> {
    let mut compiler =
        Compiler { notation: http.templates, scope: Scope::of(&spec.input_schema), problems: Vec::new() };
    let auth = http.auth.as_ref().and_then(|auth| AuthPlan::compile(&mut compiler, auth));
    let steps = if http.steps.is_empty() {
        compiler.step("implementation", "", &http.request).into_iter().collect()
    } else {
        compiler.steps(http)
    };
    if http.timeout().is_zero() {
        compiler.problem("implementation.timeout_ms", "out_of_range", "the timeout must be longer than 0");
    }
    if !compiler.problems.is_empty() {
        return Err(compiler.problems);
    }
    let mut secrets: BTreeSet<&str> = steps.iter().flat_map(Step::secrets).collect();
    secrets.extend(auth.iter().flat_map(AuthPlan::secrets));
    Ok(Plan {
        secrets: secrets.into_iter().map(str::to_owned).collect(),
        steps,
        auth,
        timeout: http.timeout(),
        error_mode: http.error_mode,
        limits: spec.execution.limits.clone(),
        retry: retry::policy(spec),
        repeat_all: spec.execution.retry.as_ref().is_some_and(|retry| retry.attempts > 0),
        version: spec.version.as_str().to_owned(),
    })
}

/// Collects problems while it compiles.
pub(super) struct Compiler {
    notation: Notation,
    scope: Scope,
    problems: Vec<Problem>,
}

impl Compiler {
    pub(super) fn problem(&mut self, field: &str, code: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(field, code, message));
    }

    pub(super) fn text(&mut self, field: &str, text: &str) -> Option<Template> {
        Template::parse(self.notation, text, &self.scope)
            .map_err(|error| self.problems.push(error.to_problem(field)))
            .ok()
    }

    pub(super) fn value(&mut self, field: &str, value: &Value) -> Option<ValueTemplate> {
        ValueTemplate::parse(self.notation, value, &self.scope)
            .map_err(|faults| {
                let named = |path: &str| format!("{field}{path}");
                self.problems.extend(faults.iter().map(|fault| fault.error.to_problem(named(&fault.path))));
            })
            .ok()
    }

    pub(super) fn url(&mut self, field: &str, text: &str) -> Option<Template> {
        if text.is_empty() {
            self.problem(field, "missing_field", "a URL that starts with `http://` or `https://` is missing");
            return None;
        }
        let text = text.trim();
        if text.contains(char::is_control) {
            self.problem(field, "invalid_url", "a URL has no line breaks and no other control characters");
            return None;
        }
        let template = self.text(field, text)?;
        let prefix = template.literal_prefix();
        let rest = ["https://", "http://"].into_iter().find_map(|scheme| {
            let start = prefix.get(..scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then(|| prefix.get(scheme.len()..).unwrap_or_default())
        });
        let Some(rest) = rest else {
            let shown = excerpt(text, 60);
            let message = format!("`{shown}` does not start with `http://` or `https://`");
            self.problem(field, "invalid_url", message);
            return None;
        };
        if rest.split(['/', '?', '#', '\\']).next().unwrap_or_default().contains('@') {
            let message = "credentials do not belong into a URL; use `auth` with type `basic`";
            self.problem(field, "invalid_url", message);
            return None;
        }
        if let Some(Err(error)) = template.as_literal().map(Url::parse) {
            self.problem(field, "invalid_url", format!("`{}` is not a URL: {error}", excerpt(text, 60)));
            return None;
        }
        Some(template)
    }

    pub(super) fn header_name(&mut self, field: &str, name: &str) -> Option<HeaderName> {
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            self.problem(field, "invalid_header", format!("`{}` is not a header name", excerpt(name, 60)));
            return None;
        };
        if OWN_HEADERS.contains(&parsed) || parsed.as_str().starts_with("proxy-") {
            let message = format!("`{parsed}` is set by the connection itself; leave it out");
            self.problem(field, "invalid_header", message);
            return None;
        }
        Some(parsed)
    }

    fn steps(&mut self, http: &Http) -> Vec<Step> {
        if http.steps.len() > MOST_STEPS {
            let message = format!("more than {MOST_STEPS} steps");
            self.problem("implementation.steps", "out_of_range", message);
            return Vec::new();
        }
        let mut steps = Vec::with_capacity(http.steps.len());
        let mut names = BTreeSet::new();
        for (index, step) in http.steps.iter().enumerate() {
            let field = format!("implementation.steps[{index}]");
            let odd =
                |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '{' | '}' | '$' | '|');
            if step.name.is_empty() || step.name.contains(odd) {
                let message = "a step needs a name without dots, braces and spaces";
                self.problem(&format!("{field}.name"), "invalid_name", message);
            } else if !names.insert(step.name.as_str()) {
                let message = format!("two steps are called `{}`", step.name);
                self.problem(&format!("{field}.name"), "duplicate_name", message);
            }
            steps.extend(self.step(&field, &step.name, &merged(&http.request, step)));
            self.scope.add_step(&step.name);
        }
        steps
    }

    fn step(&mut self, field: &str, name: &str, request: &HttpRequest) -> Option<Step> {
        let before = self.problems.len();
        let method = self.method(&format!("{field}.method"), &request.method);
        let url = self.url(&format!("{field}.url"), &request.url);
        let query = self.query(&format!("{field}.query"), &request.query);
        let headers = self.headers(&format!("{field}.headers"), &request.headers);
        let given =
            headers.iter().find(|(name, _)| name == CONTENT_TYPE).map(|(_, value)| value.literal_prefix());
        let (body, content_type) = self.body(&format!("{field}.body"), request.body.as_ref(), given);
        for code in &request.success_codes {
            if !(100..600).contains(code) {
                let message = format!("{code} is not an HTTP status");
                self.problem(&format!("{field}.success_codes"), "out_of_range", message);
            }
        }
        let extract = request.extract.as_deref().filter(|text| !text.is_empty());
        let extract = extract.and_then(|text| {
            Extract::compile(text, request.response)
                .map_err(|message| self.problem(&format!("{field}.extract"), "invalid_extract", message))
                .ok()
        });
        if self.problems.len() > before {
            return None;
        }
        Some(Step {
            name: name.to_owned(),
            method: method?,
            url: url?,
            query,
            headers,
            body,
            content_type,
            success: request.success_codes.clone(),
            reader: Arc::new(Reader { encoding: request.response, extract }),
        })
    }

    fn method(&mut self, field: &str, text: &str) -> Option<Method> {
        let known = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ];
        let wanted = if text.is_empty() { "GET" } else { text };
        let found = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(wanted));
        if found.is_none() {
            let message = format!(
                "`{}` is not a method; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
                excerpt(text, 20)
            );
            self.problem(field, "invalid_method", message);
        }
        found
    }

    fn query(&mut self, field: &str, query: &Map<String, Value>) -> Vec<(String, ValueTemplate)> {
        query
            .iter()
            .filter_map(|(name, value)| {
                Some((percent_encode(name), self.value(&format!("{field}.{name}"), value)?))
            })
            .collect()
    }

    fn headers(&mut self, field: &str, headers: &BTreeMap<String, String>) -> Vec<(HeaderName, Template)> {
        let mut out: Vec<(HeaderName, Template)> = Vec::with_capacity(headers.len());
        for (name, text) in headers {
            let field = format!("{field}.{name}");
            let parsed = self.header_name(&field, name);
            let template = self.text(&field, text);
            if let Some(literal) = template.as_ref().and_then(Template::as_literal)
                && !is_header_text(literal)
            {
                self.problem(&field, "invalid_header", "a header takes visible ASCII characters only");
            }
            match (parsed, template) {
                (Some(name), Some(_)) if out.iter().any(|(other, _)| *other == name) => {
                    self.problem(&field, "duplicate_name", format!("the header `{name}` is given twice"));
                }
                (Some(name), Some(template)) => out.push((name, template)),
                _ => {}
            }
        }
        out
    }

    /// Compiles the body; its place follows the content type, or the look of the text where none is named.
    fn body(
        &mut self,
        field: &str,
        body: Option<&Value>,
        given: Option<&str>,
    ) -> (Body, Option<HeaderValue>) {
        let compiled = match body {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.is_empty() => None,
            Some(Value::String(text)) => self.text_body(field, text, given),
            Some(value) => self.structured_body(field, value, given),
        };
        let Some((body, implied)) = compiled else { return (Body::Nothing, None) };
        (body, given.is_none().then(|| HeaderValue::from_static(implied)))
    }

    fn text_body(&mut self, field: &str, text: &str, given: Option<&str>) -> Option<(Body, &'static str)> {
        let template = self.text(field, text)?;
        let looks_json = template.looks_like_json();
        let place = match given.map(content_kind) {
            None | Some(ContentKind::Other) if looks_json => Place::Json,
            None | Some(ContentKind::Other) => Place::Text,
            Some(ContentKind::Json) => Place::Json,
            Some(ContentKind::Form) => Place::Form,
            Some(ContentKind::Xml) => Place::Xml,
            Some(ContentKind::Multipart) => {
                self.problem(field, "invalid_body", "multipart bodies are not supported");
                return None;
            }
        };
        let implied = if place == Place::Json { "application/json" } else { "text/plain; charset=utf-8" };
        Some((Body::Text(template, place), implied))
    }

    fn structured_body(
        &mut self,
        field: &str,
        value: &Value,
        given: Option<&str>,
    ) -> Option<(Body, &'static str)> {
        let template = self.value(field, value)?;
        match given.map(content_kind) {
            None | Some(ContentKind::Json) => Some((Body::Json(template), "application/json")),
            Some(ContentKind::Form) if value.is_object() => {
                Some((Body::Form(template), "application/x-www-form-urlencoded"))
            }
            Some(_) => {
                let message = "a structured body is sent as `application/json`, or a map as \
                               `application/x-www-form-urlencoded`; for other content types write \
                               the body as text";
                self.problem(field, "invalid_body", message);
                None
            }
        }
    }
}

/// Lays a step over what all steps start from.
fn merged(base: &HttpRequest, step: &HttpStep) -> HttpRequest {
    let mut request = base.clone();
    let own = step.request.clone();
    if !own.method.is_empty() {
        request.method = own.method;
    }
    if !own.url.is_empty() {
        request.url = own.url;
    }
    if !own.success_codes.is_empty() {
        request.success_codes = own.success_codes;
    }
    request.query.extend(own.query);
    request.headers.retain(|name, _| !own.headers.keys().any(|other| other.eq_ignore_ascii_case(name)));
    request.headers.extend(own.headers);
    request.body = own.body.or(request.body);
    request.response = own.response.or(request.response);
    request.extract = own.extract.or(request.extract);
    request
}

/// What a content type says about the syntax of a body.
enum ContentKind {
    Json,
    Form,
    Xml,
    Multipart,
    Other,
}

fn content_kind(content_type: &str) -> ContentKind {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media.as_str() {
        "application/x-www-form-urlencoded" => ContentKind::Form,
        media if media.starts_with("multipart/") => ContentKind::Multipart,
        media if media.contains("json") => ContentKind::Json,
        media if media.contains("xml") => ContentKind::Xml,
        _ => ContentKind::Other,
    }
}
