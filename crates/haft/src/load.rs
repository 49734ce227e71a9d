//! Loading definition files into a tool set.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_core::Clock as _;
use haft_core::catalog::{Change, FileForm, UnreadableFile};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, join};
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_definition::folder::read_definition;
use haft_runtime::clock::SystemClock;
use haft_runtime::registry::Entry;

use crate::files::{self, DefinitionFile, FileState, FolderScan};
use crate::report::{LoadError, LoadReport, Loaded, NotReady};
use crate::set::{Member, Members, Origin, ToolSet};

impl ToolSet {
    /// Loads a folder tree, which has to exist.
    pub(crate) fn load_folder(&self, folder: &Path) -> Result<LoadReport, LoadError> {
        Ok(self.sync_folder(&canonical_folder(folder)?))
    }

    /// Loads the changes in a folder tree; `root` has to be canonical. If it does not exist, its tools are removed.
    pub(crate) fn sync_folder(&self, root: &Path) -> LoadReport {
        // Scanned before the lock is acquired, so that no other task waits for it.
        let scan = FolderScan::of(root);
        let mut report = LoadReport::default();
        report.failed.extend(scan.unlisted.iter().chain(&scan.skipped).cloned());
        let mut update = Update { set: self, members: &mut self.members(), changes: Vec::new() };
        update.remove_missing(root, &scan);
        update.load(&scan.files, &mut report);
        let served = update.members.files.iter().filter(|(path, _)| path.starts_with(root));
        let served: Vec<String> =
            served.filter_map(|(_, state)| state.tool.as_ref().map(ToString::to_string)).collect();
        update.apply();
        report.not_ready = self.not_ready_of(&served);
        report
    }

    /// Loads a definition from a text.
    pub(crate) fn load_text(&self, form: FileForm, text: &str) -> Result<Loaded, Vec<Problem>> {
        let reading = read_definition(text, form, &Defaults::default())?;
        let (name, warnings) = (reading.spec.name.to_string(), reading.warnings.clone());
        for warning in &warnings {
            tracing::warn!(tool = name, %warning, "definition warning");
        }
        self.add(reading)
            .map_err(|reason| vec![Problem::new("name", "duplicate", format!("`{name}`: {reason}"))])?;
        let snapshot = self.registry().snapshot();
        let entry = snapshot.unique(&self.bundle.tenant, &name);
        let place = |_: Option<&Path>, problems: &mut [Problem]| dialect::locate(text, form, problems);
        let not_ready = entry.and_then(|entry| not_ready_reason(entry, place));
        Ok(Loaded { name, warnings, not_ready })
    }

    /// Loads one file.
    pub(crate) fn load_file(&self, path: &Path) -> Result<Loaded, LoadError> {
        let file = files::definition_file(path)?;
        let mut report = LoadReport::default();
        let mut update = Update { set: self, members: &mut self.members(), changes: Vec::new() };
        // A file that the caller names is read even if it looks unchanged.
        if let Some(state) = update.members.files.get_mut(&file.path) {
            state.duplicate = true;
        }
        update.load(std::slice::from_ref(&file), &mut report);
        update.apply();
        if let Some(error) = report.failed.pop() {
            return Err(error);
        }
        let name = report.loaded.pop().unwrap_or_default();
        let warnings = report.warnings.pop().map(|warned| warned.problems).unwrap_or_default();
        let not_ready = self.not_ready_of(std::slice::from_ref(&name)).pop();
        Ok(Loaded { name, warnings, not_ready })
    }

    /// Returns which of these tools cannot run.
    fn not_ready_of(&self, names: &[String]) -> Vec<NotReady> {
        let snapshot = self.registry().snapshot();
        let entries = names.iter().filter_map(|name| snapshot.unique(&self.bundle.tenant, name));
        entries.filter_map(|entry| not_ready_reason(entry, in_file)).collect()
    }

    /// Returns the tools that cannot run and the files that define no tool.
    pub(crate) fn not_ready(&self) -> Vec<NotReady> {
        let snapshot = self.registry().snapshot();
        let entries = snapshot.tools(&self.bundle.tenant);
        let mut faults: Vec<NotReady> =
            entries.filter_map(|entry| not_ready_reason(entry, in_file)).collect();
        faults.extend(snapshot.unreadable(&self.bundle.tenant).map(|file| NotReady {
            name: file.name.clone(),
            path: Some(PathBuf::from(&file.path)),
            reason: file.error.clone(),
        }));
        faults
    }
}

/// Adds line numbers to problems, if there is a file.
fn in_file(path: Option<&Path>, problems: &mut [Problem]) {
    if let Some(path) = path {
        files::place(path, problems);
    }
}

/// Returns why a tool cannot run, with the line in its definition where it is known.
fn not_ready_reason(entry: &Entry, place: impl Fn(Option<&Path>, &mut [Problem])) -> Option<NotReady> {
    let reason = entry.fault()?;
    let path = entry.tool.path.as_ref().map(|path| Path::new("/").join(path));
    let mut problems = entry.problems();
    if problems.is_empty() {
        return Some(NotReady { name: entry.tool.spec.name.to_string(), path, reason });
    }
    place(path.as_deref(), &mut problems);
    let reason = join(&problems);
    Some(NotReady { name: entry.tool.spec.name.to_string(), path, reason })
}

pub(crate) fn canonical_folder(folder: &Path) -> Result<PathBuf, LoadError> {
    let refuse = |why: String| LoadError {
        path: Some(folder.to_owned()),
        problems: vec![Problem::new("", "unreadable", why)],
    };
    let root = folder.canonicalize().map_err(|error| refuse(format!("cannot open the folder: {error}")))?;
    if root.is_dir() { Ok(root) } else { Err(refuse("not a folder; load it as a file".to_owned())) }
}

/// A change in progress; the set is locked until it is applied.
struct Update<'a> {
    set: &'a ToolSet,
    members: &'a mut Members,
    changes: Vec<Change>,
}

impl Update<'_> {
    /// Removes the tools of files that no longer exist; files in unlisted folders stay.
    fn remove_missing(&mut self, root: &Path, scan: &FolderScan) {
        let there: BTreeSet<&Path> = scan.files.iter().map(|file| file.path.as_path()).collect();
        let unlisted = |path: &Path| {
            let mut folders = scan.unlisted.iter().filter_map(|error| error.path.as_deref());
            folders.any(|folder| path.starts_with(folder))
        };
        let gone: Vec<PathBuf> =
            self.members.files.keys().filter(|path| path.starts_with(root)).cloned().collect();
        for path in gone.into_iter().filter(|path| !there.contains(path.as_path()) && !unlisted(path)) {
            if let Some(state) = self.members.files.remove(&path) {
                self.release(&path, state.tool.as_ref());
                self.changes.push(Change::UnreadableGone(path.to_string_lossy().into_owned()));
            }
        }
    }

    /// Reads new and changed files and adds their tools, in the order of the paths.
    fn load(&mut self, files: &[DefinitionFile], report: &mut LoadReport) {
        let is_new = |members: &Members, file: &DefinitionFile| {
            members.files.get(&file.path).is_none_or(|state| state.duplicate || state.stamp != file.stamp)
        };
        let mut readings: Vec<(&DefinitionFile, Result<ParsedDefinition, Vec<Problem>>)> = Vec::new();
        for file in files {
            if is_new(self.members, file) {
                readings.push((file, files::read(file)));
            } else if let Some(problems) =
                self.members.files.get(&file.path).and_then(|state| state.fault.clone())
            {
                report.failed.push(LoadError { path: Some(file.path.clone()), problems });
            }
        }
        // Names that a file no longer uses are released before another file claims them.
        for (file, reading) in &readings {
            let before = self.members.files.get(&file.path).and_then(|state| state.tool.clone());
            if let (Ok(reading), Some(before)) = (reading, before)
                && reading.spec.name != before
            {
                self.release(&file.path, Some(&before));
            }
        }
        for (file, reading) in readings {
            match reading {
                Ok(reading) => self.enter(file, reading, report),
                Err(problems) => self.refuse(file, problems, false, report),
            }
        }
    }

    fn enter(&mut self, file: &DefinitionFile, reading: ParsedDefinition, report: &mut LoadReport) {
        let (name, origin) = (reading.spec.name.clone(), Origin::File(file.path.clone()));
        let earlier = self.members.tools.get(&name);
        if let Some(other) = earlier.filter(|member| member.origin != origin) {
            let message =
                format!("the name `{name}` is already used by {}; choose another", describe_origin(other));
            return self.refuse(file, vec![Problem::new("name", "duplicate", message)], true, report);
        }
        for warning in &reading.warnings {
            tracing::warn!(path = %file.path.display(), %warning, "definition warning");
        }
        if !reading.warnings.is_empty() {
            let problems = reading.warnings.clone();
            report.warnings.push(LoadError { path: Some(file.path.clone()), problems });
        }
        let path = file.path.to_string_lossy().trim_start_matches('/').to_owned();
        let mut tool = self.set.tool_of(reading, Some(path));
        if let Some(earlier) = earlier {
            let revision = earlier.tool.revision + 1;
            tool.id = earlier.tool.id;
            tool.created_at = earlier.tool.created_at;
            tool.revision = revision;
            tool.published = Some((revision, Arc::clone(&tool.spec)));
        }
        report.loaded.push(name.to_string());
        self.changes.push(self.members.insert(tool, origin));
        self.changes.push(Change::UnreadableGone(file.path.to_string_lossy().into_owned()));
        let state = FileState { stamp: file.stamp.clone(), tool: Some(name), fault: None, duplicate: false };
        self.members.files.insert(file.path.clone(), state);
    }

    /// Disables the tool of an invalid file; a file that never was valid is only reported.
    fn refuse(
        &mut self,
        file: &DefinitionFile,
        problems: Vec<Problem>,
        duplicate: bool,
        report: &mut LoadReport,
    ) {
        let error = format!("{}: {}", file.path.display(), join(&problems));
        let tool = self.members.files.remove(&file.path).and_then(|state| state.tool);
        let tool = tool.filter(|name| self.owns(&file.path, name));
        match tool.as_ref().and_then(|name| self.members.tools.get_mut(name)) {
            Some(member) => {
                member.tool.fault = Some(error);
                self.changes.push(Change::Tool(Box::new(member.tool.clone())));
            }
            None => self.changes.push(Change::Unreadable(self.unreadable(&file.path, error))),
        }
        report.failed.push(LoadError { path: Some(file.path.clone()), problems: problems.clone() });
        let state = FileState { stamp: file.stamp.clone(), tool, fault: Some(problems), duplicate };
        self.members.files.insert(file.path.clone(), state);
    }

    fn unreadable(&self, path: &Path, error: String) -> UnreadableFile {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        UnreadableFile {
            path: path.to_string_lossy().into_owned(),
            bundle: self.set.bundle.slug.clone(),
            tenant: self.set.bundle.tenant.clone(),
            name: stem.split('@').next().unwrap_or_default().to_owned(),
            error,
            modified_at: SystemClock.now(),
        }
    }

    /// Removes the tool of a file.
    fn release(&mut self, path: &Path, name: Option<&ToolName>) {
        let Some(name) = name.filter(|name| self.owns(path, name)) else { return };
        if let Some(member) = self.members.tools.remove(name) {
            self.changes.push(Change::ToolGone(member.tool.id));
        }
    }

    /// Tells whether a tool comes from this file: the program may have replaced it.
    fn owns(&self, path: &Path, name: &ToolName) -> bool {
        let member = self.members.tools.get(name);
        member.is_some_and(|member| matches!(&member.origin, Origin::File(file) if file == path))
    }

    fn apply(self) {
        self.set.registry().apply_verified(self.changes);
    }
}

fn describe_origin(member: &Member) -> String {
    match &member.origin {
        Origin::Program if member.tool.built_in => "a built-in tool".to_owned(),
        Origin::Program => "a function of the program".to_owned(),
        Origin::Text => "a definition loaded from a text".to_owned(),
        Origin::File(path) => format!("`{}`", path.display()),
    }
}
