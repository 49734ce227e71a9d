//! What one principal may give another: rights in a tenant, never more than its own.

use haft_core::actor::Rights;
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_oauth::scope;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Returns the tenant that a request names: its own, or any for platform admins.
pub(crate) fn named_tenant(
    app: &Context,
    identity: &Identity,
    named: Option<&str>,
) -> Result<TenantId, ServiceError> {
    let Some(named) = named.filter(|named| *named != identity.tenant.as_str()) else {
        return Ok(identity.tenant.clone());
    };
    if identity.require_platform().is_err() {
        // The same for tenants that do not exist.
        return Err(forbidden("`tenant` must be your own tenant"));
    }
    let id: Option<TenantId> = named.parse().ok();
    id.filter(|id| app.access().tenant(id).is_some()).ok_or_else(|| ServiceError::not_found("tenant", named))
}

/// Rejects rights that are more than those of the principal that gives them.
pub(crate) fn check_rights(
    identity: &Identity,
    tenant: &TenantId,
    rights: &Rights,
) -> Result<(), ServiceError> {
    if rights.platform && (rights.role != Role::Admin || !tenant.is_default()) {
        return Err(ServiceError::bad_request(
            "invalid `platform`: a platform admin has the role `admin` and the tenant `default`",
        ));
    }
    if rights.platform {
        identity.require_platform()?;
    }
    identity.require(rights.role)?;
    if rights.elevated && !identity.elevated {
        return Err(forbidden("your token is not elevated, so it cannot give access to one that is"));
    }
    if identity.tools.covers(&rights.tools) {
        return Ok(());
    }
    let own = identity.tools.rules().unwrap_or_default();
    let own: Vec<String> = own.iter().map(|rule| format!("`{rule}`")).collect();
    Err(forbidden(format!("`tools` must not allow more than your own token: {}", own.join(", "))))
}

/// Rejects a rate limit that allows more calls than each of the principal's own.
pub(crate) fn check_rate(
    own: impl IntoIterator<Item = Option<CallRate>>,
    rate: Option<CallRate>,
) -> Result<(), ServiceError> {
    let covers = |own: CallRate| rate.is_some_and(|rate| own.covers(rate));
    if own.into_iter().flatten().all(covers) {
        return Ok(());
    }
    Err(forbidden("`rate_limit` must not allow more calls than your own"))
}

/// Returns the rate limit of what somebody with these rate limits creates, unless the request names one: the lowest.
pub(crate) fn default_rate(own: impl IntoIterator<Item = Option<CallRate>>) -> Option<CallRate> {
    own.into_iter().flatten().reduce(|lowest, rate| if lowest.covers(rate) { rate } else { lowest })
}

/// Returns the error of a request that would give too much.
pub(crate) fn forbidden(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::Forbidden, message)
}

/// Rejects a caller within a call whose role is too low. If that is only what the person allowed the application or the
/// token, the error says so: asking again for more helps, while asking an admin does not.
pub(crate) fn require_in_call(app: &Context, identity: &Identity, role: Role) -> Result<(), ServiceError> {
    identity.require(role).map_err(|error| {
        let person = identity.actor.as_ref();
        let person = person.and_then(|actor| app.access().principal_of_person(actor.id, &identity.tenant));
        if person.is_none_or(|person| person.role < role) {
            return error;
        }
        let message = format!(
            "{}, but its person has more: connect the application again with the scope `{}`, or use a token with this role",
            error.message,
            scope::of_role(role)
        );
        ServiceError { message, ..error }
    })
}
