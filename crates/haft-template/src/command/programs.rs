//! Which programs read their arguments or their input as a program.

use super::rules::refuse;
use super::shell::{Fault, Scan};
use super::sources::{check_behind, check_module, check_option, check_perl, is_input, may_take_argument};
use super::word::Word;

/// Builtins of the shell that take values as they are.
pub(super) const TAKES_VALUES: [&str; 8] = [":", "true", "false", "echo", "cd", "pwd", "exit", "kill"];

/// Builtins of the shell that read a word as the name of a variable or as arithmetic: no values in them.
pub(super) const LITERAL_ONLY: [&str; 10] =
    ["read", "unset", "shift", "break", "continue", "return", "wait", "umask", "type", "hash"];

/// Builtins of the shell that run text, or change how it reads text. Not in a command that has values.
pub(super) const REFUSED_BUILTINS: [&str; 31] = [
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "let",
    "declare",
    "typeset",
    "local",
    "readonly",
    "shopt",
    "enable",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "mapfile",
    "readarray",
    "fc",
    "history",
    "getopts",
    "builtin",
    "caller",
    "ulimit",
    "dirs",
    "pushd",
    "popd",
    "suspend",
    "disown",
    "logout",
];

/// Programs that hand their arguments or their input to a shell or an interpreter of their own.
pub(super) const RUNNERS: [&str; 108] = [
    "xargs",
    "parallel",
    "ssh",
    "sshpass",
    "rsh",
    "su",
    "runuser",
    "watch",
    "script",
    "screen",
    "tmux",
    "at",
    "batch",
    "crontab",
    "expect",
    "gdb",
    "lldb",
    "vi",
    "vim",
    "nvim",
    "ex",
    "ed",
    "emacs",
    "nano",
    "m4",
    "bc",
    "dc",
    "sqlite",
    "psql",
    "mysql",
    "mariadb",
    "gnuplot",
    "octave",
    "R",
    "ghci",
    "irb",
    "tclsh",
    "wish",
    "osascript",
    "busybox",
    "toybox",
    "flock",
    "chroot",
    "nsenter",
    "unshare",
    "strace",
    "ltrace",
    "make",
    "gmake",
    "cmake",
    "systemd-run",
    "start-stop-daemon",
    "socat",
    "pkexec",
    "entr",
    "gosu",
    "su-exec",
    "setpriv",
    "capsh",
    "sg",
    "taskset",
    "chrt",
    "prlimit",
    "setarch",
    "numactl",
    "unbuffer",
    "xvfb-run",
    "dbus-run-session",
    "fakeroot",
    "proot",
    "bwrap",
    "firejail",
    "systemd-nspawn",
    "machinectl",
    "systemd-inhibit",
    "proxychains",
    "torsocks",
    "faketime",
    "cpulimit",
    "valgrind",
    "perf",
    "hyperfine",
    "run-parts",
    "ansible",
    "wine",
    "mosh",
    "pwsh",
    "powershell",
    "nu",
    "xonsh",
    "elvish",
    "ipython",
    "iex",
    "erl",
    "jshell",
    "scala",
    "sbcl",
    "clisp",
    "ocaml",
    "ghc",
    "duckdb",
    "sqlcmd",
    "mongo",
    "mongosh",
    "cqlsh",
    "usql",
    "rename",
    "prename",
];

/// Shells: they run a script file of the command, and nothing else.
const SHELLS: [&str; 11] =
    ["sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"];

/// Programs that run the program behind them.
pub(super) const PREFIXES: [&str; 13] = [
    "command", "exec", "nohup", "setsid", "nice", "ionice", "sudo", "doas", "stdbuf", "chronic", "env",
    "time", "timeout",
];

/// How an interpreter is told its program.
struct Interpreter {
    names: &'static [&'static str],
    /// Options whose argument is the program.
    program: &'static [&'static str],
    /// Options whose argument is something else.
    argument: &'static [&'static str],
    /// The last letter of a group of flags that does the same as an option of `program`.
    letters: &'static str,
    /// Whether options are still read behind a program that an option gave.
    permutes: Permutes,
}

#[derive(Clone, Copy, PartialEq)]
enum Permutes {
    Never,
    BehindOption,
    Always,
}

const INTERPRETERS: [Interpreter; 10] = [
    Interpreter {
        names: &["python", "pypy"],
        program: &["-c", "-m"],
        argument: &["-W", "-X", "--check-hash-based-pycs"],
        letters: "cm",
        permutes: Permutes::Never,
    },
    Interpreter {
        names: &["perl"],
        program: &["-e", "-E"],
        argument: &["-I"],
        letters: "eE",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["ruby", "jruby"],
        program: &["-e"],
        argument: &["-r", "-I", "-C", "-E", "-F"],
        letters: "e",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno"],
        program: &["-e", "-p", "--eval", "--print"],
        argument: &["-r", "--require", "--import", "-C"],
        letters: "ep",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["php"],
        program: &["-r", "-f", "-B", "-R", "-E", "-F"],
        argument: &["-d", "-c", "-S", "-t"],
        letters: "",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        // Behind `-e` it still takes a file.
        names: &["lua", "luajit"],
        program: &[],
        argument: &["-e", "-l"],
        letters: "",
        permutes: Permutes::Never,
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        program: &["-f", "-e"],
        argument: &["-F", "-v", "-i", "-l", "-W"],
        letters: "",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["sed", "gsed"],
        program: &["-e", "-f", "--expression", "--file"],
        argument: &["-l"],
        letters: "ef",
        permutes: Permutes::Always,
    },
    Interpreter {
        names: &["julia", "Rscript", "guile", "elixir", "groovy", "raku", "racket", "hy", "ts-node", "tsx"],
        program: &[
            "-e",
            "-E",
            "-c",
            "-p",
            "-r",
            "-f",
            "-L",
            "-s",
            "--eval",
            "--print",
            "--load",
            "--require",
        ],
        argument: &[],
        letters: "eE",
        permutes: Permutes::BehindOption,
    },
    Interpreter { names: &SHELLS, program: &[], argument: &[], letters: "", permutes: Permutes::Never },
];

/// Returns the name of a program without its folder and without the version behind it.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or_default();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if bare.is_empty() { name } else { bare }
}

/// Tells whether a program is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    interpreter(program).is_some_and(|(_, name)| SHELLS.contains(&name))
}

/// Tells whether a program is an interpreter.
pub(super) fn is_interpreter(program: &str) -> bool {
    interpreter(program).is_some()
}

/// Finds the interpreter that a program is, whatever version is in its name: `perl5.36-x86_64-linux-gnu`.
fn interpreter(program: &str) -> Option<(&'static Interpreter, &'static str)> {
    let file = program.rsplit('/').next().unwrap_or_default();
    let versioned = |name: &str| {
        file.strip_prefix(name).is_some_and(|rest| {
            let digit = rest.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
            rest.is_empty() || rest.starts_with('-') || digit
        })
    };
    INTERPRETERS.iter().find_map(|one| one.names.iter().find(|name| versioned(name)).map(|name| (one, *name)))
}

/// Refuses an interpreter whose program is not written out in the command, or that could take a value for it.
pub(super) fn check_interpreter(command: &Word, arguments: &[Word]) -> Scan<()> {
    let Some((interpreter, name)) = command.literal().and_then(interpreter) else { return Ok(()) };
    let arguments = match arguments.split_first() {
        Some((first, rest)) if matches!(name, "bun" | "deno") => match first.literal() {
            Some("run") => rest,
            Some(text) if text.starts_with('-') => arguments,
            _ => {
                return refuse(
                    first,
                    format!("expected `run` behind `{name}` in a command template that has values"),
                );
            }
        },
        _ => arguments,
    };
    let Some((program, by_option)) = find_program(interpreter, name, arguments)? else {
        return refuse(
            command,
            format!(
                "`{name}` would read its program from its input, where values may stand; write the program or its file out in the command"
            ),
        );
    };
    if name == "perl" {
        check_perl(arguments)?;
    }
    let options_follow = match interpreter.permutes {
        Permutes::Never => false,
        Permutes::BehindOption => by_option,
        Permutes::Always => true,
    };
    if options_follow {
        return check_behind(name, arguments.get(program..).unwrap_or_default());
    }
    Ok(())
}

/// Returns the place of the word that is the program, and whether an option named it.
fn find_program(interpreter: &Interpreter, name: &str, arguments: &[Word]) -> Scan<Option<(usize, bool)>> {
    let mut at = 0;
    let mut before = "";
    while let Some(word) = arguments.get(at) {
        let text = written_out(name, word)?;
        if interpreter.names_program(text) {
            check_option(name, word, text)?;
            return match arguments.get(at + 1) {
                Some(program) if is_input(written_out(name, program)?) => Ok(None),
                Some(program) => {
                    if text.ends_with('m') {
                        check_module(program, arguments.get(at + 2..).unwrap_or_default())?;
                    }
                    Ok(Some((at + 1, true)))
                }
                None => Ok(None),
            };
        }
        if text.starts_with('-') && text != "-" {
            if SHELLS.contains(&name) {
                return refuse(
                    word,
                    format!(
                        "`{name}` with options is not supported in a command template that has values; name a script file, or write a script tool"
                    ),
                );
            }
            check_option(name, word, text)?;
        }
        if interpreter.argument.contains(&text) {
            match arguments.get(at + 1) {
                Some(value) if text == "-v" && is_setting(value) => {}
                Some(value) => written_out(name, value).map(|_| ())?,
                None => return Ok(None),
            }
            before = "";
            at += 2;
        } else if text.starts_with('-') && text != "-" {
            before = text;
            at += 1;
        } else if may_take_argument(before) {
            return refuse(
                word,
                format!(
                    "`{text}` could be the program of `{name}`, or belong to `{before}`; write `{before}=…`, or a script"
                ),
            );
        } else {
            return Ok((!is_input(text)).then_some((at, false)));
        }
    }
    Ok(None)
}

impl Interpreter {
    /// Tells whether an option is followed by the program.
    fn names_program(&self, option: &str) -> bool {
        let flags = option.strip_prefix('-').filter(|flags| !flags.starts_with('-'));
        // The rest of a group behind a letter such as the `W` of `-W` is the argument of that.
        let takes_rest =
            |c: char| self.argument.iter().any(|one| one.strip_prefix('-') == Some(c.to_string().as_str()));
        let last = flags.filter(|flags| !flags.contains(takes_rest)).and_then(|flags| flags.chars().last());
        self.program.contains(&option) || last.is_some_and(|last| self.letters.contains(last))
    }
}

/// Returns the text of a word that could be the program; it is in the command as it stands.
fn written_out<'a>(name: &str, word: &'a Word) -> Scan<&'a str> {
    match word.literal() {
        Some(_) if word.pattern => {
            refuse(word, format!("a pattern among the words that tell `{name}` its program; quote it"))
        }
        Some(text) => Ok(text),
        None => Err(text_of_program(name, word)),
    }
}

/// `awk -v name={{value}}`.
fn is_setting(word: &Word) -> bool {
    word.assigned().is_some() && !word.computed && !word.pattern
}

pub(super) fn text_of_program(name: &str, word: &Word) -> Fault {
    Fault {
        at: word.at,
        message: format!(
            "a value that `{name}` could read as part of its program; write the program out and pass the value behind it, or by a variable"
        ),
    }
}
