//! The inputs of a process, and what is reported of it.

use std::time::Duration;

use bytes::Bytes;
use haft_sandbox::{CapturedOutput, ExitReason, File, Input, Level, Limit, Limits, SandboxError, Stream};

use crate::rig::{ENGINES, Rig, small};

#[tokio::test]
async fn an_engine_that_serves_has_passed_its_probes() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let probe_report = rig.sandbox.probe_report(engine).await;
        assert!(probe_report.passed(), "{engine}: {:?}", probe_report.reason());
        let names: Vec<&str> = probe_report.probes.iter().map(|probe| probe.name).collect();
        assert_eq!(
            names,
            [
                "programs start",
                "no network",
                "files outside are hidden",
                "no writing outside",
                "process limit",
                "memory limit",
                "no network with `sandbox: false`",
                "home folder hidden with `sandbox: false`"
            ]
        );
    }
}

#[tokio::test]
async fn output_code_and_errors_are_told() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let finished = rig.isolated("echo out; echo err >&2; exit 7").await;
        let reported = (finished.ending, finished.stdout.text(), finished.stderr.text());
        assert_eq!(reported, (ExitReason::Exited(7), "out\n".into(), "err\n".into()), "{engine}");
        assert_eq!(rig.isolated("kill -9 $$").await.ending, ExitReason::Signalled(9), "{engine}");
    }
}

#[tokio::test]
async fn input_is_empty_or_what_was_given() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        assert_eq!(rig.isolated("cat; echo end").await.stdout.text(), "end\n", "{engine}");
        let mut command = rig.bash(Level::Isolated, "wc -c");
        command.input = Input::Bytes(Bytes::from(vec![0; 300_000]));
        assert_eq!(rig.run(command).await.stdout.text().trim(), "300000", "{engine}");
        // A process that does not read is no trouble.
        let mut command = rig.bash(Level::Isolated, "echo done");
        command.input = Input::Bytes(Bytes::from(vec![0; 3_000_000]));
        assert_eq!(rig.run(command).await.stdout.text(), "done\n", "{engine}");
    }
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for level in [Level::Isolated, Level::Host] {
            let place = rig.sandbox.place(level, None).unwrap();
            let command = haft_sandbox::Command::new(place, ["/usr/bin/env"])
                .env("ONE", "1")
                .env("TEXT", "a\n'\"$(x) ä");
            let finished = rig.run(command).await;
            let mut lines: Vec<String> = finished.stdout.text().lines().map(str::to_owned).collect();
            // bubblewrap tells the folder in which the process starts.
            lines.retain(|line| !line.starts_with("PWD="));
            assert_eq!(
                lines,
                ["ONE=1", "TEXT=a", "'\"$(x) ä"],
                "{engine} {level:?} {}",
                finished.stderr.text()
            );
        }
    }
}

#[tokio::test]
async fn a_private_folder_is_where_it_works_and_its_files_are_found() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for level in [Level::Isolated, Level::Host] {
            let mut command =
                rig.bash(level, "pwd; echo x > y; cat y; cat \"$FILES/script\"; touch \"$FILES/n\"");
            let (work, files) = (command.place.work().to_owned(), command.place.files().to_owned());
            command.files.push(File { name: "script", content: Bytes::from_static(b"text") });
            let command = command.env("FILES", files);
            let finished = rig.run(command).await;
            let expected = format!("{}\nx\ntext", work.display());
            assert_eq!(finished.stdout.text(), expected, "{engine} {level:?} {}", finished.stderr.text());
        }
        let left: Vec<_> = std::fs::read_dir(rig.home.path().join("run")).unwrap().flatten().collect();
        let left: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
        assert!(left.is_empty(), "{engine}: {left:?} is left on disk");
    }
}

#[tokio::test]
async fn output_is_streamed_and_cut() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let mut command = rig.bash(Level::Isolated, "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2");
        command.limits.output = 10;
        let mut seen = [0_usize; 2];
        let watch = &mut |stream, chunk: &[u8]| match stream {
            Stream::Stdout => seen[0] += chunk.len(),
            Stream::Stderr => seen[1] += chunk.len(),
        };
        let finished = rig.sandbox.run(command, watch).await.unwrap();
        let kept = CapturedOutput { bytes: vec![0; 10], left_out: 99_990 };
        assert_eq!((finished.stdout, finished.stderr, seen), (kept.clone(), kept, [100_000; 2]), "{engine}");
    }
}

#[tokio::test]
async fn limits_are_met_and_named() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let second = Duration::from_secs(1);
        let cases: [(&str, Limits, Limit); 6] = [
            ("sleep 100", Limits { wall: second, ..small() }, Limit::Wall),
            ("trap '' TERM; sleep 100; sleep 100", Limits { wall: second, ..small() }, Limit::Wall),
            ("(setsid sleep 100 &) ; sleep 100", Limits { wall: second, ..small() }, Limit::Wall),
            ("while :; do :; done", Limits { cpu: second, ..small() }, Limit::Cpu),
            ("exec dd if=/dev/zero of=/dev/null bs=256M count=1", small(), Limit::Memory),
            ("exec cat /dev/zero", Limits { output: 1000, ..small() }, Limit::Output),
        ];
        for (script, limits, limit) in cases {
            let mut command = rig.bash(Level::Isolated, script);
            command.limits = limits;
            let finished = rig.run(command).await;
            // Without control groups, a program is refused memory and tells so itself.
            let reported = if limit == Limit::Memory && rig.sandbox.limiter() == "rlimits" {
                ExitReason::Exited(1)
            } else {
                ExitReason::Stopped(limit)
            };
            assert_eq!(finished.ending, reported, "{engine} {script}: {}", finished.stderr.text());
        }
        let mut command =
            rig.bash(Level::Isolated, "head -c 2000000 /dev/zero > big; echo $?; stat -c %s big");
        command.limits = small();
        assert_eq!(rig.run(command).await.stdout.text(), "153\n1048576\n", "{engine}: the size of a file");
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_said() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let place = || rig.sandbox.place(Level::Isolated, None).unwrap();
        let command = |argv: &[&str]| haft_sandbox::Command::new(place(), argv).env("PATH", "/usr/bin");
        let cases = [
            (command(&["no-such-program"]), "program `no-such-program` not found in the sandbox"),
            (command(&["/no/such"]), "program `/no/such` not found in the sandbox"),
            (command(&[]), "the command is empty"),
            (command(&["echo", "a\0b"]), "argument 1 contains a NUL character"),
            (command(&["true"]).env("A", "\0"), "the variable `A` contains a NUL character"),
            (command(&["true"]).env("A=B", "x"), "the variable `A=B` has an invalid name"),
            (
                command(&["true"]).env("A", "x".repeat(131_072)),
                "the variable `A` exceeds the limit of 128 KiB",
            ),
            (
                many(command(&["true"]), 2_001, 1),
                "the environment exceeds the limit of 2,000 entries; pass them in a file",
            ),
            (
                many(command(&["true"]), 20, 100_000),
                "the arguments and variables together exceed the limit of 1 MiB; pass them in a file",
            ),
        ];
        for (command, expected) in cases {
            let error: SandboxError = rig.sandbox.run(command, &mut |_, _| {}).await.unwrap_err();
            assert_eq!(error.to_string(), expected, "{engine}");
        }
    }
}

fn many(mut command: haft_sandbox::Command, count: usize, length: usize) -> haft_sandbox::Command {
    command.env.extend((1..count).map(|n| (format!("V{n}").into(), "x".repeat(length).into())));
    command.env.push(("LAST".into(), "y".repeat(length).into()));
    command
}

#[tokio::test]
async fn many_and_large_variables_arrive() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for (count, length) in [(1_999, 1), (7, 131_000), (1_900, 500)] {
            let command = many(rig.bash(Level::Isolated, "echo ${#LAST} ${!V*}"), count, length);
            let finished = rig.run(command).await;
            let words = finished.stdout.text().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let expected = (Some(length.to_string()), count);
            assert_eq!(
                (words.first().cloned(), words.len()),
                expected,
                "{engine} {}",
                finished.stderr.text()
            );
        }
    }
}

#[tokio::test]
async fn odd_paths_are_paths() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let outside = tempfile::tempdir().unwrap();
        let long = "n".repeat(255);
        for name in [b"not \xff UTF-8\n'\"$(x)".as_slice(), b"--bind", b" ", long.as_bytes()] {
            let folder = outside.path().join(OsStr::from_bytes(name));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("file"), "found").unwrap();
            let mut command = rig.bash(Level::Isolated, "cat file; echo x > written");
            let bind = haft_sandbox::Bind::writable(&folder, "/workspace");
            command.directory = Some(command.place.seen_at(&bind).to_owned());
            command.binds.push(bind);
            let finished = rig.run(command).await;
            let reported = (finished.stdout.text(), folder.join("written").exists());
            assert_eq!(reported, ("found".into(), true), "{engine} {}", finished.stderr.text());
        }
    }
}

#[tokio::test]
async fn empty_files_without_number_are_stopped() {
    // In Landlock they lie on disk, where no one counts.
    let rig = Rig::new(haft_sandbox::EngineName::Bubblewrap);
    if rig.sandbox.limiter() == "rlimits" {
        return;
    }
    let script =
        "exec python3 -ISc $'import os\\nfor n in range(400000): os.mknod(str(n))\\nprint(\"made\")'";
    let mut command = rig.bash(Level::Isolated, script);
    command.limits = small();
    let finished = rig.run(command).await;
    let reported = (finished.ending, finished.stdout.text());
    assert_eq!(reported, (ExitReason::Stopped(Limit::Memory), "".into()), "{}", finished.stderr.text());
}
