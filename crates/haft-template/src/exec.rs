//! Templates of `exec` tools: a command or an argument list, with environment variables and standard input.

use super::argv::ArgvTemplate;
use super::command::CommandTemplate;
use super::error::{RenderError, SyntaxError};
use super::escape_context::EscapeContext;
use super::reference::{Reference, Resolved, Scope, Values};
use super::text::Template;
use super::variables::{SecretName, add_secret, controls_shell};
use haft_core::implementation::{Exec, ExecProgram, Notation};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::Secret;
use serde_json::Value;

/// The maximum length of one value in bytes: the system accepts 128 KiB per variable and argument.
const MAX_VALUE: usize = 128 * 1024 - 64;
/// The maximum length of all values together in bytes.
const MAX_VALUES: usize = 1024 * 1024;

/// A compiled `exec` implementation.
#[derive(Debug, Clone)]
pub struct ExecTemplate {
    program: ProgramTemplate,
    env: Vec<(String, Template)>,
    stdin: Option<Template>,
    secrets: Vec<SecretName>,
}

#[derive(Debug, Clone)]
enum ProgramTemplate {
    Command(CommandTemplate),
    Argv(ArgvTemplate),
}

/// A process to start. No value is part of a shell script in `argv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecInvocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment variables; the last one of a name wins.
    pub env: Vec<(String, Secret)>,
    /// The text for standard input.
    pub stdin: Option<Secret>,
}

impl ExecTemplate {
    /// Compiles the templates of an `exec` tool, and reports all errors.
    pub fn compile(exec: &Exec, scope: &Scope) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let env = compile_env(exec, scope, &mut problems);
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        let program = match &exec.program {
            ExecProgram::Command(command) => CommandTemplate::compile(command, &names, scope)
                .map(ProgramTemplate::Command)
                .map_err(|errors| to_problems(&errors, "implementation.command")),
            ExecProgram::Argv(argv) => ArgvTemplate::compile(argv, scope).map(ProgramTemplate::Argv),
        };
        let stdin =
            exec.stdin.as_ref().map(|text| Template::parse(Notation::Braces, text, scope)).transpose();
        match (program, stdin) {
            (Ok(program), Ok(stdin)) if problems.is_empty() => {
                let mut secrets = Vec::new();
                if let ProgramTemplate::Command(command) = &program {
                    command
                        .secrets()
                        .for_each(|secret| add_secret(&mut secrets, &secret.name, secret.required));
                }
                let templates = env.iter().map(|(_, template)| template).chain(&stdin);
                templates.flat_map(Template::secrets).for_each(|name| add_secret(&mut secrets, name, true));
                Ok(Self { program, env, stdin, secrets })
            }
            (program, stdin) => {
                problems.extend(program.err().unwrap_or_default());
                problems.extend(stdin.err().map(|error| error.to_problem("implementation.stdin")));
                Err(problems)
            }
        }
    }

    /// Returns the secrets that it may read.
    pub fn secrets(&self) -> &[SecretName] {
        &self.secrets
    }

    /// Returns the names of secrets in single quotes of a command, where the shell does not expand them.
    pub fn single_quoted_secrets(&self) -> Vec<String> {
        match &self.program {
            ProgramTemplate::Command(command) => command.single_quoted_secrets(),
            ProgramTemplate::Argv(_) => Vec::new(),
        }
    }

    /// Returns the texts for bash, one per combination of conditions.
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        let command = match &self.program {
            ProgramTemplate::Command(command) => Some(command),
            ProgramTemplate::Argv(_) => None,
        };
        command.into_iter().flat_map(CommandTemplate::scripts)
    }

    /// Returns whether it starts a program without a shell.
    pub fn is_argv(&self) -> bool {
        matches!(self.program, ProgramTemplate::Argv(_))
    }

    /// Renders it. [`Values::secrets`] holds those of [`ExecTemplate::secrets`] that exist.
    pub fn render(&self, values: &Values<'_>) -> Result<ExecInvocation, RenderError> {
        let mut limits = ValueLimits::default();
        let mut env = Vec::with_capacity(self.env.len() + 8);
        for (name, template) in &self.env {
            let text = template.render(EscapeContext::Text, values)?.text;
            limits.check(&text, name, "the environment")?;
            env.push((name.clone(), Secret::new(text)));
        }
        let argv = match &self.program {
            ProgramTemplate::Command(command) => {
                let script = command.render(values, &mut limits, &mut env)?;
                ["bash", "--noprofile", "--norc", "-o", "pipefail", "-c", script].map(str::to_owned).to_vec()
            }
            ProgramTemplate::Argv(argv) => argv.render(values, &mut limits)?,
        };
        let stdin = match &self.stdin {
            Some(template) => Some(Secret::new(template.render(EscapeContext::Text, values)?.text)),
            None => None,
        };
        Ok(ExecInvocation { argv, env, stdin })
    }
}

/// Checks the lengths of the values of one call.
#[derive(Debug, Default)]
pub(super) struct ValueLimits {
    total: usize,
}

impl ValueLimits {
    pub(super) fn check(&mut self, text: &str, name: &str, context: &str) -> Result<(), RenderError> {
        self.total = self.total.saturating_add(text.len());
        let reason = if text.contains('\0') {
            "it contains a NUL character"
        } else if text.len() > MAX_VALUE {
            "it exceeds the limit of 128 KiB per value; use `stdin`, or a script tool that reads `HAFT_ARGS_FILE`"
        } else if self.total > MAX_VALUES {
            "all values together exceed the limit of 1 MiB"
        } else {
            return Ok(());
        };
        Err(RenderError::InvalidValue { name: name.to_owned(), context: context.to_owned(), reason })
    }
}

/// Returns the text of a value. A string that starts with `-` is an error where a program could read it as an option.
pub(super) fn argument_text(
    reference: &Reference,
    values: &Values<'_>,
    is_guarded: bool,
) -> Result<String, RenderError> {
    let text = match reference.resolve(values)? {
        Resolved::Missing => String::new(),
        Resolved::Secret(secret) => secret.expose().to_owned(),
        Resolved::Value(value) => match value.as_ref() {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) => return Ok(number.to_string()),
            other => other.to_string(),
        },
    };
    if is_guarded && text.starts_with('-') {
        return Err(looks_like_option(reference));
    }
    Ok(text)
}

pub(super) fn looks_like_option(reference: &Reference) -> RenderError {
    RenderError::LooksLikeOption { name: reference.display_name() }
}

fn compile_env(exec: &Exec, scope: &Scope, problems: &mut Vec<Problem>) -> Vec<(String, Template)> {
    let mut compiled = Vec::with_capacity(exec.env.len());
    for (name, text) in &exec.env {
        let field = format!("implementation.env.{}", excerpt(name, 60));
        match Template::parse(Notation::Braces, text, scope) {
            Ok(_) if name.starts_with("HAFT_") => problems.push(Problem::new(
                field,
                "invalid_value",
                "names that start with `HAFT_` are reserved; use another name",
            )),
            Ok(template) if template.uses_values() && controls_shell(name) => problems.push(Problem::new(
                field,
                "invalid_value",
                "this variable controls the shell or the loader and cannot be set from an argument; use another variable",
            )),
            Ok(template) => compiled.push((name.clone(), template)),
            Err(error) => problems.push(error.to_problem(field)),
        }
    }
    compiled
}

fn to_problems(errors: &[SyntaxError], field: &str) -> Vec<Problem> {
    errors.iter().map(|error| error.to_problem(field)).collect()
}
