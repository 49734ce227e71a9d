//! The verbs that are the same for every kind of resource: publish, deprecate, enable, disable, history, diff, restore.

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The life cycle of a resource
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Publish the newest revision: production uses it
    Publish {
        /// Slug or id
        reference: String,
    },
    /// Deprecate it: it still works
    Deprecate {
        /// Slug or id
        reference: String,
    },
    /// Enable it
    Enable {
        /// Slug or id
        reference: String,
    },
    /// Disable it, in every mode
    Disable {
        /// Slug or id
        reference: String,
    },
    /// List the revisions, newest first
    #[command(visible_alias = "revisions")]
    History {
        /// Slug or id
        reference: String,
    },
    /// Compare two revisions
    Diff {
        /// Slug or id
        reference: String,
        /// Older revision [default: the published one, otherwise the previous one]
        #[arg(long, value_name = "REVISION")]
        from: Option<u32>,
        /// Newer revision [default: the newest one]
        #[arg(long, value_name = "REVISION")]
        to: Option<u32>,
    },
    /// Restore an earlier revision as the newest one
    Restore {
        /// Slug or id
        reference: String,
        /// Number of the revision
        revision: u32,
    },
}

/// Where the resources of a kind are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The path of all of them.
    path: &'static str,
    /// The word for their revisions in paths and answers.
    revisions: &'static str,
    /// The key of the number of a revision.
    number: &'static str,
}

pub(crate) const AGENTS: Kind = Kind { path: "/api/agents", revisions: "revisions", number: "number" };
pub(crate) const PIPELINES: Kind = Kind { path: "/api/pipelines", revisions: "revisions", number: "number" };
pub(crate) const ARTIFACTS: Kind =
    Kind { path: "/api/code-artifacts", revisions: "versions", number: "version" };

/// Runs the command for a kind.
pub(crate) async fn run(command: Command, kind: Kind, context: &Context) -> Result<(), CliError> {
    let at = |reference: &str| format!("{}/{}", kind.path, segment(reference));
    let patch = |reference: &str, enabled: bool| {
        Request::new(Method::PATCH, at(reference)).with_body(Body::Json(json!({ "enabled": enabled })))
    };
    match command {
        Command::Publish { reference } => {
            let request = Request::post(format!("{}/publish", at(&reference)), json!({}));
            changed(request, context, |data| {
                let number = view::text(data, "published_revision");
                format!("published revision {number} of `{}`", view::text(data, "slug"))
            })
            .await
        }
        Command::Deprecate { reference } => {
            let request = Request::post(format!("{}/deprecate", at(&reference)), json!({}));
            changed(request, context, |data| format!("deprecated `{}`", view::text(data, "slug"))).await
        }
        Command::Enable { reference } => {
            let done = |data: &Value| format!("enabled `{}`", view::text(data, "slug"));
            changed(patch(&reference, true), context, done).await
        }
        Command::Disable { reference } => {
            let done = |data: &Value| format!("disabled `{}`", view::text(data, "slug"));
            changed(patch(&reference, false), context, done).await
        }
        Command::Restore { reference, revision } => {
            let path = format!("{}/{}/{revision}/restore", at(&reference), kind.revisions);
            changed(Request::post(path, json!({})), context, |data| {
                let newest = view::text(data, "revision");
                format!("restored revision {revision} of `{}` as revision {newest}", view::text(data, "slug"))
            })
            .await
        }
        Command::History { reference } => history(&at(&reference), kind, context).await,
        Command::Diff { reference, from, to } => {
            let number = |number: Option<u32>| number.map(|number| number.to_string());
            let request = Request::get(format!("{}/diff", at(&reference)))
                .query_some("from", number(from).as_deref())
                .query_some("to", number(to).as_deref());
            let data = context.request(request).await?;
            context.output.data(&data, |output| show_diff(output, &data))
        }
    }
}

async fn changed(
    request: Request,
    context: &Context,
    done: impl FnOnce(&Value) -> String,
) -> Result<(), CliError> {
    let data = context.request(request).await?;
    for warning in view::list(&data, "warnings") {
        context.output.warn(&view::problem(warning));
    }
    context.output.data(&data, |output| {
        output.note(&done(&data));
        Ok(())
    })
}

async fn history(path: &str, kind: Kind, context: &Context) -> Result<(), CliError> {
    let newest = context.request(Request::get(path)).await?;
    let published = view::text(&newest, "published_revision");
    let data = context.request(Request::get(format!("{path}/{}", kind.revisions))).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, kind.revisions).iter().map(|revision| {
            let number = view::text(revision, kind.number);
            let is_published = number == published;
            vec![
                number,
                view::time(revision, "created_at"),
                view::text(revision, "created_by"),
                (if is_published { "yes" } else { "no" }).to_owned(),
                view::text(revision, "hash").chars().take(12).collect(),
            ]
        });
        output.table(&["REVISION", "CREATED", "BY", "PUBLISHED", "HASH"], rows.collect())
    })
}

/// Prints the fields in which two revisions differ.
pub(crate) fn show_diff(output: &Output, data: &Value) -> Result<(), CliError> {
    let (from, to) = (view::text(data, "from"), view::text(data, "to"));
    let changes = view::list(data, "changes");
    if changes.is_empty() {
        output.note(&if from == to {
            format!("nothing to compare: both sides are revision {from}")
        } else {
            format!("revisions {from} and {to} are identical")
        });
        return Ok(());
    }
    output.line(&format!("revision {from} to {to}"))?;
    for change in changes {
        output.line(&format!("\n{}", view::text(change, "field")))?;
        side(output, '-', change.get("before"))?;
        side(output, '+', change.get("after"))?;
    }
    Ok(())
}

/// Prints one side of a change, each line with its sign; nothing for a missing value.
fn side(output: &Output, sign: char, value: Option<&Value>) -> Result<(), CliError> {
    let text = value.filter(|value| !value.is_null()).map(view::readable).unwrap_or_default();
    text.lines().try_for_each(|line| output.line(&format!("  {sign} {line}")))
}
