//! Unpacks a package into a new folder in one step: a crash leaves either the whole folder or none.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::files::PackageFiles;

/// The start of the names of folders that are not complete yet.
const TEMPORARY: &str = ".unpacking-";
/// The number of files above which the whole file system is synchronised once instead of file by file.
const MAX_SINGLE_SYNCS: usize = 64;

/// Why a package cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The folder exists already.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// The folder has no parent.
    #[error("`{}` is not a folder to unpack into", .0.display())]
    NoParent(PathBuf),
    /// Writing failed.
    #[error("write `{}`: {source}", .path.display())]
    Io {
        /// The path in the package.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Unpacks files into a folder that does not exist yet; its parent is created. Everything is on disk when this returns.
pub fn unpack(files: &PackageFiles, folder: &Path) -> Result<(), UnpackError> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.ok_or_else(|| UnpackError::NoParent(folder.to_owned()))?;
    if folder.symlink_metadata().is_ok() {
        return Err(UnpackError::Exists(folder.to_owned()));
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| UnpackError::Io { path, source }
    };
    fs::create_dir_all(parent).map_err(failed(parent))?;
    // It is removed on every way out except the last one.
    let temporary = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(parent).map_err(failed(parent))?;
    let each = files.len() <= MAX_SINGLE_SYNCS;
    for (path, file) in files.iter() {
        let target = temporary.path().join(path.as_str());
        let mode = if file.executable { 0o755 } else { 0o644 };
        write_file(&target, &file.bytes, mode, each).map_err(failed(Path::new(path.as_str())))?;
    }
    fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).map_err(failed(folder))?;
    sync_folders(temporary.path(), files, each).map_err(failed(folder))?;
    rename_new(temporary.path(), folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
            UnpackError::Exists(folder.to_owned())
        }
        _ => failed(folder)(error),
    })?;
    // It has another name now.
    let _ = temporary.keep();
    sync(parent).map_err(failed(parent))
}

/// Removes what a crash in the middle of [`unpack`] left in a folder; returns how many folders were removed. Nothing may
/// be unpacked into that folder at the same time.
pub fn remove_leftovers(parent: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let is_leftover = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        if is_leftover && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn write_file(target: &Path, bytes: &[u8], mode: u32, sync: bool) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(target)?;
    file.write_all(bytes)?;
    // The mode of a new file depends on the umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    if sync { file.sync_all() } else { Ok(()) }
}

fn sync_folders(root: &Path, files: &PackageFiles, each: bool) -> io::Result<()> {
    if !each {
        return Ok(rustix::fs::syncfs(File::open(root)?)?);
    }
    let mut folders = vec![root.to_owned()];
    for (path, _) in files.iter() {
        let parents = Path::new(path.as_str()).ancestors().skip(1);
        folders
            .extend(parents.filter(|parent| !parent.as_os_str().is_empty()).map(|parent| root.join(parent)));
    }
    folders.sort_unstable();
    folders.dedup();
    folders.iter().try_for_each(|folder| sync(folder))
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Renames a folder, but never over another one.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not know the flag. A plain rename replaces nothing but an empty folder.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        result => Ok(result?),
    }
}
