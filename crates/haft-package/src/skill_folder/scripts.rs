//! The scripts of a skill as tools.
//!
//! A script expects command-line arguments, the files beside it, and the user's files in the working folder. So each
//! script becomes a Python tool whose function, in the generated module [`RUNNER`], starts it in the workspace.

use std::collections::HashSet;
use std::fmt::Write as _;

use haft_core::implementation::{Implementation, Python, ScriptRuntime};
use haft_core::name::ToolName;
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use serde_json::json;

use super::instructions::instructions_name;
use crate::files::{PackageFile, PackageFiles};
use crate::path::PackagePath;

/// The generated module that starts the scripts of a skill.
pub const RUNNER: &str = "haft_skill_scripts.py";

/// The maximum number of scripts that become tools.
const MAX_SCRIPTS: usize = 100;
/// The maximum length of a description that is taken from a script, in characters.
const MAX_SUMMARY: usize = 300;
/// How much of a script is searched for a description, in bytes.
const MAX_HEAD: usize = 8 * 1024;

/// A script and the tool that runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillScript {
    /// The file.
    pub path: PackagePath,
    /// Its language.
    pub runtime: ScriptRuntime,
    /// The tool. Its argument `args` is the list of command-line arguments, `stdin` the text for standard input.
    pub tool: ToolSpec,
}

impl SkillScript {
    /// Returns the name of its function in [`RUNNER`].
    fn function(&self) -> &str {
        match &self.tool.implementation {
            Implementation::Python(python) => {
                python.entrypoint.split_once(':').map_or("", |(_, function)| function)
            }
            _ => "",
        }
    }
}

/// Finds the scripts of a skill.
pub(super) fn find(skill: &str, files: &PackageFiles) -> Vec<SkillScript> {
    let mut names = HashSet::from([instructions_name(skill)]);
    let mut functions = HashSet::new();
    let mut scripts = Vec::new();
    for (path, file) in files.iter() {
        let Some(runtime) = runtime(path, file) else { continue };
        let name = unique(&tool_name(path), "-", &mut names);
        let Ok(name) = ToolName::new(&name) else { continue };
        let function = unique(&format!("run_{}", identifier(name.as_str())), "_", &mut functions);
        let module = RUNNER.trim_end_matches(".py");
        let python = Python::new(format!("{module}:{function}"));
        let mut tool = ToolSpec::new(name, Implementation::Python(python));
        tool.description = description(skill, path, file, runtime);
        tool.input_schema = input_schema().into();
        tool.sandbox = true;
        scripts.push(SkillScript { path: path.clone(), runtime, tool });
        if scripts.len() >= MAX_SCRIPTS {
            break;
        }
    }
    scripts
}

/// Returns the language of a file that is meant to be run. A Python file in a sub-folder may be a module of another one.
fn runtime(path: &PackagePath, file: &PackageFile) -> Option<ScriptRuntime> {
    if path.top_folder() != Some("scripts") || path.file_name() == "__init__.py" {
        return None;
    }
    let runtime = match path.extension().as_str() {
        "sh" | "bash" => ScriptRuntime::Bash,
        "py" => ScriptRuntime::Python,
        _ => return None,
    };
    let is_direct = path.names().count() == 2;
    let has = |text: &[u8]| memchr::memmem::find(&file.bytes, text).is_some();
    let runs = file.executable || file.bytes.starts_with(b"#!") || has(b"__main__");
    (is_direct || runs).then_some(runtime)
}

/// Returns the name of the tool of a script: `office-unpack` for `scripts/office/unpack.py`.
fn tool_name(path: &PackagePath) -> String {
    let mut parts: Vec<&str> = path.names().skip(1).collect();
    parts.pop();
    parts.push(path.stem());
    let mapped = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = parts.join("-").chars().map(mapped).take(56).collect();
    let name = name.trim_matches('-');
    // Some names are paths of the API.
    if ToolName::new(name).is_ok() { name.to_owned() } else { format!("run-{name}") }
}

fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn unique(name: &str, separator: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}{separator}{number}");
        number += 1;
    }
    candidate
}

fn input_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "args": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Command-line arguments, each a string of its own",
            },
            "stdin": {"type": "string", "description": "Text for standard input"},
        },
        "additionalProperties": false,
    })
}

fn description(skill: &str, path: &PackagePath, file: &PackageFile, runtime: ScriptRuntime) -> String {
    let head = file.bytes.get(..file.bytes.len().min(MAX_HEAD)).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let summary = match runtime {
        ScriptRuntime::Python => docstring(&head).unwrap_or_default(),
        ScriptRuntime::Bash => leading_comment(&head),
    };
    let origin = format!("Runs `{path}` of the skill `{}`.", excerpt(skill, 64));
    if summary.is_empty() { origin } else { format!("{} {origin}", excerpt(&summary, MAX_SUMMARY)) }
}

/// Returns the first paragraph of the docstring of a module.
fn docstring(source: &str) -> Option<String> {
    let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let start: usize = source.split_inclusive('\n').take_while(|line| is_comment(line)).map(str::len).sum();
    let rest = source.get(start..)?;
    let quote = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote))?;
    let text = rest.strip_prefix(quote)?.split(quote).next()?;
    Some(paragraph(text.lines()))
}

/// Returns the first paragraph of the comment at the start of a shell script.
fn leading_comment(source: &str) -> String {
    let lines = source.lines().skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
    paragraph(lines.map_while(|line| line.strip_prefix('#')))
}

fn paragraph<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines = lines.map(str::trim).skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Writes the module that starts the scripts.
pub(super) fn runner(scripts: &[SkillScript]) -> String {
    let mut text = RUNNER_HEAD.to_owned();
    for script in scripts {
        let command = match script.runtime {
            ScriptRuntime::Bash => "\"bash\"",
            ScriptRuntime::Python => "sys.executable",
        };
        // A JSON string is also a Python string.
        let path = json!(script.path.as_str());
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n\ndef {}(workspace, args=(), stdin=\"\"):\n    return _run(workspace, {command}, {path}, args, stdin)\n",
            script.function(),
        );
    }
    text
}

const RUNNER_HEAD: &str = r#""""Starts the scripts of this skill. Generated by haft; not part of the skill."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def _run(workspace, program, script, args, stdin):
    result = subprocess.run(
        [program, str(FOLDER / script), *args],
        cwd=workspace,
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if result.returncode != 0:
        detail = (result.stderr or result.stdout).strip()[-4000:]
        raise RuntimeError(f"{script} exited with status {result.returncode}: {detail}")
    return {"stdout": result.stdout, "stderr": result.stderr}
"#;
