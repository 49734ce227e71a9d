//! The tools of an agent: exactly those that it could call now.

use std::borrow::Cow;
use std::sync::Arc;

use haft_agent::model::ToolDefinition;
use haft_agent::run::BoundTool;
use haft_core::agent::AgentDefinition;
use haft_core::principal::{AllowListError, Principal};
use haft_core::runnable::Mode;
use haft_definition::export::{Format, definition as exported};
use haft_runtime::registry::{Audience, Entry, Naming, Snapshot};
use serde_json::{Map, Value};

use crate::context::Context;

/// The surface of the calls that agents make.
pub const SURFACE: &str = "agent";

/// A tool that an agent can call, as its model sees it.
#[derive(Clone)]
pub struct Binding {
    /// The tool.
    pub entry: Arc<Entry>,
    /// What the loop needs.
    pub tool: BoundTool,
    /// The estimated number of tokens of its definition.
    pub tokens: usize,
}

/// For whom and where an agent runs.
#[derive(Clone, Copy)]
pub struct RunsFor<'a> {
    /// On whose behalf.
    pub principal: &'a Principal,
    /// In which mode.
    pub mode: Mode,
    /// The surfaces that the run came through.
    pub surfaces: &'a [Cow<'static, str>],
}

/// Returns the tools that an agent can call, in the order of lists. The names are those that every model accepts; each
/// stands for one tool.
pub fn bind(
    app: &Context,
    snapshot: &Snapshot,
    definition: &AgentDefinition,
    RunsFor { principal, mode, surfaces }: RunsFor<'_>,
) -> Result<Vec<Binding>, AllowListError> {
    let (listed, excluded) = definition.tool_lists()?;
    let policy = app.policy().handle();
    let audience = Audience { tenant: &principal.tenant, mode, naming: Naming::ByKind };
    let offers = snapshot.offers(audience).into_iter().filter(|offer| {
        let tool = &offer.entry.tool;
        listed.allows(tool)
            && !excluded.as_ref().is_some_and(|excluded| excluded.allows(tool))
            && policy.may_call_below(principal, tool, SURFACE, surfaces)
    });
    let bound = offers.map(|offer| {
        let mut described = exported(&offer.spec, &offer.name, Format::Anthropic);
        let input_schema =
            described.value.get_mut("input_schema").map_or_else(|| Value::Object(Map::new()), Value::take);
        let execution = &offer.spec.execution;
        Binding {
            tool: BoundTool {
                definition: ToolDefinition {
                    name: offer.name,
                    description: offer.spec.description.clone(),
                    input_schema,
                },
                id: offer.entry.tool.id,
                qualified: offer.entry.qualified.to_string(),
                is_pure: execution.is_pure,
                concurrency_group: execution.concurrency_group.clone(),
                max_concurrency: execution.max_concurrency,
            },
            entry: Arc::clone(offer.entry),
            tokens: described.tokens,
        }
    });
    Ok(bound.collect())
}
