//! Hostile values against a real bash: the program gets exactly the value, and nothing else runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Scope, Values};
use super::CommandTemplate;
use haft_core::secret::Secret;

/// Says what a command prints for a value.
type Expected = fn(&str) -> String;

/// Commands, and what they print for a value.
const TEMPLATES: [(&str, Expected); 34] = [
    ("printf '%s\\0' {{x}}", |x| format!("{x}\0")),
    ("printf '%s\\0' \"{{x}}\"", |x| format!("{x}\0")),
    ("printf '%s\\0' '{{x}}'", |x| format!("{x}\0")),
    ("printf '%s\\0' $'{{x}}'", |x| format!("{x}\0")),
    ("printf '%s\\0' a{{x}}'b{{x}}'\"c{{x}}\"", |x| format!("a{x}b{x}c{x}\0")),
    ("printf '%s\\0' \"$(printf '%s.' \"{{x}}\")\"", |x| format!("{x}.\0")),
    ("printf '%s\\0' \"$(printf '%s.' '{{x}}' | cat)\"", |x| format!("{x}.\0")),
    ("printf '%s\\0' \"$(printf '%s.' {{x}} \"$(printf '%s' \"{{x}}.\")\")\"", |x| format!("{x}.{x}..\0")),
    ("cat <<EOF\n{{x}}.\nEOF\nprintf '%s' {{x}}", |x| format!("{x}.\n{x}")),
    ("cat <<EOF | cat\n\"{{x}}\" '{{x}}'.\nEOF", |x| format!("\"{x}\" '{x}'.\n")),
    ("cat <<-EOF\n\t{{x}}.\n\tEOF", |x| format!("{x}.\n")),
    ("cat <<A; cat <<B\n{{x}}\nA\n{{x}}{{x}}\nB\n", |x| format!("{x}\n{x}{x}\n")),
    ("cat <<EOF\n$(printf '%s.' '{{x}}')\nEOF", |x| format!("{x}.\n")),
    ("cat <<< {{x}}", |x| format!("{x}\n")),
    ("V={{x}} env W='{{x}}' bash ./show.sh", |x| format!("{x}|{x}|\0")),
    ("bash ./show.sh -- {{x}}", |x| format!("||{x}\0")),
    ("v='{{x}}'; printf '%s\\0' \"$v\"", |x| format!("{x}\0")),
    ("for f in {{x}} \"{{x}}\"; do printf '%s\\0' \"$f\"; done", |x| format!("{x}\0{x}\0")),
    ("case {{x}} in \"{{x}}\") printf 'same\\0';; *) printf 'other\\0';; esac", |_| "same\0".to_owned()),
    ("case a{{x}}b in a'{{x}}'b) printf same;; esac", |_| "same".to_owned()),
    ("if [ \"{{x}}\" = '{{x}}' ] && [ -n a{{x}} ]; then printf yes; fi", |_| "yes".to_owned()),
    ("[ {{x}} ] && true; ! [ ! -n 'a{{x}}' ]; printf '%s\\0' {{x}} # {{x}}", |x| format!("{x}\0")),
    ("cat <(printf '%s' {{x}}) <(printf '%s' '{{x}}')", |x| format!("{x}{x}")),
    ("{ printf '%s' {{x}}; (printf '%s' \"{{x}}\"); } | cat", |x| format!("{x}{x}")),
    ("set -- {{x}} '{{x}}'; printf '%s\\0' \"$@\" \"$#\"", |x| format!("{x}\0{x}\x002\0")),
    ("{{if x}}printf '%s\\0' {{x}}{{else}}printf '\\0'{{end}}", |x| format!("{x}\0")),
    ("python3 -c 'import sys; sys.stdout.write(sys.argv[2])' -- \"{{x}}.\"", |x| format!("{x}.")),
    ("TIMEFORMAT=; time -p -- printf '%s' {{x}} 2>&1 | cat", str::to_owned),
    ("TIMEFORMAT=; time printf '%s\\0' {{x}}", |x| format!("{x}\0")),
    ("printf '%s\\0' \"$(cat <<EOF\n{{x}}.\nEOF\n)\"", |x| format!("{x}.\0")),
    ("perl -e 'print $ARGV[0], \"\\0\"' -- {{x}}", |x| format!("{x}\0")),
    ("printf '%s' {{x}} | perl -pe 1", str::to_owned),
    ("sed -n 1p -- show.sh; printf '%s\\0' {{x}}", |x| format!("[ \"$1\" = -- ] && shift\n{x}\0")),
    ("IFS= read -r -d '' v _ <<< {{x}}; printf '%s\\0' \"$v\"", |x| format!("{x}\n\0")),
];

const SHOW: &str = "[ \"$1\" = -- ] && shift\nprintf '%s|%s|%s\\0' \"$V\" \"$W\" \"$1\"\n";

const HOSTILE: &[&str] = &[
    "",
    " ",
    "plain",
    "two words",
    "'",
    "\"",
    "''",
    "\"\"",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "$(touch pwned)",
    "`touch pwned`",
    "${HOME}",
    "$HOME",
    "$((1+1))",
    "; touch pwned",
    "&& touch pwned",
    "| touch pwned",
    "\ntouch pwned\n",
    "a\nEOF\ntouch pwned\n",
    "EOF",
    "\nA\nB\n",
    "*",
    "?",
    "[a-z]*",
    "~",
    "~root",
    "-n",
    "--",
    "-e\\n",
    "-v",
    "-",
    "\\",
    "\\\\",
    "\\'",
    "\\\"",
    "\\n",
    "!",
    "!!",
    "#",
    "# not a comment",
    "{a,b}",
    "$'\\x41'",
    "$\"x\"",
    "a[$(touch pwned)]",
    "x[$(touch pwned>&2)]=1",
    "%s%n",
    "%",
    "()",
    "() { :; }; touch pwned",
    "<(touch pwned)",
    ">pwned",
    "2>&1",
    "größe ☃ 🦀",
    "\u{202e}",
    "\t",
    "a\tb",
    "\r\n",
    "\u{1b}[31m",
    "\u{7f}",
    "{{x}}",
    "${HAFT_V1}",
    "$HAFT_V1",
    "\"${HAFT_V1}\"",
    "' \"${HAFT_V1}\" '",
    "=",
    "a=b",
    "]",
    "]]",
    "-a",
    "-o",
    "(",
    ")",
    "! -v",
    "1 -eq 1",
    "esac",
    "done",
    ";;",
    "\\$(touch pwned)",
    "\\`touch pwned\\`",
];

fn hostile() -> Vec<String> {
    let mut values: Vec<String> = HOSTILE.iter().map(|value| (*value).to_owned()).collect();
    values.push("x".repeat(100_000));
    values.push("'\"$(touch pwned)`;\\\n".repeat(2000));
    values
}

#[expect(clippy::disallowed_methods, reason = "the real shell is what the templates are tested against")]
fn run(folder: &Path, command: &str, x: &str) -> (Vec<u8>, String) {
    let scope = Scope::of(&json!({ "properties": { "x": { "type": "string" } } }));
    let template = CommandTemplate::compile(command, &BTreeMap::new(), &scope).unwrap();
    let args = Map::from_iter([("x".to_owned(), Value::String(x.to_owned()))]);
    // A name that nothing sets is that of a secret, and random texts have some.
    let secrets =
        template.secrets().iter().map(|secret| (secret.name.as_str(), Secret::new("kept".to_owned())));
    let secrets: BTreeMap<&str, Secret> = secrets.collect();
    let values = Values { args: &args, steps: &Map::new(), secrets: &secrets, version: "" };
    let command = template.render(&values).unwrap();
    let output = Process::new("bash")
        .args(["--norc", "--noprofile", "-c", command.script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .envs(command.env.iter().map(|(name, value)| (name, value.expose())))
        .current_dir(folder)
        .output()
        .unwrap();
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What a command prints for a value; only a condition tells an empty one apart.
fn expectation(which: usize, x: &str) -> String {
    let (command, expected) = TEMPLATES[which];
    if x.is_empty() && command.starts_with("{{if") { "\0".to_owned() } else { expected(x) }
}

fn check(folder: &Path, command: &str, expected: &str, x: &str) {
    let (stdout, stderr) = run(folder, command, x);
    assert_eq!(String::from_utf8_lossy(&stdout), expected, "{command} with {x:?}: {stderr}");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["show.sh"], "{command} with {x:?} left something behind");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("show.sh"), SHOW).unwrap();
    folder
}

#[test]
fn a_program_gets_exactly_the_value_and_nothing_else_runs() {
    let folder = folder();
    // One shell runs them all, line by line.
    let all = TEMPLATES.map(|(command, _)| command).join("\n");
    for x in hostile() {
        let expected: String = (0..TEMPLATES.len()).map(|which| expectation(which, &x)).collect();
        check(folder.path(), &all, &expected, &x);
    }
}

#[test]
fn the_check_can_fail() {
    let folder = folder();
    let naive = format!("printf '%s\\0' {}", "$(touch pwned)");
    run(folder.path(), &naive, "");
    assert!(folder.path().join("pwned").exists(), "a value in the text would have run");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_value_arrives(
        x in "([ -~\n\t]|[\"'\\\\$`;&|<>(){}\\[\\]*?!#~%=-]|\\PC|\\$\\(touch p\\)|`touch p`){0,40}",
        which in 0..TEMPLATES.len(),
    ) {
        let folder = folder();
        check(folder.path(), TEMPLATES[which].0, &expectation(which, &x), &x);
    }

    /// What is not refused never lets a value become syntax: random texts around a harmful value.
    #[test]
    fn any_text_that_compiles_is_safe(
        before in "(echo |printf '%s' |: |['\"$`(){}|;&<>#\\\\ \n\\[\\]=!*]|a|\\$\\(|\\$\\{|\\$\\(\\(|<<EOF\n|\nEOF\n|case a in |if |then |\\]\\]|\\[\\[ ){0,8}",
        after in "(['\"$`(){}|;&<>#\\\\ \n\\[\\]=!*]|a|\\)\\)|\nEOF\n|;; esac|; fi|\\]\\]){0,8}",
    ) {
        let command = format!("{before}{{{{x}}}}{after}");
        let scope = Scope::of(&json!({ "properties": { "x": { "type": "string" } } }));
        let compiles = CommandTemplate::compile(&command, &BTreeMap::new(), &scope).is_ok();
        for x in ["$(touch pwned)", "a[$(touch pwned)]", "\ntouch pwned\n", "'\";touch pwned;'\"", "`touch pwned`"].iter().filter(|_| compiles) {
            let folder = folder();
            run(folder.path(), &command, x);
            prop_assert!(!folder.path().join("pwned").exists(), "{command:?} ran {x:?}");
        }
    }
}
