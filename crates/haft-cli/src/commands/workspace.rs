//! `haft workspace`: the folders that calls work in, and their states.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use haft_api::workspace::{ChangeList, FileListing, ListedFile, ManifestList, WorkspaceList, WorkspaceView};
use haft_core::workspace::{FileChangeKind, WorkspaceUse};
use haft_package::zip;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::shell::quote;
use crate::view;

/// Look at workspaces: the folders that calls work in, whose every state is kept
///
/// A workspace is named as in `haft tool call --workspace NAME`, or `chat:ID` for that of a chat.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List workspaces, or the files of one
    #[command(visible_alias = "list", after_help = examples!("haft workspace ls", "haft workspace ls report"))]
    Ls {
        /// Name of the workspace [default: list all workspaces]
        name: Option<String>,
        #[command(flatten)]
        state: State,
    },
    /// Print a file
    #[command(after_help = examples!("haft workspace cat report summary.md"))]
    Cat {
        /// Name of the workspace
        name: String,
        /// Path of the file
        path: String,
        #[command(flatten)]
        state: State,
    },
    /// Write a file
    #[command(after_help = examples!("haft workspace put report data.csv ./data.csv"))]
    Put {
        /// Name of the workspace, which is created if necessary
        name: String,
        /// Path of the file in the workspace
        path: String,
        /// The file to read
        file: PathBuf,
    },
    /// List the states of a workspace, newest first
    #[command(visible_alias = "history", after_help = examples!("haft workspace log report"))]
    Log {
        /// Name of the workspace
        name: String,
    },
    /// List the files that differ between two states
    #[command(after_help = examples!("haft workspace diff report", "haft workspace diff report FROM TO"))]
    Diff {
        /// Name of the workspace
        name: String,
        /// The state before [default: the one before the active one]
        from: Option<String>,
        /// The state after [default: the active one]
        to: Option<String>,
    },
    /// Restore an earlier state; that is a new state with the same files
    #[command(after_help = examples!("haft workspace restore report STATE"))]
    Restore {
        /// Name of the workspace
        name: String,
        /// Id of the state
        state: String,
    },
    /// Copy the files of a workspace to a folder, or to a ZIP file
    #[command(after_help = examples!("haft workspace export report ./report", "haft workspace export report report.zip"))]
    Export {
        /// Name of the workspace
        name: String,
        /// The folder to write, or a file whose name ends with `.zip`; it must not exist
        #[arg(value_name = "TARGET")]
        target: PathBuf,
        #[command(flatten)]
        state: State,
    },
    /// Delete a workspace with all its states
    #[command(visible_alias = "delete", after_help = examples!("haft workspace rm report"))]
    Rm {
        /// Name of the workspace
        name: String,
    },
}

/// Which state.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// Id of a state [default: the active one]
    #[arg(long = "state", value_name = "STATE")]
    id: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Ls { name: None, .. } => list(context).await,
        Command::Ls { name: Some(name), state } => files(&name, &state, context).await,
        Command::Cat { name, path, state } => cat(&name, &path, &state, context).await,
        Command::Put { name, path, file } => put(&name, &path, &file, context).await,
        Command::Log { name } => log(&name, context).await,
        Command::Diff { name, from, to } => diff(&name, from.as_deref(), to.as_deref(), context).await,
        Command::Restore { name, state } => restore(&name, &state, context).await,
        Command::Export { name, target, state } => export(&name, &target, &state, context).await,
        Command::Rm { name } => remove(&name, context).await,
    }
}

/// Returns the path of a workspace, or of that of a chat.
fn base(name: &str) -> String {
    match name.strip_prefix("chat:") {
        Some(id) => format!("/api/chats/{}/workspace", segment(id)),
        None => format!("/api/workspaces/{}", segment(name)),
    }
}

fn file_path(name: &str, path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(segment).collect();
    format!("{}/files/{}", base(name), segments.join("/"))
}

/// Rejects a text that is not the id of a state.
fn check_state(name: &str, state: &str) -> Result<(), CliError> {
    if state.len() == 36 && state.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Ok(());
    }
    Err(CliError::Usage {
        message: format!("`{}` is not a state", haft_core::problem::excerpt(state, 60)),
        hint: Some(format!("list the states with `haft workspace log {}`", quote(name))),
    })
}

fn listing(name: &str, state: &State) -> Request {
    Request::get(format!("{}/files", base(name))).query_some("manifest", state.id.as_deref())
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/workspaces?page_size=500")).await?;
    context.output.show(&data, |output, WorkspaceList { workspaces, .. }| {
        let rows = workspaces.into_iter().map(|workspace| {
            let WorkspaceView { name, files, bytes, modified_at, .. } = workspace;
            vec![name, files.to_string(), bytes.to_string(), view::moment(modified_at)]
        });
        output.list(&["NAME", "FILES", "BYTES", "CHANGED"], &[], rows.collect())
    })
}

async fn files(name: &str, state: &State, context: &Context) -> Result<(), CliError> {
    state.id.iter().try_for_each(|id| check_state(name, id))?;
    let data = context.request(listing(name, state)).await?;
    context.output.show(&data, |output, FileListing { files, .. }| {
        let rows = files.into_iter().map(|file| {
            let ListedFile { kind, size, path, target, .. } = file;
            vec![view::word(&kind), view::optional(size.as_ref()), path, target.unwrap_or_default()]
        });
        output.table(&["KIND", "SIZE", "PATH", "TARGET"], rows.collect())
    })
}

async fn cat(name: &str, path: &str, state: &State, context: &Context) -> Result<(), CliError> {
    state.id.iter().try_for_each(|id| check_state(name, id))?;
    let client = context.client().await?;
    let request = Request::get(file_path(name, path)).query_some("manifest", state.id.as_deref());
    let bytes = client.bytes(request).await;
    client.close().await;
    let mut output = std::io::stdout().lock();
    output.write_all(&bytes?).and_then(|()| output.flush()).map_err(CliError::io("write to stdout"))
}

async fn put(name: &str, path: &str, file: &Path, context: &Context) -> Result<(), CliError> {
    let bytes = std::fs::read(file).map_err(CliError::io(format!("read `{}`", file.display())))?;
    let body = Body::Bytes { content_type: "application/octet-stream", bytes };
    let data = context.request(Request::new(Method::PUT, file_path(name, path)).with_body(body)).await?;
    context.output.data(&data, |output| {
        output.note(&format!("wrote `{path}` to workspace `{name}`"));
        Ok(())
    })
}

async fn log(name: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("{}/manifests?page_size=100", base(name)))).await?;
    context.output.show(&data, |output, ManifestList { manifests, .. }| {
        let rows = manifests.into_iter().map(|state| {
            vec![
                state.id.to_string(),
                view::moment(state.created_at),
                state.source.as_str().to_owned(),
                state.created_by,
                state.files.to_string(),
            ]
        });
        output.list(&["STATE", "CREATED", "BY", "WHO", "FILES"], &[], rows.collect())
    })
}

async fn diff(name: &str, from: Option<&str>, to: Option<&str>, context: &Context) -> Result<(), CliError> {
    [from, to].into_iter().flatten().try_for_each(|state| check_state(name, state))?;
    let request = match from {
        Some(from) => Request::get(format!("{}/diff", base(name))).query("from", from).query_some("to", to),
        None => Request::get(format!("{}/changes", base(name))),
    };
    let data = context.request(request).await?;
    context.output.show(&data, |output, ChangeList { changes, .. }| {
        for change in changes {
            let sign = match change.change {
                FileChangeKind::Added => "+",
                FileChangeKind::Removed => "-",
                FileChangeKind::Modified => "~",
            };
            output.line(&format!("{sign} {}", change.path))?;
        }
        Ok(())
    })
}

async fn restore(name: &str, state: &str, context: &Context) -> Result<(), CliError> {
    check_state(name, state)?;
    let request = Request::post(format!("{}/restore", base(name)), json!({"manifest_id": state}));
    let data = context.request(request).await?;
    context.output.show(&data, |output, restored: WorkspaceUse| {
        output.note(&format!("restored workspace `{name}`; {} files changed", restored.changed));
        Ok(())
    })
}

async fn export(name: &str, target: &Path, state: &State, context: &Context) -> Result<(), CliError> {
    state.id.iter().try_for_each(|id| check_state(name, id))?;
    let failed = || CliError::io(format!("write `{}`", target.display()));
    let is_archive = target.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    if !is_archive {
        std::fs::create_dir(target).map_err(failed())?;
    }
    let client = context.client().await?;
    let request = Request::get(format!("{}/archive", base(name))).query_some("manifest", state.id.as_deref());
    let archive = client.bytes(request).await;
    client.close().await;
    if is_archive {
        let archive = archive?;
        let mut file = std::fs::File::create_new(target).map_err(failed())?;
        file.write_all(&archive).map_err(failed())?;
        let data = json!({"archive": target.display().to_string()});
        return context.output.data(&data, |output| {
            output.note(&format!("wrote `{}`", target.display()));
            Ok(())
        });
    }
    let unpacked = archive.and_then(|bytes| zip::unpack_into(&bytes, target).map_err(failed()));
    // An empty folder of a failed export is in the way of the next one.
    let unpacked = unpacked.inspect_err(|_| drop(std::fs::remove_dir(target)))?;
    for path in &unpacked.skipped {
        context.output.warn(&format!("`{path}` leads out of the workspace and was left out"));
    }
    let data = json!({"folder": target.display().to_string(), "files": unpacked.files});
    context.output.data(&data, |output| {
        output.note(&format!("wrote {} files to `{}`", unpacked.files, target.display()));
        Ok(())
    })
}

async fn remove(name: &str, context: &Context) -> Result<(), CliError> {
    let data: Value = context.request(Request::delete(format!("/api/workspaces/{}", segment(name)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted workspace `{name}`"));
        Ok(())
    })
}
