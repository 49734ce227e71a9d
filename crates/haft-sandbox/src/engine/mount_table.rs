//! The mounts of the machine: where else a folder is visible.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The mounts that this process sees.
#[derive(Debug)]
pub(crate) struct MountTable {
    mounts: Vec<Mount>,
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// The device of the file system.
    device: String,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

impl MountTable {
    /// Reads the current mounts.
    pub(crate) fn read() -> io::Result<Self> {
        let text = fs::read("/proc/self/mountinfo")?;
        Ok(Self { mounts: text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect() })
    }

    /// Returns the other paths at which a folder, or a part of it, is visible.
    pub(crate) fn aliases(&self, path: &Path) -> Vec<PathBuf> {
        let Some(own) = self.mount_of(path) else { return Vec::new() };
        let Ok(below) = path.strip_prefix(&own.point) else { return Vec::new() };
        let inner = own.root.join(below);
        let same_device = self.mounts.iter().filter(|mount| mount.device == own.device);
        let shown = same_device.filter_map(|mount| {
            // Either the mount contains the folder, or the folder contains what is mounted.
            let alias = match inner.strip_prefix(&mount.root) {
                Ok(below) => joined(&mount.point, below),
                Err(_) => mount.root.starts_with(&inner).then(|| mount.point.clone())?,
            };
            // Another mount may cover it.
            (alias != path && mount_id(&alias) == Some(mount.id)).then_some(alias)
        });
        shown.collect()
    }

    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let id = mount_id(path)?;
        self.mounts.iter().find(|mount| mount.id == id)
    }
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let device = String::from_utf8_lossy(fields.nth(1)?).into_owned();
        Some(Self { id, device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
    }
}

/// Like `Path::join`, without a slash at the end where `below` is empty.
fn joined(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

/// Decodes `\040` and the like, which the kernel writes in place of white space and backslashes.
fn unescaped(field: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((first, after)) = rest.split_first() {
        let octal =
            after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns the id of the mount that a path leads to; `None` if it does not exist.
fn mount_id(path: &Path) -> Option<u64> {
    let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let line =
            br"36 35 98:0 /mnt\0401 /mnt/a\134b rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let expected = Mount {
            id: 36,
            device: "98:0".to_owned(),
            root: PathBuf::from("/mnt 1"),
            point: PathBuf::from(r"/mnt/a\b"),
        };
        assert_eq!(Mount::parse(line), Some(expected));
        assert_eq!(Mount::parse(b""), None);
    }

    #[test]
    fn every_mount_is_found_by_its_id() {
        let mounts = MountTable::read().unwrap();
        let root = mounts.mount_of(Path::new("/")).unwrap();
        assert_eq!(root.point, Path::new("/"));
        assert_eq!(mounts.mount_of(Path::new("/proc")).unwrap().point, Path::new("/proc"));
    }
}
