//! Argument lists: a program that is started without a shell.

use super::command::SHELLS;
use super::error::RenderError;
use super::escape_context::EscapeContext;
use super::exec::{ValueLimits, looks_like_option};
use super::reference::{Scope, Values};
use super::text::Template;
use haft_core::implementation::Notation;
use haft_core::problem::Problem;

/// The maximum number of elements.
const MAX_ELEMENTS: usize = 1024;

/// A compiled argument list. Each element is one argument, whatever its values contain.
#[derive(Debug, Clone)]
pub(super) struct ArgvTemplate {
    program: String,
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone)]
struct Argument {
    template: Template,
    /// Whether a program could read a value at the start of it as an option.
    is_guarded: bool,
}

impl ArgvTemplate {
    pub(super) fn compile(argv: &[String], scope: &Scope) -> Result<Self, Vec<Problem>> {
        let problem = |index: usize, code: &'static str, message: String| {
            Problem::new(format!("implementation.argv[{index}]"), code, message)
        };
        let mut problems = Vec::new();
        if argv.len() > MAX_ELEMENTS {
            let message = format!("{} elements exceed the limit of {MAX_ELEMENTS}", argv.len());
            problems.push(Problem::new("implementation.argv", "invalid_value", message));
        }
        let mut program = String::new();
        let mut arguments: Vec<Argument> = Vec::with_capacity(argv.len());
        let mut options_end = false;
        for (index, text) in argv.iter().enumerate() {
            let template = match Template::parse(Notation::Braces, text, scope) {
                Ok(template) => template,
                Err(error) => {
                    problems.push(problem(index, "invalid_template", error.to_string()));
                    continue;
                }
            };
            if let Some(name) = template.secrets().next() {
                let message = format!(
                    "arguments are visible in the process list, so `${{{name}}}` is not allowed here; set it in `env`, or use `stdin`"
                );
                problems.push(problem(index, "secret_in_argv", message));
            } else if template.as_literal().is_some_and(|text| text.contains('\0')) {
                problems.push(problem(index, "invalid_value", "NUL character".to_owned()));
            } else if index > 0 {
                options_end |= template.as_literal() == Some("--");
                arguments.push(Argument { template, is_guarded: !options_end });
            } else {
                match template.as_literal() {
                    Some("") => {
                        problems.push(problem(0, "invalid_value", "the program name is empty".to_owned()));
                    }
                    Some(name) => name.clone_into(&mut program),
                    None => {
                        let message = "the program name has to be literal; make one tool per program";
                        problems.push(problem(0, "invalid_template", message.to_owned()));
                    }
                }
            }
        }
        if let Some(index) = shell_code(&program, &arguments) {
            let message = "a value in the text of `-c` becomes shell code; use `$1` in the text and pass the value after it: \
                           `[bash, -c, 'echo \"$1\"', _, '{{name}}']`";
            problems.push(problem(index, "invalid_template", message.to_owned()));
        }
        if argv.is_empty() {
            let message = "missing program name; write `argv: [program, argument, …]`";
            problems.push(Problem::new("implementation.argv", "invalid_value", message));
        }
        if problems.is_empty() { Ok(Self { program, arguments }) } else { Err(problems) }
    }

    /// Returns the program and its arguments; absent optional references are left out.
    pub(super) fn render(
        &self,
        values: &Values<'_>,
        limits: &mut ValueLimits,
    ) -> Result<Vec<String>, RenderError> {
        let mut argv = vec![self.program.clone()];
        for Argument { template, is_guarded } in &self.arguments {
            if template.is_absent(values) {
                continue;
            }
            let text = template.render(EscapeContext::Text, values)?.text;
            if *is_guarded && let Some(reference) = template.leading_option(values) {
                return Err(looks_like_option(reference));
            }
            limits.check(&text, &template.first_name(), "the arguments")?;
            argv.push(text);
        }
        Ok(argv)
    }
}

/// Returns the index of the element that a shell runs as code and that contains a reference.
fn shell_code(program: &str, arguments: &[Argument]) -> Option<usize> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if !SHELLS.contains(&name) {
        return None;
    }
    let is_code_option = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains('c');
    let option =
        arguments.iter().position(|argument| argument.template.as_literal().is_some_and(is_code_option))?;
    let code = arguments.get(option + 1)?;
    code.template.as_literal().is_none().then_some(option + 2)
}
