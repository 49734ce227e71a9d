//! What each notation means, case by case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use haft_core::outcome::CallError;
use haft_core::secret::Secret;

fn scope() -> Scope {
    let mut scope = Scope::from_schema(&json!({
        "properties": {
            "city": {"type": "string"}, "count": {"type": "integer"}, "user": {"type": "object"},
            "flag": {"type": "boolean"}, "units": {"type": "string", "default": "metric"}, "a.b": {}, "list": {}
        },
        "required": ["city"]
    }));
    scope.add_step("login");
    scope
}

fn with<T>(args: &Value, run: impl FnOnce(&Values<'_>) -> T) -> T {
    let args = args.as_object().unwrap();
    let steps = json!({"login": {"token": "t1", "ids": [7, 8]}});
    let secrets = BTreeMap::from([("KEY", Secret::new("k&y".into())), ("city", Secret::new("never".into()))]);
    run(&Values { args, steps: steps.as_object().unwrap(), secrets: &secrets, version: "v2" })
}

fn text(notation: Notation, place: EscapeContext<'_>, template: &str, args: &Value) -> String {
    match Template::parse(notation, template, &scope()) {
        Err(error) => format!("syntax {error}"),
        Ok(template) => with(args, |values| match template.render(place, values) {
            Ok(rendered) => rendered.text,
            Err(error) => format!("error {error}"),
        }),
    }
}

#[test]
fn dollar_texts() {
    let args = json!({"city": "Köln", "count": 3, "user": {"name": "Ann", "tags": ["x", "y"]}, "hidden": 1, "a.b": "dot"});
    for (template, expected) in [
        ("", ""),
        ("plain $ text } $x", "plain $ text } $x"),
        ("${city}/${ city }", "Köln/Köln"),
        ("${count} ${user.name} ${user.tags.1} ${user}", r#"3 Ann y {"name":"Ann","tags":["x","y"]}"#),
        ("${a.b}", "dot"),
        ("${units}", "metric"),
        ("[${flag}][${user.nothing}][${user.tags.9}]", "[][][]"),
        ("${KEY}", "k&y"),
        ("MyApp/${version}", "MyApp/v2"),
        ("${steps.login.token}${steps.login.ids.0}", "t17"),
        ("$${city}", "${city}"),
        ("$$${city}", "$${city}"),
        ("{{city}}", "{{city}}"),
        ("${hidden}", "error secret `hidden` is not stored; store it with `haft secret set hidden`"),
        ("${steps.login.nope}", "error missing value `steps.login.nope` of an earlier step"),
        ("${steps.later.x}", "syntax at character 1: no earlier step is named `later`"),
        ("ä ${", "syntax at character 3: `${` has no `}`; write `$${` for a literal `${`"),
        ("${}", "syntax at character 1: missing name between the braces"),
        (
            "${a b}",
            "syntax at character 1: invalid name `a b`: a name has no spaces, quotes, braces or `$`, and no empty part between dots",
        ),
        (
            "${a..b}",
            "syntax at character 1: invalid name `a..b`: a name has no spaces, quotes, braces or `$`, and no empty part between dots",
        ),
        (
            "${a/b}",
            "syntax at character 1: invalid secret name `a/b`: use at most 128 letters, digits, `_`, `-` and `.`",
        ),
    ] {
        assert_eq!(text(Notation::Dollar, EscapeContext::Text, template, &args), expected, "{template}");
    }
    assert_eq!(
        text(Notation::Dollar, EscapeContext::Text, "${city}", &json!({})),
        "error missing required argument `city`"
    );
}

#[test]
fn braces_texts() {
    let args = json!({"city": "Rome", "count": 0, "flag": true, "user": {"name": null}, "list": []});
    for (template, expected) in [
        ("{{city}} {{ city }}", "Rome Rome"),
        ("{{units}}", "metric"),
        ("{{count | default:10}}", "0"),
        // The default of the template overrides the one of the schema.
        ("{{units}} {{units | default:imperial}}", "metric imperial"),
        ("{{user.name|default: \"no }} one\"}}", "no }} one"),
        ("{{user.name | default:'it is'}}", "it is"),
        ("{{user.age | default:not known}}", "not known"),
        ("{{user.age | default:{\"a\":{\"b\":1}}}}", r#"{"a":{"b":1}}"#),
        ("{{if flag}}yes{{else}}no{{end}}", "yes"),
        ("{{if count}}yes{{else}}no{{end}}", "no"),
        ("{{if list}}yes{{end}}.", "."),
        ("{{if user.name}}yes{{end}}.", "."),
        ("{{if flag}}a{{if count}}b{{else}}c{{end}}d{{end}}e", "acde"),
        ("{{if steps.login.token}}{{steps.login.token}}{{end}}", "t1"),
        ("Bearer ${KEY}", "Bearer k&y"),
        ("$${KEY} {{\"{{\"}} }}", "${KEY} {{ }}"),
        ("${city2}", "error secret `city2` is not stored; store it with `haft secret set city2`"),
        ("${city}", "never"),
        ("{{.city}}", "syntax at character 1: write `{{city}}` instead of `{{.city}}`"),
        (
            "x{{nope}}",
            "syntax at character 2: `nope` is not a declared argument; declare it, or write `${nope}` for a secret",
        ),
        (
            "{{1x}}",
            "syntax at character 1: `1x` is not a declared argument, and names of secrets start with a letter or `_`",
        ),
        ("{{if flag}}", "syntax at character 1: `{{if}}` has no `{{end}}`"),
        ("{{end}}", "syntax at character 1: `{{end}}` without `{{if}}`"),
        ("{{else}}", "syntax at character 1: `{{else}}` without `{{if}}`"),
        ("{{if flag}}{{else}}{{else}}{{end}}", "syntax at character 20: `{{else}}` without `{{if}}`"),
        ("{{endif}}", "syntax at character 1: write `{{end}}` instead of `{{endif}}`"),
        ("{{if}}x{{end}}", "syntax at character 1: missing argument name; write `{{if name}}`"),
        (
            "{{if flag}}{{else if count}}{{end}}",
            "syntax at character 12: `{{else if}}` is unsupported; nest an `{{if}}` in `{{else}}`",
        ),
        (
            "{{city | upper}}",
            "syntax at character 1: unknown filter `upper`; the only filter is `default:VALUE`",
        ),
        ("{{city", "syntax at character 1: `{{` has no `}}`; write `{{\"{{\"}}` for a literal `{{`"),
        (
            "{{- city -}}",
            "syntax at character 1: invalid name `- city -`: a name has no spaces, quotes, braces or `$`, and no empty part between dots",
        ),
    ] {
        assert_eq!(text(Notation::Braces, EscapeContext::Text, template, &args), expected, "{template}");
    }
    let deep = "{{if flag}}".repeat(33);
    assert_eq!(
        text(Notation::Braces, EscapeContext::Text, &deep, &args),
        "syntax at character 353: nesting limit of `{{if}}` (32) exceeded"
    );
}

#[test]
fn values_are_never_expanded_again() {
    let args = json!({"city": "${KEY} {{count}} $${x}", "count": 1});
    assert_eq!(text(Notation::Dollar, EscapeContext::Text, "${city}", &args), "${KEY} {{count}} $${x}");
    assert_eq!(text(Notation::Braces, EscapeContext::Text, "{{city}}", &args), "${KEY} {{count}} $${x}");
}

#[test]
fn escaping_by_place() {
    let args = json!({"city": "a/b?c#d%e&f=g+h i\"j\\k", "count": 5, "list": [1, "x"], "flag": null, "user": {"name": "l1\r\nX: y"}});
    let check = |place, template: &str, expected: &str| {
        assert_eq!(text(Notation::Dollar, place, template, &args), expected, "{place:?} {template}");
    };
    let encoded = "a%2Fb%3Fc%23d%25e%26f%3Dg%2Bh%20i%22j%5Ck";
    check(EscapeContext::Url, "https://h/${city}", &format!("https://h/{encoded}"));
    check(EscapeContext::Url, "https://h/x?q=${city}&n=${count}", &format!("https://h/x?q={encoded}&n=5"));
    check(EscapeContext::Url, "https://h?k=${KEY}#${city}", &format!("https://h?k=k%26y#{encoded}"));
    check(EscapeContext::Url, "https://x${count}.h/", "https://x5.h/");
    check(
        EscapeContext::Url,
        "https://${city}.h/",
        "error value of `city` is not valid in the URL: a host may contain only letters, digits, `-`, `_` and `.`",
    );
    check(
        EscapeContext::Url,
        "https:///${city}",
        "error value of `city` is not valid in the URL: a host may contain only letters, digits, `-`, `_` and `.`",
    );
    check(
        EscapeContext::Url,
        "${city}://h/",
        "error value of `city` is not valid in the URL: the scheme has to be literal",
    );
    check(
        EscapeContext::Url,
        "https://h/%${count}",
        "error value of `count` is not valid in the URL: it would complete a percent escape of the template",
    );
    check(EscapeContext::Header("X-N"), "v ${count}", "v 5");
    check(
        EscapeContext::Header("X-N"),
        "${user.name}",
        "error value of `user.name` is not valid in the header `X-N`: line breaks and NUL are not allowed",
    );
    check(EscapeContext::Form, "a=${city}&b=${count}", &format!("a={encoded}&b=5"));
    check(
        EscapeContext::Json,
        r#"{"a":"x ${city}","b":${city},"c":${count},"d":"${list}","e":${list},"f":${flag},"g":${KEY}}"#,
        r#"{"a":"x a/b?c#d%e&f=g+h i\"j\\k","b":"a/b?c#d%e&f=g+h i\"j\\k","c":5,"d":"[1,\"x\"]","e":[1,"x"],"f":null,"g":"k&y"}"#,
    );
    check(
        EscapeContext::Json,
        r#"{"a":"\${city}"}"#,
        "error value of `city` is not valid in the JSON body: it would complete a backslash escape of the template",
    );
    check(EscapeContext::Json, r#"{"a":"\"${count}\u0041${count}"}"#, r#"{"a":"\"5\u00415"}"#);
    check(
        EscapeContext::Xml,
        r#"<a b="${city}">${list}</a>"#,
        r#"<a b="a/b?c#d%e&amp;f=g+h i&quot;j\k">[1,&quot;x&quot;]</a>"#,
    );
    check(EscapeContext::Xml, "<a><![CDATA[${list}]]></a>", "<a><![CDATA[[1,\"x\"]]]><![CDATA[]]></a>");
    check(
        EscapeContext::Xml,
        "<${city}/>",
        "error value of `city` is not valid in the XML body: outside of text and quotes only letters, digits, `_` and `.` are allowed",
    );
}

#[test]
fn a_value_cannot_climb_in_a_path() {
    for (template, value, ok) in [
        ("https://h/a/${city}", "..", false),
        ("https://h/a/${city}/b", "..", false),
        ("https://h/a/${city}?q", ".", false),
        ("https://h/a/${city}#q", "..", false),
        ("https://h/a/.${city}", ".", false),
        ("https://h/a/%2e${city}/x", ".", false),
        ("https://h/a/${city}", "../..", true),
        ("https://h/a/${city}", "...", true),
        ("https://h/a/x${city}", "..", true),
        ("https://h/a?${city}", "..", true),
        ("https://h/a/../${city}", "b", true),
    ] {
        let rendered = text(Notation::Dollar, EscapeContext::Url, template, &json!({"city": value}));
        assert_eq!(!rendered.starts_with("error"), ok, "{template} {value}: {rendered}");
    }
}

fn structure(template: &Value, args: &Value) -> Result<Option<Value>, String> {
    match ValueTemplate::parse(Notation::Braces, template, &scope()) {
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Ok(template) => with(args, |values| match template.render(values) {
            Ok((value, _)) => Ok(value),
            Err(error) => Err(error.to_string()),
        }),
    }
}

#[test]
fn structures() {
    let args = json!({"city": "Rome", "count": 3, "flag": true, "user": {"a": [1]}, "list": null});
    for (template, expected) in [
        (json!("{{count}}"), json!(3)),
        (json!(" {{count}}"), json!(" 3")),
        (json!({"u": "{{user}}", "n": "{{list}}"}), json!({"u": {"a": [1]}, "n": null})),
        (json!({"gone": "{{user.x}}", "kept": "{{user.x | default:10}}"}), json!({"kept": 10})),
        (json!(["{{user.x}}", "{{count}}", "x{{user.x}}"]), json!([3, "x"])),
        (json!({"k": "${KEY}", "t": "{{steps.login.ids}}"}), json!({"k": "k&y", "t": [7, 8]})),
        (json!({"plain": [1, null, true, {"x": "$${y}"}]}), json!({"plain": [1, null, true, {"x": "${y}"}]})),
        (
            json!({"query": "{{city}}", "{{if flag}}": {"options": {"detailed": true}}, "z": 1}),
            json!({"query": "Rome", "options": {"detailed": true}, "z": 1}),
        ),
        (
            json!({"{{if list}}": {"a": 1}, "{{else}}": {"b": 2}, "{{if flag #2}}": {"c": 3}, "{{else #2}}": {"d": 4}}),
            json!({"b": 2, "c": 3}),
        ),
        (json!({"{{if flag}}": {"{{if list}}": {"x": 1}, "{{else}}": {"y": 2}}}), json!({"y": 2})),
        (
            json!([0, {"{{if flag}}": [1, 2]}, {"{{if list}}": 3, "{{else}}": {"x": "{{city}}"}}, {"{{if list}}": 9}]),
            json!([0, 1, 2, {"x": "Rome"}]),
        ),
        (json!([1, {"{{if flag}}": null}, {"{{if flag}}": [null]}]), json!([1, null])),
        (json!({"a": 1, "{{if flag}}": null}), json!({"a": 1})),
    ] {
        assert_eq!(structure(&template, &args), Ok(Some(expected)), "{template}");
    }
    assert_eq!(structure(&json!("{{user.x}}"), &args), Ok(None));
    assert_eq!(
        structure(&json!({"a": "{{city}}"}), &json!({})),
        Err("missing required argument `city`".into())
    );
    for (template, expected) in [
        (
            json!({"a": [{"b": "{{.x}}"}], "c": "{{"}),
            "`.a[0].b` at character 1: write `{{x}}` instead of `{{.x}}`; `.c` at character 1: `{{` has no `}}`; write `{{\"{{\"}}` for a literal `{{`",
        ),
        (json!({"{{else}}": {}}), "`.{{else}}` at character 1: `{{else}}` does not follow an `{{if}}`"),
        (
            json!({"{{if flag}}": 3}),
            "`.{{if flag}}` at character 1: the content of a condition in a map has to be a map",
        ),
        (
            json!({"{{city}}": 3}),
            "`.{{city}}` at character 1: keys cannot be templates, except `{{if x}}` and `{{else}}`",
        ),
        (json!({"${K}": 3}), "`.${K}` at character 1: keys cannot be templates"),
    ] {
        assert_eq!(structure(&template, &args), Err(expected.to_owned()), "{template}");
    }
    let mut deep = json!("{{city}}");
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert!(structure(&deep, &args).unwrap_err().contains("nesting limit (100) exceeded"));
}

#[test]
fn secrets_are_named_masked_and_reported() {
    let template =
        Template::parse(Notation::Dollar, "https://h/${city}?k=${KEY}&v=${version}", &scope()).unwrap();
    assert_eq!(template.secrets().collect::<Vec<_>>(), ["KEY", "version"]);
    with(&json!({"city": "x"}), |values| {
        let rendered = template.render(EscapeContext::Url, values).unwrap();
        assert_eq!(rendered, Rendered { text: "https://h/x?k=k%26y&v=v2".into(), secret: true });
        assert_eq!(template.render_masked(EscapeContext::Url, values).unwrap(), "https://h/x?k=***&v=v2");
    });
    let value =
        ValueTemplate::parse(Notation::Braces, &json!({"a": ["${KEY}", {"{{if flag}}": "${B}"}]}), &scope());
    assert_eq!(value.unwrap().secrets().collect::<Vec<_>>(), ["KEY", "B"]);
}

#[test]
fn secrets_outside_of_haft_have_a_scheme() {
    for notation in [Notation::Dollar, Notation::Braces] {
        let secrets = |text: &str, scope: &Scope| {
            let template = Template::parse(notation, text, scope).unwrap();
            template.secrets().map(str::to_owned).collect::<Vec<_>>()
        };
        let found = secrets("Bearer ${vault:apps/x#key} ${ file:db/password }", &scope());
        assert_eq!(found, ["vault:apps/x#key", "file:db/password"]);
        assert_eq!(secrets("${cmd:token}", &scope().open()), ["cmd:token"]);
        let error = Template::parse(notation, "${vault:../sys#key}", &scope()).unwrap_err();
        let expected = "invalid reference `vault:../sys#key`: the path has the part `.` or `..`";
        assert_eq!(error.message, expected);
    }
}

#[test]
fn errors_become_outcomes() {
    let missing = CallError::from(RenderError::MissingSecret("KEY".into()));
    assert_eq!(missing.code.as_str(), "secret_missing");
    assert!(!missing.model_text().contains("KEY"));
    assert_eq!(CallError::from(RenderError::MissingArgument("city".into())).code.as_str(), "template");
}

#[test]
fn what_looks_like_json() {
    let scope = Scope::from_schema(&json!({"properties": {"a": {}, "b": {}}}));
    for (template, expected) in [
        (r#" {"a": "{{a}}"}"#, true),
        ("[{{a}}]", true),
        (r#"{{if a}}{"a": "{{a}}"}{{else}}[]{{end}}"#, true),
        (r#"{{if a}}text{{else}} {"b": 1}{{end}}"#, true),
        (r#"{{if a}}{{if b}} {{end}}{{end}} {"b": 1}"#, true),
        ("{{if a}}{{b}}{{end}}[1]", true),
        (r#"{{a}} {"b": "{{b}}"}"#, true),
        ("{{a}} [{{b}}]", false),
        ("{{a}}", false),
        ("text {1}", false),
        ("{{if a}}x{{else}}y{{end}}[1]", false),
        ("", false),
    ] {
        let parsed = Template::parse(Notation::Braces, template, &scope).unwrap();
        assert_eq!(parsed.looks_like_json(), expected, "{template}");
    }
}
