//! Guests that loop, grow, trap, write and wait forever; many at once; and cancelled calls.

use std::sync::Arc;
use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_testkit::soak::rounds;
use haft_wasm::{WasmExecutor, WasmLimits};
use serde_json::json;

use crate::harness::{LIMITS, Tool, command, component, context, echo, limited, run};

const LOOP: &str = "(module (func (export \"_start\") (loop $again (br $again))))";

async fn check(wat: &str, code: ErrorCode, message: &str) {
    let error = Tool::of(wat).fail(json!({})).await;
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

#[tokio::test]
async fn traps_are_outcomes() {
    let failed = ErrorCode::ExecutionFailed;
    let start = |body: &str| format!("(module (memory 1) (func $start (export \"_start\") {body}))");
    check(&start("unreachable"), failed, "trap: wasm `unreachable` instruction executed").await;
    check(&start("(drop (i32.div_s (i32.const 1) (i32.const 0)))"), failed, "trap: integer divide by zero")
        .await;
    check(&start("(drop (i32.load (i32.const -8)))"), failed, "trap: out of bounds memory access").await;
    check(&start("(call $start)"), failed, "trap: call stack exhausted").await;
    let lifted = r#"(func (export "f") (canon lift (core func $i "f")))"#;
    check(
        &component("(func (export \"f\") unreachable)", lifted),
        failed,
        "trap: wasm `unreachable` instruction executed",
    )
    .await;
}

#[tokio::test]
async fn memory_is_bounded() {
    let grow = "(module (memory 1) (func (export \"_start\")
        (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable))";
    check(grow, ErrorCode::ExecutionFailed, "memory limit (16 MiB) exceeded").await;
    let at_once = "(module (memory 1000) (func (export \"_start\")))";
    insta::assert_snapshot!(Tool::of(at_once).problems().join("\n"), @"`implementation.base64`: invalid module: module memory does not fit in pooling allocator requirements: memory index 0 is unsupported in this pooling allocator configuration: memory has a minimum byte size of 65536000 which exceeds the limit of 0x1000000 bytes (invalid_module)");
    let tables = "(module (table 1 funcref) (func (export \"_start\")
        (if (i32.ne (table.grow (ref.null func) (i32.const 10000000)) (i32.const -1)) (then unreachable))))";
    assert_eq!(Tool::of(tables).run(json!({})).await, Ok(json!("")));
    let many = format!("(module {} (func (export \"_start\")))", "(memory 1)".repeat(40));
    insta::assert_snapshot!(Tool::of(&many).problems().join("\n"), @"`implementation.base64`: invalid module: module memory does not fit in pooling allocator requirements: defined memories count of 40 exceeds the per-instance limit of 4 (invalid_module)");
}

/// Two guests hold twelve of the thirteen MiB that there are for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_of_all_guests_together_is_bounded() {
    let limits = WasmLimits { memory_bytes: 8 << 20, total_memory_bytes: 13 << 20, ..LIMITS };
    let executor = WasmExecutor::new(limited(limits));
    let tool = |wat: &str| Tool::of(wat).on(&executor).prepare().unwrap();
    let holding = tool(
        "(module (memory 1) (func (export \"_start\")
           (loop $wait (br_if $wait (i32.eq (memory.grow (i32.const 95)) (i32.const -1)))) (loop $again (br $again))))",
    );
    let holders: Vec<_> = (0..2)
        .map(|_| {
            let holding = Arc::clone(&holding);
            tokio::spawn(async move { run(&*holding, json!({})).await })
        })
        .collect();
    let start = |memory: &str, body: &str| format!("(module {memory} (func (export \"_start\") {body}))");
    let initial = tool(&start("(memory 64)", ""));
    while run(&*initial, json!({})).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let small = tool(&start("(memory 8)", ""));
    assert_eq!(run(&*small, json!({})).await, Ok(json!("")));
    // It reads the notification, but does not depend on it.
    let modest = "(if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then unreachable))";
    let modest = tool(&start("(memory 1)", modest));
    assert_eq!(run(&*modest, json!({})).await, Ok(json!("")));
    let growing = tool(&start("(memory 1)", "(drop (memory.grow (i32.const 64))) unreachable"));
    let tables = tool(&start(&"(table 90000 funcref)".repeat(3), ""));
    for refused in [&growing, &initial, &tables] {
        let error = run(&**refused, json!({})).await.unwrap_err();
        assert!(error.retryable);
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"overloaded: the memory limit of all wasm tools is reached; retry later, or raise `wasm.total_memory_bytes`");
        }
    }

    for holder in holders {
        holder.abort();
        assert!(holder.await.unwrap_err().is_cancelled());
    }
    // What they held is there again as soon as they are gone.
    let mut outcome = run(&*initial, json!({})).await;
    while outcome.as_ref().is_err_and(|error| error.code == ErrorCode::Overloaded) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        outcome = run(&*initial, json!({})).await;
    }
    assert_eq!(outcome, Ok(json!("")));
    assert_eq!(run(&*tables, json!({})).await, Ok(json!("")));
}

/// A guest that alone wants more than there is for all will never get it: that is no overload.
#[tokio::test]
async fn a_guest_has_no_more_than_all_may_have() {
    let executor = WasmExecutor::new(limited(WasmLimits { total_memory_bytes: 2 << 20, ..LIMITS }));
    let grow =
        "(module (memory 1) (func (export \"_start\") (drop (memory.grow (i32.const 32))) unreachable))";
    let error = Tool::of(grow).on(&executor).fail(json!({})).await;
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::ExecutionFailed, "memory limit (2 MiB) exceeded")
    );
}

/// A growth that the module itself forbids takes nothing from others, however often it is tried.
#[tokio::test]
async fn a_growth_that_cannot_be_takes_nothing() {
    let wat = "(module (memory 1 2) (func (export \"_start\") (local $n i32)
      (loop $more
        (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $n) (i32.const 1000))))
      (if (i32.ne (memory.grow (i32.const 1)) (i32.const 1)) (then unreachable))))";
    assert_eq!(Tool::of(wat).run(json!({})).await, Ok(json!("")));
}

#[tokio::test]
async fn a_guest_ends_at_the_deadline_of_its_call() {
    let prepared = Tool::of(LOOP).prepare().unwrap();
    let call = context(Duration::from_millis(100));
    let error = prepared.run(&call, &serde_json::Map::new()).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Timeout, "the call timed out"));
}

#[tokio::test]
async fn a_guest_that_sleeps_ends_at_the_deadline_too() {
    // Waits ten minutes on the monotonic clock.
    let wat = command(
        r#"(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))"#,
        "",
        "(i32.store (i32.const 80) (i32.const 1)) (i64.store (i32.const 88) (i64.const 600000000000))
         (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 320)))",
    );
    let call = context(Duration::from_millis(100));
    let error = Tool::of(&wat).prepare().unwrap().run(&call, &serde_json::Map::new()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Timeout);
}

#[tokio::test]
async fn a_cancelled_call_releases_its_permit() {
    let executor = WasmExecutor::new(limited(WasmLimits { at_once: 1, ..LIMITS }));
    let looping = Tool::of(LOOP).on(&executor).prepare().unwrap();
    let abandoned = tokio::spawn(async move { run(&*looping, json!({})).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    abandoned.abort();
    // The only permit is free once the guest is dropped.
    let next = Tool::of(&echo("run", "", "string")).on(&executor);
    assert_eq!(next.run(json!({"a": 1})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn no_permit_before_the_timeout_is_an_overload() {
    let executor = WasmExecutor::new(limited(WasmLimits { at_once: 1, ..LIMITS }));
    let looping = Tool::of(LOOP).on(&executor).prepare().unwrap();
    let busy = tokio::spawn(async move { run(&*looping, json!({})).await });
    let other = Tool::of(&echo("run", "", "string")).on(&executor).prepare().unwrap();
    // Succeeds until the other guest has started.
    let error = loop {
        let outcome = other.run(&context(Duration::from_millis(50)), &serde_json::Map::new()).await;
        match outcome {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!((error.code, error.retryable), (ErrorCode::Overloaded, true));
    busy.abort();
}

#[tokio::test]
async fn input_and_output_are_bounded() {
    let limits = json!({"max_request_bytes": 1000, "max_response_bytes": 1000});
    let text = Tool::of(&echo("run", "", "string"));
    let large = json!({"x": "a".repeat(2000)});
    let error = text.clone().limits(limits.clone()).fail(large.clone()).await;
    insta::assert_snapshot!(error, @"too_large: argument limit (1000 bytes) exceeded; raise `execution.limits.max_request_bytes`");
    let error = text.clone().function("run").limits(limits.clone()).fail(large.clone()).await;
    assert_eq!(error.code, ErrorCode::TooLarge);
    let small = json!({"max_request_bytes": 100_000, "max_response_bytes": 1000});
    let error = text.clone().limits(small.clone()).fail(large.clone()).await;
    insta::assert_snapshot!(error, @"too_large: output limit (1000 bytes) exceeded; raise `execution.limits.max_response_bytes`");
    let error = text.function("run").limits(small).fail(large).await;
    assert_eq!(error.code, ErrorCode::TooLarge);

    let endless = command(
        "",
        "",
        "(loop $more (call $print (i32.const 1) (i32.const 0) (i32.const 60000)) (br $more))",
    );
    let error = Tool::of(&endless).limits(limits).fail(json!({})).await;
    assert_eq!(error.code, ErrorCode::TooLarge);
    let messages = command("", "", "(local $n i32) (loop $more (call $print (i32.const 2) (i32.const 0) (i32.const 60000))
        (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $more (i32.lt_u (local.get $n) (i32.const 100))))");
    assert_eq!(Tool::of(&messages).run(json!({})).await, Ok(json!("")));
}

#[tokio::test]
async fn ten_megabytes_go_through_where_they_are_allowed() {
    let limits = json!({"max_request_bytes": 20_000_000, "max_response_bytes": 20_000_000});
    let executor = WasmExecutor::new(limited(WasmLimits { memory_bytes: 64 << 20, ..LIMITS }));
    let args = json!({"x": "a".repeat(10_000_000)});
    let tool = Tool::of(&echo("run", "", "string")).limits(limits.clone()).on(&executor);
    assert_eq!(tool.run(args.clone()).await, Ok(args.clone()));
    // In 16 MiB the guest cannot hold them with what it has already; it fails like any other guest.
    let error =
        Tool::of(&echo("run", "", "string")).limits(limits).fail(json!({"x": "a".repeat(17_000_000)})).await;
    assert_eq!(error.message, "memory limit (16 MiB) exceeded");
}

/// A guest claims a list as long as its memory: lifted blindly, it would take forty times as much of the host.
#[tokio::test]
async fn a_value_that_claims_to_be_huge_is_refused() {
    let core = r#"
      (func (export "f") (result i32)
        (drop (memory.grow (i32.const 150)))
        (i32.store (i32.const 16) (i32.const 0)) (i32.store (i32.const 20) (i32.const 9000000)) (i32.const 16))
    "#;
    let lift = r#"(func (export "f") (result (list u8)) (canon lift (core func $i "f") (memory $memory)))"#;
    let error = Tool::of(&component(core, lift)).fail(json!({})).await;
    assert_eq!(error.code, ErrorCode::TooLarge);
}

/// Two hundred concurrent calls, some of which loop, with sixteen permits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_all_end_as_they_should() {
    let tool = Tool::of(&echo("run", "", "string"));
    let echo = tool.prepare().unwrap();
    let looping = Tool::of(LOOP).on(&tool.executor).prepare().unwrap();
    let mut calls = Vec::new();
    for number in 0..200 {
        let (echo, looping) = (Arc::clone(&echo), Arc::clone(&looping));
        calls.push(tokio::spawn(async move {
            if number % 20 == 0 {
                let call = context(Duration::from_millis(50));
                looping.run(&call, &serde_json::Map::new()).await.map_err(|error| error.code)
            } else {
                run(&*echo, json!({"n": number})).await.map_err(|error| error.code)
            }
        }));
    }
    for (number, call) in calls.into_iter().enumerate() {
        let outcome = call.await.unwrap();
        if number % 20 == 0 {
            assert!(matches!(outcome, Err(ErrorCode::Timeout | ErrorCode::Overloaded)), "{outcome:?}");
        } else {
            assert_eq!(outcome, Ok(json!({"n": number})));
        }
    }
}

/// Memory after many calls is what it was after few: nothing of a call stays.
#[tokio::test]
async fn memory_stays_flat() {
    let prepared = Tool::of(&echo("run", "", "string")).prepare().unwrap();
    let calls = async |count: usize| {
        for _ in 0..count {
            run(&*prepared, json!({"x": "a".repeat(10_000)})).await.unwrap();
        }
        resident()
    };
    let before = calls(200).await;
    let after = calls(rounds(15_000)).await;
    assert!(after < before + 8 * 1024 * 1024, "{before} bytes, then {after}");
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
