//! Commands that are rejected because the shell would evaluate a value, with their messages.

use super::command_tests::script;

/// Commands, and what their messages say.
const REJECTED: &[(&str, &str)] = &[
    // Evaluated as shell code.
    ("eval {{x}}", "at character 1: `eval` may evaluate values as shell code; run the program directly"),
    ("e'va'l \"{{x}}\"", "`eval` may evaluate"),
    ("x={{x}}; eval \"$x\"", "at character 10: `eval` may evaluate"),
    ("command eval {{x}}", "`eval` may evaluate"),
    ("builtin eval {{x}}", "`eval` may evaluate"),
    ("time -p -- eval {{x}}", "`eval` may evaluate"),
    ("! eval {{x}}", "`eval` may evaluate"),
    ("if true; then eval {{x}}; fi", "`eval` may evaluate"),
    ("f() { eval \"$1\"; }; f {{x}}", "`eval` may evaluate"),
    ("case a in a) eval {{x}};; esac", "`eval` may evaluate"),
    ("echo $(eval {{x}})", "`eval` may evaluate"),
    ("trap {{x}} EXIT", "`trap` may evaluate"),
    ("alias a={{x}}", "`alias` may evaluate"),
    ("compgen -W {{x}}", "`compgen` may evaluate"),
    ("mapfile -C {{x}} a", "`mapfile` may evaluate"),
    ("source {{x}}", "`source` evaluates a file as shell code; name the file literally"),
    (". ./{{x}}", "`.` evaluates a file"),
    (". <(echo {{x}})", "`.` evaluates a file"),
    ("echo {{x}} | . /dev/stdin", "`.` evaluates a file"),
    (
        "bash -c \"echo {{x}}\"",
        "at character 9: a value in the text of `bash -c` becomes shell code; write `bash -c '… \"$1\" …' _ {{name}}`",
    ),
    ("/bin/sh -ec {{x}}", "a value in the text of `/bin/sh -c`"),
    ("bash -o pipefail -c 'echo {{x}}'", "a value in the text of `bash -c`"),
    ("v={{x}}; bash -c \"echo $v\"", "a value in the text of `bash -c`"),
    ("find . -exec sh -c {{x}} \\;", "a value in the text of `sh -c`"),
    ("docker exec box sh -c {{x}}", "a value in the text of `sh -c`"),
    ("sudo -u a env B=1 bash -lc {{x}}", "a value in the text of `bash -c`"),
    ("bash -{{x}} a", "a value in the text of `bash -c`"),
    ("bash {-c,{{x}}}", "a value in the text of `bash -c`"),
    ("env {bash,-c} {{x}}", "brace expansion with the name of a shell"),
    (
        "bash <<EOF\necho {{x}}\nEOF",
        "a value in the input of a shell becomes shell code; pass it as an argument",
    ),
    ("ssh host bash <<< {{x}}", "a value in the input of a shell"),
    ("v={{x}}; sh <<EOF\necho $v\nEOF", "a value in the input of a shell"),
    // The command name.
    ("{{x}} --help", "at character 1: the command name has to be literal; use `{{if …}}`"),
    ("./{{x}}", "the command name has to be literal"),
    ("v={{x}}; $v", "the command name has to be literal"),
    ("$(echo {{x}})", "the command name has to be literal"),
    ("A=1 {{x}}", "the command name has to be literal"),
    ("> file {{x}}", "the command name has to be literal"),
    ("exec -a name {{x}}", "the command name has to be literal"),
    ("time -p {{x}}", "the command name has to be literal"),
    ("{ {{x}}; }", "the command name has to be literal"),
    ("while true; do {{x}}; done", "the command name has to be literal"),
    ("echo a | {{x}}", "the command name has to be literal"),
    ("{eval,{{x}}}", "the command name has to be literal"),
    ("$'\\x65val' {{x}}", "the command name has to be literal"),
    // Arithmetic.
    (
        "echo $(({{x}}+1))",
        "at character 6: `$((…))` evaluates values as code; use `expr`, `awk -v n={{name}}` or a script tool",
    ),
    ("n={{x}}; echo $((n+1))", "`$((…))` evaluates"),
    ("echo $[{{x}}]", "`$[…]` evaluates"),
    ("(( {{x}} ))", "`((…))` evaluates"),
    ("for ((i=0; i<{{x}}; i++)); do echo; done", "`for ((…))` evaluates"),
    ("let a={{x}}", "`let` may evaluate"),
    ("[[ {{x}} -eq 1 ]]", "`-eq` in `[[ … ]]` evaluates values as code; use `[ … ]`"),
    ("v={{x}}; if [[ a == a && $v -gt 1 ]]; then :; fi", "`-gt` in `[[ … ]]` evaluates"),
    ("[[ -v {{x}} ]]", "`-v` in `[[ … ]]` evaluates"),
    ("declare -i a={{x}}", "`declare` may evaluate this word as code"),
    ("f() { local -n a=$1; }; f {{x}}", "`local` may evaluate this word"),
    ("declare {{x}}", "`declare` may evaluate this word"),
    ("export {{x}}", "`export` may evaluate this word as code; write `export NAME=…` with a literal name"),
    ("OPTIND={{x}}", "`OPTIND` controls the shell and cannot be set from a value"),
    ("v={{x}}; PS4=$v; set -x", "`PS4` controls the shell"),
    ("PATH={{x}} ls", "`PATH` controls the shell"),
    ("export LD_PRELOAD={{x}}", "`LD_PRELOAD` controls the shell"),
    ("read PATH <<< {{x}}", "`PATH` controls the shell"),
    ("for PATH in {{x}}; do ls; done", "`PATH` controls the shell"),
    ("printf -v IFS %s {{x}}", "`IFS` controls the shell"),
    ("HAFT_V1=a; echo {{x}}", "`HAFT_V1` controls the shell"),
    // Names of variables and subscripts.
    ("[ -v {{x}} ]", "`-v` evaluates a value as code; write `[ -n \"…\" ]`"),
    ("test {{x}} {{y}}", "a value could be read as an operator of `[ … ]`"),
    ("v={{x}}; [ $v ]", "quote the variables in `[ … ]`"),
    ("set -- {{x}}; [ \"$@\" ]", "quote the variables in `[ … ]`"),
    ("read {{x}}", "`read` evaluates its arguments as code; write literal variable names"),
    ("read -a list <<< {{x}}", "`read` evaluates"),
    ("unset {{x}}", "`unset` evaluates"),
    ("wait -n -p {{x}}", "`wait` evaluates"),
    ("printf -v {{x}} a", "`printf -v` evaluates the variable name"),
    ("a[{{x}}]=1", "array subscripts evaluate values as code"),
    ("a=({{x}})", "arrays and extended patterns are unsupported"),
    ("echo ${a[{{x}}]}", "this form of `${…}` is unsupported"),
    ("echo ${HOME:{{x}}}", "reference inside `${…}`"),
    ("n={{x}}; echo ${HOME:n}", "`${NAME:offset}` evaluates"),
    ("echo ${!x} {{x}}", "this form of `${…}` is unsupported"),
    ("echo ${A@P} {{x}}", "this form of `${…}` is unsupported"),
    (
        "echo ${A:-{{x}}}",
        "reference inside `${…}`; assign it first (`v={{name}}`), or write `{{name | default:…}}`",
    ),
    ("echo >&{{x}}", "a value after `>&` is evaluated as code; write `> {{name}} 2>&1`"),
    // Backticks, quotes and syntax that the scanner does not read.
    ("echo `echo {{x}}`", "backticks are unsupported in a command with references; write `$(…)`"),
    ("echo \"`echo {{x}}`\"", "backticks are unsupported"),
    ("cat <<EOF\n`{{x}}`\nEOF", "backticks are unsupported"),
    (
        "cat <<'EOF'\n{{x}}\nEOF",
        "a reference in a here-document with a quoted delimiter is not replaced; write `<<EOF` without quotes",
    ),
    ("cat <<EOF\n{{x}}", "here-document has no closing line `EOF`"),
    ("cat <<{{x}}\nEOF", "the delimiter of a here-document has to be one plain word"),
    ("cat <<EOF \"a\n{{x}}\"\nEOF", "finish the command on that line"),
    ("echo $(cat <<EOF\n{{x}}\nEOF ; touch a)\nEOF\n)", "starts with its delimiter `EOF`"),
    ("echo \\{{x}}", "backslash before `{{`; remove it, values need no escaping"),
    ("echo ${{x}}", "`$` directly before `{{`; write `\\$` for a dollar sign"),
    ("echo $\"{{x}}\"", "`$\"…\"` is unsupported; remove the `$`"),
    ("echo 'a{{x}}", "`'` is not closed"),
    ("echo \"a{{x}}", "`\"` is not closed"),
    ("echo $(a {{x}}", "`(` is not closed"),
    ("echo a) {{x}}", "unexpected `)`"),
    ("case a in {{x}} echo", "expected `)` after the pattern of `case`"),
    ("coproc cat {{x}}", "`coproc` is unsupported"),
    ("echo @(a|{{x}})", "arrays and extended patterns are unsupported"),
    ("echo a\r\n{{x}}", "carriage return"),
    ("echo $x {{x}}", "variable `$x` is not set; write `{{x}}` for the argument"),
    ("echo {{nope}}", "`nope` is not a declared argument"),
    ("echo {{.x}}", "write `{{x}}` instead of `{{.x}}`"),
];

#[test]
fn constructs_that_evaluate_values_are_rejected() {
    for (command, expected) in REJECTED {
        let message = script(command);
        assert!(message.starts_with("! at "), "{command} was accepted: {message}");
        assert!(message.contains(expected), "{command}\n  {message}\n  {expected}");
    }
}

#[test]
fn a_position_is_named_once() {
    assert_eq!(
        script("echo one\neval {{x}}"),
        "! at line 2, character 1: `eval` may evaluate values as shell code; run the program directly, or use a script tool"
    );
}

#[test]
fn arithmetic_of_numbers_is_accepted() {
    for (command, expected) in [
        ("echo $((1+2)) {{x}}", "echo $((1+2)) \"${HAFT_V1}\""),
        ("head -c $(( (2 << 3) * 1024 )) {{x}}", "head -c $(( (2 << 3) * 1024 )) \"${HAFT_V1}\""),
    ] {
        assert_eq!(script(command), expected);
    }
    for command in [
        "echo $((x+1)) {{x}}",
        "echo $((1+$n)) {{x}}",
        "echo $((1)+(2)) {{x}}",
        "echo $((a[0])) {{x}}",
        "echo $((1 {{x}}",
    ] {
        assert!(script(command).contains("`$((…))` evaluates"), "{command}: {}", script(command));
    }
}

#[test]
fn commands_without_references_are_not_checked() {
    for command in ["n=$((1+2)); eval \"echo $n\" `date`", "a=(1 2); echo \"${a[@]}\"", "trap 'rm -f x' EXIT"]
    {
        assert_eq!(script(command), command);
    }
}
