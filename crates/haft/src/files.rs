//! Definition files: which there are beneath a folder, and what they say. Bounded in every direction, as anyone may
//! have put them there.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use haft_core::catalog::FileForm;
use haft_core::name::ToolName;
use haft_core::problem::Problem;
use haft_definition::check;
use haft_definition::dialect::{self, Defaults, MAX_TEXT, ParsedDefinition};

use crate::report::LoadError;

/// How deep folders are looked into.
const MAX_DEPTH: usize = 16;
/// The most definition files beneath one folder.
const MAX_FILES: usize = 50_000;
/// The most names that are looked at beneath one folder, whatever they are.
const MAX_NAMES: usize = 500_000;

/// What is known of a file that was looked at.
pub(crate) struct FileState {
    pub(crate) stamp: Stamp,
    /// The tool that it defines, or defined before it was broken.
    pub(crate) tool: Option<ToolName>,
    /// What is wrong with it.
    pub(crate) fault: Option<Vec<Problem>>,
    /// Whether another tool alone stands in its way, which may go.
    pub(crate) duplicate: bool,
}

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            place: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A definition file.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) form: FileForm,
    pub(crate) stamp: Stamp,
}

/// What is beneath a folder, in the order of the paths.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) files: Vec<Found>,
    /// What cannot be looked at: of what is beneath it, nothing is known.
    pub(crate) closed: Vec<LoadError>,
    /// What is there and is never read.
    pub(crate) skipped: Vec<LoadError>,
    names: usize,
}

impl Walk {
    /// Looks at everything beneath a folder, whose path is the true one. Links to folders are not followed, so that
    /// no loop of them has an end to look for.
    pub(crate) fn beneath(root: &Path) -> Self {
        let mut walk = Self::default();
        walk.folder(root, root, 0);
        walk.files.sort_by(|a, b| a.path.cmp(&b.path));
        walk
    }

    fn folder(&mut self, root: &Path, folder: &Path, depth: usize) {
        if depth > MAX_DEPTH {
            let message = format!("it is more than {MAX_DEPTH} folders deep; move it up");
            return self.closed.push(fault(folder, "too_deep", message));
        }
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                let message = format!("the folder cannot be listed: {error}");
                return self.closed.push(fault(folder, "unreadable", message));
            }
        };
        for entry in listed.filter_map(Result::ok) {
            self.names += 1;
            if self.files.len() >= MAX_FILES || self.names > MAX_NAMES {
                let message = format!("there are more than {MAX_FILES} definitions; load them in parts");
                if self.closed.iter().all(|closed| closed.path.as_deref() != Some(root)) {
                    self.closed.push(fault(root, "too_many", message));
                }
                return;
            }
            let path = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.folder(root, &path, depth + 1),
                Ok(kind) if kind.is_symlink() => self.link(root, path, name),
                Ok(_) => self.file(path, name),
                Err(_) => {}
            }
        }
    }

    fn file(&mut self, path: PathBuf, name: &str) {
        // What vanishes meanwhile is not there.
        if let (Some(form), Ok(metadata)) = (form_of(name), fs::metadata(&path)) {
            self.files.push(Found { path, form, stamp: Stamp::of(&metadata) });
        }
    }

    /// A link to a file of the same folder that is not found by itself is as good as the file: some ways to mount a
    /// folder are made of them.
    fn link(&mut self, root: &Path, path: PathBuf, name: &str) {
        let target = path.canonicalize();
        match &target {
            Ok(target) if target.is_dir() => {
                let message =
                    "it is a symbolic link to a folder, which is not followed; load that folder itself";
                self.skipped.push(fault(&path, "link", message));
            }
            _ if form_of(name).is_none() => {}
            Ok(target) if is_found_itself(root, target) => {}
            Ok(target) if target.starts_with(root) => self.file(path, name),
            Ok(_) => {
                let message = "it is a symbolic link out of the folder; put the file itself here";
                self.skipped.push(fault(&path, "link", message));
            }
            Err(error) => {
                let message = format!("it is a symbolic link that leads nowhere: {error}");
                self.skipped.push(fault(&path, "link", message));
            }
        }
    }
}

/// Looks at one file.
pub(crate) fn found(path: &Path) -> Result<Found, LoadError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let form = form_of(name).ok_or_else(|| {
        let message = "its name says no form; definitions end in `.skill`, `.yaml`, `.yml` or `.json`";
        fault(path, "unknown_form", message)
    })?;
    let unreadable = |error: std::io::Error| fault(path, "unreadable", format!("it cannot be read: {error}"));
    let path = true_path(path, name).map_err(unreadable)?;
    let stamp = Stamp::of(&fs::metadata(&path).map_err(unreadable)?);
    Ok(Found { path, form, stamp })
}

/// Returns the path that a file has where its folder is loaded.
fn true_path(path: &Path, name: &str) -> std::io::Result<PathBuf> {
    let target = path.canonicalize()?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
        _ => Path::new(".").canonicalize()?,
    };
    let is_hidden = target.starts_with(&folder) && !is_found_itself(&folder, &target);
    Ok(if is_hidden { folder.join(name) } else { target })
}

/// Tells whether a file is found beneath a folder without a link.
fn is_found_itself(root: &Path, file: &Path) -> bool {
    let Ok(below) = file.strip_prefix(root) else { return false };
    let mut names = below.components().map(|part| part.as_os_str().to_string_lossy());
    below.file_name().and_then(|name| name.to_str()).is_some_and(|name| form_of(name).is_some())
        && !names.any(|name| name.starts_with('.'))
}

/// Returns the form that a file's name promises; `None` for what is none of ours, such as what editors leave about.
fn form_of(name: &str) -> Option<FileForm> {
    let hidden = name.starts_with(['.', '#']) || name.ends_with(['~', '#']);
    if hidden || matches!(name, "bundle.yaml" | "toolset.yaml") {
        return None;
    }
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() { None } else { dialect::form_of_extension(extension) }
}

/// Reads a definition; says everything that is wrong with it.
pub(crate) fn read(file: &Found) -> Result<ParsedDefinition, Vec<Problem>> {
    let text = text(&file.path).map_err(|(code, message)| vec![Problem::new("", code, message)])?;
    let stem = file.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (name, version) = match stem.split_once('@') {
        Some((name, version)) => (name, Some(version.to_owned())),
        None => (stem, None),
    };
    read_text(&text, file.form, &Defaults { name: Some(name.to_owned()), version })
}

/// Reads a definition of a text; says everything that is wrong with it, each fault at its line.
pub(crate) fn read_text(
    text: &str,
    form: FileForm,
    defaults: &Defaults,
) -> Result<ParsedDefinition, Vec<Problem>> {
    let mut reading = dialect::read(text, form, defaults)?;
    let check::CheckReport { errors: mut faults, warnings } = check::definition(&reading.spec);
    if faults.is_empty() {
        let mut doubts = warnings;
        if !doubts.is_empty() {
            dialect::locate(text, form, &mut doubts);
            reading.warnings.extend(doubts);
        }
        return Ok(reading);
    }
    dialect::locate(text, form, &mut faults);
    Err(faults)
}

/// Adds to problems the lines of the file that defines the tool, as far as they can be told.
pub(crate) fn place(path: &Path, problems: &mut [Problem]) {
    let form = path.file_name().and_then(|name| name.to_str()).and_then(form_of);
    if let (Some(form), Ok(text)) = (form, text(path)) {
        dialect::locate(&text, form, problems);
    }
}

/// Reads a regular file, never waiting for a pipe.
fn text(path: &Path) -> Result<String, (&'static str, String)> {
    let unreadable = |error: std::io::Error| ("unreadable", format!("it cannot be read: {error}"));
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path);
    let file = file.map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(("unreadable", "it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default().min(MAX_TEXT) + 1);
    (&file).take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_TEXT {
        let most = MAX_TEXT / 1024;
        return Err((
            "too_large",
            format!("it is larger than {most} KiB, the most that a definition may have"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        ("not_utf8", format!("line {line}: it is not valid UTF-8"))
    })
}

fn fault(path: &Path, code: &str, message: impl Into<String>) -> LoadError {
    LoadError { path: Some(path.to_owned()), problems: vec![Problem::new("", code, message)] }
}
