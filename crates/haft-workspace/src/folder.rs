//! Operations on folders whose content is hostile: relative to open folders, never through links.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{WorkspaceError, WorkspaceResult};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What the owner needs to work with a file or folder.
const OWNER: Mode = Mode::RWXU;

/// An open folder and its path, for messages.
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder that is not a link.
    pub(crate) fn open(path: &Path) -> WorkspaceResult<Self> {
        match rustix::fs::openat(CWD, path, FOLDER, Mode::empty()) {
            Ok(fd) => Ok(Self { fd, path: path.to_owned() }),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(WorkspaceError::NotAFolder(path.to_owned())),
            Err(error) => Err(WorkspaceError::io("open", path)(error)),
        }
    }

    /// Opens a folder in this one. A program may have removed the permissions of its folder.
    pub(crate) fn enter(&self, name: &CStr) -> WorkspaceResult<Self> {
        let open = || rustix::fs::openat(&self.fd, name, FOLDER, Mode::empty());
        let fd = match open() {
            Err(Errno::ACCESS) => {
                self.permit(name)?;
                open()
            }
            other => other,
        };
        let path = self.join(name);
        let fd = fd.map_err(WorkspaceError::io("open", &path))?;
        Ok(Self { fd, path })
    }

    /// Opens a file for reading. Does not wait for a FIFO that replaced it.
    pub(crate) fn read(&self, name: &CStr) -> WorkspaceResult<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.fd, name, flags, Mode::empty());
        let fd = match open() {
            Err(Errno::ACCESS) => {
                self.permit(name)?;
                open()
            }
            other => other,
        };
        fd.map_err(WorkspaceError::io("open", &self.join(name)))
    }

    /// Creates a file that must not exist.
    pub(crate) fn create(&self, name: &CStr, executable: bool) -> WorkspaceResult<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let created = rustix::fs::openat(&self.fd, name, flags, mode);
        created.map_err(WorkspaceError::io("create", &self.join(name)))
    }

    /// Creates a folder that must not exist, and opens it.
    pub(crate) fn create_folder(&self, name: &CStr) -> WorkspaceResult<Self> {
        let mode = Mode::from_raw_mode(0o755);
        let created = rustix::fs::mkdirat(&self.fd, name, mode);
        created.map_err(WorkspaceError::io("create", &self.join(name)))?;
        self.enter(name)
    }

    /// Creates a link that must not exist.
    pub(crate) fn create_link(&self, name: &CStr, target: &[u8]) -> WorkspaceResult<()> {
        let created = rustix::fs::symlinkat(OsStr::from_bytes(target), &self.fd, name);
        created.map_err(WorkspaceError::io("create", &self.join(name)))
    }

    /// Changes whether a file can be executed.
    pub(crate) fn set_executable(&self, name: &CStr, executable: bool) -> WorkspaceResult<()> {
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let changed = rustix::fs::chmodat(&self.fd, name, mode, AtFlags::empty());
        changed.map_err(WorkspaceError::io("change", &self.join(name)))
    }

    /// Returns what is known of an entry; links are not followed.
    pub(crate) fn stat(&self, name: &CStr) -> WorkspaceResult<Stat> {
        let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_err(WorkspaceError::io("stat", &self.join(name)))
    }

    pub(crate) fn link_target(&self, name: &CStr) -> WorkspaceResult<Box<[u8]>> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new());
        let target = target.map_err(WorkspaceError::io("read", &self.join(name)))?;
        Ok(target.into_bytes().into())
    }

    /// Lists the names, in the order of their bytes.
    pub(crate) fn names(&self) -> WorkspaceResult<Vec<CString>> {
        let read = || -> Result<Vec<CString>, Errno> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.fd)? {
                let name = entry?.file_name().to_owned();
                if !matches!(name.as_bytes(), b"." | b"..") {
                    names.push(name);
                }
            }
            names.sort_unstable();
            Ok(names)
        };
        read().map_err(WorkspaceError::io("list", &self.path))
    }

    /// Removes what has a name, if there is something. A folder is moved to the trash.
    pub(crate) fn remove(&self, name: &CStr, trash: &mut Trash) -> WorkspaceResult<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => trash.take(self, name),
            Err(error) => Err(WorkspaceError::io("remove", &self.join(name))(error)),
        }
    }

    /// Gives the owner all permissions of an entry that is not a link.
    fn permit(&self, name: &CStr) -> WorkspaceResult<()> {
        if FileType::from_raw_mode(self.stat(name)?.st_mode) == FileType::Symlink {
            return Ok(());
        }
        let changed = rustix::fs::chmodat(&self.fd, name, OWNER, AtFlags::empty());
        changed.map_err(WorkspaceError::io("open", &self.join(name)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A folder for folders that are to be removed, on the same file system.
///
/// A tree may be deeper than any path, and deeper than a stack or a table of open files. So every folder of it is moved
/// here before it is emptied.
pub(crate) struct Trash {
    folder: Folder,
    count: u64,
}

impl Trash {
    pub(crate) fn open(path: &Path) -> WorkspaceResult<Self> {
        std::fs::create_dir_all(path).map_err(WorkspaceError::io("create", path))?;
        let folder = Folder::open(path)?;
        Ok(Self { folder, count: 0 })
    }

    fn take(&mut self, from: &Folder, name: &CStr) -> WorkspaceResult<()> {
        loop {
            self.count += 1;
            let new = CString::new(self.count.to_string()).unwrap_or_default();
            let rename = || {
                let flags = rustix::fs::RenameFlags::NOREPLACE;
                rustix::fs::renameat_with(from, name, &self.folder, &new, flags)
            };
            let renamed = match rename() {
                // Moving a folder changes its entry `..`.
                Err(Errno::ACCESS) => {
                    from.permit(name)?;
                    rename()
                }
                other => other,
            };
            match renamed {
                Err(Errno::EXIST) => {}
                other => return other.map_err(WorkspaceError::io("remove", &from.join(name))),
            }
        }
    }

    /// Removes everything.
    pub(crate) fn empty(&mut self) -> WorkspaceResult<()> {
        loop {
            let names = self.folder.names()?;
            if names.is_empty() {
                return Ok(());
            }
            for name in names {
                let stat = self.folder.stat(&name)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                    let path = self.folder.join(&name);
                    let removed = rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty());
                    removed.map_err(WorkspaceError::io("remove", &path))?;
                    continue;
                }
                let inner = self.folder.enter(&name)?;
                for name in inner.names()? {
                    let result = inner.remove(&name, self);
                    if let Err(WorkspaceError::Io { source, .. }) = &result
                        && source.kind() == std::io::ErrorKind::PermissionDenied
                    {
                        self.folder.permit(&name_of(&inner)?)?;
                        inner.remove(&name, self)?;
                    } else {
                        result?;
                    }
                }
                let removed = rustix::fs::unlinkat(&self.folder, &name, AtFlags::REMOVEDIR);
                removed.map_err(WorkspaceError::io("remove", &self.folder.join(&name)))?;
            }
        }
    }
}

fn name_of(folder: &Folder) -> WorkspaceResult<CString> {
    let name = folder.path.file_name().unwrap_or_default();
    CString::new(name.as_bytes())
        .map_err(|error| WorkspaceError::io("open", &folder.path)(std::io::Error::from(error)))
}
