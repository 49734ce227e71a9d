//! A definition as the text of a file.

use haft_core::catalog::FileForm;
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
    let (_name, _version) = layout::hints(path);
    let _ = form;
    let spec: ToolSpec = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Definition { spec, enabled: None })
}

/// Writes a definition.
pub(crate) fn write(
    spec: &ToolSpec,
    _form: FileForm,
    _enabled: Option<bool>,
) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(spec)?;
    text.push('\n');
    Ok(text)
}
