//! The providers that admins define.

use haft_core::account::{AccountProvider, OAuthProvider, TokenExchangeProvider, check_provider_name};
use haft_core::id::ActorId;
use haft_core::token::Role;
use url::Url;

use crate::account_exchange;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// The most providers of a tenant.
const MAX_PROVIDERS: usize = 200;
/// The most people who are returned of those who have an account at a provider.
const MAX_HOLDERS: i64 = 100;
/// The longest name for people, and the longest help, in characters.
const MAX_DISPLAY_NAME: usize = 100;
const MAX_HELP: usize = 2000;
/// The longest other text, in characters, and the most scopes.
const MAX_TEXT: usize = 2000;
const MAX_SCOPES: usize = 100;

/// Lists the providers of the tenant.
pub async fn providers(app: &Context, identity: &Identity) -> Result<Vec<AccountProvider>, ServiceError> {
    identity.require(Role::Viewer)?;
    Ok(app.store().accounts().providers(&identity.tenant).await?)
}

/// Returns who has an account at a provider: the first ones, and the number of all.
pub async fn holders(
    app: &Context,
    identity: &Identity,
    name: &str,
) -> Result<(Vec<ActorId>, i64), ServiceError> {
    identity.require(Role::Admin)?;
    let accounts = app.store().accounts();
    if accounts.provider(&identity.tenant, name).await?.is_none() {
        return Err(ServiceError::not_found("account provider", name));
    }
    let holders = accounts.holders(&identity.tenant, name, MAX_HOLDERS).await?;
    Ok((holders, accounts.count_at(&identity.tenant, name).await?))
}

/// Defines a provider, or replaces it.
pub async fn put_provider(
    app: &Context,
    identity: &Identity,
    provider: AccountProvider,
) -> Result<AccountProvider, ServiceError> {
    identity.require(Role::Admin)?;
    check(&provider).map_err(ServiceError::bad_request)?;
    let problem = provider.token_exchange.as_ref();
    if let Some(problem) = problem.and_then(|exchange| account_exchange::problem(app.issuers(), exchange)) {
        return Err(ServiceError::bad_request(problem));
    }
    let known = app.store().accounts().providers(&identity.tenant).await?;
    if known.len() >= MAX_PROVIDERS && known.iter().all(|known| known.name != provider.name) {
        let message = format!("a tenant has at most {MAX_PROVIDERS} providers; delete one first");
        return Err(ServiceError::bad_request(message));
    }
    audit::note(identity, "account_provider.put", &provider.name);
    app.store().accounts().put_provider(&identity.tenant, &provider).await?;
    Ok(provider)
}

/// Deletes a provider with all accounts there. Calls that wait for one end.
pub async fn delete_provider(app: &Context, identity: &Identity, name: &str) -> Result<(), ServiceError> {
    identity.require(Role::Admin)?;
    if !app.store().accounts().delete_provider(&identity.tenant, name).await? {
        return Err(ServiceError::not_found("account provider", name));
    }
    audit::note(identity, "account_provider.delete", name);
    app.store().approvals().provider_deleted(identity.tenant.clone(), name).await?;
    Ok(())
}

fn check(provider: &AccountProvider) -> Result<(), String> {
    let AccountProvider { name, display_name, help, shared, oauth, token_exchange } = provider;
    check_provider_name(name).map_err(|why| {
        let name = haft_core::problem::excerpt(name, 80);
        format!("invalid name `{name}`: {why}")
    })?;
    for (field, text, max) in [("display_name", display_name, MAX_DISPLAY_NAME), ("help", help, MAX_HELP)] {
        if text.chars().count() > max {
            return Err(format!("`{field}` exceeds the limit of {max} characters"));
        }
    }
    if shared.as_ref().is_some_and(|text| !is_reference(text)) {
        return Err(
            "`shared` must be a reference `${NAME}`; store the value with `haft secret set NAME`".into()
        );
    }
    match (oauth, token_exchange) {
        (Some(_), Some(_)) => Err("set either `oauth` or `token_exchange`".into()),
        (Some(oauth), None) => check_oauth(oauth),
        (None, Some(exchange)) => check_exchange(exchange),
        (None, None) => Ok(()),
    }
}

fn check_exchange(exchange: &TokenExchangeProvider) -> Result<(), String> {
    let ((Some(target), None) | (None, Some(target))) = (&exchange.audience, &exchange.resource) else {
        return Err("set either `token_exchange.audience` or `token_exchange.resource`".into());
    };
    if target.is_empty() || target.chars().count() > MAX_TEXT {
        return Err(format!(
            "`token_exchange`: expected 1 to {MAX_TEXT} characters of `audience` or `resource`"
        ));
    }
    check_scopes("token_exchange.scopes", &exchange.scopes)
}

fn check_scopes(field: &str, scopes: &[String]) -> Result<(), String> {
    let is_scope = |scope: &String| !scope.is_empty() && !scope.contains(char::is_whitespace);
    if scopes.len() > MAX_SCOPES || !scopes.iter().all(is_scope) {
        return Err(format!(
            "`{field}` must not contain empty entries or spaces, and has at most {MAX_SCOPES} entries"
        ));
    }
    Ok(())
}

fn check_oauth(oauth: &OAuthProvider) -> Result<(), String> {
    let endpoints = [
        ("issuer", &oauth.issuer),
        ("authorization_endpoint", &oauth.authorization_endpoint),
        ("token_endpoint", &oauth.token_endpoint),
        ("device_authorization_endpoint", &oauth.device_authorization_endpoint),
    ];
    for (field, text) in endpoints {
        let Some(text) = text else { continue };
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
        let is_valid = text.chars().count() <= MAX_TEXT
            && url.is_some_and(|url| url.username().is_empty() && url.password().is_none());
        if !is_valid {
            return Err(format!(
                "`oauth.{field}` must be a URL that starts with `https://`, without user info"
            ));
        }
    }
    let has_page = oauth.authorization_endpoint.is_some() || oauth.device_authorization_endpoint.is_some();
    let is_complete = match (&oauth.issuer, &oauth.authorization_endpoint, &oauth.token_endpoint) {
        (Some(_), None, None) => true,
        (None, _, Some(_)) => has_page,
        _ => false,
    };
    if !is_complete {
        return Err(
            "set either `oauth.issuer`, or `oauth.token_endpoint` with `oauth.authorization_endpoint` or `oauth.device_authorization_endpoint`".into(),
        );
    }
    if oauth.client_id.trim().is_empty() || oauth.client_id.chars().count() > MAX_TEXT {
        return Err(
            "missing `oauth.client_id`: the id of the client that you registered at the provider".into()
        );
    }
    if oauth.client_secret.as_ref().is_some_and(|text| !is_reference(text)) {
        return Err(
            "`oauth.client_secret` must be a reference `${NAME}`; store the value with `haft secret set NAME`"
                .into(),
        );
    }
    check_scopes("oauth.scopes", &oauth.scopes)
}

/// Returns whether a text is exactly one `${NAME}`; anything beside it would be stored in clear.
fn is_reference(text: &str) -> bool {
    let name = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        !name.is_empty() && !name.contains(['$', '{', '}']) && !name.starts_with("account:")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_checked() {
        let provider = || AccountProvider {
            name: "github".into(),
            display_name: String::new(),
            help: String::new(),
            shared: None,
            oauth: None,
            token_exchange: None,
        };
        let oauth = || OAuthProvider {
            issuer: Some("https://a.test".into()),
            client_id: "haft".into(),
            ..OAuthProvider::default()
        };
        let check = |provider: AccountProvider, expected: &str| {
            let error = super::check(&provider).err().unwrap_or_default();
            assert!(if expected.is_empty() { error.is_empty() } else { error.contains(expected) }, "{error}");
        };
        check(provider(), "");
        check(AccountProvider { name: "GitHub".into(), ..provider() }, "invalid name `GitHub`");
        check(AccountProvider { shared: Some("plain".into()), ..provider() }, "`shared` must be a reference");
        check(AccountProvider { shared: Some("${account:x}".into()), ..provider() }, "`shared`");
        check(AccountProvider { help: "x".repeat(2001), ..provider() }, "`help` exceeds");
        let with = |oauth| AccountProvider { oauth: Some(oauth), ..provider() };
        check(with(oauth()), "");
        check(with(OAuthProvider { issuer: None, ..oauth() }), "set either `oauth.issuer`, or");
        check(with(OAuthProvider { client_id: " ".into(), ..oauth() }), "missing `oauth.client_id`");
        check(
            with(OAuthProvider { issuer: Some("file:///x".into()), ..oauth() }),
            "`oauth.issuer` must be a URL",
        );
        check(
            with(OAuthProvider { client_secret: Some("s3cr3t".into()), ..oauth() }),
            "`oauth.client_secret`",
        );
        check(with(OAuthProvider { scopes: vec!["a b".into()], ..oauth() }), "`oauth.scopes`");
    }
}
