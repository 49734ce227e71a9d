//! `haft key`: manages the encryption key of stored secrets.

use clap::Subcommand;
use haft_api::installation::KeyRotationView;
use serde_json::json;

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;

/// Manage the encryption key of stored secrets
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Encrypt all stored secrets with a new key, without a restart
    ///
    /// The new key is a random one in the file `key`, or the value of `HAFT_KEY_NEW` if the server has one.
    #[command(after_help = examples!("haft key rotate"))]
    Rotate,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Rotate => rotate(context).await,
    }
}

async fn rotate(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post("/api/key/rotate", json!({}))).await?;
    context.output.show(&data, |output, rotation: KeyRotationView| {
        output.note(&format!("encrypted {} secrets with the new key", rotation.credentials));
        if let Some(step) = rotation.next_step {
            output.note(&step);
        }
        Ok(())
    })
}
