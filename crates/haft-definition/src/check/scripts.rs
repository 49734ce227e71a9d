//! Checks commands and scripts.

use super::CheckReport;
use haft_core::implementation::{Exec, Script, ScriptRuntime};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_template::{CommandTemplate, PythonTemplate, Scope, reserved_variable};

/// Compiles the command of an `exec` tool.
pub(super) fn command(spec: &ToolSpec, exec: &Exec, checked: &mut CheckReport) {
    match CommandTemplate::compile(&exec.command, &exec.env, &Scope::of(&spec.input_schema)) {
        Ok(template) => {
            for name in template.unfilled() {
                checked.warn(
                    "implementation.command",
                    "secret_in_single_quotes",
                    format!("`${{{name}}}` is inside single quotes, where the shell does not expand it; use double quotes"),
                );
            }
        }
        Err(problems) => checked.errors.extend(problems),
    }
    if has_pipe(&exec.command) && !exec.command.contains("pipefail") {
        checked.warn(
            "implementation.command",
            "pipe_hides_failure",
            "only the exit status of the last program in a pipe counts; start the command with \
             `set -o pipefail;` to detect failures of the others",
        );
    }
}

/// Returns whether a command contains a pipe.
fn has_pipe(command: &str) -> bool {
    let (mut quote, mut is_escaped, mut before) = (None, false, ' ');
    let mut rest = command.chars().peekable();
    // Inside braces is a template, where `|` is a filter.
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
        && let Err(errors) = PythonTemplate::compile(&script.body, &Scope::of(&spec.input_schema))
    {
        checked.errors.extend(errors.iter().map(|error| error.to_problem("implementation.body")));
    }
    for name in spec.declared_arguments().filter(|name| reserved_variable(name)) {
        let name = excerpt(name, 60);
        checked.warn(
            format!("input_schema.properties.{name}"),
            "reserved_argument",
            format!("`{name}` cannot be passed as an environment variable, because the name is special to shells or interpreters; read it from the JSON in `HAFT_ARGS` or rename it"),
        );
    }
}
