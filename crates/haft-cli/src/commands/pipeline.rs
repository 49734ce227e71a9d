//! `haft pipeline`: documents that tools and agents search.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use haft_api::pipeline::{
    AddedDocuments, ChunkHit, DocumentInfo, DocumentList, IngestReport, IngestState, PipelineView,
    QueryResult,
};
use haft_api::reply::Message;
use haft_core::retrieval::{DocumentState, PipelineDefinition};
use serde_json::{Map, Value, json};

use super::life_cycle::{self, Columns, PIPELINES};
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
    #[command(visible_alias = "ls", after_help = examples!("haft pipeline list", "haft pipeline list --deleted"))]
    List(life_cycle::ListArguments),
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
    /// Delete a pipeline with its documents, or one document; `haft pipeline undelete` restores a pipeline for 48 hours
    #[command(visible_alias = "rm", after_help = examples!(
        "haft pipeline delete handbook",
        "haft pipeline delete handbook --document guide.md"
    ))]
    Delete {
        #[command(flatten)]
        pipeline: life_cycle::DeleteArguments,
        /// Delete only this document, by name or id
        #[arg(long, value_name = "NAME")]
        document: Option<String>,
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
        Command::List(arguments) => list(&arguments, context).await,
        Command::Create(arguments) => create(arguments, context).await,
        Command::Show { pipeline } => show(&pipeline, context).await,
        Command::Add(arguments) => add(arguments, context).await,
        Command::Query(arguments) => query(arguments, context).await,
        Command::Reingest { pipeline } => reingest(&pipeline, context).await,
        Command::LifeCycle(command) => life_cycle::run(command, PIPELINES, context).await,
        Command::Delete { pipeline, document: None } => {
            life_cycle::delete(&pipeline, PIPELINES, context).await
        }
        Command::Delete { pipeline, document: Some(document) } => {
            delete_document(&pipeline, &document, context).await
        }
    }
}

fn path(pipeline: &str) -> String {
    format!("/api/pipelines/{}", segment(pipeline))
}

async fn list(arguments: &life_cycle::ListArguments, context: &Context) -> Result<(), CliError> {
    let columns = Columns {
        header: &["PIPELINE", "STATUS", "DOCUMENTS", "CHUNKS", "EMBEDDING", "DESCRIPTION"],
        wide: &["NAME", "BYTES", "REVISION", "CHANGED"],
    };
    life_cycle::list(arguments, PIPELINES, context, columns, |pipeline: &PipelineView, output| {
        let PipelineDefinition { slug, name, embedding, description, .. } = &*pipeline.definition;
        vec![
            slug.to_string(),
            pipeline.state.status.as_str().to_owned(),
            pipeline.documents.to_string(),
            pipeline.chunks.to_string(),
            embedding.as_ref().map(|embedding| embedding.model.clone()).unwrap_or_default(),
            output.brief(description, 60),
            name.clone(),
            pipeline.bytes.to_string(),
            pipeline.state.revision.to_string(),
            view::moment(pipeline.state.modified_at),
        ]
    })
    .await
}

async fn create(arguments: CreateArguments, context: &Context) -> Result<(), CliError> {
    let slug = arguments.slug.clone();
    let data = context.request(Request::post("/api/pipelines", definition(arguments))).await?;
    context.output.show(&data, |output, created: PipelineView| {
        output.line(&created.id.to_string())?;
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
        let data = client.data(Request::get(path(pipeline))).await?;
        let documents =
            client.data(Request::get(format!("{}/documents?page_size=500", path(pipeline)))).await?;
        Ok((data, documents))
    };
    let shown: Result<(Value, Value), CliError> = shown.await;
    client.close().await;
    let (mut data, mut list) = shown?;
    let (found, documents): (PipelineView, DocumentList) = (view::read(&data)?, view::read(&list)?);
    if let (Value::Object(map), Some(documents)) = (&mut data, list.get_mut("documents")) {
        // The list replaces the number of documents.
        map.insert("documents".to_owned(), documents.take());
    }
    context.output.data(&data, |output| {
        print_pipeline(&found, output)?;
        print_documents(&documents.documents, output)
    })
}

fn print_pipeline(found: &PipelineView, output: &Output) -> Result<(), CliError> {
    let PipelineDefinition { slug, name, description, embedding, .. } = &*found.definition;
    for (key, text) in [
        ("slug", slug.to_string()),
        ("name", name.clone()),
        ("description", description.clone()),
        ("status", found.state.status.as_str().to_owned()),
        ("chunks", found.chunks.to_string()),
        ("bytes", found.bytes.to_string()),
        ("embedding.model", embedding.as_ref().map(|model| model.model.clone()).unwrap_or_default()),
    ] {
        if !text.is_empty() {
            output.line(&format!("{key}: {text}"))?;
        }
    }
    Ok(())
}

fn print_documents(documents: &[DocumentInfo], output: &Output) -> Result<(), CliError> {
    let rows = documents.iter().map(|document| {
        vec![
            output.brief(&document.name, 80),
            document.state.as_str().to_owned(),
            document.format.clone().unwrap_or_default(),
            document.bytes.to_string(),
            document.chunks.to_string(),
            output.brief(document.error.as_deref().unwrap_or_default(), 80),
        ]
    });
    output.list(&["DOCUMENT", "STATE", "FORMAT", "BYTES", "CHUNKS", "ERROR"], &[], rows.collect())
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
        let (mut added, total) = (Vec::new(), files.len());
        for (index, (name, file)) in files.into_iter().enumerate() {
            client.progress().set(format!("sending document {} of {total}: {name}", index + 1));
            added.extend(send_file(&client, &target, &name, &file, &metadata).await?);
        }
        if !urls.is_empty() {
            let body = json!({"urls": urls, "metadata": metadata});
            let data = client.data(Request::post(format!("{target}/documents"), body)).await?;
            added.extend(added_documents(data)?);
        }
        if !arguments.no_wait {
            wait(&client, &target).await?;
            for document in &mut added {
                let DocumentInfo { id, .. } = view::read(document)?;
                *document = client.data(Request::get(format!("{target}/documents/{id}"))).await?;
            }
        }
        Ok(added)
    };
    let added: Result<Vec<Value>, CliError> = client.progress().during("sending documents", added).await;
    client.close().await;
    let added = added?;
    let documents = added.iter().map(view::read).collect::<Result<Vec<DocumentInfo>, CliError>>()?;
    let failed = documents.iter().filter(|document| document.state == DocumentState::Failed).count();
    context.output.data(&json!({"documents": added}), |output| print_documents(&documents, output))?;
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
    added_documents(data)
}

/// Returns the documents of a response as they were sent.
fn added_documents(mut data: Value) -> Result<Vec<Value>, CliError> {
    let _: AddedDocuments = view::read(&data)?;
    match data.get_mut("documents").map(Value::take) {
        Some(Value::Array(documents)) => Ok(documents),
        _ => Ok(Vec::new()),
    }
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
        let operation = || format!("read `{}`", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(CliError::io(operation()))? {
            let entry = entry.map_err(CliError::io(operation()))?;
            let kind = entry.file_type().map_err(CliError::io(operation()))?;
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
        if view::read::<IngestReport>(&report)?.state == IngestState::Done {
            return Ok(());
        }
        client.progress().set("reading and indexing the documents");
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
    context.output.show(&data, |output, QueryResult { hits }| {
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

fn print_hit(number: usize, hit: &ChunkHit, output: &Output) -> Result<(), CliError> {
    let ChunkHit { document, headings, position, score, text, .. } = hit;
    let mut place = document.clone();
    for (number, label) in [(position.page, "page"), (position.line, "line")] {
        if let Some(number) = number {
            place = format!("{place}, {label} {number}");
        }
    }
    if !headings.is_empty() {
        place = format!("{place} ({})", headings.join(" > "));
    }
    output.line(&format!("{number}. {place} [{score:.3}]"))?;
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
    let done = client.progress().during("reading and indexing the documents", done).await;
    client.close().await;
    let data = done?;
    context.output.show(&data, |output, IngestReport { counts, documents, .. }| {
        if !documents.is_empty() {
            print_documents(&documents, output)?;
        }
        output.note(&format!("{} documents read, {} failed", counts.done, counts.failed));
        Ok(())
    })
}

async fn delete_document(
    arguments: &life_cycle::DeleteArguments,
    document: &str,
    context: &Context,
) -> Result<(), CliError> {
    let pipeline = arguments.reference();
    let question = format!("Delete document `{document}` of pipeline `{pipeline}`?");
    if !arguments.confirm(&question, context)? {
        return Ok(());
    }
    let client = context.client().await?;
    let deleted = async {
        let id = find(&client, pipeline, document).await?;
        client.data(Request::delete(format!("{}/documents/{id}", path(pipeline)))).await
    };
    let deleted = deleted.await;
    client.close().await;
    let data = deleted?;
    context.output.show(&data, |output, Message { message }| {
        output.note(&message);
        Ok(())
    })
}

/// Returns the id of a document by its name or id.
async fn find(client: &Client, pipeline: &str, document: &str) -> Result<String, CliError> {
    let mut page: Option<String> = None;
    loop {
        let request = Request::get(format!("{}/documents?page_size=500", path(pipeline)))
            .query_some("page_token", page.as_deref());
        let DocumentList { documents, next_page_token } = view::read(&client.data(request).await?)?;
        let is_match = |one: &&DocumentInfo| one.name == document || one.id.to_string() == document;
        if let Some(found) = documents.iter().find(is_match) {
            return Ok(found.id.to_string());
        }
        page = next_page_token;
        if page.is_none() {
            return Err(CliError::usage(format!("pipeline `{pipeline}` has no document `{document}`")));
        }
    }
}
