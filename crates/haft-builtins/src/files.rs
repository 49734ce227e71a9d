//! `read_file`, `write_file`, `append_file` and `list_files`, in the first sandbox folder of the tenant.

use haft_core::executor::CallContext;
use haft_core::implementation::{Encoding, FileRead, FileWrite, Implementation};
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::spec::ToolSpec;
use haft_executors::files::{AppendOptions, Files, ListOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{BuiltIn, Describe, describe};

/// The maximum size of a file to read or write.
const MAX_TEXT: u64 = 1024 * 1024;
/// The maximum size of a file after an append.
const MAX_LOG_SIZE: u64 = 64 * 1024 * 1024;
/// The maximum number of entries in a listing.
const MAX_ENTRIES: usize = 1000;

fn path_schema(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 4096, "description": description})
}

pub(crate) fn read_file() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "read_file",
        description: "Read a UTF-8 text file in the workspace and return its content. Use list_files first if you do not \
                      know the path. Folders, binary files and files larger than 1 MiB are errors.",
        category: "files",
        tags: &["files", "read"],
        input: json!({
            "type": "object",
            "properties": {"path": path_schema("Path of the file, relative to the workspace, such as notes/todo.md")},
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
        description: "Write a text file in the workspace. Creates the file and missing folders, or replaces the content of \
                      an existing file; use append_file to add to it. Returns the path, the size in bytes and whether the \
                      file is new.",
        category: "files",
        tags: &["files", "write"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path_schema("Path of the file, relative to the workspace"),
                "content": {"type": "string", "description": "The new content of the file, at most 1 MiB"},
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
        description: "Append text to a file in the workspace, for example a log or notes. Creates the file and missing \
                      folders. No line break is inserted, so start the text with one if you need it. Returns the new size.",
        category: "files",
        tags: &["files", "write"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path_schema("Path of the file, relative to the workspace"),
                "content": {"type": "string", "maxLength": MAX_TEXT, "description": "The text to append"},
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
                      other), size in bytes and modification time, sorted by name. At most 1000 entries; if there are more, \
                      the last entry has kind `more`.",
        category: "files",
        tags: &["files", "read", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "path": path_schema("Path of the folder, relative to the workspace. Default: the workspace itself"),
                "recursive": {"type": "boolean", "description": "Whether to list subfolders, too"},
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

/// The function of `append_file`.
pub(crate) struct AppendFile(pub(crate) Files);

#[derive(Deserialize)]
pub(crate) struct AppendArgs {
    path: String,
    content: String,
}

impl BuiltIn for AppendFile {
    type Args = AppendArgs;

    const WORKS_WITH_FILES: bool = true;

    async fn call(&self, call: &CallContext, args: AppendArgs) -> Outcome {
        let options = AppendOptions { path: args.path, content: args.content, max_bytes: MAX_LOG_SIZE };
        self.0.append(call, options).await
    }
}

/// The function of `list_files`.
pub(crate) struct ListFiles(pub(crate) Files);

#[derive(Deserialize)]
pub(crate) struct ListArgs {
    #[serde(default = "workspace_root")]
    path: String,
    #[serde(default)]
    recursive: bool,
}

fn workspace_root() -> String {
    ".".to_owned()
}

impl BuiltIn for ListFiles {
    type Args = ListArgs;

    const WORKS_WITH_FILES: bool = true;

    async fn call(&self, call: &CallContext, args: ListArgs) -> Outcome {
        let options = ListOptions { path: args.path, recursive: args.recursive, max_entries: MAX_ENTRIES };
        self.0.list(call, options).await
    }
}
