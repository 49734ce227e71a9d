//! What a command may do with values, once its words are known.

use super::super::variables::{is_variable, reserved_variable};
use super::arguments::check_arguments;
use super::programs::{
    LITERAL_ONLY, PREFIXES, REFUSED_BUILTINS, RUNNERS, TAKES_VALUES, base_name, check_interpreter,
};
use super::shell::{Fault, Scan, Shell};
use super::word::Word;

/// Operators of `[ … ]` that take one word, and never the name of a variable.
const UNARY: [&str; 20] = [
    "-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-g", "-u",
    "-k", "-O", "-G",
];
/// Operators of `[ … ]` that take two words.
const BINARY: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

impl Shell<'_> {
    /// Checks a simple command: what runs, and what it would make of the values.
    pub(super) fn check_command(&mut self, words: &[Word]) -> Scan<()> {
        let assignments = words.iter().take_while(|word| word.assigned().is_some()).count();
        let (before, words) = words.split_at_checked(assignments).unwrap_or((words, &[]));
        before.iter().try_for_each(|word| self.assignment(word))?;
        if words.is_empty() {
            // Before a program they last as long as that, and its words are expanded without them.
            for word in before {
                self.carry_assigned(word);
            }
            return Ok(());
        }
        self.program(words)
    }

    fn assignment(&mut self, word: &Word) -> Scan<()> {
        let name = word.assigned().unwrap_or_default();
        if name.starts_with("HAFT_") {
            return refuse(word, format!("`{name}` belongs to haft; choose another name"));
        }
        let computed = word.computed && (name != "PATH" || word.foreign);
        if reserved_variable(name) && (computed || !word.values.is_empty()) {
            return refuse(
                word,
                format!("a value in `{name}` would change how programs run; choose another name"),
            );
        }
        self.sets.push(name.to_owned());
        Ok(())
    }

    /// Remembers a variable that the shell sets from its input or from a list.
    pub(super) fn set_by_shell(&mut self, word: &Word, name: &str) -> Scan<()> {
        // Both belong to bash, and nothing obeys them.
        if is_variable(name) && reserved_variable(name) && !matches!(name, "_" | "REPLY") {
            return refuse(
                word,
                format!("a value in `{name}` would change how programs run; choose another name"),
            );
        }
        self.sets.push(name.to_owned());
        Ok(())
    }

    /// Remembers the values of a word that another command may get as a word.
    pub(super) fn carry(&mut self, word: &Word) {
        if word.braces || word.prefix.is_empty() {
            self.carried.extend(&word.values);
        }
    }

    fn carry_assigned(&mut self, word: &Word) {
        if word.prefix.split_once('=').is_some_and(|(_, text)| text.is_empty()) {
            self.carried.extend(&word.values);
        }
    }

    fn program(&mut self, words: &[Word]) -> Scan<()> {
        let Some((command, arguments)) = words.split_first() else { return Ok(()) };
        let fixed = |name: &&str| *name == "[" || (!command.pattern && !command.is_element());
        let Some(name) = command.literal().filter(fixed) else {
            let why = "the name of a program has to be written out; values, variables and patterns cannot stand there";
            return refuse(command, why);
        };
        if name.starts_with('-') {
            return refuse(command, "the name of a program cannot start with `-`");
        }
        if PREFIXES.contains(&base_name(name)) {
            return self.prefixed(command, base_name(name), arguments);
        }
        match name {
            "[" | "test" => return test(name, command, arguments),
            "printf" => return printf(command, arguments),
            "export" => return self.export(arguments),
            "set" => return self.set(arguments),
            _ if TAKES_VALUES.contains(&name) && name != "cd" && name != "kill" => return Ok(()),
            _ if LITERAL_ONLY.contains(&name) => return self.literal_only(name, arguments),
            _ if REFUSED_BUILTINS.contains(&name) => {
                let why = format!(
                    "`{name}` is not supported in a command template that has values; write a script"
                );
                return refuse(command, why);
            }
            _ => {}
        }
        let base = base_name(name);
        if RUNNERS.contains(&base) || RUNNERS.contains(&name.rsplit('/').next().unwrap_or_default()) {
            let why = format!(
                "`{base}` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script"
            );
            return refuse(command, why);
        }
        check_interpreter(command, arguments)?;
        check_arguments(base, arguments)?;
        self.guard(base, arguments);
        Ok(())
    }

    /// Remembers the values that a program could take for an option.
    fn guard(&mut self, name: &str, arguments: &[Word]) {
        // `find` reads an expression behind `--` all the same.
        let open = arguments.iter().take_while(|word| name == "find" || word.literal() != Some("--"));
        for word in open.filter(|word| word.prefix.is_empty() || word.braces) {
            self.guarded.extend(&word.values);
            self.open |= word.computed;
        }
    }

    /// `nohup`, `timeout 5` and the like: the command is the one behind them.
    fn prefixed(&mut self, command: &Word, name: &str, arguments: &[Word]) -> Scan<()> {
        let skipped = match name {
            "env" => arguments.iter().take_while(|word| word.assigned().is_some()).count(),
            "timeout" => 1,
            _ => 0,
        };
        let (before, words) = arguments.split_at_checked(skipped).unwrap_or((arguments, &[]));
        if name == "env" {
            before.iter().try_for_each(|word| self.assignment(word))?;
        } else if let Some(word) = before
            .iter()
            .find(|word| word.prefix.starts_with('-') || word.pattern || word.literal().is_none())
        {
            return refuse(word, format!("expected a literal time behind `{name}`"));
        }
        match words.first() {
            None => refuse(command, format!("`{name}` is followed by no program")),
            Some(word) if word.prefix.starts_with('-') => refuse(
                word,
                format!("options of `{name}` are not supported in a command template that has values"),
            ),
            Some(_) => self.nested(|shell| shell.program(words)),
        }
    }

    fn literal_only(&mut self, name: &str, arguments: &[Word]) -> Scan<()> {
        for word in arguments {
            match word.literal() {
                Some(text) if !text.contains('[') && !word.pattern => {
                    if name == "read" {
                        // `-aNAME` is one word too.
                        let array = text.strip_prefix('-').and_then(|flags| flags.split_once('a'));
                        self.set_by_shell(word, array.map_or(text, |(_, name)| name))?;
                    }
                }
                _ => {
                    return refuse(
                        word,
                        format!("`{name}` takes literal words only in a command template that has values"),
                    );
                }
            }
        }
        Ok(())
    }

    fn export(&mut self, arguments: &[Word]) -> Scan<()> {
        for word in arguments {
            if word.assigned().is_some() {
                self.assignment(word)?;
                self.carry_assigned(word);
            } else if word.literal().is_none_or(|text| text.starts_with('-') || text.contains('[')) {
                return refuse(word, "expected `NAME=value` or `NAME` behind `export`");
            }
        }
        Ok(())
    }

    fn set(&mut self, arguments: &[Word]) -> Scan<()> {
        const KNOWN: [&str; 5] = ["-o", "+o", "pipefail", "errexit", "nounset"];
        for (at, word) in arguments.iter().enumerate() {
            match word.literal() {
                Some("--") => {
                    arguments.iter().skip(at).for_each(|word| self.carry(word));
                    return Ok(());
                }
                Some(text) if KNOWN.contains(&text) => {}
                Some(text)
                    if text.starts_with(['-', '+']) && text.chars().skip(1).all(|c| "euxo".contains(c)) => {}
                _ => {
                    return refuse(
                        word,
                        "`set` takes `-e`, `-u`, `-x`, `-o pipefail` or `-- words` in a command template that has values",
                    );
                }
            }
        }
        Ok(())
    }
}

/// Checks where a redirection goes.
pub(super) fn check_target(operator: &str, target: &Word) -> Scan<()> {
    if target.values.is_empty() || operator == "<<<" {
        return Ok(());
    }
    if operator.ends_with('&') {
        return refuse(target, "a value behind `>&` would be read as the number of a file descriptor");
    }
    let prefix = target.prefix.as_str();
    if "/dev/tcp/".starts_with(prefix) || prefix.starts_with("/dev/") || prefix.starts_with("//") {
        return refuse(
            target,
            "a value at the start of a file name, which the shell could take for `/dev/tcp/…`; write a folder before it, such as `./{{name}}`",
        );
    }
    Ok(())
}

fn test(name: &str, command: &Word, arguments: &[Word]) -> Scan<()> {
    let mut words = arguments;
    if name == "[" {
        match arguments.split_last() {
            Some((last, rest)) if last.literal() == Some("]") => words = rest,
            _ => return refuse(command, "`[` has no `]`"),
        }
    }
    if words.iter().all(|word| word.literal().is_some_and(|text| text != "-v")) {
        return Ok(());
    }
    if let Some(word) = words.iter().find(|word| word.split) {
        return refuse(
            word,
            format!(
                "a variable in `{name}` that the shell splits into words; write one variable, in double quotes"
            ),
        );
    }
    if words.first().and_then(Word::literal) == Some("!") {
        words = words.get(1..).unwrap_or_default();
    }
    let known = match words {
        [_] => true,
        [operator, _] => operator.literal().is_some_and(|text| UNARY.contains(&text)),
        [_, operator, _] => operator.literal().is_some_and(|text| BINARY.contains(&text)),
        _ => false,
    };
    if known {
        return Ok(());
    }
    refuse(
        command,
        format!(
            "a value in this form of `{name}` could be read as an operator; write `[ -n … ]` or `[ … = … ]`, joined by `&&` and `||`"
        ),
    )
}

fn printf(command: &Word, arguments: &[Word]) -> Scan<()> {
    let format = arguments.iter().find(|word| word.literal() != Some("--")).unwrap_or(command);
    let literal = format.literal().filter(|text| !text.starts_with('-') && !text.contains("%n"));
    match literal {
        Some(text) if !conversion_with(text, 'n') => Ok(()),
        _ => refuse(
            format,
            "the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`",
        ),
    }
}

/// Tells whether a format has a conversion of that letter, such as `%5n`.
fn conversion_with(format: &str, letter: char) -> bool {
    format.split('%').skip(1).any(|rest| {
        let conversion = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "#-+ .*'hlLjzt".contains(c));
        conversion.starts_with(letter)
    })
}

pub(super) fn refuse<T>(word: &Word, message: impl Into<String>) -> Scan<T> {
    Err(Fault { at: word.at, message: message.into() })
}
