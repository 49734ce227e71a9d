//! Python bodies: what they become, which are refused, and hostile values against a real interpreter.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command as Process, Stdio};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Scope, Values, script_secrets};
use super::PythonTemplate;
use haft_core::implementation::ScriptRuntime;
use haft_core::secret::Secret;

fn scope() -> Scope {
    Scope::from_schema(
        &json!({ "properties": { "x": {}, "y": {}, "deep": {}, "a-b": {} }, "required": ["x"] }),
    )
}

fn render(body: &str, args: &Value) -> String {
    let template = match PythonTemplate::compile(body, &scope()) {
        Ok(template) => template,
        Err(errors) => return errors.iter().map(|e| format!("! {e}")).collect::<Vec<_>>().join("\n"),
    };
    let secrets = BTreeMap::from([("KEY", Secret::new("s\"".to_owned()))]);
    let values =
        Values { args: args.as_object().unwrap(), steps: &Map::new(), secrets: &secrets, version: "" };
    template.render(&values).map_or_else(|error| format!("! {error}"), std::borrow::Cow::into_owned)
}

#[test]
fn values_become_escapes() {
    for (body, args, expected) in [
        ("t = \"${x}\"", json!({ "x": "a\"b" }), "t = \"\\x61\\x22b\""),
        ("t = '''${x}'''", json!({ "x": "a\n€🦀" }), "t = '''\\x61\\x0a\\u20ac\\U0001f980'''"),
        ("t = b'${x}'", json!({ "x": "é" }), "t = b'\\xc3\\xa9'"),
        ("t = f\"{y}${x}\"", json!({ "x": "{y}" }), "t = f\"{y}\\x7by\\x7d\""),
        (
            "t = '${x} ${y} ${deep.k}${a-b}'",
            json!({ "x": 1, "deep": { "k": [true] } }),
            "t = '\\x31  \\x5btrue\\x5d'",
        ),
        ("t = '${x}'", json!({}), "! missing required argument `x`"),
        ("t = '${KEY}' + f'${KEY}' + r'${KEY}'", json!({}), "t = '\\x73\\x22' + f'${KEY}' + r'${KEY}'"),
        // What is no argument is Python's own.
        (
            "t = '${other} $x ${ x}' # ${x}\ns = f'${price:.2f}'",
            json!({ "x": "v" }),
            "t = '${other} $x ${ x}' # ${x}\ns = f'${price:.2f}'",
        ),
        ("print(1)", json!({}), "print(1)"),
        ("x = {'a': \"it's\"}; y = \"${x}\"", json!({ "x": "v" }), "x = {'a': \"it's\"}; y = \"\\x76\""),
        (
            "d = \"\"\"it's \"quoted\" ${x}\"\"\"; e = 'a\\'${x}'",
            json!({ "x": "v" }),
            "d = \"\"\"it's \"quoted\" \\x76\"\"\"; e = 'a\\'\\x76'",
        ),
        (
            "f'{a[\"k\"]:>{w}} ${x} {{${y}}}'",
            json!({ "x": "v", "y": "w" }),
            "f'{a[\"k\"]:>{w}} \\x76 {{\\x77}}'",
        ),
    ] {
        assert_eq!(render(body, &args), expected, "{body}");
    }
}

#[test]
fn what_cannot_be_escaped_is_refused() {
    let refused: Vec<String> = [
        "t = ${x}",
        "t = r'${x}'",
        "t = rb\"${x}\"",
        "t = '\\${x}'",
        "t = '\\x4${x}'",
        "t = '\\N{${x}}'",
        "t = f'{\"${x}\"}'",
        "t = f'{${x}}'",
        "t = f'{y:${x}}'",
        "t = f'{y:{\"${x}\"}}'",
        "t = fr'${x}'",
        "t = '${x}\nprint()",
        "t = '''${x}",
        "t = f'{y ${x}",
        "s = r'\\'; t = '${x}'",
        "a\nb = ${deep.k} + '${x}'\nc = r'${x}'",
    ]
    .iter()
    .map(|body| {
        format!("{} => {}", body.replace('\n', "⏎"), render(body, &json!({ "x": "v" })).replace('\n', " "))
    })
    .collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
t = ${x} => ! at character 5: `${x}` outside of a string literal; write it in quotes, as in "${name}"
t = r'${x}' => ! at character 7: `${x}` in a raw string literal, which has no escapes; remove the `r`
t = rb"${x}" => ! at character 8: `${x}` in a raw string literal, which has no escapes; remove the `r`
t = '\${x}' => ! at character 7: `${x}` directly after a backslash or inside an escape sequence
t = '\x4${x}' => ! at character 9: `${x}` directly after a backslash or inside an escape sequence
t = '\N{${x}}' => ! at character 9: `${x}` directly after a backslash or inside an escape sequence
t = f'{"${x}"}' => ! at character 9: `${x}` inside an expression of an f-string; assign it to a variable first
t = f'{${x}}' => ! at character 8: `${x}` inside an expression of an f-string; assign it to a variable first
t = f'{y:${x}}' => ! at character 10: `${x}` inside the format of an f-string field; assign it to a variable first
t = f'{y:{"${x}"}}' => ! at character 12: `${x}` inside an expression of an f-string; assign it to a variable first
t = fr'${x}' => ! at character 8: `${x}` in a raw string literal, which has no escapes; remove the `r`
t = '${x}⏎print() => ! at line 1, character 5: unclosed string literal
t = '''${x} => ! at character 5: unclosed string literal
t = f'{y ${x} => ! at character 10: `${x}` inside an expression of an f-string; assign it to a variable first ! at character 6: unclosed string literal
s = r'\'; t = '${x}' => ! at character 16: `${x}` outside of a string literal; write it in quotes, as in "${name}" ! at character 20: unclosed string literal
a⏎b = ${deep.k} + '${x}'⏎c = r'${x}' => ! at line 2, character 5: `${deep.k}` outside of a string literal; write it in quotes, as in "${name}" ! at line 3, character 7: `${x}` in a raw string literal, which has no escapes; remove the `r`
"#);
}

#[test]
fn a_body_without_values_is_plain() {
    assert!(PythonTemplate::compile("print('$x ${other}')", &scope()).unwrap().is_plain());
    assert!(!PythonTemplate::compile("print('${x}')", &scope()).unwrap().is_plain());
    // Python refuses it; there is nothing of ours in it.
    assert!(PythonTemplate::compile("t = 'open ${other}", &scope()).unwrap().is_plain());
}

#[test]
fn secrets_of_scripts() {
    let names = |runtime, body: &str| {
        let secrets = script_secrets(runtime, body, &scope());
        secrets
            .iter()
            .map(|s| format!("{}{}", s.name, if s.required { "" } else { "?" }))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (body, expected) in [
        ("curl -X POST ${SLACK_WEBHOOK} -d \"{\\\"text\\\":\\\"${message}\\\"}\"", "SLACK_WEBHOOK"),
        ("curl \"https://h/?k=$KEY&n=$NAME\" $lower", "KEY NAME"),
        ("awk '{print $NF, $NR, $FOO}' # $BAR ${BAZ}\necho \"$(cat '$QUX')\"", ""),
        ("A=1; export B=2; read -r C; for D in 1; do :; done; echo $A $B $C $D $E", "E"),
        ("KEY=${KEY:-none}; echo ${OTHER:?set it} ${LAST-x}", "KEY? LAST? OTHER"),
        ("curl -d API_KEY=$API_KEY", "API_KEY"),
        ("cat <<EOF\nit's $KEY\nEOF\ncat <<'E2'\n$NOT\nE2\necho $AFTER", "AFTER KEY"),
        ("echo $HOME $PATH $RANDOM $BASH_VERSION $HAFT_ARGS $LC_ALL $? $1", ""),
        ("echo \"it's $KEY\" 'and $NOT' \"$(echo \"$DEEP\")\" \\$NO", "DEEP KEY"),
        ("echo $'it\\'s $NOT' ${#LEN} ${!IND} $((N+$M))", "LEN M"),
    ] {
        assert_eq!(names(ScriptRuntime::Bash, body), expected, "{body}");
    }
    for (body, expected) in [
        ("import os; os.environ[\"KEY\"]; os.environ.get('OPT', 1); os.getenv( \"MAY\" )", "KEY MAY? OPT?"),
        ("os.environ['SET'] = '1'; print('${TOKEN}', f'${COST}', r'${RAW}', '${low}')", "TOKEN"),
        ("os.environ['HOME']; os.environ[name]; x['NOT']", ""),
        ("t = '${vault:apps/x#key}' + f'${cmd:a}' + '${file:../x}' + '${sh:x}'", "vault:apps/x#key"),
    ] {
        assert_eq!(names(ScriptRuntime::Python, body), expected, "{body}");
    }
    let [long, too_long] = [512, 513].map(|length| format!("vault:{}", "x".repeat(length)));
    assert_eq!(names(ScriptRuntime::Python, &format!("t = '${{{long}}}'")), long);
    assert_eq!(names(ScriptRuntime::Python, &format!("t = '${{{too_long}}}'")), "");
}

/// Bodies that write the value; `%s` of the expectation is the value.
const BODIES: [(&str, &str); 11] = [
    ("out.write(\"${x}\".encode())", "%s"),
    ("out.write('${x}'.encode())", "%s"),
    ("out.write('''${x}'''.encode())", "%s"),
    ("out.write(\"\"\"it's \"${x}\" '\"\"\".encode())", "it's \"%s\" '"),
    ("out.write(b'${x}')", "%s"),
    ("y = 1\nout.write(f'{y}${x}{y}'.encode())", "1%s1"),
    ("y = 1\nout.write(f\"\"\"{{${x}}}{y:>3}\"\"\".encode())", "{%s}  1"),
    ("out.write(u\"a\\\n${x}\\\\${x}\\1${x}\".encode())", "a%s\\%s\x01%s"),
    ("# \"${x}\n'''doc ${x}'''\nout.write('%s|${x}'.encode())", "%s|%s"),
    ("out.write(('a' \"${x}\" '''b''').encode())", "a%sb"),
    ("out.write('$${x}}'.encode())", "$%s}"),
];

#[expect(
    clippy::disallowed_methods,
    reason = "the real interpreter is what the templates are tested against"
)]
fn python(program: &str) -> (Vec<u8>, String) {
    let mut child = Process::new("python3")
        .args(["-I", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs all bodies in one interpreter and compares what they write.
fn check(x: &str) {
    let mut program = String::from("import sys\nout = sys.stdout.buffer\n");
    let mut expected = String::new();
    for (body, wanted) in BODIES {
        program.push_str(&render(body, &json!({ "x": x })));
        program.push_str("\nout.write(b'\\0')\n");
        // In `%s|%s` the first is literal text.
        match wanted {
            "%s|%s" => expected.extend(["%s|", x]),
            other => expected.push_str(&other.replace("%s", x)),
        }
        expected.push('\0');
    }
    let (stdout, stderr) = python(&program);
    assert_eq!(String::from_utf8_lossy(&stdout), expected, "{x:?}: {stderr}");
}

#[test]
fn hostile_values_stay_text() {
    for x in [
        "",
        "plain",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\\\\",
        "\\\"",
        "\n",
        "\r\n",
        "\0",
        "{",
        "}",
        "{{",
        "{y}",
        "{out!r}",
        "\"); import os; os.system('touch pwned'); (\"",
        "'+open('/etc/passwd').read()+'",
        "\\N{SNOWMAN}",
        "\\x41",
        "\\u0041",
        "größe ☃ 🦀",
        "\u{202e}",
        "\u{feff}",
        "\u{2028}",
        "%s %d",
        "${x}",
        "0",
        "7",
        "A",
        "#",
        "1e5",
        "\t",
        "\u{85}",
    ] {
        check(x);
    }
    check(&"'\"\\{}\n".repeat(5000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_value_stays_text(x in "(\\PC|[\"'\\\\{}\n\r0-9a-fxuN#$]){0,40}") {
        check(&x);
    }

    /// No text makes the scanner panic or lose a byte of a body without values.
    #[test]
    fn any_body_is_read(body in "([\"'\\\\{}\n#$:()a-z ]|f\"|r'|\"\"\"|\\$\\{y\\}|\\PC){0,60}") {
        if let Ok(template) = PythonTemplate::compile(&body, &scope())
            && template.is_plain()
        {
            prop_assert_eq!(render(&body, &json!({})), body);
        }
    }
}
