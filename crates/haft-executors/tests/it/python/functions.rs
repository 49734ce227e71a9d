//! Functions of toolsets.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_sandbox::EngineName;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::rig::{Rig, until, without_marks};

const ENGINES: [EngineName; 2] = [EngineName::Bubblewrap, EngineName::Landlock];

const TOOLS: &str = r#"
import os, sys, time
from pathlib import Path
from inner import helper

LOADED = []

def run(workspace, **kwargs):
    print("a word about it")
    LOADED.append(1)
    return {"args": kwargs, "workspace": isinstance(workspace, Path), "files": os.listdir(workspace),
            "cwd": Path.cwd() == workspace, "loaded": len(LOADED), "helper": helper.double(21), "pid": os.getpid()}

async def later(workspace, x):
    return x + 1

class Group:
    @staticmethod
    def of(workspace): return ["of a class"]

def write(workspace, name): (workspace / name).write_text("x"); return None
def fails(workspace, city): raise ValueError("no such city: " + city)
def deep(workspace): return helper.fails()
def a_set(workspace): return {1}
def a_nan(workspace): return float("nan")
def a_path(workspace): return {"file": workspace}
def leaves(workspace): os._exit(0)
def exits(workspace): sys.exit("enough")
def large(workspace): return "x" * (8 << 20)
def surrogate(workspace): return "\ud800"
"#;

const HELPER: &str = "def double(x): return 2 * x\ndef fails(): raise KeyError('k')\n";

fn rig(engine: EngineName) -> Rig {
    let rig = Rig::with(engine, |_| {});
    rig.write("tools.py", TOOLS);
    rig.write("inner/__init__.py", "");
    rig.write("inner/helper.py", HELPER);
    rig
}

#[tokio::test]
async fn a_function_gets_its_workspace_and_its_arguments() {
    for engine in ENGINES {
        let rig = rig(engine);
        let tool = rig.function("tools:run");
        for call in 0..3 {
            let args = json!({"a": "x\u{0}", "b": [1, null]});
            let (outcome, process) = tool.call_within(Duration::from_secs(30), args.clone()).await;
            let mut value = outcome.unwrap();
            let pid = value.as_object_mut().unwrap().remove("pid").unwrap();
            let expected =
                json!({"args": args, "workspace": true, "files": [], "cwd": true, "loaded": 1, "helper": 42});
            assert_eq!((value, process.stderr.as_str()), (expected, "a word about it\n"), "{engine}");
            if engine == EngineName::Bubblewrap {
                assert_eq!(pid, json!(2 + call), "imported once");
            }
        }
        for (entrypoint, args, expected) in [
            ("tools:later", json!({"x": 1}), json!(2)),
            ("tools:Group.of", json!({}), json!(["of a class"])),
            ("tools:write", json!({"name": "left"}), json!(null)),
            ("inner.helper:double", json!({}), json!(null)),
        ] {
            if entrypoint.starts_with("inner") {
                let error = rig.function(entrypoint).call(args).await.unwrap_err();
                assert!(error.message.starts_with("TypeError: unsupported operand"), "{error}");
                continue;
            }
            assert_eq!(rig.function(entrypoint).call(args).await, Ok(expected), "{engine} {entrypoint}");
        }
    }
}

/// Runs a function that fails, with the same result in both engines.
async fn fail(entrypoint: &str, args: Value) -> String {
    let mut reported = Vec::new();
    for engine in ENGINES {
        let rig = rig(engine);
        let (outcome, process) =
            rig.function(entrypoint).call_within(Duration::from_secs(30), args.clone()).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code, ErrorCode::ExecutionFailed, "{error}");
        let folder = rig.home.path().join("skills/set").display().to_string();
        let trace = without_marks(&process.stderr.replace(&folder, "/toolset"));
        reported.push(format!("{}\n---\n{trace}", error.model_text()));
    }
    assert_eq!(reported.first(), reported.last());
    reported.swap_remove(0)
}

#[tokio::test]
async fn a_failure_is_one_line_for_the_model_and_a_traceback_for_the_operator() {
    assert_snapshot!(fail("tools:fails", json!({"city": "Ur"})).await, @r#"
    Tool call failed: ValueError: no such city: Ur
    ---
    Traceback (most recent call last):
      File "/toolset/tools.py", line 22, in fails
        def fails(workspace, city): raise ValueError("no such city: " + city)
    ValueError: no such city: Ur
    "#);
    assert_snapshot!(fail("tools:deep", json!({})).await, @r#"
    Tool call failed: KeyError: 'k'
    ---
    Traceback (most recent call last):
      File "/toolset/tools.py", line 23, in deep
        def deep(workspace): return helper.fails()
      File "/toolset/inner/helper.py", line 2, in fails
        def fails(): raise KeyError('k')
    KeyError: 'k'
    "#);
}

#[tokio::test]
async fn an_invalid_value_is_reported_in_one_line() {
    for engine in ENGINES {
        let rig = rig(engine);
        for (entrypoint, expected) in [
            ("tools:fails", "TypeError: fails() missing 1 required positional argument: 'city'"),
            ("tools:missing", "AttributeError: module 'tools' has no attribute 'missing'"),
            (
                "tools:a_set",
                "TypeError: `a_set` returned a value that is not JSON: Object of type set is not JSON serializable",
            ),
            (
                "tools:a_nan",
                "TypeError: `a_nan` returned a value that is not JSON: Out of range float values are not JSON compliant",
            ),
            (
                "tools:a_path",
                "TypeError: `a_path` returned a value that is not JSON: Object of type PosixPath is not JSON serializable",
            ),
            ("tools:leaves", "`tools:leaves` ended the process without a result"),
            ("tools:exits", "SystemExit: enough"),
        ] {
            let error = rig.function(entrypoint).call(json!({})).await.unwrap_err();
            assert!(error.message.starts_with(expected), "{engine} {entrypoint}: {error}");
        }
    }
}

#[tokio::test]
async fn a_failed_import_is_reported_and_retried() {
    let rig = rig(EngineName::Bubblewrap);
    rig.write("broken.py", "import nosuchmodule\ndef run(workspace): return 1\n");
    let tool = rig.function("broken:run");
    for _ in 0..2 {
        let error = tool.call(json!({})).await.unwrap_err();
        assert_eq!(error.message, "ModuleNotFoundError: No module named 'nosuchmodule'");
    }
    // A change of the toolset is noticed after a while.
    rig.write("broken.py", "def run(workspace): return 1\n");
    until(async || tool.call(json!({})).await == Ok(json!(1))).await;
    rig.write("broken.py", "raise SystemExit(0)\n");
    until(async || tool.call(json!({})).await.is_err_and(|error| error.message == "SystemExit: 0")).await;
}

#[tokio::test]
async fn a_result_is_limited_and_must_be_json() {
    let rig = rig(EngineName::Bubblewrap);
    let error = rig.function("tools:large").call(json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
    let error = rig.function("tools:surrogate").call(json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed, "{error}");
}

#[tokio::test]
async fn invalid_entrypoints_are_rejected() {
    let rig = rig(EngineName::Bubblewrap);
    for (entrypoint, folder, expected) in [
        (
            "tools",
            Some("skills/set"),
            "`implementation.entrypoint`: expected `module:function`, such as `tools.search:run`",
        ),
        (
            "../tools:run",
            Some("skills/set"),
            "`implementation.entrypoint`: expected `module:function`, such as `tools.search:run`",
        ),
        (
            "other:run",
            Some("skills/set"),
            "`implementation.entrypoint`: neither `other.py` nor a folder `other` exists beside the definition",
        ),
        (
            "tools.missing:run",
            Some("skills/set"),
            "`implementation.entrypoint`: neither `tools/missing.py` nor a folder `tools/missing` exists beside the definition",
        ),
        (
            "tools:run",
            None,
            "`implementation.entrypoint`: python functions need the folder of a bundle, but this definition has none",
        ),
    ] {
        assert_eq!(rig.refused(entrypoint, folder), expected);
    }
}
