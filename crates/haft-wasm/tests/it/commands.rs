//! WASI commands: arguments on stdin, value on stdout, messages on stderr, and no world around them.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::{CallEvent, EventSink};
use haft_core::outcome::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Tool, Watcher, command, context};

async fn check(wat: &str, args: Value, expected: Value) {
    assert_eq!(Tool::of(wat).run(args).await, Ok(expected), "{wat}");
}

/// Prints its stdin.
fn cat() -> String {
    let start = r"
      (i32.store (i32.const 0) (i32.const 1024))
      (i32.store (i32.const 4) (i32.const 60000))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 8)))";
    command("", "", start)
}

fn printing(text: &str) -> String {
    let length = wat_length(text);
    command(
        "",
        &format!("(data (i32.const 64) \"{text}\")"),
        &format!("(call $print (i32.const 1) (i32.const 64) (i32.const {length}))"),
    )
}

/// Counts the bytes of a text that may have escapes of the text format.
fn wat_length(text: &str) -> usize {
    text.replace("\\\"", "q").replace("\\n", "n").replace("\\ff", "f").replace("\\00", "0").len()
}

#[tokio::test]
async fn arguments_come_on_stdin_and_the_value_leaves_on_stdout() {
    check(&cat(), json!({"city": "Köln", "n": [1, 2.5]}), json!({"city": "Köln", "n": [1, 2.5]})).await;
    check(&printing("[1, 2]\\n"), json!({}), json!([1, 2])).await;
    check(&printing("plain\\ntext\\n"), json!({}), json!("plain\ntext")).await;
    check(&printing("1 2"), json!({}), json!("1 2")).await;
    check(&printing("half \\ff"), json!({}), json!("half \u{fffd}")).await;
    check(&printing(""), json!({}), json!("")).await;
    check(&printing("a\\00"), json!({}), json!({"encoding": "base64", "bytes": 2, "content": "YQA="})).await;
    let early = command(
        "",
        "(data (i32.const 64) \"7\")",
        "(call $print (i32.const 1) (i32.const 64) (i32.const 1)) (call $exit (i32.const 0))",
    );
    check(&early, json!({}), json!(7)).await;
}

#[tokio::test]
async fn a_status_that_is_not_zero_fails_with_the_last_lines_of_stderr() {
    let wat = command(
        "",
        "(data (i32.const 64) \"first\\nbad \\1b[31mcity\\n\")",
        "(call $print (i32.const 2) (i32.const 64) (i32.const 20)) (call $exit (i32.const 3))",
    );
    let tool = Tool::of(&wat);
    let watcher = Arc::new(Watcher::default());
    let mut call = context(Duration::from_mins(1));
    call.events = Some(Arc::clone(&watcher) as Arc<dyn EventSink>);
    let error = tool.prepare().unwrap().run(&call, &serde_json::Map::new()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    insta::assert_snapshot!(error.message, @"
    exited with status 3: first
    bad �[31mcity
    ");
    insta::assert_json_snapshot!(error.details, @r#"
    {
      "exit_code": 3,
      "stderr": "first\nbad �[31mcity"
    }
    "#);
    insta::assert_json_snapshot!(call.take_artifacts().unwrap().process, @r#"
    {
      "exit_code": 3,
      "stderr": "first\nbad \u001b[31mcity\n"
    }
    "#);
    let lines = ["first", "bad \u{1b}[31mcity"].map(|line| CallEvent::Output(line.to_owned()));
    assert_eq!(*watcher.0.lock().unwrap(), lines);
}

#[tokio::test]
async fn a_guest_sees_no_environment_no_files_and_no_arguments_but_its_name() {
    let imports = r#"
      (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    "#;
    // Prints one digit each: variables, arguments, whether a folder is open, whether a file can be opened.
    let start = r"
      (drop (call $environ (i32.const 16) (i32.const 20)))
      (i32.store8 (i32.const 64) (i32.add (i32.const 48) (i32.load (i32.const 16))))
      (drop (call $args (i32.const 16) (i32.const 20)))
      (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.load (i32.const 16))))
      (i32.store8 (i32.const 66) (i32.add (i32.const 48) (i32.eqz (call $prestat (i32.const 3) (i32.const 32)))))
      (i32.store8 (i32.const 67) (i32.add (i32.const 48) (i32.eqz
        (call $open (i32.const 3) (i32.const 0) (i32.const 128) (i32.const 11) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 32)))))
      (call $print (i32.const 1) (i32.const 64) (i32.const 4))";
    check(&command(imports, "(data (i32.const 128) \"/etc/passwd\")", start), json!({}), json!("0100")).await;
}

/// Prints the seconds of the wall clock (0 or more than 0) and eight random bytes as they are.
fn world() -> String {
    let imports = r#"
      (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    "#;
    let start = r"
      (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 16)))
      (i32.store8 (i32.const 64) (i32.add (i32.const 48) (i32.eqz (i64.eqz (i64.load (i32.const 16))))))
      (drop (call $random (i32.const 65) (i32.const 8)))
      (i64.store (i32.const 65) (i64.or (i64.and (i64.load (i32.const 65)) (i64.const 0x0f0f0f0f0f0f0f0f)) (i64.const 0x4040404040404040)))
      (call $print (i32.const 1) (i32.const 64) (i32.const 9))";
    command(imports, "", start)
}

#[tokio::test]
async fn a_pure_tool_has_no_clock_and_no_chance() {
    let mut tool = Tool::of(&world());
    let (one, two) = (tool.run(json!({})).await.unwrap(), tool.run(json!({})).await.unwrap());
    assert!(one.as_str().unwrap().starts_with('1') && one != two, "{one} {two}");
    tool.spec.execution.is_pure = true;
    let (one, two) = (tool.run(json!({})).await.unwrap(), tool.run(json!({})).await.unwrap());
    assert!(one.as_str().unwrap().starts_with('0') && one == two, "{one} {two}");
}
