//! The warnings about tools that are ready to run, for lists and single tools.

use std::collections::HashMap;

use haft_core::implementation::Kind;
use haft_core::problem::{MISSING_IMPORT, Problem};
use haft_core::token::Role;
use haft_core::tool::Source;
use haft_definition::folder::TOOLSET_FILE;
use haft_runtime::registry::Entry;

use crate::context::Context;
use crate::definition;
use crate::identity::Identity;

/// The maximum number of secrets that are looked up for one response.
const MAX_LOOKUPS: usize = 200;

/// Collects the warnings of the tools of one response. What tools share is looked up once.
pub struct Warnings<'a> {
    app: &'a Context,
    identity: &'a Identity,
    /// Why each secret is missing; `None` if it is not.
    missing: HashMap<String, Option<String>>,
    toolsets: HashMap<String, bool>,
}

impl<'a> Warnings<'a> {
    pub fn new(app: &'a Context, identity: &'a Identity) -> Self {
        Self { app, identity, missing: HashMap::new(), toolsets: HashMap::new() }
    }

    /// Returns the warnings of a tool.
    pub async fn of(&mut self, entry: &Entry) -> Vec<Problem> {
        // Authors can change neither built-in tools nor those of MCP servers.
        if matches!(entry.tool.source, Source::BuiltIn | Source::Mcp) {
            return Vec::new();
        }
        let mut warnings = entry.warnings().to_vec();
        warnings.extend_from_slice(entry.examined().unwrap_or_default());
        // Only editors may learn which secrets exist.
        if self.identity.role >= Role::Editor {
            for name in entry.secrets() {
                if let Some(missing) = self.missing(name).await {
                    warnings.push(definition::unknown_name(&entry.tool.spec, name, missing));
                }
            }
        }
        warnings.extend(self.unread_toolset(entry));
        warnings
    }

    /// Runs the slow checks of a tool with an unchecked file, before its warnings are shown. They start a
    /// process, so that only editors may cause them.
    pub async fn examine(&self, entry: &Entry) {
        let spec = &entry.tool.spec;
        let is_python =
            spec.implementation.kind() == Kind::Script && spec.implementation.runtime() == Some("python");
        let may_fail = is_python && spec.image.is_none() && !entry.tool.built_in;
        if self.identity.role < Role::Editor || !may_fail || entry.examined().is_some() {
            return;
        }
        let mut problems = self.app.registry().executors().examine(spec).await;
        problems.retain(|problem| problem.code == MISSING_IMPORT);
        entry.set_examined(problems);
    }

    /// Returns why a secret is missing.
    async fn missing(&mut self, name: &str) -> Option<String> {
        if let Some(known) = self.missing.get(name) {
            return known.clone();
        }
        if self.missing.len() >= MAX_LOOKUPS {
            return None;
        }
        // If the store is unavailable, do not warn.
        let missing = self.app.secrets().missing(&self.identity.tenant, name).await.unwrap_or_default();
        self.missing.insert(name.to_owned(), missing.clone());
        missing
    }

    /// Warns about a toolset manifest next to the definition, which is ignored: packages must be installed.
    fn unread_toolset(&mut self, entry: &Entry) -> Option<Problem> {
        let folder = entry.tool.folder()?;
        let home = &self.app.settings().home;
        let is_there = *self
            .toolsets
            .entry(folder.to_owned())
            .or_insert_with(|| home.join(folder).join(TOOLSET_FILE).is_file());
        is_there.then(|| {
            let message = format!(
                "`{folder}/{TOOLSET_FILE}` is ignored here: install a package with `haft toolset install DIR`"
            );
            Problem::new("", "toolset_not_read", message)
        })
    }
}
