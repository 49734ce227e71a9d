//! Makes the plan of an uploaded folder, and applies it.

use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, join};
use haft_core::token::Role;
use haft_package::files::PackageFiles;
use haft_store::{ApplyChanges, ApplyScope};
use serde_json::json;

use super::desired::{self, BundleContent, Desired};
use super::plan::{ApplyOptions, ApplyReport, ApplySummary, ChangeAction, ChangeKind, PlannedChange, id_of};
use super::planner::Planner;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::planned_references::PlannedReferences;
use crate::toolsets::unpack;

/// A plan that can be applied.
pub struct PreparedApply {
    pub report: ApplyReport,
    changes: ApplyChanges,
    packages: Vec<PackageFiles>,
    scope: ApplyScope,
    digest: String,
    needs_admin: Option<&'static str>,
}

/// Compares a folder, packed as a ZIP file, with the installation. Everything is checked; nothing is changed.
pub async fn prepare(
    app: &Context,
    identity: &Identity,
    archive: Vec<u8>,
    options: ApplyOptions,
) -> Result<PreparedApply, ServiceError> {
    let mut desired = read(archive).await?;
    let scope = scope_of(&desired);
    let tenant = identity.tenant.clone();
    let state = app.store().catalog().apply_state(tenant.clone(), scope.clone()).await?;
    let state_of_plan = json!({
        "tenant": tenant,
        "folder": desired.hash,
        "state": state.digest,
        "prune": options.prune,
        "allow_unsandboxed": options.allow_unsandboxed,
    });
    let warnings = std::mem::take(&mut desired.warnings);
    let mut planner = Planner {
        app,
        identity,
        state: &state,
        options,
        planned: Vec::new(),
        changes: ApplyChanges::default(),
        problems: Vec::new(),
        warnings,
        packages: Vec::new(),
        references: PlannedReferences::default(),
        needs_admin: options.allow_unsandboxed.then_some("`allow_unsandboxed` is set"),
    };
    Box::pin(planner.plan(desired)).await;
    let Planner { planned, changes, problems, warnings, packages, needs_admin, .. } = planner;
    if !problems.is_empty() {
        return Err(invalid(&problems));
    }
    // The state does not count documents, but a plan that deletes some is a plan for that many.
    let plan = id_of(&json!([state_of_plan, deleted_documents(&planned)]));
    let summary = ApplySummary::of(&planned);
    let report = ApplyReport { plan, applied: false, summary, changes: planned, warnings };
    Ok(PreparedApply { report, changes, packages, scope, digest: state.digest, needs_admin })
}

/// Applies a plan: all of it or nothing.
pub async fn apply(
    app: &Context,
    identity: &Identity,
    prepared: PreparedApply,
) -> Result<ApplyReport, ServiceError> {
    let PreparedApply { mut report, mut changes, packages, scope, digest, needs_admin } = prepared;
    if let Some(reason) = needs_admin
        && identity.require(Role::Admin).is_err()
    {
        let message = format!("role `admin` required: {reason}; the token has `{}`", identity.role.as_str());
        return Err(ServiceError::new(ErrorCode::Forbidden, message));
    }
    let summary = report.summary;
    let counts = format!(
        "{} created, {} updated, {} published, {} deleted",
        summary.create, summary.update, summary.publish, summary.delete
    );
    audit::note(identity, "apply", &counts);
    report.applied = true;
    if summary.changes() == 0 {
        return Ok(report);
    }
    // A folder of files that nothing refers to is harmless, and removed later: so packages come first.
    for files in packages {
        unpack(app, files).await?;
    }
    let changed = report.changes.iter().filter(|change| change.action.is_change());
    changes.records = changed
        .map(|change| audit::change_record(app, identity, &action_of(change), &change.target()))
        .collect();
    changes.author = identity.name.to_string();
    let (has_servers, has_policy) = (
        !changes.mcp_servers.is_empty() || !changes.deleted_mcp_servers.is_empty(),
        changes.policy.is_some(),
    );
    let (has_pipelines, has_artifacts) = (!changes.pipelines.is_empty(), !changes.artifacts.is_empty());
    let has_agents = !changes.agents.is_empty();
    app.store().catalog().apply(identity.tenant.clone(), scope, digest, changes).await?;
    if has_pipelines {
        app.retrieval().refresh_names().await?;
        app.retrieval().ingest();
    }
    if has_artifacts {
        app.artifacts().refresh_names().await?;
    }
    if has_agents {
        app.agents().refresh_names().await?;
    }
    if has_policy {
        app.policy().reload(app.store()).await?;
    }
    if has_servers {
        app.mcp_clients().reload().await?;
    }
    Ok(report)
}

/// Reads the archive off the async workers.
async fn read(archive: Vec<u8>) -> Result<Desired, ServiceError> {
    let work = move || haft_package::zip::read(&archive).and_then(|files| desired::read(&files));
    let read = tokio::task::spawn_blocking(work).await;
    let read = read.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
    read.map_err(|problems| invalid(&problems))
}

fn invalid(problems: &[Problem]) -> ServiceError {
    ServiceError::new(ErrorCode::InvalidDefinition, join(problems))
        .with_details(json!({"problems": problems}))
}

fn scope_of(desired: &Desired) -> ApplyScope {
    let has_servers = |content: &BundleContent| match content {
        BundleContent::Tools { .. } => false,
        BundleContent::Package(package) => !package.toolset.mcp_servers.is_empty(),
    };
    ApplyScope {
        bundles: desired.bundles.iter().map(|bundle| bundle.slug.clone()).collect(),
        mcp_servers: desired.servers.is_some()
            || desired.bundles.iter().any(|bundle| has_servers(&bundle.content)),
        policy: desired.policy.is_some(),
        agents: desired.agents.is_some(),
        pipelines: desired.pipelines.is_some(),
        artifacts: desired.artifacts.is_some(),
    }
}

/// Returns the pipelines that a plan deletes, with what it says about their documents.
fn deleted_documents(planned: &[PlannedChange]) -> Vec<(&str, &str)> {
    let is_deleted = |change: &&PlannedChange| {
        change.kind == ChangeKind::Pipeline && change.action == ChangeAction::Delete
    };
    planned.iter().filter(is_deleted).map(|change| (change.name.as_str(), change.summary.as_str())).collect()
}

/// Returns the name of a change in the audit log, as the routes for single things have it.
fn action_of(change: &PlannedChange) -> String {
    match (change.kind, change.action) {
        (ChangeKind::Policy, _) => "policy.put".to_owned(),
        (ChangeKind::Toolset, ChangeAction::Create) => "toolset.install".to_owned(),
        (ChangeKind::Bundle, ChangeAction::Create | ChangeAction::Update) => "bundle.put".to_owned(),
        (kind, action) => format!("{}.{}", kind.as_str(), action.as_str()),
    }
}
