//! The current state of the folder of a toolset.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::problem::Problem;
use sha2::{Digest as _, Sha256};

use super::recipe::{Digest, Recipe, Source};

/// How often a folder is checked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of files and folders in a toolset.
const MAX_FILES: usize = 20_000;

/// The folder of a toolset.
pub(super) struct Toolset {
    folder: PathBuf,
    module: String,
    /// The recipe, without the state of the folder.
    recipe: Recipe,
    current: Mutex<Option<ToolsetState>>,
}

/// A state of the folder.
#[derive(Clone)]
pub(super) struct ToolsetState {
    pub(super) recipe: Arc<Recipe>,
    pub(super) digest: Digest,
    checked_at: Instant,
}

impl Toolset {
    /// Watches a folder; the recipe is completed with each of its states.
    pub(super) fn new(folder: PathBuf, module: &str, recipe: Recipe) -> Self {
        Self { folder, module: module.to_owned(), recipe, current: Mutex::default() }
    }

    /// Returns the newest state of the folder.
    pub(super) async fn current(&self) -> io::Result<ToolsetState> {
        let known = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.checked_at.elapsed() < POLL_INTERVAL) {
            return Ok(known);
        }
        let (folder, checked_at) = (self.folder.clone(), Instant::now());
        let stamp = tokio::task::spawn_blocking(move || stamp(&folder)).await.map_err(io::Error::other)??;
        let source = Source::Toolset { module: self.module.clone(), folder: self.folder.clone(), stamp };
        let recipe = Recipe { source, ..self.recipe.clone() };
        let state = ToolsetState { digest: recipe.digest(), recipe: Arc::new(recipe), checked_at };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.clone());
        Ok(state)
    }
}

/// Returns a hash of the state of a folder: it changes with every file except compiled ones.
fn stamp(folder: &Path) -> io::Result<Digest> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut digest = Sha256::new();
    let mut pending = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(folder) = pending.pop() {
        let mut entries = std::fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            files += 1;
            if files > MAX_FILES {
                return Err(io::Error::other(format!("limit of {MAX_FILES} files exceeded")));
            }
            let (path, about) = (entry.path(), entry.metadata()?);
            if about.is_dir() {
                if entry.file_name() != "__pycache__" {
                    pending.push(path);
                }
                continue;
            }
            digest.update(path.as_os_str().as_bytes());
            let numbers = [about.size(), about.ino()];
            let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
            digest.update([0]);
            digest.update(numbers.map(u64::to_le_bytes).as_flattened());
            digest.update(times.map(i64::to_le_bytes).as_flattened());
        }
    }
    Ok(digest.finalize().into())
}

/// `module:function`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entrypoint {
    pub(super) text: String,
    pub(super) module: String,
}

impl Entrypoint {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let dotted = |text: &str| text.split('.').all(is_identifier);
        match text.split_once(':') {
            Some((module, function)) if dotted(module) && dotted(function) => {
                Ok(Self { text: text.to_owned(), module: module.to_owned() })
            }
            _ => {
                let message = "expected `module:function`, such as `tools.search:run`";
                Err(Problem::new("implementation.entrypoint", "invalid_entrypoint", message))
            }
        }
    }

    /// Checks that the folder contains the module.
    pub(super) fn check_in(&self, folder: &Path) -> Result<(), Problem> {
        let module = self.module.replace('.', "/");
        if folder.join(format!("{module}.py")).is_file() || folder.join(&module).is_dir() {
            return Ok(());
        }
        let message = format!("neither `{module}.py` nor a folder `{module}` exists beside the definition");
        Err(Problem::new("implementation.entrypoint", "missing_module", message))
    }
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|letter| letter.is_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entrypoint_is_a_module_and_a_function() {
        for good in ["tools:run", "a.b.c:Class.method", "_x:_y", "modül:fähig"] {
            assert_eq!(Entrypoint::parse(good).map(|entry| entry.text), Ok(good.to_owned()));
        }
        for bad in [
            "", ":", "tools", "tools:", ":run", "a b:c", "a:b()", "../a:b", "a..b:c", "a:b:c", "1a:b",
            "a/b:c",
        ] {
            assert!(Entrypoint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_change_of_any_file_changes_the_stamp() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        std::fs::create_dir(folder.join("inner")).unwrap();
        write("a.py", "1");
        let mut seen = vec![stamp(folder).unwrap()];
        assert_eq!(stamp(folder).unwrap(), seen[0]);
        for (name, text) in [("a.py", "22"), ("inner/b.py", ""), ("inner/b.py", "3")] {
            write(name, text);
            let now = stamp(folder).unwrap();
            assert!(!seen.contains(&now), "{name}");
            seen.push(now);
        }
        let last = stamp(folder).unwrap();
        std::fs::create_dir(folder.join("__pycache__")).unwrap();
        write("__pycache__/a.pyc", "compiled");
        assert_eq!(stamp(folder).unwrap(), last);
    }
}
