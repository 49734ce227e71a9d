//! All tools and bundles at one moment, in persistent maps: the cost of a change does not depend on the number of tools.

use std::sync::Arc;

use haft_core::bundle::Bundle;
use haft_core::catalog::{Change, UnreadableFile};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::nearest;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::tool::Tool;
use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use serde_json::json;

use crate::executors::Executors;
use crate::registry::entry::Entry;
use crate::registry::offer::Naming;

/// The order of lists: by name, then bundle, then version.
type ListKey = (ToolName, BundleSlug, Version, ToolId);

/// The tools of one owner, in the order of lists.
type ListOrder = RedBlackTreeMapSync<ListKey, Arc<Entry>>;

/// All tools and bundles at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    tools: HashTrieMapSync<ToolId, Arc<Entry>>,
    pub(super) names: HashTrieMapSync<ToolName, Arc<[Arc<Entry>]>>,
    /// By owner. A global tool has one entry, however many tenants see it.
    order: HashTrieMapSync<TenantId, ListOrder>,
    bundles: HashTrieMapSync<BundleId, Arc<Bundle>>,
    unreadable: RedBlackTreeMapSync<String, Arc<UnreadableFile>>,
}

/// A tool at one moment, as a call needs it.
#[derive(Clone)]
pub struct ResolvedTool {
    /// The tool.
    pub entry: Arc<Entry>,
    /// Whether its bundle was enabled.
    pub bundle_enabled: bool,
}

impl Snapshot {
    /// Returns a tool that a tenant sees, by id.
    pub fn tool(&self, tenant: &TenantId, id: ToolId) -> Option<&Arc<Entry>> {
        self.tools.get(&id).filter(|entry| tenant.sees(&entry.tool.tenant))
    }

    /// Returns the tool with this name if there is exactly one.
    pub fn unique(&self, tenant: &TenantId, name: &str) -> Option<&Arc<Entry>> {
        match &**self.names.get(name)? {
            [entry] if tenant.sees(&entry.tool.tenant) => Some(entry),
            _ => None,
        }
    }

    /// Returns the tools with this name that a tenant sees, in every bundle and version.
    pub fn with_name<'a>(&'a self, tenant: &'a TenantId, name: &str) -> impl Iterator<Item = &'a Arc<Entry>> {
        let all = self.names.get(name).into_iter().flat_map(|list| list.iter());
        all.filter(|entry| tenant.sees(&entry.tool.tenant))
    }

    /// Returns the tools of all tenants, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.tools.values()
    }

    /// Returns a tool of any tenant by its id.
    pub fn entry(&self, id: ToolId) -> Option<&Arc<Entry>> {
        self.tools.get(&id)
    }

    /// Returns the tools that a tenant sees, its own and the global ones, in the order of lists.
    pub fn tools<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<Entry>> {
        let own = self.order.get(tenant);
        let global = self.order.get(&TenantId::global()).filter(|_| !tenant.is_global());
        let listed = |order: Option<&'a ListOrder>| order.into_iter().flat_map(ListOrder::iter).peekable();
        let (mut own, mut global) = (listed(own), listed(global));
        std::iter::from_fn(move || {
            let is_global_next = match (own.peek(), global.peek()) {
                (Some((own, _)), Some((global, _))) => global < own,
                (own, _) => own.is_none(),
            };
            let next = if is_global_next { global.next() } else { own.next() };
            next.map(|(_, entry)| entry)
        })
    }

    /// Returns a bundle by id.
    pub fn bundle(&self, id: BundleId) -> Option<&Arc<Bundle>> {
        self.bundles.get(&id)
    }

    /// Returns whether the bundle of a tool is enabled.
    pub fn is_bundle_enabled(&self, entry: &Entry) -> bool {
        self.bundle(entry.tool.bundle_id).is_some_and(|bundle| bundle.is_open())
    }

    /// Returns a tool as a call needs it.
    pub fn resolved(&self, entry: &Arc<Entry>) -> ResolvedTool {
        ResolvedTool { entry: Arc::clone(entry), bundle_enabled: self.is_bundle_enabled(entry) }
    }

    /// Returns the bundles of all tenants, in no particular order.
    pub(super) fn all_bundles(&self) -> impl Iterator<Item = &Arc<Bundle>> {
        self.bundles.values()
    }

    /// Returns the bundles that a tenant sees, in no particular order.
    pub fn bundles<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<Bundle>> {
        self.bundles.values().filter(move |bundle| tenant.sees(&bundle.tenant))
    }

    /// Returns the files of a tenant that cannot be read, by path.
    pub fn unreadable<'a, 't>(
        &'a self,
        tenant: &'t TenantId,
    ) -> impl Iterator<Item = &'a Arc<UnreadableFile>> + use<'a, 't> {
        self.unreadable.values().filter(move |file| file.tenant == *tenant)
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.tools.size()
    }

    /// Returns whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    fn insert(&mut self, tool: Tool, executors: &Executors) {
        let earlier = self.tools.get(&tool.id).cloned();
        let entry = Arc::new(Entry::new(tool, earlier.as_deref(), executors));
        if let Some(earlier) = earlier {
            self.unlink(&earlier);
        }
        let same = self.names.get(&entry.tool.spec.name);
        let mut all: Vec<_> = same.into_iter().flat_map(|list| list.iter().cloned()).collect();
        all.push(Arc::clone(&entry));
        self.names.insert_mut(entry.tool.spec.name.clone(), all.into());
        let owner = &entry.tool.tenant;
        if let Some(order) = self.order.get_mut(owner) {
            order.insert_mut(list_key(&entry.tool), Arc::clone(&entry));
        } else {
            let order = ListOrder::new_sync().insert(list_key(&entry.tool), Arc::clone(&entry));
            self.order.insert_mut(owner.clone(), order);
        }
        self.tools.insert_mut(entry.tool.id, entry);
    }

    fn remove(&mut self, id: ToolId) {
        if let Some(entry) = self.tools.get(&id).cloned() {
            self.unlink(&entry);
            self.tools.remove_mut(&id);
        }
    }

    fn unlink(&mut self, entry: &Entry) {
        let owner = &entry.tool.tenant;
        let is_last = self.order.get_mut(owner).is_some_and(|order| {
            order.remove_mut(&list_key(&entry.tool));
            order.is_empty()
        });
        if is_last {
            self.order.remove_mut(owner);
        }
        let name = &entry.tool.spec.name;
        let rest: Vec<_> = self
            .names
            .get(name)
            .into_iter()
            .flat_map(|list| list.iter())
            .filter(|other| other.tool.id != entry.tool.id)
            .cloned()
            .collect();
        if rest.is_empty() {
            self.names.remove_mut(name);
        } else {
            self.names.insert_mut(name.clone(), rest.into());
        }
    }

    /// Returns a snapshot of a whole catalog. What is compiled of unchanged tools is kept.
    pub(super) fn replaced(&self, everything: Vec<Change>, executors: &Executors) -> Self {
        let mut next = Self::default();
        for change in everything {
            if let Change::Tool(tool) = &change
                && let Some(earlier) = self.tools.get(&tool.id)
            {
                next.tools.insert_mut(tool.id, Arc::clone(earlier));
            }
            next.apply(change, executors);
        }
        next
    }

    pub(super) fn apply(&mut self, change: Change, executors: &Executors) {
        match change {
            Change::Bundle(bundle) => {
                self.bundles.insert_mut(bundle.id, Arc::new(bundle));
            }
            Change::BundleGone(id) => {
                self.bundles.remove_mut(&id);
            }
            Change::Tool(tool) => self.insert(*tool, executors),
            Change::ToolGone(id) => self.remove(id),
            Change::Unreadable(file) => {
                self.unreadable.insert_mut(file.path.clone(), Arc::new(file));
            }
            Change::UnreadableGone(path) => {
                self.unreadable.remove_mut(&path);
            }
        }
    }

    /// Resolves a reference: built-in, then user, then toolset, then MCP, and within a kind the tools of the tenant
    /// before global ones; without a version the most recently created one.
    pub fn resolve(&self, tenant: &TenantId, reference: &ToolRef) -> Result<&Arc<Entry>, ResolveError> {
        self.resolve_among(tenant, reference, |_| true)
    }

    /// Resolves the reference of a call. In production a published version takes precedence over a newer draft.
    pub fn resolve_in(
        &self,
        tenant: &TenantId,
        reference: &ToolRef,
        mode: Mode,
    ) -> Result<&Arc<Entry>, ResolveError> {
        if mode == Mode::Production {
            let published = self.resolve_among(tenant, reference, |entry| entry.tool.published.is_some());
            if !matches!(published, Err(ResolveError::NotFound { .. } | ResolveError::Unreadable { .. })) {
                return published;
            }
        }
        self.resolve(tenant, reference)
    }

    fn resolve_among(
        &self,
        tenant: &TenantId,
        reference: &ToolRef,
        accepts: impl Fn(&Entry) -> bool,
    ) -> Result<&Arc<Entry>, ResolveError> {
        let not_found =
            || ResolveError::NotFound { name: reference.to_string(), near: self.nearest(tenant, reference) };
        let (bundle, name, version) = match reference {
            ToolRef::Id(id) => return self.tool(tenant, *id).ok_or_else(not_found),
            ToolRef::Name { bundle, name, version } => (bundle, name, version),
        };
        let matching = || {
            self.names.get(name).into_iter().flat_map(|list| list.iter()).filter(|entry| {
                let tool = &entry.tool;
                tenant.sees(&tool.tenant)
                    && bundle.as_ref().is_none_or(|bundle| tool.bundle == *bundle)
                    && version.as_ref().is_none_or(|version| tool.spec.version == *version)
                    && accepts(entry)
            })
        };
        let precedence = |entry: &Entry| (entry.tool.source, entry.tool.tenant.is_global());
        let Some(first) = matching().map(|entry| precedence(entry)).min() else {
            let unreadable = |file: &Arc<UnreadableFile>| ResolveError::Unreadable {
                name: reference.to_string(),
                error: file.error.clone(),
            };
            return Err(self.unreadable_named(tenant, reference).map_or_else(not_found, unreadable));
        };
        let best = || matching().filter(|entry| precedence(entry) == first);
        let newest =
            best().max_by_key(|entry| (entry.tool.created_at, entry.tool.id)).ok_or_else(not_found)?;
        if best().any(|entry| entry.tool.bundle_id != newest.tool.bundle_id) {
            let mut candidates: Vec<_> = best().map(|entry| entry.qualified.to_string()).collect();
            candidates.sort();
            return Err(ResolveError::Ambiguous { name: name.to_string(), candidates });
        }
        Ok(newest)
    }

    /// Returns the name of the tool that a misspelled reference probably means.
    fn nearest(&self, tenant: &TenantId, reference: &ToolRef) -> Option<String> {
        let ToolRef::Name { name, .. } = reference else { return None };
        let length = name.as_str().len();
        let is_visible = |entry: &Arc<Entry>| tenant.sees(&entry.tool.tenant);
        let candidates = self
            .names
            .iter()
            .filter(|(known, list)| {
                known.as_str().len().abs_diff(length) <= MAX_LENGTH_DIFFERENCE
                    && *known != name
                    && list.iter().any(is_visible)
            })
            .take(MAX_COMPARED)
            .map(|(known, _)| known.as_str());
        nearest(name.as_str(), candidates).map(str::to_owned)
    }

    /// Returns the tool that keeps a bare name that several bundles share: the one that had it first, among all kinds of
    /// bundles or among those of the first kind. Another tool never takes over the name under which models know it.
    pub(super) fn first_named<'a>(
        &'a self,
        tenant: &TenantId,
        reference: &ToolRef,
        mode: Mode,
        naming: Naming,
    ) -> Option<&'a Arc<Entry>> {
        let ToolRef::Name { bundle: None, name, version: None } = reference else { return None };
        let all = self.names.get(name).into_iter().flat_map(|list| list.iter());
        let mut all: Vec<&Arc<Entry>> = all.filter(|entry| tenant.sees(&entry.tool.tenant)).collect();
        if mode == Mode::Production && all.iter().any(|entry| entry.tool.published.is_some()) {
            all.retain(|entry| entry.tool.published.is_some());
        }
        let first = all.iter().min_by_key(|entry| {
            let kind = (naming == Naming::ByKind).then_some(entry.tool.source);
            // In production a draft had no name yet: it gets one when it is first published.
            let published = entry.tool.published_at.filter(|_| mode == Mode::Production);
            let created = entry.tool.created_at;
            (kind, published.map_or(created, |published| published.max(created)), entry.tool.id)
        })?;
        let bundle = Some(first.tool.bundle.clone());
        self.resolve_in(tenant, &ToolRef::Name { bundle, name: name.clone(), version: None }, mode).ok()
    }

    /// Returns the unreadable file whose tool a reference names.
    pub fn unreadable_named(&self, tenant: &TenantId, reference: &ToolRef) -> Option<&Arc<UnreadableFile>> {
        let ToolRef::Name { bundle, name, .. } = reference else { return None };
        self.unreadable(tenant).find(|file| {
            file.name == name.as_str() && bundle.as_ref().is_none_or(|bundle| file.bundle == *bundle)
        })
    }
}

fn list_key(tool: &Tool) -> ListKey {
    let spec = &tool.spec;
    (spec.name.clone(), tool.bundle.clone(), spec.version.clone(), tool.id)
}

/// How many names are compared with an unknown one, and by how many bytes they may be longer or shorter.
const MAX_COMPARED: usize = 2000;
const MAX_LENGTH_DIFFERENCE: usize = 3;

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Why a reference resolves to no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such tool.
    #[error("tool `{name}` not found{}", did_you_mean(near.as_deref()))]
    NotFound {
        /// The reference.
        name: String,
        /// The tool with the most similar name, if any is similar enough.
        near: Option<String>,
    },
    /// Several tools have this name, and none takes precedence.
    #[error("`{name}` is ambiguous; use one of: {}", candidates.join(", "))]
    Ambiguous {
        /// The reference.
        name: String,
        /// The qualified names of the tools.
        candidates: Vec<String>,
    },
    /// The file of the tool cannot be read.
    #[error("`{name}` is not ready: {error}")]
    Unreadable {
        /// The reference.
        name: String,
        /// The file and what is wrong with it.
        error: String,
    },
}

impl From<ResolveError> for CallError {
    fn from(error: ResolveError) -> Self {
        let message = error.to_string();
        match error {
            ResolveError::NotFound { .. } => CallError::new(ErrorCode::NotFound, message),
            ResolveError::Ambiguous { candidates, .. } => CallError::new(ErrorCode::AmbiguousName, message)
                .with_details(json!({"candidates": candidates})),
            ResolveError::Unreadable { name, .. } => {
                CallError::new(ErrorCode::NotReady, message).for_model(format!("`{name}` is not ready"))
            }
        }
    }
}
