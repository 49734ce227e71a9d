//! `haft doctor`: checks the installation. The server runs the checks; those that work without one run here.

use std::path::Path;

use haft_api::installation::{Check, CheckStatus, DoctorReport};
use serde_json::{Value, json};

use crate::client::{Request, running_server};
use crate::config::Resolved;
use crate::context::Context;
use crate::engine::check_home;
use crate::error::CliError;
use crate::target::Target;
use crate::view;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let checks = check_all(context).await?;
    let failed = checks.iter().filter(|check| check.status == CheckStatus::Error).count();
    let shown: Vec<Value> = checks.iter().map(shown).collect();
    context.output.data(&json!({"ok": failed == 0, "checks": shown}), |output| {
        let rows = checks.iter().map(|check| {
            let state = match check.status {
                CheckStatus::Ok => "ok",
                CheckStatus::Warning => "warning",
                CheckStatus::Error => "FAILED",
            };
            let fix = check.fix.as_deref().map(|fix| format!("; {fix}")).unwrap_or_default();
            vec![state.to_owned(), check.name.clone(), format!("{}{fix}", check.message)]
        });
        output.table(&["STATE", "CHECK", "RESULT"], rows.collect())
    })?;
    if failed > 0 { Err(CliError::Unhealthy { failed }) } else { Ok(()) }
}

/// Returns a check as JSON, in the words that scripts know.
fn shown(check: &Check) -> Value {
    let state = match check.status {
        CheckStatus::Ok => "ok",
        CheckStatus::Warning => "warning",
        CheckStatus::Error => "failed",
    };
    let mut shown = json!({"name": check.name, "state": state, "message": check.message});
    if let (Some(fix), Some(map)) = (&check.fix, shown.as_object_mut()) {
        map.insert("hint".to_owned(), json!(fix));
    }
    shown
}

async fn check_all(context: &Context) -> Result<Vec<Check>, CliError> {
    let home = context.home()?;
    let resolved = context.resolve();
    let mut checks = check_configuration(&home, &resolved);
    let server = check_server(context, &home).await;
    let remote = context.target()?.url().is_some();
    if !remote {
        let local = check_home(&home);
        let is_usable =
            local.iter().all(|check| check.name != "home folder" || check.status != CheckStatus::Error);
        if !is_usable || resolved.is_err() {
            checks.extend(local);
            checks.push(server);
            return Ok(checks);
        }
    }
    match ask(context).await {
        Ok(mut found) => {
            // The configuration of this process is checked above.
            found.retain(|check| remote || check.name != "configuration");
            let database = found.iter().position(|check| check.name.starts_with("database "));
            found.insert(database.unwrap_or(0), server);
            checks.extend(found);
        }
        Err(error) => {
            if !remote {
                checks.extend(check_home(&home));
            }
            checks.push(server);
            checks.push(failed("installation", &error));
        }
    }
    Ok(checks)
}

/// Lets the server run its checks, or the same code in this process.
async fn ask(context: &Context) -> Result<Vec<Check>, CliError> {
    let client = context.client().await?;
    let answer = client.data(Request::get("/api/doctor")).await;
    client.close().await;
    let DoctorReport { checks, .. } = view::read(&answer?)?;
    Ok(checks)
}

fn failed(name: &str, error: &CliError) -> Check {
    let check = Check::new(name, CheckStatus::Error, error.message());
    match error.hint() {
        Some(hint) => check.with_fix(hint),
        None => check,
    }
}

fn check_configuration(home: &Path, resolved: &Result<Resolved, CliError>) -> Vec<Check> {
    let name = "configuration";
    match resolved {
        Err(error) => vec![failed(name, error)],
        Ok(resolved) => {
            let file = home.join("haft.toml");
            let source = if file.exists() { file.display().to_string() } else { "defaults".to_owned() };
            let mut checks = vec![Check::new(name, CheckStatus::Ok, source)];
            let warnings = resolved.warnings.iter();
            checks.extend(warnings.map(|warning| Check::new(name, CheckStatus::Warning, warning)));
            checks
        }
    }
}

async fn check_server(context: &Context, home: &Path) -> Check {
    let name = "server";
    match context.target() {
        Ok(Target::Server(base)) => {
            return Check::new(name, CheckStatus::Ok, format!("configured: {base}"));
        }
        Ok(target) => {
            if let Some(remote) = target.remote() {
                return Check::new(name, CheckStatus::Ok, format!("configured: {remote}"));
            }
        }
        Err(error) => return failed(name, &error),
    }
    match running_server(home).await {
        Err(error) => failed(name, &error),
        Ok(Some(base)) => Check::new(name, CheckStatus::Ok, format!("running at {base}")),
        Ok(None) => {
            Check::new(name, CheckStatus::Ok, "not running; commands open the home folder themselves")
        }
    }
}
