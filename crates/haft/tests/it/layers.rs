//! Middleware layers and nested calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use haft::middleware::{Cache, Call, Concurrency, Logging, Next, Rate, RateLimit, Retry, Timeout, from_fn};
use haft::{CallError, Context, ErrorCode, Failure, FileForm, ToolDef, Tools};
use serde_json::{Value, json};

use crate::support::{of_function, write};

/// Returns a tool that calls itself until the depth limit; its value is the number of nested calls.
fn endless(tools: &Tools, name: &'static str) -> ToolDef {
    let tools = tools.clone();
    ToolDef::new(name, move |_: Value| {
        let tools = tools.clone();
        async move {
            match tools.execute(name, ()).await {
                Ok(ran) => Ok(ran.as_u64().unwrap() + 1),
                Err(error) if error.code == ErrorCode::TooDeep => Ok(1),
                Err(error) => Err(error),
            }
        }
    })
}

#[tokio::test]
async fn endless_recursion_stops_at_the_depth_limit() {
    let second = Duration::from_secs(1);
    let bare = Tools::new();
    let layered = Tools::builder()
        .layer(Logging::new())
        .layer(Cache::new(second))
        .layer(RateLimit::global(Rate::new(10_000, second)).unwrap())
        .layer(Concurrency::global(1000).unwrap())
        .layer(Timeout::new(Duration::from_secs(30)).unwrap())
        .layer(Retry::new(1))
        .layer(from_fn(async |call: &mut Call, next: Next<'_>| next.run(call).await))
        .build()
        .unwrap();
    for tools in [&bare, &layered] {
        tools.register(endless(tools, "again")).unwrap();
        for _ in 0..2 {
            assert_eq!(tools.execute("again", ()).await.unwrap(), 16, "the depth is released after the call");
        }
    }
}

#[tokio::test]
async fn the_depth_error_names_the_limit() {
    let tools = Tools::new();
    let within = tools.clone();
    let ping = move |to: &'static str| {
        let tools = within.clone();
        move |_: Value| {
            let tools = tools.clone();
            async move { tools.execute(to, ()).await }
        }
    };
    tools.register(ToolDef::new("ping", ping("pong"))).unwrap();
    tools.register(ToolDef::new("pong", ping("ping"))).unwrap();
    let error = tools.execute("ping", ()).await.unwrap_err();
    assert!(!error.retryable);
    insta::assert_snapshot!(error, @"too_deep: call depth limit (16) exceeded: `ping` was not run; check whether the tools call each other in a loop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_function_counts_towards_the_depth() {
    let tools = Tools::new();
    let within = tools.clone();
    tools
        .register(ToolDef::blocking("again", move |_: Value| {
            tokio::runtime::Handle::current().block_on(within.execute("again", ()))
        }))
        .unwrap();
    assert_eq!(tools.execute("again", ()).await.unwrap_err().code, ErrorCode::TooDeep);
}

#[tokio::test]
async fn concurrent_calls_are_not_nested() {
    let tools = Tools::new();
    tools
        .register(ToolDef::new("wait", |_: Value| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }))
        .unwrap();
    // All on one thread, each started while the others wait.
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let tools = tools.clone();
        calls.spawn(async move { tools.execute("wait", ()).await });
    }
    assert!(calls.join_all().await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn registering_again_invalidates_the_cache() {
    let tools = Tools::builder().layer(Cache::new(Duration::from_mins(1))).build().unwrap();
    let says = |tools: &Tools, word: &'static str| {
        tools.register_function(ToolDef::new("word", move |_: Value| async move { word })).unwrap();
    };
    let definition = of_function("say", "word") + "is_pure: true\n";
    says(&tools, "old");
    tools.load_text(FileForm::Yaml, &definition).unwrap();
    let say = async || tools.execute("say", ()).await.unwrap();
    assert_eq!(say().await, "old");
    tools.remove("word");
    says(&tools, "new");
    assert_eq!(say().await, "new", "another function");

    let pure = |word: &'static str| ToolDef::new("pure", move |_: Value| async move { word }).pure();
    tools.register(pure("old")).unwrap();
    assert_eq!(tools.execute("pure", ()).await.unwrap(), "old");
    tools.remove("pure");
    tools.register(pure("new")).unwrap();
    assert_eq!(tools.execute("pure", ()).await.unwrap(), "new", "another tool");
}

#[tokio::test]
async fn a_changed_file_invalidates_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Tools::builder().layer(Cache::new(Duration::from_mins(1))).build().unwrap();
    for word in ["old", "new"] {
        tools.register_function(ToolDef::new(word, move |_: Value| async move { word })).unwrap();
    }
    for (word, expected) in [("old", "old"), ("new", "new"), ("old", "old")] {
        write(folder.path(), "say.yaml", &(of_function("say", word) + "is_pure: true\n"));
        tools.load_file(folder.path().join("say.yaml")).unwrap();
        assert_eq!(tools.execute("say", ()).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_function_sees_the_attempt_number() {
    // (retries of the definition, retries of the layer, attempts that the function sees)
    for (own, layer, expected) in [(0, 0, 1), (2, 0, 3), (0, 2, 3), (1, 1, 4)] {
        let tools = Tools::builder().layer(Retry::new(layer)).build().unwrap();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let recorded = Arc::clone(&seen);
        let busy = ToolDef::with_context("busy", move |context: Context, _: Value| {
            recorded.lock().unwrap().push(context.attempt);
            async { Err::<(), _>(Failure::new("busy").retryable()) }
        });
        tools.register(busy.retry(own, Duration::from_millis(10))).unwrap();
        assert!(tools.execute("busy", ()).await.is_err());
        let expected: Vec<u32> = (0..expected).collect();
        assert_eq!(*seen.lock().unwrap(), expected, "{own} and {layer}");
    }
}

#[tokio::test]
async fn an_attempt_that_timed_out_counts() {
    let tools = Tools::builder()
        .layer(Timeout::new(Duration::from_secs(1)).unwrap())
        .layer(Retry::new(1).only_if(|_: &Call, error: &CallError| error.code == ErrorCode::Timeout))
        .build()
        .unwrap();
    let last = Arc::new(AtomicU32::new(0));
    let recorded = Arc::clone(&last);
    tools
        .register(ToolDef::with_context("slow", move |context: Context, _: Value| {
            recorded.store(context.attempt, Ordering::SeqCst);
            async move {
                if context.attempt == 0 {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                "done"
            }
        }))
        .unwrap();
    assert_eq!(tools.execute("slow", json!({})).await.unwrap(), "done");
    assert_eq!(last.load(Ordering::SeqCst), 1);
}
