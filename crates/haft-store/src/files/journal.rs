//! The journal of a change of several definition files: what it replaces, so that a crash in its middle can be undone.
//!
//! It is complete on disk before the first file changes. Whether the change was committed is known to the database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::history;
use super::write::{self, FileMode, IfExists};

/// The name of the journal in the home folder.
const FILE: &str = ".apply-journal";
/// The largest file that a change of several files replaces.
const MAX_FILE: u64 = 8 << 20;

/// The state of files before a change.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileJournal {
    /// The id of the change.
    pub(crate) id: String,
    /// Folders that the change creates.
    folders: Vec<String>,
    files: Vec<SavedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedFile {
    /// Relative to the home folder.
    path: String,
    /// The content in base64 and the mode; `None` if there was no file.
    before: Option<(String, u32)>,
}

/// Returns the path of the journal.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// Writes the journal of a change that creates, replaces or removes these files.
pub(crate) fn write(home: &Path, id: &str, paths: &[String]) -> io::Result<()> {
    let mut journal = FileJournal { id: id.to_owned(), folders: Vec::new(), files: Vec::new() };
    for path in paths {
        if let Some((folder, _)) = path.rsplit_once('/')
            && !home.join(folder).exists()
            && !journal.folders.iter().any(|known| known == folder)
        {
            journal.folders.push(folder.to_owned());
        }
        journal.files.push(SavedFile { path: path.clone(), before: saved(&home.join(path))? });
    }
    let text = serde_json::to_vec(&journal).map_err(io::Error::other)?;
    write::write(&self::path(home), &text, IfExists::Replace, FileMode::Private)
}

fn saved(file: &Path) -> io::Result<Option<(String, u32)>> {
    let about = match fs::symlink_metadata(file) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !about.is_file() || about.len() > MAX_FILE {
        return Err(io::Error::other(format!("`{}` is not a definition file", file.display())));
    }
    let mode = match FileMode::of(&about) {
        FileMode::Like(mode) => mode,
        FileMode::New | FileMode::Private => 0o600,
    };
    Ok(Some((STANDARD.encode(fs::read(file)?), mode)))
}

/// Reads the journal, if there is one.
pub(crate) fn read(home: &Path) -> io::Result<Option<FileJournal>> {
    match fs::read(path(home)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl FileJournal {
    /// Restores the files as they were. What is there now is backed up.
    pub(crate) fn undo(&self, home: &Path, now: Timestamp) -> io::Result<()> {
        for SavedFile { path, before } in &self.files {
            let file = home.join(path);
            let current = match fs::read(&file) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let before = match before {
                Some((text, mode)) => Some((STANDARD.decode(text).map_err(io::Error::other)?, *mode)),
                None => None,
            };
            if current.as_ref() == before.as_ref().map(|(bytes, _)| bytes) {
                continue;
            }
            if let Some(bytes) = &current {
                history::save(home, path, bytes, now)?;
            }
            match before {
                Some((bytes, mode)) => {
                    file.parent().map_or(Ok(()), fs::create_dir_all)?;
                    write::write(&file, &bytes, IfExists::Replace, FileMode::Like(mode))?;
                }
                None => write::remove(&file)?,
            }
        }
        for folder in &self.folders {
            remove_new_folder(&home.join(folder))?;
        }
        Ok(())
    }
}

/// Removes a folder that the change created, with temporary files in it. One with other files stays.
fn remove_new_folder(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let file = entry?.path();
        if file.to_str().is_some_and(|path| path.ends_with(write::TEMP_SUFFIX)) {
            write::remove(&file)?;
        }
    }
    // It is not empty if somebody else has put a file there.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Removes the journal: its change is committed or undone.
pub(crate) fn remove(home: &Path) -> io::Result<()> {
    write::remove(&path(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_restores_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        history::create_folder(home.path()).unwrap();
        fs::create_dir_all(at("skills/a")).unwrap();
        fs::write(at("skills/a/kept.yaml"), "kept").unwrap();
        fs::write(at("skills/a/changed.yaml"), "old").unwrap();
        fs::write(at("skills/a/removed.yaml"), "removed").unwrap();
        let paths = ["a/kept", "a/changed", "a/removed", "a/new", "b/new"];
        let paths = paths.map(|path| format!("skills/{path}.yaml"));
        write(home.path(), "id", &paths).unwrap();
        fs::write(at("skills/a/changed.yaml"), "new").unwrap();
        fs::remove_file(at("skills/a/removed.yaml")).unwrap();
        fs::write(at("skills/a/new.yaml"), "new").unwrap();
        fs::write(at("skills/a/other.yaml"), "of somebody else").unwrap();
        fs::create_dir_all(at("skills/b")).unwrap();
        fs::write(at("skills/b/new.yaml"), "new").unwrap();
        fs::write(at(&format!("skills/b/.half{}", write::TEMP_SUFFIX)), "ne").unwrap();
        let journal = read(home.path()).unwrap().unwrap();
        // Twice: a crash may interrupt the recovery too.
        for _ in 0..2 {
            journal.undo(home.path(), "2026-08-01T10:00:00Z".parse().unwrap()).unwrap();
        }
        remove(home.path()).unwrap();
        assert!(read(home.path()).unwrap().is_none());
        let text = |path: &str| fs::read_to_string(at(path)).ok();
        assert_eq!(text("skills/a/kept.yaml").as_deref(), Some("kept"));
        assert_eq!(text("skills/a/changed.yaml").as_deref(), Some("old"));
        assert_eq!(text("skills/a/removed.yaml").as_deref(), Some("removed"));
        assert_eq!(text("skills/a/other.yaml").as_deref(), Some("of somebody else"));
        assert_eq!((text("skills/a/new.yaml"), at("skills/b").exists()), (None, false));
    }
}
