//! A definition as the text of a file.

use haft_core::catalog::FileForm;
use haft_core::check;
use haft_core::dialect::{self, Defaults};
use haft_core::problem;
use haft_core::spec::ToolSpec;

use super::layout;

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    pub(crate) spec: ToolSpec,
    /// The tool's switch, where the file names it.
    pub(crate) enabled: Option<bool>,
}

/// Reads the text of a definition file; the error names the place and the remedy.
pub(crate) fn read(text: &str, form: FileForm, path: &str) -> Result<Definition, String> {
    let (name, version) = layout::hints(path);
    let defaults = Defaults { name: Some(name.to_owned()), version: version.map(str::to_owned) };
    let reading = dialect::read(text, form, &defaults).map_err(|problems| problem::join(&problems))?;
    for warning in &reading.warnings {
        tracing::warn!(path, %warning, "doubtful definition");
    }
    // What the API would refuse is no better for having come by file.
    let faults = check::definition(&reading.spec).errors;
    if !faults.is_empty() {
        return Err(problem::join(&faults));
    }
    Ok(Definition { spec: reading.spec, enabled: reading.enabled })
}

/// Writes a definition.
pub(crate) fn write(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> String {
    dialect::write(spec, form, enabled)
}
