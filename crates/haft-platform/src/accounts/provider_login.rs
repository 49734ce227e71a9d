//! The OAuth client of haft at a provider that an admin has defined.

use haft_core::account::AccountId;
use haft_mcp::client::ProviderLogin;

use super::connect::own_account;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Opens the login of the caller at a provider that an admin has defined.
pub(super) async fn login_at(
    app: &Context,
    identity: &Identity,
    provider: &str,
) -> Result<(AccountId, ProviderLogin), ServiceError> {
    if provider.starts_with("mcp:") {
        let message = format!("`{provider}` is an MCP server: logins there need a browser, not a code");
        return Err(ServiceError::bad_request(message));
    }
    let definition = app.store().accounts().provider(&identity.tenant, provider).await?;
    let definition = definition.ok_or_else(|| ServiceError::not_found("account provider", provider))?;
    let Some(oauth) = &definition.oauth else {
        let message = format!("`{provider}` needs an API key; use `PUT /api/accounts/{provider}`");
        return Err(ServiceError::bad_request(message));
    };
    let account = own_account(identity, provider)?;
    let login = app.secrets().account_source().login(&account, oauth).await?;
    Ok((account, login))
}
