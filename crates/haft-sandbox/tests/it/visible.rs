//! What of a call others see, and what it sees of itself.

use std::path::Path;

use haft_sandbox::{EngineName, ExitReason, Level, Sandbox, Settings};

use crate::escape::World;
use crate::rig::{ENGINES, Rig};

/// Everything that a process finds about the first process of its namespace and about itself.
const LOOK: &str = "cat /proc/1/cmdline /proc/1/environ /proc/1/comm /proc/self/cmdline 2>/dev/null \
    | tr '\\0' '\\n'; ls -l /proc/1/fd /proc/self/fd /proc/1/cwd /proc/1/exe 2>/dev/null";

#[tokio::test]
async fn the_first_process_tells_nothing_of_the_machine() {
    let rig = Rig::new(EngineName::Bubblewrap);
    for level in [Level::Isolated, Level::Host] {
        let command = rig.bash(level, LOOK).env("NAME", "the-value-of-a-secret");
        let finished = rig.run(command).await;
        let seen = finished.stdout.text();
        assert!(seen.contains("bwrap"), "{seen}");
        let home = rig.home.path().file_name().unwrap().to_string_lossy().into_owned();
        // At level `Host`, the private folder stands in for one of the machine.
        let home = if level == Level::Host { "CARGO" } else { &home };
        for word in ["the-value-of-a-secret", "CARGO", home] {
            assert!(!seen.contains(word), "{level:?} shows {word}: {seen}");
        }
    }
}

#[tokio::test]
async fn the_list_of_processes_shows_no_value() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let command = rig.bash(Level::Isolated, "echo ready; read x").env("NAME", "the-value-of-a-secret");
        let command = haft_sandbox::Command { input: haft_sandbox::Input::Pipe, ..command };
        let mut running = rig.sandbox.start(command).await.unwrap();
        let mut line = [0; 6];
        let stdout = running.stdout.as_mut().unwrap();
        tokio::io::AsyncReadExt::read_exact(stdout, &mut line).await.unwrap();
        // Every user of the machine may read these.
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            assert!(!line.contains("the-value-of-a-secret"), "{engine}: {line}");
        }
        running.kill();
        assert_eq!(running.wait().await.unwrap(), ExitReason::Signalled(9), "{engine}");
    }
}

#[tokio::test]
async fn killing_all_processes_ends_the_sandbox_only() {
    let mut world = World::new();
    let rig = Rig::new(EngineName::Bubblewrap);
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    for level in [Level::Isolated, Level::Host] {
        // Where the namespace were the machine's, nothing is killed, and the test fails.
        let script = "sleep 100 & [ \"$(readlink /proc/self/ns/pid)\" != \"$MACHINE\" ] || exit 99; kill -9 -1; kill -9 1; \
            wait; echo alone";
        let finished = rig.run(rig.bash(level, script).env("MACHINE", &namespace)).await;
        let reported = (finished.ending, finished.stdout.text());
        assert_eq!(
            reported,
            (ExitReason::Exited(0), "alone\n".into()),
            "{level:?} {}",
            finished.stderr.text()
        );
    }
    assert_eq!(world.dead_victims(), [0_u32; 0]);
}

#[tokio::test]
async fn a_hidden_folder_stays_hidden_when_it_is_moved() {
    for engine in ENGINES {
        let root = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let data = root.path().join("haft/data");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("haft.db"), "SECRET").unwrap();
        let settings = Settings { engine, hidden: vec![data], ..Settings::new(scratch.path()) };
        let sandbox = Sandbox::open(settings).unwrap();
        let run = async |script: &str| {
            let place = sandbox.place(Level::Host, None).unwrap();
            let command =
                haft_sandbox::Command::new(place, ["bash", "-c", script]).env("PATH", "/usr/bin:/bin");
            let command = command.env("ROOT", root.path());
            sandbox.run(command, &mut |_, _| {}).await.unwrap().stdout.text().into_owned()
        };
        run("mv $ROOT/haft $ROOT/moved; mkdir -p $ROOT/haft/data").await;
        let moved = root.path().join("moved").exists();
        assert_eq!(moved, engine == EngineName::Bubblewrap, "Landlock allows no change of the folders above");
        let seen = run("cat $ROOT/*/data/haft.db; echo looked").await;
        assert_eq!(seen, "looked\n", "{engine}");
    }
}

#[tokio::test]
async fn what_was_written_privately_is_gone() {
    // The same test may run at the same time as another user.
    let name = format!("haft-left-{}", std::process::id());
    for engine in ENGINES {
        let rig = Rig::new(engine);
        for level in [Level::Isolated, Level::Host] {
            let script =
                format!("echo x > left; mkdir -p a/b; ln -s / a/link; chmod 0 a/b; echo y > /dev/shm/{name}");
            rig.run(rig.bash(level, &script)).await;
            let script = format!("ls -A; ls /dev/shm | grep -x {name}");
            let finished = rig.run(rig.bash(level, &script)).await;
            // Landlock's level `Host` shares the machine's folder of shared memory.
            let shared = engine == EngineName::Landlock && level == Level::Host;
            let expected = if shared { format!("{name}\n") } else { String::new() };
            assert_eq!(finished.stdout.text(), expected, "{engine} {level:?}");
            drop(std::fs::remove_file(Path::new("/dev/shm").join(&name)));
        }
        rig.nothing_left();
    }
}

#[tokio::test]
async fn folders_are_hidden_through_links() {
    for engine in ENGINES {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir_all(data.join("run")).unwrap();
        std::fs::write(data.join("haft.db"), "SECRET").unwrap();
        std::fs::write(root.path().join("key"), "SECRET").unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        // A file is hidden, too.
        let hidden = vec![link.clone(), root.path().join("key")];
        let sandbox = Sandbox::open(Settings { engine, hidden, ..Settings::new(link.join("run")) }).unwrap();
        for level in [Level::Host, Level::Isolated] {
            let place = sandbox.place(level, None).unwrap();
            let script = "cat $ROOT/*/haft.db $ROOT/key; echo x > y; cat y";
            let command =
                haft_sandbox::Command::new(place, ["bash", "-c", script]).env("PATH", "/usr/bin:/bin");
            let command = command.env("ROOT", root.path());
            let finished = sandbox.run(command, &mut |_, _| {}).await.unwrap();
            assert_eq!(finished.stdout.text(), "x\n", "{engine} {level:?} {}", finished.stderr.text());
        }
    }
}

#[tokio::test]
async fn folders_deeper_than_any_path_are_removed() {
    for engine in ENGINES {
        let rig = Rig::new(engine);
        let script = "python3 -c 'import os
for _ in range(1500): os.mkdir(\"deep\"); os.chdir(\"deep\")
print(\"made\")'";
        assert_eq!(rig.isolated(script).await.stdout.text(), "made\n", "{engine}");
        rig.nothing_left();
    }
}
