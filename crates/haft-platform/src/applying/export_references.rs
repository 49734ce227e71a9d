//! Writes pipelines and code artifacts as files, and the references of tools to them. Secrets become `${VAR}`.

use haft_core::artifact::ArtifactDefinition;
use haft_core::id::ArtifactId;
use haft_core::implementation::Implementation;
use haft_core::retrieval::{Pipeline, PipelineDefinition};
use haft_core::spec::ToolSpec;
use haft_definition::{code_artifact, pipeline};
use haft_package::files::PackageFiles;
use haft_package::path::PackagePath;
use haft_store::{ApplyState, ResourceHead};

use super::model_url::hide_in_url;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// How many names are tried for one file.
const MAX_NAMES: u32 = 20;

/// Writes the pipelines of a tenant to the folder `pipelines`, without their documents.
pub(super) fn write_pipelines(pipelines: &[Pipeline], files: &mut PackageFiles) -> Result<(), ServiceError> {
    let mut sorted: Vec<&Pipeline> = pipelines.iter().collect();
    // Databases sort capital letters differently, and the names of files depend on the order.
    sorted.sort_by(|one, other| one.definition.slug.cmp(&other.definition.slug));
    for stored in sorted {
        let mut definition = PipelineDefinition::clone(&stored.definition);
        hide_secrets(&mut definition);
        let text = pipeline::write_yaml(&definition, stored.status);
        add(files, "pipelines", definition.slug.as_str(), &text)?;
    }
    Ok(())
}

/// Writes the newest versions of the code artifacts of a tenant to the folder `artifacts`.
pub(super) async fn write_artifacts(
    app: &Context,
    identity: &Identity,
    artifacts: &[ResourceHead<ArtifactId>],
    files: &mut PackageFiles,
) -> Result<(), ServiceError> {
    let mut sorted: Vec<&ResourceHead<ArtifactId>> = artifacts.iter().collect();
    sorted.sort_by(|one, other| one.slug.cmp(&other.slug));
    for head in sorted {
        // One at a time: a source can be large.
        let found = app.store().artifacts().get(&identity.tenant, head.id).await?;
        let Some(stored) = found else { continue };
        let ArtifactDefinition { slug, content } = &*stored.definition;
        let text = code_artifact::write_yaml(slug, content, stored.status);
        add(files, "artifacts", slug.as_str(), &text)?;
    }
    Ok(())
}

/// Adds a file. Some file systems cannot tell `docs.yaml` from `Docs.yaml`, so the second one gets a number.
pub(super) fn add(
    files: &mut PackageFiles,
    folder: &str,
    slug: &str,
    text: &str,
) -> Result<(), ServiceError> {
    let mut last = Ok(());
    for number in 1..=MAX_NAMES {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = format!("{folder}/{slug}{suffix}.yaml");
        let path = PackagePath::new(&path)
            .map_err(|error| ServiceError::bad_request(format!("cannot export `{path}`: {error}")))?;
        last = files.add(path, text.to_owned(), false);
        if last.is_ok() {
            break;
        }
    }
    last.map_err(|problem| ServiceError::invalid_definition(&[problem]))
}

/// Replaces secrets by references. The key of the model is a credential and only named, so what is left are secrets in
/// its address.
pub(super) fn hide_secrets(definition: &mut PipelineDefinition) {
    if let Some(embedding) = &mut definition.embedding
        && let Some(hidden) = hide_in_url(&embedding.base_url)
    {
        embedding.base_url = hidden;
    }
}

/// Replaces the id of a pipeline, an artifact or an agent by its slug: another installation has other ids.
pub(super) fn refer_by_slug(spec: &mut ToolSpec, state: &ApplyState) {
    match &mut spec.implementation {
        Implementation::RagRetrieval(rag) => {
            let is_target = |stored: &&Pipeline| stored.id.to_string() == rag.pipeline_id;
            if let Some(stored) = state.pipelines.iter().find(is_target) {
                rag.pipeline_id = stored.definition.slug.to_string();
            }
        }
        Implementation::Artifact(artifact) => {
            let Some(reference) = &mut artifact.artifact_id else { return };
            let is_target = |head: &&ResourceHead<ArtifactId>| head.id.to_string() == *reference;
            if let Some(head) = state.artifacts.iter().find(is_target) {
                reference.clone_from(&head.slug);
            }
        }
        Implementation::AgentCall(call) => {
            let Some(id) = &call.target_agent_id else { return };
            let target = state.agents.iter().find(|agent| agent.id.to_string() == *id);
            if let Some(agent) = target {
                call.target_agent_slug = Some(agent.definition.slug.to_string());
                call.target_agent_id = None;
            }
        }
        _ => {}
    }
}
