//! `/code-artifacts`: stored programs and their versions.

use haft_api::artifact::{ArtifactList, ArtifactVersion, ArtifactVersionList, ArtifactView};
use haft_core::artifact::{ArtifactDefinition, ArtifactInput, ArtifactRuntime, CodeArtifact};
use haft_core::name::{ArtifactSlug, TenantId};
use haft_core::problem::Problem;
use haft_core::resource::ResourceRevision;
use serde::Deserialize;
use utoipa::ToSchema;

use super::routed_kind::{ListedResources, ListedRevisions, RoutedKind};
use crate::body::Body;
use crate::error::ApiError;
use haft_platform::Installation;
use haft_platform::artifacts::ArtifactFields;

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
    /// Its runtime. Required for a new artifact.
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

impl RoutedKind for ArtifactDefinition {
    const PATH: &'static str = "/code-artifacts";
    const REFERENCE: &'static str = "id";
    const REVISIONS: (&'static str, &'static str) = ("versions", "number");
    const TAG: &'static str = "artifacts";
    const EXAMPLE: &'static str = "word-count";
    const UPDATE: &'static str = "Append a version to a code artifact. Versions never change: tools that pin one keep it. Others \
        follow the newest one in debug mode, and the published one in production.";
    type Body = ArtifactBody;
    type View = ArtifactView;
    type List = ArtifactList;
    type Revision = ArtifactVersion;
    type Revisions = ArtifactVersionList;

    fn read(body: &Body, earlier: Option<&CodeArtifact>) -> Result<(Self, Vec<Problem>), ApiError> {
        let fields = ArtifactFields::from(body.json::<ArtifactBody>()?);
        Ok((fields.complete(earlier)?, Vec::new()))
    }

    async fn view(
        _app: &Installation,
        artifact: CodeArtifact,
        _warnings: Vec<Problem>,
    ) -> Result<ArtifactView, ApiError> {
        Ok(ArtifactView::from(artifact))
    }

    async fn views(
        _app: &Installation,
        _tenant: &TenantId,
        found: Vec<CodeArtifact>,
    ) -> Result<Vec<ArtifactView>, ApiError> {
        Ok(found.into_iter().map(ArtifactView::from).collect())
    }

    fn list(page: ListedResources<ArtifactView>) -> ArtifactList {
        let ListedResources { items, total, broken_files, next_page_token } = page;
        ArtifactList { artifacts: items, total, broken_files, next_page_token }
    }

    fn revision(revision: ResourceRevision<Self>, _published: Option<u32>) -> ArtifactVersion {
        ArtifactVersion::from(revision)
    }

    fn revisions(page: ListedRevisions<ArtifactVersion>) -> ArtifactVersionList {
        let ListedRevisions { items, total, next_page_token } = page;
        ArtifactVersionList { total, versions: items, next_page_token }
    }
}
