//! The text of a definition file.

use haft_core::catalog::FileForm;
use haft_core::name::Version;
use haft_core::problem::{self, Problem};
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_definition::folder::{name_and_version, read_definition};

/// A parsed definition file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    pub(crate) spec: ToolSpec,
    /// Whether the tool is enabled, if the file says so.
    pub(crate) enabled: Option<bool>,
}

/// Parses and checks the text of a definition file; the error names the line and the fix.
pub(crate) fn read(text: &str, form: FileForm, path: &str) -> Result<Definition, String> {
    let parsed = read_definition(text, form, &defaults(path)).map_err(|problems| problem::join(&problems))?;
    for warning in parsed.warnings.iter().chain(&unread_status(parsed.status)) {
        tracing::warn!(path, %warning, "definition warning");
    }
    Ok(Definition { spec: parsed.spec, enabled: parsed.enabled })
}

/// Parses the text of a definition file without checking it.
pub(crate) fn parse(text: &str, form: FileForm, path: &str) -> Result<ParsedDefinition, Vec<Problem>> {
    dialect::read(text, form, &defaults(path))
}

/// Returns the name and version that the file name gives to a definition without them.
fn defaults(path: &str) -> Defaults {
    let (name, version) = name_and_version(path);
    Defaults { name: Some(name.to_owned()), version: version.map(str::to_owned) }
}

/// Replaces the version in the text of a definition, or adds it after the `name:` line of a YAML text.
///
/// Only an attempt: the caller parses the result to verify it.
pub(crate) fn with_version(text: &str, from: &Version, to: &Version) -> String {
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

/// Warns about a status that files of the home folder cannot set, because it would publish an unreviewed definition.
pub(crate) fn unread_status(status: Option<Status>) -> Option<Problem> {
    let status = status.filter(|status| *status != Status::Draft)?.as_str();
    let message = format!(
        "`status: {status}` has no effect in a file of the home folder; publish it, or use `haft apply`"
    );
    Some(Problem::new("status", "ignored", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_replaced_in_place() {
        let check = |text: &str, expected: &str| {
            let (from, to) = (Version::new("1.0.0").unwrap(), Version::new("2.0.0").unwrap());
            assert_eq!(with_version(text, &from, &to), expected);
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
