//! Files in request bodies: `multipart/form-data`, and bodies that are one file.
//!
//! Files of the workspace are read before the request is built: [`load`] blocks no thread of the runtime, and reads only
//! regular files beneath the folder of the workspace.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_template::Values;
use serde_json::{Map, Value};

use super::plan::{Body, Step};
use crate::files::{SmallFileError, read_small};

/// The maximum size of a request body with files of the workspace.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The maximum number of files in one request.
const MAX_FILES: usize = 32;

/// Where the content of workspace files comes from.
#[derive(Clone, Copy)]
pub(super) enum FileSource<'a> {
    /// The files that were read, by path.
    Loaded(&'a BTreeMap<String, Bytes>),
    /// A placeholder stands for each.
    Preview,
}

/// A file to send.
pub(super) struct FilePart {
    name: String,
    media_type: String,
    pub(super) bytes: Bytes,
}

/// Reads the workspace files that the body of a request names.
pub(super) async fn load(
    step: &Step,
    values: &Values<'_>,
    call: &CallContext,
) -> Result<BTreeMap<String, Bytes>, CallError> {
    let paths = paths(step, values)?;
    let mut loaded = BTreeMap::new();
    if paths.is_empty() {
        return Ok(loaded);
    }
    let Some(workspace) = &call.workspace else {
        let message =
            "the call has no workspace to read a file from; pass `text` or `base64` instead of `path`";
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    };
    let mut left = MAX_BYTES;
    for path in paths {
        let (folder, name) = (workspace.path.clone(), path.clone());
        let reading = tokio::task::spawn_blocking(move || read_small(&folder, &name, left, &[])).await;
        let read = reading.map_err(|_| CallError::internal("failed to read a file of the workspace"))?;
        let bytes = read.map_err(|error| {
            let shown = excerpt(&path, 200);
            let (code, message) = match error {
                SmallFileError::TooLarge => (
                    ErrorCode::TooLarge,
                    format!("the files of the request exceed the limit of {MAX_BYTES} bytes"),
                ),
                SmallFileError::Unusable(reason) => {
                    (ErrorCode::InvalidArguments, format!("`{shown}` {reason}"))
                }
            };
            CallError::new(code, message)
        })?;
        left -= bytes.len().min(left);
        loaded.insert(path, Bytes::from(bytes));
    }
    Ok(loaded)
}

/// Returns the paths of workspace files in the file fields of a body.
fn paths(step: &Step, values: &Values<'_>) -> Result<Vec<String>, CallError> {
    let template = match &step.body {
        Body::Multipart(template) | Body::File(template, _) if !step.files.is_empty() => template,
        _ => return Ok(Vec::new()),
    };
    let Some(Value::Object(map)) = template.render(values)?.0 else { return Ok(Vec::new()) };
    let fields = map.iter().filter(|(name, _)| step.files.contains(name)).flat_map(|(_, value)| items(value));
    let mut paths = Vec::new();
    for path in fields.filter_map(|file| file.get("path")?.as_str()) {
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
        if paths.len() > MAX_FILES {
            let message = format!("the request has more than {MAX_FILES} files");
            return Err(CallError::new(ErrorCode::InvalidArguments, message));
        }
    }
    Ok(paths)
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        value => std::slice::from_ref(value),
    }
}

/// Reads a file argument: a text, or an object with `text`, `base64` or `path`.
pub(super) fn file(field: &str, value: &Value, source: FileSource<'_>) -> Result<FilePart, CallError> {
    let invalid = |message: String| {
        let shown = excerpt(field, 60);
        CallError::new(ErrorCode::InvalidArguments, format!("invalid file `{shown}`: {message}"))
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let (bytes, default_name, default_type) = match value {
        Value::String(content) => (Bytes::from(content.clone()), None, "text/plain; charset=utf-8"),
        Value::Object(_) => match (text("text"), text("base64"), text("path")) {
            (Some(content), None, None) => (Bytes::from(content), None, "text/plain; charset=utf-8"),
            (None, Some(encoded), None) => {
                let plain: Vec<u8> = encoded.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
                let bytes =
                    STANDARD.decode(plain).map_err(|error| invalid(format!("not valid base64: {error}")))?;
                (Bytes::from(bytes), None, "application/octet-stream")
            }
            (None, None, Some(path)) => {
                let bytes = match source {
                    FileSource::Loaded(files) => files.get(&path).cloned(),
                    FileSource::Preview => Some(Bytes::from(format!("(file `{path}`)"))),
                };
                let bytes = bytes.ok_or_else(|| invalid("the file was not read".to_owned()))?;
                let name = path.rsplit('/').next().map(str::to_owned);
                (bytes, name, "application/octet-stream")
            }
            _ => return Err(invalid("expected one of `text`, `base64` and `path`".to_owned())),
        },
        _ => return Err(invalid("expected a text, or an object with `text`, `base64` or `path`".to_owned())),
    };
    let media_type = text("media_type").unwrap_or_else(|| default_type.to_owned());
    if media_type.len() > 200 || !media_type.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(invalid("`media_type` is not a media type".to_owned()));
    }
    let name = text("name").or(default_name).unwrap_or_else(|| "file".to_owned());
    Ok(FilePart { name, media_type, bytes })
}

/// Encodes the fields of a form; returns the boundary and the body. A list becomes repeated parts, and an object that is no
/// file a part in JSON.
pub(super) fn encode(
    fields: Map<String, Value>,
    files: &[String],
    source: FileSource<'_>,
) -> Result<(String, Bytes), CallError> {
    let mut parts: Vec<(String, Bytes)> = Vec::new();
    for (name, value) in fields {
        let is_file = files.contains(&name);
        let items = match value {
            Value::Array(items) => items,
            Value::Null => continue,
            value => vec![value],
        };
        for item in items {
            let head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(&name));
            if is_file {
                let file = file(&name, &item, source)?;
                let file_name = quoted(&file.name);
                let head = format!("{head}; filename=\"{file_name}\"\r\nContent-Type: {}", file.media_type);
                parts.push((head, file.bytes));
                continue;
            }
            match item {
                Value::String(text) => parts.push((head, text.into())),
                Value::Null => {}
                item @ (Value::Bool(_) | Value::Number(_)) => parts.push((head, item.to_string().into())),
                item => {
                    parts
                        .push((format!("{head}\r\nContent-Type: application/json"), item.to_string().into()));
                }
            }
        }
    }
    let boundary = boundary(&parts);
    let mut body = Vec::with_capacity(parts.iter().map(|(head, bytes)| head.len() + bytes.len() + 80).sum());
    for (head, bytes) in parts {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
        body.extend_from_slice(&bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((boundary, body.into()))
}

/// Escapes a name as browsers do.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns a boundary that no part contains: a digest of all of them, so that a repeated request is the same.
fn boundary(parts: &[(String, Bytes)]) -> String {
    let digests: Vec<String> = parts
        .iter()
        .flat_map(|(head, bytes)| {
            [haft_core::hash::of_bytes(head.as_bytes()), haft_core::hash::of_bytes(bytes)]
        })
        .collect();
    let digest = haft_core::hash::of_bytes(digests.concat().as_bytes());
    format!("haft-{}", digest.get(..32).unwrap_or(&digest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(fields: Value, files: &[&str]) -> Result<String, String> {
        let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
        let Value::Object(fields) = fields else { panic!("not an object") };
        let loaded = BTreeMap::from([("a/b.pdf".to_owned(), Bytes::from_static(b"%PDF"))]);
        let (boundary, body) =
            encode(fields, &files, FileSource::Loaded(&loaded)).map_err(|error| error.message)?;
        Ok(String::from_utf8_lossy(&body).replace(&boundary, "B").replace("\r\n", "\n"))
    }

    #[test]
    fn fields_and_files_become_parts() {
        let fields = json!({
            "n": 1, "none": null, "tags": ["x", "y"], "meta": {"a": true},
            "f\"\r\n": {"base64": "iVBO\nRw==", "name": "p.png", "media_type": "image/png"},
            "doc": {"path": "a/b.pdf"}, "note": "hello",
        });
        let body = encoded(fields, &["f\"\r\n", "doc", "note"]).unwrap();
        assert_eq!(
            body,
            "--B\nContent-Disposition: form-data; name=\"n\"\n\n1\n\
             --B\nContent-Disposition: form-data; name=\"tags\"\n\nx\n\
             --B\nContent-Disposition: form-data; name=\"tags\"\n\ny\n\
             --B\nContent-Disposition: form-data; name=\"meta\"\nContent-Type: application/json\n\n{\"a\":true}\n\
             --B\nContent-Disposition: form-data; name=\"f%22%0D%0A\"; filename=\"p.png\"\nContent-Type: image/png\n\n\u{fffd}PNG\n\
             --B\nContent-Disposition: form-data; name=\"doc\"; filename=\"b.pdf\"\nContent-Type: application/octet-stream\n\n%PDF\n\
             --B\nContent-Disposition: form-data; name=\"note\"; filename=\"file\"\nContent-Type: text/plain; charset=utf-8\n\nhello\n\
             --B--\n"
        );
    }

    #[test]
    fn invalid_files_are_rejected() {
        for (file, expected) in [
            (json!({"base64": "*"}), "invalid file `f`: not valid base64: Invalid symbol 42, offset 0."),
            (
                json!({"text": "a", "path": "b"}),
                "invalid file `f`: expected one of `text`, `base64` and `path`",
            ),
            (json!({"path": "other"}), "invalid file `f`: the file was not read"),
            (
                json!({"text": "a", "media_type": "a\r\nX: y"}),
                "invalid file `f`: `media_type` is not a media type",
            ),
            (json!(1), "invalid file `f`: expected a text, or an object with `text`, `base64` or `path`"),
        ] {
            assert_eq!(encoded(json!({"f": file}), &["f"]).unwrap_err(), expected);
        }
    }
}
