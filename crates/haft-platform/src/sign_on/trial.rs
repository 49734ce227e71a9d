//! What a login would get, and why, without anybody logging in; and the state of the issuers.

use std::sync::Arc;

use haft_core::actor::{ActorRecord, ActorStatus, Rights};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_oauth::jwt::Claims;

use super::claims::LoginClaims;
use super::person::{AssignedGroups, evaluate, is_enabled};
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::issuers::{Issuer, IssuerSettings, IssuerState};

/// The largest claims of a trial.
const MAX_CLAIMS_BYTES: usize = 64 * 1024;

/// An issuer and whether it answers.
pub struct IssuerReport {
    pub settings: IssuerSettings,
    pub state: IssuerState,
}

/// What a login would get.
pub struct Trial {
    pub issuer: String,
    pub claims: LoginClaims,
    pub person: TrialPerson,
    pub rules: Vec<TrialRule>,
    pub tenants: Vec<TrialTenant>,
    /// What is wrong with the rules or the claims.
    pub warnings: Vec<String>,
}

/// Whom a login would log in.
pub enum TrialPerson {
    /// Somebody who has logged in before.
    Known(ActorRecord),
    /// Somebody who is found by the e-mail address.
    Linked(ActorRecord),
    /// Somebody new; whether the e-mail address is free.
    New { has_email: bool },
    /// Somebody who is disabled.
    Disabled(ActorRecord),
    /// Nobody: nothing is assigned.
    Nobody,
}

/// Whether a rule matches.
pub struct TrialRule {
    /// Counted from 1.
    pub number: usize,
    pub when: Option<String>,
    pub tenant: TenantId,
    pub role: String,
    /// An error says why the condition has no value.
    pub matched: Result<bool, String>,
}

/// What a login would get in a tenant from the rules.
pub struct TrialTenant {
    pub tenant: TenantId,
    pub rights: Rights,
    pub groups: Vec<String>,
}

/// Returns all issuers and whether they answer.
pub async fn issuers(app: &Context, identity: &Identity) -> Result<Vec<IssuerReport>, ServiceError> {
    identity.require_platform()?;
    let now = app.now();
    let asked = app.issuers().all().iter().map(|issuer| async move {
        IssuerReport { settings: issuer.settings.clone(), state: issuer.state(now).await }
    });
    Ok(futures_util::future::join_all(asked).await)
}

/// Tries claims: returns what a login with them would get, and changes nothing.
pub async fn trial(
    app: &Context,
    identity: &Identity,
    issuer: Option<&str>,
    claims: &Claims,
) -> Result<Trial, ServiceError> {
    identity.require_platform()?;
    let issuer = named_issuer(app, issuer)?;
    let size = serde_json::to_vec(claims).map_or(0, |text| text.len());
    if size > MAX_CLAIMS_BYTES {
        let message = format!("`claims` has {size} bytes; the limit is {MAX_CLAIMS_BYTES}");
        return Err(ServiceError::new(ErrorCode::TooLarge, message));
    }
    let read = LoginClaims::read(claims);
    if read.subject.is_empty() {
        return Err(ServiceError::bad_request("`claims` must have `sub`, the subject at the issuer"));
    }
    let (outcomes, assigned) = evaluate(issuer, claims).await?;
    let groups = app.store().access().groups().await?;
    let (mut warnings, mut tenants) = (Vec::new(), Vec::new());
    for one in assigned {
        if !is_enabled(app, &one.tenant) {
            warnings.push(format!("the tenant `{}` does not exist or is disabled", one.tenant));
            continue;
        }
        let found = AssignedGroups::find(&one, &groups);
        let missing =
            found.missing.iter().map(|name| format!("the tenant `{}` has no group `{name}`", one.tenant));
        warnings.extend(missing);
        let groups = found.found.into_iter().map(|(_, name)| name).collect();
        tenants.push(TrialTenant { tenant: one.tenant, rights: one.rights, groups });
    }
    if claims.contains_key("email") && read.verified_email.is_none() {
        warnings.push(
            "the e-mail address is ignored: `email_verified` is not `true`, or it is not an address"
                .to_owned(),
        );
    }
    let rules = outcomes.into_iter().enumerate().map(|(index, outcome)| TrialRule {
        number: index + 1,
        when: outcome.rule.when.map(|(source, _)| source),
        tenant: outcome.rule.tenant,
        role: outcome.rule.rights.role.as_str().to_owned(),
        matched: outcome.matched,
    });
    let rules = rules.collect();
    let person = person(app, issuer, &read, !tenants.is_empty()).await?;
    Ok(Trial { issuer: issuer.settings.id.clone(), claims: read, person, rules, tenants, warnings })
}

/// Returns the named issuer, or the only one.
fn named_issuer<'a>(app: &'a Context, named: Option<&str>) -> Result<&'a Arc<Issuer>, ServiceError> {
    match (named, app.issuers().all()) {
        (Some(id), _) => app.issuers().find(id).ok_or_else(|| ServiceError::not_found("issuer", id)),
        (None, [only]) => Ok(only),
        (None, []) => Err(ServiceError::bad_request(
            "no issuer is configured; add `[[sign_on.issuers]]` to `haft.toml`",
        )),
        (None, several) => {
            let ids: Vec<_> = several.iter().map(|issuer| format!("`{}`", issuer.settings.id)).collect();
            Err(ServiceError::bad_request(format!("`issuer` is missing: expected one of {}", ids.join(", "))))
        }
    }
}

async fn person(
    app: &Context,
    issuer: &Issuer,
    claims: &LoginClaims,
    is_assigned: bool,
) -> Result<TrialPerson, ServiceError> {
    let access = app.store().access();
    let actors = access.actors().await?;
    let known = access.find_identity(&issuer.settings.issuer, &claims.subject).await?;
    if let Some(known) = known.and_then(|id| actors.iter().find(|actor| actor.id == id)) {
        let is_member = access.memberships().await?.iter().any(|membership| membership.actor == known.id);
        return Ok(match known.status {
            ActorStatus::Disabled => TrialPerson::Disabled(known.clone()),
            ActorStatus::Active | ActorStatus::Invited if is_member || is_assigned => {
                TrialPerson::Known(known.clone())
            }
            ActorStatus::Active | ActorStatus::Invited => TrialPerson::Nobody,
        });
    }
    let key = claims.verified_email.as_ref().map(|email| email.to_lowercase());
    let with_email = key.as_ref().and_then(|key| {
        actors.iter().find(|actor| actor.email.as_ref().is_some_and(|own| own.to_lowercase() == *key))
    });
    if let Some(actor) = with_email.filter(|_| issuer.settings.link_by_email)
        && actor.status != ActorStatus::Disabled
        && !access.has_identity(&issuer.settings.issuer, actor.id).await?
    {
        return Ok(TrialPerson::Linked(actor.clone()));
    }
    let has_email = key.is_some() && with_email.is_none();
    Ok(if is_assigned { TrialPerson::New { has_email } } else { TrialPerson::Nobody })
}
