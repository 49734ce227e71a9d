//! How a tool runs: one tagged enum, one executor each.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a tool runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// A shell command template.
    Exec(Exec),
    /// Reads a file inside a named root.
    FileRead(FileRead),
    /// Writes a file inside a named root.
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
}

/// The name of an implementation type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
}

impl Kind {
    /// Every kind, in the order of the design.
    pub const ALL: [Kind; 12] = [
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
    ];

    /// Returns the name used in definitions and on the wire.
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
        }
    }

    /// Reads a name, or one of the spellings that the dialects use for it.
    pub fn parse(text: &str) -> Option<Kind> {
        match text {
            "go" | "builtin" | "internal" | "native" => Some(Kind::Function),
            _ => Kind::ALL.into_iter().find(|kind| kind.as_str() == text),
        }
    }
}

impl Implementation {
    /// Returns which executor runs it.
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
        }
    }

    /// Returns the language of a body, where there is one.
    pub const fn runtime(&self) -> Option<&'static str> {
        match self {
            Implementation::Script(script) => Some(script.runtime.as_str()),
            Implementation::Wasm(_) => Some("wasm"),
            Implementation::Python(_) => Some("python"),
            _ => None,
        }
    }
}

/// A registered Rust function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The name under which it is registered.
    pub function: String,
}

/// Which template notation the strings of an implementation use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notation {
    /// `${name}`: a declared argument, else a secret, else `${version}`.
    #[default]
    Dollar,
    /// `{{name}}` for arguments, `${NAME}` for secrets only.
    Braces,
}

impl Notation {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Dollar
    }
}

/// One HTTP request, or `steps` of several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// The only request, or what every step starts from.
    #[serde(flatten)]
    pub request: HttpRequest,
    /// Several requests, in order; a later one reads `steps.NAME` of an earlier one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<HttpStep>,
    /// How long one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What a failure becomes.
    #[serde(skip_serializing_if = "ErrorMode::is_default")]
    pub error_mode: ErrorMode,
    /// How requests prove who sends them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Which notation the templates use.
    #[serde(skip_serializing_if = "Notation::is_default")]
    pub templates: Notation,
}

impl Http {
    /// Returns how long one attempt may take.
    pub fn timeout(&self) -> Duration {
        self.timeout_ms.map_or(Duration::from_secs(10), Duration::from_millis)
    }
}

/// What one request says and how its answer is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpRequest {
    /// The method; `GET` where none is named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The URL template; it starts with `http://` or `https://`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Query parameters, each value a template.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub query: Map<String, Value>,
    /// Header templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: a string is a text template, anything else a structure whose strings are templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Which status codes are a success; empty means 200 to 299.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_codes: Vec<u16>,
    /// How the answer is read; `None` means by its content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseEncoding>,
    /// What is taken of the answer: a `JSONPath` (starts with `$`) or a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

/// One request of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpStep {
    /// The name under which later steps read its value.
    pub name: String,
    /// The request.
    #[serde(flatten)]
    pub request: HttpRequest,
}

/// How an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseEncoding {
    /// As JSON; anything else is an error.
    Json,
    /// As text.
    Text,
}

/// What a failed request becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorMode {
    /// A failed call.
    #[default]
    Fail,
    /// The value `null`.
    Empty,
}

impl ErrorMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Fail
    }
}

/// How requests prove who sends them. Every text is a template, so that it can name a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Auth {
    /// `Authorization: Bearer TOKEN`.
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// A key in a header or in the query.
    ApiKey {
        /// The name of the header or parameter.
        name: String,
        /// The key.
        value: String,
        /// Where it goes.
        #[serde(rename = "in", default)]
        place: KeyPlace,
    },
    /// A signature over the request.
    Hmac(HmacAuth),
    /// An access token of an authorisation server.
    Oauth2(OAuth2),
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    /// Into a header.
    #[default]
    Header,
    /// Into the query.
    Query,
}

/// A signature over the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HmacAuth {
    /// The key.
    pub key: String,
    /// The hash: `sha256` or `sha512`.
    #[serde(default = "sha256")]
    pub algorithm: String,
    /// The header that carries the signature.
    #[serde(default = "signature_header")]
    pub header: String,
    /// What stands before the signature, such as `sha256=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// How the signature is spelled: `hex` or `base64`.
    #[serde(default = "hex")]
    pub encoding: String,
    /// What is signed, with `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}` put in.
    #[serde(default = "signed_body")]
    pub sign: String,
    /// The header that carries the Unix time, where the other side wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
}

fn sha256() -> String {
    "sha256".to_owned()
}

fn signature_header() -> String {
    "X-Signature".to_owned()
}

fn hex() -> String {
    "hex".to_owned()
}

fn signed_body() -> String {
    "{body}".to_owned()
}

/// An access token of an authorisation server, fetched once and refreshed by one caller at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OAuth2 {
    /// Where tokens come from.
    pub token_url: String,
    /// Who asks.
    pub client_id: String,
    /// The proof of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// With it the grant is `refresh_token`, without it `client_credentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// For whom the token is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// A bash or python body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The language.
    pub runtime: ScriptRuntime,
    /// The text.
    pub body: String,
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptRuntime {
    /// GNU bash.
    Bash,
    /// Python 3.
    Python,
}

impl ScriptRuntime {
    /// Returns the spelling used in definitions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Python => "python",
        }
    }
}

/// A WebAssembly component or module: a file of the bundle, or its bytes in base64.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wasm {
    /// The file, relative to the bundle's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The exported function; `None` means the convention of the module's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// A shell command template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    /// The command; values are quoted by their quote context.
    pub command: String,
    /// Further environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// How the bytes of a file are spelled as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Encoding {
    /// As UTF-8 text.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// As base64.
    #[serde(rename = "base64")]
    Base64,
    /// As bytes, which travel as base64 too but are marked as a file.
    #[serde(rename = "binary")]
    Binary,
}

/// Reads a file inside a named root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRead {
    /// The path template, relative to the root.
    pub path: String,
    /// How the bytes become text.
    #[serde(default)]
    pub encoding: Encoding,
    /// The name of the root; `None` means the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Writes a file inside a named root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileWrite {
    /// The path template, relative to the root.
    pub path: String,
    /// The content template.
    pub content: String,
    /// How the text becomes bytes.
    #[serde(default)]
    pub encoding: Encoding,
    /// The permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Whether parent folders are made.
    #[serde(default)]
    pub mkdir: bool,
    /// The name of the root; `None` means the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// A function of a Python toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Python {
    /// `module:function`.
    pub entrypoint: String,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mcp {
    /// The id of a configured server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The address of a server that is not configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
    /// The name of the tool on that server.
    pub tool_name: String,
    /// Header templates for `server_url`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// A stored code artifact.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifact {
    /// The artifact.
    pub artifact_id: String,
    /// Its version; `None` means the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_version: Option<String>,
    /// Settings that go with it, literally.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}

/// A child agent run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
#[serde(default)]
pub struct RagRetrieval {
    /// The pipeline.
    pub pipeline_id: String,
    /// Settings that go with it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}
