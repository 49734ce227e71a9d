//! `haft apply`, `haft diff` and `haft export`: the installation as a folder in git.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_api::apply::{ApplyReport, ApplySummary, ChangeAction, PlannedChange};
use haft_api::revision::FieldChange;
use haft_core::problem::{Problem, excerpt};
use haft_package::files::PackageFiles;
use haft_package::path::PackagePath;
use haft_package::{folder, zip};
use serde_json::{Value, json};

use crate::client::{Body, Client, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Form, Output};
use crate::{input, view};

/// The folders and files of a repository that are applied. Nothing else leaves this machine.
const FOLDERS: [&str; 5] = ["bundles", "skills", "agents", "pipelines", "artifacts"];
const FILES: [&str; 3] = ["mcp-servers.yaml", "mcp.json", "policy.yaml"];
/// The longest value in a plan, in characters.
const MAX_VALUE: usize = 100;

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Folder with `bundles/`, `agents/`, `pipelines/`, `artifacts/`, `mcp-servers.yaml` and `policy.yaml`, each optional
    dir: PathBuf,
    /// Also delete tools of these bundles, agents, pipelines with their documents, artifacts and MCP servers that the
    /// folder does not have
    #[arg(long)]
    prune: bool,
    /// Let tools of toolsets that ask for it run without isolation
    #[arg(long)]
    allow_unsandboxed: bool,
}

/// What to apply.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    diff: Diff,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// What to export.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder to write to
    dir: PathBuf,
    /// Only this bundle; repeat for several [default: all, with agents, pipelines, artifacts, MCP
    /// servers and policy rules]
    #[arg(long, value_name = "ID")]
    bundle: Vec<String>,
    /// Replace bundles and files that are in the folder
    #[arg(long)]
    force: bool,
}

/// Runs `haft diff`.
pub(crate) async fn diff(arguments: Diff, context: &Context) -> Result<(), CliError> {
    let archive = pack(&arguments.dir)?;
    let data = context.request(request(&arguments, &archive).query("dry_run", "true")).await?;
    let plan: ApplyReport = view::read(&data)?;
    warn(&plan, &context.output);
    context.output.data(&data, |output| print_plan(&plan, &arguments, output))?;
    if changes(&plan) > 0 { Err(CliError::Differences) } else { Ok(()) }
}

/// Runs `haft apply`.
pub(crate) async fn apply(arguments: Apply, context: &Context) -> Result<(), CliError> {
    let archive = pack(&arguments.diff.dir)?;
    let client = context.client().await?;
    let result = run(&arguments, &archive, &client, &context.output).await;
    client.close().await;
    result
}

async fn run(arguments: &Apply, archive: &[u8], client: &Client, output: &Output) -> Result<(), CliError> {
    let Apply { diff, yes } = arguments;
    let data = client.data(request(diff, archive).query("dry_run", "true")).await?;
    let plan: ApplyReport = view::read(&data)?;
    warn(&plan, output);
    if output.form != Form::Json {
        print_plan(&plan, diff, output)?;
    }
    let count = changes(&plan);
    if count == 0 {
        return output.data(&data, |_| Ok(()));
    }
    if !yes && !input::confirm(&format!("Apply {}?", plural(count, "change")))? {
        output.note("nothing was applied");
        return Ok(());
    }
    // Exactly what was shown: another state of the installation is a conflict.
    let report = client.data(request(diff, archive).query("plan", &plan.plan)).await?;
    output.data(&report, |output| {
        output.note(&format!("applied {}", plural(count, "change")));
        Ok(())
    })
}

fn request(arguments: &Diff, archive: &[u8]) -> Request {
    let body = Body::Bytes { content_type: "application/zip", bytes: archive.to_vec() };
    let mut request = Request::post("/api/apply", Value::Null).with_body(body);
    for (name, is_set) in [("prune", arguments.prune), ("allow_unsandboxed", arguments.allow_unsandboxed)] {
        if is_set {
            request = request.query(name, "true");
        }
    }
    request
}

fn problems(problems: &[Problem]) -> CliError {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    CliError::usage(lines.join("\n"))
}

/// Packs what is applied of a folder.
fn pack(dir: &Path) -> Result<Vec<u8>, CliError> {
    if !dir.is_dir() {
        return Err(CliError::usage(format!("`{}` is not a folder", dir.display())));
    }
    let mut files = PackageFiles::new();
    for name in FOLDERS {
        if !dir.join(name).is_dir() {
            continue;
        }
        let inner = folder::read(&dir.join(name)).map_err(|found| {
            let prefixed = found
                .into_iter()
                .map(|problem| Problem { field: format!("{name}/{}", problem.field), ..problem });
            problems(&prefixed.collect::<Vec<_>>())
        })?;
        for (path, file) in inner.iter() {
            let path = format!("{name}/{path}");
            let path = PackagePath::new(&path)
                .map_err(|error| problems(&[Problem::new(&path, "unsafe_path", error.to_string())]))?;
            files.add(path, file.bytes.clone(), file.executable).map_err(|problem| problems(&[problem]))?;
        }
    }
    for name in FILES {
        let path = dir.join(name);
        if path.is_file() {
            files.put_text(name, input::read_text(&path)?).map_err(|problem| problems(&[problem]))?;
        }
    }
    if files.is_empty() {
        return Err(CliError::Usage {
            message: format!("nothing to apply in `{}`", dir.display()),
            hint: Some(
                "put definition files in `bundles/<id>/`, `agents/`, `pipelines/` or `artifacts/`, or write the installation to the folder: `haft export DIR`"
                    .to_owned(),
            ),
        });
    }
    zip::write(&files).map_err(|error| CliError::usage(error.to_string()))
}

fn warn(plan: &ApplyReport, output: &Output) {
    for warning in &plan.warnings {
        output.warn(&view::problem(warning));
    }
}

/// Returns the number of changes of a plan.
fn changes(plan: &ApplyReport) -> usize {
    let ApplySummary { create, update, publish, delete, .. } = plan.summary;
    create + update + publish + delete
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn print_plan(plan: &ApplyReport, arguments: &Diff, output: &Output) -> Result<(), CliError> {
    for change in &plan.changes {
        let sign = match change.action {
            ChangeAction::Create => "+",
            ChangeAction::Update => "~",
            ChangeAction::Publish => "^",
            ChangeAction::Delete => "-",
            ChangeAction::Unchanged | ChangeAction::Unmanaged => continue,
        };
        output.line(&format!("{sign} {}", describe(change)))?;
        for FieldChange { field, before, after } in &change.fields {
            output.line(&format!("    {field}: {} -> {}", shown(before), shown(after)))?;
        }
    }
    let ApplySummary { create, update, publish, delete, unchanged, unmanaged: others } = plan.summary;
    if changes(plan) == 0 {
        output.line("No changes: the installation is as the folder says.")?;
    } else {
        output.line(&format!(
            "Plan: {create} to create, {update} to update, {publish} to publish, {delete} to delete; {unchanged} unchanged."
        ))?;
    }
    if others > 0 && !arguments.prune {
        output.note(&format!("not in the folder, so `--prune` would delete: {}", unmanaged(plan)));
    }
    Ok(())
}

/// Returns the kind and name of a thing, and what a new one is for.
fn describe(change: &PlannedChange) -> String {
    let PlannedChange { kind, bundle, name, version, summary, .. } = change;
    let kind = view::word(kind).replace('_', " ").replace("mcp", "MCP");
    let name = bundle.as_ref().map_or_else(|| name.clone(), |bundle| format!("{bundle}:{name}"));
    let mut text = if kind == name { name } else { format!("{kind} {name}") };
    if let Some(version) = version {
        text = format!("{text}@{version}");
    }
    let summary = view::first_line(summary, 60);
    if summary.is_empty() { text } else { format!("{text}  {summary}") }
}

fn unmanaged(plan: &ApplyReport) -> String {
    let all = plan.changes.iter().filter(|change| change.action == ChangeAction::Unmanaged);
    let names: Vec<String> = all.map(describe).collect();
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(5) {
        None | Some(0) => shown,
        Some(more) => format!("{shown}, and {more} more"),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        other => excerpt(&other.to_string(), MAX_VALUE),
    }
}

/// Runs `haft export`.
pub(crate) async fn export(arguments: Export, context: &Context) -> Result<(), CliError> {
    let Export { dir, bundle, force } = arguments;
    let client = context.client().await?;
    let mut request = Request::get("/api/export");
    if !bundle.is_empty() {
        request = request.query("bundle", &bundle.join(","));
    }
    let archive = client.bytes(request).await;
    client.close().await;
    let files = zip::read(&archive?).map_err(|found| problems(&found))?;
    clear(&dir, &files, force)?;
    let mut paths = Vec::new();
    for (path, file) in files.iter() {
        write(&dir.join(path.as_str()), file)?;
        paths.push(path.as_str().to_owned());
    }
    let shown = dir.display().to_string();
    context.output.data(&json!({"folder": shown, "files": paths}), |output| {
        paths.iter().try_for_each(|path| output.line(&format!("{shown}/{path}")))?;
        output.note(&format!("wrote {} to `{shown}`", plural(paths.len(), "file")));
        Ok(())
    })
}

/// Removes what is replaced; without `force`, that is an error.
fn clear(dir: &Path, files: &PackageFiles, force: bool) -> Result<(), CliError> {
    let mut targets: Vec<PathBuf> = Vec::new();
    for (path, _) in files.iter() {
        let parts: Vec<&str> = path.as_str().split('/').take(2).collect();
        let target = dir.join(parts.join("/"));
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    for target in targets.into_iter().filter(|target| target.symlink_metadata().is_ok()) {
        let operation = || format!("replace `{}`", target.display());
        if !force {
            return Err(CliError::Usage {
                message: format!("`{}` already exists", target.display()),
                hint: Some("pass `--force` to replace it".to_owned()),
            });
        }
        let is_folder = target.is_dir() && !target.is_symlink();
        let removed =
            if is_folder { std::fs::remove_dir_all(&target) } else { std::fs::remove_file(&target) };
        removed.map_err(CliError::io(operation()))?;
    }
    Ok(())
}

fn write(path: &Path, file: &haft_package::files::PackageFile) -> Result<(), CliError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let operation = || format!("write `{}`", path.display());
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(CliError::io(operation()))?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    let opened = std::fs::File::options().write(true).create_new(true).mode(mode).open(path);
    opened.and_then(|mut open| open.write_all(&file.bytes)).map_err(CliError::io(operation()))
}
