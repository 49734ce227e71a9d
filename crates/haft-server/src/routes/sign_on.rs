//! `/sign-on`: the issuers of OpenID Connect, and what a login would get.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use haft_api::people::RightsView;
use haft_api::sign_on::{
    IssuerList, IssuerView, SignOnOutcome, SignOnRuleView, SignOnTest, SignOnTestBody, SignOnTestPerson,
    SignOnTestRule, SignOnTestTenant,
};

use crate::authentication::Caller;
use crate::body::Body;
use crate::browser;
use crate::error::{ApiError, ErrorBody};
use crate::reply::{Success, success};
use crate::routes::issuer_links::callback_url;
use haft_platform::Installation;
use haft_platform::sign_on::{self, IssuerReport, Trial, TrialPerson};

/// List the issuers, for platform admins: their settings without secrets, and whether they answer.
#[utoipa::path(
    get, path = "/sign-on", tag = "people",
    responses((status = 200, body = Success<IssuerList>), (status = 403, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let reports = sign_on::issuers(&app, &identity).await?;
    let base = browser::own_url(&app, &headers);
    let issuers = reports.into_iter().map(|report| issuer(report, &base)).collect();
    Ok(success(IssuerList { issuers }).into_response())
}

/// Try the claims of a login: which person, tenants, role and groups it would get, and why. Nobody is logged in.
#[utoipa::path(
    post, path = "/sign-on/test", tag = "people", request_body = SignOnTestBody,
    responses(
        (status = 200, body = Success<SignOnTest>),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn test(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let SignOnTestBody { issuer, claims } = body.json()?;
    let trial = sign_on::trial(&app, &identity, issuer.as_deref(), &claims).await?;
    Ok(success(tested(trial)).into_response())
}

fn issuer(report: IssuerReport, base: &str) -> IssuerView {
    let IssuerReport { settings, state } = report;
    let rules = settings.rules.iter().map(|rule| SignOnRuleView {
        when: rule.when.as_ref().map(|(source, _)| source.clone()),
        tenant: rule.tenant.to_string(),
        rights: RightsView::from(&rule.rights),
        groups: rule.groups.clone(),
        groups_claim: rule.groups_claim.clone(),
    });
    IssuerView {
        callback_url: callback_url(base, &settings.id),
        rules: rules.collect(),
        id: settings.id,
        name: settings.name,
        issuer: settings.issuer,
        client_id: settings.client_id,
        scopes: settings.scopes,
        audiences: settings.audiences,
        link_by_email: settings.link_by_email,
        is_ready: state.keys.is_some(),
        error: state.error,
    }
}

fn tested(trial: Trial) -> SignOnTest {
    let Trial { issuer, claims, person, rules, tenants, warnings } = trial;
    let existing = |outcome, actor: haft_core::actor::ActorRecord| SignOnTestPerson {
        outcome,
        id: Some(actor.id.0),
        name: actor.name,
        email: actor.email,
    };
    let person = match person {
        TrialPerson::Known(actor) => existing(SignOnOutcome::Known, actor),
        TrialPerson::Linked(actor) => existing(SignOnOutcome::Linked, actor),
        TrialPerson::Disabled(actor) => existing(SignOnOutcome::Disabled, actor),
        TrialPerson::New { has_email } => SignOnTestPerson {
            outcome: SignOnOutcome::New,
            id: None,
            name: claims.name,
            email: claims.verified_email.filter(|_| has_email),
        },
        TrialPerson::Nobody => SignOnTestPerson {
            outcome: SignOnOutcome::NothingAssigned,
            id: None,
            name: claims.name,
            email: claims.verified_email,
        },
    };
    let rules = rules.into_iter().map(|rule| SignOnTestRule {
        number: rule.number,
        when: rule.when,
        tenant: rule.tenant.to_string(),
        role: rule.role,
        matched: rule.matched == Ok(true),
        error: rule.matched.err(),
    });
    let tenants = tenants.into_iter().map(|one| SignOnTestTenant {
        tenant: one.tenant.to_string(),
        rights: RightsView::from(&one.rights),
        groups: one.groups,
    });
    SignOnTest {
        issuer,
        subject: claims.subject,
        person,
        rules: rules.collect(),
        tenants: tenants.collect(),
        warnings,
    }
}
