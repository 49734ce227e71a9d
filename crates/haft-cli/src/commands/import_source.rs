//! Reads what `haft import` imports: a file, the folder of a Bruno collection, or a ZIP archive of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_core::problem::join;
use haft_import::api::{files_document, is_collection_file};

use crate::error::CliError;
use crate::input;

/// The maximum nesting of folders, number of files, and size of them together.
const MAX_DEPTH: usize = 20;
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the document to send.
pub(crate) fn read(path: &Path) -> Result<String, CliError> {
    let operation = || format!("read `{}`", path.display());
    if path.is_dir() {
        let files = collection(path).map_err(CliError::io(operation()))?;
        if files.is_empty() {
            return Err(CliError::Usage {
                message: format!("`{}` has no `.bru` files", path.display()),
                hint: Some("pass the folder of a Bruno collection, or a file".to_owned()),
            });
        }
        return Ok(files_document(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))));
    }
    if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("zip")) {
        return input::read_text(path);
    }
    let size = fs::metadata(path).map_err(CliError::io(operation()))?.len();
    if size > MAX_BYTES {
        return Err(CliError::io(operation())(io::Error::other("larger than 64 MiB")));
    }
    let bytes = fs::read(path).map_err(CliError::io(operation()))?;
    let files = haft_package::zip::read(&bytes).map_err(|problems| CliError::Usage {
        message: format!("`{}` cannot be unpacked: {}", path.display(), join(&problems)),
        hint: None,
    })?;
    Ok(files_document(files.iter().map(|(path, file)| (path.as_str(), file.bytes.as_ref()))))
}

/// Reads the files of a collection below a folder. Links and hidden folders are not followed.
fn collection(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut left = MAX_BYTES;
    let mut pending: Vec<(PathBuf, String, usize)> = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let (kind, path) = (entry.file_type()?, format!("{prefix}{name}"));
            if kind.is_dir() && depth < MAX_DEPTH && !name.starts_with('.') && name != "node_modules" {
                pending.push((entry.path(), format!("{path}/"), depth + 1));
            }
            if !kind.is_file() || !is_collection_file(&name) {
                continue;
            }
            let size = entry.metadata()?.len();
            left = left.checked_sub(size).ok_or_else(|| io::Error::other("the files exceed 64 MiB"))?;
            if found.len() >= MAX_FILES {
                return Err(io::Error::other(format!("more than {MAX_FILES} files")));
            }
            found.push((path, fs::read(entry.path())?));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_becomes_a_document_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("Orders")).unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        for (path, text) in
            [("bruno.json", "{}"), ("Orders/a.bru", "get {\n}"), (".git/b.bru", "x"), ("c.txt", "x")]
        {
            fs::write(folder.path().join(path), text).unwrap();
        }
        let document: serde_json::Value = serde_json::from_str(&read(folder.path()).unwrap()).unwrap();
        assert_eq!(document, serde_json::json!({"files": {"bruno.json": "{}", "Orders/a.bru": "get {\n}"}}));
        let empty = tempfile::tempdir().unwrap();
        assert!(read(empty.path()).unwrap_err().to_string().ends_with("has no `.bru` files"));
    }
}
