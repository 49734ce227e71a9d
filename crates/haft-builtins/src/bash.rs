//! `exec` and `bash`: shell commands in a sandbox without access to the host.
//!
//! Both are `script` tools: the command is passed in a variable, and a second bash runs it.

use haft_core::implementation::{Implementation, Script, ScriptRuntime};
use haft_core::name::NameError;
use haft_core::spec::{Policy, ToolSpec};
use serde_json::json;

use crate::tool::{Describe, describe};

pub(crate) fn exec() -> Result<ToolSpec, NameError> {
    let spec = describe(Describe {
        name: "exec",
        description: "Execute one shell command, such as `printf '3 1 2' | tr ' ' '\\n' | sort`, in a fresh sandbox \
                      without network access or host files; nothing is kept afterwards. Returns the output, parsed if it \
                      is JSON. A failed command is an error with the exit code and the last lines of output.",
        category: "system",
        tags: &["shell", "command"],
        input: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 32000, "description": "The command line, in bash syntax"},
            },
            "required": ["command"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    Ok(sandboxed(spec, "exec bash --noprofile --norc -c \"$command\"\n"))
}

pub(crate) fn bash() -> Result<ToolSpec, NameError> {
    let spec = describe(Describe {
        name: "bash",
        description: "Run a bash script of several lines in a fresh sandbox without network access or host files; \
                      nothing is kept afterwards. The script stops at the first failed command. Returns the output, \
                      parsed if it is JSON. A failure is an error with the exit code and the last lines of output.",
        category: "system",
        tags: &["shell", "script"],
        input: json!({
            "type": "object",
            "properties": {
                "script": {"type": "string", "minLength": 1, "maxLength": 32000, "description": "The source of the script"},
            },
            "required": ["script"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    Ok(sandboxed(spec, "exec bash --noprofile --norc -euo pipefail -c \"$script\"\n"))
}

fn sandboxed(mut spec: ToolSpec, body: &str) -> ToolSpec {
    spec.implementation = Implementation::Script(Script::new(ScriptRuntime::Bash, body));
    spec.sandbox = true;
    spec.network = false;
    spec.policy = Policy::Elevated;
    spec.execution.timeout_ms = Some(60_000);
    spec
}
