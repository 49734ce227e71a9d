//! Lists a folder.

use std::os::fd::{AsFd, OwnedFd};

use haft_core::Timestamp;
use haft_core::executor::CallContext;
use haft_core::outcome::Outcome;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};
use serde_json::{Value, json};

use super::beneath;
use super::error::FileError;
use super::roots::{Files, Root};
use super::work::run_blocking;
use super::write::is_temporary;

/// The maximum number of entries that are visited, listed or not.
const MAX_VISITED: usize = 20_000;

/// The maximum depth of a recursive listing.
const MAX_DEPTH: usize = 16;

/// The options of [`Files::list`].
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// The path, relative to the root; `.` is the root itself.
    pub path: String,
    /// Whether subfolders are listed too. Links are not followed.
    pub recursive: bool,
    /// The maximum number of entries; if there are more, the last one says so.
    pub max_entries: usize,
}

impl Files {
    /// Lists a folder of the workspace, or of the first root of the tenant, sorted by name.
    pub async fn list(&self, call: &CallContext, options: ListOptions) -> Outcome {
        let root = self.of_call(call, None)?;
        run_blocking(&self.permits, move || options.run(&root)).await
    }
}

impl ListOptions {
    fn run(&self, root: &Root) -> Result<Value, FileError> {
        let opened = root.open()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        beneath::check_path(&self.path)?;
        let folder = beneath::open(opened.as_fd(), &self.path, flags).map_err(|errno| match errno {
            rustix::io::Errno::NOTDIR => FileError::unusable(&self.path, "not_a_folder", "is not a folder"),
            other => FileError::of(&self.path, other),
        })?;
        let mut walk =
            Walk { recursive: self.recursive, left: MAX_VISITED, entries: Vec::new(), truncated: false };
        walk.folder(&self.path, &folder, "", MAX_DEPTH)?;
        let Walk { entries: mut found, mut truncated, .. } = walk;
        found.sort_by(|a, b| a.0.cmp(&b.0));
        truncated |= found.len() > self.max_entries;
        found.truncate(self.max_entries);
        let mut entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
        if truncated {
            entries.push(json!({ "name": "…", "kind": "more" }));
        }
        Ok(Value::Array(entries))
    }
}

/// A walk through folders with limits on entries and depth.
struct Walk {
    recursive: bool,
    left: usize,
    /// Names with their descriptions.
    entries: Vec<(String, Value)>,
    truncated: bool,
}

impl Walk {
    fn folder(&mut self, path: &str, folder: &OwnedFd, prefix: &str, deeper: usize) -> Result<(), FileError> {
        let failed = |errno| FileError::of(path, errno);
        for entry in Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if matches!(&*name, "." | "..") || is_temporary(&name) {
                continue;
            }
            if self.left == 0 {
                self.truncated = true;
                return Ok(());
            }
            self.left -= 1;
            // Entries that were removed meanwhile are skipped.
            let Ok(stat) = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let shown = format!("{prefix}{name}");
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            self.entries.push((shown.clone(), describe(&shown, &stat)));
            if !is_folder || !self.recursive {
                continue;
            }
            if deeper == 0 {
                self.truncated = true;
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            // An unreadable folder is listed without its content.
            if let Ok(inner) = beneath::open(folder.as_fd(), &name, flags) {
                self.folder(path, &inner, &format!("{shown}/"), deeper - 1)?;
            }
        }
        Ok(())
    }
}

fn describe(name: &str, stat: &Stat) -> Value {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        _ => "other",
    };
    let size = (kind == "file").then_some(stat.st_size);
    let modified = Timestamp::from_second(stat.st_mtime).ok().map(|time| time.to_string());
    json!({ "name": name, "kind": kind, "size": size, "modified": modified })
}
