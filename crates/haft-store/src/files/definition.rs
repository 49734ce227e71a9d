//! A definition as the text of a file.

use haft_core::catalog::FileForm;
use haft_core::name::Version;
use haft_core::problem::{self, Problem};
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};

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
    let reading = parse(text, form, path).map_err(|problems| problem::join(&problems))?;
    for warning in &reading.warnings {
        tracing::warn!(path, %warning, "doubtful definition");
    }
    // What the API would refuse is no better for having come by file.
    let mut faults = check::definition(&reading.spec).errors;
    if !faults.is_empty() {
        dialect::locate(text, form, &mut faults);
        return Err(problem::join(&faults));
    }
    Ok(Definition { spec: reading.spec, enabled: reading.enabled })
}

/// Reads the text of a definition file as it stands; what it leaves out comes from the name of the file.
pub(crate) fn parse(text: &str, form: FileForm, path: &str) -> Result<ParsedDefinition, Vec<Problem>> {
    let (name, version) = layout::hints(path);
    let defaults = Defaults { name: Some(name.to_owned()), version: version.map(str::to_owned) };
    dialect::read(text, form, &defaults)
}

/// Returns the text with another version in the line that says which it has or, in YAML, could say so. Elsewhere the
/// name of the file may say it. It is a guess: the caller reads what came of it.
pub(crate) fn relabelled(text: &str, from: &Version, to: &Version) -> String {
    let key = |line: &str| match line.trim_start_matches([' ', '\t', '{']) {
        json if json.starts_with("\"version\"") => true,
        _ => line.starts_with("version:"),
    };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(line) = lines.iter_mut().find(|line| key(line)) {
        *line = line.replacen(from.as_str(), to.as_str(), 1);
    } else if let Some(at) = lines.iter().position(|line| line.starts_with("name:") && line.ends_with('\n')) {
        lines.insert(at + 1, format!("version: \"{to}\"\n"));
    }
    lines.concat()
}

/// Writes a definition.
pub(crate) fn write(spec: &ToolSpec, form: FileForm, enabled: Option<bool>) -> String {
    dialect::write(spec, form, enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_changes_in_its_place() {
        let check = |text: &str, expected: &str| {
            let (from, to) = (Version::new("1.0.0").unwrap(), Version::new("2.0.0").unwrap());
            assert_eq!(relabelled(text, &from, &to), expected);
        };
        check("# a\nname: x\nversion: 1.0.0 # b\n", "# a\nname: x\nversion: 2.0.0 # b\n");
        check("version: '1.0.0'", "version: '2.0.0'");
        check("name: x # a\nparams: []\n", "name: x # a\nversion: \"2.0.0\"\nparams: []\n");
        check("---\nname: x\n---\necho\n", "---\nname: x\nversion: \"2.0.0\"\n---\necho\n");
        check("{ \"version\" : \"1.0.0\",\n\"x\": 1 }", "{ \"version\" : \"2.0.0\",\n\"x\": 1 }");
        check("{\"name\": \"x\"}", "{\"name\": \"x\"}");
        check("name: x", "name: x");
        check("", "");
    }
}
