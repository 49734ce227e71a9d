//! The command that installs packages into a folder.
//!
//! The packages go into a plain folder (`--target`) that interpreters add to `sys.path`. In contrast to a virtual
//! environment it has no absolute paths inside, so it can be built under one name and used under another, in a sandbox
//! that shows it elsewhere; and it needs no `ensurepip`, which some distributions leave out.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use haft_sandbox::{Bind, Command, EngineName, File, SandboxLayout};

use super::dependencies::Needs;
use super::interpreter::Interpreter;
use super::settings::PythonSettings;
use super::wheels;

/// The folder of the packages in an environment.
pub(super) const PACKAGES: &str = "packages";
/// The folder for temporary files of the installer, on the same disk.
pub(super) const TEMPORARY: &str = "tmp";
/// The mount point of the environment while it is built.
const GUEST: &str = "/environment";
/// The file with the requirements.
const REQUIREMENTS: &str = "requirements.txt";

/// Files that say which system this is.
const SYSTEM_FILES: [&str; 3] = ["/etc/debian_version", "/etc/lsb-release", "/etc/os-release"];

/// Creates a virtual environment for `pip` alone, and runs `pip` in it.
const PIP_OF_VENV: &str = "import subprocess, sys, venv
venv.create(sys.argv[1], with_pip=True)
sys.exit(subprocess.call([sys.argv[1] + '/bin/python', '-I', '-m', 'pip', *sys.argv[2:]]))";

/// A program that installs packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Installer {
    /// The program `uv`.
    Uv(String),
    /// The module `pip` of the interpreter.
    Pip,
    /// The module `pip` of a virtual environment, which is created for it.
    PipOfVenv,
}

impl Installer {
    /// Selects the installer: `uv` is faster, and `pip` nearly always there.
    pub(super) fn select(interpreter: &Interpreter) -> Option<Self> {
        match interpreter {
            Interpreter { uv: Some(program), .. } => Some(Self::Uv(program.clone())),
            Interpreter { has_pip: true, .. } => Some(Self::Pip),
            Interpreter { has_venv: true, .. } => Some(Self::PipOfVenv),
            _ => None,
        }
    }

    /// Returns the name of the program.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Uv(_) => "uv",
            Self::Pip | Self::PipOfVenv => "pip",
        }
    }

    /// Returns the command that installs packages into an environment, which is this folder of the machine.
    pub(super) fn command(
        &self,
        place: SandboxLayout,
        folder: &Path,
        needs: &Needs,
        settings: &PythonSettings,
    ) -> Command {
        let bind = Bind::writable(folder, GUEST);
        let inside = place.seen_at(&bind).to_owned();
        let list = place.files().join(REQUIREMENTS);
        let (target, temporary) = (inside.join(PACKAGES), inside.join(TEMPORARY));
        let mut argv = self.program(&temporary);
        argv.extend(["--target".into(), target.into(), "-r".into(), list.into()]);
        if needs.requirements.has_hashes() {
            argv.push("--require-hashes".into());
        }
        if !needs.wheels.is_empty() {
            argv.extend(["--no-index".into(), "--find-links".into(), inside.join(wheels::FOLDER).into()]);
        }
        if !settings.allow_builds || !needs.wheels.is_empty() {
            argv.extend(["--only-binary".into(), ":all:".into()]);
        }
        let mut command = Command::new(place, argv)
            .env("LANG", "C.UTF-8")
            .env("HOME", &temporary)
            .env("TMPDIR", &temporary);
        command.files = vec![File { name: REQUIREMENTS, content: Bytes::from(list_of(needs, settings)) }];
        command.network = needs.wheels.is_empty();
        if command.place.engine() == EngineName::Landlock {
            // `pip` reads them to describe the system, and fails if they exist and cannot be opened.
            let present = SYSTEM_FILES.into_iter().filter(|path| Path::new(path).exists());
            command.binds.extend(present.map(|path| Bind::read_only(path, path)));
        }
        command.binds.push(bind);
        command
    }

    /// Returns the program with the options that make it independent of settings, caches and terminals.
    fn program(&self, temporary: &Path) -> Vec<OsString> {
        let mut argv: Vec<OsString> = match self {
            Self::Uv(program) => vec![program.into()],
            Self::Pip => ["python3", "-I", "-m", "pip"].map(Into::into).to_vec(),
            Self::PipOfVenv => {
                let mut argv = ["python3", "-I", "-c", PIP_OF_VENV].map(OsString::from).to_vec();
                argv.push(temporary.join("pip").into());
                argv
            }
        };
        let options: &[&str] = match self {
            Self::Uv(_) => &[
                "pip",
                "install",
                "--no-config",
                "--no-cache",
                "--no-progress",
                "--no-python-downloads",
                "--link-mode",
                "copy",
                "--compile-bytecode",
                "--python",
                "python3",
            ],
            Self::Pip | Self::PipOfVenv => &[
                "install",
                "--isolated",
                "--no-input",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "--progress-bar",
                "off",
                "--retries",
                "2",
                "--timeout",
                "15",
            ],
        };
        argv.extend(options.iter().map(Into::into));
        argv
    }
}

/// Writes the requirements file. The index is in it and not on the command line, which other users can list.
fn list_of(needs: &Needs, settings: &PythonSettings) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if let Some(url) = settings.index_url.as_ref().filter(|_| needs.wheels.is_empty()) {
        let _ = writeln!(text, "--index-url {}", url.expose());
    }
    for requirement in needs.requirements.iter() {
        let _ = writeln!(text, "{requirement}");
    }
    text
}
