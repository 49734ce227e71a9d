//! What commands compile to, and which are refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::{Scope, Values};
use super::CommandTemplate;
use haft_core::secret::Secret;

fn scope() -> Scope {
    Scope::of(&json!({
        "type": "object",
        "properties": { "x": {}, "y": {}, "flag": {}, "deep": {}, "n": { "default": 7 } },
    }))
}

fn compile(command: &str) -> Result<CommandTemplate, String> {
    CommandTemplate::compile(command, &BTreeMap::new(), &scope())
        .map_err(|problems| problems.iter().map(|p| p.message.clone()).collect::<Vec<_>>().join("\n"))
}

/// Returns the script for `{"x": "v"}`, or why there is none.
pub(super) fn script(command: &str) -> String {
    let args = Map::from_iter([("x".to_owned(), json!("v"))]);
    match compile(command) {
        Ok(template) => filled(&template, &args).0,
        Err(message) => format!("! {message}"),
    }
}

fn filled(template: &CommandTemplate, args: &Map<String, Value>) -> (String, Vec<(String, String)>) {
    let secrets = BTreeMap::from([("TOKEN", Secret::new("s3cret".to_owned()))]);
    let values = Values { args, steps: &Map::new(), secrets: &secrets, version: "" };
    let command = template.render(&values).unwrap();
    let env = command.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    (command.script.to_owned(), env)
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
        ("echo hi # {{x}} 'open", "echo hi # ${HAFT_V1} 'open"),
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
        let (script, env) = filled(&compile(command).unwrap(), args.as_object().unwrap());
        assert_eq!((script.as_str(), env.len()), (expected, variables), "{args}");
    };
    check(json!({}), "ls -l ", 0);
    check(json!({ "flag": true }), "ls -la ", 0);
    check(json!({ "flag": false, "x": "a" }), "ls -l ''\"${HAFT_V1}\"''", 1);
    // A quote that only one branch closes leaves a text that is refused.
    assert_eq!(script("echo '{{if flag}}a'{{end}} {{x}}"), "! at character 6: `'` is not closed");
    assert_eq!(
        script("{{if flag}}eval{{else}}echo{{end}} {{x}}"),
        "! at character 12: `eval` is not supported in a command template that has values; write a script"
    );
    assert!(script("{{if flag}}a").contains("has no `{{end}}`"));
    let many: String = ["x", "y", "flag", "deep", "n", "deep.a", "deep.b"]
        .map(|name| format!("{{{{if {name}}}}}a{{{{end}}}}"))
        .concat();
    assert!(script(&many).contains("more than 6 different conditions"));
}

const REFUSED: &[&str] = &[
    "eval {{x}}",
    "e'va'l \"{{x}}\"",
    "x={{x}}; eval \"$x\"",
    "source {{x}}",
    ". ./{{x}}",
    "trap {{x}} EXIT",
    "bash -c \"echo {{x}}\"",
    "echo {{x}} | bash",
    "echo {{x}} | /bin/sh -s",
    "python3 -c \"print('{{x}}')\"",
    "echo {{x}} | python3",
    "python3 <<EOF\nprint('{{x}}')\nEOF",
    "awk '{print \"{{x}}\"}' file",
    "sed 's/a/{{x}}/' file",
    "sed -n p -e {{x}}",
    "perl -ne 'print' -e {{x}}",
    "ssh host {{x}}",
    "echo {{x}} | xargs rm",
    "find . -exec sh -c {{x}} \\;",
    "docker exec box sh -c {{x}}",
    "env -S {{x}}",
    "nohup bash -c {{x}}",
    "$CMD {{x}}",
    "{{x}} --help",
    "./{{x}}",
    "echo $(({{x}}+1))",
    "n={{x}}; echo $((n+1))",
    "echo $[{{x}}]",
    "(( {{x}} ))",
    "let a={{x}}",
    "[[ {{x}} -eq 1 ]]",
    "[ -v {{x}} ]",
    "[ {{x}} {{y}} ]",
    "[ -n {{x}} -a -n {{y}} ]",
    "v={{x}}; [ $v ]",
    "v={{x}}; [ \"$v\" \"$v\" ]",
    "v={{x}}; PS4=$v; set -x",
    "a[{{x}}]=1",
    "a=({{x}})",
    "echo ${a[{{x}}]}",
    "echo ${HOME:{{x}}}",
    "echo ${!x} {{x}}",
    "echo ${A@P} {{x}}",
    "echo ${A:-{{x}}}",
    "printf {{x}}",
    "printf -v {{x}} a",
    "printf '%n' {{x}}",
    "printf '%5n' {{x}}",
    "declare -i a={{x}}",
    "export {{x}}",
    "read {{x}}",
    "unset {{x}}",
    "cat <<'EOF'\n{{x}}\nEOF",
    "cat <<EOF\n$(echo\n{{x}})\nEOF",
    "cat <<EOF\n`{{x}}`\nEOF",
    "cat <<{{x}}\nEOF",
    "cat <<EOF\n{{x}}",
    "echo `echo {{x}}`",
    "echo \"`echo {{x}}`\"",
    "echo \\{{x}}",
    "echo \"\\{{x}}\"",
    "echo ${{x}}",
    "echo \"${{x}}\"",
    "echo $\"{{x}}\"",
    "echo \"$\\\n({{x}})\"",
    "(\\\n( a = {{x}} ))",
    "f() { echo {{x}}; }",
    "function f { echo {{x}}; }",
    "echo > {{x}}",
    "echo > /{{x}}",
    "echo > /dev/{{x}}",
    "echo 2>&{{x}}",
    "LD_PRELOAD={{x}} ls",
    "export PATH={{x}}",
    "HAFT_V1=a; echo {{x}}",
    "echo 'a{{x}}",
    "echo \"a{{x}}",
    "echo $(a {{x}}",
    "echo a) {{x}}",
    "if true; then echo {{x}}",
    "case a in {{x}} echo",
    "select a in {{x}}; do echo; done",
    "coproc cat {{x}}",
    "for ((i=0; i<{{x}}; i++)); do echo; done",
    "echo $x {{x}}",
    "cat <<EOF \"a\n{{x}}\"\nEOF",
    "echo {{nope}}",
    "echo {{.x}}",
    "echo a\r\n{{x}}",
    "shopt -s extglob; echo {{x}}",
    "echo @(a|{{x}})",
    "time -p eval {{x}}",
    "time -- eval {{x}}",
    "time -p -- eval {{x}}",
    "time -p -p eval {{x}}",
    "time '-p' eval {{x}}",
    "time -p python3 -c {{x}}",
    "{ time -p {{x}}; }",
    "nice time -p {{x}}",
    "nice time {{x}}",
    "echo a | time -p {{x}}",
    "X=1 time python3 -c {{x}}",
    "-p eval {{x}}",
    "echo $(cat <<EOF\n{{x}}\nEOF ; touch a)\nEOF\n)",
    "echo $(cat <<-EOF\n\tEOFa )\n\t{{x}}\n\tEOF\n)",
    "perl -pe 's/a/b/' {{x}}",
    "perl -ne print -- {{x}}",
    "perl -lane print -- {{x}}",
    "perl -F: -e print -- {{x}}",
    "perl -e 'while (<>) { print }' -- {{x}}",
    "perl -e 'print <ARGV>' -- {{x}}",
    "f={{x}}; perl -ne print -- \"$f\"",
    "set -- {{x}} {{y}}; [ \"$@\" ]",
    "set -- {{x}} {{y}}; [ -n \"${@}\" ]",
    "set -- {{x}} {{y}}; test -n \"a$*\"",
    "python3 {-I,-c} {{x}}",
    "docker exec box {sh,-c} {{x}}",
    "awk -v a={1,{{x}}} 1 file",
    "sed p {-e,{{x}}}",
    "set -- -e {{x}}; sed p \"$@\"",
    "v={{x}}; sed p $v",
    "taskset 1 python3 -c {{x}}",
    "chrt -f 1 python3 -c {{x}}",
    "setpriv --no-new-privs python3 -c {{x}}",
    "unshare python3 -c {{x}}",
    "ionice -c 3 python3 -c {{x}}",
    "flock file python3 -c {{x}}",
    "uv run python3 -c {{x}}",
    "uv run {{x}}",
    "uv run --with a {{x}}",
    "wrapper 1 python3 -c {{x}}",
    "docker exec -i box python3 <<< {{x}}",
    "docker exec -i box bash <<< {{x}}",
    "bash //dev/stdin <<< {{x}}",
    "bash /tmp/../dev/stdin <<< {{x}}",
    "cd /dev; bash stdin <<< {{x}}",
    "python3 /proc/self/fd/0 <<< {{x}}",
    "awk -f /dev/stdin <<< {{x}}",
    "awk -f- <<< {{x}}",
    "awk --file=/dev/stdin <<< {{x}}",
    "awk -i inplace {{x}}",
    "sed -f /dev/stdin file <<< {{x}}",
    "sed -nf - file <<< {{x}}",
    "sed --file /dev/stdin file <<< {{x}}",
    "sed --file=- file <<< {{x}}",
    "python3 -i tool.py <<< {{x}}",
    "python3 -Ii tool.py <<< {{x}}",
    "python3 -Wc -c {{x}}",
    "python3 -m timeit {{x}}",
    "python3 -mtimeit a {{x}}",
    "python3 -m code <<< {{x}}",
    "python3 -m pip install {{x}}",
    "node -i tool.js <<< {{x}}",
    "node --import a.mjs {{x}}",
    "node --some-option a {{x}}",
    "deno eval {{x}}",
    "lua -e 'a = 1' {{x}}",
    "perl5.36-x86_64-linux-gnu -e {{x}}",
    "python3.11-dbg -c {{x}}",
    "read PATH <<< {{x}}; ls /",
    "read -r a LD_PRELOAD <<< {{x}}; ls /",
    "read -raPATH <<< {{x}}; ls /",
    "read {PATH,a} <<< {{x}}; ls /",
    "for PATH in {{x}}; do ls /; done",
    "for HAFT_V1 in a; do echo {{x}}; done",
    "mapfile PATH <<< {{x}}",
    "readarray PATH <<< {{x}}",
    "getopts a PATH {{x}}",
    "printf -v PATH %s {{x}}",
    "v={{x}}; PATH=$v; ls /",
    "PATH=$(echo {{x}}):$PATH; ls /",
    "awk -f a.awk -f /dev/stdin <<< {{x}}",
    "sed -n p --file=- <<< {{x}}",
    "php -B 'a();' -R {{x}}",
    "php -S localhost:80 {{x}}",
];

#[test]
#[expect(clippy::too_many_lines, reason = "a long list, one line each")]
fn what_cannot_be_made_safe_is_refused_with_its_place() {
    let refused: Vec<String> = REFUSED
        .iter()
        .map(|command| {
            format!(
                "{} => {}",
                command.replace('\n', "⏎").replace('\r', "␍"),
                script(command).replace('\n', " ")
            )
        })
        .collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
eval {{x}} => ! at character 1: `eval` is not supported in a command template that has values; write a script
e'va'l "{{x}}" => ! at character 1: `eval` is not supported in a command template that has values; write a script
x={{x}}; eval "$x" => ! at character 10: `eval` is not supported in a command template that has values; write a script
source {{x}} => ! at character 1: `source` is not supported in a command template that has values; write a script
. ./{{x}} => ! at character 1: `.` is not supported in a command template that has values; write a script
trap {{x}} EXIT => ! at character 1: `trap` is not supported in a command template that has values; write a script
bash -c "echo {{x}}" => ! at character 6: `bash` with options is not supported in a command template that has values; name a script file, or write a script tool
echo {{x}} | bash => ! at character 14: `bash` would read its program from its input, where values may stand; write the program or its file out in the command
echo {{x}} | /bin/sh -s => ! at character 22: `sh` with options is not supported in a command template that has values; name a script file, or write a script tool
python3 -c "print('{{x}}')" => ! at character 12: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
echo {{x}} | python3 => ! at character 14: `python` would read its program from its input, where values may stand; write the program or its file out in the command
python3 <<EOF⏎print('{{x}}')⏎EOF => ! at character 1: `python` would read its program from its input, where values may stand; write the program or its file out in the command (line 1, character 1)
awk '{print "{{x}}"}' file => ! at character 5: a value that `awk` could read as part of its program; write the program out and pass the value behind it, or by a variable
sed 's/a/{{x}}/' file => ! at character 5: a value that `sed` could read as part of its program; write the program out and pass the value behind it, or by a variable
sed -n p -e {{x}} => ! at character 13: a value that `sed` could read as part of its program; write the program out and pass the value behind it, or by a variable
perl -ne 'print' -e {{x}} => ! at character 21: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
ssh host {{x}} => ! at character 1: `ssh` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
echo {{x}} | xargs rm => ! at character 14: `xargs` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
find . -exec sh -c {{x}} \; => ! at character 20: a value behind `sh -c` would be read as a program; write a script tool
docker exec box sh -c {{x}} => ! at character 23: a value behind `sh -c` would be read as a program; write a script tool
env -S {{x}} => ! at character 5: options of `env` are not supported in a command template that has values
nohup bash -c {{x}} => ! at character 12: `bash` with options is not supported in a command template that has values; name a script file, or write a script tool
$CMD {{x}} => ! at character 1: the name of a program has to be written out; values, variables and patterns cannot stand there
{{x}} --help => ! at character 1: the name of a program has to be written out; values, variables and patterns cannot stand there
./{{x}} => ! at character 1: the name of a program has to be written out; values, variables and patterns cannot stand there
echo $(({{x}}+1)) => ! at character 6: `$((…))` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script
n={{x}}; echo $((n+1)) => ! at character 15: `$((…))` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script
echo $[{{x}}] => ! at character 6: `$[…]` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script
(( {{x}} )) => ! at character 1: `((…))` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script
let a={{x}} => ! at character 1: `let` is not supported in a command template that has values; write a script
[[ {{x}} -eq 1 ]] => ! at character 1: `[[` is not supported in a command template, as it reads values as patterns and arithmetic; write `[ … ]`
[ -v {{x}} ] => ! at character 1: a value in this form of `[` could be read as an operator; write `[ -n … ]` or `[ … = … ]`, joined by `&&` and `||`
[ {{x}} {{y}} ] => ! at character 1: a value in this form of `[` could be read as an operator; write `[ -n … ]` or `[ … = … ]`, joined by `&&` and `||`
[ -n {{x}} -a -n {{y}} ] => ! at character 1: a value in this form of `[` could be read as an operator; write `[ -n … ]` or `[ … = … ]`, joined by `&&` and `||`
v={{x}}; [ $v ] => ! at character 12: a variable in `[` that the shell splits into words; write one variable, in double quotes
v={{x}}; [ "$v" "$v" ] => ! at character 10: a value in this form of `[` could be read as an operator; write `[ -n … ]` or `[ … = … ]`, joined by `&&` and `||`
v={{x}}; PS4=$v; set -x => ! at character 10: a value in `PS4` would change how programs run; choose another name
a[{{x}}]=1 => ! at character 1: the name of a program has to be written out; values, variables and patterns cannot stand there
a=({{x}}) => ! at character 3: `(` here: functions, arrays and extended patterns are not supported in a command template; write a script
echo ${a[{{x}}]} => ! at character 9: this form of `${…}` is not supported in a command template; write `${NAME}` or `${NAME:-text}`
echo ${HOME:{{x}}} => ! at character 13: a value inside `${…}` would be read as a pattern or as arithmetic; write `{{x | default:…}}` instead
echo ${!x} {{x}} => ! at character 8: this form of `${…}` is not supported in a command template; write `${NAME}` or `${NAME:-text}`
echo ${A@P} {{x}} => ! at character 9: this form of `${…}` is not supported in a command template; write `${NAME}` or `${NAME:-text}`
echo ${A:-{{x}}} => ! at character 11: a value inside `${…}` would be read as a pattern or as arithmetic; write `{{x | default:…}}` instead
printf {{x}} => ! at character 8: the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`
printf -v {{x}} a => ! at character 8: the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`
printf '%n' {{x}} => ! at character 8: the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`
printf '%5n' {{x}} => ! at character 8: the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`
declare -i a={{x}} => ! at character 1: `declare` is not supported in a command template that has values; write a script
export {{x}} => ! at character 8: expected `NAME=value` or `NAME` behind `export`
read {{x}} => ! at character 6: `read` takes literal words only in a command template that has values
unset {{x}} => ! at character 7: `unset` takes literal words only in a command template that has values
cat <<'EOF'⏎{{x}}⏎EOF => ! at character 13: a value in a here-document with a quoted delimiter is not filled in; write `<<EOF` without quotes (line 2, character 1)
cat <<EOF⏎$(echo⏎{{x}})⏎EOF => ! at character 17: a line break inside `$(…)` in a here-document is not supported; write it on one line (line 2, character 7)
cat <<EOF⏎`{{x}}`⏎EOF => ! at character 11: backticks are not supported in a command template; write `$(…)` (line 2, character 1)
cat <<{{x}}⏎EOF => ! at character 7: the delimiter of a here-document has to be one plain word, such as `<<EOF` (line 1, character 7)
cat <<EOF⏎{{x}} => ! at character 11: the here-document has no closing line `EOF` (line 2, character 1)
echo `echo {{x}}` => ! at character 6: backticks are not supported in a command template; write `$(…)`
echo "`echo {{x}}`" => ! at character 7: backticks are not supported in a command template; write `$(…)`
echo \{{x}} => ! at character 6: a backslash before `{{`; leave it out, values need no escaping
echo "\{{x}}" => ! at character 7: a backslash before `{{`; leave it out, values need no escaping
echo ${{x}} => ! at character 6: `$` directly before `{{`; write `\$` for a dollar sign
echo "${{x}}" => ! at character 7: `$` directly before `{{`; write `\$` for a dollar sign
echo $"{{x}}" => ! at character 6: `$"…"` is not supported; leave the `$` out
echo "$\⏎({{x}})" => ! at character 7: a line continued directly behind `$` (line 1, character 7)
(\⏎( a = {{x}} )) => ! at character 2: put a space before the backslash that continues a line (line 1, character 2)
f() { echo {{x}}; } => ! at character 2: `(` here: functions, arrays and extended patterns are not supported in a command template; write a script
function f { echo {{x}}; } => ! at character 1: `function` is not supported in a command template; write a script
echo > {{x}} => ! at character 8: a value at the start of a file name, which the shell could take for `/dev/tcp/…`; write a folder before it, such as `./{{name}}`
echo > /{{x}} => ! at character 8: a value at the start of a file name, which the shell could take for `/dev/tcp/…`; write a folder before it, such as `./{{name}}`
echo > /dev/{{x}} => ! at character 8: a value at the start of a file name, which the shell could take for `/dev/tcp/…`; write a folder before it, such as `./{{name}}`
echo 2>&{{x}} => ! at character 9: a value behind `>&` would be read as the number of a file descriptor
LD_PRELOAD={{x}} ls => ! at character 1: a value in `LD_PRELOAD` would change how programs run; choose another name
export PATH={{x}} => ! at character 8: a value in `PATH` would change how programs run; choose another name
HAFT_V1=a; echo {{x}} => ! at character 1: `HAFT_V1` belongs to haft; choose another name
echo 'a{{x}} => ! at character 6: `'` is not closed
echo "a{{x}} => ! at character 6: `"` is not closed
echo $(a {{x}} => ! at character 10: `(` has no `)`
echo a) {{x}} => ! at character 7: `)` without `(`
if true; then echo {{x}} => ! at character 20: expected `elif` or `else` or `fi` before the end
case a in {{x}} echo => ! at character 17: expected `)` behind the pattern of `case`
select a in {{x}}; do echo; done => ! at character 1: `select` is not supported in a command template; write a script
coproc cat {{x}} => ! at character 1: `coproc` is not supported in a command template; write a script
for ((i=0; i<{{x}}; i++)); do echo; done => ! at character 5: `for ((…))` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script
echo $x {{x}} => ! at character 6: `$x` is a variable that nothing sets; write `{{x}}` for the argument
cat <<EOF "a⏎{{x}}"⏎EOF => ! at character 13: a line break inside of quotes or `$(…)`, or an escaped one, after `<<` is not supported; start the here-document on the last line of the command (line 1, character 13)
echo {{nope}} => ! at character 6: `nope` is not a declared argument; declare it, or write `${nope}` for a secret
echo {{.x}} => ! at character 6: write `{{x}}` instead of `{{.x}}`
echo a␍⏎{{x}} => ! at character 7: a carriage return; end lines with a line feed only (line 1, character 7)
shopt -s extglob; echo {{x}} => ! at character 1: `shopt` is not supported in a command template that has values; write a script
echo @(a|{{x}}) => ! at character 7: `(` here: functions, arrays and extended patterns are not supported in a command template; write a script
time -p eval {{x}} => ! at character 9: `eval` is not supported in a command template that has values; write a script
time -- eval {{x}} => ! at character 9: `eval` is not supported in a command template that has values; write a script
time -p -- eval {{x}} => ! at character 12: `eval` is not supported in a command template that has values; write a script
time -p -p eval {{x}} => ! at character 9: `time` takes no option but `-p` in a command template
time '-p' eval {{x}} => ! at character 6: the name of a program cannot start with `-`
time -p python3 -c {{x}} => ! at character 20: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
{ time -p {{x}}; } => ! at character 11: the name of a program has to be written out; values, variables and patterns cannot stand there
nice time -p {{x}} => ! at character 11: options of `time` are not supported in a command template that has values
nice time {{x}} => ! at character 11: the name of a program has to be written out; values, variables and patterns cannot stand there
echo a | time -p {{x}} => ! at character 18: the name of a program has to be written out; values, variables and patterns cannot stand there
X=1 time python3 -c {{x}} => ! at character 21: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
-p eval {{x}} => ! at character 1: the name of a program cannot start with `-`
echo $(cat <<EOF⏎{{x}}⏎EOF ; touch a)⏎EOF⏎) => ! at character 24: a line of the here-document starts with its delimiter; choose another one than `EOF` (line 3, character 1)
echo $(cat <<-EOF⏎	EOFa )⏎	{{x}}⏎	EOF⏎) => ! at character 19: a line of the here-document starts with its delimiter; choose another one than `EOF` (line 2, character 1)
perl -pe 's/a/b/' {{x}} => ! at character 19: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
perl -ne print -- {{x}} => ! at character 19: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
perl -lane print -- {{x}} => ! at character 21: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
perl -F: -e print -- {{x}} => ! at character 22: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
perl -e 'while (<>) { print }' -- {{x}} => ! at character 35: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
perl -e 'print <ARGV>' -- {{x}} => ! at character 27: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
f={{x}}; perl -ne print -- "$f" => ! at character 28: a value that perl would open as a file: it runs names such as `command|`; write `perl … < ./{{file}}`, or open the file in the program
set -- {{x}} {{y}}; [ "$@" ] => ! at character 23: a variable in `[` that the shell splits into words; write one variable, in double quotes
set -- {{x}} {{y}}; [ -n "${@}" ] => ! at character 26: a variable in `[` that the shell splits into words; write one variable, in double quotes
set -- {{x}} {{y}}; test -n "a$*" => ! at character 29: a variable in `test` that the shell splits into words; write one variable, in double quotes
python3 {-I,-c} {{x}} => ! at character 9: a pattern among the words that tell `python` its program; quote it
docker exec box {sh,-c} {{x}} => ! at character 17: a pattern that names an interpreter; write it out
awk -v a={1,{{x}}} 1 file => ! at character 8: a value that `awk` could read as part of its program; write the program out and pass the value behind it, or by a variable
sed p {-e,{{x}}} => ! at character 7: a variable or a pattern that `sed` could take for an option with a program; write it in double quotes behind `--`
set -- -e {{x}}; sed p "$@" => ! at character 24: a variable or a pattern that `sed` could take for an option with a program; write it in double quotes behind `--`
v={{x}}; sed p $v => ! at character 16: a variable or a pattern that `sed` could take for an option with a program; write it in double quotes behind `--`
taskset 1 python3 -c {{x}} => ! at character 1: `taskset` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
chrt -f 1 python3 -c {{x}} => ! at character 1: `chrt` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
setpriv --no-new-privs python3 -c {{x}} => ! at character 1: `setpriv` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
unshare python3 -c {{x}} => ! at character 1: `unshare` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
ionice -c 3 python3 -c {{x}} => ! at character 8: options of `ionice` are not supported in a command template that has values
flock file python3 -c {{x}} => ! at character 1: `flock` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
uv run python3 -c {{x}} => ! at character 19: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
uv run {{x}} => ! at character 8: a value that `uv` could start as a program; write the program before it
uv run --with a {{x}} => ! at character 17: a value that `uv` could start as a program; write the program before it
wrapper 1 python3 -c {{x}} => ! at character 22: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
docker exec -i box python3 <<< {{x}} => ! at character 20: `python` would read its program from its input, where values may stand; write the program or its file out in the command
docker exec -i box bash <<< {{x}} => ! at character 20: `bash` would read its program from its input, where values may stand; write the program or its file out in the command
bash //dev/stdin <<< {{x}} => ! at character 1: `bash` would read its program from its input, where values may stand; write the program or its file out in the command
bash /tmp/../dev/stdin <<< {{x}} => ! at character 1: `bash` would read its program from its input, where values may stand; write the program or its file out in the command
cd /dev; bash stdin <<< {{x}} => ! at character 10: `bash` would read its program from its input, where values may stand; write the program or its file out in the command
python3 /proc/self/fd/0 <<< {{x}} => ! at character 1: `python` would read its program from its input, where values may stand; write the program or its file out in the command
awk -f /dev/stdin <<< {{x}} => ! at character 1: `awk` would read its program from its input, where values may stand; write the program or its file out in the command
awk -f- <<< {{x}} => ! at character 5: `-f-` reads a program from the input; it is not supported in a command template that has values; write a script
awk --file=/dev/stdin <<< {{x}} => ! at character 5: `--file=/dev/stdin` reads a program from the input; it is not supported in a command template that has values; write a script
awk -i inplace {{x}} => ! at character 16: a value that `awk` could read as part of its program; write the program out and pass the value behind it, or by a variable
sed -f /dev/stdin file <<< {{x}} => ! at character 1: `sed` would read its program from its input, where values may stand; write the program or its file out in the command
sed -nf - file <<< {{x}} => ! at character 1: `sed` would read its program from its input, where values may stand; write the program or its file out in the command
sed --file /dev/stdin file <<< {{x}} => ! at character 1: `sed` would read its program from its input, where values may stand; write the program or its file out in the command
sed --file=- file <<< {{x}} => ! at character 5: `--file=-` reads a program from the input; it is not supported in a command template that has values; write a script
python3 -i tool.py <<< {{x}} => ! at character 9: `-i` reads a program from the input; it is not supported in a command template that has values; write a script
python3 -Ii tool.py <<< {{x}} => ! at character 9: `-Ii` reads a program from the input; it is not supported in a command template that has values; write a script
python3 -Wc -c {{x}} => ! at character 16: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
python3 -m timeit {{x}} => ! at character 12: `python -m timeit` could run values as code; name a script file, or write `python3 -c 'import …' {{x}}`
python3 -mtimeit a {{x}} => ! at character 9: `-mtimeit` holds the program in the same word; it is not supported in a command template that has values; write a script
python3 -m code <<< {{x}} => ! at character 12: `python -m code` could run values as code; name a script file, or write `python3 -c 'import …' {{x}}`
python3 -m pip install {{x}} => ! at character 12: `python -m pip` could run values as code; name a script file, or write `python3 -c 'import …' {{x}}`
node -i tool.js <<< {{x}} => ! at character 6: `-i` reads a program from the input; it is not supported in a command template that has values; write a script
node --import a.mjs {{x}} => ! at character 21: a value that `node` could read as part of its program; write the program out and pass the value behind it, or by a variable
node --some-option a {{x}} => ! at character 20: `a` could be the program of `node`, or belong to `--some-option`; write `--some-option=…`, or a script
deno eval {{x}} => ! at character 6: expected `run` behind `deno` in a command template that has values
lua -e 'a = 1' {{x}} => ! at character 16: a value that `lua` could read as part of its program; write the program out and pass the value behind it, or by a variable
perl5.36-x86_64-linux-gnu -e {{x}} => ! at character 30: a value that `perl` could read as part of its program; write the program out and pass the value behind it, or by a variable
python3.11-dbg -c {{x}} => ! at character 19: a value that `python` could read as part of its program; write the program out and pass the value behind it, or by a variable
read PATH <<< {{x}}; ls / => ! at character 6: a value in `PATH` would change how programs run; choose another name
read -r a LD_PRELOAD <<< {{x}}; ls / => ! at character 11: a value in `LD_PRELOAD` would change how programs run; choose another name
read -raPATH <<< {{x}}; ls / => ! at character 6: a value in `PATH` would change how programs run; choose another name
read {PATH,a} <<< {{x}}; ls / => ! at character 6: `read` takes literal words only in a command template that has values
for PATH in {{x}}; do ls /; done => ! at character 5: a value in `PATH` would change how programs run; choose another name
for HAFT_V1 in a; do echo {{x}}; done => ! at character 5: a value in `HAFT_V1` would change how programs run; choose another name
mapfile PATH <<< {{x}} => ! at character 1: `mapfile` is not supported in a command template that has values; write a script
readarray PATH <<< {{x}} => ! at character 1: `readarray` is not supported in a command template that has values; write a script
getopts a PATH {{x}} => ! at character 1: `getopts` is not supported in a command template that has values; write a script
printf -v PATH %s {{x}} => ! at character 8: the format of `printf` has to be literal, without options and `%n`; write `printf '%s' {{x}}`
v={{x}}; PATH=$v; ls / => ! at character 10: a value in `PATH` would change how programs run; choose another name
PATH=$(echo {{x}}):$PATH; ls / => ! at character 1: a value in `PATH` would change how programs run; choose another name
awk -f a.awk -f /dev/stdin <<< {{x}} => ! at character 17: a value that `awk` could read as part of its program; write the program out and pass the value behind it, or by a variable
sed -n p --file=- <<< {{x}} => ! at character 10: `--file=-` reads a program from the input; it is not supported in a command template that has values; write a script
php -B 'a();' -R {{x}} => ! at character 18: a value that `php` could read as part of its program; write the program out and pass the value behind it, or by a variable
php -S localhost:80 {{x}} => ! at character 21: a value that `php` could read as part of its program; write the program out and pass the value behind it, or by a variable
"#);
}

#[test]
fn variables_that_nothing_sets_are_secrets() {
    let secrets = |command: &str, env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let template = CommandTemplate::compile(command, &env, &scope()).unwrap();
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
    assert_eq!(compile("echo '${TOKEN}' {{x}}").unwrap().unfilled(), ["TOKEN"]);
}

#[test]
fn the_environment_carries_values_and_secrets() {
    let env = BTreeMap::from([
        ("A".to_owned(), "{{x}}-${TOKEN}".to_owned()),
        ("PATH".to_owned(), "/bin".to_owned()),
    ]);
    let template =
        CommandTemplate::compile("echo $TOKEN '{{x}}' {{deep}} {{y}} {{n}} {{flag}}", &env, &scope())
            .unwrap();
    let args = json!({ "x": "v", "deep": { "a": [1, "b"] }, "flag": true });
    let (_, env) = filled(&template, args.as_object().unwrap());
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        env,
        [
            "A=v-s3cret",
            "PATH=/bin",
            "TOKEN=s3cret",
            "HAFT_V1=v",
            "HAFT_V2={\"a\":[1,\"b\"]}",
            "HAFT_V3=",
            "HAFT_V4=7",
            "HAFT_V5=true",
        ]
    );
    let problems = |env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let problems = CommandTemplate::compile("ls", &env, &scope()).unwrap_err();
        problems.iter().map(|p| format!("{} {}", p.field, p.message)).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(problems(&[("PATH", "{{x}}:/bin"), ("HAFT_ARGS", ""), ("B", "{{nope}}")]), @r#"
implementation.env.B at character 1: `nope` is not a declared argument; declare it, or write `${nope}` for a secret
implementation.env.HAFT_ARGS belongs to haft; choose another name
implementation.env.PATH a value in this variable would change how programs run; write it out, or choose another name
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
    let dash = "the value of `x` does not fit into the command: it starts with `-`, which the program would take for an option";
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
        ("f={{x}}; echo \"$f\"; curl -- \"$f\"", json!("-o"), None),
        ("f={{x}} printenv f", json!("-o"), None),
        ("for f in a {{x}}; do ls \"$f\"; done", json!("-o"), Some(dash)),
        ("set -- a {{x}}; ls \"$@\"", json!("-o"), Some(dash)),
        ("ls {/,{{x}}}", json!("-o"), Some(dash)),
        ("find -- {{x}}", json!("-delete"), Some(dash)),
        ("echo {{x}}; printf '%s' {{x}}; [ {{x}} = a ]", json!("-n"), None),
        (
            "echo {{x}}",
            json!("a\0b"),
            Some(
                "the value of `x` does not fit into the command: a NUL character cannot be passed to a program",
            ),
        ),
        (
            "echo $KEY {{x}}",
            json!("a"),
            Some(
                "`KEY` is neither a declared argument nor a stored secret; declare it in the input schema or set the secret",
            ),
        ),
        ("echo ${KEY:-} {{x}}", json!("a"), None),
        ("echo {{x}}", json!("a".repeat(131_008)), None),
        (
            "echo {{x}}",
            json!("a".repeat(131_009)),
            Some(
                "the value of `x` does not fit into the command: it is longer than the 128 KiB that the system takes; a script reads long values from `HAFT_ARGS`",
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
