//! The definitions of code artifacts, and their checks.

use std::sync::Arc;

use haft_core::artifact::{
    ArtifactContent, ArtifactDefinition, ArtifactInput, ArtifactRuntime, CodeArtifact,
};
use haft_core::implementation::Implementation;
use haft_core::name::{ArtifactSlug, ToolName};
use haft_core::outcome::ErrorCode;
use haft_core::problem::{MISSING_IMPORT, NOT_CHECKED, Problem};
use haft_core::spec::ToolSpec;
use haft_executors::artifact::runtime_spec;

use crate::context::Context;
use crate::error::ServiceError;

/// Checks that the source can run, as far as its executor can tell: bash and python syntax, WebAssembly modules.
pub async fn check_source(app: &Context, content: &ArtifactContent) -> Result<(), ServiceError> {
    let name = ToolName::new("artifact").map_err(|error| ServiceError::bad_request(error.to_string()))?;
    let base = ToolSpec::new(name, Implementation::Artifact(haft_core::implementation::Artifact::default()));
    let spec = Arc::new(runtime_spec(&base, content.runtime, &content.source, &content.inputs));
    let executors = Arc::clone(app.registry().executors());
    let compiled = Arc::clone(&spec);
    let prepared = tokio::task::spawn_blocking(move || executors.prepare(&compiled, None).map(drop)).await;
    let prepared = prepared.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
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
    Err(ServiceError::invalid_definition(&problems))
}

/// What an artifact becomes; what is missing stays as it is in the version before.
#[derive(Default)]
pub struct ArtifactFields {
    pub slug: Option<ArtifactSlug>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub runtime: Option<ArtifactRuntime>,
    pub source: Option<String>,
    pub inputs: Option<Vec<ArtifactInput>>,
}

impl ArtifactFields {
    /// Returns the definition; `earlier` is the newest one of the artifact, if there is one.
    pub fn complete(self, earlier: Option<&CodeArtifact>) -> Result<ArtifactDefinition, ServiceError> {
        let known = earlier.map(|artifact| (*artifact.definition.content).clone());
        let missing = |field: &str| ServiceError::bad_request(format!("missing `{field}`"));
        let slug = self.slug.or_else(|| earlier.map(|artifact| artifact.definition.slug.clone()));
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
            problems if problems.is_empty() => Ok(ArtifactDefinition { slug, content: content.into() }),
            problems => Err(ServiceError::invalid_definition(&problems)),
        }
    }
}
