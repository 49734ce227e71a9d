//! A hidden folder that several mounts show.

use std::path::Path;
use std::process::Command;

use haft_sandbox::{Level, Sandbox, Settings};

use crate::rig::ENGINES;

/// Set where the test runs in its own mount namespace: the folder with the mounts.
const ROOT: &str = "HAFT_TEST_MOUNTS";

/// Mounts the parent of the hidden folder, the folder itself, and a folder in it.
const MOUNT: &str = r#"cd "$HAFT_TEST_MOUNTS" && mount --bind par alias && mount --bind par/home 'same one' \
    && mount --bind par/home/part part && exec "$0" --exact mounts::a_folder_is_hidden_in_every_mount"#;

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is started once more, in a mount namespace")]
fn a_folder_is_hidden_in_every_mount() {
    if let Some(root) = std::env::var_os(ROOT) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(nothing_is_visible(Path::new(&root)));
    }
    // Not in `/tmp`: an isolated process has its own.
    let root = tempfile::tempdir_in("/var/tmp").unwrap();
    for folder in ["par/home/part", "alias", "same one", "part"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    std::fs::write(root.path().join("par/open"), "open\n").unwrap();
    for file in ["tokens", "part/tokens"] {
        std::fs::write(root.path().join("par/home").join(file), "SECRET\n").unwrap();
    }
    let user = rustix::process::geteuid();
    let namespaces: &[&str] =
        if user.is_root() { &["--mount"] } else { &["--mount", "--user", "--map-root-user"] };
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", MOUNT])
        .arg(std::env::current_exe().unwrap())
        .env(ROOT, root.path())
        .output()
        .unwrap();
    let reported = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && reported.concat().contains("1 passed"), "{}", reported.join("\n"));
}

async fn nothing_is_visible(root: &Path) {
    let script = "cat $ROOT/*/tokens $ROOT/*/home/tokens $ROOT/*/*/*/tokens; cat $ROOT/alias/open";
    for engine in ENGINES {
        let home = root.join("par/home");
        let settings = Settings {
            engine,
            hidden: vec![home.clone()],
            read_only: vec![root.join("alias")],
            ..Settings::new(home.join("run"))
        };
        let sandbox = Sandbox::open(settings).unwrap();
        for level in [Level::Host, Level::Isolated] {
            let place = sandbox.place(level, None).unwrap();
            let command = haft_sandbox::Command::new(place, ["bash", "-c", script]);
            let command = command.env("PATH", "/usr/bin:/bin").env("ROOT", root);
            let finished = sandbox.run(command, &mut |_, _| {}).await.unwrap();
            assert_eq!(finished.stdout.text(), "open\n", "{engine} {level:?} {}", finished.stderr.text());
        }
    }
}
