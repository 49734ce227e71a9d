//! Collects all built-in tools.

use std::sync::Arc;

use haft_builtins::{BuiltInParts, BuiltIns, built_ins, function};
use haft_core::name::NameError;
use haft_core::spec::ToolSpec;
use haft_core::toolset::READ_SKILL;
use haft_runtime::function::Functions;

use super::create_tool::{self, CreateTool};
use super::delete_tool::{self, DeleteTool};
use super::describe_tool::{self, DescribeTool};
use super::function_call::{self, FunctionCall};
use super::mcp_call::{self, McpCall};
use super::read_skill::ReadSkill;
use super::retrieval_pipeline::{self, RetrievalPipeline};
use super::search_tools::{self, SearchTools};
use crate::context::Context;
use crate::late::Late;
use crate::mcp_resources::McpPackages;

/// The services that catalog tools need; set when the installation is open.
pub struct LateServices {
    pub context: Late<Context>,
    pub packages: Arc<McpPackages>,
}

impl Default for LateServices {
    fn default() -> Self {
        let context = Late::default();
        Self { packages: Arc::new(McpPackages::new(context.clone())), context }
    }
}

/// Adds the built-in tools to those of the embedding program, whose functions and tools take precedence; without `parts`
/// there are no built-in tools.
pub fn install(
    parts: Option<&BuiltInParts>,
    functions: &Functions,
    own: Vec<ToolSpec>,
    services: &LateServices,
) -> Result<Vec<ToolSpec>, NameError> {
    let LateServices { context: handle, packages } = services;
    register_package_functions(functions, packages);
    let Some(parts) = parts else { return Ok(own) };
    let BuiltIns { mut specs, functions: standard } = built_ins(parts)?;
    for (spec, built_in) in [
        (create_tool::spec()?, function(CreateTool(handle.clone()))),
        (delete_tool::spec()?, function(DeleteTool(handle.clone()))),
        (describe_tool::spec()?, function(DescribeTool(handle.clone()))),
        (search_tools::spec()?, function(SearchTools(handle.clone()))),
        (mcp_call::spec()?, function(McpCall(handle.clone()))),
        (retrieval_pipeline::spec()?, function(RetrievalPipeline(handle.clone()))),
        (function_call::spec()?, function(FunctionCall::new(handle.clone(), functions.clone()))),
    ] {
        standard.insert(spec.name.as_str(), Arc::clone(&built_in));
        specs.push(spec);
    }
    functions.fill_from(&standard);
    specs.retain(|spec| own.iter().all(|own| own.name != spec.name));
    specs.extend(own);
    Ok(specs)
}

/// Registers the functions that tools of packages need, whether or not there are built-in tools.
fn register_package_functions(functions: &Functions, packages: &Arc<McpPackages>) {
    let own = Functions::default();
    own.insert(READ_SKILL, function(ReadSkill::new(Arc::clone(packages))));
    functions.fill_from(&own);
}
