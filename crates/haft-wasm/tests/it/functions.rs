//! Functions of components: which one is meant, and what goes in and out.

use haft_core::outcome::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Tool, component, echo};

/// Two functions at the top, two interfaces with one of the same name.
fn several() -> String {
    let core = r#"
      (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
      (func (export "not") (param i32) (result i32) (i32.eqz (local.get 0)))
      (func (export "nothing"))
    "#;
    let exports = r#"
      (func $add (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
      (func $not (param "it" bool) (result bool) (canon lift (core func $i "not")))
      (func $nothing (canon lift (core func $i "nothing")))
      (export "add" (func $add))
      (instance $one (export "not" (func $not)) (export "only" (func $nothing)))
      (instance $two (export "not" (func $not)))
      (export "test:logic/one@1.0.0" (instance $one))
      (export "test:logic/two@1.0.0" (instance $two))
    "#;
    component(core, exports)
}

async fn check(tool: Tool, args: Value, expected: Value) {
    assert_eq!(tool.run(args).await, Ok(expected));
}

#[tokio::test]
async fn a_function_is_found_by_its_name() {
    let tool = |name: &str| Tool::of(&several()).function(name);
    check(tool("add"), json!({"a": 2, "b": -5}), json!(-3)).await;
    check(tool("test:logic/one@1.0.0#not"), json!({"it": true}), json!(false)).await;
    check(tool("test:logic/two#not"), json!({"it": false}), json!(true)).await;
    check(tool("only"), json!({}), Value::Null).await;
}

#[test]
fn a_function_that_is_not_there_is_refused_with_those_that_are() {
    let problems = |tool: Tool| tool.problems().join("\n");
    insta::assert_snapshot!(problems(Tool::of(&several()).function("sub")), @"`implementation.function`: function `sub` not found; the component exports `add`, `test:logic/one@1.0.0#not`, `test:logic/one@1.0.0#only`, `test:logic/two@1.0.0#not` (unknown_function)");
    insta::assert_snapshot!(problems(Tool::of(&several()).function("not")), @"`implementation.function`: ambiguous function `not`; use one of `test:logic/one@1.0.0#not`, `test:logic/two@1.0.0#not` (unknown_function)");
    insta::assert_snapshot!(problems(Tool::of(&several())), @"`implementation.function`: the component has no function `run`; set `function` to one of `add`, `test:logic/one@1.0.0#not`, `test:logic/one@1.0.0#only`, `test:logic/two@1.0.0#not` (unknown_function)");
    insta::assert_snapshot!(problems(Tool::of("(component)")), @"`implementation.function`: the component exports no function (unknown_function)");
}

#[test]
fn the_schema_and_the_function_have_to_agree() {
    let tool = |names: &[&str]| Tool::of(&several()).function("add").args(names).problems().join("\n");
    assert_eq!(tool(&["a", "b"]), "");
    insta::assert_snapshot!(tool(&["a", "c"]), @"
    `input_schema.properties.c`: function `add` has no such argument; it takes `a`, `b` (unknown_argument)
    `input_schema.properties`: function `add` requires `b: s32`; declare it (missing_argument)
    ");
}

#[tokio::test]
async fn run_takes_and_gives_json_or_text() {
    let tool = Tool::of(&echo("run", "", "string"));
    check(tool.clone(), json!({"a": [1, null], "b": "ü\u{0}"}), json!({"a": [1, null], "b": "ü\u{0}"})).await;
    // By name it is a function like others: its one argument is a string.
    check(tool.function("run"), json!({"x": "not json"}), json!("not json")).await;
    let core = r#"
      (data (i32.const 100) "plain text")
      (func (export "run") (param i32 i32) (result i32)
        (i32.store (i32.const 16) (i32.const 100)) (i32.store (i32.const 20) (i32.const 10)) (i32.const 16))
    "#;
    let lift = r#"(func (export "run") (param "x" string) (result string)
        (canon lift (core func $i "run") (memory $memory) (realloc $realloc)))"#;
    check(Tool::of(&component(core, lift)), json!({}), json!("plain text")).await;
}

/// A component whose `run` gives a result; the case is the first byte of the arguments' length.
fn failing(result: &str) -> Tool {
    let core = r#"
      (data (i32.const 100) "no such city")
      (func (export "run") (param i32 i32) (result i32)
        (i32.store8 (i32.const 16) (i32.gt_u (local.get 1) (i32.const 2)))
        (i32.store (i32.const 20) (i32.const 100)) (i32.store (i32.const 24) (i32.const 12)) (i32.const 16))
    "#;
    let lift = format!(
        r#"(func (export "run") (param "x" string) (result {result})
        (canon lift (core func $i "run") (memory $memory) (realloc $realloc)))"#
    );
    Tool::of(&component(core, &lift))
}

#[tokio::test]
async fn the_error_of_a_result_is_a_failed_call() {
    let tool = failing("(result string (error string))");
    check(tool.clone(), json!({}), json!("no such city")).await;
    let error = tool.fail(json!({"long": true})).await;
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ExecutionFailed, "no such city"));
    let error = tool.function("run").fail(json!({"x": "more than two"})).await;
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ExecutionFailed, "no such city"));
}

/// A component of one function `f` with these parameters; it is never reached.
fn taking(types: &str, params: &str) -> Tool {
    // An argument list that does not fit its core function would not validate, so all goes by one list.
    Tool::of(&echo("f", types, &format!("(list {params})"))).function("f")
}

/// One type of each kind that has a name.
const TYPES: &str = r#"
      (type $point' (record (field "x-pos" s32) (field "label" (option string))))
      (export $point "point" (type $point'))
      (type $shape' (variant (case "circle" $point) (case "empty")))
      (export $shape "shape" (type $shape'))
      (type $kind' (enum "big" "small"))
      (export $kind "kind" (type $kind'))
      (type $set' (flags "read" "write"))
      (export $set "set" (type $set'))
"#;

#[tokio::test]
async fn an_argument_that_does_not_fit_is_named_with_its_path() {
    let mut shown = Vec::new();
    for (ty, value) in [
        ("u8", json!(256)),
        ("u8", json!(-1)),
        ("u8", json!(1.5)),
        ("u8", json!("1")),
        ("s64", json!(9_223_372_036_854_775_808_u64)),
        ("u64", json!(1e300)),
        ("f32", json!(1e39)),
        ("float64", json!("1")),
        ("bool", json!(1)),
        ("char", json!("ab")),
        ("char", json!("")),
        ("string", json!(null)),
        ("(list string)", json!("abc")),
        ("(tuple u8 string)", json!([1])),
        ("(tuple u8 string)", json!([1, 2])),
        ("$point", json!({"label": "a"})),
        ("$point", json!({"x-pos": 1, "colour": "red"})),
        ("$point", json!({"x_pos": 1, "label": 2})),
        ("$shape", json!("square")),
        ("$shape", json!("circle")),
        ("$shape", json!({"circle": {"x-pos": "a"}})),
        ("$shape", json!({"empty": 1})),
        ("$shape", json!({"circle": 1, "empty": 2})),
        ("$kind", json!("huge")),
        ("$set", json!(["read", "run"])),
        ("(option u8)", json!("x")),
        ("(option (option u8))", json!(1)),
        ("(result u8)", json!(1)),
        ("(result u8)", json!({"ok": "x"})),
        ("(result u8)", json!({"err": 1})),
    ] {
        let error = taking(TYPES, ty).fail(json!({"x": [value]})).await;
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        shown.push(error.message.strip_prefix("invalid argument: ").unwrap().to_owned());
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    `x[0]`: expected an integer from 0 to 255 (`u8`), found 256
    `x[0]`: expected an integer from 0 to 255 (`u8`), found -1
    `x[0]`: expected an integer from 0 to 255 (`u8`), found 1.5
    `x[0]`: expected an integer from 0 to 255 (`u8`), found the string "1"
    `x[0]`: expected an integer from -9223372036854775808 to 9223372036854775807 (`s64`), found 9223372036854775808
    `x[0]`: expected an integer from 0 to 18446744073709551615 (`u64`), found 1e+300
    `x[0]`: expected a number in the range of `f32`, found 1e+39
    `x[0]`: expected a number, found the string "1"
    `x[0]`: expected a boolean, found 1
    `x[0]`: expected a string of one character, found the string "ab"
    `x[0]`: expected a string of one character, found the string ""
    `x[0]`: expected a string, found null
    `x[0]`: expected an array, found the string "abc"
    `x[0]`: expected an array of 2, found 1 items
    `x[0][1]`: expected a string, found 2
    `x[0].x-pos`: missing; expected `s32`
    `x[0]`: unknown field `colour`; expected one of `x-pos`, `label`
    `x[0].label`: expected a string, found 2
    `x[0]`: unknown case `square`; expected one of `circle`, `empty`
    `x[0].circle`: needs a value; expected `record {x-pos: s32, label: option<string>}`
    `x[0].circle.x-pos`: expected an integer from -2147483648 to 2147483647 (`s32`), found the string "a"
    `x[0].empty`: takes no value; use the name alone
    `x[0]`: expected the name of a case, or an object of one case, found an object
    `x[0]`: expected one of `big`, `small`, found `huge`
    `x[0][1]`: expected one of `read`, `write`, found `run`
    `x[0]`: expected an integer from 0 to 255 (`u8`), found the string "x"
    `x[0]`: expected `null` or `{"some": …}`, found 1
    `x[0]`: expected `{"ok": …}` or `{"err": …}`, found 1
    `x[0].ok`: expected an integer from 0 to 255 (`u8`), found the string "x"
    `x[0].err`: takes no value; use the name alone
    "#);
    let error = taking(TYPES, "u8").fail(json!({})).await;
    insta::assert_snapshot!(error.message, @"invalid argument: `x`: missing; expected `list<u8>`");
}

#[test]
fn types_without_json_are_refused_when_the_tool_is_saved() {
    let wat = r#"(component
      (type $r' (resource (rep i32)))
      (export $r "r" (type $r'))
      (core module $m (func (export "f") (param i32)))
      (core instance $i (instantiate $m))
      (func (export "f") (param "it" (own $r)) (canon lift (core func $i "f"))))"#;
    insta::assert_snapshot!(Tool::of(wat).problems().join("\n"), @"`implementation.function`: the argument `it` of `f` contains the type `resource`, which JSON cannot represent (unsupported_type)");
}
