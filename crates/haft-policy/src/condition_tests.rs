//! Conditions: what they can say, what they reject, and that hostile ones end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::attributes::{ActorAttributes, CallAttributes};
use super::condition::compile;
use super::evaluator::{Evaluator, Patterns, VARIABLES};

/// Evaluates a condition; errors of both steps become text.
fn evaluate(source: &str, args: &Value) -> Result<bool, String> {
    let mut patterns = Patterns::new();
    let condition = compile(&[source], &VARIABLES, &mut patterns)
        .remove(0)
        .map_err(|error| format!("compile: {error}"))?;
    let tags = ["money".to_owned(), "write".to_owned()];
    let attributes = CallAttributes {
        tenant: "acme",
        role: "caller",
        elevated: false,
        token: "ci",
        token_id: None,
        actor: ActorAttributes::None,
        agent: None,
        agents_above: &[],
        bundle: "bank",
        tool: "pay",
        resource: None,
        tags: &tags,
        surface: "mcp",
        args: Some(args),
    };
    let patterns = Arc::new(patterns);
    Evaluator::new(&attributes, &patterns).evaluate(&condition).map_err(|failure| failure.to_string())
}

#[test]
fn conditions_read_arguments_tool_principal_and_surface() {
    let args = json!({
        "amount": 250, "rate": 1.5, "big": u64::MAX, "to": "alice@example.com", "nothing": null,
        "items": [{"n": 1}, {"n": 2}], "nested": {"a": {"b": [1, 2, 3]}},
    });
    for (source, expected) in [
        ("args.amount > 100", true),
        ("args.amount > 100.5", true),
        ("args.amount + 1 == 251", true),
        ("args.rate > 1", true),
        ("args.rate == 1.5 && args.amount * 2 >= 500", true),
        ("args.big > 100", true),
        ("args.nothing == null", true),
        ("has(args.amount) && args.amount > 300", false),
        ("has(args.missing) && args.missing > 300", false),
        ("args.?missing.orValue(0) > 300", false),
        ("args['amount'] == 250", true),
        ("args.to.endsWith('@example.com')", true),
        ("args.to.matches('^[a-z]+@example[.]com$')", true),
        ("matches(args.to, '(?i)ALICE')", true),
        ("args.to.matches('bob') || args.to.contains('alice')", true),
        ("size(args.items) == 2", true),
        ("args.items.all(item, item.n > 0)", true),
        ("args.items.exists(item, item.n > 1)", true),
        ("args.items.exists_one(item, item.n > 1)", true),
        ("args.items.filter(item, item.n > 1).size() == 1", true),
        ("args.nested.a.b.exists(x, args.items.exists(y, y.n == x))", true),
        ("args.nested.all(key, key == 'a')", true),
        ("tool.name == 'pay' && tool.bundle == 'bank' && 'money' in tool.tags", true),
        ("principal.role in ['viewer', 'caller'] && !principal.elevated", true),
        ("principal.tenant == 'acme' && principal.name.startsWith('ci')", true),
        ("surface == 'mcp'", true),
        ("type(args.amount) == int && int('7') == 7", true),
    ] {
        assert_eq!(evaluate(source, &args), Ok(expected), "{source}");
    }
}

#[test]
fn failures_name_the_cause() {
    let args = json!({"amount": "many", "list": [1, 2]});
    for (source, expected) in [
        ("args.missing > 100", "`missing` is missing"),
        ("args.amount > 100", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("args.amount", "the condition is not true or false, but of type `string`"),
        ("1 / 0 == 1", "Division by zero of Int(1)"),
        ("args.list[5] == 1", "Index out of bounds: Int(5)"),
        (
            "9223372036854775807 + 1 > 0",
            "Overflow from binary operator 'add': Int(9223372036854775807), Int(1)",
        ),
        ("args.list.all(x, x.y)", "found no matching overload for '_._' applied to '(int, string)'"),
    ] {
        assert_eq!(evaluate(source, &args), Err(expected.to_owned()), "{source}");
    }
}

#[test]
fn invalid_conditions_are_rejected_with_the_fix() {
    for (source, expected) in [
        ("args.amount >", "syntax error at line 1, column 14: "),
        ("arg.amount > 1", "unknown variable `arg`; did you mean `args`?"),
        ("x > 1", "unknown variable `x`; expected `args`, `tool`, `principal`, `surface`"),
        ("args.name.startWith('a')", "unknown function `startWith`; did you mean `startsWith`?"),
        ("now() > 1", "unknown function `now`"),
        ("args.list.all(x)", "invalid number or types of arguments of `all`"),
        (
            "args.list.map(x, args) == []",
            "`map` is not supported in conditions; use `all`, `exists` or `filter`",
        ),
        ("args.list.map(x, x > 1, [x, x]) == []", "`map` is not supported in conditions"),
        ("Foo{a: 1}.a == 1", "types cannot be constructed in a condition"),
        ("args.a.matches(args.b)", "the regular expression of `matches` must be a literal string"),
        ("args.a.matches('(')", "invalid regular expression `(`: unclosed group"),
        ("args.a.matches('(a{1000}){1000}')", "invalid regular expression `(a{1000}){1000}`: "),
        ("args.a.matches('(?=x)')", "invalid regular expression `(?=x)`: "),
        ("`a` == 1", "syntax error at line 1, column 1: "),
        ("@step()", "syntax error at line 1, column 1: "),
    ] {
        let error = evaluate(source, &json!({})).unwrap_err();
        assert!(error.starts_with(&format!("compile: {expected}")), "{source}: {error}");
    }
}

#[test]
fn hostile_sources_are_rejected_quickly() {
    let start = Instant::now();
    let nested =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    for (source, expected) in [
        ("1".repeat(1_000_000), "the condition has 1000000 bytes; the limit is 4096"),
        (nested("(", ")", 2000), "brackets are nested deeper than 32 levels"),
        (nested("[", "]", 2000), "brackets are nested deeper than 32 levels"),
        (nested("{1:", "}", 1000), "brackets are nested deeper than 32 levels"),
        ("(".repeat(4096), "brackets are nested deeper than 32 levels"),
        ("1+".repeat(2000) + "1 > 0", "the condition is nested deeper than 32 levels"),
        (format!("args{} == 1", ".a".repeat(2000)), "the condition is nested deeper than 32 levels"),
        (format!("args{} == 1", "[0]".repeat(1000)), "the condition is nested deeper than 32 levels"),
        ("true?true:".repeat(400) + "true", ""),
        (format!("[{}] == []", "1,".repeat(1500) + "1"), "the condition has more than 500 terms"),
        ("true||".repeat(600) + "true", "the condition has more than 500 terms"),
        (
            "args.a.all(a, args.a.all(b, args.a.all(c, true)))".to_owned(),
            "`all`, `exists` and `filter` are nested deeper than 2 levels",
        ),
        ("!".repeat(4095) + "a", "unknown variable `a`"),
        ("-".repeat(4095) + "1", ""),
        ("\"".repeat(4095), "syntax error"),
        ("\\".repeat(4095), "syntax error"),
        ("a.b(".repeat(30) + &")".repeat(30), "unknown function `b`"),
    ] {
        let error = evaluate(&source, &json!({})).unwrap_err();
        assert!(error.contains(expected), "{}: {error}", source.chars().take(20).collect::<String>());
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn the_deepest_expression_fits_into_the_stack_of_a_test_thread() {
    let deep = format!("{}args.a{} > 0", "(".repeat(28), " + 1)".repeat(28));
    assert_eq!(evaluate(&deep, &json!({"a": 1})), Ok(true));
    let both =
        "args.l.all(x, args.l.all(y, ".to_owned() + &"(".repeat(20) + "x" + &" + y)".repeat(20) + " > 0))";
    assert_eq!(evaluate(&both, &json!({"l": [1, 2]})), Ok(true));
}

#[test]
fn loops_are_limited() {
    let many = json!({"a": vec![1; 3500]});
    let start = Instant::now();
    for source in [
        "args.a.all(x, args.a.all(y, x == y))",
        "args.a.exists(x, args.a.exists(y, x != y))",
        "args.a.filter(x, args.a.filter(y, x == y).size() > 0).size() > 0",
        "args.a.exists_one(x, args.a.exists_one(y, x != y))",
        // An error that another operand hides is still a failure.
        "args.a.all(x, args.a.all(y, x == y)) || true",
        "!args.a.all(x, args.a.all(y, x == y)) || true",
    ] {
        let error = evaluate(source, &many).unwrap_err();
        let limits = ["the condition exceeded 10000 iterations", "the conditions ran longer than 500 ms"];
        assert!(limits.contains(&error.as_str()), "{source}: {error}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(evaluate("args.a.all(x, x == 1)", &json!({"a": vec![1; 1000]})), Ok(true));
}

#[test]
fn the_size_of_the_arguments_is_limited() {
    let error = "the arguments exceed 65536 bytes";
    for args in [
        json!({"a": "x".repeat(70_000)}),
        json!({"a": vec![0; 70_000]}),
        json!({"x".repeat(70_000): 0}),
        json!({"a": {"b": vec![json!({"c": [1]}); 5000]}}),
    ] {
        assert_eq!(evaluate("true", &args), Err(error.to_owned()));
    }
    assert_eq!(evaluate("size(args.a) == 60000", &json!({"a": "x".repeat(60_000)})), Ok(true));
    // As deep as the parser of JSON accepts.
    let deep = (0..126).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(evaluate("size(args) == 1 && args == args", &deep), Ok(true));
    assert_eq!(evaluate("args.n > 0", &json!({"n": 1e308})), Ok(true));
    assert_eq!(evaluate("args.n > 0", &json!({"n": i64::MIN})), Ok(false));
}

/// Pieces of conditions, from which the property test makes valid and invalid ones.
const PIECES: [&str; 44] = [
    "args",
    ".a",
    ".b",
    "[0]",
    "['a']",
    ".?a",
    "[?0]",
    ".orValue(1)",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{'a': 1}",
    ":",
    ",",
    "1",
    "-1",
    "1u",
    "1.5",
    "9223372036854775807",
    "'text'",
    "b'x'",
    "null",
    "true",
    "false",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " < ",
    " in ",
    " && ",
    " || ",
    " ? ",
    "!",
    ".all(x, ",
    ".filter(x, ",
    "x",
    "size(",
    ".matches('a+')",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_condition_panics(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..14)) {
        let args = json!({"a": [1, "b", {"a": 1.5}, null], "b": {"a": -1, "c": u64::MAX}});
        let result = evaluate(&pieces.concat(), &args);
        prop_assert_ne!(result, Err("the condition failed internally".to_owned()));
    }
}
