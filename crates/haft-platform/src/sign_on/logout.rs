//! Logouts: the page of the issuer that ends its own session, and requests of the issuer that end sessions here.

use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_oauth::jwt::Purpose;
use haft_oauth::oidc;
use url::Url;

use super::error::SignOnError;
use super::login::find;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Returns where a logout at an issuer begins, if it has such a page and the configuration does not disable it. An issuer
/// that does not answer does not keep anybody from logging out.
pub async fn logout_url(app: &Context, issuer: &str, back: &str) -> Option<Url> {
    let issuer = app.issuers().find(issuer).filter(|issuer| issuer.settings.logout)?;
    let metadata = issuer.metadata(app.now()).await.ok()?;
    oidc::logout_url(&metadata, &issuer.settings.client_id, back)
}

/// Ends the sessions of the person whom the issuer has logged out (OpenID Connect Back-Channel Logout). A subject that is
/// unknown has none.
pub async fn end_sessions(app: &Arc<Context>, issuer: &str, logout_token: &str) -> Result<(), SignOnError> {
    let issuer = find(app, issuer)?;
    let settings = &issuer.settings;
    let purpose = Purpose::Logout { client_id: &settings.client_id };
    let verified = issuer.verify(logout_token, purpose, app.now()).await;
    let claims = verified.map_err(|error| SignOnError::of_token(&settings.name, &error))?;
    let subject = claims.get("sub").and_then(|subject| subject.as_str()).unwrap_or_default();
    let Some(id) = app.store().access().find_identity(&settings.issuer, subject).await? else {
        return Ok(());
    };
    let actor = format!("sign-on {}", settings.id);
    let tenant =
        app.access().tenants_of_person(id).into_iter().next().unwrap_or_else(TenantId::default_tenant);
    let identity = Identity::from_principal(Arc::new(Principal::new(tenant, actor.as_str(), Role::Viewer)));
    let work = {
        let app = Arc::clone(app);
        async move {
            app.store().access().end_person_sessions(id).await?;
            app.reload_access().await?;
            Ok::<_, ServiceError>(())
        }
    };
    Ok(audit::run_change(app, &identity, ("session.end", subject), work).await?)
}
