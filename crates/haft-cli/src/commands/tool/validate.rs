//! `haft tool validate`: checks a tool, or a file before adding it.

use std::path::Path;

use clap::Args;
use haft_api::validation::ValidationReport;
use haft_core::name::BundleSlug;
use haft_core::problem::Problem;
use serde_json::json;

use super::definition::{self, Form};
use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Check a tool, or a file before adding it
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool or file; `-` for stdin
    target: String,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let target = &arguments.target;
    let request = if is_file(target) {
        let path = Path::new(target);
        let (form, text) = definition::read(path, None)?;
        // The file name is the default for the name of the tool, as in the definitions folder.
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let reference = match bundle_of(path, context) {
            Some(bundle) => format!("{bundle}:{stem}"),
            None => stem.into_owned(),
        };
        let body = json!({"text": text, "format": form.name()});
        Request::post(format!("/api/tools/{}/validate", tool_segment(&reference)), body)
    } else {
        let body = json!({"check_syntax": true, "check_parameters": true});
        Request::post(format!("/api/tools/{}/validate", tool_segment(target)), body)
    };
    let data = context.request(request).await?;
    let found: ValidationReport = view::read(&data)?;
    context.output.data(&data, |output| report(output, target, &found))?;
    if found.valid { Ok(()) } else { Err(CliError::Invalid(target.clone())) }
}

/// Returns the bundle of a file in the definitions folder. The server may not have loaded a new file yet.
fn bundle_of(path: &Path, context: &Context) -> Option<BundleSlug> {
    let folder = std::fs::canonicalize(path.parent()?).ok()?;
    let skills = std::fs::canonicalize(context.home().ok()?.join("skills")).ok()?;
    let bundle = folder.strip_prefix(skills).ok()?;
    BundleSlug::new(bundle.to_str()?).ok()
}

/// Returns whether the target is a file; names of tools contain no dots and no slashes.
fn is_file(target: &str) -> bool {
    target == "-" || target.contains('/') || Form::from_path(Path::new(target)).is_some()
}

fn report(output: &Output, target: &str, found: &ValidationReport) -> Result<(), CliError> {
    let rows: Vec<Vec<String>> = [("error", &found.errors), ("warning", &found.warnings)]
        .into_iter()
        .flat_map(|(kind, problems)| problems.iter().map(move |problem| row(kind, problem)))
        .collect();
    if rows.is_empty() {
        output.note(&format!("`{target}` is valid"));
        return Ok(());
    }
    output.table(&["KIND", "LINE", "FIELD", "MESSAGE"], rows)
}

fn row(kind: &str, problem: &Problem) -> Vec<String> {
    let line = view::optional(problem.line.as_ref());
    vec![kind.to_owned(), line, problem.field.clone(), problem.message.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_distinguished_from_tools() {
        for (target, file) in [
            ("weather", false),
            ("web:weather@1.0.0", false),
            ("a.yaml", true),
            ("./weather", true),
            ("-", true),
        ] {
            assert_eq!(is_file(target), file, "{target}");
        }
    }
}
