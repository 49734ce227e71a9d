//! `haft doctor`: checks the installation.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Client, Request, find_server, segment};
use crate::config::Resolved;
use crate::context::Context;
use crate::error::CliError;
use crate::shell;
use crate::view;

/// With less free space than this, writes may soon fail.
const MIN_FREE_BYTES: u64 = 200 * 1024 * 1024;

/// Files with secrets, or with the arguments of calls.
const PRIVATE_FILES: [&str; 3] = ["tokens", "key", "haft.db"];

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warning,
    Failed,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: String,
    state: State,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn new(name: impl Into<String>, state: State, message: impl Into<String>) -> Self {
        Self { name: name.into(), state, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let checks = check_all(context).await?;
    let failed = checks.iter().filter(|check| check.state == State::Failed).count();
    let data = json!({"ok": failed == 0, "checks": checks});
    context.output.data(&data, |output| {
        let rows = checks.iter().map(|check| {
            let state = match check.state {
                State::Ok => "ok",
                State::Warning => "warning",
                State::Failed => "FAILED",
            };
            let hint = check.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
            vec![state.to_owned(), check.name.clone(), format!("{}{hint}", check.message)]
        });
        output.table(&["STATE", "CHECK", "RESULT"], rows.collect())
    })?;
    if failed > 0 { Err(CliError::Unhealthy { failed }) } else { Ok(()) }
}

async fn check_all(context: &Context) -> Result<Vec<Check>, CliError> {
    let home = context.home()?;
    let mut checks = Vec::new();
    let resolved = context.resolve();
    checks.extend(check_configuration(&home, &resolved));
    let home_check = check_home(&home);
    let is_usable = home_check.state != State::Failed;
    checks.push(home_check);
    if is_usable {
        checks.push(check_space(&home));
        checks.extend(PRIVATE_FILES.iter().filter_map(|name| check_private(&home.join(name))));
        checks.extend(check_toolsets(&home));
    }
    checks.push(check_server(context, &home).await);
    let remote = context.server()?.is_some();
    if remote || (is_usable && resolved.is_ok()) {
        checks.extend(check_content(context, &resolved).await);
    }
    Ok(checks)
}

fn check_configuration(home: &Path, resolved: &Result<Resolved, CliError>) -> Vec<Check> {
    let name = "configuration";
    match resolved {
        Err(error) => {
            let check = Check::new(name, State::Failed, error.message());
            vec![match error.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }]
        }
        Ok(resolved) => {
            let file = home.join("haft.toml");
            let source = if file.exists() { file.display().to_string() } else { "defaults".to_owned() };
            let mut checks = vec![Check::new(name, State::Ok, source)];
            let warnings = resolved.warnings.iter();
            checks.extend(warnings.map(|warning| Check::new(name, State::Warning, warning)));
            checks
        }
    }
}

fn check_home(home: &Path) -> Check {
    let name = "home folder";
    let shown = home.display();
    if !home.exists() {
        return Check::new(name, State::Failed, format!("`{shown}` does not exist"))
            .hint("create it with `haft init`");
    }
    // Creating a file detects missing permissions, read-only mounts and full disks.
    match tempfile::tempfile_in(home) {
        Ok(_) => check_permissions(home),
        Err(error) => Check::new(name, State::Failed, format!("`{shown}` is not writable: {error}")),
    }
}

/// Warns if other users can access the home folder.
fn check_permissions(home: &Path) -> Check {
    let name = "home folder";
    let mode = std::fs::metadata(home).map_or(0o700, |metadata| metadata.permissions().mode()) & 0o777;
    let is_open = mode & 0o077 > 0;
    if !is_open {
        return Check::new(name, State::Ok, home.display().to_string());
    }
    let message = format!("other users can access `{}`: mode {mode:04o}", home.display());
    Check::new(name, State::Warning, message).hint(format!("run `chmod 700 {}`", quoted(home)))
}

fn quoted(path: &Path) -> String {
    shell::quote(&path.display().to_string())
}

fn check_space(home: &Path) -> Check {
    let name = "disk space";
    match rustix::fs::statvfs(home) {
        Err(error) => Check::new(name, State::Warning, format!("unknown: {error}")),
        Ok(volume) => {
            let free = volume.f_bavail.saturating_mul(volume.f_frsize);
            let message = format!("{} MiB free", free / (1024 * 1024));
            if free < MIN_FREE_BYTES {
                return Check::new(name, State::Warning, message).hint("writes may soon fail");
            }
            Check::new(name, State::Ok, message)
        }
    }
}

/// Checks that only the owner can read a file; a missing file is fine.
fn check_private(path: &Path) -> Option<Check> {
    let metadata = std::fs::metadata(path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    let name = format!("file `{}`", path.file_name().unwrap_or_default().to_string_lossy());
    let open = mode & 0o077 > 0;
    Some(if open {
        Check::new(name, State::Failed, format!("other users can read it: mode {mode:04o}"))
            .hint(format!("run `chmod 600 {}`", quoted(path)))
    } else {
        Check::new(name, State::Ok, format!("mode {mode:04o}"))
    })
}

async fn check_server(context: &Context, home: &Path) -> Check {
    let name = "server";
    if let Ok(Some(base)) = context.server() {
        return Check::new(name, State::Ok, format!("configured: {base}"));
    }
    match find_server(home).await {
        Some(base) => Check::new(name, State::Ok, format!("running at {base}")),
        None => Check::new(name, State::Ok, "not running; commands open the home folder themselves"),
    }
}

/// Checks database, sandbox, secrets and definitions through the API.
async fn check_content(context: &Context, resolved: &Result<Resolved, CliError>) -> Vec<Check> {
    let database = match resolved {
        Ok(resolved) if resolved.settings.database_url.is_some() => "database (PostgreSQL)",
        _ => "database (SQLite)",
    };
    let client = match context.client().await {
        Ok(client) => client,
        Err(error) => return vec![Check::new(database, State::Failed, error.message())],
    };
    let mut checks = match client.ready().await {
        Ok(answer) => check_ready(&answer, database, &client.location()),
        Err(error) => vec![Check::new(database, State::Failed, error.message())],
    };
    checks.extend(check_secrets(&client).await);
    checks.extend(check_definitions(&client).await);
    client.close().await;
    checks
}

/// Checks what `/readyz` reports.
fn check_ready(answer: &Value, database: &str, location: &str) -> Vec<Check> {
    let status = |name: &str| answer.get("checks").map(|checks| view::text(checks, name)).unwrap_or_default();
    let mut checks = vec![match status("store").as_str() {
        "ok" => Check::new(database, State::Ok, format!("available ({location})")),
        reason => Check::new(database, State::Failed, format!("{reason} ({location})")),
    }];
    let ledger = status("ledger");
    if ledger != "ok" {
        let check = Check::new("ledger", State::Failed, ledger);
        checks.push(check.hint("calls are rejected until they can be recorded"));
    }
    checks.extend(check_sandbox(answer));
    checks
}

/// Reports the sandbox engine and the results of its probes.
fn check_sandbox(ready: &Value) -> Vec<Check> {
    let Some(sandbox) = ready.get("sandbox") else { return Vec::new() };
    let (engine, limits) = (view::text(sandbox, "engine"), view::text(sandbox, "limits"));
    let name = format!("sandbox ({engine})");
    let probes = view::list(sandbox, "probes");
    let failed: Vec<Check> = probes
        .iter()
        .filter(|probe| !view::is(probe, "ok"))
        .map(|probe| {
            let message =
                format!("self-test `{}` failed: {}", view::text(probe, "name"), view::text(probe, "failure"));
            Check::new(&name, State::Failed, message)
                .hint("tools that need the sandbox are rejected until it works")
        })
        .collect();
    if !failed.is_empty() {
        return failed;
    }
    let passed: Vec<String> = probes.iter().map(|probe| view::text(probe, "name")).collect();
    vec![Check::new(name, State::Ok, format!("works, limits by {limits}; tested: {}", passed.join(", ")))]
}

/// Checks that the key decrypts the stored secrets; one page is enough, as they share the key.
async fn check_secrets(client: &Client) -> Option<Check> {
    let name = "secrets";
    let page = match client.data(Request::get("/api/credentials?page_size=500")).await {
        Ok(page) => page,
        Err(error) => return Some(Check::new(name, State::Failed, error.message())),
    };
    let stored = view::list(&page, "credentials");
    let undecryptable: Vec<&Value> =
        stored.iter().filter(|one| one.get("error").is_some_and(Value::is_string)).collect();
    let Some(first) = undecryptable.first() else {
        return (!stored.is_empty())
            .then(|| Check::new(name, State::Ok, format!("all {} can be decrypted", stored.len())));
    };
    let names: Vec<String> =
        undecryptable.iter().take(3).map(|one| format!("`{}`", view::text(one, "name"))).collect();
    let message = format!(
        "{} of {} cannot be decrypted ({}): {}",
        undecryptable.len(),
        stored.len(),
        names.join(", "),
        view::text(first, "error")
    );
    let hint = "restore the key, or store them again with `haft secret set NAME`";
    Some(Check::new(name, State::Failed, message).hint(hint))
}

async fn check_definitions(client: &Client) -> Vec<Check> {
    let name = "definitions";
    let (mut failed, mut warnings, mut lookups) = (Vec::new(), Vec::new(), MAX_LOOKUPS);
    let mut request = Request::get("/api/tools?include_disabled=true&page_size=500");
    let total = loop {
        let page = match client.data(request).await {
            Ok(page) => page,
            Err(error) => return vec![Check::new(name, State::Failed, error.message())],
        };
        for tool in view::list(&page, "tools") {
            if view::is(tool, "ready") {
                warnings.extend(definition_warnings(&whole_tool(client, tool, &mut lookups).await));
            } else {
                failed.push(failed_definition(tool));
            }
        }
        match page.get("next_page_token").and_then(Value::as_str) {
            Some(token) => {
                request =
                    Request::get("/api/tools?include_disabled=true&page_size=500").query("page_token", token);
            }
            None => break page.get("total").and_then(Value::as_u64).unwrap_or_default(),
        }
    };
    if failed.is_empty() {
        failed.push(Check::new(name, State::Ok, format!("all {total} ready")));
    }
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    failed.extend(warnings.into_iter().take(MAX_WARNINGS));
    if more > 0 {
        failed.push(Check::new(name, State::Warning, format!("{more} more warnings; see `haft tool list`")));
    }
    failed
}

/// The maximum number of warnings about definitions.
const MAX_WARNINGS: usize = 50;

/// The maximum number of tools that are read one by one.
const MAX_LOOKUPS: usize = 200;

/// Reads a tool of a file, because lists leave out the warnings about the text of the file and about its imports.
async fn whole_tool(client: &Client, tool: &Value, lookups: &mut usize) -> Value {
    if *lookups == 0 || view::text(tool, "path").is_empty() {
        return tool.clone();
    }
    *lookups -= 1;
    let path = format!("/api/tools/{}", segment(&view::text(tool, "id")));
    client.data(Request::get(path)).await.unwrap_or_else(|_| tool.clone())
}

fn failed_definition(tool: &Value) -> Check {
    Check::new(definition_name(tool), State::Failed, view::text(tool, "error"))
}

fn definition_warnings(tool: &Value) -> Vec<Check> {
    let warnings = view::list(tool, "warnings").iter();
    warnings
        .map(|warning| Check::new(definition_name(tool), State::Warning, view::problem(warning)))
        .collect()
}

fn definition_name(tool: &Value) -> String {
    let path = view::text(tool, "path");
    format!("definition `{}`", if path.is_empty() { view::qualified(tool) } else { path })
}

/// Warns of toolset manifests in the folders of bundles: haft does not read them yet.
fn check_toolsets(home: &Path) -> Vec<Check> {
    let bundles = std::fs::read_dir(home.join("skills")).into_iter().flatten().flatten();
    bundles
        .map(|bundle| bundle.path().join(TOOLSET_FILE))
        .filter(|path| path.is_file())
        .map(|path| {
            let shown = path.strip_prefix(home).unwrap_or(&path).display().to_string();
            Check::new(format!("toolset `{shown}`"), State::Warning, "toolset manifests are not read yet")
                .hint("define each of its tools in a file of its own")
        })
        .collect()
}

/// The manifest of a toolset.
const TOOLSET_FILE: &str = "toolset.yaml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_read_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert_eq!(check_private(&path), None);
        std::fs::write(&path, "x").unwrap();
        for (mode, state) in
            [(0o600, State::Ok), (0o400, State::Ok), (0o640, State::Failed), (0o604, State::Failed)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_private(&path).unwrap().state, state, "{mode:o}");
        }
    }

    #[test]
    fn a_missing_home_has_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let check = check_home(&folder.path().join("none"));
        assert_eq!((check.state, check.hint.as_deref()), (State::Failed, Some("create it with `haft init`")));
        for (mode, state) in [(0o700, State::Ok), (0o750, State::Warning), (0o701, State::Warning)] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let check = check_home(folder.path());
            let hint =
                (state == State::Warning).then(|| format!("run `chmod 700 {}`", folder.path().display()));
            assert_eq!((check.state, check.hint), (state, hint), "{mode:o}");
        }
    }

    #[test]
    fn failed_checks_of_a_server_have_a_reason() {
        let probes = json!([{"name": "programs start", "ok": false, "failure": "no bwrap"}]);
        let sandbox = json!({"engine": "bubblewrap", "limits": "rlimits", "probes": probes});
        let answer = json!({
            "status": "not ready", "sandbox": sandbox,
            "checks": {"store": "unavailable", "ledger": "write the call journal: full", "sandbox": "no bwrap"},
        });
        let lines: Vec<String> = check_ready(&answer, "database (SQLite)", "http://x")
            .iter()
            .map(|check| format!("{:?} {}: {}", check.state, check.name, check.message))
            .collect();
        assert_eq!(
            lines,
            [
                "Failed database (SQLite): unavailable (http://x)",
                "Failed ledger: write the call journal: full",
                "Failed sandbox (bubblewrap): self-test `programs start` failed: no bwrap",
            ]
        );
    }
}
