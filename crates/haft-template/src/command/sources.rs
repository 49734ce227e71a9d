//! Where an interpreter could get its program from besides the words of the command.

use super::programs::text_of_program;
use super::shell::{Fault, Scan};
use super::word::Word;

/// Modules that `python -m` runs, and that take what follows as data.
const DATA_MODULES: [&str; 9] =
    ["json.tool", "http.server", "base64", "gzip", "zipfile", "tarfile", "calendar", "uuid", "quopri"];
/// Modules that run code of their arguments, but of nothing else.
const MODULES_WITHOUT_VALUES: [&str; 2] = ["pip", "venv"];

/// Long options that take no argument; behind any other the next word could be its argument.
const PLAIN_LONG_OPTIONS: [&str; 21] = [
    "--",
    "--quiet",
    "--silent",
    "--posix",
    "--regexp-extended",
    "--null-data",
    "--zero-terminated",
    "--separate",
    "--in-place",
    "--debug",
    "--sandbox",
    "--unbuffered",
    "--csv",
    "--re-interval",
    "--traditional",
    "--no-warnings",
    "--trace-warnings",
    "--enable-source-maps",
    "--experimental-strip-types",
    "--disable-gems",
    "--project",
];

/// Tells whether a file is the input of the program, or something else that is no file of its own.
pub(super) fn is_input(path: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let first = parts.iter().find(|part| **part != "..").copied().unwrap_or_default();
    let above = path.starts_with('/') || parts.first() == Some(&"..");
    path.is_empty()
        || path == "-"
        || parts.last() == Some(&"stdin")
        || parts.contains(&"fd")
        || first == "proc"
        || (above && first == "dev")
}

/// Refuses options of an interpreter that make it read more than the program that the command names.
pub(super) fn check_option(name: &str, word: &Word, text: &str) -> Scan<()> {
    let refuse = |why: &str| {
        let message = format!(
            "`{text}` {why}; it is not supported in a command template that has values; write a script"
        );
        Err(Fault { at: word.at, message })
    };
    if text.starts_with("--") {
        let (option, argument) = text.split_once('=').unwrap_or((text, ""));
        if !argument.is_empty() && is_input(argument) {
            return refuse("reads a program from the input");
        }
        return if option == "--interactive" || option.starts_with("--inter") {
            refuse("reads a program from the input")
        } else {
            Ok(())
        };
    }
    let flags = text.strip_prefix('-').unwrap_or_default();
    let input = flags.char_indices().skip(1).any(|(at, _)| flags.get(at..).is_some_and(is_input));
    let (interactive, argument) = match name {
        "python" | "pypy" => ("i", "cmWX"),
        "node" | "nodejs" | "bun" | "deno" => ("i", "r"),
        "lua" | "luajit" => ("i", "el"),
        "php" => ("a", "rfdc"),
        "perl" => ("d", "MmIeE"),
        _ => ("", ""),
    };
    let plain = flags.find(|c| argument.contains(c)).and_then(|end| flags.get(..end)).unwrap_or(flags);
    if input || plain.contains(|c| interactive.contains(c)) {
        return refuse("reads a program from the input");
    }
    if matches!(name, "python" | "pypy")
        && flags.get(plain.len()..).is_some_and(|rest| rest.len() > 1 && rest.starts_with(['c', 'm']))
    {
        return refuse("holds the program in the same word");
    }
    Ok(())
}

/// Tells whether the word behind an option could be its argument, and not the program.
pub(super) fn may_take_argument(option: &str) -> bool {
    option.starts_with("--") && !option.contains('=') && !PLAIN_LONG_OPTIONS.contains(&option)
}

/// Refuses modules of Python that run code of their arguments or of their input.
pub(super) fn check_module(word: &Word, behind: &[Word]) -> Scan<()> {
    let module = word.literal().unwrap_or_default();
    let values = behind.iter().any(|word| word.literal().is_none());
    if DATA_MODULES.contains(&module) || (!values && MODULES_WITHOUT_VALUES.contains(&module)) {
        return Ok(());
    }
    let message = format!(
        "`python -m {module}` could run values as code; name a script file, or write `python3 -c 'import …' {{{{x}}}}`"
    );
    Err(Fault { at: word.at, message })
}

/// Refuses values that perl would open as files: it runs a name such as `command|`.
pub(super) fn check_perl(arguments: &[Word]) -> Scan<()> {
    let Some(value) = arguments.iter().find(|word| word.literal().is_none()) else { return Ok(()) };
    let texts = || arguments.iter().filter_map(Word::literal);
    let loops = texts().filter_map(|text| text.strip_prefix('-')).any(|flags| {
        let end = flags.find(['M', 'm', 'I', 'e', 'E']).unwrap_or(flags.len());
        flags.get(..end).unwrap_or(flags).contains(['n', 'p', 'a', 'F'])
    });
    let opens = texts().any(|text| {
        let handle = text
            .match_indices("ARGV")
            .any(|(at, _)| !text.get(..at).unwrap_or_default().ends_with(['@', '$', '#']));
        handle || ["<>", "readline", "eof"].iter().any(|part| text.contains(part))
    });
    if loops || opens {
        let message = "a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program";
        return Err(Fault { at: value.at, message: message.to_owned() });
    }
    Ok(())
}

/// Refuses what an interpreter that still reads options could take for one.
pub(super) fn check_behind(name: &str, behind: &[Word]) -> Scan<()> {
    let open = behind.iter().skip(1).take_while(|word| word.literal() != Some("--"));
    for word in open {
        let expands = word.braces && word.literal() != Some("{}");
        if expands
            || word.split
            || (word.computed && (word.prefix.is_empty() || word.prefix.starts_with('-')))
        {
            return Err(Fault {
                at: word.at,
                message: format!(
                    "a variable or a pattern that `{name}` could take for an option with a program; write it in double quotes behind `--`"
                ),
            });
        }
    }
    for (before, word) in behind.iter().zip(behind.iter().skip(1)) {
        match word.literal() {
            // A second program, as in `awk -f a.awk -f /dev/stdin`.
            Some(text) if option(before) && is_input(text) => return Err(text_of_program(name, word)),
            Some(text) if option(word) => check_option(name, word, text)?,
            None if option(before) || option(word) => return Err(text_of_program(name, word)),
            _ => {}
        }
    }
    Ok(())
}

fn option(word: &Word) -> bool {
    word.prefix.starts_with('-') && word.literal() != Some("--")
}
