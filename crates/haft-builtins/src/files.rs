//! `read_file`, `write_file`, `append_file`, `list_files`: the first folder of the configuration.

use haft_core::executor::CallContext;
use haft_core::implementation::{Encoding, FileRead, FileWrite, Implementation};
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::spec::ToolSpec;
use haft_runtime::files::{AppendOptions, Files, ListOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{BuiltIn, Describe, describe};

/// The largest file that is read or written.
const MAX_TEXT: u64 = 1024 * 1024;
/// The largest file that something is added to.
const MAX_LOG_SIZE: u64 = 64 * 1024 * 1024;
/// The most entries of a listing.
const MAX_ENTRIES: usize = 1000;

fn path(what: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 4096, "description": what})
}

pub(crate) fn read_file() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "read_file",
        description: "Read a UTF-8 text file from the workspace and return its whole text. Use list_files first if you \
                      do not know the path. Fails for folders, binary files and files above 1 MiB.",
        category: "files",
        tags: &["files", "read"],
        input: json!({
            "type": "object",
            "properties": {"path": path("Path of the file, relative to the workspace, such as notes/todo.md")},
            "required": ["path"],
            "additionalProperties": false,
        }),
        output: json!({"type": "string"}),
    })?;
    spec.implementation = Implementation::FileRead(FileRead {
        path: "{{path}}".to_owned(),
        encoding: Encoding::Utf8,
        root: None,
    });
    spec.execution.limits.max_response_bytes = MAX_TEXT;
    Ok(spec)
}

pub(crate) fn write_file() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "write_file",
        description: "Write a text file in the workspace: makes it, or replaces all of its content. Missing folders are \
                      made. Use append_file to add to a file. Returns the path, the size in bytes and whether the file is new.",
        category: "files",
        tags: &["files", "write"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path("Path of the file, relative to the workspace"),
                "content": {"type": "string", "description": "The whole new text, at most 1 MiB"},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "size": {"type": "integer"}, "created": {"type": "boolean"}},
            "required": ["path", "size", "created"],
        }),
    })?;
    spec.implementation = Implementation::FileWrite(FileWrite {
        path: "{{path}}".to_owned(),
        content: "{{content}}".to_owned(),
        encoding: Encoding::Utf8,
        mode: None,
        mkdir: true,
        root: None,
    });
    spec.execution.limits.max_request_bytes = MAX_TEXT;
    Ok(spec)
}

pub(crate) fn append_file() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "append_file",
        description: "Add text to the end of a file in the workspace, for logs and notes that grow. A missing file is \
                      made, with its folders; nothing is inserted, so begin with a line break where you need one. Returns the new size.",
        category: "files",
        tags: &["files", "write"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path("Path of the file, relative to the workspace"),
                "content": {"type": "string", "maxLength": MAX_TEXT, "description": "The text to add"},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "size": {"type": "integer"},
                "appended": {"type": "integer"},
                "created": {"type": "boolean"},
            },
            "required": ["path", "size", "appended", "created"],
        }),
    })
}

pub(crate) fn list_files() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "list_files",
        description: "List a folder of the workspace as a JSON array of entries with name, kind (file, folder, link, \
                      other), size in bytes and time of the last change, sorted by name. At most 1000 entries; a last \
                      entry of kind `more` says that there are others.",
        category: "files",
        tags: &["files", "read", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path("Path of the folder, relative to the workspace; the workspace itself where it is left out"),
                "recursive": {"type": "boolean", "description": "Whether to list what is in its folders, too"},
            },
            "additionalProperties": false,
        }),
        output: json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"enum": ["file", "folder", "link", "other", "more"]},
                    "size": {"type": ["integer", "null"]},
                    "modified": {"type": ["string", "null"]},
                },
                "required": ["name", "kind"],
            },
        }),
    })
}

/// Adds to files.
pub(crate) struct AppendFile(pub(crate) Files);

#[derive(Deserialize)]
pub(crate) struct AppendArgs {
    path: String,
    content: String,
}

impl BuiltIn for AppendFile {
    type Args = AppendArgs;

    async fn call(&self, _call: &CallContext, args: AppendArgs) -> Outcome {
        self.0.append(AppendOptions { path: args.path, content: args.content, max_bytes: MAX_LOG_SIZE }).await
    }
}

/// Lists folders.
pub(crate) struct ListFiles(pub(crate) Files);

#[derive(Deserialize)]
pub(crate) struct ListArgs {
    #[serde(default = "whole")]
    path: String,
    #[serde(default)]
    recursive: bool,
}

fn whole() -> String {
    ".".to_owned()
}

impl BuiltIn for ListFiles {
    type Args = ListArgs;

    async fn call(&self, _call: &CallContext, args: ListArgs) -> Outcome {
        self.0
            .list(ListOptions { path: args.path, recursive: args.recursive, max_entries: MAX_ENTRIES })
            .await
    }
}
