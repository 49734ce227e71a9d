//! Which tools use an artifact.

use haft_core::artifact::CodeArtifact;
use haft_core::implementation::Implementation;
use haft_core::spec::ToolSpec;

use crate::installation::Installation;

/// Returns the qualified names of the tools of its tenant that use an artifact, in their newest or published revision.
pub(super) fn tools_using(app: &Installation, artifact: &CodeArtifact) -> Vec<String> {
    let id = artifact.id.to_string();
    let uses = |spec: &ToolSpec| match &spec.implementation {
        Implementation::Artifact(used) => {
            let reference = used.artifact_id.as_deref();
            reference
                .is_some_and(|reference| reference == id || reference == artifact.definition.slug.as_str())
        }
        _ => false,
    };
    let snapshot = app.registry().snapshot();
    let own = snapshot.tools(&artifact.tenant).filter(|entry| entry.tool.tenant == artifact.tenant);
    let using = own.filter(|entry| {
        let published = entry.tool.published.as_ref().is_some_and(|(_, spec)| uses(spec));
        uses(&entry.tool.spec) || published
    });
    using.map(|entry| entry.qualified.to_string()).collect()
}
