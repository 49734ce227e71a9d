//! `server.json` in the home folder: the address of a running server.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The address and the process of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    /// The address it listens on.
    pub(crate) addr: SocketAddr,
    /// The process id.
    pub(crate) pid: u32,
}

impl ServerFile {
    /// Writes the file for this process; dropping the guard removes it.
    pub(crate) fn write(home: &Path, addr: SocketAddr) -> std::io::Result<Guard> {
        let path = path(home);
        let content = serde_json::to_vec(&Self { addr, pid: std::process::id() })?;
        let mut file = tempfile::NamedTempFile::new_in(home)?;
        file.write_all(&content)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Guard { path })
    }

    /// Reads the file; returns `None` if it is missing, invalid, or left by a dead process.
    pub(crate) fn read(home: &Path) -> Option<Self> {
        let file: Self = serde_json::from_slice(&std::fs::read(path(home)).ok()?).ok()?;
        (!is_dead(file.pid)).then_some(file)
    }

    /// Returns the address to connect to.
    pub(crate) fn connect_addr(&self) -> SocketAddr {
        connect_addr(self.addr)
    }
}

/// Returns the address to connect to: loopback if a server listens on all addresses.
pub(crate) fn connect_addr(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

fn path(home: &Path) -> PathBuf {
    home.join("server.json")
}

/// Returns whether the process is known to be dead; another program may use its port by now.
fn is_dead(pid: u32) -> bool {
    let processes = Path::new("/proc");
    processes.join("self").exists() && !processes.join(pid.to_string()).exists()
}

/// Removes the file, unless another server has replaced it.
#[derive(Debug)]
pub(crate) struct Guard {
    path: PathBuf,
}

impl Guard {
    /// Removes the file now.
    pub(crate) fn remove(&self) {
        let content = std::fs::read(&self.path).ok();
        let file: Option<ServerFile> = content.and_then(|content| serde_json::from_slice(&content).ok());
        if file.is_some_and(|file| file.pid == std::process::id()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_removes_the_file() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(ServerFile::read(home.path()), None);
        let addr = SocketAddr::from(([0, 0, 0, 0], 1234));
        let guard = ServerFile::write(home.path(), addr).unwrap();
        let file = ServerFile::read(home.path()).unwrap();
        assert_eq!(file, ServerFile { addr, pid: std::process::id() });
        assert_eq!(file.connect_addr().to_string(), "127.0.0.1:1234");
        drop(guard);
        assert_eq!(ServerFile::read(home.path()), None);
    }

    #[test]
    fn a_stale_or_invalid_file_is_ignored() {
        let home = tempfile::tempdir().unwrap();
        for content in
            ["", "{", "[]", r#"{"addr":"x","pid":1}"#, r#"{"addr":"127.0.0.1:1","pid":4294967295}"#]
        {
            std::fs::write(path(home.path()), content).unwrap();
            assert_eq!(ServerFile::read(home.path()), None, "{content}");
        }
    }

    #[test]
    fn the_file_of_another_server_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let guard = ServerFile::write(home.path(), SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        std::fs::write(path(home.path()), r#"{"addr":"127.0.0.1:2","pid":1}"#).unwrap();
        drop(guard);
        assert_eq!(ServerFile::read(home.path()).unwrap().pid, 1);
    }
}
