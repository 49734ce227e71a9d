//! Reads and writes definitions of retrieval pipelines, one per file. Documents are data and not part of them.

use haft_core::name::PipelineSlug;
use haft_core::problem::Problem;
use haft_core::retrieval::{ChunkUnit, Chunking, EmbeddingModel, PipelineDefinition, PipelineLanguage};
use haft_core::tool::Status;
use serde_json::{Map, Value, json};

use crate::credential::credential;
use crate::dialect::{self, Bounds, Fields, MAX_TEXT, Report, describe, locate_foreign, read_foreign};

const BOUNDS: Bounds = Bounds { nodes: 10_000, bytes: MAX_TEXT };

const UNITS: [(&str, ChunkUnit); 2] = [("tokens", ChunkUnit::Tokens), ("characters", ChunkUnit::Characters)];
const LANGUAGES: [(&str, PipelineLanguage); 2] =
    [("english", PipelineLanguage::English), ("german", PipelineLanguage::German)];
pub(crate) const STATUSES: [(&str, Status); 4] = [
    ("draft", Status::Draft),
    ("published", Status::Published),
    ("deprecated", Status::Deprecated),
    ("disabled", Status::Disabled),
];

/// What the API shows about a pipeline besides its definition. It is ignored, so that an answer can be used as a file.
const STATE: [&str; 15] = [
    "id",
    "documents",
    "chunks",
    "bytes",
    "enabled",
    "revision",
    "published_revision",
    "hash",
    "path",
    "error",
    "created_by",
    "modified_by",
    "created_at",
    "modified_at",
    "published_at",
];

/// A pipeline that was read, with warnings for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadPipeline {
    /// The definition.
    pub definition: PipelineDefinition,
    /// The status, if the text has one.
    pub status: Option<Status>,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

/// Reads a YAML or JSON text. `file_stem` is the slug of a pipeline that has none.
pub fn read(text: &str, file_stem: &str) -> Result<ReadPipeline, Vec<Problem>> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(vec![Problem::new("", "too_large", message)]);
    }
    let map = match read_foreign(text, BOUNDS).map_err(|problem| vec![problem])? {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => {
            let message =
                format!("expected a map of keys such as `name` and `chunking`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    let report = Report::default();
    let found = pipeline(Fields::new("", map, &report), file_stem);
    let (mut errors, mut warnings) = report.into_parts();
    errors.extend(found.iter().flat_map(|(definition, _)| definition.check()));
    locate_foreign(text, &mut errors);
    locate_foreign(text, &mut warnings);
    match found {
        Some((definition, status)) if errors.is_empty() => Ok(ReadPipeline { definition, status, warnings }),
        _ => Err(errors),
    }
}

fn pipeline(mut fields: Fields<'_>, file_stem: &str) -> Option<(PipelineDefinition, Option<Status>)> {
    fields.ignore(&STATE);
    let slug = fields.text("slug").unwrap_or_else(|| file_stem.to_owned());
    let slug = PipelineSlug::new(&slug).map_err(|error| {
        fields.error("slug", "invalid_name", error.to_string());
    });
    let name = fields.text("name").filter(|name| !name.trim().is_empty());
    let description = fields.text("description").unwrap_or_default();
    let chunking = fields.nested("chunking").map(chunking).unwrap_or_default();
    let embedding = fields.nested("embedding").and_then(embedding);
    let language = fields.choice("language", &LANGUAGES);
    let status = fields.choice("status", &STATUSES);
    let mut definition = PipelineDefinition::new(slug.ok()?);
    definition.name = name.unwrap_or(definition.name);
    definition.description = description;
    definition.chunking = chunking;
    definition.embedding = embedding;
    definition.language = language;
    Some((definition, status))
}

fn chunking(mut fields: Fields<'_>) -> Chunking {
    let default = Chunking::default();
    let size = fields.integer("size", "a positive integer").unwrap_or(default.size);
    let unit = fields.choice("unit", &UNITS).unwrap_or(default.unit);
    let overlap = fields.integer("overlap", "an integer").unwrap_or(default.overlap);
    Chunking { size, unit, overlap }
}

fn embedding(mut fields: Fields<'_>) -> Option<EmbeddingModel> {
    let model = fields.required_text("model", "the name of a model");
    let base_url = fields.text("base_url");
    let credential = credential(&mut fields, "credential");
    let dimensions = fields.integer("dimensions", "an integer from 1 to 16384");
    let mut embedding = EmbeddingModel::new(model?);
    embedding.base_url = base_url.unwrap_or(embedding.base_url);
    embedding.credential = credential;
    embedding.dimensions = dimensions;
    Some(embedding)
}

/// Writes a pipeline as a YAML file; reading it returns the same pipeline. A draft says so, because a folder that is
/// applied publishes what has no status.
pub fn write_yaml(definition: &PipelineDefinition, status: Status) -> String {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("slug", json!(definition.slug));
    put("name", json!(definition.name));
    if !definition.description.is_empty() {
        put("description", json!(definition.description));
    }
    put("chunking", json!(definition.chunking));
    if let Some(embedding) = &definition.embedding {
        put("embedding", json!(embedding));
    }
    if let Some(language) = definition.language {
        put("language", json!(language));
    }
    if status != Status::Published {
        put("status", json!(status));
    }
    dialect::write_yaml(&map)
}

#[cfg(test)]
mod tests {
    use haft_core::problem::join;

    use super::*;

    fn problems(text: &str) -> String {
        join(&read(text, "handbook").unwrap_err())
    }

    #[test]
    fn defaults_and_the_slug_come_from_elsewhere() {
        let empty = read("# nothing\n", "handbook").unwrap();
        let slug = PipelineSlug::new("handbook").unwrap();
        assert_eq!(empty.definition, PipelineDefinition::new(slug));
        assert_eq!((empty.status, empty.warnings), (None, Vec::new()));
    }

    #[test]
    fn writing_and_reading_is_the_identity() {
        let text = "slug: docs\nname: 'Our: docs'\ndescription: |\n  Two\n  lines\nchunking: {size: 500, unit: characters}\n\
                    embedding: {model: m, base_url: 'http://localhost:11434/v1', credential: KEY, dimensions: 3}\n\
                    language: german\nstatus: draft\n";
        let first = read(text, "other").unwrap();
        assert_eq!(first.definition.slug.as_str(), "docs");
        assert_eq!(first.status, Some(Status::Draft));
        assert_eq!(
            first.definition.chunking,
            Chunking { size: 500, unit: ChunkUnit::Characters, overlap: 40 }
        );
        let written = write_yaml(&first.definition, Status::Draft);
        assert_eq!(read(&written, "other").unwrap(), first);
        let published = write_yaml(&first.definition, Status::Published);
        assert_eq!(read(&published, "other").unwrap().status, None);
        // An answer of the API can be used as a file.
        let mut answer = serde_json::to_value(&first.definition).unwrap();
        answer["id"] = json!("x");
        answer["documents"] = json!(3);
        let again = read(&answer.to_string(), "other").unwrap();
        assert_eq!((again.definition, again.warnings), (first.definition, Vec::new()));
    }

    #[test]
    fn problems_have_their_line() {
        assert_eq!(
            problems("name: x\nchunking:\n  size: 5\n"),
            "line 3, column 3: `chunking.size`: is 5; use 16 to 16000"
        );
        let found = problems("language: french\nembedding:\n  base_url: x\nstatus: 7\n");
        for expected in ["line 1", "`language`", "`embedding.model`: missing", "line 4", "`status`"] {
            assert!(found.contains(expected), "{expected}: {found}");
        }
        assert!(problems("slug: a b\n").contains("`slug`"));
        assert!(problems("- a\n").contains("expected a map"));
        let misspelled = read("chunkin: {}\n", "docs").unwrap().warnings;
        assert!(join(&misspelled).contains("did you mean `chunking`?"), "{misspelled:?}");
    }
}
