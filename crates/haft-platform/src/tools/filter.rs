//! The filter of a list of tools.

use haft_core::catalog::UnreadableFile;
use haft_core::implementation::Kind;
use haft_core::tool::{Source, Status, ToolType};
use haft_runtime::registry::{Entry, Snapshot};

use crate::viewer::Viewer;

/// The filter of a list of tools.
pub struct ToolFilter {
    pub sources: &'static [Source],
    pub runtime: Option<&'static str>,
    pub status: Option<Status>,
    pub kind: Option<Kind>,
    pub tool_type: Option<ToolType>,
    pub tags: Vec<String>,
    pub bundles: Vec<String>,
    pub include_disabled: bool,
    pub include_copies: bool,
    /// A part of the name, the description or a tag, in lower case.
    pub text: Option<String>,
}

impl ToolFilter {
    /// Returns the tools and unreadable files that a viewer sees, by name; built-in tools are last.
    pub fn items<'a>(&self, snapshot: &'a Snapshot, viewer: &'a Viewer) -> Vec<ListItem<'a>> {
        let tenant = &viewer.principal().tenant;
        let tools = snapshot.tools(tenant).filter(|entry| {
            self.matches(snapshot, entry) && viewer.lists(snapshot, entry, self.include_disabled)
        });
        let (built_in, mut items): (Vec<_>, Vec<_>) =
            tools.map(|entry| ListItem::Tool(entry)).partition(ListItem::is_built_in);
        // A file that cannot be read cannot be called either.
        let lists_files = !viewer.is_restricted();
        let files = snapshot.unreadable(tenant).filter(|file| lists_files && self.matches_file(file));
        items.extend(files.map(|file| ListItem::File(file)));
        if matches!(items.last(), Some(ListItem::File(_))) {
            items.sort_by_cached_key(ListItem::key);
        }
        items.extend(built_in);
        items
    }

    /// Returns whether a tool passes.
    pub fn matches(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        let (tool, spec) = (&entry.tool, &entry.tool.spec);
        let is_enabled = || tool.enabled && snapshot.is_bundle_enabled(entry);
        self.sources.contains(&tool.source)
            && self.runtime.is_none_or(|runtime| spec.implementation.runtime() == Some(runtime))
            && self.status.is_none_or(|status| tool.status == status)
            && self.kind.is_none_or(|kind| tool.kind() == kind)
            && self.tool_type.is_none_or(|tool_type| tool.tool_type() == tool_type)
            && (self.tags.is_empty() || spec.tags.iter().any(|tag| self.tags.contains(tag)))
            && (self.bundles.is_empty() || self.in_bundles(tool.bundle.as_str(), &tool.bundle_id.to_string()))
            && (self.include_disabled || is_enabled())
            && (self.include_copies || !tool.is_built_in_copy())
            && self.text.as_deref().is_none_or(|text| {
                [spec.name.as_str(), &spec.display_name, &spec.description]
                    .into_iter()
                    .chain(spec.tags.iter().map(String::as_str))
                    .any(|field| field.to_lowercase().contains(text))
            })
    }

    fn in_bundles(&self, slug: &str, id: &str) -> bool {
        self.bundles.iter().any(|bundle| bundle == slug || bundle == id)
    }

    /// An unreadable file has no kind, status or tags, so such filters exclude it.
    fn matches_file(&self, file: &UnreadableFile) -> bool {
        self.sources.contains(&Source::User)
            && self.runtime.is_none()
            && self.status.is_none()
            && self.kind.is_none()
            && self.tool_type.is_none()
            && self.tags.is_empty()
            && (self.bundles.is_empty() || self.in_bundles(file.bundle.as_str(), ""))
            && self.text.as_deref().is_none_or(|text| file.name.to_lowercase().contains(text))
    }
}

/// A row of a list of tools.
pub enum ListItem<'a> {
    Tool(&'a Entry),
    File(&'a UnreadableFile),
}

impl ListItem<'_> {
    fn is_built_in(&self) -> bool {
        matches!(self, ListItem::Tool(entry) if entry.tool.source == Source::BuiltIn)
    }

    /// Returns the sort key; names do not contain the separator.
    pub fn key(&self) -> String {
        format!("{}\0{}", u8::from(self.is_built_in()), self.name_key())
    }

    /// Returns the sort key in the order of the registry.
    fn name_key(&self) -> String {
        match self {
            ListItem::Tool(entry) => {
                let (tool, spec) = (&entry.tool, &entry.tool.spec);
                format!("{}\0{}\0{}\0{}", spec.name, tool.bundle, spec.version, tool.id)
            }
            ListItem::File(file) => format!("{}\0{}\0\0{}", file.name, file.bundle, file.path),
        }
    }

    /// Returns whether it can run.
    pub fn ready(&self) -> bool {
        matches!(self, ListItem::Tool(entry) if entry.ready())
    }
}
