//! The same tests as an ordinary user, who has no control groups and other limits.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The account that every machine has.
const NOBODY: &str = "65534";
/// Runs alone: it looks at what a process inherits.
const ALONE: &str = "every_attempt_succeeds_without_a_sandbox";

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        // Then it has just been shown.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    // Where the build lies, another user may not look.
    let program = folder.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    // In one process, the tests share descriptors and threads: the one that inherits some runs alone, and those
    // that count them do not run; nor do containers, whose images are root's.
    run(&program, &[ALONE]);
    let others = [ALONE, "leftovers", "unprivileged", "containers", "what_watches"]
        .into_iter()
        .flat_map(|name| ["--skip", name]);
    run(&program, &["--test-threads=4"].into_iter().chain(others).collect::<Vec<_>>());
}

#[expect(clippy::disallowed_methods, reason = "these tests are started once more, as another user")]
fn run(program: &Path, arguments: &[&str]) {
    let folder = program.parent().unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(program)
        .args(arguments)
        .env("TMPDIR", folder)
        .env("HOME", folder)
        .env("RUST_BACKTRACE", "0")
        .current_dir(folder)
        .output()
        .unwrap();
    let reported = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}", reported.join("\n"));
}
