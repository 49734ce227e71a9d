//! Scripts that turn against the interpreter that they were forked from.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use haft_core::outcome::ErrorCode;
use serde_json::json;

use super::rig::{Rig, descendants, none_left, until};

#[tokio::test]
async fn a_script_can_neither_inspect_nor_kill_the_server() {
    let rig = Rig::new();
    let tool = rig.script(
        r#"
import ctypes, os, signal, socket
def tried(function, *args):
    try:
        return repr(function(*args))
    except OSError as error:
        return error.strerror
reported = {}
for name in ("mem", "environ", "maps", "fd/0", "fd/3", "cwd", "auxv"):
    reported[name] = tried(os.readlink if name == "cwd" else open, "/proc/1/" + name)
reported["ptrace"] = ctypes.CDLL(None, use_errno=True).ptrace(16, 1, 0, 0)
for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGSEGV, signal.SIGUSR1):
    os.kill(1, number)
reported["own"] = sorted(set(os.listdir("/proc/self/fd")) - {"0", "1", "2", "3", "7"})
reported["sockets"] = [fd for fd in range(64) if tried(lambda: socket.socket(fileno=os.dup(fd)).family)[0] == "<"]
reported["pid"] = os.getpid()
import json; print(json.dumps(reported))
"#,
        &[],
    );
    let refused = "Permission denied";
    for pid in [2, 3] {
        let expected = json!({
            "mem": refused, "environ": refused, "maps": refused, "fd/0": refused, "fd/3": refused, "cwd": refused, "auxv": refused,
            "ptrace": -1, "own": [], "sockets": [], "pid": pid,
        });
        assert_eq!(tool.call(json!({})).await, Ok(expected));
    }
}

/// Ends the interpreter that this test has started; its forks have higher numbers.
fn end_the_interpreter() {
    let first = descendants("python3").into_iter().min().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_idle_interpreter_that_ended_is_replaced() {
    let rig = Rig::new();
    let tool = rig.script("import os; print(os.getpid())", &[]);
    assert_eq!(tool.call(json!({})).await, Ok(json!(2)));
    assert_eq!(tool.call(json!({})).await, Ok(json!(3)));
    end_the_interpreter();
    // A call that reaches the dying interpreter fails; the ones after it get a new one.
    until(async || tool.call(json!({})).await == Ok(json!(2))).await;
}

#[tokio::test]
async fn an_interpreter_that_ends_during_a_call_fails_only_that_call() {
    let rig = Rig::new();
    let tool = rig.script(
        "import os, subprocess\nif '${wait}' == 'yes': subprocess.run(['sleep', '100'])\nprint(os.getpid())",
        &["wait"],
    );
    assert_eq!(tool.call(json!({"wait": "no"})).await, Ok(json!(2)));
    let (outcome, ()) = futures_util::join!(tool.call(json!({"wait": "yes"})), async {
        until(async || !descendants("sleep").is_empty()).await;
        end_the_interpreter();
    });
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::ExecutionFailed, "the process was killed by signal 9 (SIGKILL)")
    );
    assert_eq!(tool.call(json!({"wait": "no"})).await, Ok(json!(2)));
}

#[tokio::test]
async fn a_cancelled_call_leaves_no_process() {
    let rig = Rig::new();
    let tool = rig.script("import subprocess\nprint(1, flush=True)\nsubprocess.run(['sleep', '1000'])", &[]);
    tokio::select! {
        outcome = tool.call(json!({})) => panic!("the call ended: {outcome:?}"),
        () = until(async || !descendants("sleep").is_empty()) => {}
    }
    none_left("sleep").await;
    none_left("python3").await;
    drop((tool, rig));
    none_left("bwrap").await;
}

#[tokio::test]
async fn interpreters_end_with_their_owner() {
    let rig = Rig::new();
    assert_eq!(rig.run("print(1)").await, Ok(json!(1)));
    assert!(!descendants("python3").is_empty());
    drop(rig);
    none_left("python3").await;
    none_left("bwrap").await;
}

/// Writes a fake exit code to every pipe except the outputs.
const TELL: &str = "
import os, stat
for fd in range(3, 16):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode): os.write(fd, b'\\nexit 0\\n')
    except OSError: pass
";

#[tokio::test]
async fn a_call_that_reports_its_end_and_goes_on_is_killed() {
    let rig = Rig::new();
    let body =
        format!("print('early', flush=True)\n{TELL}\nimport subprocess; subprocess.run(['sleep', '1000'])");
    let tool = rig.script(&body, &[]);
    for _ in 0..2 {
        assert_eq!(tool.call(json!({})).await, Ok(json!("early")));
        none_left("sleep").await;
    }
}

#[tokio::test]
async fn nothing_is_written_to_files_that_a_tool_opened() {
    let rig = Rig::new();
    let outside = tempfile::Builder::new().prefix("haft-not-written").tempdir_in("/tmp").unwrap();
    let file = outside.path().join("file");
    std::fs::write(&file, "").unwrap();
    let tool = rig.script_with(
        "import os\nos.closerange(3, 64)\nopened = [os.open('${file}', os.O_WRONLY) for _ in range(20)]\nprint(len(opened))",
        &["file"],
        |spec| spec.sandbox = false,
    );
    for _ in 0..2 {
        assert_eq!(tool.call(json!({"file": file.to_str().unwrap()})).await, Ok(json!(20)));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "");
}

#[tokio::test]
async fn an_exit_code_is_not_mistaken_for_a_signal() {
    let rig = Rig::new();
    for (body, expected) in [
        ("import sys; sys.exit(137)", "exit code 137"),
        ("import os; os._exit(152)", "exit code 152"),
        ("import os; os.kill(os.getpid(), 15)", "the process was killed by signal 15 (SIGTERM)"),
    ] {
        assert_eq!(rig.run(body).await.unwrap_err().message, expected, "{body}");
    }
}

#[tokio::test]
async fn the_last_output_is_not_lost() {
    let rig = Rig::new();
    let tool = rig.script(
        "import atexit, sys, threading\natexit.register(lambda: sys.stdout.write('c' * 90000))\nprint('a', end='')\nthreading.Timer(0.01, lambda: print('b', end='')).start()",
        &[],
    );
    for _ in 0..5 {
        assert_eq!(tool.call(json!({})).await, Ok(json!(format!("ab{}", "c".repeat(90_000)))));
    }
}

#[tokio::test]
async fn a_script_that_reports_its_end_ends() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let late = folder.path().join("late");
    let body = r#"
import os, stat, time
for descriptor in range(3, 64):
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.write(descriptor, b"\nexit 0\n")
    except OSError:
        pass
time.sleep(2)
open(LATE, "w").close()
"#;
    let body = body.replace("LATE", &format!("{late:?}"));
    let tool = rig.script_with(&body, &[], |spec| spec.sandbox = false);
    // The second call waits for the end of the first one.
    for _ in 0..2 {
        assert_eq!(tool.call(json!({})).await, Ok(json!("")));
    }
    let next = rig.script_with("print(1)", &[], |spec| spec.sandbox = false);
    assert_eq!(next.call(json!({})).await, Ok(json!(1)));
    assert!(!late.exists(), "the script went on after its call had ended");
}
