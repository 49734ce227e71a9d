//! The tools that are offered to a model, and their names there.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_definition::export;

use crate::registry::entry::Entry;
use crate::registry::snapshot::{ResolveError, Snapshot};

/// Which of several tools with the same name has the bare name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The tool that a reference resolves to: by kind, and within a kind the one that was there first.
    ByKind,
    /// The tool that was there first, whatever its kind: a list that a client has read stays true.
    FirstCome,
}

/// A tool as it is offered to a model.
pub struct ToolOffer<'a> {
    /// The tool.
    pub entry: &'a Arc<Entry>,
    /// The definition that a call runs.
    pub spec: &'a Arc<ToolSpec>,
    /// A name that every model accepts and that is unique.
    pub name: String,
}

impl Snapshot {
    /// Returns the tools to offer to a model, in the order of lists: the runnable ones, and of each name in a bundle
    /// only the version that a bare name calls.
    pub fn offers<'a>(&'a self, tenant: &'a TenantId, mode: Mode, naming: Naming) -> Vec<ToolOffer<'a>> {
        let mut chosen: Vec<&Arc<Entry>> = Vec::new();
        for entry in self.tools(tenant) {
            if !self.is_runnable(entry, mode) {
                continue;
            }
            match chosen.last_mut() {
                Some(last) if same_tool(last, entry) => {
                    if entry.tool.created_at > last.tool.created_at {
                        *last = entry;
                    }
                }
                _ => chosen.push(entry),
            }
        }
        // Computed once for all tools: a search for each name would take quadratic time.
        let has_hash_like = chosen.iter().any(|entry| export::looks_distinct(entry.tool.spec.name.as_str()));
        let hashed_names: HashSet<String> = if has_hash_like {
            self.tools(tenant).filter_map(|entry| self.hashed_name(entry, mode, naming)).collect()
        } else {
            HashSet::new()
        };
        // Model APIs reject duplicate names, and short hashes can be made to collide.
        let mut names = HashSet::new();
        let offers = chosen.into_iter().map(|entry| {
            let name = self.offered_name(entry, mode, naming, |name| hashed_names.contains(name));
            ToolOffer { name, ..unnamed_offer(entry, mode) }
        });
        offers.filter(|offer| names.insert(offer.name.clone())).collect()
    }

    /// Returns one tool as it would be offered to a model, whether or not it can run.
    pub fn offer<'a>(&'a self, entry: &'a Arc<Entry>, mode: Mode, naming: Naming) -> ToolOffer<'a> {
        ToolOffer { name: self.model_name(entry, mode, naming), ..unnamed_offer(entry, mode) }
    }

    /// Returns whether this tool may be called.
    pub fn is_runnable(&self, entry: &Entry, mode: Mode) -> bool {
        entry.runnable(self.is_bundle_enabled(entry), mode).is_ok()
    }

    /// Returns the name of a tool for models. One tool has the bare name, which [`Naming`] decides; others get a hash. So
    /// a name means the same tool whatever else is in the list.
    fn model_name(&self, entry: &Entry, mode: Mode, naming: Naming) -> String {
        let tenant = &entry.tool.tenant;
        self.offered_name(entry, mode, naming, |name| {
            self.by_hashed_name(tenant, name, mode, naming).is_some()
        })
    }

    fn offered_name(
        &self,
        entry: &Entry,
        mode: Mode,
        naming: Naming,
        is_hashed_name: impl Fn(&str) -> bool,
    ) -> String {
        let name = entry.tool.spec.name.as_str();
        match self.hashed_name(entry, mode, naming) {
            Some(hashed) => hashed,
            // A tool whose own name equals the hashed name of another one must not get its calls.
            None if is_hashed_name(name) => export::distinct_name(name, &entry.qualified),
            None => name.to_owned(),
        }
    }

    /// Returns the name with a hash, if models cannot use the tool's own name.
    fn hashed_name(&self, entry: &Entry, mode: Mode, naming: Naming) -> Option<String> {
        let name = &entry.tool.spec.name;
        let bare = ToolRef::Name { bundle: None, name: name.clone(), version: None };
        match self.named(&entry.tool.tenant, &bare, mode, naming) {
            Ok(resolved) if resolved.tool.id == entry.tool.id => {
                (!export::is_model_name(name.as_str())).then(|| export::model_name(name.as_str()))
            }
            _ => Some(export::distinct_name(name.as_str(), &entry.qualified)),
        }
    }

    /// Returns the tool whose name with a hash is this.
    fn by_hashed_name<'a>(
        &'a self,
        tenant: &'a TenantId,
        text: &str,
        mode: Mode,
        naming: Naming,
    ) -> Option<&'a Arc<Entry>> {
        let matches =
            |entry: &Entry| self.hashed_name(entry, mode, naming).is_some_and(|hashed| hashed == text);
        if export::looks_distinct(text) { self.find_hashed(tenant, text, matches) } else { None }
    }

    /// Returns the first tool that matches, among those whose name for models may start like this one.
    fn find_hashed<'a>(
        &'a self,
        tenant: &'a TenantId,
        text: &str,
        matches: impl Fn(&Entry) -> bool,
    ) -> Option<&'a Arc<Entry>> {
        let (start, _) = text.rsplit_once('_')?;
        // A hash is appended to the bare name, or to a changed form of a name that models do not accept.
        let same_start = self.names.get(start).into_iter().flat_map(|list| list.iter());
        let mut same_start = same_start.filter(|entry| entry.tool.tenant == *tenant);
        let changed =
            || self.tools(tenant).filter(|entry| !export::is_model_name(entry.tool.spec.name.as_str()));
        same_start.find(|entry| matches(entry)).or_else(|| changed().find(|entry| matches(entry)))
    }

    /// Resolves the name in a call: the name for models, or a reference.
    pub fn resolve_called<'a>(
        &'a self,
        tenant: &'a TenantId,
        text: &str,
        reference: &ToolRef,
        mode: Mode,
        naming: Naming,
    ) -> Result<&'a Arc<Entry>, ResolveError> {
        if let Some(entry) = self.by_hashed_name(tenant, text, mode, naming) {
            return Ok(entry);
        }
        let by_model_name =
            || self.find_hashed(tenant, text, |entry| self.model_name(entry, mode, naming) == text);
        self.named(tenant, reference, mode, naming).or_else(|error| by_model_name().ok_or(error))
    }

    /// Resolves a reference; a bare name that several tools have means the one that `naming` says.
    fn named<'a>(
        &'a self,
        tenant: &'a TenantId,
        reference: &ToolRef,
        mode: Mode,
        naming: Naming,
    ) -> Result<&'a Arc<Entry>, ResolveError> {
        let kept = match naming {
            Naming::ByKind => None,
            Naming::FirstCome => self.first_named(tenant, reference, mode, naming),
        };
        kept.map_or_else(|| self.resolve_in(tenant, reference, mode), Ok)
            .or_else(|error| self.first_named(tenant, reference, mode, naming).ok_or(error))
    }
}

fn unnamed_offer(entry: &Arc<Entry>, mode: Mode) -> ToolOffer<'_> {
    let spec = entry.definition(mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
    ToolOffer { entry, spec, name: String::new() }
}

fn same_tool(a: &Entry, b: &Entry) -> bool {
    a.tool.bundle_id == b.tool.bundle_id && a.tool.spec.name == b.tool.spec.name
}
