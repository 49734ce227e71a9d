//! From a step and the values of a call to a request.

use bytes::Bytes;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::template::{Place, RenderError, Values, percent_encode_into};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use super::pairs;
use super::plan::{Body, Step};
use crate::egress::Outgoing;

impl Step {
    /// Fills in the templates.
    pub(super) fn build(&self, values: &Values<'_>) -> Result<Outgoing, CallError> {
        let mut outgoing = Outgoing {
            method: self.method.clone(),
            url: self.render_url(values)?,
            headers: self.render_headers(values)?,
            body: self.render_body(values)?,
            wanted: self.success.clone(),
        };
        if let (Some(content_type), Some(_)) = (&self.content_type, &outgoing.body) {
            outgoing.headers.insert(CONTENT_TYPE, content_type.clone());
        }
        Ok(outgoing)
    }

    /// Returns method and URL as they may be shown to the operator.
    pub(super) fn shown(&self, values: &Values<'_>) -> String {
        let url = self.url.render_masked(Place::Url, values);
        format!("{} {}", self.method, url.unwrap_or_else(|_| "the request".to_owned()))
    }

    fn render_url(&self, values: &Values<'_>) -> Result<Url, CallError> {
        let rendered = self.url.render(Place::Url, values)?;
        let mut url = Url::parse(&rendered.text).map_err(|error| {
            let shown = self.shown(values);
            CallError::new(ErrorCode::Template, format!("{shown} is not a URL: {error}"))
                .for_model(format!("the arguments do not make a valid URL: {error}"))
        })?;
        if !self.query.is_empty() {
            let mut query = url.query().unwrap_or_default().to_owned();
            for parameter in &self.query {
                let value = parameter.value.render(values)?.0;
                pairs::push(&parameter.name, value, parameter.style, &mut query);
            }
            url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        }
        Ok(url)
    }

    /// A header whose template comes to nothing is left out.
    fn render_headers(&self, values: &Values<'_>) -> Result<HeaderMap, CallError> {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        for (name, template) in &self.headers {
            let rendered = template.render(Place::Header(name.as_str()), values)?;
            if rendered.text.is_empty() && template.as_literal().is_none() {
                continue;
            }
            let mut value = header_value(name, &rendered.text)?;
            value.set_sensitive(rendered.secret);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    fn render_body(&self, values: &Values<'_>) -> Result<Option<Bytes>, RenderError> {
        Ok(match &self.body {
            Body::Nothing => None,
            Body::Text(template, place) => Some(template.render(*place, values)?.text.into()),
            Body::Json(template) => template.render(values)?.0.map(|value| value.to_string().into()),
            Body::Form(template) => {
                let (value, _) = template.render(values)?;
                let mut form = String::new();
                if let Some(Value::Object(map)) = value {
                    for (name, value) in map {
                        let mut encoded = String::with_capacity(name.len());
                        percent_encode_into(&name, &mut encoded);
                        pairs::push(&encoded, Some(value), self.styles.get(&name).copied(), &mut form);
                    }
                }
                Some(form.into())
            }
        })
    }
}

/// Makes the value of a header that is not a template.
pub(super) fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, CallError> {
    let value =
        Some(text).filter(|text| is_header_text(text)).and_then(|text| HeaderValue::from_str(text).ok());
    value.ok_or_else(|| {
        let place = Place::Header(name.as_str());
        CallError::new(ErrorCode::Template, format!("a value does not fit into {place}: visible ASCII only"))
    })
}

/// Tells whether a header can carry a text; other bytes mean something else to every receiver.
pub(super) fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

/// Tells how many bytes a request has, without what the protocol adds.
pub(super) fn size(outgoing: &Outgoing) -> u64 {
    let headers: usize =
        outgoing.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let body = outgoing.body.as_ref().map_or(0, Bytes::len);
    u64::try_from(outgoing.url.as_str().len() + headers + body).unwrap_or(u64::MAX)
}
