//! Checks commands and scripts.

use super::{CheckReport, dependencies, named, shell};
use haft_core::implementation::{Exec, ExecProgram, Implementation, Script, ScriptRuntime};
use haft_core::problem::excerpt;
use haft_core::secret::ExternalReference;
use haft_core::spec::ToolSpec;
use haft_template::{ExecTemplate, PythonTemplate, Scope, is_variable, reserved_variable};

/// Compiles the templates of an `exec` tool.
pub(super) fn exec(spec: &ToolSpec, exec: &Exec, checked: &mut CheckReport) {
    match ExecTemplate::compile(exec, &Scope::from_schema(&spec.input_schema.value())) {
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
    without_network(spec, checked);
    let ExecProgram::Command(command) = &exec.program else { return };
    named(command, "command", checked);
    let fix = "set it as a variable in `env`, and use that variable";
    external_reference(command, "implementation.command", fix, checked);
}

/// Warns of a reference to a secret outside of haft in a text for bash, which reads it as an expansion of its own.
fn external_reference(text: &str, field: &str, fix: &str, checked: &mut CheckReport) {
    let is_reference = |name: &&str| match ExternalReference::parse(name) {
        // Offsets and defaults, as in `${file:0:3}` and `${env:-x}`, are bash's own.
        Some(Ok(reference)) => reference.path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'),
        _ => false,
    };
    let mut names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    if let Some(name) = names.find(is_reference) {
        let message = format!("bash does not read `${{{}}}` as a secret; {fix}", excerpt(name, 80));
        checked.warn(field, "external_secret_in_bash", message);
    }
}

/// Programs that are of no use without a network.
const NETWORK_PROGRAMS: [&str; 10] =
    ["curl", "wget", "ssh", "scp", "sftp", "ftp", "nc", "telnet", "dig", "nslookup"];

/// Python modules that are of no use without a network.
const NETWORK_MODULES: [&str; 6] = ["requests", "httpx", "aiohttp", "urllib.request", "urllib3", "smtplib"];

/// Returns the program or module of a script or command that needs network access, if there is one.
pub(super) fn network_program(spec: &ToolSpec) -> Option<String> {
    let program = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        NETWORK_PROGRAMS.contains(&name).then(|| name.to_owned())
    };
    match &spec.implementation {
        Implementation::Exec(Exec { program: ExecProgram::Argv(argv), .. }) => program(argv.first()?),
        Implementation::Exec(Exec { program: ExecProgram::Command(text), .. })
        | Implementation::Script(Script { runtime: ScriptRuntime::Bash, body: text, .. }) => {
            shell::scan(text).commands.iter().find_map(|word| program(word))
        }
        Implementation::Script(Script { runtime: ScriptRuntime::Python, body, .. }) => {
            body.split(['\n', ';']).find_map(|line| imported(line)).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the network module that a line of Python imports.
fn imported(line: &str) -> Option<&'static str> {
    let line = line.trim();
    let names = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    let is_named = |module: &&&str| {
        names.split(',').any(|name| {
            let rest = name.trim_start().strip_prefix(**module);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.', '\t']))
        })
    };
    NETWORK_MODULES.iter().find(is_named).copied()
}

fn without_network(spec: &ToolSpec, checked: &mut CheckReport) {
    if spec.network {
        return;
    }
    if let Some(program) = network_program(spec) {
        let message = format!("it uses `{program}`, but the tool has no network access; set `network: true`");
        checked.warn("network", "network_disabled", message);
    }
}

/// Programs that read `$name` in a single-quoted argument themselves, or run it as a script.
const OWN_SYNTAX: [&str; 19] = [
    "bash", "sh", "dash", "zsh", "ksh", "jq", "awk", "gawk", "mawk", "perl", "php", "envsubst", "eval",
    "trap", "xargs", "find", "ssh", "psql", "node",
];

/// Warns of arguments that the shell does not expand, and of failures that a pipe hides.
fn bash(spec: &ToolSpec, body: &str, checked: &mut CheckReport) {
    let scanned = shell::scan(body);
    for name in &spec.declared_arguments() {
        let quoted = |part: &&shell::SingleQuoted| {
            !OWN_SYNTAX.contains(&part.command.as_str()) && shell::mentions(&part.text, name)
        };
        if let Some(part) = scanned.single_quoted.iter().find(quoted) {
            let message = format!(
                "`${}` on line {} is in single quotes, in which the shell does not replace it; use double quotes",
                excerpt(name, 60),
                part.line
            );
            checked.warn("implementation.body", "argument_in_single_quotes", message);
        }
    }
}

/// Compiles a python body, and warns of probable mistakes.
pub(super) fn script(spec: &ToolSpec, script: &Script, checked: &mut CheckReport) {
    if script.runtime == ScriptRuntime::Python
        && let Err(errors) =
            PythonTemplate::compile(&script.body, &Scope::from_schema(&spec.input_schema.value()))
    {
        checked.errors.extend(errors.iter().map(|error| error.to_problem("implementation.body")));
    }
    without_network(spec, checked);
    if script.runtime == ScriptRuntime::Bash {
        bash(spec, &script.body, checked);
        let fix = "store the reference with `haft secret set NAME`, and write `$NAME`";
        external_reference(&script.body, "implementation.body", fix, checked);
    }
    if script.runtime == ScriptRuntime::Bash && !script.dependencies.is_empty() {
        let message = "dependencies are Python packages, which bash cannot use; set `runtime: python`";
        checked.error("implementation.dependencies", "conflicting_fields", message);
    } else {
        dependencies(&script.dependencies, checked);
    }
    for name in spec.declared_arguments().iter().filter(|name| reserved_variable(name)) {
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
