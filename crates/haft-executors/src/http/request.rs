//! Builds the request of a step from the values of a call.

use bytes::Bytes;
use haft_core::encode::percent_encode;
use haft_core::outcome::{CallError, ErrorCode};
use haft_template::{EscapeContext, Values};
use http::header::{CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::multipart::{self, FileSource};
use super::pairs::{self, AllowedCharacters};
use super::plan::{Body, Step};
use crate::egress::OutgoingRequest;

impl Step {
    /// Renders the templates.
    pub(super) fn build(
        &self,
        values: &Values<'_>,
        files: FileSource<'_>,
    ) -> Result<OutgoingRequest, CallError> {
        let (body, boundary) = self.render_body(values, files)?;
        let mut outgoing = OutgoingRequest {
            method: self.method.clone(),
            url: self.render_url(values)?,
            headers: self.render_headers(values)?,
            body,
            accepted_statuses: self.success.clone(),
        };
        if let Some(boundary) = boundary {
            let content_type = format!("multipart/form-data; boundary={boundary}");
            outgoing.headers.insert(CONTENT_TYPE, header_value(&CONTENT_TYPE, &content_type)?);
        }
        match (&self.content_type, &outgoing.body) {
            (Some(content_type), Some(_)) => {
                outgoing.headers.insert(CONTENT_TYPE, content_type.clone());
            }
            // Without a body there is no content type.
            (_, None) if self.optional_body => drop(outgoing.headers.remove(CONTENT_TYPE)),
            _ => {}
        }
        Ok(outgoing)
    }

    /// Returns the method and the masked URL for the operator.
    pub(super) fn shown(&self, values: &Values<'_>) -> String {
        let url = self.url.render_masked(EscapeContext::Url, values);
        format!("{} {}", self.method, url.unwrap_or_else(|_| "the request".to_owned()))
    }

    fn render_url(&self, values: &Values<'_>) -> Result<Url, CallError> {
        let rendered = self.url.render(EscapeContext::Url, values)?;
        let mut url = Url::parse(&rendered.text).map_err(|error| {
            let shown = self.shown(values);
            CallError::new(ErrorCode::Template, format!("{shown} is not a URL: {error}"))
                .for_model(format!("the arguments result in an invalid URL: {error}"))
        })?;
        if !self.query.is_empty() {
            let mut query = url.query().unwrap_or_default().to_owned();
            for parameter in &self.query {
                let value = parameter.value.render(values)?.0;
                pairs::push(&parameter.name, value, (parameter.style, parameter.allowed), &mut query);
            }
            url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        }
        Ok(url)
    }

    /// Renders the headers. A header or cookie whose template renders to an empty text is omitted.
    fn render_headers(&self, values: &Values<'_>) -> Result<HeaderMap, CallError> {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        for (name, template) in &self.headers {
            let mut rendered = template.render(EscapeContext::Header(name.as_str()), values)?;
            if name == COOKIE && template.as_literal().is_none() {
                rendered.text = without_empty(&rendered.text);
            }
            if rendered.text.is_empty() && template.as_literal().is_none() {
                continue;
            }
            let mut value = header_value(name, &rendered.text)?;
            value.set_sensitive(rendered.secret);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    /// Renders the body; returns also the boundary of a multipart body.
    fn render_body(
        &self,
        values: &Values<'_>,
        files: FileSource<'_>,
    ) -> Result<(Option<Bytes>, Option<String>), CallError> {
        let optional = self.optional_body;
        let body = match &self.body {
            Body::Nothing => None,
            Body::Text(template, _) if optional && template.is_missing(values) => None,
            Body::Text(template, context) => Some(template.render(*context, values)?.text.into()),
            Body::Json(template) => {
                let value = template.render(values)?.0.filter(|value| !(optional && is_empty(value)));
                value.map(|value| value.to_string().into())
            }
            Body::Form(template) => match template.render(values)?.0 {
                Some(value) if optional && is_empty(&value) => None,
                Some(Value::Object(map)) => Some(self.form(map).into()),
                _ => Some(Bytes::new()),
            },
            Body::Multipart(template) => match template.render(values)?.0 {
                Some(value) if optional && is_empty(&value) => None,
                Some(Value::Object(map)) => {
                    let (boundary, bytes) = multipart::encode(map, &self.files, files)?;
                    return Ok((Some(bytes), Some(boundary)));
                }
                _ => return Err(CallError::internal("a multipart body is not an object")),
            },
            Body::File(template, name) => {
                let value =
                    template.render(values)?.0.and_then(|mut value| Some(value.get_mut(name)?.take()));
                match value.filter(|value| !value.is_null()) {
                    Some(value) => Some(multipart::file(name, &value, files)?.bytes),
                    None if optional => None,
                    None => Some(Bytes::new()),
                }
            }
        };
        Ok((body, None))
    }

    fn form(&self, map: Map<String, Value>) -> String {
        let mut form = String::new();
        for (name, value) in map {
            let encoding =
                (self.styles.get(&name).copied(), AllowedCharacters::of(&self.allow_reserved, &name));
            pairs::push(&percent_encode(&name), Some(value), encoding, &mut form);
        }
        form
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// Removes cookies without a value.
fn without_empty(cookies: &str) -> String {
    let given = cookies
        .split("; ")
        .filter(|cookie| !cookie.trim_end().ends_with('=') || cookie.matches('=').count() > 1);
    given.collect::<Vec<_>>().join("; ")
}

/// Converts a text to a header value.
pub(super) fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, CallError> {
    let value =
        Some(text).filter(|text| is_header_text(text)).and_then(|text| HeaderValue::from_str(text).ok());
    value.ok_or_else(|| {
        let context = EscapeContext::Header(name.as_str());
        CallError::new(
            ErrorCode::Template,
            format!("invalid value for {context}: only visible ASCII characters are allowed"),
        )
    })
}

/// Returns whether a text is allowed in a header: receivers interpret other bytes differently.
pub(super) fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

/// Returns the size of a request, without the overhead of the protocol.
pub(super) fn size(outgoing: &OutgoingRequest) -> u64 {
    let headers: usize =
        outgoing.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let body = outgoing.body.as_ref().map_or(0, Bytes::len);
    u64::try_from(outgoing.url.as_str().len() + headers + body).unwrap_or(u64::MAX)
}
