//! Addresses of logins at issuers, and the links of the login page.

use haft_platform::Installation;

use crate::html_page::escape;

/// Returns the redirect URI of an issuer.
pub(super) fn callback_url(base: &str, issuer: &str) -> String {
    format!("{base}/login/oidc/{issuer}/callback")
}

/// Returns the page that leads to the logout page of an issuer.
pub(super) fn logout_path(issuer: &str) -> String {
    format!("/login/oidc/{issuer}/logout")
}

/// Returns links to the issuers for the login page; nothing without any.
pub(super) fn buttons(app: &Installation, next: Option<&str>) -> String {
    let mut query = String::new();
    if let Some(next) = next {
        query = format!(
            "?{}",
            url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish()
        );
    }
    let links = app.issuers().all().iter().map(|issuer| {
        let (id, name) = (&issuer.settings.id, escape(&issuer.settings.name));
        format!("<a class=\"button\" href=\"/login/oidc/{id}{}\">Log in with {name}</a>", escape(&query))
    });
    let links: Vec<String> = links.collect();
    if links.is_empty() {
        return String::new();
    }
    format!("<nav aria-label=\"Sign-on\">{}</nav>\n      <p class=\"or\">or</p>", links.concat())
}
