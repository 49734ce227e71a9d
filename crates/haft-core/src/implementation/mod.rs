//! Implementations of tools: one type per kind, each run by one executor.

mod condition;
mod http;
mod kinds;
mod steps;

pub use condition::{Comparison, Condition, ConditionError};
pub use http::{
    ApiKeyLocation, Auth, ErrorMode, HmacAuth, Http, HttpRequest, HttpStep, Notation, OAuth2, ParamStyle,
    ResponseEncoding, TextStyle,
};
pub use kinds::{
    AgentCall, Artifact, Encoding, Exec, ExecProgram, FileAccess, FileRead, FileWrite, Function,
    Implementation, Kind, Mcp, OutputFormat, Python, RagRetrieval, Script, ScriptRuntime, ToolHints, Wasm,
};
pub use steps::{
    DEFAULT_MAX_ITEMS, DEFAULT_MAX_PARALLEL, MAX_ITEMS, MAX_PARALLEL, MAX_STEPS, OnFailure, Step, Steps,
};
