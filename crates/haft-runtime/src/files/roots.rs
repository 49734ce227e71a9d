//! The named folders that file tools may use.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::problem::{Problem, excerpt};
use rustix::fs::{CWD, Mode, OFlags, mkdir, openat};
use rustix::io::Errno;
use tokio::sync::Semaphore;

use super::error::FileError;

/// How many file operations run at once: a slow disk must not use up all blocking threads.
const MAX_CONCURRENT: usize = 64;

/// A folder that file tools may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The name that definitions use.
    pub name: String,
    /// The folder; an absolute path.
    pub path: PathBuf,
    /// Whether its content must not be changed.
    pub read_only: bool,
    /// Whether the folder is created on first use.
    pub make: bool,
}

/// Invalid roots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// There is no root.
    #[error("file tools need at least one sandbox")]
    None,
    /// The name is invalid.
    #[error("invalid sandbox name `{0}`: use 1 to 64 letters, digits, `-` and `_`")]
    Name(String),
    /// Two have the same name.
    #[error("duplicate sandbox name `{0}`")]
    Twice(String),
    /// A read-only name does not exist.
    #[error("read-only sandbox `{0}` does not exist")]
    Unknown(String),
    /// The path is relative.
    #[error("the path of the sandbox `{0}` must be absolute")]
    Relative(String),
}

/// The roots of an installation.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Arc<[Root]>,
    pub(super) permits: Arc<Semaphore>,
}

impl Files {
    /// Checks the roots; the first one is the default.
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
        Ok(Self { roots: roots.into(), permits: Arc::new(Semaphore::new(MAX_CONCURRENT)) })
    }

    /// Returns the roots.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns the root with this name, or the default.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&Root, Problem> {
        let found = match name {
            None => self.roots.first(),
            Some(name) => self.roots.iter().find(|root| root.name == name),
        };
        found.ok_or_else(|| {
            let known: Vec<String> = self.roots.iter().map(|root| format!("`{}`", root.name)).collect();
            let message = format!(
                "unknown sandbox `{}`; available: {}",
                excerpt(name.unwrap_or_default(), 64),
                known.join(", ")
            );
            Problem::new("implementation.root", "unknown_root", message)
        })
    }
}

impl Root {
    /// Creates a writable root whose folder must exist.
    pub fn new(name: &str, path: PathBuf) -> Self {
        Self { name: name.to_owned(), path, read_only: false, make: false }
    }

    /// Returns the root of a tenant.
    pub(super) fn of_tenant(&self, tenant: &TenantId) -> Self {
        Self { path: tenant.own_folder(&self.path), ..self.clone() }
    }

    /// Opens the folder, and creates it first if that is allowed.
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
    fn an_unknown_root_is_reported_with_the_available_ones() {
        let files = Files::new(vec![root("work", "/a"), root("data", "/b")]).unwrap();
        assert_eq!(files.find(None).unwrap().name, "work");
        assert_eq!(files.find(Some("data")).unwrap().name, "data");
        insta::assert_snapshot!(files.find(Some("x")).unwrap_err(), @r#"`implementation.root`: unknown sandbox `x`; available: `work`, `data`"#);
    }
}
