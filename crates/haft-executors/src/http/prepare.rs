//! Compiles an `http` definition.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::encode::percent_encode;
use haft_core::implementation::{Http, HttpRequest, HttpStep, Notation};
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_runtime::retry;
use haft_template::{EscapeContext, Scope, Template, ValueTemplate};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use url::Url;

use super::auth::AuthPlan;
use super::extract::Extract;
use super::pairs::AllowedCharacters;
use super::plan::{Body, Parameter, Plan, Step};
use super::request::is_header_text;
use super::response::ResponseReader;

/// Compiles a definition; returns all problems.
///
/// [`check`] reports everything that is known without compiling; such errors are not reported here again.
pub(super) fn plan(spec: &ToolSpec, http: &Http) -> Result<Plan, Vec<Problem>> {
    let mut compiler = Compiler {
        notation: http.templates,
        scope: Scope::from_schema(&spec.input_schema.value()),
        problems: Vec::new(),
    };
    let auth = http.auth.as_ref().and_then(|auth| AuthPlan::compile(&mut compiler, auth));
    let steps: Vec<Step> = if http.steps.is_empty() {
        compiler.step("implementation", "", &http.request).into_iter().collect()
    } else {
        compiler.steps(http)
    };
    let mut problems = check::implementation_errors(spec);
    compiler.problems.retain(|found| problems.iter().all(|known| known.field != found.field));
    problems.append(&mut compiler.problems);
    if problems.is_empty()
        && (steps.len() != http.steps.len().max(1) || auth.is_some() != http.auth.is_some())
    {
        problems.push(Problem::new("implementation", "invalid_value", "cannot be prepared"));
    }
    if !problems.is_empty() {
        return Err(problems);
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
        retry_all: spec.execution.retry.as_ref().is_some_and(|retry| retry.attempts > 0),
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
        let text = text.trim();
        let template = self.text(field, text)?;
        let prefix = template.literal_prefix();
        // The check of the definition reports other schemes.
        ["https://", "http://"].into_iter().find(|scheme| {
            prefix.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })?;
        if let Some(Err(error)) = template.as_literal().map(Url::parse) {
            self.problem(field, "invalid_url", format!("`{}` is not a URL: {error}", excerpt(text, 60)));
            return None;
        }
        Some(template)
    }

    fn steps(&mut self, http: &Http) -> Vec<Step> {
        let mut steps = Vec::with_capacity(http.steps.len().min(check::MAX_STEPS));
        for (index, step) in http.steps.iter().enumerate().take(check::MAX_STEPS) {
            let field = format!("implementation.steps[{index}]");
            steps.extend(self.step(&field, &step.name, &merged(&http.request, step)));
            self.scope.add_step(&step.name);
        }
        steps
    }

    fn step(&mut self, field: &str, name: &str, request: &HttpRequest) -> Option<Step> {
        let before = self.problems.len();
        let method = method(&request.method);
        let styles = &request.text_styles;
        let url = self.url(&format!("{field}.url"), &request.url).map(|url| url.styled(styles));
        let query = self.query(&format!("{field}.query"), request);
        let headers = self.headers(&format!("{field}.headers"), request);
        let given =
            headers.iter().find(|(name, _)| name == CONTENT_TYPE).map(|(_, value)| value.literal_prefix());
        let (body, content_type) = self.body(&format!("{field}.body"), request, given);
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
            optional_body: request.optional_body,
            files: request.files.clone(),
            styles: request.styles.clone(),
            allow_reserved: request.allow_reserved.clone(),
            success: request.success_codes.clone(),
            reader: Arc::new(ResponseReader { encoding: request.response, extract }),
        })
    }

    fn query(&mut self, field: &str, request: &HttpRequest) -> Vec<Parameter> {
        let named = request.query.iter().filter_map(|(name, value)| {
            let value = self.value(&format!("{field}.{name}"), value)?;
            let style = request.styles.get(name).copied();
            let allowed = AllowedCharacters::of(&request.allow_reserved, name);
            Some(Parameter { name: percent_encode(name), value, style, allowed })
        });
        named.collect()
    }

    fn headers(&mut self, field: &str, request: &HttpRequest) -> Vec<(HeaderName, Template)> {
        let mut out: Vec<(HeaderName, Template)> = Vec::with_capacity(request.headers.len());
        for (name, text) in &request.headers {
            let field = format!("{field}.{name}");
            let template = self.text(&field, text).map(|template| template.styled(&request.text_styles));
            if let Some(literal) = template.as_ref().and_then(Template::as_literal)
                && !is_header_text(literal)
            {
                self.problem(
                    &field,
                    "invalid_header",
                    "a header value must consist of visible ASCII characters",
                );
            }
            out.extend(HeaderName::from_bytes(name.as_bytes()).ok().zip(template));
        }
        out
    }

    /// Compiles the body. The escaping follows the content type or, without one, the text itself.
    fn body(
        &mut self,
        field: &str,
        request: &HttpRequest,
        given: Option<&str>,
    ) -> (Body, Option<HeaderValue>) {
        let compiled = match request.body.as_ref() {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.is_empty() => None,
            Some(Value::String(text)) => self.text_body(field, text, given),
            Some(value) => self.structured_body(field, value, (given, &request.files)),
        };
        let Some((body, implied)) = compiled else { return (Body::Nothing, None) };
        (body, given.is_none().then(|| HeaderValue::from_static(implied)))
    }

    fn text_body(&mut self, field: &str, text: &str, given: Option<&str>) -> Option<(Body, &'static str)> {
        let template = self.text(field, text)?;
        let looks_json = template.looks_like_json();
        let context = match given.map(content_kind) {
            None | Some(ContentKind::Other) if looks_json => EscapeContext::Json,
            None | Some(ContentKind::Other) => EscapeContext::Text,
            Some(ContentKind::Json) => EscapeContext::Json,
            Some(ContentKind::Form) => EscapeContext::Form,
            Some(ContentKind::Xml) => EscapeContext::Xml,
            Some(ContentKind::Multipart) => {
                let message = "a `multipart/form-data` body is an object of its fields; list those that are files in \
                               `files`";
                self.problem(field, "invalid_body", message);
                return None;
            }
        };
        let implied =
            if context == EscapeContext::Json { "application/json" } else { "text/plain; charset=utf-8" };
        Some((Body::Text(template, context), implied))
    }

    fn structured_body(
        &mut self,
        field: &str,
        value: &Value,
        (given, files): (Option<&str>, &[String]),
    ) -> Option<(Body, &'static str)> {
        let template = self.value(field, value)?;
        // A file is the whole body unless it is a part of it.
        let file = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.keys().next());
        let file = file.filter(|name| files.contains(name)).cloned();
        match given.map(content_kind) {
            Some(ContentKind::Multipart) if value.is_object() => {
                Some((Body::Multipart(template), "multipart/form-data"))
            }
            Some(kind) if file.is_some() && !matches!(kind, ContentKind::Form | ContentKind::Multipart) => {
                Some((Body::File(template, file?), "application/octet-stream"))
            }
            None | Some(ContentKind::Json) => Some((Body::Json(template), "application/json")),
            Some(ContentKind::Form) if value.is_object() => {
                Some((Body::Form(template), "application/x-www-form-urlencoded"))
            }
            Some(_) => {
                let message = "a structured body is sent as `application/json`, or an object as \
                               `application/x-www-form-urlencoded` or `multipart/form-data`; for other \
                               content types use a text body, or one field that is listed in `files`";
                self.problem(field, "invalid_body", message);
                None
            }
        }
    }
}

fn method(text: &str) -> Option<Method> {
    let method = if text.is_empty() { "GET".to_owned() } else { text.to_ascii_uppercase() };
    Method::from_bytes(method.as_bytes()).ok()
}

/// Returns the request of a step: its own settings over those that all steps share.
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
    request.styles.extend(own.styles);
    request.text_styles.extend(own.text_styles);
    request.allow_reserved.extend(own.allow_reserved);
    request.files.extend(own.files);
    request.optional_body |= own.optional_body;
    request.headers.retain(|name, _| !own.headers.keys().any(|other| other.eq_ignore_ascii_case(name)));
    request.headers.extend(own.headers);
    request.body = own.body.or(request.body);
    request.response = own.response.or(request.response);
    request.extract = own.extract.or(request.extract);
    request
}

/// The syntax of a body by its content type.
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
