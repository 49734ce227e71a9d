//! Runs a page beside a server that was started as `make run` does it.

#![expect(clippy::unwrap_used, reason = "a harness may fail the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::page::{Purpose, blocks};
use crate::harness::{Haft, Run, Server};

/// The longest time that a page may take, in seconds.
const TIME_LIMIT: &str = "100";
const PRELUDE: &str = include_str!("prelude.sh");

/// A page to run.
pub(crate) struct Page<'a> {
    /// Its path in the repository.
    pub(crate) path: &'a str,
    /// Commands that create the prerequisites of the page.
    pub(crate) given: &'a str,
    /// The expected output of the page, in this order.
    pub(crate) prints: &'a [&'a str],
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs every block of a page in a folder of its own; all must succeed and print the expected output.
pub(crate) fn run(page: &Page<'_>) {
    let text = std::fs::read_to_string(root().join(page.path)).unwrap();
    let session = Session::start();
    let run = session.run(page.path, &text, page.given);
    assert_eq!(run.code, 0, "{}", run.shown());
    let mut rest = run.stdout.as_str();
    for part in page.prints {
        let found = rest.split_once(part);
        assert!(found.is_some(), "no {part} in {}", run.shown());
        rest = found.unwrap().1;
    }
    if text.contains("export HAFT_HOME=") {
        let calls = command(&session.haft, &["--json", "call", "list"]).output().unwrap();
        let calls: Value = serde_json::from_slice(&calls.stdout).unwrap();
        let expected = json!([]);
        assert_eq!(calls.get("calls"), Some(&expected), "{} has a server of its own", page.path);
    }
}

/// A reader with a folder, a home folder and a running server.
struct Session {
    haft: Haft,
    server: Server,
}

impl Session {
    fn start() -> Self {
        let haft = Haft::without_home();
        for folder in ["user", "tmp"] {
            std::fs::create_dir(haft.path(folder)).unwrap();
        }
        haft.write("work/README.md", "");
        copy(&root().join("examples"), &haft.path("work/examples"));
        let server = Haft::started(command(&haft, &["serve", "--addr", "127.0.0.1:0", "--json"]));
        Self { haft, server }
    }

    /// Runs the blocks of a page.
    fn run(&self, path: &str, text: &str, given: &str) -> Run {
        let haft = &self.haft;
        let port = self.server.url.rsplit(':').next().unwrap().to_owned();
        let script = script(haft, text, &[("18789", port), ("18790", free_port())]);
        let script = haft.write(path, &script);
        haft.write("prelude.sh", &[PRELUDE, given].join("\n"));
        // Bash reads the file in `BASH_ENV` before a script.
        let bash_command =
            format!("BASH_ENV=\"$PRELUDE\" exec timeout --kill-after 5 {TIME_LIMIT} bash \"$SCRIPT\"");
        let binary = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
        let mut bash = haft.shell();
        bash.args(["-c", &bash_command])
            .env_remove("HAFT_HOME")
            .env_remove("HAFT_BUILT_INS_ENABLED")
            .env("HOME", haft.path("user"))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", binary.display()))
            .envs([("PAGE", path), ("SCRIPT", script.as_str()), ("USER", "reader")])
            .env("TMPDIR", haft.path("tmp"))
            .env("PRELUDE", haft.path("prelude.sh"))
            .env("WORK", haft.path("work"))
            .stdin(Stdio::null());
        haft.finish(bash.output().unwrap())
    }
}

/// Prepares the binary with the default home folder and the default settings.
fn command(haft: &Haft, arguments: &[&str]) -> Command {
    let mut command = haft.command(arguments);
    command.env_remove("HAFT_HOME").env_remove("HAFT_BUILT_INS_ENABLED").env("HOME", haft.path("user"));
    command
}

fn free_port() -> String {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    taken.local_addr().unwrap().port().to_string()
}

/// Returns the script of a page. It has the lines of the page, so that bash names them: commands stay, the fence of a file
/// saves it, everything else is empty.
fn script(haft: &Haft, text: &str, ports: &[(&str, String)]) -> String {
    let mut lines = vec![String::new(); text.lines().count() + 1];
    for block in blocks(text) {
        let content = ports.iter().fold(block.text.clone(), |text, (from, to)| text.replace(from, to));
        match block.purpose().unwrap() {
            Purpose::Run => {
                for (line, command) in lines.iter_mut().skip(block.line).zip(content.lines()) {
                    command.clone_into(line);
                }
            }
            Purpose::Save(name) => {
                let source = haft.write(&format!("blocks/{}", block.line), &content);
                *lines.get_mut(block.line - 1).unwrap() = format!("save '{source}' '{name}'");
            }
            Purpose::Look | Purpose::Marked(_) => {}
        }
    }
    lines.join("\n")
}

/// Copies a folder without build output.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            std::fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "target" {
            copy(&entry.path(), &target);
        }
    }
}

#[test]
fn a_page_that_does_not_work_names_its_line() {
    let session = Session::start();
    let cases = [
        ("# Page\n\n```sh\ntrue\nfalse\n```\n", 5, "exit status 1"),
        ("# Page\n\n```sh\necho \"$MISSING\"\n```\n", 4, "MISSING: unbound variable"),
        ("# Page\n\n```sh\ncurl -s localhost:18789/api/nothing\n```\n", 4, "exit status 22"),
        ("# Page\n\n```sh\nhaft tool call nothing\n```\n", 4, "exit status 3"),
        ("# Page\n\n```yaml\n# ~/.haft/skills/demo/a.yaml\nname: a\n```\n", 3, "`implementation`"),
        ("# Page\n\n```yaml\n# ~/.haft/agents/a.yaml\nmodle: scripted\n```\n", 3, "model"),
        ("# Page\n\n```yaml\n# policy.yaml\nrules: [{name: a}]\n```\n", 3, "effect"),
        ("# Page\n\n```toml\n# ~/.haft/haft.toml\nadr = \"x\"\n```\n", 3, "adr"),
        ("# Page\n\nIn `a.json`:\n\n```json\n{]\n```\n", 5, "exit status 1"),
    ];
    for (text, line, message) in cases {
        let run = session.run("docs/page.md", text, "");
        assert_ne!(run.code, 0, "{text}");
        assert!(run.stderr.contains(&format!("docs/page.md:{line}: ")), "{text}{}", run.shown());
        assert!(run.stderr.contains(message), "{text}{}", run.shown());
    }
}
