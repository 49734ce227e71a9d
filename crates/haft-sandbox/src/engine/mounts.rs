//! What of the machine's files an isolated process sees.

use std::path::{Path, PathBuf};

/// Folders with programs and libraries; where they are links into `/usr`, they are made as links.
pub(crate) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Where some systems keep all programs.
pub(crate) const STORES: [&str; 2] = ["/nix/store", "/run/current-system"];

/// What programs read of the machine's settings. Nothing here is secret, and nothing names users.
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

/// What a process besides needs to find hosts.
pub(crate) const NETWORK: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/gai.conf"];

/// The accounts that an isolated process finds: itself.
pub(crate) const PASSWD: &str = "sandbox:x:65534:65534:sandbox:/work:/bin/sh\n";
/// The groups that it finds.
pub(crate) const GROUP: &str = "sandbox:x:65534:\n";

/// The account that an isolated process runs as.
pub(crate) const NOBODY: u32 = 65_534;

/// Where an isolated process works.
pub(crate) const WORK: &str = "/work";
/// Where it finds its small files.
pub(crate) const FILES: &str = "/run/haft";

/// Returns those of the paths that are there.
pub(crate) fn present<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a Path> {
    paths.iter().map(Path::new).filter(|path| path.exists())
}

/// Returns where a folder in the root leads, if it is a link.
pub(crate) fn link_of(path: &Path) -> Option<PathBuf> {
    std::fs::read_link(path).ok()
}
