//! Pages that work without scripts, such as that of the login: their headers, and text in HTML.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use haft_platform::error::ServiceError;

use crate::page_text::Texts;

/// The pages have no scripts, only this server may receive their forms, and no other page may frame them.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The sign of haft, as in the web interface.
const LOGO: &str = r##"<svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#3b5bdb"/><path d="M10 7v18M10 17c0-4 2.5-6 6-6s6 2 6 6v8" fill="none" stroke="#fff" stroke-width="3.5" stroke-linecap="round"/></svg>"##;

/// A page of this server that works without scripts.
pub(crate) struct Page<'a> {
    pub(crate) texts: &'static Texts,
    /// Its title and heading.
    pub(crate) title: &'a str,
    /// What follows the heading, as HTML.
    pub(crate) content: &'a str,
    /// Whether it has more than a few lines.
    pub(crate) is_wide: bool,
    /// The address that the browser opens next, by itself.
    pub(crate) next: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Returns a narrow page.
    pub(crate) fn new(texts: &'static Texts, title: &'a str, content: &'a str) -> Self {
        Self { texts, title, content, is_wide: false, next: None }
    }

    /// Returns the page as a response.
    pub(crate) fn respond(&self, status: StatusCode) -> Response {
        let headers = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            // With `no-referrer`, browsers would send the form with `Origin: null`.
            (header::REFERRER_POLICY, "same-origin"),
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (status, headers, Html(self.html())).into_response()
    }

    fn html(&self) -> String {
        let title = escape(self.title);
        let refresh = self.next.map_or_else(String::new, |address| {
            format!("<meta http-equiv=\"refresh\" content=\"0; url={}\">\n    ", escape(address))
        });
        let class = if self.is_wide { " class=\"wide\"" } else { "" };
        format!(
            r#"<!doctype html>
<html lang="{lang}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    {refresh}<title>{title}</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/login/style.css">
  </head>
  <body>
    <main{class}>
      <p class="brand">{LOGO} haft</p>
      <h1>{title}</h1>
      {content}
    </main>
  </body>
</html>
"#,
            lang = self.texts.lang,
            content = self.content,
        )
    }
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

/// Returns a message of a page.
pub(crate) fn alert(message: &str) -> String {
    format!("<p role=\"alert\">{}</p>", escape(message))
}

/// Returns an error as a message of a page. Services say what failed in English; other languages say what that means.
pub(crate) fn error_alert(texts: &Texts, error: &ServiceError) -> String {
    explained(&sentence(&error.message), (texts.of_code)(error.code))
}

/// Returns a message in English, behind what it means in the language of the page.
pub(crate) fn explained(message: &str, meaning: Option<&str>) -> String {
    let Some(meaning) = meaning else { return alert(message) };
    format!(
        "<div role=\"alert\"><p>{}</p><p class=\"hint\" lang=\"en\">{}</p></div>",
        escape(meaning),
        escape(message)
    )
}

/// Returns a message as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let mut text = message.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
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
