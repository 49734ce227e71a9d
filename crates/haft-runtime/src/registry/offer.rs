//! The tools that are offered to a model, and their names there.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;
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

/// For whom tools are named.
#[derive(Debug, Clone, Copy)]
pub struct Audience<'a> {
    /// The tenant whose tools, and the global ones, are offered.
    pub tenant: &'a TenantId,
    /// The mode of calls.
    pub mode: Mode,
    /// Which tool has a bare name that several tools share.
    pub naming: Naming,
}

/// A tool as it is offered to a model.
pub struct ToolOffer<'a> {
    /// The tool.
    pub entry: &'a Arc<Entry>,
    /// The definition that a call runs. The description of a deprecated tool says so.
    pub spec: Cow<'a, ToolSpec>,
    /// A name that every model accepts and that is unique.
    pub name: String,
}

impl Snapshot {
    /// Returns the tools to offer to a model, in the order of lists: the runnable ones, and of each name in a bundle
    /// only the version that a bare name calls.
    pub fn offers<'a>(&'a self, audience: Audience<'a>) -> Vec<ToolOffer<'a>> {
        let Audience { tenant, mode, .. } = audience;
        let mut chosen: Vec<&Arc<Entry>> = Vec::new();
        for entry in self.tools(tenant) {
            // A copy of a built-in tool would be offered beside the built-in tool.
            if entry.tool.is_built_in_copy() || !self.is_runnable(entry, mode) {
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
            self.tools(tenant).filter_map(|entry| self.hashed_name(entry, audience)).collect()
        } else {
            HashSet::new()
        };
        // Model APIs reject duplicate names, and short hashes can be made to collide.
        let mut names = HashSet::new();
        let offers = chosen.into_iter().map(|entry| {
            let name = self.offered_name(entry, audience, |name| hashed_names.contains(name));
            ToolOffer { name, ..self.unnamed_offer(entry, audience) }
        });
        offers.filter(|offer| names.insert(offer.name.clone())).collect()
    }

    /// Returns one tool as it would be offered to a model, whether or not it can run.
    pub fn offer<'a>(&'a self, entry: &'a Arc<Entry>, audience: Audience<'a>) -> ToolOffer<'a> {
        ToolOffer { name: self.model_name(entry, audience), ..self.unnamed_offer(entry, audience) }
    }

    fn unnamed_offer<'a>(&'a self, entry: &'a Arc<Entry>, audience: Audience<'a>) -> ToolOffer<'a> {
        let spec = entry.definition(audience.mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
        let spec = match self.deprecation_notice(entry, audience) {
            Some(notice) => {
                let description = format!("Deprecated: {notice}.\n\n{}", spec.description);
                Cow::Owned(ToolSpec { description, ..ToolSpec::clone(spec) })
            }
            None => Cow::Borrowed(&**spec),
        };
        ToolOffer { entry, spec, name: String::new() }
    }

    /// Returns the warning about a deprecated tool. It names the replacement as the audience knows it.
    pub fn deprecation_notice(&self, entry: &Entry, audience: Audience<'_>) -> Option<String> {
        if entry.tool.status != Status::Deprecated {
            return None;
        }
        let replacement = entry.tool.deprecation().and_then(|deprecation| {
            let reference: ToolRef = deprecation.replaced_by.as_deref()?.parse().ok()?;
            let replacement = self.resolve_in(audience.tenant, &reference, audience.mode).ok()?;
            Some(self.model_name(replacement, audience))
        });
        entry.tool.deprecation_notice(replacement.as_deref())
    }

    /// Returns whether this tool may be called.
    pub fn is_runnable(&self, entry: &Entry, mode: Mode) -> bool {
        entry.runnable(self.is_bundle_enabled(entry), mode).is_ok()
    }

    /// Returns the name of a tool for models. One tool has the bare name, which [`Naming`] decides; others get a hash. So
    /// a name means the same tool whatever else is in the list.
    fn model_name(&self, entry: &Entry, audience: Audience<'_>) -> String {
        self.offered_name(entry, audience, |name| self.by_hashed_name(name, audience).is_some())
    }

    fn offered_name(
        &self,
        entry: &Entry,
        audience: Audience<'_>,
        is_hashed_name: impl Fn(&str) -> bool,
    ) -> String {
        let name = entry.tool.spec.name.as_str();
        match self.hashed_name(entry, audience) {
            Some(hashed) => hashed,
            // A tool whose own name equals the hashed name of another one must not get its calls.
            None if is_hashed_name(name) => export::distinct_name(name, &entry.qualified),
            None => name.to_owned(),
        }
    }

    /// Returns the name with a hash, if models cannot use the tool's own name.
    fn hashed_name(&self, entry: &Entry, audience: Audience<'_>) -> Option<String> {
        let name = &entry.tool.spec.name;
        let bare = ToolRef::Name { bundle: None, name: name.clone(), version: None };
        match self.named(&bare, audience) {
            Ok(resolved) if resolved.tool.id == entry.tool.id => {
                (!export::is_model_name(name.as_str())).then(|| export::model_name(name.as_str()))
            }
            _ => Some(export::distinct_name(name.as_str(), &entry.qualified)),
        }
    }

    /// Returns the tool whose name with a hash is this.
    fn by_hashed_name<'a>(&'a self, text: &str, audience: Audience<'a>) -> Option<&'a Arc<Entry>> {
        let matches = |entry: &Entry| self.hashed_name(entry, audience).is_some_and(|hashed| hashed == text);
        if export::looks_distinct(text) { self.find_hashed(audience.tenant, text, matches) } else { None }
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
        let mut same_start = same_start.filter(|entry| tenant.sees(&entry.tool.tenant));
        let changed =
            || self.tools(tenant).filter(|entry| !export::is_model_name(entry.tool.spec.name.as_str()));
        same_start.find(|entry| matches(entry)).or_else(|| changed().find(|entry| matches(entry)))
    }

    /// Resolves the name in a call: the name for models, or a reference.
    pub fn resolve_called<'a>(
        &'a self,
        text: &str,
        reference: &ToolRef,
        audience: Audience<'a>,
    ) -> Result<&'a Arc<Entry>, ResolveError> {
        if let Some(entry) = self.by_hashed_name(text, audience) {
            return Ok(entry);
        }
        let has_name = |entry: &Entry| self.model_name(entry, audience) == text;
        let by_model_name = || self.find_hashed(audience.tenant, text, has_name);
        self.named(reference, audience).or_else(|error| by_model_name().ok_or(error))
    }

    /// Resolves a reference; a bare name that several tools have means the one that [`Naming`] says.
    fn named<'a>(
        &'a self,
        reference: &ToolRef,
        audience: Audience<'a>,
    ) -> Result<&'a Arc<Entry>, ResolveError> {
        let Audience { tenant, mode, naming } = audience;
        let first = || self.first_named(tenant, reference, mode, naming);
        match naming {
            Naming::ByKind => self.resolve_in(tenant, reference, mode).or_else(|error| first().ok_or(error)),
            Naming::FirstCome => first().map_or_else(|| self.resolve_in(tenant, reference, mode), Ok),
        }
    }
}

fn same_tool(a: &Entry, b: &Entry) -> bool {
    a.tool.bundle_id == b.tool.bundle_id && a.tool.spec.name == b.tool.spec.name
}
