//! The routes that every kind of resource has: list, create, get, update, enable, delete and undelete, publish, deprecate,
//! revisions, restore, diff, usage.
//!
//! A kind implements [`RoutedKind`]; [`routes`] adds its routes with their description.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing;
use haft_core::token::Role;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::Type;
use utoipa_axum::router::OpenApiRouter;

use super::resource_definitions;
use super::resource_document::{Route, query, revision_number};
use super::revisions::revision_diff;
use super::routed_kind::{Application, RoutedKind};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::params::Params;
use crate::reply::{self, Message, success};
use crate::resource_view::ResourcePatch;
use haft_api::revision::RevisionDiff;
use haft_api::usage::ResourceUsage;
use haft_core::bundle::REAP_AFTER_HOURS;
use haft_platform::resources;

/// Returns the routes of a kind.
pub(crate) fn routes<S: RoutedKind>() -> OpenApiRouter<Application> {
    resource_definitions::routes::<S>().merge(life_cycle::<S>()).merge(revisions::<S>())
}

fn life_cycle<S: RoutedKind>() -> OpenApiRouter<Application> {
    let (kind, one) = (S::KIND, S::KIND.with_article());
    OpenApiRouter::new()
        .routes(
            Route::new::<S, S::View>(HttpMethod::Get, "", format!("Get {one}."))
                .handled_by(routing::get(get::<S>)),
        )
        .routes(
            Route::new::<S, S::View>(HttpMethod::Patch, "", format!("Enable or disable {one}."))
                .body::<ResourcePatch>()
                .handled_by(routing::patch(patch::<S>)),
        )
        .routes(
            Route::new::<S, Message>(
                HttpMethod::Delete,
                "",
                format!(
                    "Delete {one}; for {REAP_AFTER_HOURS} hours it can be restored. If others refer to it, nothing is \
                     deleted unless `force=true`."
                ),
            )
            .parameter(query("force", Type::Boolean, "Delete it even if others refer to it"))
            .conflict("Others refer to it; `details.used_by` has their names")
            .handled_by(routing::delete(delete::<S>)),
        )
        .routes(
            Route::new::<S, S::View>(
                HttpMethod::Post,
                "/undelete",
                format!("Restore {one} that was deleted, as it was: with its revisions and its status."),
            )
            .conflict("It is not deleted, or another one has its slug now")
            .handled_by(routing::post(undelete::<S>)),
        )
        .routes(
            Route::new::<S, ResourceUsage>(
                HttpMethod::Get,
                "/usage",
                format!("Return who uses the {kind}: tools, agents, tokens, policy rules and recent callers."),
            )
            .handled_by(routing::get(usage::<S>)),
        )
}

fn revisions<S: RoutedKind>() -> OpenApiRouter<Application> {
    let one = S::KIND.with_article();
    let (revisions, number) = S::REVISIONS;
    let restore = format!("/{revisions}/{{{number}}}/restore");
    OpenApiRouter::new()
        .routes(
            Route::new::<S, S::View>(
                HttpMethod::Post,
                "/publish",
                format!("Publish the newest revision of {one}: production uses it."),
            )
            .conflict("It has changed meanwhile, or cannot be used in production")
            .handled_by(routing::post(publish::<S>)),
        )
        .routes(
            Route::new::<S, S::View>(
                HttpMethod::Post,
                "/deprecate",
                format!("Deprecate {one}: it still works."),
            )
            .handled_by(routing::post(deprecate::<S>)),
        )
        .routes(
            Route::new::<S, S::View>(
                HttpMethod::Post,
                &restore,
                format!("Restore an earlier revision of {one} as the newest one."),
            )
            .parameter(revision_number(number))
            .conflict("It has changed meanwhile, or a file defines it")
            .handled_by(routing::post(restore_revision::<S>)),
        )
        .routes(
            Route::new::<S, RevisionDiff>(
                HttpMethod::Get,
                "/diff",
                "Compare two revisions, field by field.".to_owned(),
            )
            .parameter(query(
                "from",
                Type::Integer,
                "A revision; default: the published one, otherwise the previous one",
            ))
            .parameter(query("to", Type::Integer, "A revision; default: the newest one"))
            .handled_by(routing::get(diff::<S>)),
        )
}

async fn get<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    Ok(success(S::view(&app, found, Vec::new()).await?).into_response())
}

async fn patch<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ResourcePatch { enabled } = body.json()?;
    let changed = resources::set_enabled::<S>(&app, &identity, &reference, enabled).await?;
    Ok(success(S::view(&app, changed, Vec::new()).await?).into_response())
}

async fn delete<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let deleted = resources::delete::<S>(&app, &identity, &reference, params.flag("force")?).await?;
    let (kind, slug) = (S::KIND, deleted.definition.slug());
    Ok(reply::message(format!("deleted {kind} `{slug}`; it can be restored for {REAP_AFTER_HOURS} hours")))
}

async fn undelete<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let restored = resources::undelete::<S>(&app, &identity, &reference).await?;
    Ok(success(S::view(&app, restored, Vec::new()).await?).into_response())
}

async fn publish<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let (published, warnings) = resources::publish::<S>(&app, &identity, &reference).await?;
    Ok(success(S::view(&app, published, warnings).await?).into_response())
}

async fn deprecate<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let changed = resources::deprecate::<S>(&app, &identity, &reference).await?;
    Ok(success(S::view(&app, changed, Vec::new()).await?).into_response())
}

async fn restore_revision<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    let noun = S::REVISIONS.0.trim_end_matches('s');
    let revision = resources::revision(&app, &found, noun, &number).await?;
    let (restored, warnings) = resources::restore(&app, &identity, &found, &revision.definition).await?;
    Ok(success(S::view(&app, restored, warnings).await?).into_response())
}

async fn diff<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    let difference = resources::diff(&app, &found, params.get("from"), params.get("to")).await?;
    Ok(success(revision_diff(difference)).into_response())
}

async fn usage<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    Ok(success(super::usage::of_resource(&app, &found).await?).into_response())
}
