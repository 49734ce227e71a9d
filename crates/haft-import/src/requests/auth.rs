//! The authentication of saved requests, with references to secrets.

use haft_core::implementation::{ApiKeyLocation, Auth, OAuth2};
use haft_core::problem::excerpt;

use super::SavedAuth;
use super::draft::{Draft, TextUse, has_variable};
use crate::api::templates::literal;
use crate::openapi::escape_template;

/// Returns the `auth` of a tool. A credential in the file is not stored, but replaced by a secret.
pub(super) fn convert(auth: &SavedAuth, draft: &mut Draft<'_>) -> Option<Auth> {
    Some(match auth {
        SavedAuth::Nothing => return None,
        SavedAuth::Bearer(token) => Auth::Bearer { token: credential(token, "token", draft) },
        SavedAuth::Basic { username, password } => Auth::Basic {
            username: if username.is_empty() {
                draft.secret("username")
            } else {
                draft.template(username, TextUse::Credential)
            },
            password: credential(password, "password", draft),
        },
        SavedAuth::ApiKey { name, value, in_query } => {
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            if name.is_empty() || !plain {
                let message = format!("the API key is not sent: invalid name `{}`", excerpt(name, 60));
                draft.warn("unsupported_security", message);
                return None;
            }
            let value = credential(value, name, draft);
            let location = if *in_query { ApiKeyLocation::Query } else { ApiKeyLocation::Header };
            Auth::ApiKey { name: name.clone(), value, location }
        }
        SavedAuth::ClientCredentials { token_url, client_id, client_secret, scope } => {
            let token_url = draft.expand(token_url);
            let is_web =
                url::Url::parse(&token_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_web || has_variable(&token_url) {
                return convert(&SavedAuth::Token, draft);
            }
            Auth::Oauth2(OAuth2 {
                token_url: escape_template(&token_url),
                client_id: credential(client_id, "client_id", draft),
                client_secret: credential(client_secret, "client_secret", draft),
                refresh_token: None,
                scopes: scope.split_whitespace().map(literal).take(50).collect(),
                audience: None,
            })
        }
        SavedAuth::Token => {
            let token = draft.secret("access_token");
            let message =
                format!("this OAuth flow needs a person: obtain an access token and store it as `{token}`");
            draft.warn("token_needed", message);
            Auth::Bearer { token }
        }
        SavedAuth::Unsupported(kind) => {
            let message = format!(
                "the authentication `{}` is not supported; calls are sent without credentials. Set `auth` manually",
                excerpt(kind, 40)
            );
            draft.warn("unsupported_security", message);
            return None;
        }
    })
}

/// Returns the template of a credential: its variables, or a secret in place of the saved value.
pub(super) fn credential(saved: &str, name: &str, draft: &mut Draft<'_>) -> String {
    if has_variable(saved) {
        return draft.template(saved, TextUse::Credential);
    }
    if saved.is_empty() { draft.secret(name) } else { draft.replace_credential(name) }
}
