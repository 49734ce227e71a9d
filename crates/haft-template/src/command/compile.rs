//! Compiling a command, and filling it in.

use std::collections::BTreeMap;

use super::super::error::{self, RenderError, SyntaxError};
use super::super::reference::{Found, Reference, Scope, Values};
use super::super::scripts;
use super::super::text::Template;
use super::super::variables::{SecretName, add_secret, may_be_secret, reserved_variable};
use super::super::{EscapeContext, Notation};
use super::grammar::End;
use super::pieces::{Pieces, Symbol, SymbolKind};
use super::shell::{Fault, Shell, variable};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::Secret;
use serde_json::Value;

/// The most bytes of a command; what is longer is a script.
pub const MAX_COMMAND: usize = 64 * 1024;
/// The most bytes of one value of a command: the system takes 128 KiB per variable.
pub const MAX_VALUE: usize = 128 * 1024 - 64;
/// The most bytes of all values of a command.
pub const MAX_VALUES: usize = 1024 * 1024;

const COMMAND: &str = "implementation.command";

/// A compiled command and its environment.
#[derive(Debug, Clone)]
pub struct CommandTemplate {
    references: Vec<Reference>,
    tests: Vec<Reference>,
    /// One text per decision of the tests: bit N of the index is test N.
    texts: Vec<Text>,
    environment: Vec<(String, Template)>,
    secrets: Vec<SecretName>,
    unfilled: Vec<String>,
}

/// One of the texts that the conditions choose between.
#[derive(Debug, Clone, Default)]
struct Text {
    script: String,
    values: Vec<usize>,
    guarded: Vec<usize>,
    secrets: Vec<SecretName>,
    unfilled: Vec<String>,
}

/// A filled-in command, for `bash -c`. No value is part of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command<'a> {
    /// The text for bash.
    pub script: &'a str,
    /// The variables that it needs: values, secrets, and what the definition sets. Later ones win.
    pub env: Vec<(String, Secret)>,
}

impl CommandTemplate {
    /// Compiles the command and the environment of an `exec` tool; names every reason to refuse it.
    pub fn compile(
        command: &str,
        environment: &BTreeMap<String, String>,
        scope: &Scope,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let environment = compile_environment(environment, scope, &mut problems);
        let names: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
        match compile_texts(command, scope, &names) {
            Ok((pieces, texts)) if problems.is_empty() => {
                let (mut secrets, mut unfilled) = (Vec::new(), Vec::new());
                for text in &texts {
                    text.secrets
                        .iter()
                        .for_each(|secret| add_secret(&mut secrets, &secret.name, secret.required));
                    unfilled.extend(text.unfilled.iter().cloned());
                }
                for name in environment.iter().flat_map(|(_, template)| template.secrets()) {
                    add_secret(&mut secrets, name, true);
                }
                unfilled.sort();
                unfilled.dedup();
                let Pieces { references, tests, .. } = pieces;
                Ok(Self { references, tests, texts, environment, secrets, unfilled })
            }
            Ok(_) => Err(problems),
            Err(errors) => {
                problems.extend(errors.iter().map(|error| error.to_problem(COMMAND)));
                Err(problems)
            }
        }
    }

    /// Returns the secrets that it may read.
    pub fn secrets(&self) -> &[SecretName] {
        &self.secrets
    }

    /// Returns the names of secrets that stand in single quotes, where the shell does not fill them in.
    pub fn unfilled(&self) -> &[String] {
        &self.unfilled
    }

    /// Fills it in: chooses the text, and puts values and secrets into its environment.
    ///
    /// [`Values::secrets`] holds what [`CommandTemplate::secrets`] names, as far as it exists.
    pub fn render(&self, values: &Values<'_>) -> Result<Command<'_>, RenderError> {
        let choice = self
            .tests
            .iter()
            .enumerate()
            .fold(0, |choice, (bit, test)| choice | (usize::from(test.truthy(values)) << bit));
        let empty = const {
            &Text {
                script: String::new(),
                values: Vec::new(),
                guarded: Vec::new(),
                secrets: Vec::new(),
                unfilled: Vec::new(),
            }
        };
        let text = self.texts.get(choice).unwrap_or(empty);
        let mut env = Vec::with_capacity(self.environment.len() + text.values.len() + text.secrets.len());
        let mut bytes = 0;
        for (name, template) in &self.environment {
            let filled = template.render(EscapeContext::Text, values)?.text;
            check_text(&filled, name, "the environment", &mut bytes)?;
            env.push((name.clone(), Secret::new(filled)));
        }
        for secret in &text.secrets {
            match values.secrets.get(secret.name.as_str()) {
                Some(found) => {
                    check_text(found.expose(), &secret.name, "the environment", &mut bytes)?;
                    env.push((secret.name.clone(), found.clone()));
                }
                None if secret.required => return Err(RenderError::MissingSecret(secret.name.clone())),
                None => {}
            }
        }
        for number in &text.values {
            let Some(reference) = self.references.get(*number) else { continue };
            let guarded = text.guarded.contains(number);
            let filled = fill(reference, values, guarded)?;
            check_text(&filled, &reference.written(), "the command", &mut bytes)?;
            env.push((variable(*number), Secret::new(filled)));
        }
        Ok(Command { script: &text.script, env })
    }
}

/// Returns the text of a value: strings as they are, everything else as JSON.
fn fill(reference: &Reference, values: &Values<'_>, guarded: bool) -> Result<String, RenderError> {
    let text = match reference.find(values)? {
        Found::Missing => String::new(),
        Found::Secret(secret) => secret.expose().to_owned(),
        Found::Value(value) => match value.as_ref() {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) => return Ok(number.to_string()),
            other => other.to_string(),
        },
    };
    if guarded && text.starts_with('-') {
        let why = "it starts with `-`, which the program would take for an option";
        return Err(unfit(&reference.written(), "the command", why));
    }
    Ok(text)
}

fn check_text(text: &str, name: &str, place: &str, bytes: &mut usize) -> Result<(), RenderError> {
    *bytes = bytes.saturating_add(text.len());
    if text.contains('\0') {
        return Err(unfit(name, place, "a NUL character cannot be passed to a program"));
    }
    if text.len() > MAX_VALUE {
        return Err(unfit(
            name,
            place,
            "it is longer than the 128 KiB that the system takes; a script reads long values from `HAFT_ARGS`",
        ));
    }
    if *bytes > MAX_VALUES {
        return Err(unfit(name, place, "all values together have more than 1 MiB"));
    }
    Ok(())
}

fn unfit(name: &str, place: &str, why: &'static str) -> RenderError {
    RenderError::Unfit { name: name.to_owned(), place: place.to_owned(), why }
}

fn compile_environment(
    environment: &BTreeMap<String, String>,
    scope: &Scope,
    problems: &mut Vec<Problem>,
) -> Vec<(String, Template)> {
    let mut compiled = Vec::with_capacity(environment.len());
    for (name, text) in environment {
        let field = format!("implementation.env.{}", excerpt(name, 60));
        match Template::parse(Notation::Braces, text, scope) {
            Ok(_) if name.starts_with("HAFT_") => {
                problems.push(Problem::new(field, "invalid_value", "belongs to haft; choose another name"));
            }
            Ok(template) if template.takes_values() && reserved_variable(name) => problems.push(Problem::new(
                field,
                "invalid_value",
                "a value in this variable would change how programs run; write it out, or choose another name",
            )),
            Ok(template) => compiled.push((name.clone(), template)),
            Err(error) => problems.push(error.to_problem(field)),
        }
    }
    compiled
}

fn compile_texts(
    command: &str,
    scope: &Scope,
    set: &[&str],
) -> Result<(Pieces, Vec<Text>), Vec<SyntaxError>> {
    if command.len() > MAX_COMMAND {
        let message = format!(
            "the command has {} bytes; at most {MAX_COMMAND} are allowed: write a script",
            command.len()
        );
        return Err(vec![SyntaxError { column: 1, message }]);
    }
    let pieces = Pieces::of(command, scope).map_err(|error| vec![error])?;
    let mut texts = Vec::with_capacity(1 << pieces.tests.len());
    let mut faults: Vec<Fault> = Vec::new();
    for choice in 0..1_usize << pieces.tests.len() {
        let symbols = pieces.flat(choice);
        match compile_text(&symbols, scope, set) {
            Ok(text) => texts.push(text),
            Err(_) if pieces.references.is_empty() => texts.push(constant(&symbols, scope, set)),
            Err(fault) if faults.contains(&fault) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        return Ok((pieces, texts));
    }
    faults.sort_by_key(|fault| fault.at);
    Err(faults.into_iter().map(|fault| error::at(command, fault.at, fault.message)).collect())
}

fn compile_text(symbols: &[Symbol], scope: &Scope, set: &[&str]) -> Result<Text, Fault> {
    let mut shell = Shell::new(symbols);
    shell.list(End::Text)?;
    let mut values: Vec<usize> = symbols
        .iter()
        .filter_map(|symbol| match symbol.kind {
            SymbolKind::Value(number) => Some(number),
            SymbolKind::Char(_) => None,
        })
        .collect();
    values.sort_unstable();
    values.dedup();
    let Shell { out: script, uses, sets, mut guarded, carried, open, mut unfilled, .. } = shell;
    if open {
        guarded.extend(carried);
    }
    let mut secrets = Vec::new();
    for used in uses {
        if sets.contains(&used.name) || set.contains(&used.name.as_str()) {
            continue;
        }
        if scope.declares(&used.name) {
            let message = format!(
                "`${0}` is a variable that nothing sets; write `{{{{{0}}}}}` for the argument",
                used.name
            );
            return Err(Fault { at: used.at, message });
        }
        if may_be_secret(&used.name) {
            add_secret(&mut secrets, &used.name, !used.optional);
        }
    }
    unfilled.retain(|name| may_be_secret(name) && !sets.contains(name));
    Ok(Text { script, values, guarded, secrets, unfilled })
}

/// A command without any value: whatever it is, there is nothing to keep out of it.
fn constant(symbols: &[Symbol], scope: &Scope, set: &[&str]) -> Text {
    let chars = symbols.iter().filter_map(|symbol| match symbol.kind {
        SymbolKind::Char(c) => Some(c),
        SymbolKind::Value(_) => None,
    });
    let script: String = chars.collect();
    let mut secrets = scripts::bash_secrets(&script, scope);
    secrets.retain(|secret| !set.contains(&secret.name.as_str()));
    Text { script, secrets, ..Text::default() }
}
