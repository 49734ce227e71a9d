//! Bringing a set up to date with definition files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_core::Clock as _;
use haft_core::catalog::{Change, FileForm, UnreadableFile};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, join};
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_runtime::clock::SystemClock;
use haft_runtime::registry::Entry;

use crate::files::{self, FileState, Found, Walk};
use crate::report::{Fault, LoadError, LoadReport, Loaded};
use crate::set::{Member, Members, Origin, ToolSet};

impl ToolSet {
    /// Brings the set up to date with everything beneath a folder, which has to be there.
    pub(crate) fn load_folder(&self, folder: &Path) -> Result<LoadReport, LoadError> {
        Ok(self.follow(&true_folder(folder)?))
    }

    /// Brings the set up to date with everything beneath a folder, whose path is the true one; without the folder
    /// there is nothing beneath it.
    pub(crate) fn follow(&self, root: &Path) -> LoadReport {
        // Before the lock: nobody waits for a walk.
        let walk = Walk::beneath(root);
        let mut report = LoadReport::default();
        report.refused.extend(walk.closed.iter().chain(&walk.skipped).cloned());
        let mut update = Update { set: self, members: &mut self.members(), changes: Vec::new() };
        update.forget(root, &walk);
        update.take(&walk.files, &mut report);
        let served = update.members.files.iter().filter(|(path, _)| path.starts_with(root));
        let served: Vec<String> =
            served.filter_map(|(_, state)| state.tool.as_ref().map(ToString::to_string)).collect();
        update.apply();
        report.not_ready = self.faults_of(&served);
        report
    }

    /// Loads a text of the program.
    pub(crate) fn load_text(&self, form: FileForm, text: &str) -> Result<Loaded, Vec<Problem>> {
        let reading = files::read_text(text, form, &Defaults::default())?;
        let (name, warnings) = (reading.spec.name.to_string(), reading.warnings.clone());
        for warning in &warnings {
            tracing::warn!(tool = name, %warning, "doubtful definition");
        }
        self.add(reading)
            .map_err(|reason| vec![Problem::new("name", "duplicate", format!("`{name}`: {reason}"))])?;
        let snapshot = self.registry().snapshot();
        let entry = snapshot.unique(&self.bundle.tenant, &name);
        let place = |_: Option<&Path>, problems: &mut [Problem]| dialect::place(text, form, problems);
        let not_ready = entry.and_then(|entry| fault_of(entry, place));
        Ok(Loaded { name, warnings, not_ready })
    }

    /// Loads one file.
    pub(crate) fn load_file(&self, path: &Path) -> Result<Loaded, LoadError> {
        let file = files::found(path)?;
        let mut report = LoadReport::default();
        let mut update = Update { set: self, members: &mut self.members(), changes: Vec::new() };
        // Asked for by name, it is read even if it looks unchanged.
        if let Some(state) = update.members.files.get_mut(&file.path) {
            state.duplicate = true;
        }
        update.take(std::slice::from_ref(&file), &mut report);
        update.apply();
        if let Some(error) = report.refused.pop() {
            return Err(error);
        }
        let name = report.loaded.pop().unwrap_or_default();
        let warnings = report.warnings.pop().map(|warned| warned.problems).unwrap_or_default();
        let not_ready = self.faults_of(std::slice::from_ref(&name)).pop();
        Ok(Loaded { name, warnings, not_ready })
    }

    /// Says which of these tools cannot run.
    fn faults_of(&self, names: &[String]) -> Vec<Fault> {
        let snapshot = self.registry().snapshot();
        let entries = names.iter().filter_map(|name| snapshot.unique(&self.bundle.tenant, name));
        entries.filter_map(|entry| fault_of(entry, in_file)).collect()
    }

    /// Says which tools cannot run, and which files define none.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let snapshot = self.registry().snapshot();
        let entries = snapshot.tools(&self.bundle.tenant);
        let mut faults: Vec<Fault> = entries.filter_map(|entry| fault_of(entry, in_file)).collect();
        faults.extend(snapshot.unreadable(&self.bundle.tenant).map(|file| Fault {
            name: file.name.clone(),
            path: Some(PathBuf::from(&file.path)),
            reason: file.error.clone(),
        }));
        faults
    }
}

/// Adds the lines of a file to problems, where there is one.
fn in_file(path: Option<&Path>, problems: &mut [Problem]) {
    if let Some(path) = path {
        files::place(path, problems);
    }
}

/// Says why a tool cannot run, if so, and where in its definition the reason stands.
fn fault_of(entry: &Entry, place: impl Fn(Option<&Path>, &mut [Problem])) -> Option<Fault> {
    let reason = entry.fault()?;
    let path = entry.tool.path.as_ref().map(|path| Path::new("/").join(path));
    let mut problems = entry.problems();
    if problems.is_empty() {
        return Some(Fault { name: entry.tool.spec.name.to_string(), path, reason });
    }
    place(path.as_deref(), &mut problems);
    let reason = join(&problems);
    Some(Fault { name: entry.tool.spec.name.to_string(), path, reason })
}

pub(crate) fn true_folder(folder: &Path) -> Result<PathBuf, LoadError> {
    let refuse = |why: String| LoadError {
        path: Some(folder.to_owned()),
        problems: vec![Problem::new("", "unreadable", why)],
    };
    let root = folder.canonicalize().map_err(|error| refuse(format!("it cannot be opened: {error}")))?;
    if root.is_dir() { Ok(root) } else { Err(refuse("it is not a folder; load it as a file".to_owned())) }
}

/// A change of the set in the making, while nobody else changes it.
struct Update<'a> {
    set: &'a ToolSet,
    members: &'a mut Members,
    changes: Vec<Change>,
}

impl Update<'_> {
    /// Forgets the files beneath a folder that are gone; what cannot be looked at is not gone.
    fn forget(&mut self, root: &Path, walk: &Walk) {
        let there: BTreeSet<&Path> = walk.files.iter().map(|file| file.path.as_path()).collect();
        let closed = |path: &Path| {
            walk.closed
                .iter()
                .filter_map(|closed| closed.path.as_deref())
                .any(|closed| path.starts_with(closed))
        };
        let gone: Vec<PathBuf> =
            self.members.files.keys().filter(|path| path.starts_with(root)).cloned().collect();
        for path in gone.into_iter().filter(|path| !there.contains(path.as_path()) && !closed(path)) {
            if let Some(state) = self.members.files.remove(&path) {
                self.release(&path, state.tool.as_ref());
                self.changes.push(Change::UnreadableGone(path.to_string_lossy().into_owned()));
            }
        }
    }

    /// Reads what is new or changed, and enters all of it, in the order of the paths.
    fn take(&mut self, files: &[Found], report: &mut LoadReport) {
        let is_new = |members: &Members, file: &Found| {
            members.files.get(&file.path).is_none_or(|state| state.duplicate || state.stamp != file.stamp)
        };
        let mut readings: Vec<(&Found, Result<ParsedDefinition, Vec<Problem>>)> = Vec::new();
        for file in files {
            if is_new(self.members, file) {
                readings.push((file, files::read(file)));
            } else if let Some(problems) =
                self.members.files.get(&file.path).and_then(|state| state.fault.clone())
            {
                report.refused.push(LoadError { path: Some(file.path.clone()), problems });
            }
        }
        // Names that a file gave up are free before another one asks for them.
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

    fn enter(&mut self, file: &Found, reading: ParsedDefinition, report: &mut LoadReport) {
        let (name, origin) = (reading.spec.name.clone(), Origin::File(file.path.clone()));
        let earlier = self.members.tools.get(&name);
        if let Some(other) = earlier.filter(|member| member.origin != origin) {
            let message = format!("the name `{name}` is taken by {}; choose another", told(other));
            return self.refuse(file, vec![Problem::new("name", "duplicate", message)], true, report);
        }
        for warning in &reading.warnings {
            tracing::warn!(path = %file.path.display(), %warning, "doubtful definition");
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
        let state = FileState { stamp: file.stamp, tool: Some(name), fault: None, duplicate: false };
        self.members.files.insert(file.path.clone(), state);
    }

    /// Takes the tool of a broken file out of service; one that never was good is only told of.
    fn refuse(&mut self, file: &Found, problems: Vec<Problem>, duplicate: bool, report: &mut LoadReport) {
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
        report.refused.push(LoadError { path: Some(file.path.clone()), problems: problems.clone() });
        let state = FileState { stamp: file.stamp, tool, fault: Some(problems), duplicate };
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

    /// Takes out the tool of a file.
    fn release(&mut self, path: &Path, name: Option<&ToolName>) {
        let Some(name) = name.filter(|name| self.owns(path, name)) else { return };
        if let Some(member) = self.members.tools.remove(name) {
            self.changes.push(Change::ToolGone(member.tool.id));
        }
    }

    /// Tells whether a tool is the one of this file: the program may have taken it out, and its name.
    fn owns(&self, path: &Path, name: &ToolName) -> bool {
        let member = self.members.tools.get(name);
        member.is_some_and(|member| matches!(&member.origin, Origin::File(file) if file == path))
    }

    fn apply(self) {
        self.set.registry().apply_verified(self.changes);
    }
}

fn told(member: &Member) -> String {
    match &member.origin {
        Origin::Program if member.tool.built_in => "a built-in tool".to_owned(),
        Origin::Program => "a function of the program".to_owned(),
        Origin::Text => "a definition that the program gave as a text".to_owned(),
        Origin::File(path) => format!("`{}`", path.display()),
    }
}
