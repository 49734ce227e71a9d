//! Pages that work without scripts, such as that of the login: their headers, and text in HTML.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};

/// The pages have no scripts, only this server may receive their forms, and no other page may frame them.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Returns a page.
pub(crate) fn respond(status: StatusCode, page: String) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // With `no-referrer`, browsers would send the form with `Origin: null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, Html(page)).into_response()
}

/// Returns the address of another page; a browser requests it with `GET`.
pub(crate) fn redirect(to: &str, headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in headers {
        response.headers_mut().append(name, value);
    }
    response
}

/// Returns a message of a page; nothing for an empty one.
pub(crate) fn alert(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!("<p role=\"alert\">{}</p>", escape(message)) }
}

/// Escapes a text for HTML, also within the quotes of an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a field of a form that was sent; an empty one counts as missing.
pub(crate) fn field(form: &[u8], name: &str) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(form);
    let value = fields.find(|(field, _)| field == name).map(|(_, value)| value.trim().to_owned());
    value.filter(|value| !value.is_empty())
}
