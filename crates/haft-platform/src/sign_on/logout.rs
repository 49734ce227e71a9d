//! Logouts: the page of the issuer that ends its own session, and requests of the issuer that end sessions here.

use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_oauth::jwt::{self, Purpose};
use haft_oauth::oidc;
use url::Url;

use super::error::SignOnError;
use super::kept_login;
use super::login::{find, issuer_session};
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

/// Ends what the issuer has logged out (OpenID Connect Back-Channel Logout): the session that it names (`sid`), or else all
/// of a person. What is unknown here has none.
pub async fn end_sessions(app: &Arc<Context>, issuer: &str, logout_token: &str) -> Result<(), SignOnError> {
    let issuer = find(app, issuer)?;
    let settings = &issuer.settings;
    let purpose = Purpose::Logout { client_id: &settings.client_id };
    let verified = issuer.verify(logout_token, purpose, app.now()).await;
    let claims = verified.map_err(|error| SignOnError::of_token(&settings.name, &error))?;
    let subject = claims.get("sub").and_then(|subject| subject.as_str());
    let person = match subject {
        Some(subject) => app.store().access().find_identity(&settings.issuer, subject).await?,
        None => None,
    };
    let session = jwt::session(&claims);
    if person.is_none() && (subject.is_some() || session.is_none()) {
        return Ok(());
    }
    let actor = format!("sign-on {}", settings.id);
    let tenant = person.and_then(|id| app.access().tenants_of_person(id).into_iter().next());
    let tenant = tenant.unwrap_or_else(TenantId::default_tenant);
    let identity = Identity::from_principal(Arc::new(Principal::new(tenant, actor.as_str(), Role::Viewer)));
    let work = {
        let app = Arc::clone(app);
        let named = session.map(|name| issuer_session(&settings.issuer, Some(name)));
        let unnamed = person.map(|id| (id, issuer_session(&settings.issuer, None)));
        let issuer = Arc::clone(issuer);
        async move {
            match (named, person) {
                (Some(named), _) => {
                    let ended = app.store().access().end_issuer_sessions(named.clone(), unnamed).await?;
                    for id in person.into_iter().chain(ended) {
                        kept_login::end_session(&app, &issuer, id, &named).await?;
                    }
                }
                (None, Some(id)) => drop(app.store().access().end_person_sessions(id).await?),
                (None, None) => {}
            }
            app.reload_access().await?;
            Ok::<_, ServiceError>(())
        }
    };
    let target = subject.or(session).unwrap_or_default();
    Ok(audit::run_change(app, &identity, ("session.end", target), work).await?)
}
