//! Definitions in a folder within a bundle. They are not read, and whoever put them there has to be told.
//!
//! A bundle's folder may hold anything besides its definitions: modules, data, a whole package. So a file counts only
//! if it would be read as a definition.

use std::fs::{self, Metadata};
use std::path::Path;

use super::{definition, layout, read};

/// How deep folders are looked into.
const MAX_DEPTH: usize = 2;
/// The most names that are looked at in one folder of a bundle.
const MAX_NAMES: usize = 200;
/// Definitions that people write are smaller.
const MAX_BYTES: u64 = 64 * 1024;

/// Finds what would be a definition beneath a folder of a bundle.
pub(super) fn definitions(home: &Path, folder: &str) -> Vec<(String, Metadata)> {
    let (mut found, mut names) = (Vec::new(), MAX_NAMES);
    if is_looked_into(folder.rsplit('/').next().unwrap_or(folder)) {
        look(home, folder, MAX_DEPTH, &mut names, &mut found);
    }
    found
}

/// Tells whether a folder may hold what its author wrote.
fn is_looked_into(name: &str) -> bool {
    !name.starts_with('.') && name != "node_modules" && name != "__pycache__"
}

fn look(home: &Path, folder: &str, depth: usize, names: &mut usize, found: &mut Vec<(String, Metadata)>) {
    // What cannot be listed is not ours to judge.
    let Ok(listed) = fs::read_dir(home.join(folder)) else { return };
    for entry in listed.filter_map(Result::ok) {
        if *names == 0 {
            return;
        }
        *names -= 1;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let path = format!("{folder}/{name}");
        if metadata.is_dir() && depth > 1 && is_looked_into(&name) {
            look(home, &path, depth - 1, names, found);
        } else if let Some(form) = layout::form_of(&name)
            && metadata.is_file()
            && metadata.len() <= MAX_BYTES
            && let Ok((text, metadata)) = read::text(&home.join(&path))
            && definition::read(&text, form, &path).is_ok()
        {
            found.push((path, metadata));
        }
    }
}
