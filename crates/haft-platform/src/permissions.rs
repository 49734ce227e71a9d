//! Warns if other users of the machine can read what only the server should.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The files in the home folder that are secret.
const SECRET_FILES: [&str; 2] = ["key", "tokens"];
/// The permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// A file or folder that other users can access.
#[derive(Debug, PartialEq, Eq)]
struct ExposedPath {
    path: PathBuf,
    mode: u32,
    /// The mode that it should have.
    expected: &'static str,
}

/// Logs a warning for the home folder and each secret file in it that other users can access.
pub fn warn_if_open(home: &Path) {
    for exposed in exposed_paths(home) {
        let path = exposed.path.display();
        tracing::warn!(
            mode = format!("{:04o}", exposed.mode),
            "other users can access `{path}`; run `chmod {} {path}`",
            exposed.expected
        );
    }
}

fn exposed_paths(home: &Path) -> Vec<ExposedPath> {
    let files = SECRET_FILES.map(|name| (home.join(name), "600"));
    let exposed = std::iter::once((home.to_owned(), "700")).chain(files).filter_map(|(path, expected)| {
        let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
        (mode & OTHERS != 0).then_some(ExposedPath { path, mode, expected })
    });
    exposed.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn open_permissions_are_found() {
        let home = tempfile::tempdir().unwrap();
        let set = |name: &str, mode| {
            let path = home.path().join(name);
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for name in SECRET_FILES {
            fs::write(home.path().join(name), "secret").unwrap();
            set(name, 0o600);
        }
        set("", 0o700);
        assert_eq!(exposed_paths(home.path()), []);
        set("", 0o755);
        set("key", 0o640);
        set("tokens", 0o604);
        let exposed = |name, mode, expected| ExposedPath { path: home.path().join(name), mode, expected };
        let mut found = exposed_paths(home.path());
        for exposed in &mut found {
            exposed.path = exposed.path.components().collect();
        }
        assert_eq!(found[1..], [exposed("key", 0o640, "600"), exposed("tokens", 0o604, "600")]);
        assert_eq!((found[0].mode, found.len()), (0o755, 3));
    }
}
