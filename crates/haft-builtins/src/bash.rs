//! `exec` and `bash`: commands in a sandbox that sees nothing of the host.
//!
//! Both are scripts like any other: the command is the value of a variable, and a second bash reads it.

use haft_core::implementation::{Implementation, Script, ScriptRuntime};
use haft_core::name::NameError;
use haft_core::spec::{Policy, ToolSpec};
use serde_json::json;

use crate::tool::{Describe, describe};

pub(crate) fn exec() -> Result<ToolSpec, NameError> {
    let spec = describe(Describe {
        name: "exec",
        description: "Execute one shell command, such as `printf '3 1 2' | tr ' ' '\\n' | sort`, in a fresh sandbox: no \
                      network, no files of the host, nothing left afterwards. Returns what it prints (parsed where that \
                      is JSON); a command that fails is an error with its exit code and last lines.",
        category: "system",
        tags: &["shell", "command"],
        input: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 32000, "description": "The command line, as bash reads it"},
            },
            "required": ["command"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    Ok(confined(spec, "exec bash --noprofile --norc -c \"$command\"\n"))
}

pub(crate) fn bash() -> Result<ToolSpec, NameError> {
    let spec = describe(Describe {
        name: "bash",
        description: "Run a bash script of several lines in a fresh sandbox: no network, no files of the host, nothing \
                      left afterwards. It stops at the first command that fails. Returns what it prints (parsed where that \
                      is JSON); a failure is an error with the exit code and the last lines.",
        category: "system",
        tags: &["shell", "script"],
        input: json!({
            "type": "object",
            "properties": {
                "script": {"type": "string", "minLength": 1, "maxLength": 32000, "description": "The text of the script"},
            },
            "required": ["script"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    Ok(confined(spec, "exec bash --noprofile --norc -euo pipefail -c \"$script\"\n"))
}

fn confined(mut spec: ToolSpec, body: &str) -> ToolSpec {
    spec.implementation =
        Implementation::Script(Script { runtime: ScriptRuntime::Bash, body: body.to_owned() });
    spec.sandbox = true;
    spec.network = false;
    spec.policy = Policy::Elevated;
    spec.execution.timeout_ms = Some(60_000);
    spec
}
