//! File tools: what they read and write, and that nothing leads out of their roots.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor};
use haft_core::id::CallId;
use haft_core::name::{TenantId, ToolName};
use haft_core::outcome::{CallError, Outcome};
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_executors::files::{FileReadExecutor, FileWriteExecutor, Files, Root};
use serde_json::{Value, json};
use tempfile::TempDir;

struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(None) })
    }
}

/// A folder with a root `work`, a read-only root `data`, and things outside of them.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("work/sub")).unwrap();
        std::fs::create_dir_all(at("data")).unwrap();
        std::fs::create_dir_all(at("outside")).unwrap();
        std::fs::write(at("work/a.txt"), "hello").unwrap();
        std::fs::write(at("work/sub/b.txt"), "deep").unwrap();
        std::fs::write(at("data/c.txt"), "data").unwrap();
        std::fs::write(at("outside/secret.txt"), "secret").unwrap();
        Self { folder }
    }

    fn work(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.work(name)).unwrap();
    }

    fn files(&self) -> Files {
        let data = Root { read_only: true, ..Root::new("data", self.folder.path().join("data")) };
        Files::new(vec![Root::new("work", self.folder.path().join("work")), data]).unwrap()
    }

    async fn run(&self, implementation: Value, args: Value) -> Outcome {
        let mut spec =
            ToolSpec::new(ToolName::new("probe").unwrap(), serde_json::from_value(implementation).unwrap());
        spec.input_schema = json!({ "type": "object", "properties": { "path": {}, "content": {} } }).into();
        spec.execution.limits.max_response_bytes = 4000;
        spec.execution.limits.max_request_bytes = 3000;
        let executors: [Arc<dyn Executor>; 2] =
            [Arc::new(FileReadExecutor::new(self.files())), Arc::new(FileWriteExecutor::new(self.files()))];
        let executor = executors.iter().find(|one| one.kind() == spec.implementation.kind()).unwrap();
        let prepared =
            executor.prepare(&Arc::new(spec), None).unwrap_or_else(|problems| panic!("{problems:?}"));
        let deadline = Instant::now() + Duration::from_secs(20);
        let id = CallId(uuid::Uuid::nil());
        let context = CallContext::new(id, TenantId::default_tenant(), deadline, Arc::new(NoSecrets));
        prepared.run(&context, args.as_object().unwrap()).await
    }

    async fn read(&self, path: &str) -> Outcome {
        self.run(json!({ "type": "file_read", "path": "{{path}}" }), json!({ "path": path })).await
    }

    async fn write(&self, path: &str, content: &str) -> Outcome {
        let tool =
            json!({ "type": "file_write", "path": "{{path}}", "content": "{{content}}", "mkdir": true });
        self.run(tool, json!({ "path": path, "content": content })).await
    }
}

/// Returns code and text of an error, which never names a folder of the host.
fn brief(world: &World, error: &CallError) -> String {
    let text = format!("{}: {}", error.code, error.message);
    let host = world.folder.path().display().to_string();
    assert!(!text.contains(&host) && !error.model_text().contains(&host), "{text}");
    text
}

#[tokio::test]
async fn files_are_read_in_every_encoding() {
    let world = World::new();
    std::fs::write(world.work("p.png"), [0x89, b'P', 0xff]).unwrap();
    let read = |path: &str, encoding: &str, root: Option<&str>| {
        let mut tool = json!({ "type": "file_read", "path": path, "encoding": encoding });
        if let Some(root) = root {
            tool["root"] = json!(root);
        }
        world.run(tool, json!({}))
    };
    assert_eq!(read("a.txt", "utf-8", None).await, Ok(json!("hello")));
    assert_eq!(read("./sub/../sub//b.txt", "utf-8", None).await, Ok(json!("deep")));
    assert_eq!(read("c.txt", "utf-8", Some("data")).await, Ok(json!("data")));
    assert_eq!(read("p.png", "base64", None).await, Ok(json!("iVD/")));
    let expected = json!({ "name": "p.png", "media_type": "image/png", "size": 3, "base64": "iVD/" });
    assert_eq!(read("p.png", "binary", None).await, Ok(expected));
    insta::assert_snapshot!(brief(&world, &read("p.png", "utf-8", None).await.unwrap_err()), @r#"execution_failed: `p.png` is not UTF-8 text (invalid byte at offset 0); use `encoding: base64`"#);
}

#[tokio::test]
async fn nothing_outside_of_the_root_is_read() {
    let world = World::new();
    let outside = world.folder.path().join("outside/secret.txt");
    world.link(&outside, "absolute");
    world.link("../outside/secret.txt", "relative");
    world.link("../outside", "folder");
    world.link("/nowhere/at/all", "dangling_out");
    world.link("nowhere", "dangling_in");
    world.link("/proc/self/environ", "environ");
    world.link("/proc/self/root", "magic");
    world.link("loop", "loop");
    world.link("sub/b.txt", "inside");
    let mut seen = Vec::new();
    for path in [
        "/etc/passwd",
        "../../../etc/passwd",
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "..",
        "absolute",
        "relative",
        "folder/secret.txt",
        "dangling_out",
        "environ",
        "magic/etc/passwd",
        "loop",
        "dangling_in",
        "missing",
        "a.txt/x",
        "sub",
        ".",
        "sub/",
        "a.txt/",
        "",
        "a\0b",
        "no\nsuch",
        "größe/☃",
    ] {
        let error = world.read(path).await.unwrap_err();
        seen.push(format!("{path:?} => {}", brief(&world, &error)));
    }
    let long = "x".repeat(300);
    seen.push(format!(
        "300 characters => {}",
        brief(&world, &world.read(&long).await.unwrap_err())[..40].to_owned()
    ));
    let deep = "a/".repeat(5000);
    assert!(world.read(&deep).await.is_err());
    insta::assert_snapshot!(seen.join("\n"), @r#"
"/etc/passwd" => path_escapes: path escapes sandbox: `/etc/passwd` is an absolute path; use a path relative to the sandbox
"../../../etc/passwd" => path_escapes: path escapes sandbox: `../../../etc/passwd` points outside of the sandbox
"../outside/secret.txt" => path_escapes: path escapes sandbox: `../outside/secret.txt` points outside of the sandbox
"sub/../../outside/secret.txt" => path_escapes: path escapes sandbox: `sub/../../outside/secret.txt` points outside of the sandbox
".." => path_escapes: path escapes sandbox: `..` points outside of the sandbox
"absolute" => path_escapes: path escapes sandbox: `absolute` points outside of the sandbox
"relative" => path_escapes: path escapes sandbox: `relative` points outside of the sandbox
"folder/secret.txt" => path_escapes: path escapes sandbox: `folder/secret.txt` points outside of the sandbox
"dangling_out" => path_escapes: path escapes sandbox: `dangling_out` points outside of the sandbox
"environ" => path_escapes: path escapes sandbox: `environ` points outside of the sandbox
"magic/etc/passwd" => path_escapes: path escapes sandbox: `magic/etc/passwd` points outside of the sandbox
"loop" => path_escapes: path escapes sandbox: `loop` contains a link that is not followed
"dangling_in" => execution_failed: `dangling_in` does not exist
"missing" => execution_failed: `missing` does not exist
"a.txt/x" => execution_failed: `a.txt/x` does not exist: a parent is not a folder
"sub" => execution_failed: `sub` is a folder
"." => execution_failed: `.` is a folder
"sub/" => execution_failed: `sub/` is a folder
"a.txt/" => execution_failed: `a.txt/` does not exist: a parent is not a folder
"" => execution_failed: the path is empty
"a\0b" => execution_failed: `a�b` contains a NUL character
"no\nsuch" => execution_failed: `no�such` does not exist
"größe/☃" => execution_failed: `größe/☃` does not exist
300 characters => execution_failed: `xxxxxxxxxxxxxxxxxxxxx
"#);
    assert_eq!(world.read("inside").await, Ok(json!("deep")));
    let absolute = outside.display().to_string();
    assert!(world.read(&absolute).await.unwrap_err().message.starts_with("path escapes sandbox"));
}

#[tokio::test]
async fn special_files_are_rejected_without_waiting() {
    let world = World::new();
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mkfifoat(rustix::fs::CWD, world.work("pipe"), mode).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.work("socket")).unwrap();
    for name in ["pipe", "socket"] {
        let expected = format!("execution_failed: `{name}` is not a regular file");
        assert_eq!(brief(&world, &world.read(name).await.unwrap_err()), expected);
        assert_eq!(brief(&world, &world.write(name, "x").await.unwrap_err()), expected);
    }
}

#[tokio::test]
async fn files_are_written_atomically_with_their_mode() {
    let world = World::new();
    assert_eq!(
        world.write("new.txt", "one").await,
        Ok(json!({ "path": "new.txt", "size": 3, "created": true }))
    );
    assert_eq!(
        world.write("new.txt", "two!").await,
        Ok(json!({ "path": "new.txt", "size": 4, "created": false }))
    );
    assert_eq!(std::fs::read_to_string(world.work("new.txt")).unwrap(), "two!");
    world.write("x/y/z/deep.txt", "deep").await.unwrap();
    assert_eq!(std::fs::read_to_string(world.work("x/y/z/deep.txt")).unwrap(), "deep");
    let mode = |path: &str| std::fs::metadata(world.work(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("new.txt"), 0o644);
    let tool = |mode: Value| json!({ "type": "file_write", "path": "m.sh", "content": "x", "mode": mode });
    world.run(tool(json!(0o750)), json!({})).await.unwrap();
    assert_eq!(mode("m.sh"), 0o750);
    // A file keeps the permissions that it has.
    world.write("m.sh", "y").await.unwrap();
    assert_eq!(mode("m.sh"), 0o750);
    let base64 =
        json!({ "type": "file_write", "path": "b.bin", "content": "{{content}}", "encoding": "base64" });
    world.run(base64.clone(), json!({ "content": "AP8\n=" })).await.unwrap();
    assert_eq!(std::fs::read(world.work("b.bin")).unwrap(), [0, 0xff]);
    let error = world.run(base64, json!({ "content": "***" })).await.unwrap_err();
    assert!(error.message.starts_with("invalid base64 content"), "{error}");
    let left: Vec<_> = std::fs::read_dir(world.work("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("haft-")), "{left:?}");
}

#[tokio::test]
async fn nothing_outside_of_the_root_is_written() {
    let world = World::new();
    let outside = world.folder.path().join("outside/secret.txt");
    world.link(&outside, "absolute");
    world.link("../outside", "folder");
    world.link(world.folder.path().join("outside/made"), "dangling");
    world.link("a.txt", "inside");
    let mut seen = Vec::new();
    for path in [
        "/tmp/x",
        "../x",
        "../outside/secret.txt",
        "new/../../x",
        "..",
        "sub/..",
        "absolute",
        "folder/secret.txt",
        "folder/new/x",
        "dangling",
        "dangling/x",
        "inside",
        "sub",
        "sub/",
        ".",
        "",
        "a.txt/x",
        "a\0b",
    ] {
        let error = world.write(path, "overwritten").await.unwrap_err();
        seen.push(format!("{path:?} => {}", brief(&world, &error)));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
"/tmp/x" => path_escapes: path escapes sandbox: `/tmp/x` is an absolute path; use a path relative to the sandbox
"../x" => path_escapes: path escapes sandbox: `../x` points outside of the sandbox
"../outside/secret.txt" => path_escapes: path escapes sandbox: `../outside/secret.txt` points outside of the sandbox
"new/../../x" => path_escapes: path escapes sandbox: `new/../../x` has `..` below a folder that does not exist
".." => path_escapes: path escapes sandbox: `..` ends with `..`
"sub/.." => path_escapes: path escapes sandbox: `sub/..` ends with `..`
"absolute" => path_escapes: path escapes sandbox: `absolute` is a symbolic link; writes do not follow links
"folder/secret.txt" => path_escapes: path escapes sandbox: `folder/secret.txt` points outside of the sandbox
"folder/new/x" => path_escapes: path escapes sandbox: `folder/new/x` points outside of the sandbox
"dangling" => path_escapes: path escapes sandbox: `dangling` is a symbolic link; writes do not follow links
"dangling/x" => path_escapes: path escapes sandbox: `dangling/x` points outside of the sandbox
"inside" => path_escapes: path escapes sandbox: `inside` is a symbolic link; writes do not follow links
"sub" => execution_failed: `sub` is a folder
"sub/" => execution_failed: `sub/` is a folder, not a file
"." => execution_failed: `.` is a folder, not a file
"" => execution_failed: the path is empty
"a.txt/x" => execution_failed: `a.txt/x` does not exist: a parent is not a folder
"a\0b" => execution_failed: `a�b` contains a NUL character
"#);
    let name = "x".repeat(300);
    assert!(world.write(&name, "x").await.unwrap_err().message.contains("too long"));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(world.folder.path().join("outside")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(world.folder.path()).unwrap().count(), 3);
    let tool = json!({ "type": "file_write", "path": "no/x", "content": "x" });
    let error = world.run(tool, json!({})).await.unwrap_err();
    assert_eq!(
        brief(&world, &error),
        "execution_failed: `no/x` is in a folder that does not exist; set `mkdir: true` to create it"
    );
}

#[tokio::test]
async fn sizes_are_limited() {
    let world = World::new();
    std::fs::write(world.work("big"), vec![b'x'; 4001]).unwrap();
    std::fs::write(world.work("fits"), vec![b'x'; 4000]).unwrap();
    assert_eq!(world.read("fits").await.unwrap().as_str().unwrap().len(), 4000);
    insta::assert_snapshot!(brief(&world, &world.read("big").await.unwrap_err()), @r#"execution_failed: `big` has at least 4001 bytes, which exceeds `limits.max_response_bytes` (4000)"#);
    insta::assert_snapshot!(brief(&world, &world.write("w", &"x".repeat(3001)).await.unwrap_err()), @r#"execution_failed: `w` would have 3001 bytes, which exceeds `limits.max_request_bytes` (3000)"#);
    let tool = json!({ "type": "file_read", "path": "fits", "encoding": "base64" });
    assert!(
        world
            .run(tool, json!({}))
            .await
            .unwrap_err()
            .message
            .contains("exceeds `limits.max_response_bytes` (3000)")
    );
}

#[tokio::test]
async fn a_missing_root_is_reported_without_its_path() {
    let world = World::new();
    std::fs::remove_dir_all(world.work("")).unwrap();
    let error = world.read("a.txt").await.unwrap_err();
    assert_eq!(error.model_text(), "Tool call failed: the folder of this tool is unavailable");
    brief(&world, &error);
}

/// A thread that swaps a folder for a link to the outside and back must never let a call through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_swapped_in_does_not_lead_out() {
    let world = World::new();
    std::fs::write(world.work("sub/secret.txt"), "inside").unwrap();
    world.link(world.folder.path().join("outside"), "evil");
    let done = Arc::new(AtomicBool::new(false));
    let flipper = std::thread::spawn({
        let (done, sub, evil) = (Arc::clone(&done), world.work("sub"), world.work("evil"));
        move || {
            let mut swaps = 0_u32;
            while !done.load(Ordering::Relaxed) {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                renameat_with(CWD, &sub, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut inside, mut refused) = (0, 0);
    for round in 0..20_000 {
        if round >= 400 && inside >= 20 && refused >= 20 {
            break;
        }
        match world.read("sub/secret.txt").await {
            Ok(value) => {
                assert_eq!(value, json!("inside"), "the link was followed out");
                inside += 1;
            }
            Err(error) => {
                assert!(error.message.starts_with("path escapes sandbox"), "{error}");
                refused += 1;
            }
        }
        if let Err(error) = world.write(&format!("sub/made-{round}.txt"), "x").await {
            assert!(error.message.starts_with("path escapes sandbox"), "{error}");
        }
    }
    done.store(true, Ordering::Relaxed);
    let swaps = flipper.join().unwrap();
    assert!(inside >= 20 && refused >= 20, "{swaps} swaps, {inside} inside, {refused} refused");
    let outside: Vec<_> = std::fs::read_dir(world.folder.path().join("outside"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(outside, ["secret.txt"]);
    assert_eq!(std::fs::read_to_string(world.folder.path().join("outside/secret.txt")).unwrap(), "secret");
}
