//! Values that a program would run: behind options that take code, and in what starts another program.

use super::programs::{base_name, is_shell};
use super::shell::{Fault, Scan};
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

/// Refuses values that any program, or this one, would run.
pub(super) fn check_arguments(name: &str, arguments: &[Word]) -> Scan<()> {
    check_hand_over(arguments)?;
    check_options(name, arguments)?;
    check_started(name, arguments)
}

/// Refuses values behind `sh -c`, whoever runs it, and in what `find` runs.
fn check_hand_over(arguments: &[Word]) -> Scan<()> {
    let mut shell = false;
    let mut runs: Option<&str> = None;
    for word in arguments {
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
        shell = is_shell(base_name(text)) || (shell && text.starts_with('-'));
    }
    Ok(())
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
        let program = arguments
            .iter()
            .find(|word| word.literal().is_none_or(|text| !text.starts_with('-') && !START.contains(&text)));
        if let Some(word) = program.filter(|word| word.literal().is_none()) {
            return refuse(
                word,
                format!("a value that `{name}` could start as a program; write the program before it"),
            );
        }
    }
    Ok(())
}

fn refuse<T>(word: &Word, message: impl Into<String>) -> Scan<T> {
    Err(Fault { at: word.at, message: message.into() })
}
