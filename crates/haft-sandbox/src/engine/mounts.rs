//! The files of the machine that an isolated process sees.

use std::path::{Path, PathBuf};

/// Folders with programs and libraries; links into `/usr` stay links.
pub(crate) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Program stores of some distributions.
pub(crate) const STORES: [&str; 2] = ["/nix/store", "/run/current-system"];

/// Settings that programs read. None is secret or names users.
pub(crate) const SETTINGS: [&str; 14] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
];

/// Settings for resolving hosts.
pub(crate) const NETWORK: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/gai.conf"];

/// `/etc/passwd` of an isolated process: only itself.
pub(crate) const PASSWD: &str = "sandbox:x:65534:65534:sandbox:/work:/bin/sh\n";
/// `/etc/group` of an isolated process.
pub(crate) const GROUP: &str = "sandbox:x:65534:\n";

/// The user id of an isolated process.
pub(crate) const NOBODY: u32 = 65_534;

/// The working folder of an isolated process.
pub(crate) const WORK: &str = "/work";
/// The folder of its small files.
pub(crate) const FILES: &str = "/run/haft";

/// Returns the existing paths.
pub(crate) fn present<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a Path> {
    paths.iter().map(Path::new).filter(|path| path.exists())
}

/// Returns the target of a folder in the root, if it is a link.
pub(crate) fn link_of(path: &Path) -> Option<PathBuf> {
    std::fs::read_link(path).ok()
}
