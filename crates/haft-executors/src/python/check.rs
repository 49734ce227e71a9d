//! Checks the syntax of python scripts without running them.

use std::path::PathBuf;
use std::time::Duration;

use haft_core::problem::{MISSING_IMPORT, Problem, excerpt};
use haft_core::spec::ToolSpec;
use haft_sandbox::{ExitReason, Level};
use serde_json::Value;
use tokio::time::Instant;

use super::interpreters::{Job, PythonPool};
use super::recipe::{Recipe, Source};
use super::request::{Operation, Request};
use super::server::CallLimits;
use crate::process::{Account, not_checked, sandbox_error};

const BODY_FIELD: &str = "implementation.body";
/// The timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

impl PythonPool {
    /// Compiles a script without running it. If python cannot be run, the problem says that it was not checked.
    pub(crate) async fn examine(&self, spec: &ToolSpec, body: &str) -> Vec<Problem> {
        let has_dependencies = spec.implementation.dependencies().is_some_and(|lines| !lines.is_empty());
        let packages = if has_dependencies { self.installed_packages(spec).await } else { None };
        let are_known = !has_dependencies || packages.is_some();
        let mut problems = self.examine_with(body, packages).await;
        // Which modules the packages have is known when they are installed.
        problems.retain(|problem| are_known || problem.code != MISSING_IMPORT);
        problems
    }

    async fn examine_with(&self, body: &str, packages: Option<PathBuf>) -> Vec<Problem> {
        let settings = self.processes().settings();
        let recipe = Recipe {
            name: "check".to_owned(),
            source: Source::Check,
            level: Level::Isolated,
            network: false,
            limits: settings.limits.clone(),
            path: settings.path.clone(),
            image: None,
            workspace: None,
            packages,
        };
        let place = match self.processes().sandbox().place(recipe.level, None) {
            Ok(place) => place,
            Err(error) => return vec![not_checked(BODY_FIELD, &sandbox_error(&error))],
        };
        let operation = Operation::Check { body: body.to_owned() };
        let request = Request { operation, env: Vec::new(), large: Vec::new() };
        let digest = recipe.digest();
        let job = Job {
            tenant: None,
            account: Account::Checks,
            recipe: &recipe,
            digest,
            place,
            request,
            files: Vec::new(),
        };
        let limits =
            || CallLimits { deadline: Instant::now() + CHECK_TIMEOUT, cpu: CHECK_TIMEOUT, output: 64 * 1024 };
        match self.run(job, limits, &mut |_, _| {}).await {
            Ok(result) => parse(result.ending, &result.result),
            Err(error) => vec![not_checked(BODY_FIELD, &error)],
        }
    }
}

/// Parses the result of a check.
fn parse(ending: ExitReason, result: &[u8]) -> Vec<Problem> {
    let response: Value = serde_json::from_slice(result).unwrap_or_default();
    let Some(problem) = response.get("problem") else {
        let message = format!("python ended while compiling the script ({ending:?})");
        return vec![Problem::new(BODY_FIELD, "syntax", message)];
    };
    let missing = response.get("missing").and_then(Value::as_array).into_iter().flatten();
    let missing = missing.filter_map(Value::as_str).map(missing_import);
    syntax_error(problem).into_iter().chain(missing).collect()
}

fn missing_import(module: &str) -> Problem {
    let module = excerpt(module, 60);
    let message = format!("the module `{module}` cannot be imported; add its package to `dependencies`");
    Problem::new(BODY_FIELD, MISSING_IMPORT, message)
}

fn syntax_error(problem: &Value) -> Option<Problem> {
    let message = problem.get("message")?.as_str()?;
    let number = |name: &str| problem.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    let position = match (number("line"), number("column")) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column} of the body)"),
        (Some(line), None) => format!(" (line {line} of the body)"),
        _ => String::new(),
    };
    Some(Problem::new(BODY_FIELD, "syntax", format!("python: {message}{position}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_reported_with_its_position() {
        let check = |result: &str, expected: Option<&str>| {
            let problems = parse(ExitReason::Exited(0), result.as_bytes());
            let message = problems.first().map(|problem| problem.message.as_str());
            assert_eq!(message, expected, "{result}");
        };
        check(r#"{"problem": null}"#, None);
        check(r#"{"problem": null, "missing": []}"#, None);
        check(
            r#"{"problem": null, "missing": ["requests"]}"#,
            Some("the module `requests` cannot be imported; add its package to `dependencies`"),
        );
        check(
            r#"{"problem": {"message": "invalid syntax", "line": 2, "column": 5}}"#,
            Some("python: invalid syntax (line 2, column 5 of the body)"),
        );
        check(
            r#"{"problem": {"message": "expected ':'", "line": 2, "column": null}}"#,
            Some("python: expected ':' (line 2 of the body)"),
        );
        check(
            r#"{"problem": {"message": "MemoryError: ", "line": null, "column": null}}"#,
            Some("python: MemoryError: "),
        );
        check("", Some("python ended while compiling the script (Exited(0))"));
    }
}
