//! Checks commands and scripts.

use super::{CheckReport, named};
use haft_core::implementation::{Exec, ExecProgram, Script, ScriptRuntime};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_template::{ExecTemplate, PythonTemplate, Scope, is_variable, reserved_variable};

/// Compiles the templates of an `exec` tool.
pub(super) fn exec(spec: &ToolSpec, exec: &Exec, checked: &mut CheckReport) {
    match ExecTemplate::compile(exec, &Scope::from_schema(&spec.input_schema)) {
        Ok(template) => {
            for name in template.single_quoted_secrets() {
                checked.warn(
                    "implementation.command",
                    "secret_in_single_quotes",
                    format!("the shell does not expand `${{{name}}}` in single quotes; use double quotes"),
                );
            }
        }
        Err(problems) => checked.errors.extend(problems),
    }
    let ExecProgram::Command(command) = &exec.program else { return };
    named(command, "command", checked);
    if has_pipe(command) && !command.contains("pipefail") {
        checked.warn(
            "implementation.command",
            "pipe_hides_failure",
            "only the last program of a pipe decides whether the call fails; start the command with \
             `set -o pipefail;` to report failures of the others",
        );
    }
}

/// Returns whether a command has a pipe.
fn has_pipe(command: &str) -> bool {
    let (mut quote, mut is_escaped, mut before) = (None, false, ' ');
    let mut rest = command.chars().peekable();
    // In `{{x | default:1}}` it is a filter.
    let mut braces = 0_usize;
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('{', _) if next == Some('{') => braces += 1,
            ('}', _) if next == Some('}') => braces = braces.saturating_sub(1),
            ('\\', None | Some('"')) => is_escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('|', None) if braces == 0 && before != '|' && before != '>' && next != Some('|') => return true,
            _ => {}
        }
        before = c;
    }
    false
}

/// Compiles a python body, and warns of arguments that cannot be variables.
pub(super) fn script(spec: &ToolSpec, script: &Script, checked: &mut CheckReport) {
    if script.runtime == ScriptRuntime::Python
        && let Err(errors) = PythonTemplate::compile(&script.body, &Scope::from_schema(&spec.input_schema))
    {
        checked.errors.extend(errors.iter().map(|error| error.to_problem("implementation.body")));
    }
    for name in spec.declared_arguments().filter(|name| reserved_variable(name)) {
        let reason = if is_variable(name) {
            "shells or interpreters use that variable themselves"
        } else {
            "its name may have only letters, digits and `_`, and no digit at the start"
        };
        let name = excerpt(name, 60);
        checked.warn(
            format!("input_schema.properties.{name}"),
            "reserved_argument",
            format!("`{name}` cannot be passed as an environment variable: {reason}; rename it, or read it from the JSON in `HAFT_ARGS`"),
        );
    }
}
