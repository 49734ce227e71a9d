//! Agents as a kind of resource.

use haft_core::agent::AgentDefinition;
use haft_core::callable::CallableKind;
use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;
use haft_core::resource::Resource;

use super::check::{Strictness, check, require_publishable, require_valid};
use super::configured_models::key_warnings;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::resource_kind::ServedKind;

impl ServedKind for AgentDefinition {
    const CALLABLE: Option<CallableKind> = Some(CallableKind::Agent);

    fn references(implementation: &Implementation) -> Vec<(&'static str, &str)> {
        let Implementation::AgentCall(call) = implementation else { return Vec::new() };
        let id = call.target_agent_id.as_deref().map(|id| ("implementation.target_agent_id", id));
        let slug = call.target_agent_slug.as_deref().map(|slug| ("implementation.target_agent_slug", slug));
        id.into_iter().chain(slug).collect()
    }

    fn check_published(
        app: &Context,
        identity: &Identity,
        found: &Resource<Self>,
    ) -> Result<Vec<Problem>, ServiceError> {
        let checked = check(app, &identity.tenant, &found.definition, Strictness::Published);
        require_publishable(found.definition.slug.as_str(), &checked)?;
        Ok(checked.warnings)
    }

    async fn check_saved(
        app: &Context,
        identity: &Identity,
        definition: &Self,
    ) -> Result<Vec<Problem>, ServiceError> {
        let strictness = Strictness::of_saving(app, definition);
        let mut warnings = require_valid(check(app, &identity.tenant, definition, strictness))?;
        warnings.extend(key_warnings(app, &identity.tenant, definition).await?);
        Ok(warnings)
    }

    async fn announce(app: &Context) -> Result<(), StoreError> {
        app.agents().refresh_names().await
    }
}
