//! `/code-artifacts`: stored programs and their versions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use haft_core::artifact::{
    ArtifactContent, ArtifactDefinition, ArtifactInput, ArtifactRuntime, ArtifactVersion, CodeArtifact,
};
use haft_core::live::ResourceAction;
use haft_core::name::ArtifactSlug;
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::resource_view::{ResourceListParams, ResourceState, expected_revision};
use haft_platform::Installation;
use haft_platform::artifacts::{self, ArtifactFields};
use haft_platform::resources;

/// An artifact to create, or its next version. In an update, missing fields stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ArtifactBody {
    /// The name by which tools refer to it. Required for a new one.
    #[schema(value_type = Option<String>, example = "word-count", max_length = 64)]
    slug: Option<ArtifactSlug>,
    /// The name that people see; default: the slug.
    #[schema(example = "Word count", max_length = 200)]
    name: Option<String>,
    /// What it does.
    #[schema(max_length = 4000)]
    description: Option<String>,
    /// What runs it. Required for a new one.
    runtime: Option<ArtifactRuntime>,
    /// The source; that of `wasm` is in base64. Required for a new one.
    #[schema(example = "echo \"$text\" | wc -w")]
    source: Option<String>,
    /// The inputs. Without any, all arguments are passed on.
    inputs: Option<Vec<ArtifactInput>>,
}

impl From<ArtifactBody> for ArtifactFields {
    fn from(body: ArtifactBody) -> Self {
        let ArtifactBody { slug, name, description, runtime, source, inputs } = body;
        Self { slug, name, description, runtime, source, inputs }
    }
}

/// A code artifact with its newest version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CodeArtifact)]
pub(crate) struct ArtifactView {
    #[schema(value_type = Uuid)]
    id: haft_core::id::ArtifactId,
    #[schema(value_type = String, example = "word-count")]
    slug: ArtifactSlug,
    #[serde(flatten)]
    content: Arc<ArtifactContent>,
    /// The number of the newest version.
    version: u32,
    /// The hash of that version.
    hash: String,
    #[serde(flatten)]
    state: ResourceState,
}

impl From<CodeArtifact> for ArtifactView {
    fn from(artifact: CodeArtifact) -> Self {
        Self {
            id: artifact.id,
            slug: artifact.definition.slug.clone(),
            content: Arc::clone(&artifact.definition.content),
            version: artifact.revision,
            state: ResourceState::of(&artifact),
            hash: artifact.hash,
        }
    }
}

/// The artifacts of the tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArtifactList {
    artifacts: Vec<ArtifactView>,
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A page of versions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArtifactVersionList {
    versions: Vec<ArtifactVersion>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List the code artifacts by slug.
#[utoipa::path(
    get, path = "/code-artifacts", tag = "artifacts", params(ResourceListParams, PageParams),
    responses((status = 200, body = Success<ArtifactList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("artifacts")?;
    let query = page.of_resources(&params)?;
    let (mut found, total) = app.store().artifacts().list(&identity.tenant, &query).await?;
    let next_page_token = page.truncate(&mut found, |artifact| artifact.definition.slug.to_string());
    let artifacts = found.into_iter().map(ArtifactView::from).collect();
    Ok(success(ArtifactList { artifacts, total, next_page_token }).into_response())
}

/// Create a code artifact.
#[utoipa::path(
    post, path = "/code-artifacts", tag = "artifacts", request_body = ArtifactBody,
    responses(
        (status = 201, body = Success<ArtifactView>), (status = 400, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let fields = body.json::<ArtifactBody>()?.into();
    let artifact = artifacts::create(&app, &identity, fields).await?;
    Ok(created(ArtifactView::from(artifact)))
}

/// Get a code artifact with its newest version.
#[utoipa::path(
    get, path = "/code-artifacts/{id}", tag = "artifacts", params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    responses((status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    Ok(success(ArtifactView::from(resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?))
        .into_response())
}

/// Append a version to a code artifact. Versions never change: tools that pin one keep it. Others follow the newest one in
/// debug mode, and the published one in production.
#[utoipa::path(
    put, path = "/code-artifacts/{id}", tag = "artifacts", params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    request_body = ArtifactBody,
    responses(
        (status = 200, body = Success<ArtifactView>), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let earlier = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let fields = body.json::<ArtifactBody>()?.into();
    let updated = artifacts::update(&app, &identity, &earlier, fields, expected_revision(&headers)?).await?;
    Ok(success(ArtifactView::from(updated)).into_response())
}

/// Delete a code artifact with its versions. If tools use it, nothing is deleted unless `force=true`.
#[utoipa::path(
    delete, path = "/code-artifacts/{id}", tag = "artifacts",
    params(
        ("id" = String, Path, description = "Id or slug", example = "word-count"),
        ("force" = Option<bool>, Query, description = "Delete it although tools use it; these are not ready afterwards"),
    ),
    responses(
        (status = 200, body = Success<Message>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Tools use it"),
    )
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let artifact = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    resources::note(&identity, ResourceAction::Deleted, &*artifact.definition);
    artifacts::delete(&app, &identity, &artifact, params.flag("force")?).await?;
    Ok(reply::message(format!("Artifact '{}' deleted", artifact.definition.slug)))
}

/// List the versions of a code artifact, newest first.
#[utoipa::path(
    get, path = "/code-artifacts/{id}/versions", tag = "artifacts",
    params(("id" = String, Path, description = "Id or slug", example = "word-count"), PageParams),
    responses((status = 200, body = Success<ArtifactVersionList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn versions(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let artifact = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let page = params.page("versions")?;
    let store = app.store().artifacts();
    let found = store.revisions_before(&identity.tenant, artifact.id, page.after()?, page.size).await?;
    let versions: Vec<ArtifactVersion> = found.into_iter().map(ArtifactVersion::from).collect();
    let next_page_token = page.token_after(&versions, page.size, |version| version.version.to_string());
    Ok(success(ArtifactVersionList { versions, next_page_token }).into_response())
}

/// Get a version of a code artifact.
#[utoipa::path(
    get, path = "/code-artifacts/{id}/versions/{number}", tag = "artifacts",
    params(
        ("id" = String, Path, description = "Id or slug", example = "word-count"),
        ("number" = u32, Path, minimum = 1, maximum = 2_147_483_647, example = 1),
    ),
    responses((status = 200, body = Success<ArtifactVersion>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn version(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let artifact = resources::find::<ArtifactDefinition>(&app, &identity, &reference).await?;
    let version = resources::revision(&app, &artifact, "version", &number).await?;
    Ok(success(ArtifactVersion::from(version)).into_response())
}
