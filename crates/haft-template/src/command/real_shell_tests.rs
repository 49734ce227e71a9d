//! Runs commands with hostile values in a real bash: the program receives the exact value and nothing else runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{ExecTemplate, RenderError, Scope, Values};
use haft_core::implementation::{Exec, ExecProgram};
use haft_core::secret::Secret;

/// Says what a command prints for a value.
type Expected = fn(&str) -> String;

/// Commands, and what they print for a value.
const TEMPLATES: [(&str, Expected); 41] = [
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
    ("f() { local v=\"$1\"; printf '%s\\0' \"$v\"; }; f -- {{x}}; f a{{x}}", |x| format!("--\0a{x}\0")),
    ("function g { printf '%s\\0' \"$2\"; }\ng -- {{x}}", |x| format!("{x}\0")),
    ("if [[ {{x}} == \"{{x}}\" && ( a{{x}} =~ ^a ) && -n b ]]; then printf yes; fi", |_| "yes".to_owned()),
    ("v={{x}}; printf '%s\\0' \"${v:-${w}}\" \"${v%%never*}\" \"${#v}\" | head -c 0", |_| String::new()),
    ("export v={{x}}; printf -v w '%s.' \"$v\"; printf '%s' \"${w}\"", |x| format!("{x}.")),
    ("while IFS= read -r line; do printf '%s;' \"$line\"; done <<< {{x}}", |x| {
        x.split('\n').flat_map(|line| [line, ";"]).collect()
    }),
    ("bash -c 'printf \"%s\\\\0\" \"$1\"' _ a{{x}}", |x| format!("a{x}\0")),
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

fn compile(command: &str) -> Option<ExecTemplate> {
    let scope = Scope::from_schema(&json!({ "properties": { "x": { "type": "string" } } }));
    ExecTemplate::compile(&Exec::new(ExecProgram::Command(command.to_owned())), &scope).ok()
}

fn run(folder: &Path, command: &str, x: &str) -> (Vec<u8>, String) {
    try_run(folder, command, x).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the templates are tested against the real shell")]
fn try_run(folder: &Path, command: &str, x: &str) -> Result<(Vec<u8>, String), RenderError> {
    let template = compile(command).unwrap_or_else(|| panic!("{command} does not compile"));
    let args = Map::from_iter([("x".to_owned(), Value::String(x.to_owned()))]);
    // Random texts name variables that are not set, which are secrets.
    let secrets =
        template.secrets().iter().map(|secret| (secret.name.as_str(), Secret::new("kept".to_owned())));
    let secrets: BTreeMap<&str, Secret> = secrets.collect();
    let values = Values { args: &args, steps: &Map::new(), secrets: &secrets, version: "" };
    let invocation = template.render(&values)?;
    let output = Process::new(&invocation.argv[0])
        .args(&invocation.argv[1..])
        .env_clear()
        .env("PATH", "./bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .envs(invocation.env.iter().map(|(name, value)| (name, value.expose())))
        .current_dir(folder)
        .output()
        .unwrap();
    Ok((output.stdout, String::from_utf8_lossy(&output.stderr).into_owned()))
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

/// Everyday commands, and the arguments that their programs receive.
type Arguments = fn(&str) -> Vec<String>;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const EVERYDAY: [(&str, Arguments); 26] = [
    ("psql -c \"{{x}}\"", |x| words(&["psql", "-c", x])),
    ("ssh {{x}} uptime", |x| words(&["ssh", x, "uptime"])),
    ("ssh host \"ls {{x}}\"", |x| words(&["ssh", "host", &format!("ls {x}")])),
    ("make {{x}}", |x| words(&["make", x])),
    ("sqlite3 db \"{{x}}\"", |x| words(&["sqlite3", "db", x])),
    ("sed \"s/{{x}}/{{x}}/\"", |x| words(&["sed", &format!("s/{x}/{x}/")])),
    ("sed -n '{{x}}p' file", |x| words(&["sed", "-n", &format!("{x}p"), "file"])),
    ("head -{{x}}", |x| words(&["head", &format!("-{x}")])),
    ("find . -name {{x}} -exec grep -l {{x}} {} +", |x| {
        words(&["find", ".", "-name", x, "-exec", "grep", "-l", x, "{}", "+"])
    }),
    ("find ./{{x}} -exec sh -c 'cat \"$1\"' _ {} \\;", |x| {
        words(&["find", &format!("./{x}"), "-exec", "sh", "-c", "cat \"$1\"", "_", "{}", ";"])
    }),
    ("printf '%s' a | xargs -n 1 grep {{x}}", |x| words(&["xargs", "-n", "1", "grep", x])),
    ("tar czf {{x}} --exclude={{x}} dir", |x| words(&["tar", "czf", x, &format!("--exclude={x}"), "dir"])),
    ("awk -v name={{x}} '{ print name, $1 }' file", |x| {
        words(&["awk", "-v", &format!("name={x}"), "{ print name, $1 }", "file"])
    }),
    ("git log --format='%h %s' -n 5 --author={{x}} -- {{x}}", |x| {
        words(&["git", "log", "--format=%h %s", "-n", "5", &format!("--author={x}"), "--", x])
    }),
    ("python3 -c 'import sys; print(sys.argv[1])' {{x}}", |x| {
        words(&["python3", "-c", "import sys; print(sys.argv[1])", x])
    }),
    ("jq '{{x}}' < show.sh", |x| words(&["jq", x])),
    ("curl -sf -H \"X: {{x}}\" '{{x}}' 2>/dev/null", |x| {
        words(&["curl", "-sf", "-H", &format!("X: {x}"), x])
    }),
    ("set -o pipefail; psql \"{{x}}\" | cat", |x| words(&["psql", x])),
    ("for f in {{x}}; do ssh host -- \"$f\"; done", |x| words(&["ssh", "host", "--", x])),
    ("run() { ssh host \"$1\"; }; run {{x}}", |x| words(&["ssh", "host", x])),
    ("TZ={{x}} GIT_AUTHOR_NAME='{{x}}' git status", |_| words(&["git", "status"])),
    ("sudo() { \\command git \"status\"; }; sudo {{x}} || true", |_| words(&["git", "status"])),
    ("if git diff --quiet {{x}}; then :; else exit 1; fi", |x| words(&["git", "diff", "--quiet", x])),
    ("cd . && command -v {{x}} >/dev/null; make -C \"$PWD\" {{x}} | sed 's|[^m]*/||' | cat; :", |_| {
        Vec::new()
    }),
    ("docker run --rm image sh -c 'echo \"$1\"' _ {{x}}", |x| {
        words(&["docker", "run", "--rm", "image", "sh", "-c", "echo \"$1\"", "_", x])
    }),
    ("kubectl get pods -n {{x}} -o json", |x| words(&["kubectl", "get", "pods", "-n", x, "-o", "json"])),
];

#[test]
fn everyday_commands_pass_each_value_as_one_argument() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in [
        "psql", "ssh", "make", "sqlite3", "sed", "head", "find", "xargs", "tar", "awk", "git", "python3",
        "jq", "curl", "docker", "kubectl",
    ] {
        let path = bin.join(program);
        std::fs::write(&path, "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\"\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (index, (command, expected)) in EVERYDAY.into_iter().enumerate() {
        // Every value meets every fourth command.
        for x in hostile().iter().filter(|x| x.len() < 1000).skip(index % 4).step_by(4) {
            let stdout = match try_run(folder.path(), command, x) {
                Ok((stdout, _)) => String::from_utf8(stdout).unwrap(),
                Err(error) => {
                    let rejected = matches!(error, RenderError::LooksLikeOption { .. }) && x.starts_with('-');
                    assert!(rejected, "{command} with {x:?}: {error}");
                    continue;
                }
            };
            let expected = expected(x);
            if !expected.is_empty() {
                let arguments: Vec<&str> = stdout.trim_end_matches('\0').split('\0').collect();
                // An empty last argument is trimmed.
                let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
                assert_eq!(
                    arguments.join("\0").trim_end_matches('\0'),
                    expected.join("\0").trim_end_matches('\0'),
                    "{command} with {x:?}"
                );
            }
            assert!(!folder.path().join("pwned").exists(), "{command} with {x:?} ran it");
        }
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

    /// Random text around a hostile value: in no command that compiles does the value run.
    #[test]
    fn any_text_that_compiles_is_safe(
        before in "(echo |printf '%s' |: |['\"$`(){}|;&<>#\\\\ \n\\[\\]=!*]|a|\\$\\(|\\$\\{|\\$\\(\\(|<<EOF\n|\nEOF\n|case a in |if |then |\\]\\]|\\[\\[ ){0,8}",
        after in "(['\"$`(){}|;&<>#\\\\ \n\\[\\]=!*]|a|\\)\\)|\nEOF\n|;; esac|; fi|\\]\\]){0,8}",
    ) {
        let command = format!("{before}{{{{x}}}}{after}");
        let compiles = compile(&command).is_some();
        for x in ["$(touch pwned)", "a[$(touch pwned)]", "\ntouch pwned\n", "'\";touch pwned;'\"", "`touch pwned`"].iter().filter(|_| compiles) {
            let folder = folder();
            run(folder.path(), &command, x);
            prop_assert!(!folder.path().join("pwned").exists(), "{command:?} ran {x:?}");
        }
    }
}
