//! What is stored of the things that a folder describes, and a digest by which a change in between is noticed.

use std::collections::HashMap;

use haft_core::agent::Agent;
use haft_core::artifact::ArtifactDefinition;
use haft_core::bundle::Bundle;
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::{ArtifactId, ToolId};
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::policy::PolicyRules;
use haft_core::retrieval::Pipeline;
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use haft_core::toolset::InstalledToolset;
use serde_json::{Value, json};

use super::session::Session;
use super::state::Catalog;
use crate::engine::failed_to;
use crate::pipelines;
use crate::policies;
use crate::resources::{self, ResourceHead};

const READ: &str = "read the state of the installation";

/// Which things of a tenant are compared and changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one kind of thing belongs to it")]
pub struct ApplyScope {
    /// The bundles.
    pub bundles: Vec<BundleSlug>,
    /// Whether the MCP servers belong to it.
    pub mcp_servers: bool,
    /// Whether the policy rules belong to it.
    pub policy: bool,
    /// Whether the agents belong to it.
    pub agents: bool,
    /// Whether the pipelines belong to it.
    pub pipelines: bool,
    /// Whether the code artifacts belong to it.
    pub artifacts: bool,
}

/// The state of a scope.
#[derive(Debug, Clone)]
pub struct ApplyState {
    /// The bundles of the scope that exist, deleted ones included.
    pub bundles: Vec<Bundle>,
    /// Their tools.
    pub tools: Vec<Tool>,
    /// The definitions of tools of toolsets as their packages have them.
    pub package_specs: HashMap<ToolId, ToolSpec>,
    /// All toolsets of the tenant.
    pub toolsets: Vec<InstalledToolset>,
    /// All MCP servers of the tenant.
    pub mcp_servers: Vec<McpServer>,
    /// The policy rules of the tenant.
    pub policy: PolicyRules,
    /// The agents of the tenant, if they belong to the scope.
    pub agents: Vec<Agent>,
    /// The pipelines of the tenant, if they belong to the scope.
    pub pipelines: Vec<Pipeline>,
    /// The code artifacts of the tenant, if they belong to the scope.
    pub artifacts: Vec<ResourceHead<ArtifactId>>,
    /// Changes whenever something in the scope does.
    pub digest: String,
}

impl Catalog {
    /// Returns the state of a scope, definition files included.
    pub async fn apply_state(&self, tenant: TenantId, scope: ApplyScope) -> Result<ApplyState, StoreError> {
        self.run(move |catalog| async move {
            catalog.sync().await?;
            let mut session = catalog.session().await?;
            session.apply_state(&tenant, &scope).await
        })
        .await
    }
}

impl Session<'_> {
    pub(super) async fn apply_state(
        &mut self,
        tenant: &TenantId,
        scope: &ApplyScope,
    ) -> Result<ApplyState, StoreError> {
        let mut state = self.read_state(tenant, scope).await.map_err(failed_to(READ))?;
        state.digest =
            state.digest_of(scope).map_err(|error| StoreError::unavailable(READ.to_owned(), error))?;
        Ok(state)
    }

    async fn read_state(&mut self, tenant: &TenantId, scope: &ApplyScope) -> Result<ApplyState, sqlx::Error> {
        let (mut bundles, mut tools, mut package_specs) = (Vec::new(), Vec::new(), HashMap::new());
        for slug in &scope.bundles {
            let Some(bundle) = self.bundle_by_slug(tenant, slug).await? else { continue };
            let mut own = self.tools_in(bundle.id).await?;
            own.sort_by(|one, other| {
                (&one.spec.name, &one.spec.version).cmp(&(&other.spec.name, &other.spec.version))
            });
            tools.extend(own);
            package_specs.extend(self.package_specs(bundle.id).await?);
            bundles.push(bundle);
        }
        Ok(ApplyState {
            bundles,
            tools,
            package_specs,
            toolsets: self.toolsets_of(tenant).await?,
            mcp_servers: self.mcp_servers_of(tenant).await?,
            policy: policies::rules_in(&mut self.tx, tenant).await?,
            agents: if scope.agents { resources::all_in(&mut self.tx, tenant).await? } else { Vec::new() },
            pipelines: if scope.pipelines {
                pipelines::pipelines_in(&mut self.tx, tenant).await?
            } else {
                Vec::new()
            },
            artifacts: if scope.artifacts {
                resources::heads_in::<ArtifactDefinition>(&mut self.tx, tenant).await?
            } else {
                Vec::new()
            },
            digest: String::new(),
        })
    }
}

impl ApplyState {
    fn digest_of(&self, scope: &ApplyScope) -> Result<String, serde_json::Error> {
        let bundles = self.bundles.iter().map(|bundle| {
            json!([
                bundle.slug,
                bundle.kind,
                bundle.display_name,
                bundle.description,
                bundle.enabled,
                bundle.soft_deleted_at.is_some()
            ])
        });
        let tools = self.tools.iter().map(|tool| {
            let published = tool.published.as_ref().map(|(number, _)| *number);
            json!([tool.id, tool.revision, published, tool.status, tool.enabled, tool.fault])
        });
        let toolsets = self.toolsets.iter().filter(|toolset| scope.bundles.contains(&toolset.id));
        let toolsets = toolsets.map(|toolset| json!([toolset.id, toolset.package, toolset.mcp_servers]));
        let servers: &[McpServer] = if scope.mcp_servers { &self.mcp_servers } else { &[] };
        let agents = self.agents.iter().map(|agent| {
            let published = agent.published_revision();
            json!([agent.id, agent.revision, published, agent.status, agent.enabled, agent.error, agent.path])
        });
        // Documents come and go while a plan is reviewed. Only a deletion looks at them, and checks their number itself.
        let pipelines = self.pipelines.iter();
        let pipelines = pipelines.map(|pipeline| {
            let published = pipeline.published_revision();
            json!([
                pipeline.id,
                pipeline.revision,
                published,
                pipeline.status,
                pipeline.enabled,
                pipeline.path
            ])
        });
        let artifacts = self.artifacts.iter();
        let artifacts = artifacts.map(|head| {
            let published = head.published_revision;
            json!([head.id, head.slug, head.revision, published, head.status, head.enabled, head.path])
        });
        let value = json!({
            "pipelines": pipelines.collect::<Vec<Value>>(),
            "artifacts": artifacts.collect::<Vec<Value>>(),
            "agents": agents.collect::<Vec<Value>>(),
            "bundles": bundles.collect::<Vec<Value>>(),
            "tools": tools.collect::<Vec<Value>>(),
            "toolsets": toolsets.collect::<Vec<Value>>(),
            "mcp_servers": serde_json::to_value(servers)?,
            "policy": if scope.policy { serde_json::to_value(&self.policy)? } else { Value::Null },
        });
        hash::of_value(&value)
    }
}
