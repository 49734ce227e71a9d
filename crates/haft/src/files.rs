//! Finds and reads the definition files in a folder tree. Depth and number are limited, as anyone may have put files
//! there.

use std::fs;
use std::path::{Path, PathBuf};

use haft_core::catalog::FileForm;
use haft_core::name::ToolName;
use haft_core::problem::Problem;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use haft_definition::folder::{
    FileStamp, ReadError, SymbolicLinks, file_form, name_and_version, read_definition, read_text,
};

use crate::report::LoadError;

/// The deepest folder that is searched.
const MAX_DEPTH: usize = 16;
/// The largest number of definition files in one folder tree.
const MAX_FILES: usize = 50_000;
/// The largest number of directory entries in one folder tree.
const MAX_ENTRIES: usize = 500_000;

/// The state of a file when it was last loaded.
pub(crate) struct FileState {
    pub(crate) stamp: FileStamp,
    /// The tool that it defines, or defined before it became invalid.
    pub(crate) tool: Option<ToolName>,
    /// Its problems.
    pub(crate) fault: Option<Vec<Problem>>,
    /// Whether its only problem is that its name is taken, which may change.
    pub(crate) duplicate: bool,
}

/// A definition file.
pub(crate) struct DefinitionFile {
    pub(crate) path: PathBuf,
    pub(crate) form: FileForm,
    pub(crate) stamp: FileStamp,
}

/// The files of a folder tree, sorted by path.
#[derive(Default)]
pub(crate) struct FolderScan {
    pub(crate) files: Vec<DefinitionFile>,
    /// Folders that could not be listed; the files in them are unknown.
    pub(crate) unlisted: Vec<LoadError>,
    /// Files and folders that are not read.
    pub(crate) skipped: Vec<LoadError>,
    entries: usize,
}

impl FolderScan {
    /// Scans a folder tree; `root` has to be canonical. Links to folders are not followed, which avoids loops.
    pub(crate) fn of(root: &Path) -> Self {
        let mut scan = Self::default();
        scan.folder(root, root, 0);
        scan.files.sort_by(|a, b| a.path.cmp(&b.path));
        scan
    }

    fn folder(&mut self, root: &Path, folder: &Path, depth: usize) {
        if depth > MAX_DEPTH {
            let message = format!("the folder is nested more than {MAX_DEPTH} levels deep; move it up");
            return self.unlisted.push(fault(folder, "too_deep", message));
        }
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                let message = format!("cannot list the folder: {error}");
                return self.unlisted.push(fault(folder, "unreadable", message));
            }
        };
        for entry in listed.filter_map(Result::ok) {
            self.entries += 1;
            if self.files.len() >= MAX_FILES || self.entries > MAX_ENTRIES {
                let message = format!(
                    "the folder holds more than {MAX_FILES} definition files or {MAX_ENTRIES} entries; load subfolders separately"
                );
                if self.unlisted.iter().all(|error| error.path.as_deref() != Some(root)) {
                    self.unlisted.push(fault(root, "too_many", message));
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
        // A file that vanishes meanwhile is ignored.
        if let (Some(form), Ok(metadata)) = (file_form(name), fs::metadata(&path)) {
            self.files.push(DefinitionFile { path, form, stamp: FileStamp::of(&metadata) });
        }
    }

    /// Reads a link to a file of the same tree that the scan does not find otherwise: Kubernetes mounts configuration
    /// that way.
    fn link(&mut self, root: &Path, path: PathBuf, name: &str) {
        let target = path.canonicalize();
        match &target {
            Ok(target) if target.is_dir() => {
                let message = "symbolic links to folders are not followed; load the target folder itself";
                self.skipped.push(fault(&path, "link", message));
            }
            _ if file_form(name).is_none() => {}
            Ok(target) if is_scanned_directly(root, target) => {}
            Ok(target) if target.starts_with(root) => self.file(path, name),
            Ok(_) => {
                let message = "the symbolic link leads out of the folder; replace it by the file";
                self.skipped.push(fault(&path, "link", message));
            }
            Err(error) => {
                let message = format!("cannot resolve the symbolic link: {error}");
                self.skipped.push(fault(&path, "link", message));
            }
        }
    }
}

/// Returns one file by its path.
pub(crate) fn definition_file(path: &Path) -> Result<DefinitionFile, LoadError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let form = file_form(name).ok_or_else(|| {
        let message = "unknown file type; expected `.skill`, `.yaml`, `.yml` or `.json`";
        fault(path, "unknown_form", message)
    })?;
    let unreadable =
        |error: std::io::Error| fault(path, "unreadable", format!("cannot read the file: {error}"));
    let path = scanned_path(path, name).map_err(unreadable)?;
    let stamp = FileStamp::of(&fs::metadata(&path).map_err(unreadable)?);
    Ok(DefinitionFile { path, form, stamp })
}

/// Returns the path that a scan of its folder would report for a file.
fn scanned_path(path: &Path, name: &str) -> std::io::Result<PathBuf> {
    let target = path.canonicalize()?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
        _ => Path::new(".").canonicalize()?,
    };
    let is_hidden = target.starts_with(&folder) && !is_scanned_directly(&folder, &target);
    Ok(if is_hidden { folder.join(name) } else { target })
}

/// Tells whether a scan finds a file without following a link.
fn is_scanned_directly(root: &Path, file: &Path) -> bool {
    let Ok(below) = file.strip_prefix(root) else { return false };
    let mut names = below.components().map(|part| part.as_os_str().to_string_lossy());
    below.file_name().and_then(|name| name.to_str()).is_some_and(|name| file_form(name).is_some())
        && !names.any(|name| name.starts_with('.'))
}

/// Reads a definition file, and reports all its problems.
pub(crate) fn read(file: &DefinitionFile) -> Result<ParsedDefinition, Vec<Problem>> {
    let text = text(&file.path).map_err(|(code, message)| vec![Problem::new("", code, message)])?;
    let file_name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (name, version) = name_and_version(file_name);
    let defaults = Defaults { name: Some(name.to_owned()), version: version.map(str::to_owned) };
    read_definition(&text, file.form, &defaults)
}

/// Adds line numbers to the problems of a definition file, where they are known.
pub(crate) fn place(path: &Path, problems: &mut [Problem]) {
    let form = path.file_name().and_then(|name| name.to_str()).and_then(file_form);
    if let (Some(form), Ok(text)) = (form, text(path)) {
        dialect::locate(&text, form, problems);
    }
}

fn text(path: &Path) -> Result<String, (&'static str, String)> {
    match read_text(path, SymbolicLinks::Follow) {
        Ok((text, _)) => Ok(text),
        Err(ReadError::NotFound) => Err(("unreadable", "the file does not exist".to_owned())),
        Err(ReadError::Unreadable { code, message }) => Err((code, message)),
    }
}

fn fault(path: &Path, code: &str, message: impl Into<String>) -> LoadError {
    LoadError { path: Some(path.to_owned()), problems: vec![Problem::new("", code, message)] }
}
