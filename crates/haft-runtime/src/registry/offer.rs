//! What a model is offered, and under which names.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_definition::export;

use crate::registry::entry::Entry;
use crate::registry::resolve::ResolveError;
use crate::registry::snapshot::Snapshot;

/// A tool as a model is offered it.
pub struct ToolOffer<'a> {
    /// The tool.
    pub entry: &'a Arc<Entry>,
    /// The definition that a call would run.
    pub spec: &'a Arc<ToolSpec>,
    /// The name that every model accepts and that means this tool alone.
    pub name: String,
}

impl Snapshot {
    /// Returns what a model may be offered, in the order of lists: runnable tools, and of each name in a bundle only
    /// the version that a bare name would call.
    pub fn offers<'a>(&'a self, tenant: &'a TenantId, mode: Mode) -> Vec<ToolOffer<'a>> {
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
        // Looked up once for all: one by one, each name that looks so would be sought among all tools.
        let looks_told = chosen.iter().any(|entry| export::looks_distinct(entry.tool.spec.name.as_str()));
        let told_by_hash: HashSet<String> = if looks_told {
            self.tools(tenant).filter_map(|entry| self.hashed_name(entry, mode)).collect()
        } else {
            HashSet::new()
        };
        // No model's API takes a name twice; short hashes may be made to fall together.
        let mut told = HashSet::new();
        let offers = chosen.into_iter().map(|entry| {
            let name = self.told_name(entry, mode, |name| told_by_hash.contains(name));
            ToolOffer { name, ..nameless(entry, mode) }
        });
        offers.filter(|offer| told.insert(offer.name.clone())).collect()
    }

    /// Returns one tool as a model would be offered it, whether or not it can run.
    pub fn offer<'a>(&'a self, entry: &'a Arc<Entry>, mode: Mode) -> ToolOffer<'a> {
        ToolOffer { name: self.model_name(entry, mode), ..nameless(entry, mode) }
    }

    /// Tells whether a call of this tool would be let through.
    pub fn is_runnable(&self, entry: &Entry, mode: Mode) -> bool {
        entry.runnable(self.is_open(entry), mode).is_ok()
    }

    /// The bare name belongs to the tool that a bare name calls; every other one is told from it by a hash. So a
    /// name means the same tool whatever else is in the list.
    fn model_name(&self, entry: &Entry, mode: Mode) -> String {
        self.told_name(entry, mode, |name| self.told_by_hash(&entry.tool.tenant, name, mode).is_some())
    }

    fn told_name(&self, entry: &Entry, mode: Mode, is_told: impl Fn(&str) -> bool) -> String {
        let name = entry.tool.spec.name.as_str();
        match self.hashed_name(entry, mode) {
            Some(hashed) => hashed,
            // A tool may be called what another one is told as; it does not get that one's calls.
            None if is_told(name) => export::distinct_name(name, &entry.qualified),
            None => name.to_owned(),
        }
    }

    /// Returns the name with a hash, for a tool that cannot be told by its own.
    fn hashed_name(&self, entry: &Entry, mode: Mode) -> Option<String> {
        let name = &entry.tool.spec.name;
        let bare = ToolRef::Name { bundle: None, name: name.clone(), version: None };
        match self.resolve_in(&entry.tool.tenant, &bare, mode) {
            Ok(found) if found.tool.id == entry.tool.id => {
                (!export::is_model_name(name.as_str())).then(|| export::model_name(name.as_str()))
            }
            _ => Some(export::distinct_name(name.as_str(), &entry.qualified)),
        }
    }

    /// Finds the tool that models know by this name with a hash.
    fn told_by_hash<'a>(&'a self, tenant: &'a TenantId, text: &str, mode: Mode) -> Option<&'a Arc<Entry>> {
        let is_meant = |entry: &Entry| self.hashed_name(entry, mode).is_some_and(|hashed| hashed == text);
        if export::looks_distinct(text) { self.like(tenant, text, is_meant) } else { None }
    }

    /// Finds a tool among those whose told name may begin as this one.
    fn like<'a>(
        &'a self,
        tenant: &'a TenantId,
        text: &str,
        is_meant: impl Fn(&Entry) -> bool,
    ) -> Option<&'a Arc<Entry>> {
        let (start, _) = text.rsplit_once('_')?;
        // A hash is appended to the bare name, or to what could be kept of one that no model accepts.
        let same_start = self.names.get(start).into_iter().flat_map(|list| list.iter());
        let mut same_start = same_start.filter(|entry| entry.tool.tenant == *tenant);
        let changed =
            || self.tools(tenant).filter(|entry| !export::is_model_name(entry.tool.spec.name.as_str()));
        same_start.find(|entry| is_meant(entry)).or_else(|| changed().find(|entry| is_meant(entry)))
    }

    /// Finds the tool that a caller means: by the name that models were told, or by its own.
    pub fn called<'a>(
        &'a self,
        tenant: &'a TenantId,
        text: &str,
        reference: &ToolRef,
        mode: Mode,
    ) -> Result<&'a Arc<Entry>, ResolveError> {
        if let Some(told) = self.told_by_hash(tenant, text, mode) {
            return Ok(told);
        }
        self.resolve_in(tenant, reference, mode)
            .or_else(|error| self.offered_as(tenant, text, mode).ok_or(error))
    }

    /// Finds the tool that a model was offered under this name, where no tool has that name itself.
    pub fn offered_as<'a>(&'a self, tenant: &'a TenantId, text: &str, mode: Mode) -> Option<&'a Arc<Entry>> {
        self.like(tenant, text, |entry| self.model_name(entry, mode) == text)
    }
}

fn nameless(entry: &Arc<Entry>, mode: Mode) -> ToolOffer<'_> {
    let spec = entry.definition(mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
    ToolOffer { entry, spec, name: String::new() }
}

fn same_tool(a: &Entry, b: &Entry) -> bool {
    a.tool.bundle_id == b.tool.bundle_id && a.tool.spec.name == b.tool.spec.name
}
