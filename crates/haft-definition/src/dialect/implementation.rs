//! Reads implementations, which are similar in all dialects.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::execution::{self, retry};
use super::fields::{Fields, unknown};
use super::{artifact, http, steps};
use haft_core::implementation::{
    AgentCall, Encoding, Exec, ExecProgram, FileAccess, FileRead, FileWrite, Function, Implementation, Kind,
    Mcp, Notation, OutputFormat, Python, RagRetrieval, Script, ScriptRuntime, ToolHints, Wasm,
};
use haft_core::problem::excerpt;
use haft_core::spec::Retry;

/// An implementation, and the execution settings in its block.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) implementation: Option<Implementation>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) retry: Option<Retry>,
}

/// How a dialect reads an implementation block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reader {
    /// The default template notation.
    pub(super) notation: Notation,
    /// Whether unknown fields are settings of the artifact, the pipeline or the built-in function.
    pub(super) inline_config: bool,
}

impl Reader {
    pub(super) const fn with(notation: Notation) -> Self {
        Self { notation, inline_config: false }
    }

    /// Reads a block with a `type` field.
    pub(super) fn tagged(self, fields: &mut Fields<'_>) -> Block {
        let Some(word) = fields.required_text("type", &format!("one of {}", kinds())) else {
            fields.rest();
            return Block::default();
        };
        match kind(&word) {
            Ok(kind) => self.read(fields, kind),
            Err(message) => {
                fields.error("type", "unknown_type", message);
                fields.rest();
                Block::default()
            }
        }
    }

    /// Reads a block of the given kind.
    pub(super) fn read(self, fields: &mut Fields<'_>, kind: Kind) -> Block {
        let implementation = match kind {
            Kind::Http => Some(Implementation::Http(Box::new(http::read(fields, self.notation)))),
            Kind::Function => function(fields),
            Kind::Script => script(fields),
            Kind::Wasm => {
                let (file, base64) = (fields.text("file"), fields.text("base64"));
                Some(Implementation::Wasm(wasm(fields, file, base64)))
            }
            Kind::Exec => exec(fields),
            Kind::FileRead => file_read(fields),
            Kind::FileWrite => file_write(fields),
            Kind::Python => python(fields),
            Kind::Mcp => mcp(fields),
            Kind::Artifact => artifact::read(fields),
            Kind::AgentCall => Some(Implementation::AgentCall(AgentCall {
                target_agent_id: fields.text("target_agent_id"),
                target_agent_slug: fields.text("target_agent_slug"),
            })),
            Kind::RagRetrieval => rag(fields),
            Kind::Steps => steps::read(fields).map(Implementation::Steps),
        };
        let timeout_ms = if kind == Kind::Http { None } else { execution::timeout(fields) };
        let retry = retry(fields);
        let mut block = Block { implementation, timeout_ms, retry };
        if self.inline_config {
            block.inline(fields.rest());
        }
        block
    }
}

impl Block {
    fn inline(&mut self, rest: Map<String, Value>) {
        match &mut self.implementation {
            Some(Implementation::Artifact(artifact)) => artifact.config.extend(rest),
            Some(Implementation::RagRetrieval(rag)) => rag.config.extend(rest),
            Some(Implementation::Function(function)) => function.config.extend(rest),
            _ => {}
        }
    }
}

/// Parses the name of an implementation type.
pub(super) fn kind(word: &str) -> Result<Kind, String> {
    Kind::parse(word).ok_or_else(|| unknown("implementation type", word, &words()))
}

fn kinds() -> String {
    words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the names of all types, including the alias of functions in definitions.
fn words() -> Vec<&'static str> {
    let mut words = vec!["builtin"];
    words.extend(Kind::ALL.map(Kind::as_str));
    words
}

/// Settings of functions that may be outside `config`.
const FUNCTION_SETTINGS: [&str; 3] = ["api_key", "credentials_ref", "provider"];

fn function(fields: &mut Fields<'_>) -> Option<Implementation> {
    let Some(key) = fields.alias(&["function", "function_name", "goFunc", "builtin_key"]) else {
        fields.missing("function", "the name of a registered function");
        return None;
    };
    let function = fields.text(key);
    let mut config = fields.object("config").unwrap_or_default();
    // The registry form has them next to the name.
    for key in FUNCTION_SETTINGS {
        if let Some(value) = fields.value(key) {
            config.insert(key.to_owned(), value);
        }
    }
    Some(Implementation::Function(Function { function: function?, config }))
}

fn script(fields: &mut Fields<'_>) -> Option<Implementation> {
    let runtimes = [("bash", ScriptRuntime::Bash), ("python", ScriptRuntime::Python)];
    if !fields.has("runtime") {
        fields.missing("runtime", "`bash` or `python`");
    }
    let runtime = fields.choice("runtime", &runtimes);
    let body = fields.required_text("body", "the text of the script");
    let (output, dependencies) = (output_format(fields), dependencies(fields));
    Some(Implementation::Script(Script { runtime: runtime?, body: body?, output, dependencies }))
}

fn python(fields: &mut Fields<'_>) -> Option<Implementation> {
    let entrypoint = fields.required_text("entrypoint", "`module:function`");
    let dependencies = dependencies(fields);
    // Shown for functions of toolsets; only an installation sets it.
    fields.ignore(&["package"]);
    Some(Implementation::Python(Python { entrypoint: entrypoint?, package: None, dependencies }))
}

/// The spellings of the Python packages that a tool needs.
pub(super) const DEPENDENCIES: [&str; 2] = ["dependencies", "requirements"];

/// Reads the Python packages that a tool needs: a list of requirements, or a text with one in each line.
pub(super) fn dependencies(fields: &mut Fields<'_>) -> Vec<String> {
    let Some(key) = fields.alias(&DEPENDENCIES) else { return Vec::new() };
    if !fields.peek(key).is_some_and(Value::is_string) {
        return fields.texts(key).unwrap_or_default();
    }
    let text = fields.text(key).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Reads the settings of a module.
pub(super) fn wasm(fields: &mut Fields<'_>, file: Option<String>, base64: Option<String>) -> Wasm {
    let accesses = [("read", FileAccess::Read), ("write", FileAccess::Write)];
    let mut files = BTreeMap::new();
    for (name, word) in fields.text_map("files").unwrap_or_default() {
        if let Some((_, access)) = accesses.iter().find(|(known, _)| *known == word) {
            files.insert(name, *access);
        } else {
            let message =
                format!("`{}`: {}", excerpt(&name, 60), unknown("access", &word, &["read", "write"]));
            fields.error("files", "invalid_value", message);
        }
    }
    let env = fields.text_map("env").unwrap_or_default();
    Wasm { file, base64, function: fields.text("function"), env, files }
}

fn exec(fields: &mut Fields<'_>) -> Option<Implementation> {
    let is_given = fields.has("command") || fields.has("argv");
    let command = fields.text("command");
    let argv = fields.scalar_texts("argv");
    let env = fields.text_map("env").unwrap_or_default();
    let stdin = fields.text("stdin");
    let output = output_format(fields);
    let program = match (command, argv) {
        (Some(command), None) => ExecProgram::Command(command),
        (None, Some(argv)) => ExecProgram::Argv(argv),
        (Some(_), Some(_)) => {
            fields.error("argv", "conflicting_fields", "expected exactly one of `argv` and `command`");
            return None;
        }
        (None, None) => {
            if !is_given {
                fields.missing("command", "the shell command, or `argv` with the program and its arguments");
            }
            return None;
        }
    };
    Some(Implementation::Exec(Exec { program, env, stdin, output }))
}

/// Reads how the standard output becomes the value.
pub(super) fn output_format(fields: &mut Fields<'_>) -> OutputFormat {
    fields.choice("output", &OutputFormat::ALL).unwrap_or_default()
}

fn encoding(fields: &mut Fields<'_>) -> Encoding {
    let encodings = [("utf-8", Encoding::Utf8), ("base64", Encoding::Base64), ("binary", Encoding::Binary)];
    fields.choice("encoding", &encodings).unwrap_or_default()
}

fn file_read(fields: &mut Fields<'_>) -> Option<Implementation> {
    let path = fields.required_text("path", "the path of the file, relative to its root");
    let encoding = encoding(fields);
    let root = fields.text("root");
    Some(Implementation::FileRead(FileRead { path: path?, encoding, root }))
}

fn file_write(fields: &mut Fields<'_>) -> Option<Implementation> {
    let path = fields.required_text("path", "the path of the file, relative to its root");
    let content = fields.required_text("content", "the text to write");
    let encoding = encoding(fields);
    let mode = mode(fields);
    let mkdir = fields.flag("mkdir").unwrap_or_default();
    let root = fields.text("root");
    Some(Implementation::FileWrite(FileWrite { path: path?, content: content?, encoding, mode, mkdir, root }))
}

/// Reads permission bits: `0644` and `"0644"` are octal, `420` is decimal.
fn mode(fields: &mut Fields<'_>) -> Option<u32> {
    const EXPECTED: &str = "permission bits such as `0644`";
    match fields.value("mode")? {
        Value::String(text) => {
            let digits = text.strip_prefix("0o").unwrap_or(&text);
            let bits = u32::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with('+'));
            if bits.is_none() {
                fields.error("mode", "invalid_value", format!("expected {EXPECTED}"));
            }
            bits
        }
        number => {
            let bits = number.as_u64().and_then(|bits| u32::try_from(bits).ok());
            match bits {
                None => fields.error("mode", "wrong_type", format!("expected {EXPECTED}")),
                Some(bits) if bits > 0o777 => fields.warn(
                    "mode",
                    "decimal_mode",
                    format!(
                        "{bits} without a leading zero is decimal, that is 0{bits:o}; did you mean `0{bits}`?"
                    ),
                ),
                Some(_) => {}
            }
            bits
        }
    }
}

fn rag(fields: &mut Fields<'_>) -> Option<Implementation> {
    let pipeline_id = fields.required_text("pipeline_id", "the id of the retrieval pipeline");
    let config = fields.object("config").unwrap_or_default();
    Some(Implementation::RagRetrieval(RagRetrieval { pipeline_id: pipeline_id?, config }))
}

fn mcp(fields: &mut Fields<'_>) -> Option<Implementation> {
    let server = fields.text("server");
    let server_url = fields.text("server_url");
    let tool_name = fields.required_text("tool_name", "the name of the tool on that server");
    let headers = fields.text_map("headers").unwrap_or_default();
    let hints = fields.nested("hints").map(hints).unwrap_or_default();
    let workspace = fields.flag("workspace").unwrap_or_default();
    Some(Implementation::Mcp(Mcp { server, server_url, tool_name: tool_name?, headers, hints, workspace }))
}

fn hints(mut fields: Fields<'_>) -> ToolHints {
    ToolHints {
        destructive: fields.flag("destructive"),
        idempotent: fields.flag("idempotent"),
        open_world: fields.flag("open_world"),
    }
}

/// The unit of bare numbers in `timeout`.
pub(super) const SECOND: Duration = Duration::from_secs(1);
