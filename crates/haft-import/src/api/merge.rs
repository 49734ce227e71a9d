//! Merges an import with the tools of an earlier one: changes of the document are applied, edits of users are kept.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::import::{ApiImport, ImportedOperation};
use super::names;
use haft_core::hash;
use haft_core::id::ToolId;
use haft_core::implementation::{Auth, Http, Implementation};
use haft_core::name::ToolName;
use haft_core::spec::{Origin, ToolSpec};

/// The length of the digests that detect edited fields.
const DIGEST_LENGTH: usize = 16;

/// An existing tool in the bundle of the import.
#[derive(Debug, Clone, Copy)]
pub struct ExistingTool<'a> {
    /// The id.
    pub id: ToolId,
    /// The definition.
    pub spec: &'a ToolSpec,
}

/// An update of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUpdate {
    /// The id of the tool.
    pub id: ToolId,
    /// The new definition.
    pub spec: ToolSpec,
    /// The fields that the document changed.
    pub changed: Vec<&'static str>,
    /// The fields that are kept because a user edited them.
    pub kept: Vec<&'static str>,
}

/// The change for one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum MergeStep {
    /// A new tool.
    Create(Box<ToolSpec>),
    /// An existing tool changes.
    Update(Box<ToolUpdate>),
    /// An existing tool is up to date.
    Unchanged(ToolId),
    /// The operation cannot be imported, for this reason.
    Skip(String),
}

/// The changes of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePlan {
    /// The imported operations and their changes.
    pub steps: Vec<(ImportedOperation, MergeStep)>,
    /// Tools of earlier imports whose operations were removed from the document.
    pub missing: Vec<ToolId>,
}

/// Compares an import with the existing tools.
pub fn merge(import: ApiImport, existing: &[ExistingTool<'_>]) -> MergePlan {
    let index = Index::new(&import, existing);
    let missing = index.missing(&import);
    let mut taken: HashSet<ToolName> = existing.iter().map(|tool| tool.spec.name.clone()).collect();
    let mut used = HashSet::new();
    let mut steps = Vec::with_capacity(import.tools.len());
    // Existing tools come first, because they keep their names.
    for imported in &import.tools {
        let found = imported.spec.origin.as_ref().and_then(|origin| index.find(origin));
        steps.push(found.filter(|tool| used.insert(tool.id)).map(|tool| update(tool, &imported.spec)));
    }
    let steps = import.tools.into_iter().zip(steps).map(|(imported, step)| {
        let step = step.unwrap_or_else(|| create(&imported.spec, &mut taken));
        (imported, step)
    });
    MergePlan { steps: steps.collect(), missing }
}

/// Finds existing tools by their operation.
struct Index<'a> {
    by_operation: HashMap<&'a str, ExistingTool<'a>>,
    by_id: HashMap<&'a str, ExistingTool<'a>>,
    all: Vec<(&'a Origin, ToolId)>,
}

impl<'a> Index<'a> {
    fn new(import: &ApiImport, existing: &[ExistingTool<'a>]) -> Self {
        let keys: HashSet<&str> = import.operations.iter().map(|(key, _)| key.as_str()).collect();
        let (mut by_operation, mut by_id, mut all) = (HashMap::new(), HashMap::new(), Vec::new());
        for tool in existing {
            let Some(origin) = tool.spec.origin.as_ref().filter(|origin| origin.document == import.title)
            else {
                continue;
            };
            all.push((origin, tool.id));
            // Only the newest of several versions is updated.
            newest(&mut by_operation, origin.operation.as_str(), *tool);
            // A tool whose operation still exists has not moved.
            if let Some(id) = &origin.operation_id
                && !keys.contains(origin.operation.as_str())
            {
                newest(&mut by_id, id.as_str(), *tool);
            }
        }
        Self { by_operation, by_id, all }
    }

    /// An operation that moved to another path is found by its `operationId`.
    fn find(&self, origin: &Origin) -> Option<&ExistingTool<'a>> {
        let moved = || self.by_id.get(origin.operation_id.as_deref()?);
        self.by_operation.get(origin.operation.as_str()).or_else(moved)
    }

    fn missing(&self, import: &ApiImport) -> Vec<ToolId> {
        let keys: HashSet<&str> = import.operations.iter().map(|(key, _)| key.as_str()).collect();
        let ids: HashSet<&str> = import.operations.iter().filter_map(|(_, id)| id.as_deref()).collect();
        let is_there = |origin: &Origin| {
            keys.contains(origin.operation.as_str())
                || origin.operation_id.as_deref().is_some_and(|id| ids.contains(id))
        };
        self.all.iter().filter(|(origin, _)| !is_there(origin)).map(|(_, id)| *id).collect()
    }
}

fn newest<'a>(map: &mut HashMap<&'a str, ExistingTool<'a>>, key: &'a str, tool: ExistingTool<'a>) {
    let entry = map.entry(key).or_insert(tool);
    if entry.id < tool.id {
        *entry = tool;
    }
}

fn create(spec: &ToolSpec, taken: &mut HashSet<ToolName>) -> MergeStep {
    let mut spec = spec.clone();
    if taken.contains(&spec.name) {
        let operation = spec.origin.as_ref().map_or("", |origin| origin.operation.as_str());
        match names::with_suffix(spec.name.as_str(), operation) {
            Ok(name) if !taken.contains(&name) => spec.name = name,
            _ => {
                return MergeStep::Skip(format!("another tool of the bundle has the name `{}`", spec.name));
            }
        }
    }
    taken.insert(spec.name.clone());
    MergeStep::Create(Box::new(spec))
}

fn update(tool: &ExistingTool<'_>, new: &ToolSpec) -> MergeStep {
    let old = tool.spec;
    let (Implementation::Http(before), Implementation::Http(now)) =
        (&old.implementation, &new.implementation)
    else {
        return MergeStep::Skip(format!("`{}` is no longer an `http` tool; it was not changed", old.name));
    };
    let imported = old.origin.as_ref().map(|origin| &origin.digests);
    let present = digests(old);
    // A field was edited if it differs from the imported value.
    let edited = |field: &str| imported.is_some_and(|imported| imported.get(field) != present.get(field));
    let mut kept = Vec::new();
    let mut keeps = |field: &'static str| {
        let keeps = edited(field);
        if keeps {
            kept.push(field);
        }
        keeps
    };
    let mut spec = old.clone();
    if !keeps("display_name") {
        spec.display_name.clone_from(&new.display_name);
    }
    if !keeps("description") {
        spec.description.clone_from(&new.description);
    }
    if !keeps("category") {
        spec.category.clone_from(&new.category);
    }
    if !keeps("tags") {
        spec.tags.clone_from(&new.tags);
    }
    let mut http = Http { request: before.request.clone(), auth: before.auth.clone(), ..(**before).clone() };
    http.request.method.clone_from(&now.request.method);
    http.request.url.clone_from(&now.request.url);
    http.request.query.clone_from(&now.request.query);
    http.request.styles.clone_from(&now.request.styles);
    http.request.text_styles.clone_from(&now.request.text_styles);
    http.request.allow_reserved.clone_from(&now.request.allow_reserved);
    http.request.files.clone_from(&now.request.files);
    http.request.optional_body = now.request.optional_body;
    http.request.body.clone_from(&now.request.body);
    if !keeps("headers") {
        http.request.headers.clone_from(&now.request.headers);
    }
    if !keeps("auth") {
        http.auth.clone_from(&now.auth);
    }
    spec.implementation = Implementation::Http(Box::new(http));
    spec.input_schema.clone_from(&new.input_schema);
    spec.output_schema.clone_from(&new.output_schema);
    spec.origin.clone_from(&new.origin);
    if spec == *old {
        return MergeStep::Unchanged(tool.id);
    }
    let changed = changes(old, &spec);
    MergeStep::Update(Box::new(ToolUpdate { id: tool.id, spec, changed, kept }))
}

/// Returns the fields in which two definitions differ.
fn changes(old: &ToolSpec, new: &ToolSpec) -> Vec<&'static str> {
    let differs = [
        ("display_name", old.display_name != new.display_name),
        ("description", old.description != new.description),
        ("category", old.category != new.category),
        ("tags", old.tags != new.tags),
        ("implementation", old.implementation != new.implementation),
        ("input_schema", old.input_schema != new.input_schema),
        ("output_schema", old.output_schema != new.output_schema),
        ("origin", old.origin != new.origin),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

/// Returns digests of the imported fields that users may edit.
pub(crate) fn digests(spec: &ToolSpec) -> BTreeMap<String, String> {
    fn digest(value: &impl Serialize) -> String {
        let mut digest = hash::of_value(value).unwrap_or_default();
        digest.truncate(DIGEST_LENGTH);
        digest
    }
    let mut digests = BTreeMap::from([
        ("display_name".to_owned(), digest(&spec.display_name)),
        ("description".to_owned(), digest(&spec.description)),
        ("category".to_owned(), digest(&spec.category)),
        ("tags".to_owned(), digest(&spec.tags)),
    ]);
    if let Implementation::Http(http) = &spec.implementation {
        let auth: &Option<Auth> = &http.auth;
        digests.insert("auth".to_owned(), digest(auth));
        digests.insert("headers".to_owned(), digest(&http.request.headers));
    }
    digests
}
