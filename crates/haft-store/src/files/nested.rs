//! Definitions in subfolders of a bundle. They are not loaded, which has to be reported to their author.
//!
//! A bundle folder may also hold modules, data or a whole package. So a file counts only if it is a valid definition.

use std::fs::{self, Metadata};
use std::path::Path;

use haft_definition::folder::{SymbolicLinks, file_form, read_text};

use super::definition;

/// How many levels of subfolders are searched.
const MAX_DEPTH: usize = 2;
/// The largest number of entries searched in one subfolder.
const MAX_ENTRIES: usize = 200;
/// Larger files are not considered definitions.
const MAX_BYTES: u64 = 64 * 1024;

/// Finds the valid definitions in a subfolder of a bundle.
pub(super) fn definitions(home: &Path, folder: &str) -> Vec<(String, Metadata)> {
    let (mut found, mut entries) = (Vec::new(), MAX_ENTRIES);
    if is_searched(folder.rsplit('/').next().unwrap_or(folder)) {
        search(home, folder, MAX_DEPTH, &mut entries, &mut found);
    }
    found
}

/// Tells whether a folder may hold hand-written files.
fn is_searched(name: &str) -> bool {
    !name.starts_with('.') && name != "node_modules" && name != "__pycache__"
}

fn search(home: &Path, folder: &str, depth: usize, entries: &mut usize, found: &mut Vec<(String, Metadata)>) {
    // A folder that cannot be listed is ignored.
    let Ok(listed) = fs::read_dir(home.join(folder)) else { return };
    for entry in listed.filter_map(Result::ok) {
        if *entries == 0 {
            return;
        }
        *entries -= 1;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let path = format!("{folder}/{name}");
        if metadata.is_dir() && depth > 1 && is_searched(&name) {
            search(home, &path, depth - 1, entries, found);
        } else if let Some(form) = file_form(&name)
            && metadata.is_file()
            && metadata.len() <= MAX_BYTES
            && let Ok((text, metadata)) = read_text(&home.join(&path), SymbolicLinks::Reject)
            && definition::read(&text, form, &path).is_ok()
        {
            found.push((path, metadata));
        }
    }
}
