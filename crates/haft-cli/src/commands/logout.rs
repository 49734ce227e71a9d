//! `haft logout`: revokes the token of a stored login and forgets it.

use clap::Args;
use haft_api::token::SessionView;
use haft_core::secret::Secret;
use serde_json::json;
use url::Url;

use crate::client::{Request, connect_to, segment};
use crate::context::Context;
use crate::contexts::{Contexts, StoredContext};
use crate::error::CliError;
use crate::server_url::shown;
use crate::view;

/// Revoke the token of a login and forget it
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the context [default: the one that commands use]
    name: Option<String>,
    /// Do not revoke the token, for example because others use it, too
    #[arg(long)]
    keep_token: bool,
}

/// What became of the token.
pub(super) enum Revocation {
    /// It was revoked.
    Done,
    /// The server does not know it: it does not work any more, or it is so new that it does not work yet.
    Unknown,
    /// It is still valid, for this reason.
    Kept(String),
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let stored = match arguments.name {
        Some(name) => Contexts::load(&context.environment)?.get(&name)?.clone(),
        None => selected(context)?,
    };
    // Otherwise the context would stay, with a token that does not work any more.
    Contexts::check_writable(&context.environment)?;
    let revocation = if arguments.keep_token {
        Revocation::Kept("`--keep-token` is given".to_owned())
    } else {
        revoke(&stored.server, &stored.token).await
    };
    let mut contexts = Contexts::load_for_change(&context.environment)?;
    let StoredContext { name, server, .. } = contexts.remove(stored.name.as_str())?;
    let is_revoked = matches!(revocation, Revocation::Done | Revocation::Unknown);
    let data = json!({"context": name.as_str(), "server": shown(&server), "token_revoked": is_revoked});
    context.output.data(&data, |output| {
        output.note(&format!("logged out of {}; removed the context `{name}`", shown(&server)));
        Ok(())
    })?;
    if let Revocation::Kept(reason) = revocation {
        context.output.warn(&format!("the token stays valid: {reason}"));
    }
    Ok(())
}

fn selected(context: &Context) -> Result<StoredContext, CliError> {
    let target = context.target()?;
    target.context().cloned().ok_or_else(|| CliError::Usage {
        message: "no context is selected".to_owned(),
        hint: Some("name one of `haft context list`, as in `haft logout NAME`".to_owned()),
    })
}

/// Revokes a token. That it fails does not keep the context: a server may be gone for good.
pub(super) async fn revoke(server: &Url, token: &Secret) -> Revocation {
    match try_revoke(server, token).await {
        Ok(revocation) => revocation,
        Err(CliError::Api(error)) if error.code == "unauthorized" => Revocation::Unknown,
        Err(error) => Revocation::Kept(error.message()),
    }
}

async fn try_revoke(server: &Url, token: &Secret) -> Result<Revocation, CliError> {
    let client = connect_to(server, token)?;
    let who: SessionView = view::read(&client.data(Request::get("/api/session")).await?)?;
    let Some(id) = who.token_id else {
        let reason = "it is the admin token of the server's home folder or environment";
        return Ok(Revocation::Kept(reason.to_owned()));
    };
    client.data(Request::delete(format!("/api/tokens/{}", segment(&id.to_string())))).await?;
    Ok(Revocation::Done)
}
