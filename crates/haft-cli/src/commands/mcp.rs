//! `haft mcp`: serves the tools to the MCP client that started it, over standard input and output.
//!
//! If a server is running, this process only forwards messages to it, so that there is one writer and new tools appear
//! at once. Only messages are written to stdout.

use clap::Args;
use haft_core::name::BundleSlug;
use haft_core::secret::Secret;
use haft_server::StdioClient;
use http::StatusCode;
use http::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use tokio::io::AsyncWriteExt as _;
use url::Url;

use super::serve::stop_signal;
use crate::client::{open, pipe_client, read_response, server};
use crate::context::Context;
use crate::error::{ApiError, CliError};

/// Serve the tools to an MCP client over standard input and output
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List only the tools of one bundle
    #[arg(long, value_name = "SLUG")]
    bundle: Option<BundleSlug>,
    /// Run tools that need approval without it
    #[arg(long)]
    elevated: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    match server(context).await? {
        Some((base, token)) => forward(&arguments, base, token).await,
        None => serve(arguments, context).await,
    }
}

/// Opens the home folder and serves the client in this process.
async fn serve(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let engine = open(context).await?;
    let stop = stop_signal(|| {}).map_err(CliError::io("listen for signals"))?;
    let client = StdioClient { bundle: arguments.bundle, elevated: arguments.elevated };
    engine.serve_stdio(client, stop).await.map_err(|error| {
        CliError::Api(Box::new(ApiError::local(
            StatusCode::NOT_FOUND.as_u16(),
            "not_found",
            error.to_string(),
        )))
    })
}

/// Forwards messages between the client and the running server.
async fn forward(arguments: &Arguments, base: Url, token: Secret) -> Result<(), CliError> {
    let (mut answers, mut requests) = tokio::io::split(connect(arguments, &base, &token).await?);
    let (mut stdin, mut stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let stop = stop_signal(|| {}).map_err(CliError::io("listen for signals"))?;
    let up = async {
        tokio::io::copy(&mut stdin, &mut requests).await?;
        requests.shutdown().await
    };
    let down = tokio::io::copy(&mut answers, &mut stdout);
    tokio::pin!(down);
    let lost = |source: std::io::Error| CliError::unreachable(&base, source.into());
    tokio::select! {
        // The client closed its end; pending responses are still forwarded.
        closed = up => {
            closed.map_err(lost)?;
            let _ = down.await;
            Ok(())
        }
        ended = &mut down => match ended {
            // The client no longer reads.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(lost(error)),
            Ok(_) => Err(lost(std::io::Error::other("the server closed the connection"))),
        },
        () = stop => Ok(()),
    }
}

async fn connect(arguments: &Arguments, base: &Url, token: &Secret) -> Result<reqwest::Upgraded, CliError> {
    let failed = |error: reqwest::Error| CliError::unreachable(base, error.without_url().into());
    let bundle = arguments.bundle.as_ref().map(|slug| format!("/bundles/{slug}")).unwrap_or_default();
    let url = format!("{}/mcp{bundle}", base.as_str().trim_end_matches('/'));
    let request = pipe_client(base)?
        .get(url)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "mcp-lines")
        .header("x-haft-elevated", if arguments.elevated { "true" } else { "false" })
        .header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    let response = request.send().await.map_err(failed)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(failed)?;
        read_response(status, &body, || base.to_string())?;
        return Err(CliError::InvalidResponse { url: base.to_string(), status });
    }
    response.upgrade().await.map_err(failed)
}
