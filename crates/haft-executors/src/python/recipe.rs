//! The recipe of a warm interpreter: what it serves, and its settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use haft_core::name::TenantId;
use haft_sandbox::{Bind, Command, File, Input, Level, Limits, SandboxLayout};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The program that runs in the sandbox.
const SERVER: &str = include_str!("server.py");
/// The mount point of the toolset in an isolated sandbox.
const TOOLSET: &str = "/toolset";
/// The mount point of the packages in an isolated sandbox.
const PACKAGES: &str = "/packages";
/// The CPU time limit of a server in total; each call has its own limit.
const SERVER_CPU: Duration = Duration::from_hours(1);

/// What a warm interpreter serves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// A script.
    Script {
        /// The body, before values are filled in.
        body: String,
        /// Whether the body has no placeholders.
        plain: bool,
    },
    /// The functions of a toolset.
    Toolset {
        /// The module that is imported in advance.
        module: String,
        /// The folder of the toolset.
        folder: PathBuf,
        /// The digest of the state of the folder.
        stamp: [u8; 32],
    },
    /// Syntax checks of scripts.
    Check,
}

/// Everything that distinguishes interpreters, except the tenant.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// The name in tracebacks.
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) level: Level,
    pub(super) network: bool,
    pub(super) limits: Limits,
    /// The `PATH`.
    pub(super) path: String,
    /// The container image of a cold interpreter.
    pub(super) image: Option<String>,
    /// The folder with the packages that the tool declares.
    pub(super) packages: Option<PathBuf>,
    /// The workspace in which calls run, instead of a private folder.
    pub(super) workspace: Option<Bind>,
}

impl Recipe {
    /// Returns the recipe for one call, with its digest, unless it is the same: at another level of isolation, with other
    /// packages, or in a workspace.
    pub(super) fn adapted(
        &self,
        level: Level,
        packages: Option<&Path>,
        workspace: Option<Bind>,
    ) -> Option<(Self, Digest)> {
        if self.level == level && self.packages.as_deref() == packages && self.workspace == workspace {
            return None;
        }
        let recipe = Self { level, packages: packages.map(Path::to_owned), workspace, ..self.clone() };
        let digest = recipe.digest();
        Some((recipe, digest))
    }
}

/// The hash of a recipe.
pub(super) type Digest = [u8; 32];

/// The key of a warm interpreter: different tenants, tools or settings never share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    tenant: Option<TenantId>,
    recipe: Digest,
}

impl Key {
    pub(super) fn new(tenant: Option<TenantId>, recipe: Digest) -> Self {
        Self { tenant, recipe }
    }
}

/// The mode of the program in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// Serves one call after another.
    Serve,
    /// Runs one call, whose JSON is this input.
    Once(Bytes),
}

impl Recipe {
    /// Returns the hash of the recipe. Recipes that differ in anything have different hashes.
    pub(super) fn digest(&self) -> Digest {
        // `Debug` prints every field and escapes quotes, so the text is unambiguous.
        Sha256::digest(format!("{self:?}")).into()
    }

    /// Returns the command that runs the interpreter.
    pub(super) fn command(&self, place: SandboxLayout, mode: Mode) -> Command {
        let toolset = match &self.source {
            Source::Toolset { folder, .. } => Some(Bind::read_only(folder, TOOLSET)),
            Source::Script { .. } | Source::Check => None,
        };
        let packages = self.packages.as_ref().map(|folder| Bind::read_only(folder, PACKAGES));
        let recipe = self.json(&place, toolset.as_ref(), packages.as_ref());
        let (server, recipe_file) = (place.files().join("server.py"), place.files().join("recipe.json"));
        let word = if mode == Mode::Serve { "serve" } else { "once" };
        // Isolated from the environment and user packages; no bytecode files; UTF-8.
        let mut argv: Vec<OsString> = ["python3", "-I", "-B", "-X", "utf8"].map(OsString::from).to_vec();
        argv.extend([server.into(), word.into(), recipe_file.into()]);
        let mut command = Command::new(place, argv).env("PATH", &self.path).env("LANG", "C.UTF-8");
        command.network = self.network;
        command.image.clone_from(&self.image);
        command.limits = self.limits.clone();
        command.binds.extend(toolset.into_iter().chain(packages).chain(self.workspace.clone()));
        command.files = vec![
            File { name: "server.py", content: Bytes::from_static(SERVER.as_bytes()) },
            File { name: "recipe.json", content: Bytes::from(recipe.to_string()) },
        ];
        match mode {
            Mode::Serve => {
                command.first_process = true;
                command.limits.cpu = SERVER_CPU;
                command.input = Input::Socket;
            }
            Mode::Once(call) => command.input = Input::Bytes(call),
        }
        command
    }

    fn json(&self, place: &SandboxLayout, toolset: Option<&Bind>, packages: Option<&Bind>) -> Value {
        let (body, plain) = match &self.source {
            Source::Script { body, plain } => (Some(body), *plain),
            Source::Toolset { .. } | Source::Check => (None, false),
        };
        let work = place.work().to_string_lossy();
        let mut folders = vec![work.as_ref(), "/dev/shm"];
        // Without isolation this is the folder of the host.
        if self.level == Level::Isolated {
            folders.push("/tmp");
        }
        let seen_at = |bind| place.seen_at(bind).to_string_lossy();
        let (toolset, packages) = (toolset.map(seen_at), packages.map(seen_at));
        let directory = self.workspace.as_ref().map(seen_at);
        let module = if let Source::Toolset { module, .. } = &self.source { Some(module) } else { None };
        json!({
            "name": self.name, "body": body, "plain": plain, "work": work, "directory": directory,
            "folders": folders, "toolset": toolset, "module": module, "packages": packages,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(source: Source) -> Recipe {
        let path = "/usr/bin".to_owned();
        let limits = Limits::default();
        let (name, level) = ("t".to_owned(), Level::Isolated);
        Recipe {
            name,
            source,
            level,
            network: false,
            limits,
            path,
            image: None,
            packages: None,
            workspace: None,
        }
    }

    #[test]
    fn different_recipes_and_tenants_have_different_keys() {
        let script = |body: &str, plain| Source::Script { body: body.to_owned(), plain };
        let base = recipe(script("a", true));
        let toolset =
            |stamp| Source::Toolset { module: "m".to_owned(), folder: "/x".into(), stamp: [stamp; 32] };
        let recipes = [
            base.clone(),
            recipe(script("b", true)),
            recipe(script("a", false)),
            recipe(toolset(1)),
            recipe(toolset(2)),
            recipe(Source::Check),
            Recipe { name: "u".to_owned(), ..base.clone() },
            Recipe { level: Level::Host, ..base.clone() },
            Recipe { network: true, ..base.clone() },
            Recipe { workspace: Some(Bind::writable("/a", "/workspace")), ..base.clone() },
            Recipe { workspace: Some(Bind::read_only("/a", "/workspace")), ..base.clone() },
            Recipe { limits: Limits { memory: 1, ..Limits::default() }, ..base.clone() },
            Recipe { packages: Some("/a".into()), ..base.clone() },
            Recipe { packages: Some("/b".into()), ..base.clone() },
        ];
        let tenants = ["one", "two"].map(|name| Some(TenantId::new(name).unwrap()));
        let mut keys = std::collections::HashSet::new();
        for tenant in tenants.iter().chain([&None]) {
            keys.extend(recipes.iter().map(|recipe| Key::new(tenant.clone(), recipe.digest())));
        }
        assert_eq!(keys.len(), 42);
        assert_eq!(base.digest(), base.clone().digest());
    }
}
