//! Rejects commands that make the shell evaluate a value, and finds the values that look like options.

use super::super::variables::{controls_shell, is_variable};
use super::scanner::{ScanResult, Scanner};
use super::words::Word;

/// Why values are rejected in the input of a shell.
pub(super) const SHELL_INPUT: &str = "a value in the input of a shell becomes shell code; pass it as an argument: `bash -c '… \"$1\" …' _ {{name}}`";

/// Programs that run their input or the text of `-c` as code.
pub(in super::super) const SHELLS: [&str; 9] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh"];

/// Words that may follow an operand of `[ … ]`.
const TEST_OPERATORS: [&str; 17] = [
    "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o", ")",
];

impl Scanner<'_> {
    /// Checks the words of a simple command.
    pub(super) fn check_command(&mut self, words: &[Word]) -> ScanResult<()> {
        let count = words.iter().take_while(|word| word.assigned().is_some()).count();
        let (assignments, words) = words.split_at_checked(count).unwrap_or_default();
        for word in assignments {
            self.check_assignment(word)?;
            if words.is_empty() {
                self.carry_assigned(word);
            }
        }
        self.check_program(words)
    }

    fn check_assignment(&mut self, word: &Word) -> ScanResult<()> {
        let name = word.assigned().unwrap_or_default();
        let is_fixed = word.literal().is_some() || (name == "PATH" && word.values.is_empty());
        if is_fixed && !name.starts_with("HAFT_") {
            self.assigned.push(name.to_owned());
            return Ok(());
        }
        self.set_variable(word, name)
    }

    /// Records a variable that may receive a value.
    pub(super) fn set_variable(&mut self, word: &Word, name: &str) -> ScanResult<()> {
        if controls_shell(name) {
            return Err(word.rejection(format!(
                "`{name}` controls the shell and cannot be set from a value; use another variable"
            )));
        }
        self.assigned.push(name.to_owned());
        Ok(())
    }

    /// Records the values of a word that a shell variable may pass on.
    pub(super) fn carry(&mut self, word: &Word) {
        if word.starts_with_value() {
            self.carried.extend(&word.values);
        }
    }

    fn carry_assigned(&mut self, word: &Word) {
        if word.prefix.ends_with('=') {
            self.carried.extend(&word.values);
        }
    }

    /// Checks a command without its assignments.
    fn check_program(&mut self, words: &[Word]) -> ScanResult<()> {
        let Some((command, arguments)) = words.split_first() else { return Ok(()) };
        if command.is_element() {
            return Err(command.rejection("array subscripts evaluate values as code; use a script tool"));
        }
        let Some(name) = command.literal().filter(|name| *name == "[" || !command.expands) else {
            let message = "the command name has to be literal; use `{{if …}}` to select between commands";
            return Err(command.rejection(message));
        };
        match name {
            "command" if matches!(arguments.first().and_then(Word::literal), Some("-v" | "-V")) => {}
            "command" | "builtin" | "exec" => return self.check_program(arguments),
            // The options of `time`, `command` and `exec`; `-a` has an argument.
            "-a" => return self.check_program(arguments.get(1..).unwrap_or_default()),
            _ if name.starts_with('-') => return self.check_program(arguments),
            "eval" | "let" | "trap" | "alias" | "mapfile" | "readarray" | "compgen" | "complete" | "bind"
            | "fc" | "coproc" => {
                return Err(command.rejection(format!(
                    "`{name}` may evaluate values as shell code; run the program directly, or use a script tool"
                )));
            }
            "source" | "." => check_source(name, arguments)?,
            "wait" if !arguments.iter().any(|word| word.prefix.starts_with('-')) => {}
            "read" | "unset" | "getopts" | "wait" | "hash" => return self.check_names(name, arguments),
            "export" | "readonly" | "local" | "declare" | "typeset" => {
                return self.check_declaration(name, arguments);
            }
            // Its arguments become `"$@"`.
            "set" => arguments.iter().for_each(|word| self.carry(word)),
            "printf" => return self.check_printf(arguments),
            "[" | "test" => return check_test(name, arguments),
            _ => {}
        }
        check_shell_text(words)?;
        self.guard_options(arguments);
        Ok(())
    }

    /// Records the values that a program could read as an option.
    fn guard_options(&mut self, arguments: &[Word]) {
        let options = arguments.iter().take_while(|word| word.literal() != Some("--")).count();
        for word in arguments.iter().take(options).filter(|word| word.starts_with_value()) {
            self.guarded.extend(&word.values);
            self.passes_variables |= word.computed;
        }
    }

    /// Checks a builtin whose arguments are names of variables, which the shell evaluates.
    fn check_names(&mut self, builtin: &str, arguments: &[Word]) -> ScanResult<()> {
        for word in arguments {
            let text = word.literal().filter(|text| !text.contains('[') && !word.braces);
            match text {
                Some(option) if option.starts_with('-') && !(builtin == "read" && option.contains('a')) => {}
                Some(_) if builtin == "unset" => {}
                Some(name) if !name.starts_with('-') => self.set_variable(word, name)?,
                _ => {
                    return Err(word.rejection(format!(
                        "`{builtin}` evaluates its arguments as code; write literal variable names"
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_declaration(&mut self, builtin: &str, arguments: &[Word]) -> ScanResult<()> {
        for word in arguments {
            match word.literal() {
                _ if word.assigned().is_some() => {
                    self.check_assignment(word)?;
                    self.carry_assigned(word);
                }
                Some(text) if text.starts_with('-') && !text.contains(['a', 'A', 'i', 'n']) => {}
                Some(name) if is_variable(name) && builtin == "export" => {}
                Some(name) if is_variable(name) => self.assigned.push(name.to_owned()),
                _ => {
                    return Err(word.rejection(format!(
                        "`{builtin}` may evaluate this word as code; write `{builtin} NAME=…` with a literal name"
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_printf(&mut self, arguments: &[Word]) -> ScanResult<()> {
        let mut arguments = arguments;
        if let Some((option, rest)) =
            arguments.split_first().filter(|(word, _)| word.prefix.starts_with("-v"))
        {
            match rest
                .first()
                .and_then(Word::literal)
                .filter(|name| option.prefix == "-v" && is_variable(name))
            {
                Some(name) => self.set_variable(option, name)?,
                None => {
                    return Err(
                        option.rejection("`printf -v` evaluates the variable name; write it literally")
                    );
                }
            }
            arguments = rest.get(1..).unwrap_or_default();
        }
        // There are no options behind the format.
        self.guard_options(arguments.get(..1).unwrap_or_default());
        Ok(())
    }
}

fn is_shell(text: &str) -> bool {
    SHELLS.contains(&text.rsplit('/').next().unwrap_or_default())
}

/// Returns whether a command reads its input as shell code.
pub(super) fn reads_code(words: &[Word]) -> bool {
    words.iter().filter_map(Word::literal).any(|text| is_shell(text) || matches!(text, "source" | "."))
}

fn check_source(name: &str, arguments: &[Word]) -> ScanResult<()> {
    let is_file = |text: &str| !text.starts_with("/dev/") && !text.starts_with("/proc/");
    match arguments.first() {
        Some(word) if !word.literal().is_some_and(is_file) => Err(word.rejection(format!(
            "`{name}` evaluates a file as shell code; name the file literally, or read it with `cat`"
        ))),
        _ => Ok(()),
    }
}

/// Rejects values in the text of `bash -c`, also behind `env`, `sudo`, `xargs` and the like.
fn check_shell_text(words: &[Word]) -> ScanResult<()> {
    for (index, word) in words.iter().enumerate() {
        if word.braces && word.prefix.split(['{', '}', ',']).any(is_shell) {
            return Err(word.rejection("brace expansion with the name of a shell; write the words out"));
        }
        let Some(shell) = word.literal().filter(|text| is_shell(text)) else { continue };
        let mut is_code = false;
        let mut takes_argument = false;
        for word in words.iter().skip(index + 1) {
            match word.literal().filter(|_| !word.braces) {
                Some(flags) if flags.starts_with(['-', '+']) => {
                    is_code |= flags.contains('c') && !flags.starts_with("--");
                    takes_argument = matches!(flags, "-o" | "+o" | "-O" | "+O");
                }
                Some(_) if takes_argument => takes_argument = false,
                None if is_code || word.braces || word.prefix.starts_with(['-', '+']) => {
                    return Err(word.rejection(format!(
                        "a value in the text of `{shell} -c` becomes shell code; write `{shell} -c '… \"$1\" …' _ {{{{name}}}}`"
                    )));
                }
                _ => break,
            }
        }
    }
    Ok(())
}

/// Rejects forms of `[ … ]` in which a value could become an operator: `-v` evaluates its operand.
fn check_test(name: &str, arguments: &[Word]) -> ScanResult<()> {
    let closing = arguments.last().is_some_and(|word| name == "[" && word.literal() == Some("]"));
    let words = arguments.get(..arguments.len() - usize::from(closing)).unwrap_or_default();
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1);
        let precedes_operator =
            next.and_then(Word::literal).is_some_and(|text| TEST_OPERATORS.contains(&text));
        let message = match word.literal() {
            Some("-v") if next.is_some_and(|next| next.literal().is_none()) => {
                "`-v` evaluates a value as code; write `[ -n \"…\" ]`"
            }
            None if word.split || word.braces => "quote the variables in `[ … ]`: write `[ \"$name\" = … ]`",
            None if next.is_some() && !precedes_operator && !word.has_text_prefix() => {
                "a value could be read as an operator of `[ … ]`; write `[ \"…\" = \"…\" ]`, joined by `&&`"
            }
            _ => continue,
        };
        return Err(word.rejection(message));
    }
    Ok(())
}
