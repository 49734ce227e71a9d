//! Checks references to code artifacts, and inline ones.

use haft_core::artifact::{MAX_SOURCE, check_inputs};
use haft_core::implementation::Artifact;

use super::{CheckReport, named};

pub(super) fn check(artifact: &Artifact, checked: &mut CheckReport) {
    match (&artifact.artifact_id, &artifact.source) {
        (Some(id), None) => {
            named(id, "artifact_id", checked);
            stored(artifact, checked);
        }
        (None, Some(source)) => inline(artifact, source, checked),
        (Some(_), Some(_)) => checked.error(
            "implementation.source",
            "conflicting_fields",
            "conflicts with `artifact_id`; set one of them",
        ),
        (None, None) => checked.error(
            "implementation.artifact_id",
            "missing_field",
            "set `artifact_id`, or `source` with inline code",
        ),
    }
}

/// The language and the inputs of a stored artifact are stored with it.
fn stored(artifact: &Artifact, checked: &mut CheckReport) {
    let given = [("runtime", artifact.runtime.is_some()), ("inputs", !artifact.inputs.is_empty())];
    for (key, _) in given.into_iter().filter(|(_, given)| *given) {
        checked.error(
            format!("implementation.{key}"),
            "conflicting_fields",
            "conflicts with `artifact_id`, whose artifact has it; remove it",
        );
    }
}

fn inline(artifact: &Artifact, source: &str, checked: &mut CheckReport) {
    named(source, "source", checked);
    if source.len() > MAX_SOURCE {
        let message = format!("the source has {} bytes; the limit is {MAX_SOURCE}", source.len());
        checked.error("implementation.source", "too_large", message);
    }
    if artifact.runtime.is_none() {
        checked.error("implementation.runtime", "missing_field", "set it to `bash`, `python` or `wasm`");
    }
    if artifact.artifact_version.is_some() {
        let message = "has no effect on inline source; remove it";
        checked.error("implementation.artifact_version", "conflicting_fields", message);
    }
    for mut problem in check_inputs(&artifact.inputs) {
        problem.field = format!("implementation.{}", problem.field);
        checked.errors.push(problem);
    }
}
