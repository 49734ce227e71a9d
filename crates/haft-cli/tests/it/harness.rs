//! Runs the binary in a home folder of its own, away from the environment of the developer.

#![expect(clippy::unwrap_used, reason = "a harness may fail the test")]
#![expect(clippy::disallowed_methods, reason = "the binary itself is under test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A home folder with the binary.
pub(crate) struct Haft {
    folder: tempfile::TempDir,
}

/// What a run came to.
pub(crate) struct Run {
    /// The exit code.
    pub(crate) code: i32,
    /// The data.
    pub(crate) stdout: String,
    /// Everything else.
    pub(crate) stderr: String,
}

impl Haft {
    /// Makes an empty home folder.
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::DirBuilderExt as _;
        let haft = Self::without_home();
        std::fs::DirBuilder::new().mode(0o700).create(haft.home()).unwrap();
        haft
    }

    /// Names a home folder that does not exist.
    pub(crate) fn without_home() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns a path beside the home folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file beside the home folder and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Prepares a run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command.args(arguments).env_clear().env("HAFT_HOME", self.home()).env("PATH", "/usr/bin:/bin");
        // Tests show what they make; those of the built-in tools switch them on.
        command.env("HAFT_BUILT_INS_ENABLED", "false");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Prepares a shell with the same home folder.
    pub(crate) fn shell(&self) -> Command {
        let mut command = Command::new("bash");
        command.env_clear().env("HAFT_HOME", self.home()).env("PATH", "/usr/bin:/bin");
        command.env("HAFT_BUILT_INS_ENABLED", "false");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the binary.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.finish(self.command(arguments).output().unwrap())
    }

    /// Runs the binary with a text on stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        self.finish(child.wait_with_output().unwrap())
    }

    /// Runs the binary, which must succeed, and returns its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[&["--json"], arguments].concat());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Makes what a run printed the same everywhere.
    pub(crate) fn finish(&self, output: Output) -> Run {
        let folder = self.folder.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&folder, "DIR");
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Starts a server and waits until it prints its address.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        let arguments = [&["serve", "--addr", "127.0.0.1:0", "--json"], more].concat();
        Self::started(self.command(&arguments))
    }

    /// Starts a server with settings from the environment.
    pub(crate) fn serve_with(&self, environment: &[(&str, &str)]) -> Server {
        let mut command = self.command(&["serve", "--addr", "127.0.0.1:0", "--json"]);
        command.envs(environment.iter().copied());
        Self::started(command)
    }

    /// Starts a server and waits until it prints its address, from a prepared command.
    pub(crate) fn started(mut command: Command) -> Server {
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.ends_with("}\n") {
            assert!(reader.read_line(&mut text).unwrap() > 0, "the server ended: {text}");
        }
        let startup: Value = serde_json::from_str(&text).unwrap();
        let url = startup.get("address").and_then(Value::as_str).unwrap().to_owned();
        Server { child, url, startup }
    }
}

impl Run {
    /// Returns all that a person sees.
    pub(crate) fn shown(&self) -> String {
        let Self { code, stdout, stderr } = self;
        let stdout: String = stdout.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
        format!("exit code: {code}\n----- stdout\n{stdout}----- stderr\n{stderr}")
    }
}

/// A running server, ended with the test.
pub(crate) struct Server {
    child: Child,
    /// Its address.
    pub(crate) url: String,
    /// The output at the start.
    pub(crate) startup: Value,
}

impl Server {
    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the mode of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
