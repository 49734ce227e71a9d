//! The verbs that are the same for every kind of resource: publish, deprecate, enable, disable, history, diff, restore,
//! usage, delete, undelete.

use clap::{Args, Subcommand};
use haft_api::agent::{AgentRevisionList, AgentRevisionView};
use haft_api::artifact::{ArtifactVersion, ArtifactVersionList};
use haft_api::pipeline::{PipelineRevision, PipelineRevisionList};
use haft_api::reply::Message;
use haft_api::resource::{ChangedResource, DeletedResource, ResourcePage, ResourceUsers};
use haft_api::revision::RevisionDiff;
use haft_api::usage::ResourceUsage;
use haft_core::Timestamp;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::edit_resource::{self, EditArguments};
use super::tool;
use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::{input, view};

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
    /// Edit the newest definition in $VISUAL, $EDITOR or vi
    Edit(EditArguments),
    /// Show who uses it: tools, agents, tokens, policy rules and recent callers
    Usage {
        /// Slug or id
        reference: String,
    },
    /// Restore it after its deletion, with its revisions; possible for 48 hours
    Undelete {
        /// Slug or id
        reference: String,
    },
}

/// Which resources to list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only those whose slug, name or description contains this text
    #[arg(short = 'q', long, value_name = "TEXT")]
    query: Option<String>,
    /// Only those with this status
    #[arg(long, value_parser = ["draft", "published", "deprecated", "disabled"])]
    status: Option<String>,
    /// Only those that a file of the home folder defines, or the store
    #[arg(long, value_parser = ["file", "store"])]
    source: Option<String>,
    /// Deleted ones that `undelete` restores
    #[arg(long)]
    deleted: bool,
}

/// The columns of a list, and those that `-o wide` adds.
pub(crate) struct Columns<'a> {
    pub(crate) header: &'a [&'a str],
    pub(crate) wide: &'a [&'a str],
}

/// Lists the resources of a kind; `row` has the cells of one of them.
pub(crate) async fn list<T: DeserializeOwned>(
    arguments: &ListArguments,
    kind: Kind,
    context: &Context,
    columns: Columns<'_>,
    row: impl Fn(&T, &Output) -> Vec<String>,
) -> Result<(), CliError> {
    let request = Request::get(format!("{}?page_size=500", kind.path))
        .query_some("q", arguments.query.as_deref())
        .query_some("status", arguments.status.as_deref())
        .query_some("source", arguments.source.as_deref())
        .query_some("deleted", arguments.deleted.then_some("true"));
    let data = context.request(request).await?;
    if arguments.deleted {
        return context.output.show(&data, |output, page: ResourcePage<DeletedResource>| {
            let rows = page.items.into_iter().map(|deleted| {
                let DeletedResource { id, slug, revision, status, deleted_at } = deleted;
                let status = status.as_str().to_owned();
                vec![slug, id.to_string(), revision.to_string(), status, view::moment(deleted_at)]
            });
            let column = kind.noun.to_uppercase();
            output.list(&[column.as_str(), "ID", "REVISION", "STATUS", "DELETED"], &[], rows.collect())
        });
    }
    context.output.show(&data, |output, ResourcePage { items, total }: ResourcePage<T>| {
        let rows = items.iter().map(|item| row(item, output)).collect();
        output.list(columns.header, columns.wide, rows)?;
        if total > items.len() {
            output.note(&format!("\n{} of {total} {}; `--query` finds others", items.len(), kind.plural));
        }
        Ok(())
    })
}

/// The arguments of `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// Slug or id
    reference: String,
    /// Delete it even if others use it
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl DeleteArguments {
    /// Returns the reference of the resource to delete.
    pub(crate) fn reference(&self) -> &str {
        &self.reference
    }

    /// Asks before a deletion, unless `--yes` is set; returns whether to delete.
    pub(crate) fn confirm(&self, question: &str, context: &Context) -> Result<bool, CliError> {
        let is_confirmed = self.yes || input::confirm(question)?;
        if !is_confirmed {
            context.output.note("nothing was deleted");
        }
        Ok(is_confirmed)
    }
}

/// Where the resources of a kind are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The singular noun.
    pub(super) noun: &'static str,
    /// The plural noun.
    plural: &'static str,
    /// The path of all of them.
    pub(super) path: &'static str,
    /// The path segment of revisions.
    pub(super) revisions: &'static str,
    /// Reads a list of resources.
    read_revisions: fn(&Value) -> Result<Vec<RevisionRow>, CliError>,
}

/// A revision of any kind of resource.
#[derive(Debug)]
struct RevisionRow {
    number: u32,
    hash: String,
    created_by: Option<String>,
    created_at: Timestamp,
}

pub(crate) const AGENTS: Kind = Kind {
    noun: "agent",
    plural: "agents",
    path: "/api/agents",
    revisions: "revisions",
    read_revisions: |data| {
        let AgentRevisionList { revisions, .. } = view::read(data)?;
        let row = |revision| {
            let AgentRevisionView { number, hash, created_by, created_at, .. } = revision;
            RevisionRow { number, hash, created_by, created_at }
        };
        Ok(revisions.into_iter().map(row).collect())
    },
};
pub(crate) const PIPELINES: Kind = Kind {
    noun: "pipeline",
    plural: "pipelines",
    path: "/api/pipelines",
    revisions: "revisions",
    read_revisions: |data| {
        let PipelineRevisionList { revisions, .. } = view::read(data)?;
        let row = |revision| {
            let PipelineRevision { number, hash, created_by, created_at, .. } = revision;
            RevisionRow { number, hash, created_by: created_by.map(|name| name.to_string()), created_at }
        };
        Ok(revisions.into_iter().map(row).collect())
    },
};
pub(crate) const ARTIFACTS: Kind = Kind {
    noun: "artifact",
    plural: "artifacts",
    path: "/api/code-artifacts",
    revisions: "versions",
    read_revisions: |data| {
        let ArtifactVersionList { versions, .. } = view::read(data)?;
        let row = |version| {
            let ArtifactVersion { version: number, hash, created_by, created_at, .. } = version;
            RevisionRow { number, hash, created_by: created_by.map(|name| name.to_string()), created_at }
        };
        Ok(versions.into_iter().map(row).collect())
    },
};

/// Runs the command for a kind.
pub(crate) async fn run(command: Command, kind: Kind, context: &Context) -> Result<(), CliError> {
    let at = |reference: &str| format!("{}/{}", kind.path, segment(reference));
    let patch = |reference: &str, enabled: bool| {
        Request::new(Method::PATCH, at(reference)).with_body(Body::Json(json!({ "enabled": enabled })))
    };
    match command {
        Command::Publish { reference } => {
            let request = Request::post(format!("{}/publish", at(&reference)), json!({}));
            changed(request, context, |changed| {
                let number = view::optional(changed.published_revision.as_ref());
                format!("published revision {number} of `{}`", changed.slug)
            })
            .await
        }
        Command::Deprecate { reference } => {
            let request = Request::post(format!("{}/deprecate", at(&reference)), json!({}));
            changed(request, context, |changed| format!("deprecated `{}`", changed.slug)).await
        }
        Command::Enable { reference } => {
            let done = |changed: &ChangedResource| format!("enabled `{}`", changed.slug);
            changed(patch(&reference, true), context, done).await
        }
        Command::Disable { reference } => {
            let done = |changed: &ChangedResource| format!("disabled `{}`", changed.slug);
            changed(patch(&reference, false), context, done).await
        }
        Command::Restore { reference, revision } => {
            let path = format!("{}/{}/{revision}/restore", at(&reference), kind.revisions);
            changed(Request::post(path, json!({})), context, |changed| {
                let ChangedResource { slug, revision: newest, .. } = changed;
                format!("restored revision {revision} of `{slug}` as revision {newest}")
            })
            .await
        }
        Command::Edit(arguments) => edit_resource::run(arguments, kind, context).await,
        Command::Usage { reference } => usage(&at(&reference), context).await,
        Command::Undelete { reference } => {
            let request = Request::post(format!("{}/undelete", at(&reference)), json!({}));
            changed(request, context, |changed| format!("restored `{}`", changed.slug)).await
        }
        Command::History { reference } => history(&at(&reference), kind, context).await,
        Command::Diff { reference, from, to } => {
            let number = |number: Option<u32>| number.map(|number| number.to_string());
            let request = Request::get(format!("{}/diff", at(&reference)))
                .query_some("from", number(from).as_deref())
                .query_some("to", number(to).as_deref());
            let data = context.request(request).await?;
            context.output.show(&data, |output, diff: RevisionDiff| show_diff(output, &diff))
        }
    }
}

/// Deletes a resource. One that is in use is deleted only with `force`, which the command offers on a terminal.
pub(crate) async fn delete(
    arguments: &DeleteArguments,
    kind: Kind,
    context: &Context,
) -> Result<(), CliError> {
    let DeleteArguments { reference, force, .. } = arguments;
    if !arguments.confirm(&format!("Delete the {} `{reference}`?", kind.noun), context)? {
        return Ok(());
    }
    let request = Request::delete(format!("{}/{}", kind.path, segment(reference)));
    let data = delete_used(request, reference, *force, |request| context.request(request)).await?;
    context.output.show(&data, |output, Message { message }| {
        output.note(&message);
        Ok(())
    })
}

/// Sends a deletion. If the resource is in use, offers on a terminal to repeat it with `force`.
pub(crate) async fn delete_used<F: Future<Output = Result<Value, CliError>>>(
    request: Request,
    name: &str,
    force: bool,
    send: impl Fn(Request) -> F,
) -> Result<Value, CliError> {
    let forced = request.clone().query("force", "true");
    match send(if force { forced.clone() } else { request }).await {
        Err(CliError::Api(error)) if error.details.get("used_by").is_some() => {
            let ResourceUsers { used_by } = view::read(&error.details)?;
            let question = format!("`{name}` is in use by {}. Delete it anyway?", used_by.join(", "));
            if !input::confirm_explicitly(&question)? {
                return Err(CliError::Api(error));
            }
            send(forced).await
        }
        result => result,
    }
}

async fn usage(path: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("{path}/usage"))).await?;
    context.output.show(&data, |output, usage: ResourceUsage| {
        output.table(&["KIND", "NAME", "DETAIL"], tool::resource_rows(&usage))?;
        let unrestricted = usage.unrestricted_tokens;
        if unrestricted > 0 {
            output.note(&format!("\n{unrestricted} tokens without an allow-list may call it, too"));
        }
        Ok(())
    })
}

async fn changed(
    request: Request,
    context: &Context,
    done: impl FnOnce(&ChangedResource) -> String,
) -> Result<(), CliError> {
    let data = context.request(request).await?;
    let changed: ChangedResource = view::read(&data)?;
    for warning in &changed.warnings {
        context.output.warn(&view::problem(warning));
    }
    context.output.data(&data, |output| {
        output.note(&done(&changed));
        Ok(())
    })
}

async fn history(path: &str, kind: Kind, context: &Context) -> Result<(), CliError> {
    let newest = context.request(Request::get(path)).await?;
    let published = view::read::<ChangedResource>(&newest)?.published_revision;
    let data = context.request(Request::get(format!("{path}/{}", kind.revisions))).await?;
    context.output.data(&data, |output| {
        let rows = (kind.read_revisions)(&data)?.into_iter().map(|revision| {
            vec![
                revision.number.to_string(),
                view::moment(revision.created_at),
                revision.created_by.unwrap_or_default(),
                view::yes_no(published == Some(revision.number)),
                revision.hash.chars().take(12).collect(),
            ]
        });
        output.list(&["REVISION", "CREATED", "BY", "PUBLISHED", "HASH"], &[], rows.collect())
    })
}

/// Prints the fields in which two revisions differ.
pub(crate) fn show_diff(output: &Output, diff: &RevisionDiff) -> Result<(), CliError> {
    let RevisionDiff { from, to, changes } = diff;
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
        output.line(&format!("\n{}", change.field))?;
        side(output, '-', &change.before)?;
        side(output, '+', &change.after)?;
    }
    Ok(())
}

/// Prints one side of a change, each line with its sign; nothing for a missing value.
fn side(output: &Output, sign: char, value: &Value) -> Result<(), CliError> {
    let text = if value.is_null() { String::new() } else { view::readable(value) };
    text.lines().try_for_each(|line| output.line(&format!("  {sign} {line}")))
}
