//! Which programs read their arguments or their input as a program.

use super::shell::{Fault, Scan};
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
pub(super) const RUNNERS: [&str; 106] = [
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
        argument: &["-W", "-X"],
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
        argument: &["-r", "-I"],
        letters: "e",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno"],
        program: &["-e", "-p", "--eval", "--print", "run"],
        argument: &["-r", "--require"],
        letters: "ep",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["php"],
        program: &["-r", "-f"],
        argument: &["-d", "-c"],
        letters: "",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["lua", "luajit"],
        program: &["-e"],
        argument: &["-l"],
        letters: "",
        permutes: Permutes::BehindOption,
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        program: &["-f", "-e"],
        argument: &["-F", "-v"],
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
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Refuses an interpreter whose program is not written out in the command, or that could take a value for it.
pub(super) fn check_interpreter(name: &str, command: &Word, arguments: &[Word]) -> Scan<()> {
    let Some(interpreter) = INTERPRETERS.iter().find(|one| one.names.contains(&name)) else { return Ok(()) };
    let Some((program, by_option)) = find_program(interpreter, name, arguments)? else {
        return Err(Fault {
            at: command.at,
            message: format!(
                "`{name}` would read its program from its input, where values may stand; write the program or its file out in the command"
            ),
        });
    };
    let options_follow = match interpreter.permutes {
        Permutes::Never => false,
        Permutes::BehindOption => by_option,
        Permutes::Always => true,
    };
    if !options_follow {
        return Ok(());
    }
    let behind = arguments.get(program..).unwrap_or_default();
    let pairs = behind.iter().zip(behind.iter().skip(1));
    match pairs.into_iter().find(|(before, word)| !word.values.is_empty() && (option(before) || option(word)))
    {
        Some((_, word)) => Err(text_of_program(name, word)),
        None => Ok(()),
    }
}

/// Returns the place of the word that is the program, and whether an option named it.
fn find_program(interpreter: &Interpreter, name: &str, arguments: &[Word]) -> Scan<Option<(usize, bool)>> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else { return Err(text_of_program(name, word)) };
        let flags = text.strip_prefix('-').filter(|flags| !flags.is_empty() && !flags.starts_with('-'));
        let ends = flags
            .and_then(|flags| flags.chars().last())
            .is_some_and(|last| interpreter.letters.contains(last));
        if interpreter.program.contains(&text) || ends {
            return match arguments.get(at + 1) {
                Some(program) if program.literal().is_some() => Ok(Some((at + 1, true))),
                Some(program) => Err(text_of_program(name, program)),
                None => Ok(None),
            };
        }
        if is_shell(name) && text.starts_with('-') {
            return Err(Fault {
                at: word.at,
                message: format!(
                    "`{name}` with options is not supported in a command template that has values; name a script file, or write a script tool"
                ),
            });
        }
        if interpreter.argument.contains(&text) {
            match arguments.get(at + 1) {
                Some(value) if value.literal().is_some() || (text == "-v" && is_setting(value)) => at += 2,
                Some(value) => return Err(text_of_program(name, value)),
                None => return Ok(None),
            }
        } else if text.starts_with('-') && text != "-" {
            at += 1;
        } else if text.is_empty() || text == "-" || text.starts_with("/dev/") || text.starts_with("/proc/") {
            return Ok(None);
        } else {
            return Ok(Some((at, false)));
        }
    }
    Ok(None)
}

/// `awk -v name={{value}}`.
fn is_setting(word: &Word) -> bool {
    word.assigned().is_some() && !word.computed
}

fn option(word: &Word) -> bool {
    word.prefix.starts_with('-') && word.literal() != Some("--")
}

fn text_of_program(name: &str, word: &Word) -> Fault {
    Fault {
        at: word.at,
        message: format!(
            "a value that `{name}` could read as part of its program; write the program out and pass the value behind it, or by a variable"
        ),
    }
}
