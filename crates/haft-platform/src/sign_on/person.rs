//! The person of verified claims: found or created, with what the rules of the issuer assign.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::actor::GroupRecord;
use haft_core::id::{ActorId, GroupId};
use haft_core::name::TenantId;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_oauth::jwt::Claims;
use haft_store::{SignOnAssignment, SignOnLogin, SignOnPerson, SignOnResult};
use uuid::Uuid;

use super::claims::LoginClaims;
use super::error::SignOnError;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::issuers::{self, Issuer, RuleOutcome, TenantAssignment};
use crate::people::MAX_MEMBERS;

/// The most groups of a tenant that somebody is a member of.
const MAX_GROUPS: usize = 64;

/// The groups that rules assign in a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssignedGroups {
    pub found: Vec<(GroupId, String)>,
    /// Names in rules that no group of the tenant has.
    pub missing: Vec<String>,
}

impl AssignedGroups {
    /// Finds the groups of an assignment.
    pub(super) fn find(assignment: &TenantAssignment, groups: &[GroupRecord]) -> Self {
        let own = || groups.iter().filter(|group| group.tenant == assignment.tenant);
        let names: BTreeSet<&str> = own().map(|group| group.name.as_str()).collect();
        let wanted = |group: &&GroupRecord| {
            assignment.groups.contains(&group.name) || assignment.claimed_groups.contains(&group.name)
        };
        let mut found: Vec<_> = own().filter(wanted).map(|group| (group.id, group.name.clone())).collect();
        found.sort_by(|a, b| a.1.cmp(&b.1));
        found.truncate(MAX_GROUPS);
        let missing = assignment.groups.iter().filter(|name| !names.contains(name.as_str())).cloned();
        Self { found, missing: missing.collect() }
    }
}

/// Evaluates the rules of an issuer, which may take time.
pub(super) async fn evaluate(
    issuer: &Arc<Issuer>,
    claims: &Claims,
) -> Result<(Vec<RuleOutcome>, Vec<TenantAssignment>), ServiceError> {
    let (issuer, claims) = (Arc::clone(issuer), claims.clone());
    let work = move || {
        let outcomes = issuers::evaluate(&issuer.settings, &claims);
        let assignments = issuers::assignments(&outcomes, &claims);
        (outcomes, assignments)
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "the rules of an issuer failed");
        ServiceError::new(
            haft_core::outcome::ErrorCode::Internal,
            "the rules of the issuer failed; see the server log",
        )
    })
}

/// Returns whether somebody can be a member of a tenant.
pub(super) fn is_enabled(app: &Context, tenant: &TenantId) -> bool {
    app.access().tenant(tenant).is_some_and(|tenant| tenant.enabled)
}

/// Finds or creates the person of verified claims of an issuer, and applies its rules.
pub async fn person_of_claims(
    app: &Arc<Context>,
    issuer: &Arc<Issuer>,
    claims: &Claims,
) -> Result<ActorId, SignOnError> {
    let settings = &issuer.settings;
    let read = LoginClaims::read(claims);
    let (outcomes, assigned) = evaluate(issuer, claims).await?;
    for (index, outcome) in outcomes.iter().enumerate() {
        if let Err(reason) = &outcome.matched {
            tracing::warn!(
                issuer = settings.id,
                rule = index + 1,
                reason,
                "the condition of a sign-on rule failed"
            );
        }
    }
    let groups = app.store().access().groups().await?;
    let mut assignments = Vec::new();
    for one in assigned.into_iter().filter(|one| is_enabled(app, &one.tenant)) {
        let found = AssignedGroups::find(&one, &groups).found;
        let groups = found.into_iter().map(|(id, _)| id).collect();
        assignments.push(SignOnAssignment { tenant: one.tenant, rights: one.rights, groups });
    }
    check_room(app, issuer, &read.subject, &assignments).await?;
    let tenant = assignments.first().map_or_else(TenantId::default_tenant, |one| one.tenant.clone());
    let login = SignOnLogin {
        issuer: settings.issuer.clone(),
        subject: read.subject.clone(),
        link_email: read.verified_email.clone().filter(|_| settings.link_by_email),
        new: SignOnPerson {
            id: ActorId(Uuid::now_v7()),
            name: read.name.clone(),
            email: read.verified_email,
        },
        assignments,
    };
    let target = format!("{} ({}: {})", read.name, settings.id, read.subject);
    let actor = format!("sign-on {}", settings.id);
    let identity = Identity::from_principal(Arc::new(Principal::new(tenant, actor.as_str(), Role::Viewer)));
    let work = {
        let app = Arc::clone(app);
        async move {
            let result = app.store().access().sign_on(login).await?;
            app.reload_access().await?;
            Ok::<_, ServiceError>(result)
        }
    };
    let outcome = |result: &Result<SignOnResult, ServiceError>| match result {
        Ok(SignOnResult::Person { .. }) => audit::SUCCESS,
        Ok(SignOnResult::Disabled | SignOnResult::NothingAssigned) => {
            haft_core::outcome::ErrorCode::Forbidden.as_str()
        }
        Err(error) => error.code.as_str(),
    };
    let result = audit::run_recorded(app, &identity, ("person.sign_on", &target), work, outcome).await??;
    match result {
        SignOnResult::Person { id, .. } => Ok(id),
        SignOnResult::Disabled => Err(SignOnError::Disabled),
        SignOnResult::NothingAssigned => {
            Err(SignOnError::NothingAssigned { issuer: settings.name.clone(), subject: read.subject })
        }
    }
}

/// Rejects a login that would make somebody a member of a tenant that has as many as it may.
async fn check_room(
    app: &Context,
    issuer: &Issuer,
    subject: &str,
    assignments: &[SignOnAssignment],
) -> Result<(), SignOnError> {
    let access = app.store().access();
    // Whoever is known is a member of most of these tenants already.
    if assignments.is_empty() || access.find_identity(&issuer.settings.issuer, subject).await?.is_some() {
        return Ok(());
    }
    let memberships = access.memberships().await?;
    for one in assignments {
        if memberships.iter().filter(|membership| membership.tenant == one.tenant).count() >= MAX_MEMBERS {
            return Err(SignOnError::TenantFull(one.tenant.to_string()));
        }
    }
    Ok(())
}

/// Returns the tenant of a login: the named one, the only one, `default`, or the first.
pub(crate) fn choose_tenant(
    app: &Context,
    id: ActorId,
    named: Option<&TenantId>,
) -> Result<TenantId, SignOnError> {
    let tenants = app.access().tenants_of_person(id);
    if let Some(named) = named {
        // The same for tenants that do not exist.
        let found = tenants.into_iter().find(|tenant| tenant == named);
        return found.ok_or_else(|| SignOnError::OtherTenant(named.to_string()));
    }
    let default = tenants.iter().find(|tenant| tenant.is_default());
    // Without any, the tenant was disabled meanwhile.
    default.or_else(|| tenants.first()).cloned().ok_or(SignOnError::Disabled)
}
