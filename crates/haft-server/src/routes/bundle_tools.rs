//! `/tools/bundles/{id}/tools/{name}/version/{version}`: tools by their full address. These routes create
//! and never replace.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::{Backup, FileForm, NewTool};
use haft_core::name::{ToolName, Version, check_without_underscore};
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_core::tool::Source;
use haft_runtime::registry::Entry;

use crate::app::App;
use crate::body::Body;
use crate::definition::{self, Place};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, created, success};
use crate::routes::invoke::Incoming;
use crate::routes::tool::{Deleted, Switch};
use crate::routes::{bundles, invoke, tool};
use crate::view::{OutcomeView, ToolView};

type Address = (String, String, String);

/// Checks the parts of an address and names the tool by them.
fn reference(app: &App, identity: &Identity, address: &Address) -> Result<ToolRef, ApiError> {
    let (bundle, name, version) = address;
    check_without_underscore(name)?;
    check_without_underscore(version)?;
    let bundle = bundles::find(app, identity, bundle)?;
    Ok(ToolRef::Name {
        bundle: Some(bundle.slug.clone()),
        name: ToolName::new(name)?,
        version: Some(Version::new(version)?),
    })
}

fn find(app: &App, identity: &Identity, address: &Address) -> Result<Arc<Entry>, ApiError> {
    let reference = reference(app, identity, address)?;
    let snapshot = app.registry().snapshot();
    Ok(Arc::clone(snapshot.resolve(&identity.tenant, &reference)?))
}

/// Show a tool.
#[utoipa::path(
    get, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(address): Path<Address>,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &address)?;
    app.registry().verified(&entry).await;
    Ok(success(ToolView::from(&*entry)).into_response())
}

/// Create a tool; an existing pair of name and version is a conflict and stays as it is.
#[utoipa::path(
    put, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    request_body(content_type = "application/json", content = Object),
    responses((status = 201, body = Success<ToolView>), (status = 400, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(address): Path<Address>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ToolRef::Name { bundle: Some(bundle), name, version: Some(version) } =
        reference(&app, &identity, &address)?
    else {
        return Err(ApiError::bad_request("the address does not name a tool"));
    };
    bundles::refuse_disabled(&*bundles::find(&app, &identity, &address.0)?)?;
    let place = Place { name: Some(name.to_string()), version: Some(version.to_string()) };
    let reading = definition::read(&body, &place)?;
    if reading.spec.name != name || reading.spec.version != version {
        let message = format!(
            "the definition is `{}@{}`, the address says `{name}@{version}`; they must agree",
            reading.spec.name, reading.spec.version
        );
        return Err(ApiError::bad_request(message));
    }
    definition::refuse_published(reading.status, None)?;
    let text = definition::author_text(&body, &reading);
    let folder = app.store().bundle_folder(&identity.tenant, &bundle);
    let checked = definition::check(&app, &identity.tenant, (reading, text.as_ref()), None, folder).await?;
    let new = NewTool {
        tenant: identity.tenant.clone(),
        bundle,
        spec: checked.spec,
        form: FileForm::Json,
        text,
        enabled: checked.enabled.unwrap_or(true),
        source: Source::User,
    };
    let tool = app.catalog().create_tool(new).await?;
    app.audit(&identity, "tool.create", &tool.qualified());
    let mut view = tool::view(&app, &identity, tool.id).await?;
    view.warnings = checked.warnings;
    Ok(created(view))
}

/// Switch a tool on or off.
#[utoipa::path(
    patch, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)), request_body = Switch,
    responses((status = 200, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(address): Path<Address>,
    body: Body,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &address)?;
    tool::switch(&app, &identity, &entry, &body).await
}

/// Delete a tool for good.
#[utoipa::path(
    delete, path = "/tools/bundles/{id}/tools/{name}/version/{version}", tag = "bundles",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path),
        ("keep_backup" = Option<bool>, Query)),
    responses((status = 200, body = Success<Deleted>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(address): Path<Address>,
    params: Params,
) -> Result<Response, ApiError> {
    let entry = find(&app, &identity, &address)?;
    let keep = params.get("keep_backup").is_none() || params.flag("keep_backup")?;
    tool::remove(&app, &identity, &entry, if keep { Backup::Keep } else { Backup::Discard }).await
}

/// Call a tool.
#[utoipa::path(
    post, path = "/tools/bundles/{id}/tools/{name}/version/{version}/invoke", tag = "calls",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    request_body = invoke::Invocation,
    responses((status = 200, body = OutcomeView<'static>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub(crate) async fn call(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(address): Path<Address>,
    call: Incoming,
) -> Result<Response, ApiError> {
    let reference = reference(&app, &identity, &address)?;
    invoke::run(&app, &identity, reference.into(), call).await
}
