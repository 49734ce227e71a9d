//! The engines with images, where this machine has one of them and the image `localhost/haft-test`.
//!
//! The image needs `sh`, `bash`, `cat`, `dd` and `sleep`. From a folder with such a system:
//! `tar -C FOLDER -c . | podman import - haft-test`.

use std::process::{Command as Process, Output};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_sandbox::{Bind, Command, EngineName, ExitReason, File, Level, Limit, Limits, Sandbox, Settings};
use haft_testkit::prerequisite::{Prerequisite, skip};

use crate::rig::small;

const IMAGE: &str = "localhost/haft-test";

#[expect(clippy::disallowed_methods, reason = "what the engine has done is asked of its own program")]
fn ask(engine: EngineName, arguments: &[&str]) -> Option<Output> {
    Process::new(engine.as_str()).args(arguments).output().ok()
}

/// Returns the engines that can be tried here.
fn engines() -> Vec<EngineName> {
    let usable = |engine: &EngineName| {
        let there = ask(*engine, &["image", "inspect", IMAGE]).is_some_and(|output| output.status.success());
        if !there {
            skip(Prerequisite::ContainerImage, &format!("{engine} with the image {IMAGE} is not available"));
        }
        there
    };
    [EngineName::Podman, EngineName::Docker].into_iter().filter(usable).collect()
}

fn open(engine: EngineName, home: &std::path::Path) -> Sandbox {
    let settings = Settings { engine, image: Some(IMAGE.to_owned()), ..Settings::new(home) };
    Sandbox::open(settings).unwrap()
}

fn bash(sandbox: &Sandbox, script: &str) -> Command {
    let place = sandbox.place(Level::Isolated, None).unwrap();
    Command::new(place, ["bash", "-c", script]).env("PATH", "/usr/bin:/bin")
}

fn containers(engine: EngineName, home: &std::path::Path) -> usize {
    let filter = format!("label=haft.sandbox={}", home.canonicalize().unwrap().display());
    let output = ask(engine, &["ps", "--all", "--quiet", "--filter", &filter]).unwrap();
    String::from_utf8_lossy(&output.stdout).split_whitespace().count()
}

#[tokio::test]
async fn a_container_holds_and_is_gone_at_the_end() {
    for engine in engines() {
        let home = tempfile::tempdir().unwrap();
        let sandbox = open(engine, home.path());
        let probe_report = sandbox.probe_report(engine).await;
        assert!(probe_report.passed(), "{engine}: {:?}", probe_report.reason());
        let shared = tempfile::tempdir().unwrap();
        std::fs::write(shared.path().join("given"), "given ").unwrap();
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(shared.path(), permissions).unwrap();
        let script =
            "cat /run/haft/script /data/given; echo \"$NAME\"; echo x > y; cat y; echo z > /data/z; exit 7";
        let mut command = bash(&sandbox, script).env("NAME", "a\n'\"$(x) ä").env("LD_PRELOAD", "/none");
        command.files.push(File { name: "script", content: Bytes::from_static(b"text ") });
        command.binds.push(Bind::read_only(shared.path(), "/data"));
        let finished = sandbox.run(command, &mut |_, _| {}).await.unwrap();
        let reported = (finished.ending, finished.stdout.text());
        let expected = (ExitReason::Exited(7), "text given a\n'\"$(x) ä\nx\n".into());
        assert_eq!(reported, expected, "{engine} {}", finished.stderr.text());
        let mut command = bash(&sandbox, "(setsid sleep 100 &); sleep 100");
        command.limits = Limits { wall: Duration::from_secs(2), ..small() };
        let finished = sandbox.run(command, &mut |_, _| {}).await.unwrap();
        assert_eq!(finished.ending, ExitReason::Stopped(Limit::Wall), "{engine}");
        // A caller that goes away, at once and later.
        for milliseconds in [5, 1_500] {
            let command = bash(&sandbox, "sleep 100");
            let watch = &mut |_, _: &[u8]| {};
            let moment = Duration::from_millis(milliseconds);
            drop(tokio::time::timeout(moment, sandbox.run(command, watch)).await);
        }
        let start = Instant::now();
        while containers(engine, home.path()) > 0 || std::fs::read_dir(home.path()).unwrap().count() > 1 {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "{engine}: {}",
                containers(engine, home.path())
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_container_of_a_server_that_was_killed_is_removed_by_the_next_one() {
    for engine in engines() {
        let home = tempfile::tempdir().unwrap();
        let label = format!("haft.sandbox={}", home.path().canonicalize().unwrap().display());
        let limits = ["--ulimit", "nproc=16384:16384", "--ulimit", "nofile=1024:1024"];
        let run = [&["run", "--detach", "--label", &label], &limits[..], &[IMAGE, "sleep", "100"]].concat();
        let output = ask(engine, &run).unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(containers(engine, home.path()), 1);
        let sandbox = open(engine, home.path());
        sandbox.run(bash(&sandbox, "true"), &mut |_, _| {}).await.unwrap();
        assert_eq!(containers(engine, home.path()), 0);
    }
}
