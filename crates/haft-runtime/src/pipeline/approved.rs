//! The content that an approval covers: the definition of the tool and all dependencies of the call.

use haft_core::executor::DependencyScope;
use haft_core::hash;
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::runnable::Mode;

use crate::depth;
use crate::registry::CompiledTool;

/// Returns the digest of the content that a call runs. It changes with the revision of the tool, the version of its code
/// artifact, the tools of its steps and the revision of its agent.
pub async fn content_digest(plan: &CompiledTool, tenant: &TenantId, mode: Mode) -> Result<String, CallError> {
    digest_within(plan, &DependencyScope::new(tenant, mode)).await
}

/// Returns the digest of a nested tool.
pub(crate) async fn digest_within(
    plan: &CompiledTool,
    scope: &DependencyScope<'_>,
) -> Result<String, CallError> {
    let definition = hash::of_value(&*plan.spec).map_err(|error| CallError::internal(error.to_string()))?;
    // A tool beyond the call depth limit cannot run.
    depth::check(plan.spec.name.as_str(), scope.enter() - 1)?;
    let dependencies = plan.prepared.dependencies(scope).await;
    scope.leave();
    Ok(match dependencies? {
        None => definition,
        Some(dependencies) => hash::of_bytes(format!("{definition} {dependencies}").as_bytes()),
    })
}
