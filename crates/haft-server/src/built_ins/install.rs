//! Putting all built-in tools together.

use std::sync::Arc;

use haft_builtins::{BuiltInParts, BuiltIns, built_ins, function};
use haft_core::name::NameError;
use haft_core::spec::ToolSpec;
use haft_runtime::function::Functions;

use super::create_tool::{self, CreateTool};
use super::delete_tool::{self, DeleteTool};
use super::function_call::{self, FunctionCall};
use super::late::Late;
use super::mcp_call::{self, McpCall};
use super::search_tools::{self, SearchTools};

/// What was installed.
pub(crate) struct Installed {
    /// All definitions.
    pub(crate) specs: Vec<ToolSpec>,
    /// To be told where the installation is.
    pub(crate) late: Late,
}

/// Adds the built-in tools to what a program brings; its own functions and tools win over those of the same name.
pub(crate) fn install(
    parts: &BuiltInParts,
    functions: &Functions,
    own: Vec<ToolSpec>,
) -> Result<Installed, NameError> {
    let late = Late::default();
    let BuiltIns { mut specs, functions: standard } = built_ins(parts)?;
    for (spec, made) in [
        (create_tool::spec()?, function(CreateTool(late.clone()))),
        (delete_tool::spec()?, function(DeleteTool(late.clone()))),
        (search_tools::spec()?, function(SearchTools(late.clone()))),
        (mcp_call::spec()?, function(McpCall(late.clone()))),
        (function_call::spec()?, function(FunctionCall::new(late.clone(), functions.clone()))),
    ] {
        standard.insert(spec.name.as_str(), Arc::clone(&made));
        specs.push(spec);
    }
    functions.fill_from(&standard);
    specs.retain(|spec| own.iter().all(|own| own.name != spec.name));
    specs.extend(own);
    Ok(Installed { specs, late })
}
