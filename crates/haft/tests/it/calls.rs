//! Calls with options.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft::{CallEvent, Context, ErrorCode, ToolDef, Tools};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

#[tokio::test]
async fn a_response_has_the_id_and_events_are_reported() {
    let tools = Tools::new();
    let def = ToolDef::with_context("work", |context: Context, args: Value| async move {
        context.progress(0.5, "half");
        json!({"id": context.id.to_string(), "args": args})
    });
    tools.register(def).unwrap();
    let (sender, events) = std::sync::mpsc::channel();
    let call = tools.call("work").args(json!({"a": 1})).on_event(move |event| drop(sender.send(event)));
    let response = call.response().await.unwrap();
    assert_eq!(response.outcome, Ok(json!({"id": response.id.to_string(), "args": {"a": 1}})));
    assert_eq!(events.iter().collect::<Vec<_>>(), [CallEvent::Progress(0.5, "half".into())]);
    let error = tools.call("work").args("x").send().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns a tool that never ends, a receiver that reports its start, and whether it was dropped.
fn endless() -> (ToolDef, UnboundedReceiver<()>, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let (began, started) = tokio::sync::mpsc::unbounded_channel();
    let flag = Arc::clone(&dropped);
    let def = ToolDef::new("endless", move |_: Value| {
        let guard = SetOnDrop(Arc::clone(&flag));
        let _ = began.send(());
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }
    });
    (def, started, dropped)
}

#[tokio::test]
async fn a_call_that_exceeds_its_timeout_ends() {
    let (def, _, dropped) = endless();
    let tools = Tools::builder().tool(def).build().unwrap();
    let error = tools.call("endless").timeout(Duration::from_millis(20)).send().await.unwrap_err();
    assert_eq!(error.to_string(), "timeout: `endless` timed out after 20ms");
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn dropping_the_future_cancels_the_call() {
    let (def, mut started, dropped) = endless();
    let tools = Tools::builder().tool(def).build().unwrap();
    let task = tokio::spawn(async move { tools.execute("endless", ()).await });
    started.recv().await.unwrap();
    assert!(!dropped.load(Ordering::SeqCst));
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn calls_over_the_limit_are_rejected() {
    let (def, mut started, _) = endless();
    let tools = Tools::builder().max_running_calls(1).tool(def).build().unwrap();
    // A view shares the limit of its set.
    let view = tools.layer(haft::middleware::Logging::new());
    let running = tokio::spawn({
        let tools = tools.clone();
        async move { tools.execute("endless", ()).await }
    });
    started.recv().await.unwrap();
    let error = view.execute("endless", ()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Overloaded);
    running.abort();
}
