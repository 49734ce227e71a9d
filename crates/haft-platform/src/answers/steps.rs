//! The steps of a run.

use haft_core::catalog::StoreError;
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::run::RunStep;

use crate::context::Context;

/// How many steps are read at once.
const PAGE: u32 = 500;

/// Returns all steps of a run.
pub async fn all_steps(app: &Context, tenant: &TenantId, run: RunId) -> Result<Vec<RunStep>, StoreError> {
    let mut steps: Vec<RunStep> = Vec::new();
    loop {
        let after = steps.last().map_or(0, |step| step.number);
        let page = app.store().runs().steps(tenant, run, after, PAGE).await?;
        let is_last = u32::try_from(page.len()).is_ok_and(|count| count < PAGE);
        steps.extend(page);
        if is_last {
            return Ok(steps);
        }
    }
}
