//! A sandbox on a temporary folder, and a short way to run something in it.

use haft_sandbox::{Command, EngineName, Level, Limits, ProcessResult, Sandbox, Settings};
use tempfile::TempDir;

use crate::tree::{groups_of, name_of};

/// The engines that need no service and no image.
pub(crate) const ENGINES: [EngineName; 2] = [EngineName::Bubblewrap, EngineName::Landlock];

/// The folders of a server, with something secret in them.
pub(crate) struct Rig {
    pub(crate) sandbox: Sandbox,
    pub(crate) home: TempDir,
}

impl Rig {
    pub(crate) fn new(engine: EngineName) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("haft.db"), "the server's database").unwrap();
        let settings = Settings {
            engine,
            hidden: vec![home.path().to_owned()],
            ..Settings::new(home.path().join("run"))
        };
        Self { sandbox: Sandbox::open(settings).unwrap(), home }
    }

    /// Makes a command that runs a bash script with the usual environment.
    pub(crate) fn bash(&self, level: Level, script: &str) -> Command {
        let place = self.sandbox.place(level, None).unwrap();
        Command::new(place, ["bash", "-c", script]).env("PATH", "/usr/local/bin:/usr/bin:/bin")
    }

    pub(crate) async fn run(&self, command: Command) -> ProcessResult {
        self.sandbox.run(command, &mut |_, _| {}).await.unwrap()
    }

    /// Waits until nothing of any call is on disk or in control groups.
    pub(crate) fn nothing_left(&self) {
        let left = || {
            let entries = std::fs::read_dir(self.home.path().join("run")).unwrap().flatten();
            let entries = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut left: Vec<String> = entries.filter(|name| name != "self-test").collect();
            left.extend(groups_of(&name_of(std::process::id())));
            left
        };
        let start = std::time::Instant::now();
        while !left().is_empty() {
            assert!(start.elapsed().as_secs() < 20, "{:?}", left());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub(crate) async fn isolated(&self, script: &str) -> ProcessResult {
        self.run(self.bash(Level::Isolated, script)).await
    }
}

/// Small limits, so that meeting them is quick.
pub(crate) fn small() -> Limits {
    Limits { memory: 64 << 20, processes: 16, file_size: 1 << 20, work: 4 << 20, ..Limits::default() }
}
