//! `haft login-link`: prints a link that logs a browser in.

use haft_api::token::LoginLinkView;
use serde_json::json;

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let needs_server = client.engine().is_some();
    let data = client.data(Request::post("/api/login-links", json!({}))).await;
    client.close().await;
    let data = data?;
    context.output.show(&data, |output, link: LoginLinkView| {
        if needs_server {
            output.note("no server is running; start it with `haft serve` before you open the link");
        }
        output.note("the link works once, within ten minutes");
        output.line(&link.url)
    })
}
