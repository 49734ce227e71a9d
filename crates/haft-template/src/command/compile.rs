//! Compiles a command and fills it in.

use super::super::error::{self, RenderError, SyntaxError};
use super::super::exec::{ValueLimits, argument_text};
use super::super::reference::{Reference, Scope, Values};
use super::super::scripts;
use super::super::variables::{SecretName, add_secret, may_be_secret};
use super::commands::End;
use super::scanner::{ScanError, ScanResult, Scanner, variable};
use super::symbols::{CommandSource, Symbol, SymbolKind};
use haft_core::secret::Secret;

/// The maximum length of a command in bytes.
const MAX_COMMAND: usize = 64 * 1024;

/// A compiled command.
#[derive(Debug, Clone)]
pub(crate) struct CommandTemplate {
    references: Vec<Reference>,
    conditions: Vec<Reference>,
    /// One text per combination of the conditions: bit N of the index is condition N.
    texts: Vec<CompiledText>,
}

/// One of the texts that the conditions select between.
#[derive(Debug, Clone, Default)]
struct CompiledText {
    script: String,
    values: Vec<usize>,
    /// The values that a program could read as an option.
    guarded: Vec<usize>,
    secrets: Vec<SecretName>,
    single_quoted: Vec<String>,
}

impl CommandTemplate {
    /// Compiles a command whose environment sets the variables `set`.
    pub(crate) fn compile(command: &str, set: &[&str], scope: &Scope) -> Result<Self, Vec<SyntaxError>> {
        if command.len() > MAX_COMMAND {
            let message = format!(
                "command of {} bytes exceeds the limit of {MAX_COMMAND}; use a script tool",
                command.len()
            );
            return Err(vec![SyntaxError { line: None, column: 1, message }]);
        }
        let source = CommandSource::parse(command, scope).map_err(|error| vec![error])?;
        let mut texts = Vec::with_capacity(1 << source.conditions.len());
        let mut errors: Vec<ScanError> = Vec::new();
        for choice in 0..1_usize << source.conditions.len() {
            let symbols = source.text(choice);
            match compile_text(&symbols, scope, set) {
                Ok(text) => texts.push(text),
                Err(_) if source.references.is_empty() => texts.push(constant_text(&symbols, scope, set)),
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            let CommandSource { references, conditions, .. } = source;
            return Ok(Self { references, conditions, texts });
        }
        errors.sort_by_key(|error| error.at);
        Err(errors.into_iter().map(|error| error::at(command, error.at, error.message)).collect())
    }

    /// Returns the texts for bash.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| text.script.as_str())
    }

    /// Returns the secrets that any of its texts reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        self.texts.iter().flat_map(|text| &text.secrets)
    }

    /// Returns the names of secrets in single quotes, where the shell does not expand them.
    pub(crate) fn single_quoted_secrets(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.texts.iter().flat_map(|text| text.single_quoted.iter().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the script for bash, and adds its values and secrets to `env`.
    pub(crate) fn render(
        &self,
        values: &Values<'_>,
        limits: &mut ValueLimits,
        env: &mut Vec<(String, Secret)>,
    ) -> Result<&str, RenderError> {
        let bits = self.conditions.iter().enumerate();
        let choice =
            bits.fold(0, |choice, (bit, condition)| choice | (usize::from(condition.truthy(values)) << bit));
        let Some(text) = self.texts.get(choice) else { return Ok("") };
        for SecretName { name, required } in &text.secrets {
            match values.secrets.get(name.as_str()) {
                Some(secret) => {
                    limits.check(secret.expose(), name, "the environment")?;
                    env.push((name.clone(), secret.clone()));
                }
                None if *required => return Err(RenderError::MissingSecret(name.clone())),
                None => {}
            }
        }
        for number in &text.values {
            let Some(reference) = self.references.get(*number) else { continue };
            let filled = argument_text(reference, values, text.guarded.contains(number))?;
            limits.check(&filled, &reference.display_name(), "the command")?;
            env.push((variable(*number), Secret::new(filled)));
        }
        Ok(&text.script)
    }
}

fn compile_text(symbols: &[Symbol], scope: &Scope, set: &[&str]) -> ScanResult<CompiledText> {
    let mut scanner = Scanner::new(symbols);
    scanner.commands(End::Text)?;
    let number = |symbol: &Symbol| match symbol.kind {
        SymbolKind::Value(number) => Some(number),
        SymbolKind::Char(_) => None,
    };
    let mut values: Vec<usize> = symbols.iter().filter_map(number).collect();
    values.sort_unstable();
    values.dedup();
    let Scanner { script, reads, assigned, mut guarded, carried, mut single_quoted, .. } = scanner;
    if scanner.passes_variables {
        guarded.extend(carried);
    }
    let mut secrets = Vec::new();
    for read in reads {
        if assigned.contains(&read.name) || set.contains(&read.name.as_str()) {
            continue;
        }
        if scope.declares(&read.name) {
            let message =
                format!("variable `${0}` is not set; write `{{{{{0}}}}}` for the argument", read.name);
            return Err(ScanError { at: read.at, message });
        }
        if may_be_secret(&read.name) {
            add_secret(&mut secrets, &read.name, !read.optional);
        }
    }
    single_quoted.retain(|name| may_be_secret(name) && !assigned.contains(name));
    Ok(CompiledText { script, values, guarded, secrets, single_quoted })
}

/// Makes the text of a command without references, which needs no checks.
fn constant_text(symbols: &[Symbol], scope: &Scope, set: &[&str]) -> CompiledText {
    let chars = symbols.iter().filter_map(|symbol| match symbol.kind {
        SymbolKind::Char(c) => Some(c),
        SymbolKind::Value(_) => None,
    });
    let script: String = chars.collect();
    let mut secrets = scripts::bash_secrets(&script, scope);
    secrets.retain(|secret| !set.contains(&secret.name.as_str()));
    CompiledText { script, secrets, ..CompiledText::default() }
}
