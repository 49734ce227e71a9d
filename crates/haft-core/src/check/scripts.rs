//! Whether commands and scripts can take their values safely.

use super::Checked;
use crate::implementation::{Exec, Script, ScriptRuntime};
use crate::problem::excerpt;
use crate::spec::ToolSpec;
use crate::template::{CommandTemplate, PythonTemplate, Scope, reserved_variable};

/// Compiles the command of an `exec` tool.
pub(super) fn command(spec: &ToolSpec, exec: &Exec, checked: &mut Checked) {
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
}

/// Compiles a python body, and warns of arguments that cannot be variables.
pub(super) fn script(spec: &ToolSpec, script: &Script, checked: &mut Checked) {
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
