//! Whether python can compile a body.

use std::time::Duration;

use haft_core::problem::Problem;
use haft_sandbox::{ExitReason, Level};
use serde_json::Value;
use tokio::time::Instant;

use super::interpreters::{Job, PythonPool};
use super::recipe::{Recipe, Source};
use super::request::{Request, Wanted};
use super::server::Bounds;
use crate::process::{Account, not_checked, refused};

const BODY: &str = "implementation.body";
/// How long compiling may take.
const WITHIN: Duration = Duration::from_secs(10);

impl PythonPool {
    /// Compiles a body without running it; says where it is wrong. Where python cannot be run at all that is said:
    /// it is no fault of the body.
    pub(crate) async fn examine(&self, body: &str) -> Vec<Problem> {
        let settings = self.processes().settings();
        let recipe = Recipe {
            name: "check".to_owned(),
            source: Source::Check,
            level: Level::Isolated,
            network: false,
            limits: settings.limits.clone(),
            path: settings.path.clone(),
            image: None,
        };
        let place = match self.processes().sandbox().place(recipe.level, None) {
            Ok(place) => place,
            Err(error) => return vec![not_checked(BODY, &refused(&error))],
        };
        let wanted = Wanted::Check { body: body.to_owned() };
        let request = Request { wanted, env: Vec::new(), large: Vec::new() };
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
        let bounds = || Bounds { until: Instant::now() + WITHIN, cpu: WITHIN, output: 64 * 1024 };
        match self.run(job, bounds, &mut |_, _| {}).await {
            Ok(done) => read(done.ending, &done.result).into_iter().collect(),
            Err(error) => vec![not_checked(BODY, &error)],
        }
    }
}

/// Reads what the interpreter found.
fn read(ending: ExitReason, result: &[u8]) -> Option<Problem> {
    let told: Value = serde_json::from_slice(result).unwrap_or_default();
    let Some(problem) = told.get("problem") else {
        let message = format!("python ended while it compiled the body ({ending:?})");
        return Some(Problem::new(BODY, "syntax", message));
    };
    let message = problem.get("message")?.as_str()?;
    let number = |name: &str| problem.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    let place = match (number("line"), number("column")) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column} of the body)"),
        (Some(line), None) => format!(" (line {line} of the body)"),
        _ => String::new(),
    };
    Some(Problem::new(BODY, "syntax", format!("python: {message}{place}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_its_place() {
        let check = |result: &str, expected: Option<&str>| {
            let told = read(ExitReason::Exited(0), result.as_bytes()).map(|problem| problem.message);
            assert_eq!(told.as_deref(), expected, "{result}");
        };
        check(r#"{"problem": null}"#, None);
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
        check("", Some("python ended while it compiled the body (Exited(0))"));
    }
}
