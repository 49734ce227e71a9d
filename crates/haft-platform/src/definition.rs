//! Reads and checks definitions of tools.

use std::sync::Arc;

use haft_core::catalog::{FileForm, SourceText, UnreadableFile};
use haft_core::implementation::Implementation;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::problem::{MISSING_IMPORT, NOT_CHECKED, Problem, nearest};
use haft_core::redact;
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};
use haft_definition::check;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_runtime::registry::CompiledTool;

use crate::context::Context;
use crate::error::{ServiceError, is_ignored_field};
use crate::planned_references::{PlannedReferences, PlannedTarget};

/// Returns name and version of the stored definition that a new one replaces.
pub fn defaults_from_spec(spec: &ToolSpec) -> Defaults {
    Defaults { name: Some(spec.name.to_string()), version: Some(spec.version.to_string()) }
}

/// Returns name and version of an unreadable file, from its file name.
pub fn defaults_from_file(file: &UnreadableFile) -> Defaults {
    let stem = file.path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(stem, _)| stem);
    let version = stem.and_then(|stem| stem.split_once('@')).map(|(_, version)| version.to_owned());
    Defaults { name: Some(file.name.clone()), version }
}

/// Parses a text. If that fails, the part that can be read is checked as well, so that the author sees all errors.
pub fn read_all(text: &str, form: FileForm, defaults: &Defaults) -> Result<ParsedDefinition, Vec<Problem>> {
    dialect::read(text, form, defaults).map_err(|mut problems| {
        let Some(spec) = dialect::read_without(text, form, defaults, &problems) else { return problems };
        let mut further = check::definition(&spec).errors;
        dialect::locate(text, form, &mut further);
        let warnings = problems.iter().position(is_ignored_field).unwrap_or(problems.len());
        problems.splice(warnings..warnings, further);
        problems
    })
}

/// A definition that passed every check and can be stored.
pub struct CheckedDefinition {
    pub spec: ToolSpec,
    pub form: FileForm,
    pub enabled: Option<bool>,
    pub warnings: Vec<Problem>,
}

/// What a definition is checked against.
pub struct CheckContext<'a> {
    pub app: &'a Context,
    pub tenant: &'a TenantId,
    /// The folder of its bundle, relative to the home folder.
    pub folder: Option<String>,
    /// What is stored or deleted together with it.
    pub planned: &'a PlannedReferences,
}

/// Restores masked values and checks the definition. Problems carry line numbers if there is a text.
pub async fn check(
    app: &Context,
    tenant: &TenantId,
    parsed: (ParsedDefinition, Option<&SourceText>),
    earlier: Option<&ToolSpec>,
    folder: Option<String>,
) -> Result<CheckedDefinition, ServiceError> {
    let context = CheckContext { app, tenant, folder, planned: &PlannedReferences::default() };
    check_in(&context, parsed, earlier).await
}

/// Like [`check`], for a definition that is part of a plan.
pub async fn check_in(
    context: &CheckContext<'_>,
    (mut parsed, text): (ParsedDefinition, Option<&SourceText>),
    earlier: Option<&ToolSpec>,
) -> Result<CheckedDefinition, ServiceError> {
    let unrestored = redact::restore(&mut parsed.spec, earlier);
    let mut report = validate_in(context, &parsed.spec).await;
    report.errors.extend(unrestored.into_iter().map(|field| {
        Problem::new(field, "masked_value", "`***` masks a value that is not stored; enter the value")
    }));
    let add_lines = |problems: &mut Vec<Problem>| {
        if let Some(SourceText { form, text }) = text.filter(|_| !problems.is_empty()) {
            dialect::locate(text, *form, problems);
        }
    };
    if !report.errors.is_empty() {
        add_lines(&mut report.errors);
        return Err(ServiceError::invalid_definition(&report.errors));
    }
    add_lines(&mut report.warnings);
    let mut warnings = parsed.warnings;
    warnings.extend(report.warnings);
    Ok(CheckedDefinition { spec: parsed.spec, form: parsed.form, enabled: parsed.enabled, warnings })
}

/// Reports all errors and warnings about a definition, including those of its executor. `folder` is the folder of its
/// bundle, relative to the home folder.
pub async fn validate(
    app: &Context,
    tenant: &TenantId,
    spec: &ToolSpec,
    folder: Option<String>,
) -> check::CheckReport {
    validate_in(&CheckContext { app, tenant, folder, planned: &PlannedReferences::default() }, spec).await
}

async fn validate_in(context: &CheckContext<'_>, spec: &ToolSpec) -> check::CheckReport {
    let app = context.app;
    let mut report = validate_statically(context, spec).await;
    // A retrieval tool is stored only if its tenant has the pipeline.
    if matches!(spec.implementation, Implementation::RagRetrieval(_))
        && let Some(problem) = missing_reference(context, spec).await
    {
        report.warnings.retain(|warning| *warning != problem);
        if !is_reported(&report, &problem) {
            report.errors.push(problem);
        }
    }
    // The executor may start a process for its check, so it runs only if there are no errors yet.
    if report.errors.is_empty() {
        let problems = app.registry().executors().examine(spec).await;
        let is_warning = |problem: &Problem| [NOT_CHECKED, MISSING_IMPORT].contains(&problem.code.as_str());
        let (warnings, errors) = problems.into_iter().partition(is_warning);
        report.errors = errors;
        report.warnings.extend::<Vec<_>>(warnings);
    }
    report
}

/// Like [`validate`], without the checks that start a process, such as the syntax check of a script.
pub async fn validate_without_process(
    app: &Context,
    tenant: &TenantId,
    spec: &ToolSpec,
    folder: Option<String>,
) -> check::CheckReport {
    let planned = &PlannedReferences::default();
    validate_statically(&CheckContext { app, tenant, folder, planned }, spec).await
}

async fn validate_statically(context: &CheckContext<'_>, spec: &ToolSpec) -> check::CheckReport {
    let CheckContext { app, tenant, folder, .. } = context;
    let mut report = check::definition(spec);
    report.warnings.extend(shadowed_by_built_in(app, spec));
    let missing = missing_reference(context, spec).await;
    let missing = missing.filter(|problem| !is_reported(&report, problem));
    report.warnings.extend(missing);
    let spec = Arc::new(spec.clone());
    // A definition whose executor or function is unavailable is stored, but not ready.
    if let Err(problem) = app.registry().executors().available(&spec) {
        report.warnings.push(problem);
    } else {
        match compile(app, &spec, folder.clone()).await {
            Ok(compiled) => report.warnings.extend(unknown_names(app, tenant, &compiled).await),
            Err(mut errors) => {
                errors.retain(|error| !report.errors.contains(error));
                report.errors.extend(errors);
            }
        }
    }
    report
}

/// Returns whether a field has an error already: one that is empty, for example, is not also missing.
fn is_reported(report: &check::CheckReport, problem: &Problem) -> bool {
    report.errors.iter().any(|error| error.field == problem.field)
}

/// Returns the problem if a definition refers to something that the tenant does not have.
async fn missing_reference(context: &CheckContext<'_>, spec: &ToolSpec) -> Option<Problem> {
    let CheckContext { app, tenant, planned, .. } = context;
    match planned.target(spec) {
        PlannedTarget::Unplanned => {}
        PlannedTarget::Exists => return None,
        PlannedTarget::Missing(problem) => return Some(problem),
    }
    let is_current = refresh_references(app, spec).await;
    let spec = planned.without_planned_tools(spec);
    is_current.then(|| app.registry().executors().missing_reference(tenant, &spec)).flatten()
}

/// Reads the names again that a definition may refer to, if they have changed; returns whether they are known.
pub async fn refresh_references(app: &Context, spec: &ToolSpec) -> bool {
    let refreshed = match spec.implementation {
        Implementation::RagRetrieval(_) => app.retrieval().refresh_names().await,
        Implementation::Artifact(_) => app.artifacts().refresh_names().await,
        Implementation::AgentCall(_) => app.agents().refresh_names().await,
        // Other kinds refer to nothing, or to tools, which are in memory.
        _ => Ok(()),
    };
    if let Err(error) = &refreshed {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "cannot read the names that a definition refers to"
        );
    }
    refreshed.is_ok()
}

/// Warns if a built-in tool has the same name: the bare name resolves to the built-in tool.
fn shadowed_by_built_in(app: &Context, spec: &ToolSpec) -> Option<Problem> {
    let snapshot = app.registry().snapshot();
    let (bundle, version) = (Some(BundleSlug::built_in()), None);
    let reference = ToolRef::Name { bundle, name: spec.name.clone(), version };
    let built_in = snapshot.resolve(&TenantId::global(), &reference).ok()?;
    (*built_in.tool.spec != *spec).then(|| {
        let message = format!(
            "a built-in tool is also named `{0}`, and `{0}` calls that one; call this tool as `bundle:{0}`, or rename it",
            spec.name
        );
        Problem::new("name", "shadowed_by_built_in", message)
    })
}

/// The code of a template name that is neither an argument nor a stored secret.
pub const UNKNOWN_NAME: &str = "unknown_name";

/// Warns of template names that are unknown: a misspelled argument, or a secret that is not stored yet.
async fn unknown_names(app: &Context, tenant: &TenantId, compiled: &CompiledTool) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for name in compiled.secret_names() {
        // If the store is unavailable, do not warn.
        if let Some(missing) = app.secrets().missing(tenant, name).await.unwrap_or_default() {
            warnings.push(unknown_name(&compiled.spec, name, missing));
        }
    }
    warnings
}

/// Returns the warning about a name that is neither an argument nor a secret that can be read.
pub fn unknown_name(spec: &ToolSpec, name: &str, missing: String) -> Problem {
    let arguments = spec.declared_arguments();
    let message = match nearest(name, arguments.iter().map(String::as_str)) {
        Some(argument) => format!(
            "`{name}` is neither an argument nor a stored secret; did you mean the argument `{argument}`?"
        ),
        None => missing,
    };
    Problem::new("implementation", UNKNOWN_NAME, message)
}

/// Compiles a definition on the blocking pool: a wasm module takes a while.
async fn compile(
    app: &Context,
    spec: &Arc<ToolSpec>,
    folder: Option<String>,
) -> Result<CompiledTool, Vec<Problem>> {
    let (spec, executors) = (Arc::clone(spec), app.registry().executors().clone());
    let compiling =
        tokio::task::spawn_blocking(move || CompiledTool::compile(&spec, folder.as_deref(), &executors));
    compiling.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the compilation of a definition failed");
        Err(vec![Problem::new(
            "",
            "not_compiled",
            "internal error while compiling the definition; see the server log",
        )])
    })
}

/// Rejects `status: published`, which only `POST …/publish` sets; sending back the current status is fine.
pub fn reject_published(requested: Option<Status>, current: Option<Status>) -> Result<(), ServiceError> {
    if requested == Some(Status::Published) && current != Some(Status::Published) {
        return Err(ServiceError::bad_request(
            "`status` cannot be set to `published`; use `POST /tools/{ref}/publish`",
        ));
    }
    Ok(())
}

/// Rejects scopes other than the caller's tenant.
pub fn reject_other_scope(scope: Option<&str>) -> Result<(), ServiceError> {
    match scope {
        None | Some("tenant") => Ok(()),
        Some(other) => {
            let shown = haft_core::problem::excerpt(other, 40);
            Err(ServiceError::bad_request(format!("invalid `scope`: `{shown}`; expected `tenant`")))
        }
    }
}

/// Warns if an update names a bundle other than the tool's.
pub fn bundle_mismatch(named: Option<&str>, tool: &Tool) -> Option<Problem> {
    let named =
        named.filter(|named| *named != tool.bundle.as_str() && *named != tool.bundle_id.to_string())?;
    let message = format!(
        "the tool stays in bundle `{}`: an update does not move it; to move it to `{}`, create it there and delete this one",
        tool.bundle,
        haft_core::problem::excerpt(named, 60)
    );
    Some(Problem::new("bundle", "not_moved", message))
}

/// Rejects an update that changes the name or the version.
pub fn require_same_identity(new: &ToolSpec, current: &ToolSpec) -> Result<(), ServiceError> {
    if new.name != current.name {
        let message =
            format!("name mismatch: the definition has `{}`, the path has `{}`", new.name, current.name);
        return Err(ServiceError::bad_request(message));
    }
    if new.version != current.version {
        let message = format!(
            "version mismatch: the definition has `{}`, the tool has `{}`; change the version with `POST /tools/{{ref}}/version`",
            new.version, current.version
        );
        return Err(ServiceError::bad_request(message));
    }
    Ok(())
}
