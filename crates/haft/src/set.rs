//! The tools that all views of a set share, and the one place that changes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::bundle::Bundle;
use haft_core::catalog::Change;
use haft_core::id::{BundleId, ToolId};
use haft_core::implementation::Implementation;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_core::{Clock as _, Timestamp};
use haft_definition::check;
use haft_definition::dialect::ParsedDefinition;
use haft_runtime::clock::SystemClock;
use haft_runtime::function::Functions;
use haft_runtime::pipeline::Caller;
use haft_runtime::registry::Registry;
use uuid::Uuid;

use crate::agree;
use crate::def::ToolDef;
use crate::error::{Reason, RegisterError};
use crate::files::FileState;
use crate::resources::Resources;

/// The tools of a set.
pub(crate) struct ToolSet {
    registry: Arc<Registry>,
    functions: Functions,
    pub(crate) bundle: Bundle,
    pub(crate) caller: Caller,
    max_value_bytes: u64,
    members: Mutex<Members>,
}

/// What is in a set, and where it came from.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) tools: BTreeMap<ToolName, Member>,
    /// Every file that was looked at, by its true path.
    pub(crate) files: BTreeMap<PathBuf, FileState>,
    /// The functions that are known to definitions alone.
    functions: Vec<String>,
}

/// One tool.
pub(crate) struct Member {
    pub(crate) tool: Tool,
    pub(crate) origin: Origin,
}

/// Where a tool came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program registered a function.
    Program,
    /// The program gave a text.
    Text,
    /// A file, by its true path.
    File(PathBuf),
}

impl ToolSet {
    pub(crate) fn new(resources: &Resources, max_value_bytes: u64, elevated: bool) -> Self {
        let functions = Functions::default();
        let registry = Arc::new(Registry::new(resources.executors(functions.clone())));
        let bundle = bundle(SystemClock.now());
        registry.apply_verified(vec![Change::Bundle(bundle.clone())]);
        let caller = Caller { name: "program".into(), elevated, role: Role::Admin };
        Self { registry, functions, bundle, caller, max_value_bytes, members: Mutex::default() }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Locks what is in the set, for a change.
    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a function and its tool.
    pub(crate) fn register(&self, def: ToolDef) -> Result<(), RegisterError> {
        let refused = |reason| RegisterError { tool: def.name.clone(), reason };
        let spec = checked(&def).map_err(refused)?;
        let mut members = self.members();
        if members.tools.contains_key(&spec.name) || members.functions.contains(&def.name) {
            return Err(refused(Reason::Duplicate));
        }
        self.functions.insert(&def.name, def.function);
        let mut changes = vec![members.insert(self.new_tool(spec, None), Origin::Program)];
        changes.extend(members.users_of(&def.name));
        self.registry.apply_verified(changes);
        Ok(())
    }

    /// Adds tools that come with haft, where their names are free.
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

    /// Adds a function that definitions may name, without a tool of its own.
    pub(crate) fn register_function(&self, def: ToolDef) -> Result<(), RegisterError> {
        let refused = |reason| RegisterError { tool: def.name.clone(), reason };
        checked(&def).map_err(refused)?;
        let mut members = self.members();
        let taken = members.functions.contains(&def.name)
            || members.tools.get(def.name.as_str()).is_some_and(|member| member.origin == Origin::Program);
        if taken {
            return Err(refused(Reason::Duplicate));
        }
        self.functions.insert(&def.name, def.function);
        let changes = members.users_of(&def.name);
        members.functions.push(def.name);
        self.registry.apply_verified(changes);
        Ok(())
    }

    /// Adds a definition that was read of a text of the program.
    pub(crate) fn add(&self, reading: ParsedDefinition) -> Result<(), Reason> {
        let mut members = self.members();
        if members.tools.contains_key(&reading.spec.name) {
            return Err(Reason::Duplicate);
        }
        let change = members.insert(self.tool_of(reading, None), Origin::Text);
        self.registry.apply_verified(vec![change]);
        Ok(())
    }

    /// Takes out a tool, a function, or what has both under one name; tells whether there was any.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut members = self.members();
        let member = members.tools.remove(name);
        let known = members.functions.len();
        members.functions.retain(|function| function != name);
        let had_function = members.functions.len() < known
            || member.as_ref().is_some_and(|member| member.origin == Origin::Program);
        let found = member.is_some() || had_function;
        let mut changes: Vec<Change> =
            member.into_iter().map(|member| Change::ToolGone(member.tool.id)).collect();
        if had_function {
            self.functions.remove(name);
            changes.extend(members.users_of(name));
        }
        self.registry.apply_verified(changes);
        found
    }

    /// Makes the tool of a definition that was read.
    pub(crate) fn tool_of(&self, reading: ParsedDefinition, path: Option<String>) -> Tool {
        let (enabled, status) = (reading.enabled, reading.status);
        let mut tool = self.new_tool(reading.spec, path);
        tool.enabled = enabled.unwrap_or(true);
        // What runs in a program is not published first.
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
        }
    }
}

impl Members {
    /// Enters a tool; returns the change of the registry.
    pub(crate) fn insert(&mut self, tool: Tool, origin: Origin) -> Change {
        let change = Change::Tool(Box::new(tool.clone()));
        self.tools.insert(tool.spec.name.clone(), Member { tool, origin });
        change
    }

    /// Returns the changes that let every tool which names a function look for it again. What was compiled of it
    /// with an earlier function is forgotten.
    fn users_of(&self, function: &str) -> Vec<Change> {
        // The tool that came with the function has it already.
        let defined = self.tools.values().filter(|member| member.origin != Origin::Program);
        let uses = |tool: &Tool| matches!(&tool.spec.implementation, Implementation::Function(named) if named.function == function);
        let tools = defined.map(|member| &member.tool).filter(|tool| uses(tool));
        tools.flat_map(|tool| [Change::ToolGone(tool.id), Change::Tool(Box::new(tool.clone()))]).collect()
    }
}

/// Checks what a program defines, the agreement of its schema with its function included.
pub(crate) fn checked(def: &ToolDef) -> Result<ToolSpec, Reason> {
    let spec = def.spec.clone()?;
    let check::CheckReport { errors: mut faults, warnings } = check::definition(&spec);
    // Other people's schemas may have them; a program's own have not.
    faults.extend(warnings.into_iter().filter(|warning| warning.code == check::UNFITTING_VALUE));
    if let Some(of_type) = &def.of_type {
        faults.extend(agree::disagreements(&spec.input_schema, of_type));
    }
    if faults.is_empty() { Ok(spec) } else { Err(Reason::Definition(faults)) }
}

fn bundle(now: Timestamp) -> Bundle {
    Bundle {
        id: BundleId(Uuid::now_v7()),
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::user_created(),
        display_name: String::new(),
        description: String::new(),
        enabled: true,
        built_in: false,
        created_at: now,
        modified_at: now,
        soft_deleted_at: None,
    }
}
