//! How a tool runs: one tagged enum, one executor each.

mod http;
mod kinds;

pub use http::{
    ApiKeyLocation, Auth, ErrorMode, HmacAuth, Http, HttpRequest, HttpStep, Notation, OAuth2, ParamStyle,
    ResponseEncoding, TextStyle,
};
pub use kinds::{
    AgentCall, Artifact, Encoding, Exec, ExecProgram, FileAccess, FileRead, FileWrite, Function,
    Implementation, Kind, Mcp, Python, RagRetrieval, Script, ScriptRuntime, Wasm,
};
