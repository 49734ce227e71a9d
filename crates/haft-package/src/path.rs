//! Safe relative paths inside a package.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

/// The maximum length of a path, in bytes.
pub const MAX_PATH: usize = 512;
/// The maximum length of one name in a path, in bytes.
pub const MAX_NAME: usize = 255;
/// The maximum number of names in a path.
pub const MAX_DEPTH: usize = 32;

/// Why a text is not a path inside a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is empty.
    #[error("the path is empty")]
    Empty,
    /// It is longer than [`MAX_PATH`].
    #[error("the path has more than {MAX_PATH} bytes; shorten it")]
    TooLong,
    /// One of its names is longer than [`MAX_NAME`].
    #[error("a name in the path has more than {MAX_NAME} bytes; shorten it")]
    NameTooLong,
    /// It has more than [`MAX_DEPTH`] names.
    #[error("the path is nested more than {MAX_DEPTH} folders deep; move the file up")]
    TooDeep,
    /// It starts at the root of a file system.
    #[error("the path is absolute; use a path relative to the package, such as `tools/search.py`")]
    Absolute,
    /// It contains `..`.
    #[error("the path contains `..`, which could leave the package; remove it")]
    Parent,
    /// It contains `.` or an empty name.
    #[error("the path contains an empty name or `.`; write it in its shortest form")]
    NotShortest,
    /// It contains a backslash.
    #[error("the path contains a backslash; use `/` between folders")]
    Backslash,
    /// It contains a colon, as drive letters do.
    #[error("the path contains `:`, which starts a drive or a stream on some systems; rename the file")]
    Colon,
    /// It contains a control character.
    #[error("the path contains a control character; rename the file")]
    Control,
    /// One of its names ends with a dot or a space, which some systems remove.
    #[error("a name in the path ends with a dot or a space, which some systems remove; rename the file")]
    TrailingDot,
}

/// A relative path with `/` between its names, which cannot leave the package on any system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PackagePath(Arc<str>);

impl PackagePath {
    /// Validates a path.
    ///
    /// ```
    /// use haft_package::path::{PackagePath, PathError};
    ///
    /// assert_eq!(PackagePath::new("tools/search.py").unwrap().as_str(), "tools/search.py");
    /// assert_eq!(PackagePath::new("../search.py"), Err(PathError::Parent));
    /// ```
    pub fn new(text: &str) -> Result<Self, PathError> {
        check(text)?;
        Ok(Self(text.into()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the names of its folders and of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the name of the file.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the extension of the file in lower case; empty if there is none.
    pub fn extension(&self) -> String {
        self.file_name().rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default()
    }

    /// Returns the name of the file without its extension.
    pub fn stem(&self) -> &str {
        let name = self.file_name();
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// Returns the top folder; `None` for a file of the root.
    pub fn top_folder(&self) -> Option<&str> {
        self.0.split_once('/').map(|(top, _)| top)
    }

    /// Returns the path without its top folder.
    pub fn without_top_folder(&self) -> Option<Self> {
        self.0.split_once('/').map(|(_, rest)| Self(rest.into()))
    }

    /// Returns whether it is something that editors, version control and interpreters leave behind: hidden files,
    /// `__pycache__`, `__MACOSX`.
    pub fn is_junk(&self) -> bool {
        self.names().any(is_junk_name)
    }
}

/// Returns whether a file or folder of this name is never part of a package.
pub(crate) fn is_junk_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
    name.starts_with('.')
        || matches!(lower.as_str(), "__pycache__" | "__macosx" | "thumbs.db" | "desktop.ini")
        || matches!(extension, "pyc" | "egg-info")
}

/// Returns a text that is equal for paths that some file systems treat as the same: in lower case, in one Unicode form.
pub(crate) fn folded(path: &str) -> String {
    let composed: String = path.nfkc().collect();
    composed.to_lowercase().nfkc().collect()
}

fn check(text: &str) -> Result<(), PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.len() > MAX_PATH {
        return Err(PathError::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(PathError::Control);
    }
    if text.starts_with(['/', '\\']) {
        return Err(PathError::Absolute);
    }
    if text.contains(':') {
        return Err(PathError::Colon);
    }
    // Before the backslash: `..\x` is an attempt to leave the package.
    if text.split(['/', '\\']).any(|name| name == "..") {
        return Err(PathError::Parent);
    }
    if text.contains('\\') {
        return Err(PathError::Backslash);
    }
    for name in text.split('/') {
        match name {
            "" | "." => return Err(PathError::NotShortest),
            name if name.len() > MAX_NAME => return Err(PathError::NameTooLong),
            name if name.ends_with(['.', ' ']) => return Err(PathError::TrailingDot),
            _ => {}
        }
    }
    if text.split('/').count() > MAX_DEPTH {
        return Err(PathError::TooDeep);
    }
    Ok(())
}

impl fmt::Display for PackagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for PackagePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PackagePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_package_are_rejected() {
        let long = "x".repeat(256);
        let deep = "d/".repeat(32) + "f";
        for (text, expected) in [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Absolute),
            ("\\etc\\passwd", PathError::Absolute),
            ("\\\\host\\share", PathError::Absolute),
            ("C:/x", PathError::Colon),
            ("C:\\x", PathError::Colon),
            ("c:x", PathError::Colon),
            ("x.py:stream", PathError::Colon),
            ("..", PathError::Parent),
            ("../x", PathError::Parent),
            ("a/../../x", PathError::Parent),
            ("a/..", PathError::Parent),
            ("..\\x", PathError::Parent),
            ("a\\..\\x", PathError::Parent),
            ("a\\b", PathError::Backslash),
            ("a//b", PathError::NotShortest),
            ("./a", PathError::NotShortest),
            ("a/.", PathError::NotShortest),
            ("a/", PathError::NotShortest),
            ("a\0b", PathError::Control),
            ("a\nb", PathError::Control),
            ("a\u{9b}b", PathError::Control),
            ("a./b", PathError::TrailingDot),
            ("a ", PathError::TrailingDot),
            (".. /x", PathError::TrailingDot),
            (&long, PathError::NameTooLong),
            (&"x/".repeat(300), PathError::TooLong),
            (&deep, PathError::TooDeep),
        ] {
            assert_eq!(PackagePath::new(text), Err(expected), "{text:?}");
        }
        for good in ["a", "a/b.py", ".hidden", "a b/ü.html", "天気/x", "...x"] {
            assert_eq!(PackagePath::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn junk_is_known_by_its_name() {
        for junk in
            [".git/config", "a/__pycache__/b.pyc", "__MACOSX/x", "a/.DS_Store", "Thumbs.db", ".env", "x.pyc"]
        {
            assert!(PackagePath::new(junk).unwrap().is_junk(), "{junk}");
        }
        assert!(!PackagePath::new("tools/a.py").unwrap().is_junk());
    }

    #[test]
    fn paths_that_some_systems_treat_as_equal_fold_to_the_same_text() {
        for (one, other) in [("Tools/A.py", "tools/a.PY"), ("é", "e\u{301}"), ("ﬁle", "file"), ("K", "k")]
        {
            assert_eq!(folded(one), folded(other));
        }
        assert_ne!(folded("a"), folded("b"));
    }
}
