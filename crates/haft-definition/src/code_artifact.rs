//! Reads and writes code artifacts, one per file. The source is in the text, or in a file beside it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::artifact::{ArtifactContent, ArtifactInput, ArtifactRuntime, MAX_SOURCE};
use haft_core::name::ArtifactSlug;
use haft_core::problem::{Problem, excerpt};
use haft_core::tool::Status;
use serde_json::{Map, Value, json};

use crate::dialect::{self, Bounds, Fields, Report, artifact_inputs, describe, locate_foreign, read_foreign};
use crate::pipeline::STATUSES;

/// The maximum size of a text: escaping and indentation can take several times the room of the source.
pub const MAX_TEXT: usize = 8 * MAX_SOURCE;
const BOUNDS: Bounds = Bounds { nodes: 50_000, bytes: MAX_TEXT };

/// How a compiled WebAssembly module or component starts.
const WASM_MAGIC: &[u8] = b"\0asm";

/// What the API shows about an artifact besides its content. It is ignored, so that an answer can be used as a file.
const STATE: [&str; 14] = [
    "id",
    "version",
    "hash",
    "enabled",
    "revision",
    "published_revision",
    "published_version",
    "path",
    "error",
    "created_by",
    "modified_by",
    "created_at",
    "modified_at",
    "published_at",
];

/// An artifact that was read, with warnings for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadArtifact {
    /// The name by which tools refer to it.
    pub slug: ArtifactSlug,
    /// What the next version contains.
    pub content: ArtifactContent,
    /// The file that has the source, if it is not in the text.
    pub source_file: Option<String>,
    /// Its status, if the text says so.
    pub status: Option<Status>,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

/// Reads a YAML or JSON text. `file_stem` is the slug of an artifact that has none; `beside` returns a file of the same
/// folder by its name.
pub fn read<'a>(
    text: &str,
    file_stem: &str,
    beside: impl Fn(&str) -> Option<Cow<'a, [u8]>>,
) -> Result<ReadArtifact, Vec<Problem>> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(vec![Problem::new("", "too_large", message)]);
    }
    let map = match read_foreign(text, BOUNDS).map_err(|problem| vec![problem])? {
        Value::Object(map) => map,
        other => {
            let message = format!("expected a map with `runtime` and `source`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    let report = Report::default();
    let found = artifact(Fields::new("", map, &report), file_stem, beside);
    let (mut errors, mut warnings) = report.into_parts();
    if errors.is_empty() {
        errors.extend(found.iter().flat_map(|found| found.content.check()));
    }
    locate_foreign(text, &mut errors);
    locate_foreign(text, &mut warnings);
    match found {
        Some(found) if errors.is_empty() => Ok(ReadArtifact { warnings, ..found }),
        _ => Err(errors),
    }
}

fn artifact<'a>(
    mut fields: Fields<'_>,
    file_stem: &str,
    beside: impl Fn(&str) -> Option<Cow<'a, [u8]>>,
) -> Option<ReadArtifact> {
    fields.ignore(&STATE);
    let slug = fields.text("slug").unwrap_or_else(|| file_stem.to_owned());
    let slug = ArtifactSlug::new(&slug).map_err(|error| {
        fields.error("slug", "invalid_name", error.to_string());
    });
    let name = fields.text("name").filter(|name| !name.trim().is_empty());
    let description = fields.text("description").unwrap_or_default();
    if !fields.has("runtime") {
        fields.missing("runtime", "`bash`, `python` or `wasm`");
    }
    let runtime = fields.choice("runtime", &ArtifactRuntime::ALL);
    let has_source = fields.has("source");
    let text = fields.text("source");
    let source_file = fields.text("source_file");
    let inputs = artifact_inputs(&mut fields);
    let status = fields.choice("status", &STATUSES);
    let source = match (&source_file, has_source) {
        (Some(_), true) => {
            fields.error("source_file", "conflicting_fields", dialect::conflict("source"));
            None
        }
        (Some(file), false) => source_of(&fields, file, runtime, beside),
        (None, true) => text,
        (None, false) => {
            fields.missing("source", "the source, or `source_file` with the name of a file beside this one");
            None
        }
    };
    let (slug, runtime, source) = (slug.ok()?, runtime?, source?);
    let name = name.unwrap_or_else(|| slug.to_string());
    let content = ArtifactContent { name, description, runtime, source, inputs };
    Some(ReadArtifact { slug, content, source_file, status, warnings: Vec::new() })
}

/// Returns the source in a file of the same folder. A path is not a name, so nothing outside of the folder is read.
fn source_of<'a>(
    fields: &Fields<'_>,
    file: &str,
    runtime: Option<ArtifactRuntime>,
    beside: impl Fn(&str) -> Option<Cow<'a, [u8]>>,
) -> Option<String> {
    let fail = |code: &str, message: String| fields.error("source_file", code, message);
    if file.is_empty() || file.contains(['/', '\\']) || file.starts_with('.') {
        fail("invalid_value", "expected the name of a file in the same folder, without a path".to_owned());
        return None;
    }
    let Some(bytes) = beside(file) else {
        fail("not_found", format!("there is no file `{}` in the same folder", excerpt(file, 100)));
        return None;
    };
    if bytes.len() > MAX_SOURCE {
        fail("too_large", format!("the file has {} bytes; the limit is {MAX_SOURCE}", bytes.len()));
        return None;
    }
    if runtime == Some(ArtifactRuntime::Wasm) && bytes.starts_with(WASM_MAGIC) {
        return Some(STANDARD.encode(&bytes));
    }
    let text = String::from_utf8(bytes.into_owned()).ok();
    if text.is_none() {
        fail("not_utf8", "the file is not valid UTF-8".to_owned());
    }
    text
}

/// Writes an artifact as a YAML file with its source; reading it returns the same artifact.
pub fn write_yaml(slug: &ArtifactSlug, content: &ArtifactContent, status: Status) -> String {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("slug", json!(slug));
    put("name", json!(content.name));
    if !content.description.is_empty() {
        put("description", json!(content.description));
    }
    put("runtime", json!(content.runtime));
    if !content.inputs.is_empty() {
        put("inputs", content.inputs.iter().map(input).collect());
    }
    if status != Status::Published {
        put("status", json!(status));
    }
    put("source", json!(content.source));
    dialect::write_yaml(&map)
}

fn input(input: &ArtifactInput) -> Value {
    let mut value = json!(input);
    if let Value::Object(map) = &mut value
        && !input.required
    {
        map.shift_remove("required");
    }
    value
}

#[cfg(test)]
mod tests {
    use haft_core::problem::join;

    use super::*;

    const WASM: &[u8] = b"\0asm\x01\0\0\0";

    fn read_with(text: &str) -> Result<ReadArtifact, Vec<Problem>> {
        read(text, "word-count", |name| match name {
            "count.py" => Some(Cow::Borrowed(&b"print(1)\n"[..])),
            "count.wasm" => Some(Cow::Borrowed(WASM)),
            "odd.py" => Some(Cow::Borrowed(&b"\xff"[..])),
            _ => None,
        })
    }

    #[test]
    fn the_source_is_inline_or_in_a_file_beside() {
        let inline = read_with("runtime: python\nsource: |\n  print(1)\n").unwrap();
        let file = read_with("runtime: python\nsource_file: count.py\n").unwrap();
        assert_eq!((inline.slug.as_str(), inline.content.name.as_str()), ("word-count", "word-count"));
        assert_eq!((&inline.slug, &inline.content), (&file.slug, &file.content));
        assert_eq!(file.source_file.as_deref(), Some("count.py"));
        let wasm = read_with("runtime: wasm\nsource_file: count.wasm\n").unwrap();
        assert_eq!(wasm.content.source, STANDARD.encode(WASM));
    }

    #[test]
    fn writing_and_reading_is_the_identity() {
        let text = "slug: totals\nname: Totals\ndescription: 'Sums: rows'\nstatus: draft\nruntime: bash\nsource: echo\n\
                    inputs:\n- {name: rows, type: array, required: true}\n\
                    - {name: unit, default: null, description: x}\n- {name: n, type: number, default: 2.0}\n";
        let mut first = read_with(text).unwrap();
        for source in [
            "echo \"$rows\"",
            "#!/bin/bash\n\n  indented\n\ttab \n\n",
            " leading\r\nlines\u{2028}: #x\n",
            "\n\n\u{7}\u{feff}é",
            "--- \n...\n",
            "true",
        ] {
            source.clone_into(&mut first.content.source);
            let written = write_yaml(&first.slug, &first.content, Status::Draft);
            assert_eq!(read_with(&written).unwrap(), first, "{written}");
        }
    }

    #[test]
    fn problems_have_their_line() {
        let check = |text: &str, expected: &str| {
            let found = join(&read_with(text).unwrap_err());
            assert!(found.contains(expected), "{expected}: {found}");
        };
        check("runtime: cobol\nsource: x\n", "line 1");
        check("source: x\n", "`runtime`: missing required field");
        check("runtime: bash\n", "`source`: missing required field");
        check("runtime: bash\nsource: ' '\n", "line 2, column 1: `source`: the source is empty");
        check("runtime: bash\nsource: x\nsource_file: count.py\n", "line 3");
        check("runtime: bash\nsource_file: none.sh\n", "no file `none.sh` in the same folder");
        check("runtime: python\nsource_file: odd.py\n", "not valid UTF-8");
        for path in ["../count.py", "/etc/passwd", "a/count.py", "..", ".hidden", "..\\x", "''"] {
            check(&format!("runtime: python\nsource_file: {path}\n"), "without a path");
        }
        check("runtime: bash\nsource: x\ninputs: [{name: 1a}]\n", "inputs");
    }
}
