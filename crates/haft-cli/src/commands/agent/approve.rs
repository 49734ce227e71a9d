//! Asks a person about calls that wait for approval.

use haft_core::problem::excerpt;
use serde_json::{Value, json};

use super::lines::Lines;
use crate::client::{Client, Request, segment};
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The longest arguments that are shown, in characters.
const MAX_SHOWN: usize = 4000;

/// Shows a call and reads the decision; `None` at the end of the input.
pub(super) async fn ask(request: &Value, lines: &mut Lines, output: &Output) -> Option<bool> {
    if !lines.is_open {
        return None;
    }
    let tool = view::text(request, "tool");
    let args = request.get("args").cloned().unwrap_or_default();
    output.note(&format!("`{tool}` needs approval to run with:"));
    for line in format!("{args:#}").lines().take(200) {
        output.note(&format!("  {}", excerpt(line, MAX_SHOWN)));
    }
    loop {
        output.ask("approve? [y/n] ");
        let line = lines.next().await?;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => output.note("answer `y` to run it once, or `n` to deny it"),
        }
    }
}

/// Sends a decision.
pub(super) async fn decide(client: &Client, approval: &str, approved: bool) -> Result<(), CliError> {
    let step = if approved { "approve" } else { "deny" };
    let path = format!("/api/approvals/{}/{step}", segment(approval));
    client.data(Request::post(path, json!({}))).await.map(drop)
}
