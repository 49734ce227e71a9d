//! The checks of `haft doctor` and `GET /doctor`: the home folder, the store, the sandbox, secrets and definitions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use haft_core::problem::Problem;
use haft_definition::folder::TOOLSET_FILE;
use haft_executors::secret_sources::SourceReport;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::identity::Identity;
use crate::tools::file_warnings;
use crate::viewer::Viewer;
use crate::warnings::Warnings;

/// With less free space than this, writes may soon fail.
const MIN_FREE_BYTES: u64 = 200 * 1024 * 1024;
/// Files with secrets, or with the arguments of calls.
const PRIVATE_FILES: [&str; 3] = ["tokens", "key", "haft.db"];
/// The maximum number of failed definitions, and of warnings about definitions.
const MAX_DEFINITIONS: usize = 50;
/// The maximum number of tools whose files are read.
const MAX_LOOKUPS: usize = 200;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// No problem was found.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work.
    Error,
}

/// One check of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The name of the check.
    pub name: String,
    /// The result.
    pub status: CheckStatus,
    /// The finding.
    pub message: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// Creates a check.
    pub fn new(name: impl Into<String>, status: CheckStatus, message: impl Into<String>) -> Self {
        Self { name: name.into(), status, message: message.into(), fix: None }
    }

    fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Ok, message)
    }

    fn warning(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Warning, message)
    }

    fn error(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Error, message)
    }

    /// Sets the fix.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Checks a home folder: that it is writable and private, and that the disk has room. It works without an open
/// installation.
pub fn check_home(home: &Path) -> Vec<Check> {
    let folder = check_folder(home);
    let is_usable = folder.status != CheckStatus::Error;
    let mut checks = vec![folder];
    if is_usable {
        checks.push(check_space(home));
        checks.extend(PRIVATE_FILES.iter().filter_map(|name| check_private(&home.join(name))));
        checks.extend(check_toolsets(home));
    }
    checks
}

fn check_folder(home: &Path) -> Check {
    let name = "home folder";
    let shown = home.display();
    if !home.exists() {
        return Check::error(name, format!("`{shown}` does not exist"))
            .with_fix("create it with `haft init`");
    }
    // Creating a file detects missing permissions, read-only mounts and full disks.
    match tempfile::tempfile_in(home) {
        Ok(_) => check_permissions(home),
        Err(error) => Check::error(name, format!("`{shown}` is not writable: {error}")),
    }
}

/// Warns if other users can access the home folder.
fn check_permissions(home: &Path) -> Check {
    let name = "home folder";
    let mode = std::fs::metadata(home).map_or(0o700, |metadata| metadata.permissions().mode()) & 0o777;
    let is_open = mode & 0o077 > 0;
    if !is_open {
        return Check::ok(name, home.display().to_string());
    }
    let message = format!("other users can access `{}`: mode {mode:04o}", home.display());
    Check::warning(name, message).with_fix(format!("run `chmod 700 {}`", quoted(home)))
}

/// Returns a path as one would type it in a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '@' | '+');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn check_space(home: &Path) -> Check {
    let name = "disk space";
    match rustix::fs::statvfs(home) {
        Err(error) => Check::warning(name, format!("unknown: {error}")),
        Ok(volume) => {
            let free = volume.f_bavail.saturating_mul(volume.f_frsize);
            let message = format!("{} MiB free", free / (1024 * 1024));
            if free < MIN_FREE_BYTES {
                return Check::warning(name, message).with_fix("writes may soon fail");
            }
            Check::ok(name, message)
        }
    }
}

/// Checks that only the owner can read a file; a missing file is fine.
fn check_private(path: &Path) -> Option<Check> {
    let metadata = std::fs::metadata(path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    let name = format!("file `{}`", path.file_name().unwrap_or_default().to_string_lossy());
    Some(if mode & 0o077 > 0 {
        Check::error(name, format!("other users can read it: mode {mode:04o}"))
            .with_fix(format!("run `chmod 600 {}`", quoted(path)))
    } else {
        Check::ok(name, format!("mode {mode:04o}"))
    })
}

/// Warns about toolset manifests in bundle folders, which are ignored: packages must be installed.
fn check_toolsets(home: &Path) -> Vec<Check> {
    let bundles = std::fs::read_dir(home.join("skills")).into_iter().flatten().flatten();
    bundles
        .map(|bundle| bundle.path().join(TOOLSET_FILE))
        .filter(|path| path.is_file())
        .map(|path| {
            let shown = path.strip_prefix(home).unwrap_or(&path).display().to_string();
            Check::warning(format!("toolset `{shown}`"), "a package is ignored here")
                .with_fix(format!("run `haft toolset install {}`", quoted(path.parent().unwrap_or(home))))
        })
        .collect()
}

/// Runs all checks of an installation, for an admin of a tenant. Only platform admins learn about the machine.
pub async fn check_all(app: &Context, identity: &Identity) -> Vec<Check> {
    let mut checks = Vec::new();
    if identity.is_platform_admin() {
        let warnings = app.settings().config.warnings.iter();
        checks.extend(warnings.map(|warning| Check::warning("configuration", warning)));
        let home = app.settings().home.clone();
        checks.extend(tokio::task::spawn_blocking(move || check_home(&home)).await.unwrap_or_default());
    }
    checks.push(check_store(app).await);
    checks.extend(check_ledger(app).await);
    checks.extend(check_sandbox(app).await);
    checks.extend(check_secrets(app, identity).await);
    if identity.is_platform_admin() {
        checks.extend(check_secret_sources(app).await);
    }
    checks.extend(check_definitions(app, identity).await);
    checks
}

/// Returns the name of the database engine.
pub fn store_name(app: &Context) -> &'static str {
    if app.settings().database_url.is_some() { "PostgreSQL" } else { "SQLite" }
}

async fn check_store(app: &Context) -> Check {
    let name = format!("database ({})", store_name(app));
    match app.store().ping().await {
        Ok(()) => Check::ok(name, "available"),
        Err(_) => Check::error(name, "unavailable").with_fix("see the server log"),
    }
}

async fn check_ledger(app: &Context) -> Option<Check> {
    let error = app.ledger().probe().await.err()?;
    let check = Check::error("ledger", error.with_cause());
    Some(check.with_fix("calls are rejected until they can be recorded"))
}

/// Reports the sandbox engine and the results of its probes.
async fn check_sandbox(app: &Context) -> Vec<Check> {
    let engine = app.sandbox().settings().engine;
    let name = format!("sandbox ({})", engine.as_str());
    let verdict = app.sandbox().probe_report(engine).await;
    let failed: Vec<Check> = verdict
        .probes
        .iter()
        .filter_map(|probe| Some((probe.name, probe.failure.as_ref()?)))
        .map(|(probe, failure)| {
            Check::error(&name, format!("self-test `{probe}` failed: {failure}"))
                .with_fix("tools that need the sandbox are rejected until it works")
        })
        .collect();
    if !failed.is_empty() {
        return failed;
    }
    let passed: Vec<&str> = verdict.probes.iter().map(|probe| probe.name).collect();
    let message = format!("works, limits by {}; tested: {}", app.sandbox().limiter(), passed.join(", "));
    vec![Check::ok(name, message)]
}

/// Checks that the key decrypts the stored secrets.
async fn check_secrets(app: &Context, identity: &Identity) -> Option<Check> {
    let name = "secrets";
    let stored = match app.store().vault().list(&identity.tenant).await {
        Ok(stored) => stored,
        Err(error) => return Some(Check::error(name, error.to_string())),
    };
    let undecryptable: Vec<_> =
        stored.iter().filter_map(|one| Some((&one.name, one.error.as_ref()?))).collect();
    let Some((_, first)) = undecryptable.first() else {
        return (!stored.is_empty())
            .then(|| Check::ok(name, format!("all {} can be decrypted", stored.len())));
    };
    let names: Vec<String> = undecryptable.iter().take(3).map(|(name, _)| format!("`{name}`")).collect();
    let message = format!(
        "{} of {} cannot be decrypted ({}): {first}",
        undecryptable.len(),
        stored.len(),
        names.join(", "),
    );
    let fix = "restore the key, or store them again with `haft secret set NAME`";
    Some(Check::error(name, message).with_fix(fix))
}

/// Checks that the sources of secrets outside of haft respond.
async fn check_secret_sources(app: &Context) -> Vec<Check> {
    let reports = app.secrets().sources.probe().await.into_iter();
    let checks = reports.map(|SourceReport { name, result }| {
        let name = format!("secrets of `{name}`");
        match result {
            Ok(message) => Check::ok(name, message),
            Err(error) => Check::error(name, error.to_string())
                .with_fix("tools whose secrets it has fail until it works; see `[secrets]` in `haft.toml`"),
        }
    });
    let mut checks: Vec<Check> = checks.collect();
    if app.secrets().sources.shares_vault_paths() {
        let message = "each tenant of `secrets.vault.tenants` can read the paths of all others";
        let fix = "write `path_prefix = \"tenants/{tenant}\"` below `[secrets.vault]`, and store the secrets of each tenant below that path";
        checks.push(Check::warning("paths in Vault", message).with_fix(fix));
    }
    checks
}

async fn check_definitions(app: &Context, identity: &Identity) -> Vec<Check> {
    let name = "definitions";
    let snapshot = app.registry().snapshot();
    let viewer = Viewer::new(app, identity);
    let mut collected = Warnings::new(app, identity);
    let (mut failed, mut warnings, mut lookups, mut total) = (Vec::new(), Vec::new(), MAX_LOOKUPS, 0);
    for entry in snapshot.tools(&identity.tenant).filter(|entry| viewer.lists(&snapshot, entry, true)) {
        total += 1;
        let shown = definition_name(entry.tool.path.as_deref(), &entry.tool.qualified());
        if !entry.ready() {
            failed.push(Check::error(shown, entry.fault().unwrap_or_default()));
            continue;
        }
        let mut found: Vec<Problem> = Vec::new();
        // The slow checks are for tools whose file may be unchecked.
        if entry.tool.path.is_some() && lookups > 0 {
            lookups -= 1;
            found.extend(file_warnings(app, entry).await);
            collected.examine(entry).await;
        }
        found.extend(collected.of(entry).await);
        warnings.extend(found.iter().map(|problem| Check::warning(shown.clone(), problem.to_string())));
    }
    let mut files: Vec<_> = snapshot.unreadable(&identity.tenant).collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    for file in files {
        total += 1;
        failed.push(Check::error(definition_name(Some(&file.path), &file.name), file.error.clone()));
    }
    let (store, tenant) = (app.store(), &identity.tenant);
    let mut broken = store.agents().file_errors(tenant).await.unwrap_or_default();
    broken.extend(store.pipelines().file_errors(tenant).await.unwrap_or_default());
    broken.extend(store.artifacts().file_errors(tenant).await.unwrap_or_default());
    for file in broken {
        total += 1;
        failed.push(Check::error(definition_name(Some(&file.path), ""), file.error));
    }
    if failed.is_empty() {
        failed.push(Check::ok(name, format!("all {total} ready")));
    }
    let (more_failed, more_warnings) =
        (failed.len().saturating_sub(MAX_DEFINITIONS), warnings.len().saturating_sub(MAX_DEFINITIONS));
    failed.truncate(MAX_DEFINITIONS);
    failed.extend(warnings.into_iter().take(MAX_DEFINITIONS));
    if more_failed > 0 {
        failed.push(Check::error(name, format!("{more_failed} more are not ready; see `haft tool list`")));
    }
    if more_warnings > 0 {
        failed.push(Check::warning(name, format!("{more_warnings} more warnings; see `haft tool list`")));
    }
    failed
}

fn definition_name(path: Option<&str>, qualified: &str) -> String {
    format!("definition `{}`", path.unwrap_or(qualified))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_read_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert_eq!(check_private(&path), None);
        std::fs::write(&path, "x").unwrap();
        for (mode, status) in [
            (0o600, CheckStatus::Ok),
            (0o400, CheckStatus::Ok),
            (0o640, CheckStatus::Error),
            (0o604, CheckStatus::Error),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_private(&path).unwrap().status, status, "{mode:o}");
        }
    }

    #[test]
    fn a_missing_home_has_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let checks = check_home(&folder.path().join("none"));
        let [check] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!(
            (check.status, check.fix.as_deref()),
            (CheckStatus::Error, Some("create it with `haft init`"))
        );
        for (mode, status) in
            [(0o700, CheckStatus::Ok), (0o750, CheckStatus::Warning), (0o701, CheckStatus::Warning)]
        {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let check = check_folder(folder.path());
            let fix = (status == CheckStatus::Warning)
                .then(|| format!("run `chmod 700 {}`", folder.path().display()));
            assert_eq!((check.status, check.fix), (status, fix), "{mode:o}");
        }
    }
}
