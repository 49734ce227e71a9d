//! Values that a program would run: behind options that take code, and in what starts another program.

use super::programs::{check_interpreter, is_interpreter, is_shell};
use super::rules::refuse;
use super::shell::Scan;
use super::word::Word;

/// Programs whose `-c` and `-e` take no code. For every other one a value behind these is refused.
const PLAIN: [&str; 52] = [
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rg",
    "ag",
    "head",
    "tail",
    "cut",
    "wc",
    "ping",
    "curl",
    "sort",
    "uniq",
    "tar",
    "gzip",
    "gunzip",
    "zcat",
    "bzip",
    "xz",
    "zstd",
    "zip",
    "unzip",
    "gcc",
    "g++",
    "cc",
    "clang",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "b2sum",
    "stat",
    "diff",
    "jq",
    "ls",
    "du",
    "cat",
    "od",
    "xxd",
    "hexdump",
    "touch",
    "truncate",
    "chmod",
    "chown",
    "ps",
    "lsof",
    "column",
    "file",
    "ffmpeg",
    "pandoc",
];

/// Parts of the names of options that take code, as in `--to-command`, `-exec`, `--eval`.
const CODE: [&str; 8] = ["eval", "exec", "execute", "command", "commands", "cmd", "program", "script"];

/// Options of single programs that name code, or a file that is loaded as code.
const OWN: [(&[&str], &[&str]); 14] = [
    (&["tar", "bsdtar"], &["--checkpoint-action", "-I", "-F"]),
    (&["rsync"], &["--rsh", "--rsync-path"]),
    (&["scp", "sftp"], &["-o", "-S", "-F"]),
    (&["git"], &["--upload-pack", "--receive-pack", "--exec-path", "--config-env", "--config", "-u"]),
    (&["hg"], &["--config"]),
    (&["svn"], &["--config-option"]),
    (&["fd", "fdfind"], &["-x", "-X"]),
    (&["rg"], &["--pre"]),
    (&["curl"], &["-K", "--config"]),
    (&["split"], &["--filter"]),
    (&["pandoc"], &["-F", "-L", "--filter", "--lua-filter"]),
    (&["openssl"], &["-engine", "-provider", "-provider-path", "-config"]),
    (&["tcpdump"], &["-z"]),
    (&["java"], &["-jar", "-cp", "-classpath", "--class-path", "-agentpath"]),
];

/// Programs that start others inside of something else, by one of [`INSIDE`].
const CONTAINERS: [&str; 11] =
    ["docker", "podman", "nerdctl", "crictl", "ctr", "kubectl", "oc", "lxc", "incus", "flatpak", "ip"];
/// The commands of [`CONTAINERS`] behind which a program may stand.
const INSIDE: [&str; 3] = ["run", "exec", "debug"];

/// Programs that start the one named behind them, maybe after one of [`START`].
const STARTERS: [&str; 14] = [
    "npx", "bunx", "uvx", "pipx", "npm", "pnpm", "yarn", "uv", "poetry", "pipenv", "bundle", "cargo", "go",
    "nix",
];
/// The commands of [`STARTERS`] behind which the program stands.
const START: [&str; 5] = ["run", "exec", "x", "dlx", "tool"];

/// Programs that run none of their arguments, so that the name of an interpreter among them is a text.
const INERT: [&str; 34] = [
    "apt", "apt-get", "basename", "brew", "cat", "cd", "cp", "curl", "cut", "dirname", "egrep", "fgrep",
    "file", "find", "grep", "head", "jq", "kill", "ls", "man", "mkdir", "mv", "pgrep", "rg", "rm", "sort",
    "stat", "tail", "tee", "touch", "tr", "uniq", "wc", "which",
];

/// Refuses values that any program, or this one, would run.
pub(super) fn check_arguments(name: &str, arguments: &[Word]) -> Scan<()> {
    check_hand_over(name, arguments)?;
    check_options(name, arguments)?;
    check_started(name, arguments)
}

/// Refuses values behind `sh -c`, whoever runs it, in what `find` runs, and for any interpreter among the words.
fn check_hand_over(program: &str, arguments: &[Word]) -> Scan<()> {
    let mut shell = false;
    let mut runs: Option<&str> = None;
    for (at, word) in arguments.iter().enumerate() {
        if let (Some(what), None) = (runs, word.literal()) {
            return refuse(
                word,
                format!("a value behind `{what}` would be read as a program; write a script tool"),
            );
        }
        let Some(text) = word.literal() else {
            shell = false;
            continue;
        };
        let flags = text.strip_prefix('-').unwrap_or_default();
        if shell && !flags.starts_with('-') && flags.contains('c') {
            runs = Some("sh -c");
        }
        if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            runs = Some("-exec");
        }
        shell = is_shell(text) || (shell && text.starts_with('-'));
        if !INERT.contains(&program) {
            check_run(word, text, arguments.get(at + 1..).unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Checks an interpreter that stands among the words of another program.
fn check_run(word: &Word, text: &str, behind: &[Word]) -> Scan<()> {
    if word.braces && text.split(['{', '}', ',']).any(is_interpreter) {
        return refuse(word, "a pattern that names an interpreter; write it out");
    }
    // What follows `sh -c` is looked at as it comes.
    let by_option = behind.first().and_then(Word::literal).is_some_and(|text| text.starts_with("-c"));
    if is_shell(text) && by_option { Ok(()) } else { check_interpreter(word, behind) }
}

/// Refuses values behind or in options that take code, and as the name of an option.
fn check_options(name: &str, arguments: &[Word]) -> Scan<()> {
    let mut before = "";
    for word in arguments {
        if let Some(text) = word.literal() {
            before = text;
            continue;
        }
        let Some(option) = attached(word) else {
            return refuse(word, "a value in the name of an option; write the name out");
        };
        if let Some(option) = [before, option].into_iter().find(|option| takes_code(name, option)) {
            return refuse(
                word,
                format!(
                    "a value behind `{option}`, which `{name}` could run as a program; write it out and pass the value by a variable (`NAME={{{{x}}}} {name} …`), or write a script"
                ),
            );
        }
        before = "";
    }
    Ok(())
}

/// Returns the option that a value is attached to, or nothing where the value is in its name.
fn attached(word: &Word) -> Option<&str> {
    let prefix = word.prefix.as_str();
    match prefix.split_once('=') {
        _ if !prefix.starts_with('-') => Some(""),
        Some((option, _)) => Some(option),
        None if word.values.is_empty() => Some(""),
        None if prefix == "-" || prefix.starts_with("--") => None,
        None => prefix.char_indices().nth(2).map_or(Some(prefix), |(end, _)| prefix.get(..end)),
    }
}

fn takes_code(name: &str, option: &str) -> bool {
    if OWN.iter().any(|(names, options)| names.contains(&name) && options.contains(&option)) {
        return true;
    }
    match option {
        "-c" | "-e" => !PLAIN.contains(&name),
        _ => {
            let long = option.strip_prefix('-').unwrap_or_default().to_ascii_lowercase();
            long.split('-').any(|part| CODE.contains(&part))
        }
    }
}

/// Refuses values where they could name the program that this one starts.
fn check_started(name: &str, arguments: &[Word]) -> Scan<()> {
    if CONTAINERS.contains(&name) {
        let mut words = arguments.iter();
        // What stands behind may be an option, an image, a program or its argument: only the engine knows.
        words.find(|word| word.literal().is_some_and(|text| INSIDE.contains(&text)));
        if let Some(word) = words.find(|word| word.literal().is_none()) {
            return refuse(word, format!("a value that `{name}` could start as a program; write a script"));
        }
    }
    if STARTERS.contains(&name) {
        let names =
            |word: &Word| word.literal().is_none_or(|text| !text.starts_with('-') && !START.contains(&text));
        let at = arguments.iter().position(names).unwrap_or(arguments.len());
        // In `--with a {{x}}` the word may belong to the option, and the next one be the program.
        let option = at.checked_sub(1).and_then(|at| arguments.get(at)).and_then(Word::literal);
        let plain =
            |text: &str| !text.starts_with("--") || text.contains('=') || ["--", "--yes"].contains(&text);
        let words = if option.is_none_or(plain) { 1 } else { 2 };
        if let Some(word) = arguments.iter().skip(at).take(words).find(|word| word.literal().is_none()) {
            return refuse(
                word,
                format!("a value that `{name}` could start as a program; write the program before it"),
            );
        }
    }
    Ok(())
}
