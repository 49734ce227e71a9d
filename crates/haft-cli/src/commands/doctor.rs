//! `haft doctor`: checks the installation and says what is wrong.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Client, Request, find_server};
use crate::config::Resolved;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Below this, a write may soon fail.
const LITTLE_SPACE: u64 = 200 * 1024 * 1024;

/// Files that hold secrets, or calls with their arguments.
const PRIVATE: [&str; 3] = ["tokens", "key", "haft.db"];

/// What a check came to.
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
    if failed > 0 { Err(CliError::Unhealthy(failed)) } else { Ok(()) }
}

async fn check_all(context: &Context) -> Result<Vec<Check>, CliError> {
    let home = context.home()?;
    let mut checks = Vec::new();
    let resolved = context.resolve();
    checks.extend(check_configuration(&home, &resolved));
    let home_check = check_home(&home);
    let usable = home_check.state != State::Failed;
    checks.push(home_check);
    if usable {
        checks.push(check_space(&home));
        checks.extend(PRIVATE.iter().filter_map(|name| check_private(&home.join(name))));
    }
    checks.push(check_server(context, &home).await);
    let remote = context.server()?.is_some();
    if remote || (usable && resolved.is_ok()) {
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
            .hint("make it with `haft init`");
    }
    // Only a real attempt tells: permissions, read-only mounts, full disks.
    match tempfile::tempfile_in(home) {
        Ok(_) => check_closed(home),
        Err(error) => Check::new(name, State::Failed, format!("`{shown}` cannot be written: {error}")),
    }
}

/// Checks that nobody else looks into the home folder. Its mode is the owner's to change.
fn check_closed(home: &Path) -> Check {
    let name = "home folder";
    let mode = std::fs::metadata(home).map_or(0o700, |metadata| metadata.permissions().mode()) & 0o777;
    let is_open = mode & 0o077 > 0;
    if !is_open {
        return Check::new(name, State::Ok, home.display().to_string());
    }
    let message = format!("others may look into `{}`: mode {mode:04o}", home.display());
    Check::new(name, State::Warning, message).hint(format!("chmod 700 {}", quoted(home)))
}

/// Writes a path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '@' | '+' | ',');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn check_space(home: &Path) -> Check {
    let name = "disk space";
    match rustix::fs::statvfs(home) {
        Err(error) => Check::new(name, State::Warning, format!("cannot be measured: {error}")),
        Ok(volume) => {
            let free = volume.f_bavail.saturating_mul(volume.f_frsize);
            let message = format!("{} MiB free", free / (1024 * 1024));
            if free < LITTLE_SPACE {
                return Check::new(name, State::Warning, message).hint("writes may soon fail");
            }
            Check::new(name, State::Ok, message)
        }
    }
}

/// Checks that a file is its owner's alone; one that does not exist yet is fine.
fn check_private(path: &Path) -> Option<Check> {
    let metadata = std::fs::metadata(path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    let name = format!("file `{}`", path.file_name().unwrap_or_default().to_string_lossy());
    let open = mode & 0o077 > 0;
    Some(if open {
        Check::new(name, State::Failed, format!("others may read it: mode {mode:04o}"))
            .hint(format!("chmod 600 {}", quoted(path)))
    } else {
        Check::new(name, State::Ok, format!("mode {mode:04o}"))
    })
}

async fn check_server(context: &Context, home: &Path) -> Check {
    let name = "server";
    if let Ok(Some(base)) = context.server() {
        return Check::new(name, State::Ok, format!("named: {base}"));
    }
    match find_server(home).await {
        Some(base) => Check::new(name, State::Ok, format!("running at {base}")),
        None => Check::new(name, State::Ok, "not running; commands open the home folder themselves"),
    }
}

/// Checks what only the server or the opened home folder can tell.
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
        Ok(answer) => check_ready(&answer, database, &client.place()),
        Err(error) => vec![Check::new(database, State::Failed, error.message())],
    };
    checks.extend(check_credentials(&client).await);
    checks.extend(check_definitions(&client).await);
    client.close().await;
    checks
}

/// Says what the server needs and does not have.
fn check_ready(answer: &Value, database: &str, place: &str) -> Vec<Check> {
    let said = |name: &str| answer.get("checks").map(|checks| view::text(checks, name)).unwrap_or_default();
    let mut checks = vec![match said("store").as_str() {
        "ok" => Check::new(database, State::Ok, format!("answers, {place}")),
        why => Check::new(database, State::Failed, format!("{why}, {place}")),
    }];
    let ledger = said("ledger");
    if ledger != "ok" {
        let check = Check::new("record of calls", State::Failed, ledger);
        checks.push(check.hint("calls are refused until they can be recorded"));
    }
    checks.extend(check_sandbox(answer));
    checks
}

/// Says which engine confines tools, and what its probes found.
fn check_sandbox(ready: &Value) -> Vec<Check> {
    let Some(sandbox) = ready.get("sandbox") else { return Vec::new() };
    let (engine, limits) = (view::text(sandbox, "engine"), view::text(sandbox, "limits"));
    let name = format!("sandbox ({engine})");
    let probes = view::list(sandbox, "probes");
    let failed: Vec<Check> = probes
        .iter()
        .filter(|probe| !view::is(probe, "ok"))
        .map(|probe| {
            let message = format!("{}: {}", view::text(probe, "name"), view::text(probe, "failure"));
            Check::new(&name, State::Failed, message)
                .hint("tools that run programs are refused until it holds")
        })
        .collect();
    if !failed.is_empty() {
        return failed;
    }
    let held: Vec<String> = probes.iter().map(|probe| view::text(probe, "name")).collect();
    vec![Check::new(name, State::Ok, format!("holds, limits by {limits}: {}", held.join(", ")))]
}

/// Says whether the key opens what is stored; a page is enough, as they all have the same key.
async fn check_credentials(client: &Client) -> Option<Check> {
    let name = "credentials";
    let page = match client.data(Request::get("/api/credentials?page_size=500")).await {
        Ok(page) => page,
        Err(error) => return Some(Check::new(name, State::Failed, error.message())),
    };
    let stored = view::list(&page, "credentials");
    let shut: Vec<&Value> =
        stored.iter().filter(|one| one.get("error").is_some_and(Value::is_string)).collect();
    let Some(first) = shut.first() else {
        return (!stored.is_empty())
            .then(|| Check::new(name, State::Ok, format!("all open: {}", stored.len())));
    };
    let names: Vec<String> =
        shut.iter().take(3).map(|one| format!("`{}`", view::text(one, "name"))).collect();
    let message = format!(
        "{} of {} cannot be opened ({}): {}",
        shut.len(),
        stored.len(),
        names.join(", "),
        view::text(first, "error")
    );
    let hint = "`haft secret set NAME` stores one anew, `haft secret rm NAME` deletes it";
    Some(Check::new(name, State::Failed, message).hint(hint))
}

async fn check_definitions(client: &Client) -> Vec<Check> {
    let name = "definitions";
    let mut broken = Vec::new();
    let mut request = Request::get("/api/tools?include_disabled=true&page_size=500");
    let total = loop {
        let page = match client.data(request).await {
            Ok(page) => page,
            Err(error) => return vec![Check::new(name, State::Failed, error.message())],
        };
        let unready = view::list(&page, "tools").iter().filter(|tool| !view::is(tool, "ready"));
        broken.extend(unready.map(broken_definition));
        match page.get("next_page_token").and_then(Value::as_str) {
            Some(token) => {
                request =
                    Request::get("/api/tools?include_disabled=true&page_size=500").query("page_token", token);
            }
            None => break page.get("total").and_then(Value::as_u64).unwrap_or_default(),
        }
    };
    if broken.is_empty() {
        broken.push(Check::new(name, State::Ok, format!("all ready: {total}")));
    }
    broken
}

fn broken_definition(tool: &Value) -> Check {
    let path = view::text(tool, "path");
    let place = if path.is_empty() { view::qualified(tool) } else { path };
    Check::new(format!("definition `{place}`"), State::Failed, view::text(tool, "error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_its_owners_alone() {
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
    fn a_missing_home_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let check = check_home(&folder.path().join("none"));
        assert_eq!((check.state, check.hint.as_deref()), (State::Failed, Some("make it with `haft init`")));
        for (mode, state) in [(0o700, State::Ok), (0o750, State::Warning), (0o701, State::Warning)] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let check = check_home(folder.path());
            let hint = (state == State::Warning).then(|| format!("chmod 700 {}", folder.path().display()));
            assert_eq!((check.state, check.hint), (state, hint), "{mode:o}");
        }
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    #[test]
    fn what_a_server_lacks_is_told_with_its_reason() {
        let probes = json!([{"name": "starts a program", "ok": false, "failure": "no bwrap"}]);
        let sandbox = json!({"engine": "bubblewrap", "limits": "rlimits", "probes": probes});
        let answer = json!({
            "status": "not ready", "sandbox": sandbox,
            "checks": {"store": "not available", "ledger": "write the call journal: full", "sandbox": "no bwrap"},
        });
        let told: Vec<String> = check_ready(&answer, "database (SQLite)", "http://x")
            .iter()
            .map(|check| format!("{:?} {}: {}", check.state, check.name, check.message))
            .collect();
        assert_eq!(
            told,
            [
                "Failed database (SQLite): not available, http://x",
                "Failed record of calls: write the call journal: full",
                "Failed sandbox (bubblewrap): starts a program: no bwrap",
            ]
        );
    }
}
