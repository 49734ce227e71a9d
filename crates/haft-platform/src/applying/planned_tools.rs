//! The tools of a folder in the form that tool rules match.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::id::{BundleId, ToolId};
use haft_core::lifecycle::Lifecycle;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool, Usage};
use uuid::Uuid;

use super::desired::{BundleContent, DesiredBundle};

/// Returns the tools in the bundles of a folder in the form that tool rules match.
pub(super) fn tools_of(bundles: &[DesiredBundle]) -> Vec<Tool> {
    let mut tools = Vec::new();
    for bundle in bundles {
        match &bundle.content {
            BundleContent::Tools { tools: own, .. } => {
                tools.extend(own.iter().map(|tool| planned_tool(&bundle.slug, &tool.parsed.spec)));
            }
            BundleContent::Package(package) => {
                tools.extend(package.toolset.tools.iter().map(|tool| planned_tool(&bundle.slug, &tool.spec)));
            }
        }
    }
    tools
}

fn planned_tool(bundle: &BundleSlug, spec: &ToolSpec) -> Tool {
    Tool {
        // Rules match only names and tags.
        id: ToolId(Uuid::nil()),
        tenant: TenantId::default_tenant(),
        bundle_id: BundleId(Uuid::nil()),
        bundle: bundle.clone(),
        spec: Arc::new(spec.clone()),
        revision: 1,
        published: None,
        status: Status::Draft,
        enabled: true,
        built_in: false,
        fault: None,
        source: Source::User,
        path: None,
        usage: Usage::default(),
        created_at: Timestamp::UNIX_EPOCH,
        modified_at: Timestamp::UNIX_EPOCH,
        published_at: None,
        lifecycle: Lifecycle::default(),
    }
}
