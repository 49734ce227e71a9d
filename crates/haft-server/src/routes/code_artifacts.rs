//! `/code-artifacts`: stored programs and their versions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::artifact::{ArtifactContent, ArtifactInput, ArtifactRuntime, ArtifactVersion, CodeArtifact};
use haft_core::implementation::Implementation;
use haft_core::name::{ArtifactSlug, ToolName};
use haft_core::outcome::ErrorCode;
use haft_core::problem::{MISSING_IMPORT, NOT_CHECKED, Problem};
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_runtime::artifact::runtime_spec;
use haft_store::NewArtifact;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::artifacts::tools_using;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};

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

impl ArtifactBody {
    fn complete(self, earlier: Option<&CodeArtifact>) -> Result<NewArtifact, ApiError> {
        let known = earlier.map(|artifact| (*artifact.newest.content).clone());
        let missing = |field: &str| ApiError::bad_request(format!("missing `{field}`"));
        let slug = self.slug.or_else(|| earlier.map(|artifact| artifact.slug.clone()));
        let slug = slug.ok_or_else(|| missing("slug"))?;
        let name = self.name.filter(|name| !name.trim().is_empty());
        let name = name.or_else(|| known.as_ref().map(|known| known.name.clone()));
        let runtime = self.runtime.or_else(|| known.as_ref().map(|known| known.runtime));
        let source = self.source.or_else(|| known.as_ref().map(|known| known.source.clone()));
        let description = self.description.or_else(|| known.as_ref().map(|known| known.description.clone()));
        let inputs = self.inputs.or_else(|| known.map(|known| known.inputs));
        let content = ArtifactContent {
            name: name.unwrap_or_else(|| slug.to_string()),
            description: description.unwrap_or_default(),
            runtime: runtime.ok_or_else(|| missing("runtime"))?,
            source: source.ok_or_else(|| missing("source"))?,
            inputs: inputs.unwrap_or_default(),
        };
        match content.check() {
            problems if problems.is_empty() => Ok(NewArtifact { slug, content }),
            problems => Err(ApiError::invalid_definition(&problems)),
        }
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
    #[schema(value_type = Option<String>, required)]
    created_by: Option<Arc<str>>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When the newest version was stored.
    #[schema(value_type = String, format = DateTime)]
    modified_at: Timestamp,
}

impl From<CodeArtifact> for ArtifactView {
    fn from(artifact: CodeArtifact) -> Self {
        Self {
            id: artifact.id,
            slug: artifact.slug,
            content: artifact.newest.content,
            version: artifact.newest.version,
            hash: artifact.newest.hash,
            created_by: artifact.created_by,
            created_at: artifact.created_at,
            modified_at: artifact.newest.created_at,
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

async fn find(app: &App, identity: &Identity, reference: &str) -> Result<CodeArtifact, ApiError> {
    let found = app.store().artifact(&identity.tenant, reference).await?;
    found.ok_or_else(|| ApiError::not_found("artifact", reference))
}

/// Checks that the source can run, as far as its executor can tell: bash and python syntax, WebAssembly modules.
pub(crate) async fn check_source(app: &App, content: &ArtifactContent) -> Result<(), ApiError> {
    let name = ToolName::new("artifact").map_err(|error| ApiError::bad_request(error.to_string()))?;
    let base = ToolSpec::new(name, Implementation::Artifact(haft_core::implementation::Artifact::default()));
    let spec = Arc::new(runtime_spec(&base, content.runtime, &content.source, &content.inputs));
    let executors = Arc::clone(app.registry().executors());
    let compiled = Arc::clone(&spec);
    let prepared = tokio::task::spawn_blocking(move || executors.prepare(&compiled, None).map(drop)).await;
    let prepared = prepared.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
    let mut problems = match prepared {
        Err(problems) => problems,
        Ok(()) => app.registry().executors().examine(&spec).await,
    };
    let is_warning = |problem: &Problem| [NOT_CHECKED, MISSING_IMPORT].contains(&problem.code.as_str());
    problems.retain(|problem| !is_warning(problem));
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &mut problems {
        if problem.field.starts_with("implementation") {
            "source".clone_into(&mut problem.field);
        }
    }
    Err(ApiError::invalid_definition(&problems))
}

/// List the code artifacts by slug.
#[utoipa::path(
    get, path = "/code-artifacts", tag = "artifacts", params(PageParams),
    responses((status = 200, body = Success<ArtifactList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("artifacts")?;
    let mut found = app.store().artifacts(&identity.tenant, &page.of_store()).await?;
    let total = app.store().artifact_count(&identity.tenant).await?;
    let next_page_token = page.truncate(&mut found, |artifact| artifact.slug.to_string());
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
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let new = body.json::<ArtifactBody>()?.complete(None)?;
    audit::note(&identity, "code_artifact.create", new.slug.as_str());
    check_source(&app, &new.content).await?;
    let artifact = app.store().create_artifact(&identity.tenant, new).await?;
    app.artifacts().refresh_names().await?;
    Ok(created(ArtifactView::from(artifact)))
}

/// Get a code artifact with its newest version.
#[utoipa::path(
    get, path = "/code-artifacts/{id}", tag = "artifacts", params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    responses((status = 200, body = Success<ArtifactView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    Ok(success(ArtifactView::from(find(&app, &identity, &reference).await?)).into_response())
}

/// Append a version to a code artifact. Versions never change: tools that pin one keep it, others follow the newest.
#[utoipa::path(
    put, path = "/code-artifacts/{id}", tag = "artifacts", params(("id" = String, Path, description = "Id or slug", example = "word-count")),
    request_body = ArtifactBody,
    responses(
        (status = 200, body = Success<ArtifactView>), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let earlier = find(&app, &identity, &reference).await?;
    let new = body.json::<ArtifactBody>()?.complete(Some(&earlier))?;
    audit::note(&identity, "code_artifact.update", new.slug.as_str());
    check_source(&app, &new.content).await?;
    let updated = app.store().update_artifact(&identity.tenant, earlier.id, new).await?;
    app.artifacts().refresh_names().await?;
    let updated = updated.ok_or_else(|| ApiError::not_found("artifact", &reference))?;
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let artifact = find(&app, &identity, &reference).await?;
    audit::note(&identity, "code_artifact.delete", artifact.slug.as_str());
    let tools = tools_using(&app, &artifact);
    if !params.flag("force")? && !tools.is_empty() {
        let shown: Vec<String> = tools.iter().take(20).map(|tool| format!("`{tool}`")).collect();
        let more = if tools.len() > shown.len() {
            format!(" and {} more", tools.len() - shown.len())
        } else {
            String::new()
        };
        let message = format!(
            "artifact `{}` is used by {}{more}; change these tools, or delete it with `force=true`",
            artifact.slug,
            shown.join(", ")
        );
        return Err(ApiError::new(ErrorCode::Conflict, message).with_details(json!({"tools": tools})));
    }
    app.store().delete_artifact(&identity.tenant, artifact.id).await?;
    app.artifacts().refresh_names().await?;
    Ok(reply::message(format!("Artifact '{}' deleted", artifact.slug)))
}

/// List the versions of a code artifact, newest first.
#[utoipa::path(
    get, path = "/code-artifacts/{id}/versions", tag = "artifacts",
    params(("id" = String, Path, description = "Id or slug", example = "word-count"), PageParams),
    responses((status = 200, body = Success<ArtifactVersionList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn versions(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let artifact = find(&app, &identity, &reference).await?;
    let page = params.page("versions")?;
    let versions = app.store().artifact_versions(artifact.id, page.after()?, page.size).await?;
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((reference, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let artifact = find(&app, &identity, &reference).await?;
    let missing = || ApiError::not_found("version", &number);
    let parsed = number.parse().ok().filter(|number: &u32| *number > 0).ok_or_else(missing)?;
    let found =
        app.store().artifact_version(&identity.tenant, &artifact.id.to_string(), Some(parsed)).await?;
    let (_, version) = found.ok_or_else(missing)?;
    Ok(success(version).into_response())
}
