//! The input and the results of python scripts.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use haft_core::executor::Executor as _;
use haft_core::implementation::{Implementation, Script, ScriptRuntime};
use haft_core::outcome::ErrorCode;
use haft_sandbox::EngineName;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::rig::{Rig, Tool, spec, without_marks};

const ENGINES: [EngineName; 2] = [EngineName::Bubblewrap, EngineName::Landlock];

#[tokio::test]
async fn seed_1_example_3_as_printed() {
    let body = "import json; text = \"${text}\"; print(json.dumps({\"length\": len(text), \"words\": len(text.split())}))";
    for engine in ENGINES {
        let rig = Rig::with(engine, |_| {});
        let tool = rig.script(body, &["text"]);
        let hostile = "\"; import os; os._exit(3) #\\\n${text} \u{0}".trim_end_matches('\u{0}');
        for (text, words) in [("one two", 2), ("", 0), (hostile, 6), ("ä \u{1f600}", 2)] {
            let expected = json!({"length": text.chars().count(), "words": words});
            assert_eq!(tool.call(json!({"text": text})).await, Ok(expected), "{engine} {text:?}");
        }
    }
}

#[tokio::test]
async fn a_script_is_the_main_module_and_finds_its_arguments() {
    let body = r#"
import json, os, sys
with open(os.environ["HAFT_ARGS_FILE"]) as file:
    from_file = json.load(file)
print(json.dumps({
    "name": __name__, "argv": sys.argv, "stdin": sys.stdin.read(), "cwd_is_empty": os.listdir() == [],
    "main": sys.modules["__main__"].__dict__ is globals(), "isolated": sys.flags.isolated,
    "text": os.environ["text"], "list": os.environ["list"], "same": json.loads(os.environ["HAFT_ARGS"]) == from_file,
    "args": from_file, "environment": sorted(os.environ), "key": os.environ["API_KEY"],
}))"#;
    let args = json!({"text": "a\n'b' \"c\" $(d) ä", "list": [1, {"x": null}], "PATH": "/evil", "PYTHONPATH": "/evil"});
    for engine in ENGINES {
        let rig = Rig::with(engine, |_| {});
        let tool = rig.script(body, &["text", "list", "PATH", "PYTHONPATH", "absent"]);
        let expected = json!({
            "name": "__main__", "argv": ["<tool>"], "stdin": "", "cwd_is_empty": true, "main": true, "isolated": 1,
            "text": "a\n'b' \"c\" $(d) ä", "list": "[1,{\"x\":null}]", "same": true, "args": args, "key": "secret API_KEY",
            "environment": ["API_KEY", "HAFT_ARGS", "HAFT_ARGS_FILE", "HOME", "LANG", "PATH", "TMPDIR", "list", "text"],
        });
        assert_eq!(tool.call(args.clone()).await, Ok(expected), "{engine}");
    }
}

#[tokio::test]
async fn output_is_json_or_text() {
    let rig = Rig::new();
    for (body, expected) in [
        ("print('{\"a\": [1]}')", json!({"a": [1]})),
        ("print('a\\nb')", json!("a\nb")),
        ("pass", json!("")),
        ("import sys; sys.stdout.buffer.write(b'half \\xc3')", json!("half \u{fffd}")),
        ("import sys; print('x', end=''); sys.exit()", json!("x")),
        ("import threading; threading.Thread(target=lambda: print('late')).start()", json!("late")),
        ("import atexit; atexit.register(print, 'last'); print('first')", json!("first\nlast")),
        ("import subprocess; subprocess.run(['echo', 'from a program'])", json!("from a program")),
        ("import os; os.write(1, b'raw'); os._exit(0)", json!("raw")),
        ("try:\n  input()\nexcept EOFError:\n  print('end')", json!("end")),
        ("import asyncio\nasync def f(): print(await asyncio.sleep(0, 7))\nasyncio.run(f())", json!(7)),
        (
            "from concurrent.futures import ThreadPoolExecutor as P\nprint(list(P(4).map(abs, [-1, -2])))",
            json!([1, 2]),
        ),
        (
            "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: print(p.map(abs, [-3]))",
            json!([3]),
        ),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n  x: int\nimport pickle; print(pickle.loads(pickle.dumps(A(4))).x)",
            json!(4),
        ),
    ] {
        assert_eq!(rig.run(body).await, Ok(expected), "{body}");
    }
}

/// Runs a script that fails, with the same result in both engines.
async fn fail(body: &str) -> String {
    let mut reported = Vec::new();
    for engine in ENGINES {
        let rig = Rig::with(engine, |_| {});
        let (outcome, process) = rig.script(body, &[]).call_within(Duration::from_secs(30), json!({})).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code, ErrorCode::ExecutionFailed, "{error}");
        reported.push(without_marks(&format!("{:?}\n{}", process.exit_code, error.message)));
    }
    assert_eq!(reported.first(), reported.last());
    reported.swap_remove(0)
}

#[tokio::test]
async fn an_exception_is_a_traceback_without_internal_frames() {
    assert_snapshot!(fail("def f(x):\n    return 1 / x\n\nf(0)").await, @r#"
    Some(1)
    exit code 1: Traceback (most recent call last):
      File "<tool>", line 4, in <module>
        f(0)
      File "<tool>", line 2, in f
        return 1 / x
    ZeroDivisionError: division by zero
    "#);
    assert_snapshot!(fail("import nosuchmodule").await, @r#"
    Some(1)
    exit code 1: Traceback (most recent call last):
      File "<tool>", line 1, in <module>
        import nosuchmodule
    ModuleNotFoundError: No module named 'nosuchmodule'
    "#);
    assert_snapshot!(fail("import sys\nsys.exit('no such city')").await, @r"
    Some(1)
    exit code 1: no such city
    ");
    assert_snapshot!(fail("import sys\nsys.exit(259)").await, @r"
    Some(3)
    exit code 3
    ");
    assert_snapshot!(fail("print('x'\n").await, @r#"
    Some(1)
    exit code 1:   File "<tool>", line 1
        print('x'
    SyntaxError: '(' was never closed
    "#);
    assert_snapshot!(fail("import os\nos.kill(os.getpid(), 15)").await, @r"
    None
    the process was killed by signal 15 (SIGTERM)
    ");
}

#[tokio::test]
async fn large_arguments_reach_a_script() {
    let text = "x".repeat(1_000_000);
    for engine in ENGINES {
        let rig = Rig::with(engine, |_| {});
        for body in [
            "import os; print(len(os.environ['text']))",
            "import os, json; print(len(json.loads(os.environ['HAFT_ARGS'])['text']))",
            "import os, json; print(len(json.load(open(os.environ['HAFT_ARGS_FILE']))['text']))",
            "print(len('${text}'))",
            "import os, subprocess; print(len(os.environ['text']), flush=True) or subprocess.run(['true'], check=True)",
        ] {
            let outcome = rig.script(body, &["text"]).call(json!({"text": text})).await;
            assert_eq!(outcome, Ok(json!(1_000_000)), "{engine} {body}");
        }
        let error = rig.script("pass", &["text"]).call(json!({"text": "a\u{0}"})).await.unwrap_err();
        assert_eq!(error.message, "`text` contains a NUL character, which cannot be passed to a process");
    }
}

#[tokio::test]
async fn calls_are_forked_from_one_interpreter_and_concurrent_ones_from_several() {
    let rig = Rig::new();
    let tool = rig.script("import os, time; time.sleep(float('${time}')); print(os.getpid())", &["time"]);
    // A loaded machine may give up an interpreter that is slow to accept a call, but not every time.
    let (mut last, mut forked) = (1, 0);
    for _ in 0..6 {
        let pid = tool.call(json!({"time": 0})).await.unwrap().as_u64().unwrap();
        assert!(pid == 2 || pid == last + 1, "the same namespace or a new one: {pid} after {last}");
        forked += u32::from(pid != 2);
        last = pid;
    }
    assert!(forked >= 2, "{forked} of 6 calls were forked from an interpreter that had served a call");
    let both = futures_util::join!(tool.call(json!({"time": 2})), tool.call(json!({"time": 2})));
    let is_fresh = |outcome: &Result<Value, _>| *outcome == Ok(json!(2));
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    assert!(is_fresh(&both.0) || is_fresh(&both.1), "a second interpreter was started: {both:?}");
    let other = rig.script("import os; print(os.getpid()) # another", &[]);
    assert_eq!(other.call(json!({})).await, Ok(json!(2)), "another body has another interpreter");
    let time = Duration::from_secs(20);
    assert_eq!(other.call_for("somebody", time, json!({})).await.0, Ok(json!(2)), "as has another tenant");
    assert_eq!(other.call(json!({})).await, Ok(json!(3)));
}

#[tokio::test]
async fn fifty_concurrent_calls_are_isolated() {
    let rig = Rig::new();
    let tool = rig.script(
        "import os, time\nassert os.listdir() == []\nopen('mine', 'w').write(os.environ['n'])\ntime.sleep(0.02)\nprint(open('mine').read())",
        &["n"],
    );
    let calls = (0..50).map(|n| {
        let tool: &Tool = &tool;
        async move { tool.call(json!({"n": n})).await }
    });
    let outcomes = futures_util::future::join_all(calls).await;
    let expected: Vec<_> = (0..50).map(|n| Ok(Value::from(n))).collect();
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn a_syntax_error_is_reported_with_its_position() {
    for engine in ENGINES {
        let rig = Rig::with(engine, |_| {});
        for (body, expected) in [
            ("import os\nprint(1)", ""),
            ("x = \"${text}\"", ""),
            ("if True\n  pass", "python: expected ':' (line 1, column 8 of the body)"),
            ("x = 1\n  y = 2", "python: unexpected indent (line 2, "),
            ("return 1", "python: 'return' outside function (line 1, column 1 of the body)"),
            ("x = '\\d'", ""),
            (
                "import json, no_such_module.part",
                "the module `no_such_module` cannot be imported; add its package to `dependencies`",
            ),
            ("try:\n    import no_such_module\nexcept ImportError:\n    pass", ""),
        ] {
            let script = Script::new(ScriptRuntime::Python, body);
            let problems = rig.scripts.examine(&spec("tool", Implementation::Script(script), &[])).await;
            let reported: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
            let reported = reported.join("\n");
            assert!(
                if expected.is_empty() { reported.is_empty() } else { reported.starts_with(expected) },
                "{engine} {body}: {reported}"
            );
        }
    }
}

#[tokio::test]
async fn a_host_without_python_is_reported() {
    for engine in ENGINES {
        let rig = Rig::with(engine, |settings| "/nowhere".clone_into(&mut settings.path));
        let error = rig.run("pass").await.unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::NotReady, "program `python3` not found in the sandbox"),
            "{engine}"
        );
    }
}

#[tokio::test]
async fn an_interpreter_that_does_not_start_reports_why() {
    let rig =
        Rig::with(EngineName::Bubblewrap, |settings| "/opt/odd:/usr/bin:/bin".clone_into(&mut settings.path));
    assert_eq!(rig.run("print(1)").await, Ok(json!(1)), "a folder that is not there is passed by");
    let rig = Rig::with(EngineName::Bubblewrap, |settings| settings.limits.memory = 2 << 20);
    let error = rig.run("pass").await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::NotReady, "python failed to start: limit `memory` exceeded")
    );
}
