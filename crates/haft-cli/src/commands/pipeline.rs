//! `haft pipeline`: documents that tools and agents search.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::life_cycle::{self, PIPELINES};
use crate::client::{Body, Client, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::{input, view};

/// How often the progress of an ingest is read.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How much of a passage is shown.
const MAX_PASSAGE: usize = 400;

/// Manage retrieval pipelines: documents that tools and agents search
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List pipelines
    #[command(visible_alias = "ls", after_help = examples!("haft pipeline list"))]
    List,
    /// Create a pipeline
    #[command(after_help = examples!(
        "haft pipeline create handbook",
        "haft pipeline create handbook --embedding-model nomic-embed-text --embedding-url http://localhost:11434/v1"
    ))]
    Create(CreateArguments),
    /// Show a pipeline and its documents
    #[command(after_help = examples!("haft pipeline show handbook"))]
    Show {
        /// Slug or id of the pipeline
        pipeline: String,
    },
    /// Add files, folders or URLs, and wait until they can be found
    ///
    /// Text, Markdown, HTML, PDF, DOCX, CSV and JSON Lines. A document of the same name is replaced.
    #[command(after_help = examples!(
        "haft pipeline add handbook guide.md paper.pdf",
        "haft pipeline add handbook ./docs --metadata team=core",
        "haft pipeline add handbook https://example.com/faq.html"
    ))]
    Add(AddArguments),
    /// Search the documents of a pipeline
    #[command(after_help = examples!(
        "haft pipeline query handbook \"How do I install it?\"",
        "haft pipeline query handbook leave --top-k 3 --filter '{\"team\": \"core\"}'"
    ))]
    Query(QueryArguments),
    /// Read all documents again; it costs what has changed in them
    #[command(after_help = examples!("haft pipeline reingest handbook"))]
    Reingest {
        /// Slug or id of the pipeline
        pipeline: String,
    },
    #[command(flatten)]
    LifeCycle(life_cycle::Command),
    /// Delete a pipeline with its documents, or one document
    #[command(visible_alias = "rm", after_help = examples!(
        "haft pipeline delete handbook",
        "haft pipeline delete handbook --document guide.md"
    ))]
    Delete {
        /// Slug or id of the pipeline
        pipeline: String,
        /// Delete only this document, by name or id
        #[arg(long, value_name = "NAME")]
        document: Option<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// The definition of a new pipeline.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name by which tools refer to it
    slug: String,
    /// Name that people see [default: the slug]
    #[arg(long)]
    name: Option<String>,
    /// What its documents are about
    #[arg(long)]
    description: Option<String>,
    /// Size of a chunk in tokens
    #[arg(long, value_name = "TOKENS")]
    chunk_size: Option<u32>,
    /// Tokens that a chunk repeats from the one before it
    #[arg(long, value_name = "TOKENS")]
    chunk_overlap: Option<u32>,
    /// Embedding model; without one, words alone are compared
    #[arg(long, value_name = "MODEL")]
    embedding_model: Option<String>,
    /// Address of the OpenAI-compatible API of the embedding model [default: that of OpenAI]
    #[arg(long, value_name = "URL", requires = "embedding_model")]
    embedding_url: Option<String>,
    /// Name of the secret with the key of the embedding model
    #[arg(long, value_name = "NAME", requires = "embedding_model")]
    embedding_credential: Option<String>,
}

/// What to add.
#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// Slug or id of the pipeline
    pipeline: String,
    /// Files, folders or URLs
    #[arg(required = true, value_name = "FILE|FOLDER|URL")]
    sources: Vec<String>,
    /// Value that queries can filter by; may be repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = input::parse_pair)]
    metadata: Vec<(String, String)>,
    /// Do not wait until the documents have been read
    #[arg(long)]
    no_wait: bool,
}

/// How hits are ranked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// By words and by meaning
    Hybrid,
    /// By words
    Bm25,
    /// By meaning
    Embedding,
}

/// A question.
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Slug or id of the pipeline
    pipeline: String,
    /// What to look for
    query: String,
    /// Number of passages
    #[arg(short = 'k', long, value_name = "N")]
    top_k: Option<u32>,
    /// Condition on metadata, as JSON
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// How passages are ranked
    #[arg(long)]
    mode: Option<Mode>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List => list(context).await,
        Command::Create(arguments) => create(arguments, context).await,
        Command::Show { pipeline } => show(&pipeline, context).await,
        Command::Add(arguments) => add(arguments, context).await,
        Command::Query(arguments) => query(arguments, context).await,
        Command::Reingest { pipeline } => reingest(&pipeline, context).await,
        Command::LifeCycle(command) => life_cycle::run(command, PIPELINES, context).await,
        Command::Delete { pipeline, document, yes } => delete(&pipeline, document, yes, context).await,
    }
}

fn path(pipeline: &str) -> String {
    format!("/api/pipelines/{}", segment(pipeline))
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/pipelines?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "pipelines").iter().map(|pipeline| {
            ["slug", "status", "documents", "chunks", "embedding.model", "description"]
                .map(|key| view::first_line(&view::text(pipeline, key), 60))
                .to_vec()
        });
        output
            .table(&["PIPELINE", "STATUS", "DOCUMENTS", "CHUNKS", "EMBEDDING", "DESCRIPTION"], rows.collect())
    })
}

async fn create(arguments: CreateArguments, context: &Context) -> Result<(), CliError> {
    let slug = arguments.slug.clone();
    let data = context.request(Request::post("/api/pipelines", definition(arguments))).await?;
    context.output.data(&data, |output| {
        output.line(&view::text(&data, "id"))?;
        output
            .note(&format!("created pipeline `{slug}`; add documents with `haft pipeline add {slug} FILE`"));
        Ok(())
    })
}

fn definition(arguments: CreateArguments) -> Value {
    let mut body = Map::from_iter([("slug".to_owned(), json!(arguments.slug))]);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    set("name", arguments.name.map(Value::from));
    set("description", arguments.description.map(Value::from));
    let mut chunking = Map::new();
    for (key, size) in [("size", arguments.chunk_size), ("overlap", arguments.chunk_overlap)] {
        chunking.extend(size.map(|size| (key.to_owned(), json!(size))));
    }
    set("chunking", (!chunking.is_empty()).then_some(Value::Object(chunking)));
    set(
        "embedding",
        arguments.embedding_model.map(|model| {
            let mut embedding = Map::from_iter([("model".to_owned(), json!(model))]);
            let others =
                [("base_url", arguments.embedding_url), ("credential", arguments.embedding_credential)];
            for (key, value) in others {
                embedding.extend(value.map(|value| (key.to_owned(), json!(value))));
            }
            Value::Object(embedding)
        }),
    );
    Value::Object(body)
}

async fn show(pipeline: &str, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let shown = async {
        let mut data = client.data(Request::get(path(pipeline))).await?;
        let documents =
            client.data(Request::get(format!("{}/documents?page_size=500", path(pipeline)))).await?;
        if let Value::Object(map) = &mut data {
            // The number is also that of the list.
            map.insert("documents".to_owned(), json!(view::list(&documents, "documents")));
        }
        Ok(data)
    };
    let shown: Result<Value, CliError> = shown.await;
    client.close().await;
    let data = shown?;
    context.output.data(&data, |output| {
        for key in ["slug", "name", "description", "status", "chunks", "bytes", "embedding.model"] {
            let text = view::text(&data, key);
            if !text.is_empty() {
                output.line(&format!("{key}: {text}"))?;
            }
        }
        print_documents(view::list(&data, "documents"), output)
    })
}

fn print_documents(documents: &[Value], output: &Output) -> Result<(), CliError> {
    let rows = documents.iter().map(|document| {
        let keys = ["name", "state", "format", "bytes", "chunks", "error"];
        keys.map(|key| view::first_line(&view::text(document, key), 80)).to_vec()
    });
    output.table(&["DOCUMENT", "STATE", "FORMAT", "BYTES", "CHUNKS", "ERROR"], rows.collect())
}

async fn add(arguments: AddArguments, context: &Context) -> Result<(), CliError> {
    let (metadata, mut urls, mut files) = (metadata(arguments.metadata), Vec::new(), Vec::new());
    for source in arguments.sources {
        if source.starts_with("http://") || source.starts_with("https://") {
            urls.push(source);
        } else {
            files.extend(files_of(Path::new(&source))?);
        }
    }
    let client = context.client().await?;
    let target = path(&arguments.pipeline);
    let added = async {
        let mut added = Vec::new();
        for (name, file) in files {
            added.extend(send_file(&client, &target, &name, &file, &metadata).await?);
        }
        if !urls.is_empty() {
            let body = json!({"urls": urls, "metadata": metadata});
            let data = client.data(Request::post(format!("{target}/documents"), body)).await?;
            added.extend(view::list(&data, "documents").to_vec());
        }
        if !arguments.no_wait {
            wait(&client, &target).await?;
            for document in &mut added {
                let id = view::text(document, "id");
                *document = client.data(Request::get(format!("{target}/documents/{}", segment(&id)))).await?;
            }
        }
        Ok(added)
    };
    let added: Result<Vec<Value>, CliError> = added.await;
    client.close().await;
    let added = added?;
    let failed = added.iter().filter(|document| view::text(document, "state") == "failed").count();
    context.output.data(&json!({"documents": added}), |output| print_documents(&added, output))?;
    if failed > 0 {
        return Err(CliError::SomeFailed {
            failed,
            total: added.len(),
            items: "documents could not be read",
        });
    }
    Ok(())
}

async fn send_file(
    client: &Client,
    target: &str,
    name: &str,
    file: &Path,
    metadata: &Map<String, Value>,
) -> Result<Vec<Value>, CliError> {
    let bytes = std::fs::read(file).map_err(CliError::io(format!("read `{}`", file.display())))?;
    let request = Request::post(format!("{target}/documents"), Value::Null)
        .query("name", name)
        .with_body(Body::Bytes { content_type: "application/octet-stream", bytes });
    let request = if metadata.is_empty() {
        request
    } else {
        request.query("metadata", &Value::Object(metadata.clone()).to_string())
    };
    let data = client.data(request).await?;
    Ok(view::list(&data, "documents").to_vec())
}

/// Returns metadata: numbers and booleans where the text is one.
fn metadata(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let value = |text: String| match serde_json::from_str(&text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_))) => value,
        _ => Value::String(text),
    };
    pairs.into_iter().map(|(key, text)| (key, value(text))).collect()
}

/// Returns the files of a path with their names: of a folder all files that are not hidden. The server may be on another
/// machine: it gets the files.
fn files_of(path: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let base_name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if !path.is_dir() {
        return Ok(vec![(base_name(path), path.to_owned())]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        let doing = || format!("read `{}`", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(CliError::io(doing()))? {
            let entry = entry.map_err(CliError::io(doing()))?;
            let kind = entry.file_type().map_err(CliError::io(doing()))?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let inner = entry.path();
            if kind.is_dir() {
                folders.push(inner);
            } else if kind.is_file() {
                let name = inner.strip_prefix(path).unwrap_or(&inner).to_string_lossy().into_owned();
                found.push((name, inner));
            }
        }
    }
    if found.is_empty() {
        return Err(CliError::usage(format!("the folder `{}` has no files", path.display())));
    }
    found.sort();
    Ok(found)
}

/// Waits until no document is queued or being read.
async fn wait(client: &Client, target: &str) -> Result<(), CliError> {
    loop {
        let report = client.data(Request::get(format!("{target}/ingests?page_size=1"))).await?;
        if view::text(&report, "state") == "done" {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn query(arguments: QueryArguments, context: &Context) -> Result<(), CliError> {
    let mut body = Map::from_iter([("query".to_owned(), json!(arguments.query))]);
    body.extend(arguments.top_k.map(|top_k| ("top_k".to_owned(), json!(top_k))));
    if let Some(filter) = arguments.filter {
        let parsed: Value = serde_json::from_str(&filter)
            .map_err(|error| CliError::usage(format!("`--filter` is not valid JSON: {error}")))?;
        body.insert("filter".to_owned(), parsed);
    }
    body.extend(arguments.mode.map(|mode| {
        let mode = match mode {
            Mode::Hybrid => "hybrid",
            Mode::Bm25 => "bm25",
            Mode::Embedding => "embedding",
        };
        ("mode".to_owned(), json!(mode))
    }));
    let request = Request::post(format!("{}/query", path(&arguments.pipeline)), Value::Object(body));
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        let hits = view::list(&data, "hits");
        if hits.is_empty() {
            output.note("no passage matches");
        }
        for (number, hit) in hits.iter().enumerate() {
            if number > 0 {
                output.line("")?;
            }
            print_hit(number + 1, hit, output)?;
        }
        Ok(())
    })
}

fn print_hit(number: usize, hit: &Value, output: &Output) -> Result<(), CliError> {
    let headings: Vec<&str> = view::list(hit, "headings").iter().filter_map(Value::as_str).collect();
    let mut place = view::text(hit, "document");
    for (key, label) in [("position.page", "page"), ("position.line", "line")] {
        let value = view::text(hit, key);
        if !value.is_empty() {
            place = format!("{place}, {label} {value}");
        }
    }
    if !headings.is_empty() {
        place = format!("{place} ({})", headings.join(" > "));
    }
    let score = hit.get("score").and_then(Value::as_f64).unwrap_or_default();
    output.line(&format!("{number}. {place} [{score:.3}]"))?;
    let text = view::text(hit, "text");
    let shown: String = text.chars().take(MAX_PASSAGE).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    shown.lines().try_for_each(|line| output.line(&format!("   {line}")))?;
    if more.is_empty() { Ok(()) } else { output.line(&format!("   {more}")) }
}

async fn reingest(pipeline: &str, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let done = async {
        client.data(Request::post(format!("{}/reingest", path(pipeline)), json!({}))).await?;
        wait(&client, &path(pipeline)).await?;
        client.data(Request::get(format!("{}/ingests?page_size=500", path(pipeline)))).await
    };
    let done = done.await;
    client.close().await;
    let data = done?;
    context.output.data(&data, |output| {
        let failed = view::list(&data, "documents");
        if !failed.is_empty() {
            print_documents(failed, output)?;
        }
        output.note(&format!(
            "{} documents read, {} failed",
            view::text(&data, "done"),
            view::text(&data, "failed")
        ));
        Ok(())
    })
}

async fn delete(
    pipeline: &str,
    document: Option<String>,
    yes: bool,
    context: &Context,
) -> Result<(), CliError> {
    let question = match &document {
        Some(document) => format!("Delete document `{document}` of pipeline `{pipeline}`?"),
        None => format!("Delete pipeline `{pipeline}` with its documents?"),
    };
    if !yes && !input::confirm(&question)? {
        context.output.note("nothing was deleted");
        return Ok(());
    }
    let client = context.client().await?;
    let deleted = async {
        let target = match &document {
            None => path(pipeline),
            Some(document) => {
                format!("{}/documents/{}", path(pipeline), find(&client, pipeline, document).await?)
            }
        };
        client.data(Request::delete(target)).await
    };
    let deleted = deleted.await;
    client.close().await;
    let data = deleted?;
    context.output.data(&data, |output| {
        output.note(&view::text(&data, "message"));
        Ok(())
    })
}

/// Returns the id of a document by its name or id.
async fn find(client: &Client, pipeline: &str, document: &str) -> Result<String, CliError> {
    let mut page = String::new();
    loop {
        let request = Request::get(format!("{}/documents?page_size=500", path(pipeline)));
        let request = if page.is_empty() { request } else { request.query("page_token", &page) };
        let data = client.data(request).await?;
        let is_wanted =
            |one: &&Value| view::text(one, "name") == document || view::text(one, "id") == document;
        if let Some(found) = view::list(&data, "documents").iter().find(is_wanted) {
            return Ok(segment(&view::text(found, "id")));
        }
        page = view::text(&data, "next_page_token");
        if page.is_empty() {
            return Err(CliError::usage(format!("pipeline `{pipeline}` has no document `{document}`")));
        }
    }
}
