//! Addresses of logins at issuers, and the links of the login page.

use haft_platform::Installation;

use crate::html_page::escape;
use crate::page_text::{Texts, fill};

/// Returns the redirect URI of an issuer.
pub(super) fn callback_url(base: &str, issuer: &str) -> String {
    format!("{base}/login/oidc/{issuer}/callback")
}

/// Returns the page that leads to the logout page of an issuer.
pub(super) fn logout_path(issuer: &str) -> String {
    format!("/login/oidc/{issuer}/logout")
}

/// Returns links to the issuers for the login page; nothing without any.
pub(super) fn buttons(app: &Installation, texts: &Texts, next: Option<&str>) -> String {
    let mut query = String::new();
    if let Some(next) = next {
        query = format!(
            "?{}",
            url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish()
        );
    }
    let links = app.issuers().all().iter().map(|issuer| {
        let label = fill(texts.log_in_with, &[("name", escape(&issuer.settings.name).as_str())]);
        let id = &issuer.settings.id;
        format!("<a class=\"button\" href=\"/login/oidc/{id}{}\">{label}</a>", escape(&query))
    });
    let links: Vec<String> = links.collect();
    if links.is_empty() {
        return String::new();
    }
    format!(
        "<nav aria-label=\"{}\">{}</nav>\n      <p class=\"or\">{}</p>",
        texts.sign_on,
        links.concat(),
        texts.or
    )
}
