//! The named folders that file tools may use.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use haft_core::problem::{Problem, excerpt};
use rustix::fs::{CWD, Mode, OFlags, mkdir, openat};
use rustix::io::Errno;
use tokio::sync::Semaphore;

use super::error::FileError;

/// How many file tools run at once: a slow disk must not use up the threads that everything else needs.
const PLACES: usize = 64;

/// A folder that file tools may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The name that definitions use.
    pub name: String,
    /// The folder; an absolute path.
    pub path: PathBuf,
    /// Whether nothing in it may be changed.
    pub read_only: bool,
    /// Whether the folder is made when it is first used.
    pub make: bool,
}

/// Why roots cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// There is none.
    #[error("file tools need at least one sandbox")]
    None,
    /// The name cannot be used.
    #[error("`{0}` is not the name of a sandbox: letters, digits, `-` and `_`, at most 64")]
    Name(String),
    /// Two have the same name.
    #[error("the sandbox `{0}` is named twice")]
    Twice(String),
    /// A name that should be read-only is not there.
    #[error("`{0}` should be read-only, but no sandbox has that name")]
    Unknown(String),
    /// The path is relative.
    #[error("the path of the sandbox `{0}` has to be absolute")]
    Relative(String),
}

/// The roots of an installation, and how many calls may use them at once.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Arc<[Root]>,
    pub(super) places: Arc<Semaphore>,
}

impl Files {
    /// Checks the roots; the first one is meant where a definition names none.
    pub fn new(roots: Vec<Root>) -> Result<Self, RootsError> {
        if roots.is_empty() {
            return Err(RootsError::None);
        }
        for (index, root) in roots.iter().enumerate() {
            let letters = root.name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
            if !letters || root.name.is_empty() || root.name.chars().count() > 64 {
                return Err(RootsError::Name(excerpt(&root.name, 64)));
            }
            if roots.iter().take(index).any(|other| other.name == root.name) {
                return Err(RootsError::Twice(root.name.clone()));
            }
            if !root.path.is_absolute() {
                return Err(RootsError::Relative(root.name.clone()));
            }
        }
        Ok(Self { roots: roots.into(), places: Arc::new(Semaphore::new(PLACES)) })
    }

    /// Returns the roots.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Finds the root that a definition names.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&Root, Problem> {
        let found = match name {
            None => self.roots.first(),
            Some(name) => self.roots.iter().find(|root| root.name == name),
        };
        found.ok_or_else(|| {
            let known: Vec<String> = self.roots.iter().map(|root| format!("`{}`", root.name)).collect();
            let message = format!(
                "no sandbox is called `{}`; there are {}",
                excerpt(name.unwrap_or_default(), 64),
                known.join(", ")
            );
            Problem::new("implementation.root", "unknown_root", message)
        })
    }
}

impl Root {
    /// Makes a root that may be written and has to exist.
    pub fn new(name: &str, path: PathBuf) -> Self {
        Self { name: name.to_owned(), path, read_only: false, make: false }
    }

    /// Opens the folder, and makes it first where that is allowed.
    pub(super) fn open(&self) -> Result<OwnedFd, FileError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || openat(CWD, &self.path, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) if self.make => match mkdir(&self.path, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(errno) => Err(errno),
            },
            other => other,
        };
        opened.map_err(|source| FileError::Root { name: self.name.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str, path: &str) -> Root {
        Root::new(name, PathBuf::from(path))
    }

    #[test]
    fn roots_are_checked() {
        for (roots, expected) in [
            (vec![], Some(RootsError::None)),
            (vec![root("a", "/a"), root("b-2", "/a")], None),
            (vec![root("a b", "/a")], Some(RootsError::Name("a b".to_owned()))),
            (vec![root("", "/a")], Some(RootsError::Name(String::new()))),
            (vec![root("a", "/a"), root("a", "/b")], Some(RootsError::Twice("a".to_owned()))),
            (vec![root("a", "x/y")], Some(RootsError::Relative("a".to_owned()))),
        ] {
            assert_eq!(Files::new(roots).err(), expected);
        }
    }

    #[test]
    fn an_unknown_root_is_told_with_those_that_are_known() {
        let files = Files::new(vec![root("work", "/a"), root("data", "/b")]).unwrap();
        assert_eq!(files.find(None).unwrap().name, "work");
        assert_eq!(files.find(Some("data")).unwrap().name, "data");
        insta::assert_snapshot!(files.find(Some("x")).unwrap_err(), @r#"`implementation.root`: no sandbox is called `x`; there are `work`, `data`"#);
    }
}
