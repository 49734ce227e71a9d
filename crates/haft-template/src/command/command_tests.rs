//! The scripts that commands compile to, and their secrets and environment.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::{ExecInvocation, ExecTemplate, Scope, Values};
use haft_core::implementation::{Exec, ExecProgram};
use haft_core::secret::Secret;

fn scope() -> Scope {
    Scope::from_schema(&json!({
        "type": "object",
        "properties": { "x": {}, "y": {}, "flag": {}, "deep": {}, "n": { "default": 7 } },
    }))
}

fn compile_with(command: &str, env: &[(&str, &str)]) -> Result<ExecTemplate, String> {
    let mut exec = Exec::new(ExecProgram::Command(command.to_owned()));
    exec.env = env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    ExecTemplate::compile(&exec, &scope()).map_err(|problems| {
        problems.iter().map(|p| format!("{} {}", p.field, p.message)).collect::<Vec<_>>().join("\n")
    })
}

fn compile(command: &str) -> Result<ExecTemplate, String> {
    compile_with(command, &[]).map_err(|text| text.replace("implementation.command ", ""))
}

/// Returns the script for `{"x": "v"}`, or the error.
pub(super) fn script(command: &str) -> String {
    let args = Map::from_iter([("x".to_owned(), json!("v"))]);
    match compile(command) {
        Ok(template) => render(&template, &args).0,
        Err(message) => format!("! {message}"),
    }
}

fn render(template: &ExecTemplate, args: &Map<String, Value>) -> (String, Vec<(String, String)>) {
    let secrets = BTreeMap::from([("TOKEN", Secret::new("s3cret".to_owned()))]);
    let values = Values { args, steps: &Map::new(), secrets: &secrets, version: "" };
    let ExecInvocation { argv, env, stdin } = template.render(&values).unwrap();
    let shell = ["bash", "--noprofile", "--norc", "-o", "pipefail", "-c"].map(str::to_owned);
    assert_eq!((&argv[..6], stdin), (&shell[..], None));
    let env = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    (argv[6].clone(), env)
}

fn check(cases: &[(&str, &str)]) {
    for (command, expected) in cases {
        assert_eq!(script(command), *expected, "{command}");
    }
}

#[test]
fn a_reference_takes_the_form_of_its_quotes() {
    check(&[
        ("curl -s '{{x}}' | jq '{{y}}'", "curl -s ''\"${HAFT_V1}\"'' | jq ''\"${HAFT_V2}\"''"),
        ("echo {{x}}", "echo \"${HAFT_V1}\""),
        ("echo a{{x}}b{{x}}", "echo a\"${HAFT_V1}\"b\"${HAFT_V1}\""),
        ("echo \"a {{x}} b\"", "echo \"a ${HAFT_V1} b\""),
        ("echo $'a\\n{{x}}'", "echo $'a\\n'\"${HAFT_V1}\"$''"),
        (
            "echo \"$(echo \"{{x}}\" '{{x}}' {{x}})\"",
            "echo \"$(echo \"${HAFT_V1}\" ''\"${HAFT_V1}\"'' \"${HAFT_V1}\")\"",
        ),
        ("cat <<EOF\na \"{{x}}\"\nEOF\necho {{x}}", "cat <<EOF\na \"${HAFT_V1}\"\nEOF\necho \"${HAFT_V1}\""),
        ("cat <<-EOF | wc -c\n\t{{x}}\n\tEOF\n", "cat <<-EOF | wc -c\n\t${HAFT_V1}\n\tEOF\n"),
        ("echo hi # {{x}} 'open", "echo hi #  'open"),
        ("cat <<< {{x}}", "cat <<< \"${HAFT_V1}\""),
        ("A={{x}} env B={{x}} printenv", "A=\"${HAFT_V1}\" env B=\"${HAFT_V1}\" printenv"),
        ("echo \"\\${{x}}\" '${{x}}'", "echo \"\\$${HAFT_V1}\" '$'\"${HAFT_V1}\"''"),
        ("diff <(echo {{x}}) <(echo b)", "diff <(echo \"${HAFT_V1}\") <(echo b)"),
        (
            "docker ps --format '{{\"{{\"}}.Names}}' -f {{x}}",
            "docker ps --format '{{.Names}}' -f \"${HAFT_V1}\"",
        ),
        (
            "echo {{deep.a.0}} {{n}} {{y | default:\"a b\"}}",
            "echo \"${HAFT_V1}\" \"${HAFT_V2}\" \"${HAFT_V3}\"",
        ),
        (
            "case {{x}} in a|\"{{y}}\") echo 1 ;; (*) echo 2;; esac",
            "case \"${HAFT_V1}\" in a|\"${HAFT_V2}\") echo 1 ;; (*) echo 2;; esac",
        ),
        ("for f in {{x}} b; do echo \"$f\"; done", "for f in \"${HAFT_V1}\" b; do echo \"$f\"; done"),
        (
            "if [ -n {{x}} ] && [ \"{{x}}\" != a ]; then echo {{x}}; elif true; then :; else echo; fi > ./{{x}}.txt 2>&1",
            "if [ -n \"${HAFT_V1}\" ] && [ \"${HAFT_V1}\" != a ]; then echo \"${HAFT_V1}\"; elif true; then :; else echo; fi > ./\"${HAFT_V1}\".txt 2>&1",
        ),
        (
            "while read -r l; do echo \"$l\"; done <<< {{x}}",
            "while read -r l; do echo \"$l\"; done <<< \"${HAFT_V1}\"",
        ),
        ("{ echo {{x}}; } | (cat; cat) & wait", "{ echo \"${HAFT_V1}\"; } | (cat; cat) & wait"),
        ("grep -- {{x}} \\\n  file", "grep -- \"${HAFT_V1}\" \\\n  file"),
        (
            "python3 -c 'import sys; print(sys.argv[1])' {{x}}",
            "python3 -c 'import sys; print(sys.argv[1])' \"${HAFT_V1}\"",
        ),
        ("python3 tool.py --city {{x}}", "python3 tool.py --city \"${HAFT_V1}\""),
        ("awk -v a={{x}} '{print a}' file", "awk -v a=\"${HAFT_V1}\" '{print a}' file"),
        ("sed -n '1p' ./{{x}}", "sed -n '1p' ./\"${HAFT_V1}\""),
        ("find . -name {{x}} -type f", "find . -name \"${HAFT_V1}\" -type f"),
        ("timeout 5 nohup grep {{x}} f", "timeout 5 nohup grep \"${HAFT_V1}\" f"),
        (
            "cat <<'EOF' && echo {{x}}\n$(no) `no` \"\nEOF\n",
            "cat <<'EOF' && echo \"${HAFT_V1}\"\n$(no) `no` \"\nEOF\n",
        ),
        ("bash ./deploy.sh {{x}}", "bash ./deploy.sh \"${HAFT_V1}\""),
        (
            "set -euo pipefail; echo ~ *.txt {a,b} {{x}}",
            "set -euo pipefail; echo ~ *.txt {a,b} \"${HAFT_V1}\"",
        ),
        ("time -p -- grep {{x}} f | time wc", "time -p -- grep \"${HAFT_V1}\" f | time wc"),
        ("time { echo {{x}}; }", "time { echo \"${HAFT_V1}\"; }"),
        ("echo {{x}} | perl -pe 's/a/b/'", "echo \"${HAFT_V1}\" | perl -pe 's/a/b/'"),
        ("perl -MEncode -e 'print $ARGV[0]' -- {{x}}", "perl -MEncode -e 'print $ARGV[0]' -- \"${HAFT_V1}\""),
        ("echo {{x}} | python3 -m json.tool", "echo \"${HAFT_V1}\" | python3 -m json.tool"),
        ("python3 -u -Wignore tool.py {{x}}", "python3 -u -Wignore tool.py \"${HAFT_V1}\""),
        ("uv run tool.py {{x}}", "uv run tool.py \"${HAFT_V1}\""),
        ("sed -i 's/a*/b/' -- \"$HOME\" ./{{x}}", "sed -i 's/a*/b/' -- \"$HOME\" ./\"${HAFT_V1}\""),
        ("find ./{{x}} -exec sed -i 1d {} +", "find ./\"${HAFT_V1}\" -exec sed -i 1d {} +"),
        ("which python3; grep python {{x}}", "which python3; grep python \"${HAFT_V1}\""),
        ("wrapper node app.js {{x}}", "wrapper node app.js \"${HAFT_V1}\""),
        ("PATH=$HOME/bin:$PATH; echo {{x}}", "PATH=$HOME/bin:$PATH; echo \"${HAFT_V1}\""),
        ("read -r a _ <<< {{x}}; echo $a", "read -r a _ <<< \"${HAFT_V1}\"; echo $a"),
        ("echo \"$(cat <<EOF\n{{x}}\nEOF\n)\"", "echo \"$(cat <<EOF\n${HAFT_V1}\nEOF\n)\""),
        // Without any value there is nothing to keep out.
        ("n=$((1+2)); eval \"echo $n\" `date`", "n=$((1+2)); eval \"echo $n\" `date`"),
    ]);
}

#[test]
fn conditions_choose_between_whole_texts() {
    let command = "ls {{if flag}}-la{{else}}-l{{end}} {{if x}}'{{x}}'{{end}}";
    let check = |args: Value, expected: &str, variables: usize| {
        let (script, env) = render(&compile(command).unwrap(), args.as_object().unwrap());
        assert_eq!((script.as_str(), env.len()), (expected, variables), "{args}");
    };
    check(json!({}), "ls -l ", 0);
    check(json!({ "flag": true }), "ls -la ", 0);
    check(json!({ "flag": false, "x": "a" }), "ls -l ''\"${HAFT_V1}\"''", 1);
    // A quote that only one branch closes leaves a text that is refused.
    assert_eq!(script("echo '{{if flag}}a'{{end}} {{x}}"), "! at character 6: `'` is not closed");
    assert_eq!(
        script("{{if flag}}eval{{else}}echo{{end}} {{x}}"),
        "! at character 12: `eval` may evaluate values as shell code; run the program directly, or use a script tool"
    );
    assert!(script("{{if flag}}a").contains("has no `{{end}}`"));
    let many: String = ["x", "y", "flag", "deep", "n", "deep.a", "deep.b"]
        .map(|name| format!("{{{{if {name}}}}}a{{{{end}}}}"))
        .concat();
    assert!(script(&many).contains("limit of different conditions (6) exceeded"));
}

#[test]
fn variables_that_nothing_sets_are_secrets() {
    let secrets = |command: &str, env: &[(&str, &str)]| {
        let template = compile_with(command, env).unwrap();
        let names =
            template.secrets().iter().map(|s| format!("{}{}", s.name, if s.required { "" } else { "?" }));
        names.collect::<Vec<_>>().join(" ")
    };
    for (command, expected) in [
        ("curl -H \"Authorization: Bearer ${TOKEN}\" '{{x}}'", "TOKEN"),
        ("curl -u $user:$PASS {{x}}", "user PASS"),
        ("echo ${A:-none} ${B-} $A {{x}}", "A B?"),
        ("A=1; for B in 1; do read C; echo $A $B $C $D {{x}}; done", "D"),
        ("echo $HOME $PATH $? $1 $RANDOM $LC_ALL $$ $HAFT_ARGS {{x}}", ""),
        ("cat <<EOF\n${TOKEN} {{x}}\nEOF", "TOKEN"),
        ("echo '${TOKEN}' {{x}}", ""),
        ("n=$((1+2)); echo '$NO' $YES", "YES"),
    ] {
        assert_eq!(secrets(command, &[]), expected, "{command}");
    }
    assert_eq!(secrets("echo $KEY $OTHER {{x}}", &[("KEY", "a ${TOKEN}")]), "OTHER TOKEN");
    assert_eq!(compile("echo '${TOKEN}' {{x}}").unwrap().single_quoted_secrets(), ["TOKEN"]);
}

#[test]
fn the_environment_carries_values_and_secrets() {
    let env = [("A", "{{x}}-${TOKEN}"), ("PATH", "/bin"), ("TZ", "{{x}}")];
    let template = compile_with("echo $TOKEN '{{x}}' {{deep}} {{y}} {{n}} {{flag}}", &env).unwrap();
    let args = json!({ "x": "v", "deep": { "a": [1, "b"] }, "flag": true });
    let (_, env) = render(&template, args.as_object().unwrap());
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        env,
        [
            "A=v-s3cret",
            "PATH=/bin",
            "TZ=v",
            "TOKEN=s3cret",
            "HAFT_V1=v",
            "HAFT_V2={\"a\":[1,\"b\"]}",
            "HAFT_V3=",
            "HAFT_V4=7",
            "HAFT_V5=true",
        ]
    );
    insta::assert_snapshot!(compile_with("ls", &[("PATH", "{{x}}:/bin"), ("HAFT_ARGS", ""), ("B", "{{nope}}")]).unwrap_err(), @r#"
implementation.env.B at character 1: `nope` is not a declared argument; declare it, or write `${nope}` for a secret
implementation.env.HAFT_ARGS names that start with `HAFT_` are reserved; use another name
implementation.env.PATH this variable controls the shell or the loader and cannot be set from an argument; use another variable
"#);
}

#[test]
fn values_that_do_not_fit_are_named() {
    let render = |command: &str, args: Value| {
        let template = compile(command).unwrap();
        let secrets = BTreeMap::new();
        let values =
            Values { args: args.as_object().unwrap(), steps: &Map::new(), secrets: &secrets, version: "" };
        template.render(&values).map(|_| ()).map_err(|error| error.to_string())
    };
    let dash = "value of `x` starts with `-` and would be read as an option; in the tool, put `--` before the reference or attach it to an option such as `--name={{x}}`";
    for (command, value, expected) in [
        ("curl '{{x}}'", json!("-o/etc/passwd"), Some(dash)),
        ("curl {{y}}{{x}}", json!("-o"), Some(dash)),
        ("cd {{x}}", json!("-"), Some(dash)),
        ("curl -- {{x}}", json!("-o"), None),
        ("curl --url={{x}}", json!("-o"), None),
        ("head -c {{x}}", json!(-5), None),
        ("f={{x}}; curl \"$f\"", json!("-o"), Some(dash)),
        ("export f={{x}}; curl \"$f\"", json!("-o"), Some(dash)),
        ("f={{x}}; curl \"$f\"", json!(-5), None),
        ("f=a{{x}}; curl \"$f\"", json!("-o"), None),
        ("f={{x}}; printf '%s' \"$f\"; curl -- \"$f\"", json!("-o"), None),
        ("f={{x}} printenv f", json!("-o"), None),
        ("for f in a {{x}}; do ls \"$f\"; done", json!("-o"), Some(dash)),
        ("set -- a {{x}}; ls \"$@\"", json!("-o"), Some(dash)),
        ("ls {/,{{x}}}", json!("-o"), Some(dash)),
        ("find -- {{x}}", json!("-delete"), None),
        ("echo {{x}}", json!("-n"), Some(dash)),
        ("git commit -m {{x}}", json!("-a"), Some(dash)),
        ("git commit --message={{x}}", json!("-a"), None),
        ("cat ./{{x}}", json!("-a"), None),
        ("head -n {{x}}", json!(-1.5), None),
        ("printf {{x}}", json!("-va"), Some(dash)),
        ("printf '%s' {{x}}; [ {{x}} = a ]; [[ {{x}} == a ]]; cat <<< {{x}} > {{x}}", json!("-n"), None),
        (
            "echo {{x}}",
            json!("a\0b"),
            Some("value of `x` is not valid in the command: it contains a NUL character"),
        ),
        (
            "echo $KEY {{x}}",
            json!("a"),
            Some("secret `KEY` is not stored; store it with `haft secret set KEY`"),
        ),
        ("echo ${KEY:-} {{x}}", json!("a"), None),
        ("echo {{x}}", json!("a".repeat(131_008)), None),
        (
            "echo {{x}}",
            json!("a".repeat(131_009)),
            Some(
                "value of `x` is not valid in the command: it exceeds the limit of 128 KiB per value; use `stdin`, or a script tool that reads `HAFT_ARGS_FILE`",
            ),
        ),
    ] {
        assert_eq!(render(command, json!({ "x": value })).err().as_deref(), expected, "{command}");
    }
}

#[test]
fn a_debug_text_shows_no_secret() {
    let template = compile("echo $TOKEN {{x}}").unwrap();
    let secrets = BTreeMap::from([("TOKEN", Secret::new("s3cret".to_owned()))]);
    let args = Map::from_iter([("x".to_owned(), json!("v"))]);
    let values = Values { args: &args, steps: &Map::new(), secrets: &secrets, version: "" };
    assert!(!format!("{:?}", template.render(&values).unwrap()).contains("s3cret"));
}
