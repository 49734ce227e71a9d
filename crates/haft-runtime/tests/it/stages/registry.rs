//! Changes of the registry while definitions are compiled.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_runtime::executors::Executors;
use haft_runtime::function::{FunctionExecutor, Functions};
use serde_json::json;

use super::rig::Rig;

/// Compiles functions; the definition of `slow` blocks until the test lets it fail.
struct BlockingExecutor {
    functions: FunctionExecutor,
    started: Sender<()>,
    release: Mutex<Receiver<()>>,
}

impl Executor for BlockingExecutor {
    fn kind(&self) -> Kind {
        Kind::Function
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        if spec.name.as_str() != "slow" {
            return self.functions.prepare(spec, folder);
        }
        self.started.send(()).unwrap();
        self.release.lock().unwrap().recv().unwrap();
        Err(vec![Problem::new("implementation", "broken", "is broken")])
    }
}

// On one thread: a compilation on an async worker would block the whole test.
#[tokio::test]
async fn changes_are_applied_while_a_slow_compilation_runs() {
    let ((started, has_started), (release, released)) = (channel(), channel());
    let functions = Functions::default().with_async("quick", |_| async { Ok(json!("done")) });
    let executor = BlockingExecutor {
        functions: FunctionExecutor::new(functions),
        started,
        release: Mutex::new(released),
    };
    let rig = Rig::with_executors(Vec::new(), Executors::default().with(Arc::new(executor)));
    let mut changes = rig.registry.changes();

    rig.apply_tool("slow", "slow", json!({}));
    has_started.recv().unwrap();
    assert!(rig.entry("slow").ready(), "as long as nothing else is known");

    rig.apply_tool("quick", "quick", json!({}));
    assert_eq!(rig.call("quick", json!({})).await.unwrap(), "done");
    rig.apply_tool("quick", "quick", json!({"timeout_ms": 5000}));
    assert_eq!(rig.entry("quick").tool.revision, 2);

    changes.mark_unchanged();
    release.send(()).unwrap();
    while rig.entry("slow").ready() {
        changes.changed().await.unwrap();
    }
    assert_eq!(rig.entry("slow").fault().as_deref(), Some("`implementation`: is broken"));
    assert_eq!(rig.code("slow", json!({})).await, "not_ready");
    assert!(has_started.try_recv().is_err(), "it is compiled once");
}

#[tokio::test]
async fn verified_waits_until_it_is_known_whether_a_tool_can_run() {
    let rig = Rig::new(Vec::new());
    rig.apply_tool("quick", "quick", json!({"rate_limit": {"calls": 0, "per": "1s"}}));
    let entry = rig.entry("quick");
    rig.registry.verified(&entry).await;
    assert!(!entry.ready());
    assert!(entry.fault().is_some());
}
