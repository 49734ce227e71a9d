//! Logging in to servers, and out of them.

use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId};
use url::Url;

use super::clients::McpClients;
use super::oauth::{self, Callback, Kept, LoginResult, OAuthError};

impl McpClients {
    /// Begins a login and returns the address that a person has to open; what comes back from there has to be given to
    /// [`McpClients::finish_login`] of the same process, within ten minutes.
    pub async fn begin_login(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
        by: &str,
        redirect: &str,
    ) -> Result<Url, OAuthError> {
        let redirect = Url::parse(redirect)
            .map_err(|error| OAuthError::Configuration(format!("the redirect address: {error}")))?;
        let connection = self.for_call(tenant, id).await;
        let connection = connection.map_err(|error| OAuthError::Configuration(error.message))?;
        let Some(auth) = connection.auth().await else {
            let why = "there is nothing to log in to: it is a program, or its headers hold a token";
            return Err(OAuthError::Configuration(why.to_owned()));
        };
        let kept = self.kept(&connection.server());
        let place = (tenant.clone(), id.clone(), by.to_owned());
        oauth::begin(&self.pending, place, auth, kept, redirect).await
    }

    /// Ends a login with what came back, and connects with it.
    pub async fn finish_login(&self, callback: Callback) -> Result<LoginResult, OAuthError> {
        let start = self.pending.take(&callback.state)?;
        let done = LoginResult { tenant: start.tenant.clone(), id: start.id.clone(), by: start.by.clone() };
        oauth::finish(start, callback).await?;
        self.restart(&done.tenant, &done.id);
        Ok(done)
    }

    /// Forgets the login to a server, with the client that was registered for it. Tells whether there was one.
    pub async fn logout(&self, server: &McpServer) -> Result<bool, OAuthError> {
        let was = self.kept(server).forget().await?;
        self.restart(&server.tenant, &server.id);
        Ok(was)
    }

    fn kept(&self, server: &McpServer) -> Kept {
        Kept::new(server, self.parts.secrets.refresh_tokens())
    }
}
