//! From a request body to a definition that may be stored.

use std::sync::Arc;

use haft_core::catalog::{FileForm, SourceText, UnreadableFile};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::ErrorCode;
use haft_core::problem::{NOT_CHECKED, Problem, nearest};
use haft_core::redact;
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};
use haft_definition::check;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_runtime::registry::CompiledTool;
use serde_json::Value;

use crate::app::App;
use crate::body::Body;
use crate::error::ApiError;

/// What the address of a request says about the definition in its body.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

impl Place {
    /// The definition replaces this one.
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        Self { name: Some(spec.name.to_string()), version: Some(spec.version.to_string()) }
    }

    /// The definition replaces the text of a file that could not be read; the name of the file may say its version.
    pub(crate) fn of_file(file: &UnreadableFile) -> Self {
        let stem = file.path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(stem, _)| stem);
        let version = stem.and_then(|stem| stem.split_once('@')).map(|(_, version)| version.to_owned());
        Self { name: Some(file.name.clone()), version }
    }
}

/// Reads a body in the dialect that its type and its keys say.
pub(crate) fn read(body: &Body, place: &Place) -> Result<ParsedDefinition, ApiError> {
    read_text(body.text()?, form_of(body)?, place)
}

fn form_of(body: &Body) -> Result<FileForm, ApiError> {
    match body.media_type.as_str() {
        "application/x-haft-skill" => Ok(FileForm::Skill),
        "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => Ok(FileForm::Yaml),
        // `curl -d` without a header claims to send a form; what it sends is JSON.
        "" | "application/json" | "text/json" | "application/x-www-form-urlencoded" | "text/plain" => {
            Ok(FileForm::Json)
        }
        other => {
            let message = format!(
                "a definition of type `{other}` cannot be read; send `application/json`, `application/yaml` or \
                 `application/x-haft-skill`"
            );
            Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
        }
    }
}

/// Returns the body as its author wrote it, for the file. What the API answered is nobody's writing, and JSON on one
/// line has no layout to keep: they are written out.
pub(crate) fn author_text(body: &Body, reading: &ParsedDefinition) -> Option<SourceText> {
    let (form, text) = (form_of(body).ok()?, body.text().ok()?);
    let laid_out = form != FileForm::Json || text.trim().contains('\n');
    (laid_out && !reading.from_api).then(|| SourceText { form, text: text.to_owned() })
}

/// Reads a text of a known form.
pub(crate) fn read_text(text: &str, form: FileForm, place: &Place) -> Result<ParsedDefinition, ApiError> {
    let defaults = Defaults { name: place.name.clone(), version: place.version.clone() };
    dialect::read(text, form, &defaults).map_err(|problems| ApiError::invalid_definition(&problems))
}

/// A definition that may be stored.
pub(crate) struct Checked {
    pub(crate) spec: ToolSpec,
    pub(crate) form: FileForm,
    pub(crate) enabled: Option<bool>,
    pub(crate) warnings: Vec<Problem>,
}

/// Puts masked values back and makes every check that a definition has to pass. What is wrong is told with the lines of
/// the text, where there is one.
pub(crate) async fn check(
    app: &App,
    tenant: &TenantId,
    (mut reading, text): (ParsedDefinition, Option<&SourceText>),
    earlier: Option<&ToolSpec>,
    folder: Option<String>,
) -> Result<Checked, ApiError> {
    let lost = redact::restore(&mut reading.spec, earlier);
    let mut verdict = judge(app, tenant, &reading.spec, folder).await;
    verdict.errors.extend(lost.into_iter().map(|field| {
        Problem::new(field, "masked_value", "`***` stands for a value that is not known here; write it anew")
    }));
    let placed = |problems: &mut Vec<Problem>| {
        if let Some(SourceText { form, text }) = text.filter(|_| !problems.is_empty()) {
            dialect::locate(text, *form, problems);
        }
    };
    if !verdict.errors.is_empty() {
        placed(&mut verdict.errors);
        return Err(ApiError::invalid_definition(&verdict.errors));
    }
    placed(&mut verdict.warnings);
    let mut warnings = reading.warnings;
    warnings.extend(verdict.warnings);
    Ok(Checked { spec: reading.spec, form: reading.form, enabled: reading.enabled, warnings })
}

/// Says everything that is wrong or doubtful about a definition, its executor's view included. `folder` is that of
/// its bundle, relative to the home folder.
pub(crate) async fn judge(
    app: &App,
    tenant: &TenantId,
    spec: &ToolSpec,
    folder: Option<String>,
) -> check::CheckReport {
    let mut verdict = check::definition(spec);
    verdict.warnings.extend(shadowed(app, spec));
    let spec = Arc::new(spec.clone());
    // A definition whose executor or function is not here now is kept, and is not ready.
    if let Err(problem) = app.registry().executors().available(&spec) {
        verdict.warnings.push(problem);
    } else {
        match compile(app, &spec, folder).await {
            Ok(plan) => verdict.warnings.extend(missing_secrets(app, tenant, &plan).await),
            Err(mut found) => {
                found.retain(|found| !verdict.errors.contains(found));
                verdict.errors.extend(found);
            }
        }
    }
    // What is wrong already needs no process to tell.
    if verdict.errors.is_empty() {
        let found = app.registry().executors().examine(&spec).await;
        let (unknown, wrong) = found.into_iter().partition(|found| found.code == NOT_CHECKED);
        verdict.errors = wrong;
        verdict.warnings.extend::<Vec<_>>(unknown);
    }
    verdict
}

/// Warns of a name that a built-in tool has: the bare name means that one.
fn shadowed(app: &App, spec: &ToolSpec) -> Option<Problem> {
    let snapshot = app.registry().snapshot();
    let (bundle, version) = (Some(BundleSlug::built_in()), None);
    let reference = ToolRef::Name { bundle, name: spec.name.clone(), version };
    let built_in = snapshot.resolve(&TenantId::default_tenant(), &reference).ok()?;
    (*built_in.tool.spec != *spec).then(|| {
        let message = format!(
            "`{0}` is also the name of a built-in tool, and the bare name means that one; call this one as `bundle:{0}`, or \
             name it otherwise",
            spec.name
        );
        Problem::new("name", "shadowed_by_built_in", message)
    })
}

/// The code of a name in a template that is no argument and no stored credential.
pub(crate) const UNKNOWN_NAME: &str = "unknown_name";

/// Warns of what a template names and nobody has: an argument that is misspelled, or a credential to come.
async fn missing_secrets(app: &App, tenant: &TenantId, plan: &CompiledTool) -> Vec<Problem> {
    let mut names = plan.prepared.secrets();
    names.sort_unstable();
    names.dedup();
    let mut missing = Vec::new();
    let properties = plan.spec.input_schema.get("properties").and_then(Value::as_object);
    let declares = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    // The version of the tool is always known, and an argument in the wrong notation is told elsewhere.
    for name in names.into_iter().filter(|name| *name != "version" && !declares(name)) {
        // Where the store does not answer, nothing is known.
        if app.has_secret(tenant, name).await.unwrap_or(true) {
            continue;
        }
        let arguments = properties.into_iter().flat_map(|all| all.keys().map(String::as_str));
        let meant = match nearest(name, arguments) {
            Some(argument) => format!("; did you mean the argument `{argument}`?"),
            None => format!("; store it with `haft secret set {name}`"),
        };
        let message = format!("`{name}` is neither an argument of the tool nor a stored credential{meant}");
        missing.push(Problem::new("implementation", UNKNOWN_NAME, message));
    }
    missing
}

/// Returns what the compilation finds. A module takes its time, so this is not for threads that serve others.
async fn compile(
    app: &App,
    spec: &Arc<ToolSpec>,
    folder: Option<String>,
) -> Result<CompiledTool, Vec<Problem>> {
    let (spec, executors) = (Arc::clone(spec), app.registry().executors().clone());
    let compiling =
        tokio::task::spawn_blocking(move || CompiledTool::compile(&spec, folder.as_deref(), &executors));
    compiling.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a definition could not be compiled");
        Err(vec![Problem::new("", "not_compiled", "the definition could not be compiled; see the log")])
    })
}

/// `published` is reached by `POST …/publish` only; writing back what a tool already is changes nothing.
pub(crate) fn refuse_published(asked: Option<Status>, now: Option<Status>) -> Result<(), ApiError> {
    if asked == Some(Status::Published) && now != Some(Status::Published) {
        return Err(ApiError::bad_request(
            "`status` cannot be set to `published`; use `POST /tools/{ref}/publish`",
        ));
    }
    Ok(())
}

/// Only tools of one's own tenant are made here.
pub(crate) fn refuse_other_scope(scope: Option<&str>) -> Result<(), ApiError> {
    match scope {
        None | Some("tenant") => Ok(()),
        Some(other) => {
            let shown = haft_core::problem::excerpt(other, 40);
            Err(ApiError::bad_request(format!("`scope` is `{shown}`; only `tenant` can be created here")))
        }
    }
}

/// Warns of a change that names another bundle than the one that the tool is in.
pub(crate) fn other_bundle(named: Option<&str>, tool: &Tool) -> Option<Problem> {
    let named =
        named.filter(|named| *named != tool.bundle.as_str() && *named != tool.bundle_id.to_string())?;
    let message = format!(
        "the tool stays in the bundle `{}`: it is not moved by a change; to have it in `{}`, create it there and delete \
         this one",
        tool.bundle,
        haft_core::problem::excerpt(named, 60)
    );
    Some(Problem::new("bundle", "not_moved", message))
}

/// A change keeps name and version: another name is another tool.
pub(crate) fn same_identity(new: &ToolSpec, now: &ToolSpec) -> Result<(), ApiError> {
    if new.name != now.name {
        let message =
            format!("the definition is named `{}`, the address `{}`; they must agree", new.name, now.name);
        return Err(ApiError::bad_request(message));
    }
    if new.version != now.version {
        let message = format!(
            "the definition has version `{}`, the tool `{}`; a new label comes from `POST /tools/{{ref}}/version`",
            new.version, now.version
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}
