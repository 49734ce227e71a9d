//! The definitions of resources of every kind: list, create, check, update, and their revisions.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing;
use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, excerpt};
use haft_core::token::Role;
use haft_store::ResourceFileError;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::Type;
use utoipa_axum::router::OpenApiRouter;

use super::resource_document::{Route, if_match, query, revision_number};
use super::routed_kind::{Application, ListedResources, ListedRevisions, RoutedKind};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::params::{PageParams, Params};
use crate::reply::{created, success};
use crate::resource_view::{ResourceListParams, expected_revision};
use haft_api::resource::{BrokenFile, DefinitionCheck};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::identity::Identity;
use haft_platform::resources;

/// The maximum number of listed broken files.
const MAX_FILES: usize = 50;

/// The maximum length of the error of a file, in characters.
const MAX_ERROR: usize = 2000;

/// Returns the routes of a kind.
pub(super) fn routes<S: RoutedKind>() -> OpenApiRouter<Application> {
    definitions::<S>().merge(revisions::<S>())
}

fn definitions<S: RoutedKind>() -> OpenApiRouter<Application> {
    let (one, many) = (S::KIND.with_article(), S::KIND.plural());
    let dry_run = || query("dry_run", Type::Boolean, "Check the definition without storing it");
    OpenApiRouter::new()
        .routes(
            Route::all::<S, S::List>(HttpMethod::Get, "", format!("List {many} by slug."))
                .parameters::<ResourceListParams>()
                .parameters::<PageParams>()
                .handled_by(routing::get(list::<S>)),
        )
        .routes(
            Route::all::<S, S::View>(HttpMethod::Post, "", format!("Create {one}."))
                .returns::<DefinitionCheck>("200", "With `dry_run`: the result of the check")
                .parameter(dry_run())
                .body::<S::Body>()
                .error("400", "")
                .conflict("The slug is taken")
                .handled_by(routing::post(create::<S>)),
        )
        .routes(
            Route::new::<S, S::View>(HttpMethod::Put, "", S::UPDATE.to_owned())
                .parameter(if_match())
                .body::<S::Body>()
                .error("400", "")
                .conflict("It has changed meanwhile, or a file defines it")
                .handled_by(routing::put(update::<S>)),
        )
}

fn revisions<S: RoutedKind>() -> OpenApiRouter<Application> {
    let one = S::KIND.with_article();
    let (revisions, number) = S::REVISIONS;
    OpenApiRouter::new()
        .routes(
            Route::new::<S, S::Revisions>(
                HttpMethod::Get,
                &format!("/{revisions}"),
                format!("List the {revisions} of {one}, newest first."),
            )
            .parameters::<PageParams>()
            .handled_by(routing::get(list_revisions::<S>)),
        )
        .routes(
            Route::new::<S, S::Revision>(
                HttpMethod::Get,
                &format!("/{revisions}/{{{number}}}"),
                format!("Get a {} of {one}, with its definition.", revisions.trim_end_matches('s')),
            )
            .parameter(revision_number(number))
            .handled_by(routing::get(get_revision::<S>)),
        )
}

async fn list<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page(S::KIND.plural())?;
    let query = page.of_resources(&params)?;
    let (mut found, total) = resources::list::<S>(&app, &identity, &query).await?;
    let next_page_token = page.next_of_resources(&query, &mut found);
    let is_first = query.after.is_none() && query.skip == 0 && !query.deleted;
    // The name of a file may name a resource outside of the caller's allow-list.
    let sees_all = identity.role >= Role::Editor || identity.tools.is_unlimited();
    let broken_files =
        if is_first && sees_all { broken_files::<S>(&app, &identity).await? } else { Vec::new() };
    let items = S::views(&app, &identity.tenant, found).await?;
    Ok(success(S::list(ListedResources { items, total, broken_files, next_page_token })).into_response())
}

async fn broken_files<S: RoutedKind>(
    app: &Installation,
    identity: &Identity,
) -> Result<Vec<BrokenFile>, ApiError> {
    let found = app.store().resources::<S>().file_errors(&identity.tenant).await?;
    let shown = found.into_iter().take(MAX_FILES).map(|ResourceFileError { path, error, modified_at }| {
        BrokenFile { path, error: excerpt(&error, MAX_ERROR), modified_at }
    });
    Ok(shown.collect())
}

async fn create<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let is_dry_run = params.flag("dry_run")?;
    let read = S::read(&body, None);
    if is_dry_run {
        audit::note(&identity, &format!("{}.check", S::KIND.as_str()), "");
        let checked = match read {
            Ok((definition, warnings)) => {
                S::check_saved(&app, &identity, &definition).await.map(|more| [warnings, more].concat())
            }
            Err(error) => Err(error.0),
        };
        return Ok(success(checked_definition(checked.map_err(ApiError))?).into_response());
    }
    let (definition, mut warnings) = read?;
    let (resource, more) = resources::create(&app, &identity, definition).await?;
    warnings.extend(more);
    Ok(created(S::view(&app, resource, warnings).await?))
}

/// Returns the result of a check. Errors other than an invalid definition are returned as errors.
fn checked_definition(checked: Result<Vec<Problem>, ApiError>) -> Result<DefinitionCheck, ApiError> {
    match checked {
        Ok(warnings) => Ok(DefinitionCheck { valid: true, errors: Vec::new(), warnings }),
        Err(ApiError(error)) if error.code == ErrorCode::InvalidDefinition => {
            Ok(DefinitionCheck { valid: false, errors: error.problems(), warnings: Vec::new() })
        }
        Err(error) => Err(error),
    }
}

async fn update<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let earlier = resources::find::<S>(&app, &identity, &reference).await?;
    let (definition, mut warnings) = S::read(&body, Some(&earlier))?;
    let expected = expected_revision(&headers)?;
    let (updated, more) = resources::update(&app, &identity, &earlier, definition, expected).await?;
    warnings.extend(more);
    Ok(success(S::view(&app, updated, warnings).await?).into_response())
}

async fn list_revisions<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    let page = params.long_page(S::REVISIONS.0)?;
    let store = app.store().resources::<S>();
    let revisions = store.revisions_before(&identity.tenant, found.id, page.after()?, page.size).await?;
    let next_page_token = page.token_after(&revisions, page.size, |revision| revision.number.to_string());
    let published = found.published_revision();
    let items = revisions.into_iter().map(|revision| S::listed_revision(revision, published)).collect();
    let total = store.count_revisions(found.id).await?;
    Ok(success(S::revisions(ListedRevisions { items, total, next_page_token })).into_response())
}

async fn get_revision<S: RoutedKind>(
    State(app): State<Application>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let found = resources::find::<S>(&app, &identity, &reference).await?;
    let noun = S::REVISIONS.0.trim_end_matches('s');
    let revision = resources::revision(&app, &found, noun, &number).await?;
    Ok(success(S::revision(revision, found.published_revision())).into_response())
}
