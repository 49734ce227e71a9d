//! The tools that all views of a set share; all changes go through [`ToolSet`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::Change;
use haft_core::id::{BundleId, ToolId};
use haft_core::implementation::Implementation;
use haft_core::lifecycle::Lifecycle;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_core::{Clock as _, Timestamp};
use haft_definition::check;
use haft_definition::dialect::ParsedDefinition;
use haft_runtime::clock::SystemClock;
use haft_runtime::function::Functions;
use haft_runtime::pipeline::Principal;
use haft_runtime::registry::Registry;
use uuid::Uuid;

use crate::def::ToolDef;
use crate::error::{RegisterError, RegisterErrorKind};
use crate::files::FileState;
use crate::resources::Resources;
use crate::schema_match;
use crate::search::SearchIndex;

/// The tools of a set.
pub(crate) struct ToolSet {
    registry: Arc<Registry>,
    functions: Functions,
    pub(crate) bundle: Bundle,
    pub(crate) principal: Arc<Principal>,
    max_value_bytes: u64,
    members: Mutex<Members>,
    pub(crate) search: SearchIndex,
}

/// The tools of a set with their origins.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) tools: BTreeMap<ToolName, Member>,
    /// The scanned files by canonical path.
    pub(crate) files: BTreeMap<PathBuf, FileState>,
    /// The functions without a tool of their own, which definitions can name.
    functions: Vec<String>,
}

/// A tool and its origin.
pub(crate) struct Member {
    pub(crate) tool: Tool,
    pub(crate) origin: Origin,
}

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program registered a function.
    Program,
    /// The program loaded a string.
    Text,
    /// A file, by its canonical path.
    File(PathBuf),
}

impl ToolSet {
    pub(crate) fn new(resources: &Resources, max_value_bytes: u64, elevated: bool) -> Self {
        let functions = Functions::default();
        let registry = Arc::new(Registry::new(resources.executors(functions.clone())));
        let bundle = bundle(SystemClock.now());
        registry.apply_verified(vec![Change::Bundle(bundle.clone())]);
        let principal = Principal::new(bundle.tenant.clone(), "program", Role::Admin).elevated(elevated);
        Self {
            registry,
            functions,
            bundle,
            principal: Arc::new(principal),
            max_value_bytes,
            members: Mutex::default(),
            search: SearchIndex::default(),
        }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Locks the tools of the set for a change.
    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a function and its tool.
    pub(crate) fn register(&self, def: ToolDef) -> Result<(), RegisterError> {
        let register_error = |kind| RegisterError { tool: def.name.clone(), kind };
        let spec = validated_spec(&def).map_err(register_error)?;
        let mut members = self.members();
        if members.tools.contains_key(&spec.name) || members.functions.contains(&def.name) {
            return Err(register_error(RegisterErrorKind::Duplicate));
        }
        self.functions.insert(&def.name, def.function);
        let mut changes = vec![members.insert(self.new_tool(spec, None), Origin::Program)];
        changes.extend(members.refresh_users(&def.name));
        self.registry.apply_verified(changes);
        Ok(())
    }

    /// Adds the built-in tools whose names are not taken.
    #[cfg(feature = "builtins")]
    pub(crate) fn add_built_ins(&self, built_ins: haft_builtins::BuiltIns) {
        let mut members = self.members();
        let mut changes = Vec::new();
        for spec in built_ins.specs {
            if members.tools.contains_key(&spec.name) {
                continue;
            }
            if let Some(function) = built_ins.functions.get(spec.name.as_str()) {
                self.functions.insert(spec.name.as_str(), function);
            }
            let tool = Tool { built_in: true, source: Source::BuiltIn, ..self.new_tool(spec, None) };
            changes.push(members.insert(tool, Origin::Program));
        }
        self.registry.apply_verified(changes);
    }

    /// Registers a function that definitions can name, without a tool of its own.
    pub(crate) fn register_function(&self, def: ToolDef) -> Result<(), RegisterError> {
        let register_error = |kind| RegisterError { tool: def.name.clone(), kind };
        validated_spec(&def).map_err(register_error)?;
        let mut members = self.members();
        let taken = members.functions.contains(&def.name)
            || members.tools.get(def.name.as_str()).is_some_and(|member| member.origin == Origin::Program);
        if taken {
            return Err(register_error(RegisterErrorKind::Duplicate));
        }
        self.functions.insert(&def.name, def.function);
        let changes = members.refresh_users(&def.name);
        members.functions.push(def.name);
        self.registry.apply_verified(changes);
        Ok(())
    }

    /// Adds a definition that the program loaded from a string.
    pub(crate) fn add(&self, parsed: ParsedDefinition) -> Result<(), RegisterErrorKind> {
        let mut members = self.members();
        if members.tools.contains_key(&parsed.spec.name) {
            return Err(RegisterErrorKind::Duplicate);
        }
        let change = members.insert(self.tool_of(parsed, None), Origin::Text);
        self.registry.apply_verified(vec![change]);
        Ok(())
    }

    /// Removes the tool and the function with this name; returns whether either existed.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut members = self.members();
        let member = members.tools.remove(name);
        let before = members.functions.len();
        members.functions.retain(|function| function != name);
        let had_function = members.functions.len() < before
            || member.as_ref().is_some_and(|member| member.origin == Origin::Program);
        let existed = member.is_some() || had_function;
        let mut changes: Vec<Change> =
            member.into_iter().map(|member| Change::ToolGone(member.tool.id)).collect();
        if had_function {
            self.functions.remove(name);
            changes.extend(members.refresh_users(name));
        }
        self.registry.apply_verified(changes);
        existed
    }

    /// Creates the tool of a parsed definition.
    pub(crate) fn tool_of(&self, parsed: ParsedDefinition, path: Option<String>) -> Tool {
        let (enabled, status) = (parsed.enabled, parsed.status);
        let mut tool = self.new_tool(parsed.spec, path);
        tool.enabled = enabled.unwrap_or(true);
        // A program runs definitions without publishing them first.
        tool.status = status.unwrap_or(Status::Published);
        tool
    }

    fn new_tool(&self, mut spec: ToolSpec, path: Option<String>) -> Tool {
        let limits = &mut spec.execution.limits;
        limits.max_response_bytes = limits.max_response_bytes.min(self.max_value_bytes);
        let now = SystemClock.now();
        let spec = Arc::new(spec);
        Tool {
            id: ToolId(Uuid::now_v7()),
            tenant: self.bundle.tenant.clone(),
            bundle_id: self.bundle.id,
            bundle: self.bundle.slug.clone(),
            published: Some((1, Arc::clone(&spec))),
            spec,
            revision: 1,
            status: Status::Published,
            enabled: true,
            built_in: false,
            fault: None,
            source: Source::User,
            path,
            usage: Usage::default(),
            created_at: now,
            modified_at: now,
            published_at: Some(now),
            lifecycle: Lifecycle::default(),
        }
    }
}

impl Members {
    /// Inserts a tool; returns the change for the registry.
    pub(crate) fn insert(&mut self, tool: Tool, origin: Origin) -> Change {
        let change = Change::Tool(Box::new(tool.clone()));
        self.tools.insert(tool.spec.name.clone(), Member { tool, origin });
        change
    }

    /// Returns the changes that make every definition which names a function resolve it again. Removing and adding the
    /// tool discards what was compiled with the earlier function.
    fn refresh_users(&self, function: &str) -> Vec<Change> {
        // The tool that was registered with the function already has it.
        let defined = self.tools.values().filter(|member| member.origin != Origin::Program);
        let uses = |tool: &Tool| matches!(&tool.spec.implementation, Implementation::Function(named) if named.function == function);
        let tools = defined.map(|member| &member.tool).filter(|tool| uses(tool));
        tools.flat_map(|tool| [Change::ToolGone(tool.id), Change::Tool(Box::new(tool.clone()))]).collect()
    }
}

/// Validates the definition of a tool, including that its schema matches its function.
pub(crate) fn validated_spec(def: &ToolDef) -> Result<ToolSpec, RegisterErrorKind> {
    let spec = def.spec.clone()?;
    let check::CheckReport { mut errors, warnings } = check::definition(&spec);
    // A warning for imported schemas, but an error in a schema that the program itself defines.
    errors.extend(warnings.into_iter().filter(|warning| warning.code == check::INVALID_SCHEMA_VALUE));
    if let Some(type_schema) = &def.type_schema {
        errors.extend(schema_match::mismatches(&spec.input_schema.value(), type_schema));
    }
    if errors.is_empty() { Ok(spec) } else { Err(RegisterErrorKind::Definition(errors)) }
}

fn bundle(now: Timestamp) -> Bundle {
    Bundle {
        id: BundleId(Uuid::now_v7()),
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::user_created(),
        display_name: String::new(),
        description: String::new(),
        enabled: true,
        kind: BundleKind::User,
        created_at: now,
        modified_at: now,
        soft_deleted_at: None,
    }
}
