//! `/groups`: rights that several people and service accounts of a tenant have.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::people::{GroupList, GroupPatch, GroupView, NewGroup};
use haft_core::token::Role;

use crate::actor_view;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::people::{self, GroupFields, GroupUpdate, GroupWithMembers, RightsFields};

/// List the groups of a tenant, by name.
#[utoipa::path(
    get, path = "/groups", tag = "people",
    params(
        PageParams,
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<GroupList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("groups")?;
    let all = people::groups(&app, &identity, params.get("tenant")).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |found: &GroupWithMembers| found.group.name.clone());
    let groups = selected.into_iter().map(actor_view::group).collect();
    Ok(success(GroupList { groups, total, next_page_token }).into_response())
}

/// Create a group.
#[utoipa::path(
    post, path = "/groups", tag = "people", request_body = NewGroup,
    responses(
        (status = 201, body = Success<GroupView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewGroup = body.json()?;
    let rights = RightsFields {
        role: Some(new.role),
        elevated: Some(new.elevated),
        platform: None,
        tools: Some(new.tools),
    };
    let fields = GroupFields {
        name: new.name,
        description: new.description,
        rights,
        members: new.members,
        tenant: new.tenant,
        provisioned: None,
    };
    Ok(created(actor_view::group(people::create_group(&app, &identity, fields).await?)))
}

/// Get a group.
#[utoipa::path(
    get, path = "/groups/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id or the name", example = "finance"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<GroupView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let all = people::groups(&app, &identity, params.get("tenant")).await?;
    let mut all = all.into_iter();
    let found = all.find(|found| found.group.name == id || found.group.id.to_string() == id);
    let found = found.ok_or_else(|| ApiError::not_found("group", &id))?;
    Ok(success(actor_view::group(found)).into_response())
}

/// Change a group. What its members may do changes at once.
#[utoipa::path(
    patch, path = "/groups/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id or the name", example = "finance"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    request_body = GroupPatch,
    responses(
        (status = 200, body = Success<GroupView>),
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
    identity.require(Role::Admin)?;
    let patch: GroupPatch = body.json()?;
    let rights =
        RightsFields { role: patch.role, elevated: patch.elevated, platform: None, tools: patch.tools };
    let update = GroupUpdate {
        name: patch.name,
        description: patch.description,
        rights,
        members: patch.members,
        add_members: patch.add_members,
        remove_members: patch.remove_members,
        provisioned: None,
    };
    let group = people::update_group(&app, &identity, (params.get("tenant"), &id), update).await?;
    Ok(success(actor_view::group(group)).into_response())
}

/// Delete a group; its members lose what it gives.
#[utoipa::path(
    delete, path = "/groups/{id}", tag = "people",
    params(
        ("id" = String, Path, description = "The id or the name", example = "finance"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    people::delete_group(&app, &identity, (params.get("tenant"), &id)).await?;
    Ok(reply::message("Group deleted"))
}
