//! Asks a person about calls that wait for approval.

use haft_core::id::ApprovalId;
use haft_core::problem::excerpt;
use serde_json::json;

use super::lines::Lines;
use super::printer::WaitingCall;
use crate::client::{Client, Request};
use crate::error::CliError;
use crate::output::Output;

/// The longest arguments that are shown, in characters.
const MAX_SHOWN: usize = 4000;

/// Shows a call and reads the decision; `None` at the end of the input.
pub(super) async fn ask(call: &WaitingCall, lines: &mut Lines, output: &Output) -> Option<bool> {
    if !lines.is_open {
        return None;
    }
    let WaitingCall { tool, args, .. } = call;
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
pub(super) async fn decide(client: &Client, approval: ApprovalId, approved: bool) -> Result<(), CliError> {
    let step = if approved { "approve" } else { "deny" };
    let path = format!("/api/approvals/{approval}/{step}");
    client.data(Request::post(path, json!({}))).await.map(drop)
}
