//! Whether commands and scripts can take their values safely.

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
                    format!("`${{{name}}}` stands in single quotes, where the shell does not fill it in; use double quotes"),
                );
            }
        }
        Err(problems) => checked.errors.extend(problems),
    }
    if has_pipe(&exec.command) && !exec.command.contains("pipefail") {
        checked.warn(
            "implementation.command",
            "pipe_hides_failure",
            "of programs in a pipe only the last one decides whether the call failed; begin the command with \
             `set -o pipefail;` so that a failure of the others is told too",
        );
    }
}

/// Tells whether a command hands the output of one program to another.
fn has_pipe(command: &str) -> bool {
    let (mut quote, mut is_escaped, mut before) = (None, false, ' ');
    let mut rest = command.chars().peekable();
    // What stands between braces is a template, where the sign means something else.
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
            format!("`{name}` cannot be an environment variable of the script, as shells and interpreters obey or refuse that name; read it from the JSON in `HAFT_ARGS`, or choose another name"),
        );
    }
}
