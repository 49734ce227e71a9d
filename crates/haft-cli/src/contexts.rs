//! The stored logins to servers: `contexts.toml` in the configuration folder of the user, which only the user may read.

use std::fmt;
use std::fs::TryLockError;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use haft_core::secret::Secret;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::environment::Environment;
use crate::server_url::{self, PlainHttp};

/// The name that stands for the home folder of this machine.
pub(crate) const LOCAL: &str = "local";
/// The format of the file.
const VERSION: u32 = 1;
/// The largest file.
const MAX_BYTES: u64 = 1024 * 1024;
/// The longest name.
const MAX_NAME_LENGTH: usize = 64;
/// How long a command waits for another one that changes the contexts.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The name of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContextName(String);

impl ContextName {
    /// Returns the name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a name for a text: characters that no name has become `-`, and a long text is shortened.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let name: String = text.chars().map(|c| if is_name_character(c) { c } else { '-' }).collect();
        let name: String = name.trim_start_matches(['-', '.']).chars().take(MAX_NAME_LENGTH).collect();
        name.trim_end_matches(['-', '.']).parse().ok()
    }
}

impl FromStr for ContextName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.chars().all(is_name_character);
        if !is_name || text.starts_with(['-', '.']) {
            return Err("expected 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        if text == LOCAL {
            return Err("`local` is the home folder of this machine");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ContextName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// A login to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredContext {
    /// The name.
    pub(crate) name: ContextName,
    /// The URL of the server.
    pub(crate) server: Url,
    /// The token.
    pub(crate) token: Secret,
    /// The tenant of the token, when it was stored.
    pub(crate) tenant: Option<String>,
    /// Whether the token may be sent to another machine without encryption.
    pub(crate) http: PlainHttp,
}

/// All logins, and the one that commands use.
#[derive(Debug)]
pub(crate) struct Contexts {
    path: PathBuf,
    current: Option<ContextName>,
    stored: Vec<StoredContext>,
    /// The lock file, while they are changed. On a file system without locks, it is only open.
    lock: Option<std::fs::File>,
}

/// The contexts cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextsError {
    /// There is no folder for the file.
    #[error("no folder for `contexts.toml`: `XDG_CONFIG_HOME` and `HOME` are not set")]
    NoFolder,
    /// Reading or writing failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is invalid.
    #[error("`{}` is not valid: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is invalid.
        reason: String,
    },
    /// A newer version of haft wrote the file.
    #[error("`{}` has the format {version}, but this version of haft reads {}; upgrade haft", path.display(), VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u32,
    },
    /// There is no context of this name.
    #[error("context `{0}` not found")]
    Unknown(String),
}

impl ContextsError {
    /// Returns a hint, if there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder => Some("set `HOME`, or pass `--server URL` and `--token`".to_owned()),
            Self::Invalid { path, .. } => {
                Some(format!("correct it, or delete `{}` and log in again", path.display()))
            }
            Self::Unknown(_) => {
                Some("list the contexts with `haft context list`, or log in with `haft login URL`".to_owned())
            }
            Self::Io { .. } | Self::Newer { .. } => None,
        }
    }
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default, rename = "context")]
    contexts: Vec<FileContext>,
}

/// A context as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContext {
    name: String,
    server: String,
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    insecure_http: bool,
}

/// The part of the file that every version has.
#[derive(Deserialize)]
struct Format {
    version: u32,
}

impl Contexts {
    /// Reads the contexts; a missing file has none.
    pub(crate) fn load(environment: &Environment) -> Result<Self, ContextsError> {
        let none = |path| Self { path, current: None, stored: Vec::new(), lock: None };
        let Some(path) = path(environment) else { return Ok(none(PathBuf::new())) };
        match read(&path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(none(path)),
            Err(source) => Err(ContextsError::Io { action: "read", path, source }),
        }
    }

    /// Reads the contexts to change them. Until they are dropped, other commands that change them wait, so that no change
    /// is lost.
    pub(crate) fn load_for_change(environment: &Environment) -> Result<Self, ContextsError> {
        let path = path(environment).ok_or(ContextsError::NoFolder)?;
        let lock_path = lock_path(&path);
        let lock = lock(&path, &lock_path).map_err(|source| ContextsError::Io {
            action: "lock",
            path: lock_path,
            source,
        })?;
        Ok(Self { lock: Some(lock), ..Self::load(environment)? })
    }

    fn parse(path: PathBuf, text: &str) -> Result<Self, ContextsError> {
        // Only the message: the rest quotes a line, which may be that of a token.
        let invalid = |reason: &dyn fmt::Display| ContextsError::Invalid {
            path: path.clone(),
            reason: reason.to_string(),
        };
        let Format { version } = toml::from_str(text).map_err(|error| invalid(&error.message()))?;
        if version != VERSION {
            return Err(ContextsError::Newer { path, version });
        }
        let File { current, contexts, .. } =
            toml::from_str(text).map_err(|error: toml::de::Error| invalid(&error.message()))?;
        let name = |text: &str| {
            text.parse::<ContextName>().map_err(|reason| invalid(&format!("name `{text}`: {reason}")))
        };
        let mut found: Vec<StoredContext> = Vec::new();
        for context in contexts {
            let FileContext { name: text, server, token, tenant, insecure_http } = context;
            let name = name(&text)?;
            if found.iter().any(|other| other.name == name) {
                return Err(invalid(&format!("two contexts have the name `{name}`")));
            }
            let http = if insecure_http { PlainHttp::Allowed } else { PlainHttp::Rejected };
            let server = server_url::parse_for_token(&server, http)
                .map_err(|error| invalid(&format!("context `{name}`: {}", error.message())))?;
            found.push(StoredContext { name, server, token: Secret::new(token), tenant, http });
        }
        let current = current.as_deref().map(name).transpose()?;
        Ok(Self { path, current, stored: found, lock: None })
    }

    /// Fails if the file cannot be written, so that no login is approved in vain.
    pub(crate) fn check_writable(environment: &Environment) -> Result<(), ContextsError> {
        let contexts = Self::load_for_change(environment)?;
        let checked = tempfile::NamedTempFile::new_in(folder(&target(&contexts.path)));
        checked.map(drop).map_err(|source| contexts.not_written(source))
    }

    /// Returns the contexts, in the order in which they were stored.
    pub(crate) fn all(&self) -> &[StoredContext] {
        &self.stored
    }

    /// Returns the context of a name.
    pub(crate) fn get(&self, name: &str) -> Result<&StoredContext, ContextsError> {
        let found = self.stored.iter().find(|context| context.name.as_str() == name);
        found.ok_or_else(|| ContextsError::Unknown(name.to_owned()))
    }

    /// Returns the context that commands use unless another one is named; `None` for the home folder.
    pub(crate) fn current(&self) -> Result<Option<&StoredContext>, ContextsError> {
        self.current.as_ref().map(|name| self.get(name.as_str())).transpose()
    }

    /// Stores a context under its name and makes it the current one.
    pub(crate) fn put(&mut self, context: StoredContext) -> Result<(), ContextsError> {
        self.current = Some(context.name.clone());
        match self.stored.iter_mut().find(|other| other.name == context.name) {
            Some(other) => *other = context,
            None => self.stored.push(context),
        }
        self.save()
    }

    /// Makes a context the current one; `local` is the home folder.
    pub(crate) fn select(&mut self, name: &str) -> Result<(), ContextsError> {
        self.current = if name == LOCAL { None } else { Some(self.get(name)?.name.clone()) };
        self.save()
    }

    /// Removes a context and returns it.
    pub(crate) fn remove(&mut self, name: &str) -> Result<StoredContext, ContextsError> {
        let removed = self.get(name)?.clone();
        self.stored.retain(|context| context.name != removed.name);
        if self.current.as_ref() == Some(&removed.name) {
            self.current = None;
        }
        self.save()?;
        Ok(removed)
    }

    /// Replaces the file at once, so that no reader sees a part of it.
    fn save(&self) -> Result<(), ContextsError> {
        debug_assert!(self.lock.is_some(), "a change without the lock");
        let write = || {
            let target = target(&self.path);
            let text = toml::to_string(&self.file()).map_err(std::io::Error::other)?;
            // Only its owner may read a temporary file.
            let mut file = tempfile::NamedTempFile::new_in(folder(&target))?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&target).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| self.not_written(source))
    }

    fn not_written(&self, source: std::io::Error) -> ContextsError {
        ContextsError::Io { action: "write", path: self.path.clone(), source }
    }

    fn file(&self) -> File {
        let contexts = self.stored.iter().map(|context| FileContext {
            name: context.name.to_string(),
            server: server_url::shown(&context.server).to_owned(),
            token: context.token.expose().to_owned(),
            tenant: context.tenant.clone(),
            insecure_http: context.http == PlainHttp::Allowed,
        });
        File {
            version: VERSION,
            current: self.current.as_ref().map(ToString::to_string),
            contexts: contexts.collect(),
        }
    }
}

/// Returns the path of the file. The specification of XDG ignores relative folders.
fn path(environment: &Environment) -> Option<PathBuf> {
    let configured = environment.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = configured.or_else(|| Some(Path::new(environment.get("HOME")?).join(".config")))?;
    Some(folder.join("haft/contexts.toml"))
}

/// Returns the file to lock. It is beside the one that each change replaces, which may have several links.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = target(path).into_os_string();
    name.push(".lock");
    PathBuf::from(name)
}

/// Creates the folder of the file, and locks another one: the file itself is replaced by each change. What a copy or an
/// editor has made readable for others becomes private again.
fn lock(path: &Path, lock_path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder(path))?;
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(lock_path)?;
    wait_for_lock(&file, LOCK_TIMEOUT)?;
    if let Ok(metadata) = std::fs::metadata(path)
        && metadata.permissions().mode() & 0o077 != 0
    {
        // A change replaces the file by a private one in any case.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Locks a file, if its file system has locks.
fn wait_for_lock(file: &std::fs::File, timeout: Duration) -> std::io::Result<()> {
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                std::thread::sleep(LOCK_RETRY_DELAY);
            }
            Err(TryLockError::WouldBlock) => {
                let reason = "another command keeps it locked; try again when that one has ended";
                return Err(std::io::Error::new(ErrorKind::TimedOut, reason));
            }
            Err(TryLockError::Error(error)) if is_without_locks(&error) => {
                tracing::debug!(%error, "the file system of the contexts has no locks");
                return Ok(());
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Returns whether locking failed because the file system cannot lock files, as some network file systems cannot.
fn is_without_locks(error: &std::io::Error) -> bool {
    let is_errno =
        matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS));
    is_errno || error.kind() == ErrorKind::Unsupported
}

/// Returns the file to replace: a link stays a link.
fn target(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let count = std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if count as u64 > MAX_BYTES {
        return Err(std::io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str, server: &str) -> StoredContext {
        StoredContext {
            name: name.parse().unwrap(),
            server: server_url::parse(server).unwrap(),
            token: Secret::new(format!("token-of-{name}")),
            tenant: Some("acme".to_owned()),
            http: PlainHttp::Rejected,
        }
    }

    fn parsed(text: &str) -> String {
        match Contexts::parse("/c/contexts.toml".into(), text) {
            Ok(contexts) => format!("{contexts:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn contexts_are_stored_for_their_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
        let load = || Contexts::load(&environment).unwrap();
        assert!(load().all().is_empty() && load().current().unwrap().is_none());
        let (first, second) = (context("a.test", "https://a.test"), context("b", "http://127.0.0.1:1"));
        let change = || Contexts::load_for_change(&environment).unwrap();
        change().put(first.clone()).unwrap();
        change().put(second.clone()).unwrap();
        assert_eq!(load().all(), [first.clone(), second.clone()]);
        assert_eq!(load().current().unwrap(), Some(&second));
        change().select("a.test").unwrap();
        assert_eq!(load().current().unwrap(), Some(&first));
        change().select(LOCAL).unwrap();
        assert_eq!(load().current().unwrap(), None);
        assert!(matches!(change().select("c"), Err(ContextsError::Unknown(_))));
        let changed = StoredContext { token: Secret::new("other".to_owned()), ..first.clone() };
        change().put(changed.clone()).unwrap();
        assert_eq!(load().all(), [changed.clone(), second.clone()]);
        assert_eq!(change().remove("a.test").unwrap(), changed);
        assert_eq!((load().all(), load().current().unwrap()), (&[second][..], None));
        let folder = home.path().join(".config/haft");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("contexts.toml"))), (0o700, 0o600));
        assert_eq!(mode(&folder.join("contexts.toml.lock")), 0o600);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "no temporary file is left");
        Contexts::check_writable(&environment).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let public = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(folder.join("contexts.toml"), public).unwrap();
        drop(change());
        assert_eq!(mode(&folder.join("contexts.toml")), 0o600);
        assert!(!format!("{:?}", load()).contains("token-of-"));
    }

    #[test]
    fn the_file_is_in_the_configuration_folder() {
        for (pairs, expected) in [
            ([("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")], Some("/x/haft/contexts.toml")),
            ([("XDG_CONFIG_HOME", "x"), ("HOME", "/h")], Some("/h/.config/haft/contexts.toml")),
            ([("XDG_CONFIG_HOME", ""), ("HOME", "")], None),
        ] {
            assert_eq!(path(&Environment::from(pairs)), expected.map(PathBuf::from));
        }
        let nowhere = Contexts::load_for_change(&Environment::default());
        assert!(matches!(nowhere, Err(ContextsError::NoFolder)));
        assert!(Contexts::load(&Environment::default()).unwrap().all().is_empty());
    }

    #[test]
    fn changes_at_the_same_time_are_not_lost() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let environment = &environment;
                scope.spawn(move || {
                    let stored = context(&format!("c{number}"), "https://a.test");
                    Contexts::load_for_change(environment).unwrap().put(stored).unwrap();
                });
            }
        });
        assert_eq!(Contexts::load(&environment).unwrap().all().len(), 8);
    }

    #[test]
    fn a_command_does_not_wait_for_a_lock_forever() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("contexts.toml");
        let lock_file = lock_path(&path);
        let held = lock(&path, &lock_file).unwrap();
        let other = std::fs::File::options().write(true).open(&lock_file).unwrap();
        let error = wait_for_lock(&other, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(held);
        wait_for_lock(&other, Duration::ZERO).unwrap();
    }

    #[test]
    fn only_a_file_system_without_locks_needs_none() {
        for (errno, expected) in [(Errno::NOLCK, true), (Errno::OPNOTSUPP, true), (Errno::IO, false)] {
            let error = std::io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(is_without_locks(&error), expected, "{error}");
        }
    }

    #[test]
    fn the_lock_is_beside_the_target_of_a_link() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
        let (folder, real) = (home.path().join(".config/haft"), home.path().join("real"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(&real).unwrap();
        std::fs::write(real.join("logins.toml"), "version = 1\n").unwrap();
        std::os::unix::fs::symlink(real.join("logins.toml"), folder.join("contexts.toml")).unwrap();
        let stored = context("a", "https://a.test");
        Contexts::load_for_change(&environment).unwrap().put(stored.clone()).unwrap();
        assert_eq!(Contexts::load(&environment).unwrap().all(), [stored]);
        assert!(folder.join("contexts.toml").is_symlink() && !folder.join("contexts.toml.lock").exists());
        assert!(real.join("logins.toml.lock").exists());
    }

    #[test]
    fn an_invalid_file_is_reported_without_its_token() {
        let entry = |more: &str| format!("version = 1\n[[context]]\ntoken = \"hunter2\"\n{more}");
        for (text, expected) in [
            (String::new(), "missing field `version`"),
            ("version = 2\n".to_owned(), "format 2"),
            (entry("name = \"a b\"\nserver = \"https://a.test\"\n"), "name `a b`: expected 1 to 64 letters"),
            (entry("name = \"local\"\nserver = \"https://a.test\"\n"), "`local` is the home folder"),
            (entry("name = \"a\"\nserver = \"http://a.test\"\n"), "has no encryption"),
            (entry("name = \"a\"\nserver = \"a.test\"\n"), "invalid server URL `a.test`"),
            (entry("name = \"a\"\nserver = \"https://a.test\"\nlogin = 1\n"), "unknown field `login`"),
            (entry("name = \"a\n"), "/c/contexts.toml"),
        ] {
            let shown = parsed(&text);
            assert!(shown.contains(expected) && !shown.contains("hunter2"), "{shown}");
        }
        let twice = "[[context]]\nname = \"a\"\nserver = \"https://a.test\"\ntoken = \"t\"\n".repeat(2);
        assert!(parsed(&format!("version = 1\n{twice}")).contains("two contexts have the name `a`"));
    }

    #[test]
    fn names_come_from_hosts() {
        let (long, dotted) = ("x".repeat(80), format!("{}.example", "x".repeat(63)));
        for (text, expected) in [
            ("haft.example.com", Some("haft.example.com")),
            ("[::1]", Some("1")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("local", None),
            ("", None),
            (long.as_str(), Some(&long[..64])),
            (dotted.as_str(), Some(&dotted[..63])),
        ] {
            assert_eq!(ContextName::of_text(text), expected.map(|name| name.parse().unwrap()), "{text}");
        }
        assert!("a/b".parse::<ContextName>().is_err() && "-a".parse::<ContextName>().is_err());
    }
}
