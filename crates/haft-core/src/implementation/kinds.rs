//! The kinds of implementations and their settings, except HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::artifact::{ArtifactInput, ArtifactRuntime};
use crate::implementation::{Http, Steps};

/// The implementation of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Implementation {
    /// A registered Rust function.
    Function(Function),
    /// One HTTP request, or several.
    Http(Box<Http>),
    /// A bash or python body.
    Script(Script),
    /// A WebAssembly component or module.
    Wasm(Wasm),
    /// A program with arguments, or a shell command.
    Exec(Exec),
    /// Reads a file inside a file root.
    FileRead(FileRead),
    /// Writes a file inside a file root.
    FileWrite(FileWrite),
    /// A function of a Python toolset.
    Python(Python),
    /// A tool of an MCP server.
    Mcp(Mcp),
    /// A stored code artifact.
    Artifact(Artifact),
    /// A child agent run.
    AgentCall(AgentCall),
    /// A query to a retrieval pipeline.
    RagRetrieval(RagRetrieval),
    /// Calls of other tools, in sequence or as a graph.
    Steps(Steps),
}

/// The name of an implementation type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ImplementationType))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// See [`Implementation::Function`].
    Function,
    /// See [`Implementation::Http`].
    Http,
    /// See [`Implementation::Script`].
    Script,
    /// See [`Implementation::Wasm`].
    Wasm,
    /// See [`Implementation::Exec`].
    Exec,
    /// See [`Implementation::FileRead`].
    FileRead,
    /// See [`Implementation::FileWrite`].
    FileWrite,
    /// See [`Implementation::Python`].
    Python,
    /// See [`Implementation::Mcp`].
    Mcp,
    /// See [`Implementation::Artifact`].
    Artifact,
    /// See [`Implementation::AgentCall`].
    AgentCall,
    /// See [`Implementation::RagRetrieval`].
    RagRetrieval,
    /// See [`Implementation::Steps`].
    Steps,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 13] = [
        Kind::Function,
        Kind::Http,
        Kind::Script,
        Kind::Wasm,
        Kind::Exec,
        Kind::FileRead,
        Kind::FileWrite,
        Kind::Python,
        Kind::Mcp,
        Kind::Artifact,
        Kind::AgentCall,
        Kind::RagRetrieval,
        Kind::Steps,
    ];

    /// Returns the name used in definitions and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Http => "http",
            Kind::Script => "script",
            Kind::Wasm => "wasm",
            Kind::Exec => "exec",
            Kind::FileRead => "file_read",
            Kind::FileWrite => "file_write",
            Kind::Python => "python",
            Kind::Mcp => "mcp",
            Kind::Artifact => "artifact",
            Kind::AgentCall => "agent_call",
            Kind::RagRetrieval => "rag_retrieval",
            Kind::Steps => "steps",
        }
    }

    /// Parses a name, or an alias that a dialect uses for it.
    pub fn parse(text: &str) -> Option<Kind> {
        match text {
            "go" | "builtin" | "internal" | "native" => Some(Kind::Function),
            _ => Kind::ALL.into_iter().find(|kind| kind.as_str() == text),
        }
    }
}

impl Implementation {
    /// Returns the kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Implementation::Function(_) => Kind::Function,
            Implementation::Http(_) => Kind::Http,
            Implementation::Script(_) => Kind::Script,
            Implementation::Wasm(_) => Kind::Wasm,
            Implementation::Exec(_) => Kind::Exec,
            Implementation::FileRead(_) => Kind::FileRead,
            Implementation::FileWrite(_) => Kind::FileWrite,
            Implementation::Python(_) => Kind::Python,
            Implementation::Mcp(_) => Kind::Mcp,
            Implementation::Artifact(_) => Kind::Artifact,
            Implementation::AgentCall(_) => Kind::AgentCall,
            Implementation::RagRetrieval(_) => Kind::RagRetrieval,
            Implementation::Steps(_) => Kind::Steps,
        }
    }

    /// Returns how the standard output of its process becomes the value.
    pub const fn output_format(&self) -> OutputFormat {
        match self {
            Implementation::Script(script) => script.output,
            Implementation::Exec(exec) => exec.output,
            _ => OutputFormat::Auto,
        }
    }

    /// Returns the Python packages that it needs, as requirement lines; `None` if it does not run Python.
    pub fn dependencies(&self) -> Option<&[String]> {
        match self {
            Implementation::Script(script) if script.runtime == ScriptRuntime::Python => {
                Some(&script.dependencies)
            }
            Implementation::Python(python) => Some(&python.dependencies),
            _ => None,
        }
    }

    /// Returns the language of the body, if there is one.
    pub const fn runtime(&self) -> Option<&'static str> {
        match self {
            Implementation::Script(script) => Some(script.runtime.as_str()),
            Implementation::Wasm(_) => Some("wasm"),
            Implementation::Python(_) => Some("python"),
            Implementation::Artifact(Artifact { runtime: Some(runtime), .. }) => Some(runtime.as_str()),
            _ => None,
        }
    }
}

/// A registered Rust function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = FunctionImplementation))]
pub struct Function {
    /// The registered name.
    pub function: String,
    /// Settings of the function, besides the arguments of calls.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}

impl Function {
    /// Creates a reference to a function, without settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self { function: name.into(), config: Map::new() }
    }
}

/// A bash or python body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Script {
    /// The language.
    pub runtime: ScriptRuntime,
    /// The text.
    pub body: String,
    /// How its standard output becomes the value.
    #[serde(default, skip_serializing_if = "OutputFormat::is_default")]
    pub output: OutputFormat,
    /// The Python packages that it needs, such as `rich>=13`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
}

impl Script {
    /// Creates a script without dependencies, whose output is JSON where it is valid JSON.
    pub fn new(runtime: ScriptRuntime, body: impl Into<String>) -> Self {
        Self { runtime, body: body.into(), output: OutputFormat::default(), dependencies: Vec::new() }
    }
}

/// How the standard output of a process becomes the value of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// JSON if it is one valid document, otherwise text.
    #[default]
    Auto,
    /// Always text.
    Text,
    /// JSON; anything else is an error.
    Json,
}

impl OutputFormat {
    /// Every format, by the name used in definitions.
    pub const ALL: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("text", Self::Text), ("json", Self::Json)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Auto
    }

    /// Returns the name used in definitions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScriptRuntime {
    /// GNU bash.
    Bash,
    /// Python 3.
    Python,
}

impl ScriptRuntime {
    /// Returns the name used in definitions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Python => "python",
        }
    }
}

/// A WebAssembly component or module: a file of the bundle, or its bytes in base64.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Wasm {
    /// The file, relative to the bundle's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The exported function; by default the one that is conventional for the module's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Environment variables, whose values are templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The file roots that it can access, each as the folder `/NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileAccess>,
}

/// The access of a tool to a file root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileAccess {
    /// Read files.
    Read,
    /// Read, create, change and remove files.
    Write,
}

/// A program that runs as a process of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ExecFields", into = "ExecFields")]
pub struct Exec {
    /// What to run.
    pub program: ExecProgram,
    /// The templates of additional environment variables.
    pub env: BTreeMap<String, String>,
    /// The template of the text for standard input; `None` means empty.
    pub stdin: Option<String>,
    /// How its standard output becomes the value.
    pub output: OutputFormat,
}

/// What an `exec` tool runs.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecProgram {
    /// A bash command; values travel in environment variables.
    Command(String),
    /// The program and its arguments, started without a shell.
    Argv(Vec<String>),
}

impl Exec {
    /// Makes an `exec` implementation without `env` and `stdin`.
    pub fn new(program: ExecProgram) -> Self {
        Self { program, env: BTreeMap::new(), stdin: None, output: OutputFormat::default() }
    }
}

/// The fields of [`Exec`] as stored and sent.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct ExecFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    #[serde(default, skip_serializing_if = "OutputFormat::is_default")]
    output: OutputFormat,
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Exec {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        ExecFields::schema()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Exec {}

impl From<Exec> for ExecFields {
    fn from(Exec { program, env, stdin, output }: Exec) -> Self {
        let (command, argv) = match program {
            ExecProgram::Command(command) => (Some(command), None),
            ExecProgram::Argv(argv) => (None, Some(argv)),
        };
        Self { command, argv, env, stdin, output }
    }
}

impl TryFrom<ExecFields> for Exec {
    type Error = &'static str;

    fn try_from(ExecFields { command, argv, env, stdin, output }: ExecFields) -> Result<Self, Self::Error> {
        let program = match (command, argv) {
            (Some(command), None) => ExecProgram::Command(command),
            (None, Some(argv)) => ExecProgram::Argv(argv),
            _ => return Err("expected exactly one of `argv` and `command`"),
        };
        Ok(Self { program, env, stdin, output })
    }
}

/// The encoding of file content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = FileEncoding))]
pub enum Encoding {
    /// As UTF-8 text.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// As base64.
    #[serde(rename = "base64")]
    Base64,
    /// As bytes: base64 that is marked as a file.
    #[serde(rename = "binary")]
    Binary,
}

/// Reads a file inside a file root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileRead {
    /// The path template, relative to the root.
    pub path: String,
    /// The encoding of the result.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub encoding: Encoding,
    /// The name of the file root; by default the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Writes a file inside a file root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileWrite {
    /// The path template, relative to the root.
    pub path: String,
    /// The content template.
    pub content: String,
    /// The encoding of `content`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub encoding: Encoding,
    /// The permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Whether parent folders are created.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub mkdir: bool,
    /// The name of the file root; by default the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// A function of a Python toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = PythonFunction))]
pub struct Python {
    /// `module:function`.
    pub entrypoint: String,
    /// The hash of the installed package that has the module; set by the installation of a toolset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The Python packages that it needs, such as `rich>=13`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
}

impl Python {
    /// Creates a reference to a function, without dependencies.
    pub fn new(entrypoint: impl Into<String>) -> Self {
        Self { entrypoint: entrypoint.into(), package: None, dependencies: Vec::new() }
    }
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpTool))]
#[serde(default)]
pub struct Mcp {
    /// The id of a configured server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The URL of a server that is not configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
    /// The name of the tool on that server.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub tool_name: String,
    /// Header templates for `server_url`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The annotations of the server about the behavior of the tool.
    #[serde(skip_serializing_if = "ToolHints::is_empty")]
    pub hints: ToolHints,
    /// Whether its calls work in the folder of their workspace; a setting of the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub workspace: bool,
}

/// The annotations of an MCP server about the behavior of a tool; read-only tools have the tag `read-only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ToolHints {
    /// Whether it may delete or overwrite something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether a second call with the same arguments has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether it interacts with an open set of external entities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Returns whether the server says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A code artifact: a stored one, or inline source code.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ArtifactImplementation))]
#[serde(default)]
pub struct Artifact {
    /// The id or slug of a stored artifact; `None` if `source` has the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// The language of `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<ArtifactRuntime>,
    /// The code, if it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The inputs of `source`; those of a stored artifact are stored with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ArtifactInput>,
    /// The version of the stored artifact; by default the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_version: Option<String>,
    /// Settings, passed through unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}

/// A child agent run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct AgentCall {
    /// The agent by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_agent_id: Option<String>,
    /// The agent by slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_agent_slug: Option<String>,
}

/// A query to a retrieval pipeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RagRetrieval {
    /// The id of the pipeline.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub pipeline_id: String,
    /// Settings of the retrieval.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}
