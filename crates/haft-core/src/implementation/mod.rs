//! Implementations of tools: one type per kind, each run by one executor.

mod http;
mod kinds;

pub use http::{
    ApiKeyLocation, Auth, ErrorMode, HmacAuth, Http, HttpRequest, HttpStep, Notation, OAuth2, ParamStyle,
    ResponseEncoding, TextStyle,
};
pub use kinds::{
    AgentCall, Artifact, Encoding, Exec, ExecProgram, FileAccess, FileRead, FileWrite, Function,
    Implementation, Kind, Mcp, OutputFormat, Python, RagRetrieval, Script, ScriptRuntime, ToolHints, Wasm,
};
