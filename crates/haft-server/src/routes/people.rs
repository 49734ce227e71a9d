//! `/people` and `/service-accounts`: who acts in a tenant, and what they may do there.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use haft_api::people::{
    ActorPatch, ActorView, HandOver, HandedOver, InvitationView, InvitedPerson, NewPerson, NewServiceAccount,
    PeopleList, ServiceAccountList,
};
use haft_core::actor::{ActorKind, ActorStatus};
use haft_core::token::Role;

use crate::actor_view;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::routes::sessions::origin;
use crate::routes::tokens::rate_text;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::people::{self, Member, MemberFields, MemberFilter, MemberUpdate, RightsFields};

/// Returns a page of the members of one kind, with the number of all.
async fn page(
    app: &Installation,
    identity: &Identity,
    kind: ActorKind,
    params: &Params,
) -> Result<(Vec<ActorView>, usize, Option<String>), ApiError> {
    let page = params.page(kind.as_str())?;
    let status = match params.get("status") {
        Some(text) => Some(ActorStatus::parse(text).ok_or_else(|| {
            ApiError::bad_request("invalid `status`: expected `invited`, `active` or `disabled`")
        })?),
        None => None,
    };
    let filter = MemberFilter { q: params.get("q").filter(|q| !q.is_empty()), status };
    let all = people::list(app, identity, kind, params.get("tenant"), filter).await?;
    let total = all.len();
    // In the order of the list: no name contains a NUL.
    let key = |member: &Member| format!("{}\0{}", member.actor.name.to_lowercase(), member.actor.id);
    let (selected, next_page_token) = page.select(all, key);
    Ok((selected.into_iter().map(actor_view::member).collect(), total, next_page_token))
}

async fn find(
    app: &Installation,
    identity: &Identity,
    kind: ActorKind,
    (params, id): (&Params, &str),
) -> Result<Member, ApiError> {
    Ok(people::find(app, identity, kind, (params.get("tenant"), id)).await?)
}

async fn update(
    app: &Installation,
    identity: &Identity,
    member: Member,
    patch: ActorPatch,
) -> Result<Response, ApiError> {
    let ActorPatch { name, email, description, responsible, status, rate_limit, .. } = patch;
    let rights = RightsFields {
        role: patch.role,
        elevated: patch.elevated,
        platform: patch.platform,
        tools: patch.tools,
    };
    let update = MemberUpdate {
        name,
        email,
        description,
        responsible,
        status,
        rights,
        rate_limit: rate_limit.map(|rate| rate.map(rate_text)),
        groups: patch.groups,
        ..MemberUpdate::default()
    };
    let member = people::update(app, app.runs(), identity, member, update).await?;
    Ok(success(actor_view::member(member)).into_response())
}

/// List the people of a tenant, by name.
#[utoipa::path(
    get, path = "/people", tag = "people",
    params(
        PageParams,
        ("q" = Option<String>, Query, description = "A part of the name or the e-mail address", example = "ann"),
        ("status" = Option<ActorStatus>, Query, description = "Only people with this status"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<PeopleList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let (people, total, next_page_token) = page(&app, &identity, ActorKind::Person, &params).await?;
    Ok(success(PeopleList { people, total, next_page_token }).into_response())
}

/// Invite a person; only this response contains the link with which they log in.
#[utoipa::path(
    post, path = "/people", tag = "people", request_body = NewPerson,
    responses(
        (status = 201, body = Success<InvitedPerson>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn invite(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewPerson = body.json()?;
    let rights = RightsFields {
        role: Some(new.role),
        elevated: Some(new.elevated),
        platform: Some(new.platform),
        tools: new.tools.map(Some),
    };
    let fields = MemberFields {
        name: new.name,
        email: new.email,
        rights,
        rate_limit: new.rate_limit.map(rate_text),
        groups: new.groups,
        tenant: new.tenant,
        ..MemberFields::default()
    };
    let member = people::new_member(&app, &identity, ActorKind::Person, fields).await?;
    let link = app.create_invitation(member.actor.id, &member.tenant).await?;
    let invitation = actor_view::invitation(&origin(&app, &headers), &link);
    Ok(created(InvitedPerson { person: actor_view::member(member), invitation }))
}

/// Get a person.
#[utoipa::path(
    get, path = "/people/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, the e-mail address, or a name that nobody else has", example = "ann@example.com"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<ActorView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::Person, (&params, &id)).await?;
    Ok(success(actor_view::member(member)).into_response())
}

/// Change a person. Disabling one ends sessions, tokens and running work at once.
#[utoipa::path(
    patch, path = "/people/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, the e-mail address, or a name that nobody else has", example = "ann@example.com"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    request_body = ActorPatch,
    responses(
        (status = 200, body = Success<ActorView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::Person, (&params, &id)).await?;
    update(&app, &identity, member, body.json()?).await
}

/// Remove a person from a tenant, with tokens and sessions there. One without any tenant is deleted.
#[utoipa::path(
    delete, path = "/people/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, the e-mail address, or a name that nobody else has", example = "ann@example.com"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses(
        (status = 200, body = Success<Message>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::Person, (&params, &id)).await?;
    people::remove(&app, app.runs(), &identity, &member).await?;
    Ok(reply::message("Person removed"))
}

/// Create a new link with which a person logs in; earlier ones stop working. Only this response contains it.
#[utoipa::path(
    post, path = "/people/{id}/invitation", tag = "people",
    params(
        ("id" = String, Path, description = "The id, the e-mail address, or a name that nobody else has", example = "ann@example.com"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses(
        (status = 201, body = Success<InvitationView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn invite_again(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::Person, (&params, &id)).await?;
    let link = people::invite_again(&app, &identity, &member).await?;
    Ok(created(actor_view::invitation(&origin(&app, &headers), &link)))
}

/// Give what a person owns in a tenant to another one: chats, and the responsibility for service accounts.
#[utoipa::path(
    post, path = "/people/{id}/hand-over", tag = "people",
    params(
        ("id" = String, Path, description = "The id, the e-mail address, or a name that nobody else has", example = "ann@example.com"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    request_body = HandOver,
    responses((status = 200, body = Success<HandedOver>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn hand_over(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::Person, (&params, &id)).await?;
    let HandOver { to } = body.json()?;
    let done = people::hand_over(&app, &identity, &member, &to).await?;
    let view = HandedOver { chats: done.chats, service_accounts: done.service_accounts };
    Ok(success(view).into_response())
}

/// List the service accounts of a tenant, by name.
#[utoipa::path(
    get, path = "/service-accounts", tag = "people",
    params(
        PageParams,
        ("q" = Option<String>, Query, description = "A part of the name", example = "nightly"),
        ("status" = Option<ActorStatus>, Query, description = "Only service accounts with this status"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<ServiceAccountList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list_service_accounts(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let (service_accounts, total, next_page_token) =
        page(&app, &identity, ActorKind::ServiceAccount, &params).await?;
    Ok(success(ServiceAccountList { service_accounts, total, next_page_token }).into_response())
}

/// Create a service account. Its tokens are created with `POST /tokens` and `owner`.
#[utoipa::path(
    post, path = "/service-accounts", tag = "people", request_body = NewServiceAccount,
    responses(
        (status = 201, body = Success<ActorView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn create_service_account(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewServiceAccount = body.json()?;
    let rights = RightsFields {
        role: Some(new.role),
        elevated: Some(new.elevated),
        platform: None,
        tools: new.tools.map(Some),
    };
    let fields = MemberFields {
        name: new.name,
        email: None,
        description: new.description,
        responsible: new.responsible,
        rights,
        rate_limit: new.rate_limit.map(rate_text),
        groups: new.groups,
        tenant: new.tenant,
        ..MemberFields::default()
    };
    let member = people::new_member(&app, &identity, ActorKind::ServiceAccount, fields).await?;
    Ok(created(actor_view::member(member)))
}

/// Get a service account.
#[utoipa::path(
    get, path = "/service-accounts/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, or a name that no other one has", example = "nightly-report"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<ActorView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get_service_account(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::ServiceAccount, (&params, &id)).await?;
    Ok(success(actor_view::member(member)).into_response())
}

/// Change a service account. Disabling one ends its tokens and running work at once.
#[utoipa::path(
    patch, path = "/service-accounts/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, or a name that no other one has", example = "nightly-report"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    request_body = ActorPatch,
    responses(
        (status = 200, body = Success<ActorView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn patch_service_account(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::ServiceAccount, (&params, &id)).await?;
    update(&app, &identity, member, body.json()?).await
}

/// Delete a service account with its tokens.
#[utoipa::path(
    delete, path = "/service-accounts/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id, or a name that no other one has", example = "nightly-report"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses(
        (status = 200, body = Success<Message>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn delete_service_account(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let member = find(&app, &identity, ActorKind::ServiceAccount, (&params, &id)).await?;
    people::remove(&app, app.runs(), &identity, &member).await?;
    Ok(reply::message("Service account deleted"))
}
