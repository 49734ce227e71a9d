//! `haft toolset`: installs and makes packages of tools.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use haft_api::toolset::{
    Inspection, InstalledReport, SignatureState, ToolsetDetail, ToolsetList, ToolsetView,
};
use haft_package::files::PackageFiles;
use haft_package::package::Package;
use haft_package::signature::SigningKey;
use haft_package::{folder, inspect, skeleton, zip};
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Form;
use crate::{input, view};

/// Manage toolsets: bundles that are installed as packages
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a working package with one tool, a page for its result, and a test
    #[command(after_help = examples!("haft toolset new reports", "haft toolset new reports --dir ./toolsets"))]
    New {
        /// Id of the toolset, and name of its folder
        name: String,
        /// Folder in which the new one is made
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// Show what a package would install, and which commands and permissions it asks for
    #[command(after_help = examples!("haft toolset inspect reports.zip", "haft toolset inspect ./reports"))]
    Inspect {
        /// ZIP file or folder
        package: PathBuf,
    },
    /// Install a package, or update the toolset with its id
    #[command(visible_alias = "import", after_help = examples!(
        "haft toolset install ./reports",
        "haft toolset install reports.zip",
        "haft toolset install https://example.com/reports.zip"
    ))]
    Install {
        /// ZIP file, folder or URL
        package: String,
        /// Let tools that ask for it run without isolation
        #[arg(long)]
        allow_unsandboxed: bool,
    },
    /// List toolsets
    #[command(visible_alias = "ls", after_help = examples!("haft toolset list"))]
    List,
    /// Show a toolset and what its package contains
    #[command(after_help = examples!("haft toolset show reports"))]
    Show {
        /// Id of the toolset
        id: String,
    },
    /// Read the URL or folder of a toolset again, and install what is there
    #[command(after_help = examples!("haft toolset update reports"))]
    Update {
        /// Id of the toolset
        id: String,
    },
    /// Install the version that a toolset had before
    #[command(after_help = examples!("haft toolset rollback reports"))]
    Rollback {
        /// Id of the toolset
        id: String,
    },
    /// Write a toolset, or any bundle, to a ZIP file
    #[command(after_help = examples!("haft toolset export reports", "haft toolset export user-created -o mine.zip"))]
    Export {
        /// Id of the toolset or bundle
        id: String,
        /// The file to write [default: ID.zip]
        #[arg(short, long, value_name = "FILE")]
        output: Option<String>,
    },
    /// Enable a toolset
    #[command(after_help = examples!("haft toolset enable reports"))]
    Enable {
        /// Id of the toolset
        id: String,
    },
    /// Disable a toolset and its tools
    #[command(after_help = examples!("haft toolset disable reports"))]
    Disable {
        /// Id of the toolset
        id: String,
    },
    /// Uninstall a toolset with its tools, and the MCP servers that only it has
    #[command(visible_aliases = ["uninstall", "delete"], after_help = examples!("haft toolset rm reports"))]
    Rm {
        /// Id of the toolset
        id: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Make a key for signing packages; prints the public key for `toolsets.trusted_keys`
    #[command(after_help = examples!("haft toolset key signing.key"))]
    Key {
        /// The file to write; only its owner may read it
        file: PathBuf,
    },
    /// Sign a package: writes `toolset.sig` into the folder, or a signed ZIP file
    #[command(after_help = examples!("haft toolset sign ./reports --key signing.key"))]
    Sign {
        /// ZIP file or folder
        package: PathBuf,
        /// The file with the key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::New { name, dir } => new(&name, &dir, context),
        Command::Inspect { package } => inspect_package(&package, context),
        Command::Install { package, allow_unsandboxed } => {
            install(&package, allow_unsandboxed, context).await
        }
        Command::List => list(context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Update { id } => change(&id, "update", context).await,
        Command::Rollback { id } => change(&id, "rollback", context).await,
        Command::Export { id, output } => export(&id, output, context).await,
        Command::Enable { id } => switch(&id, true, context).await,
        Command::Disable { id } => switch(&id, false, context).await,
        Command::Rm { id, yes } => remove(&id, yes, context).await,
        Command::Key { file } => make_key(&file, context),
        Command::Sign { package, key } => sign(&package, &key, context),
    }
}

fn path(id: &str) -> String {
    format!("/api/toolsets/{}", segment(id))
}

fn problems(problems: &[haft_core::problem::Problem]) -> CliError {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    CliError::usage(lines.join("\n"))
}

fn read_files(package: &Path) -> Result<PackageFiles, CliError> {
    if package.is_dir() {
        return folder::read(package).map_err(|found| problems(&found));
    }
    let bytes = std::fs::read(package).map_err(CliError::io(format!("read `{}`", package.display())))?;
    zip::read(&bytes).map_err(|found| problems(&found))
}

fn new(name: &str, dir: &Path, context: &Context) -> Result<(), CliError> {
    let files = skeleton::skeleton(name).map_err(|error| CliError::usage(error.to_string()))?;
    let target = dir.join(name);
    if target.exists() {
        return Err(CliError::usage(format!("`{}` already exists; choose another name", target.display())));
    }
    folder::unpack(&files, &target).map_err(|error| CliError::usage(error.to_string()))?;
    let paths: Vec<String> = files.iter().map(|(path, _)| path.as_str().to_owned()).collect();
    let shown = target.display().to_string();
    context.output.data(&json!({"folder": shown, "files": paths}), |output| {
        paths.iter().try_for_each(|path| output.line(&format!("{shown}/{path}")))?;
        output.note(&format!("install it with `haft toolset install {shown}`"));
        Ok(())
    })
}

fn inspect_package(package: &Path, context: &Context) -> Result<(), CliError> {
    let package = Package::open(read_files(package)?).map_err(|found| problems(&found))?;
    let keys = context.resolve()?.settings.toolsets.trusted_keys;
    let found = inspect::inspect(&package, &keys);
    let data = serde_json::to_value(&found).unwrap_or_default();
    context.output.show(&data, |output, package: Inspection| print(&package, output))
}

fn print(package: &Inspection, output: &crate::output::Output) -> Result<(), CliError> {
    output.line(&format!("{} {}", package.name, package.version))?;
    if !package.description.is_empty() {
        output.line(&package.description)?;
    }
    let signature = match &package.signature {
        SignatureState::Unsigned => "unsigned",
        SignatureState::Trusted { .. } => "trusted",
        SignatureState::UnknownKey { .. } => "unknown_key",
        SignatureState::Invalid { .. } => "invalid",
    };
    output.line(&format!("signature: {signature}"))?;
    let rows = package.tools.iter().map(|tool| {
        vec![
            tool.id.clone(),
            tool.implementation_type.clone(),
            tool.permissions.network.to_string(),
            tool.permissions.sandbox.to_string(),
            tool.requires_confirmation.to_string(),
            view::first_line(&tool.description, 60),
        ]
    });
    output.table(&["TOOL", "TYPE", "NETWORK", "ISOLATED", "CONFIRM", "DESCRIPTION"], rows.collect())?;
    for server in &package.mcp_servers {
        let runs = server.command.as_ref().or(server.url.as_ref()).map(String::as_str).unwrap_or_default();
        output.line(&format!("MCP server `{}` runs: {runs}", server.id))?;
    }
    for dependency in &package.dependencies {
        output.line(&format!("needs {dependency}"))?;
    }
    for warning in &package.warnings {
        output.warn(&view::problem(warning));
    }
    Ok(())
}

async fn install(package: &str, allow_unsandboxed: bool, context: &Context) -> Result<(), CliError> {
    let is_url = package.starts_with("http://") || package.starts_with("https://");
    let request = if is_url {
        Request::post("/api/toolsets", json!({"url": package}))
    } else {
        // The server may be on another machine: it gets the files.
        let files = read_files(Path::new(package))?;
        let bytes = zip::write(&files).map_err(|error| CliError::usage(error.to_string()))?;
        Request::post("/api/toolsets", Value::Null)
            .with_body(Body::Bytes { content_type: "application/zip", bytes })
    };
    let request = if allow_unsandboxed { request.query("allow_unsandboxed", "true") } else { request };
    let data = context.request(request).await?;
    report(&data, "installed", context)
}

/// Prints what an installation did.
fn report(data: &Value, done: &str, context: &Context) -> Result<(), CliError> {
    let InstalledReport { toolset, added, changed, removed, warnings } = view::read(data)?;
    for warning in &warnings {
        context.output.warn(warning);
    }
    context.output.data(data, |output| {
        for (sign, names) in [("+", &added), ("~", &changed), ("-", &removed)] {
            names.iter().try_for_each(|name| output.line(&format!("{sign} {name}")))?;
        }
        output.note(&format!("{done} toolset `{}` {}", toolset.id, toolset.version));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/toolsets?page_size=500")).await?;
    context.output.show(&data, |output, ToolsetList { toolsets, .. }| {
        let rows = toolsets.iter().map(|ToolsetView { toolset, enabled, tools }| {
            vec![
                toolset.id.to_string(),
                toolset.version.clone(),
                enabled.to_string(),
                tools.to_string(),
                view::word(&toolset.source_type),
                output.brief(&toolset.description, 60),
                output.brief(&toolset.name, 60),
                view::moment(toolset.installed_at),
            ]
        });
        let header = ["ID", "VERSION", "ENABLED", "TOOLS", "FROM", "DESCRIPTION"];
        output.list(&header, &["NAME", "INSTALLED"], rows.collect())
    })
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(path(id))).await?;
    context.output.show(&data, |output, ToolsetDetail { view: shown, content }| {
        let ToolsetView { toolset, enabled, .. } = shown;
        output.line(&format!("enabled: {enabled}"))?;
        let at = view::moment(toolset.installed_at);
        output.line(&format!("installed: {at} by {}", toolset.installed_by))?;
        print(&content, output)
    })
}

async fn change(id: &str, step: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/{step}", path(id)), json!({}))).await?;
    report(&data, if step == "update" { "updated" } else { "rolled back" }, context)
}

async fn export(id: &str, output: Option<String>, context: &Context) -> Result<(), CliError> {
    // Elsewhere, `-o` is the global option for the output format.
    if let Some(format) = output.as_deref().filter(|file| Form::parse(file).is_some()) {
        let message =
            format!("`-o {format}` names the file here; write `--json` for JSON, or `-o ./{format}`");
        return Err(CliError::usage(message));
    }
    let client = context.client().await?;
    let archive = client.bytes(Request::get(format!("/api/tools/bundles/{}/export", segment(id)))).await;
    client.close().await;
    let archive = archive?;
    let file = PathBuf::from(output.unwrap_or_else(|| format!("{id}.zip")));
    std::fs::write(&file, &archive).map_err(CliError::io(format!("write `{}`", file.display())))?;
    let data = json!({"file": file.display().to_string(), "bytes": archive.len()});
    context.output.data(&data, |output| {
        output.note(&format!("wrote `{}` ({} bytes)", file.display(), archive.len()));
        Ok(())
    })
}

async fn switch(id: &str, enabled: bool, context: &Context) -> Result<(), CliError> {
    let request = Request::post(format!("{}/enable", path(id)), json!({"enabled": enabled}));
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{} toolset `{id}`", if enabled { "enabled" } else { "disabled" }));
        Ok(())
    })
}

async fn remove(id: &str, yes: bool, context: &Context) -> Result<(), CliError> {
    if !yes && !input::confirm(&format!("Uninstall toolset `{id}` with its tools?"))? {
        context.output.note("nothing was removed");
        return Ok(());
    }
    let data = context.request(Request::delete(path(id))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("uninstalled toolset `{id}`"));
        Ok(())
    })
}

fn make_key(file: &Path, context: &Context) -> Result<(), CliError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let key = SigningKey::generate().map_err(|error| CliError::usage(error.to_string()))?;
    let operation = || format!("write `{}`", file.display());
    let opened = std::fs::File::options().write(true).create_new(true).mode(0o600).open(file);
    let mut opened = opened.map_err(CliError::io(operation()))?;
    opened.write_all(key.to_text().as_bytes()).map_err(CliError::io(operation()))?;
    let public = key.public_key().to_string();
    context.output.data(&json!({"public_key": public, "file": file.display().to_string()}), |output| {
        output.line(&public)?;
        output.note(&format!("to trust this key, set `toolsets.trusted_keys = [\"NAME={public}\"]`"));
        Ok(())
    })
}

fn sign(package: &Path, key: &Path, context: &Context) -> Result<(), CliError> {
    let text = input::read_text(key)?;
    let key = SigningKey::parse(text.trim()).map_err(|error| CliError::usage(error.to_string()))?;
    let mut files = read_files(package)?;
    key.sign(&mut files).map_err(|problem| problems(&[problem]))?;
    let operation = || format!("write `{}`", package.display());
    if package.is_dir() {
        let name = haft_package::files::SIGNATURE;
        let signature = files.text(name).unwrap_or_default();
        std::fs::write(package.join(name), signature).map_err(CliError::io(operation()))?;
    } else {
        let bytes = zip::write(&files).map_err(|error| CliError::usage(error.to_string()))?;
        std::fs::write(package, bytes).map_err(CliError::io(operation()))?;
    }
    let data = json!({"signed": package.display().to_string(), "public_key": key.public_key().to_string()});
    context.output.data(&data, |output| {
        output.note(&format!("signed `{}`", package.display()));
        Ok(())
    })
}
