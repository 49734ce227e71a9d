//! What is in a folder.

use std::os::fd::{AsFd, OwnedFd};

use haft_core::Timestamp;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};
use serde_json::{Value, json};

use super::beneath;
use super::error::FileError;
use super::roots::{Files, Root};
use super::work::in_place;

/// How many entries are looked at, whether they are listed or not.
const MAX_SEEN: usize = 20_000;

/// How deep a listing goes.
const MAX_DEPTH: usize = 16;

/// Which folder to list.
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// The path, relative to the root; `.` is the root itself.
    pub path: String,
    /// Whether folders within it are listed too. Links are never followed.
    pub recursive: bool,
    /// The most entries; where there are more, the last one says so.
    pub most: usize,
}

impl Files {
    /// Lists a folder of the first root, sorted by name.
    pub async fn list(&self, listing: ListOptions) -> Outcome {
        let root = self.find(None).cloned();
        let root = root.map_err(|problem| CallError::new(ErrorCode::NotReady, problem.to_string()))?;
        in_place(&self.places, move || listing.run(&root)).await
    }
}

impl ListOptions {
    fn run(&self, root: &Root) -> Result<Value, FileError> {
        let opened = root.open()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        beneath::check_path(&self.path)?;
        let folder = beneath::open(opened.as_fd(), &self.path, flags).map_err(|errno| match errno {
            rustix::io::Errno::NOTDIR => FileError::unfit(&self.path, "not_a_folder", "is not a folder"),
            other => FileError::of(&self.path, other),
        })?;
        let mut walk = Walk { recursive: self.recursive, left: MAX_SEEN, found: Vec::new(), cut: false };
        walk.folder(&self.path, &folder, "", MAX_DEPTH)?;
        let Walk { mut found, mut cut, .. } = walk;
        found.sort_by(|a, b| a.0.cmp(&b.0));
        cut |= found.len() > self.most;
        found.truncate(self.most);
        let mut entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
        if cut {
            entries.push(json!({ "name": "…", "kind": "more" }));
        }
        Ok(Value::Array(entries))
    }
}

/// A walk through folders, bounded in entries and depth.
struct Walk {
    recursive: bool,
    left: usize,
    /// Names with what is told of them.
    found: Vec<(String, Value)>,
    cut: bool,
}

impl Walk {
    fn folder(&mut self, path: &str, folder: &OwnedFd, prefix: &str, deeper: usize) -> Result<(), FileError> {
        let failed = |errno| FileError::of(path, errno);
        for entry in Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if matches!(&*name, "." | "..") {
                continue;
            }
            if self.left == 0 {
                self.cut = true;
                return Ok(());
            }
            self.left -= 1;
            // What is gone meanwhile is not listed.
            let Ok(stat) = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let shown = format!("{prefix}{name}");
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            self.found.push((shown.clone(), describe(&shown, &stat)));
            if !is_folder || !self.recursive {
                continue;
            }
            if deeper == 0 {
                self.cut = true;
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            // A folder that may not be read is listed all the same.
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
