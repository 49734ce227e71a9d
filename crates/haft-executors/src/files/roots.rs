//! The named folders that file tools may use.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use haft_core::executor::CallContext;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
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

/// The name of the folder that every tenant has.
pub const WORKSPACE: &str = "workspace";

/// The roots of an installation. Each tenant has its own.
#[derive(Debug, Clone)]
pub struct Files {
    /// The configured roots, which belong to the default tenant.
    roots: Arc<[Root]>,
    /// The folder below which the other tenants have their workspaces; without it they have no roots.
    tenant_folder: Option<PathBuf>,
    /// The roots of the tenants that exist.
    tenants: Arc<ArcSwap<HashMap<TenantId, Arc<[Root]>>>>,
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
        Ok(Self {
            roots: roots.into(),
            tenant_folder: None,
            tenants: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        })
    }

    /// Gives every tenant other than the default one a workspace below this folder.
    #[must_use]
    pub fn with_tenant_folder(mut self, folder: PathBuf) -> Self {
        self.tenant_folder = Some(folder);
        self
    }

    /// Sets the roots that tenants have in addition: those of the default tenant besides the configured ones, those of
    /// others besides their workspace. A root replaces one of the same name.
    pub fn set_tenants(&self, additional: impl IntoIterator<Item = (TenantId, Vec<Root>)>) {
        let tenants = additional.into_iter().map(|(tenant, added)| {
            let mut roots = self.initial_roots(&tenant);
            roots.retain(|root| added.iter().all(|other| other.name != root.name));
            roots.extend(added);
            (tenant, roots.into())
        });
        self.tenants.store(Arc::new(tenants.collect()));
    }

    /// Returns the roots of a tenant; the first one is the default.
    pub fn roots(&self, tenant: &TenantId) -> Arc<[Root]> {
        match self.tenants.load().get(tenant) {
            Some(roots) => Arc::clone(roots),
            None => self.initial_roots(tenant).into(),
        }
    }

    /// Returns whether some tenant has a root with this name.
    pub fn contains(&self, name: &str) -> bool {
        let is_named = |roots: &[Root]| roots.iter().any(|root| root.name == name);
        is_named(&self.roots) || self.tenants.load().values().any(|roots| is_named(roots))
    }

    /// Returns the roots that a tenant has without further settings.
    fn initial_roots(&self, tenant: &TenantId) -> Vec<Root> {
        if tenant.is_default() {
            return self.roots.to_vec();
        }
        let workspace =
            |folder: &PathBuf| Root { make: true, ..Root::new(WORKSPACE, folder.join(tenant.as_str())) };
        self.tenant_folder.iter().map(workspace).collect()
    }

    /// Returns the root of a tenant with this name, or its default one.
    fn find(&self, tenant: &TenantId, name: Option<&str>) -> Result<Root, Problem> {
        let roots = self.roots(tenant);
        select(&roots, name).cloned().ok_or_else(|| unknown(name, &roots))
    }

    /// Returns the root of a call: its workspace, unless the tool names another root.
    pub(super) fn of_call(&self, call: &CallContext, name: Option<&str>) -> Result<Root, CallError> {
        if let Some(workspace) = &call.workspace
            && name.is_none_or(|name| name == WORKSPACE)
        {
            let root = Root::new(WORKSPACE, workspace.path.clone());
            return Ok(Root { read_only: workspace.read_only, ..root });
        }
        let found = self.find(call.tenant(), name);
        found.map_err(|problem| CallError::new(ErrorCode::NotReady, problem.to_string()))
    }

    /// Checks that some tenant has a root that fits: a definition is prepared before it is known who calls it.
    pub(super) fn check(&self, name: Option<&str>, access: Access) -> Result<Root, Problem> {
        let own = self.roots(&TenantId::default_tenant());
        let tenants = self.tenants.load();
        let candidates = std::iter::once(&own).chain(tenants.values());
        let mut found = candidates.filter_map(|roots| select(roots, name)).peekable();
        // The names of roots are not shown where tenants share the installation.
        let first =
            found.peek().copied().ok_or_else(|| unknown(name, if tenants.len() > 1 { &[] } else { &own }))?;
        let fits = |root: &&Root| access == Access::Read || !root.read_only;
        found.find(fits).cloned().ok_or_else(|| {
            let message = format!("sandbox `{}` is read-only", first.name);
            Problem::new("implementation.root", "read_only_root", message)
        })
    }
}

/// What a tool does with its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

fn select<'a>(roots: &'a [Root], name: Option<&str>) -> Option<&'a Root> {
    match name {
        None => roots.first(),
        Some(name) => roots.iter().find(|root| root.name == name),
    }
}

fn unknown(name: Option<&str>, known: &[Root]) -> Problem {
    let name = excerpt(name.unwrap_or(WORKSPACE), 64);
    let known: Vec<String> = known.iter().map(|root| format!("`{}`", root.name)).collect();
    let known = if known.is_empty() { String::new() } else { format!("; available: {}", known.join(", ")) };
    Problem::new("implementation.root", "unknown_root", format!("unknown sandbox `{name}`{known}"))
}

impl Root {
    /// Creates a writable root whose folder must exist.
    pub fn new(name: &str, path: PathBuf) -> Self {
        Self { name: name.to_owned(), path, read_only: false, make: false }
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
        let tenant = TenantId::default_tenant();
        assert_eq!(files.find(&tenant, None).unwrap().name, "work");
        assert_eq!(files.find(&tenant, Some("data")).unwrap().name, "data");
        insta::assert_snapshot!(files.find(&tenant, Some("x")).unwrap_err(), @r#"`implementation.root`: unknown sandbox `x`; available: `work`, `data`"#);
        assert_eq!(files.check(Some("x"), Access::Read), files.find(&tenant, Some("x")));
    }

    #[test]
    fn tenants_have_their_own_roots() {
        let [acme, other] = ["acme", "other"].map(|id| TenantId::new(id).unwrap());
        let files = Files::new(vec![root("work", "/a")]).unwrap();
        assert!(files.find(&acme, None).is_err(), "without a folder for tenants they have no roots");
        let files = files.with_tenant_folder(PathBuf::from("/home/files"));
        let path = |tenant: &TenantId, name: Option<&str>| files.find(tenant, name).map(|root| root.path);
        assert_eq!(path(&acme, None).unwrap(), PathBuf::from("/home/files/acme"));
        assert!(path(&acme, Some("work")).is_err());
        let data = Root { read_only: true, ..root("data", "/srv/acme") };
        files.set_tenants([
            (acme.clone(), vec![data]),
            (other.clone(), vec![root("workspace", "/srv/other")]),
        ]);
        assert_eq!(path(&acme, Some("data")).unwrap(), PathBuf::from("/srv/acme"));
        assert_eq!(path(&acme, None).unwrap(), PathBuf::from("/home/files/acme"));
        assert_eq!(path(&other, None).unwrap(), PathBuf::from("/srv/other"));
        assert!(path(&other, Some("data")).is_err());
        assert_eq!(path(&TenantId::default_tenant(), None).unwrap(), PathBuf::from("/a"));
        // A definition is valid if it works for some tenant.
        assert!(files.check(Some("data"), Access::Read).is_ok());
        let problem = files.check(Some("data"), Access::Write).unwrap_err();
        assert_eq!(problem.to_string(), "`implementation.root`: sandbox `data` is read-only");
        let problem = files.check(Some("x"), Access::Read).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "`implementation.root`: unknown sandbox `x`",
            "no names of other tenants"
        );
    }
}
