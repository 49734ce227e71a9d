//! The files of a package: a sorted map of safe paths to bytes, within limits.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use haft_core::hash;
use haft_core::problem::{Problem, excerpt, nearest};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::path::{PackagePath, folded};
use crate::problems::{MAX_SHOWN, of_file};

/// The name of the manifest.
pub const MANIFEST: &str = "toolset.yaml";
/// The name of the signature, which is the only file that is not part of the content hash.
pub const SIGNATURE: &str = "toolset.sig";
/// The name of the requirements of Python tools.
pub const REQUIREMENTS: &str = "requirements.txt";
/// The name of the instructions of an Agent Skill.
pub const SKILL: &str = "SKILL.md";

/// The maximum number of files.
pub const MAX_FILES: usize = 10_000;
/// The maximum size of one file, in bytes.
pub const MAX_FILE: u64 = 64 << 20;
/// The maximum size of all files, in bytes.
pub const MAX_TOTAL: u64 = 256 << 20;

/// The purpose of a file of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Python source.
    Python,
    /// A template of a renderer.
    Artifact,
    /// Data that tools use.
    Asset,
    /// The manifest, the requirements, the signature, instructions.
    Config,
}

impl FileKind {
    /// Returns the kind of a file by its path.
    pub fn of(path: &PackagePath) -> Self {
        match (path.top_folder(), path.extension().as_str()) {
            (Some("artifacts"), _) => Self::Artifact,
            (Some("assets" | "wheels"), _) => Self::Asset,
            (_, "py") => Self::Python,
            (None, "yaml" | "yml" | "json" | "toml" | "txt" | "md" | "sig" | "cfg" | "ini") => Self::Config,
            _ => Self::Asset,
        }
    }

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Artifact => "artifact",
            Self::Asset => "asset",
            Self::Config => "config",
        }
    }
}

/// One file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// The content.
    pub bytes: Bytes,
    /// Whether it can be executed as a program.
    pub executable: bool,
}

impl PackageFile {
    /// Returns the SHA-256 of the content, in hexadecimal.
    pub fn sha256(&self) -> String {
        hash::of_bytes(&self.bytes)
    }
}

/// The files of a package.
#[derive(Debug, Clone, Default)]
pub struct PackageFiles {
    files: BTreeMap<PackagePath, PackageFile>,
    total: u64,
    /// Every file and folder by its folded path, to find those that collide on some file systems.
    taken: HashMap<String, Taken>,
}

#[derive(Debug, Clone)]
struct Taken {
    path: String,
    is_folder: bool,
}

impl PartialEq for PackageFiles {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Eq for PackageFiles {}

impl PackageFiles {
    /// Returns no files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. A path that exists already, or that some file system cannot tell from another one, is a problem.
    pub fn add(
        &mut self,
        path: PackagePath,
        bytes: impl Into<Bytes>,
        executable: bool,
    ) -> Result<(), Problem> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        if self.files.len() >= MAX_FILES {
            let message =
                format!("the package has more than {MAX_FILES} files; remove what tools do not need");
            return Err(Problem::new("", "too_many_files", message));
        }
        if size > MAX_FILE {
            return Err(too_large(path.as_str()));
        }
        if self.total.saturating_add(size) > MAX_TOTAL {
            return Err(total_too_large());
        }
        self.claim(&path)?;
        self.total += size;
        self.files.insert(path, PackageFile { bytes, executable });
        Ok(())
    }

    /// Adds or replaces a text file, such as a generated manifest.
    pub fn put_text(&mut self, path: &str, text: impl Into<String>) -> Result<(), Problem> {
        let path = PackagePath::new(path).map_err(|error| of_file(path, "unsafe_path", error.to_string()))?;
        self.remove(path.as_str());
        self.add(path, text.into().into_bytes(), false)
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) -> Option<PackageFile> {
        let file = self.files.remove(path)?;
        self.total = self.total.saturating_sub(file.bytes.len() as u64);
        self.taken.remove(&folded(path));
        Some(file)
    }

    /// Returns a file.
    pub fn get(&self, path: &str) -> Option<&PackageFile> {
        self.files.get(path)
    }

    /// Returns the text of a file; `None` if there is no such file or it is not UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.get(path)?.bytes).ok()
    }

    /// Returns whether there is a file at the path.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether there is a file beneath the folder.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.taken.get(&folded(folder)).is_some_and(|taken| taken.is_folder && taken.path == folder)
    }

    /// Returns the file with the extension whose path is most similar to a misspelled one, if any is similar enough.
    /// Large packages are searched in part only.
    pub(crate) fn similar(&self, path: &str, extension: &str) -> Option<&str> {
        const MAX_CANDIDATES: usize = 50;
        let paths = self.files.keys().filter(|path| path.extension() == extension);
        let short = paths.map(PackagePath::as_str).filter(|path| path.len() <= 100);
        nearest(path, short.take(MAX_CANDIDATES))
    }

    /// Returns the files, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&PackagePath, &PackageFile)> {
        self.files.iter()
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the size of all files, in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the hash of all files except the signature: of their paths, their content, and whether they are
    /// executable. It does not depend on how they were packed.
    pub fn content_hash(&self) -> String {
        let mut digest = Sha256::new();
        for (path, file) in self.files.iter().filter(|(path, _)| path.as_str() != SIGNATURE) {
            let mode = if file.executable { 'x' } else { '-' };
            // Paths contain no line breaks, so the lines are unambiguous.
            digest.update(format!("{} {mode} {path}\n", file.sha256()));
        }
        hash::hex(&digest.finalize())
    }

    /// Removes a single folder around everything, as archives from GitHub have it, if the manifest or the instructions
    /// of a skill are inside.
    #[must_use]
    pub fn without_wrapping_folder(self) -> Self {
        let mut tops = self.files.keys().map(PackagePath::top_folder);
        let Some(Some(top)) = tops.next() else { return self };
        let inner = |name: &str| self.files.contains_key(format!("{top}/{name}").as_str());
        if tops.any(|other| other != Some(top)) || !(inner(MANIFEST) || inner(SKILL)) {
            return self;
        }
        let mut stripped = Self::new();
        for (path, file) in &self.files {
            let Some(path) = path.without_top_folder() else { return self };
            if stripped.add(path, file.bytes.clone(), file.executable).is_err() {
                return self;
            }
        }
        stripped
    }

    /// Registers a path and its folders.
    fn claim(&mut self, path: &PackagePath) -> Result<(), Problem> {
        let text = path.as_str();
        let folders = text.match_indices('/').filter_map(|(end, _)| text.get(..end));
        let mut claims: Vec<(String, Taken)> = Vec::new();
        for folder in folders {
            let key = folded(folder);
            if is_signature(folder) {
                return Err(signature_folder(folder));
            }
            match self.taken.get(&key) {
                None => claims.push((key, Taken { path: folder.to_owned(), is_folder: true })),
                Some(taken) if taken.is_folder && taken.path == folder => {}
                Some(taken) if taken.is_folder => return Err(collision(text, folder, &taken.path)),
                Some(taken) => return Err(file_and_folder(text, &taken.path)),
            }
        }
        let key = folded(text);
        match self.taken.get(&key) {
            None => claims.push((key, Taken { path: text.to_owned(), is_folder: false })),
            Some(taken) if taken.is_folder => return Err(file_and_folder(text, &taken.path)),
            Some(taken) if taken.path == text => {
                let message = "the package contains this file twice; remove one of them";
                return Err(of_file(text, "duplicate_file", message));
            }
            Some(taken) => return Err(collision(text, text, &taken.path)),
        }
        self.taken.extend(claims);
        Ok(())
    }
}

pub(crate) fn too_large(path: &str) -> Problem {
    let message = format!("the file has more than {MAX_FILE} bytes; split it, or let the tool download it");
    of_file(path, "file_too_large", message)
}

pub(crate) fn total_too_large() -> Problem {
    let message =
        format!("the files of the package have more than {MAX_TOTAL} bytes; remove what tools do not need");
    Problem::new("", "package_too_large", message)
}

/// Returns whether a path is the path of the signature, also inside a single root folder.
pub(crate) fn is_signature(path: &str) -> bool {
    path.split_once('/').map_or(path, |(_, inner)| inner) == SIGNATURE
}

/// Returns the error for a folder with the name of the signature file.
pub(crate) fn signature_folder(path: &str) -> Problem {
    let message =
        format!("`{SIGNATURE}` is the signature of the package and must be a file; rename the folder");
    of_file(path, "special_file", message)
}

fn collision(path: &str, own: &str, other: &str) -> Problem {
    let message = format!(
        "`{}` and `{}` are the same name on some file systems; rename one of them",
        excerpt(own, MAX_SHOWN),
        excerpt(other, MAX_SHOWN)
    );
    of_file(path, "case_collision", message)
}

fn file_and_folder(path: &str, other: &str) -> Problem {
    let message = format!("`{}` is both a file and a folder; rename one of them", excerpt(other, MAX_SHOWN));
    of_file(path, "file_and_folder", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Result<PackageFiles, String> {
        let mut files = PackageFiles::new();
        for path in paths {
            files
                .add(PackagePath::new(path).unwrap(), path.as_bytes().to_vec(), false)
                .map_err(|problem| problem.code)?;
        }
        Ok(files)
    }

    #[test]
    fn names_that_collide_on_some_file_system_are_rejected() {
        for (paths, expected) in [
            (&["a", "a"][..], "duplicate_file"),
            (&["a", "A"], "case_collision"),
            (&["Tools/a", "tools/b"], "case_collision"),
            (&["é", "e\u{301}"], "case_collision"),
            (&["a", "a/b"], "file_and_folder"),
            (&["a/b", "a"], "file_and_folder"),
            (&["A/b/c", "a"], "file_and_folder"),
            (&["toolset.sig/a"], "special_file"),
            (&["x/toolset.sig/a"], "special_file"),
        ] {
            assert_eq!(files(paths).unwrap_err(), expected, "{paths:?}");
        }
        let mut good = files(&["tools/a.py", "tools/b.py", "a"]).unwrap();
        assert!(good.has_folder("tools") && !good.has_folder("Tools") && !good.has_folder("a"));
        // A removed file can be added again.
        good.remove("a").unwrap();
        good.put_text("A", "").unwrap();
        assert_eq!(good.len(), 3);
    }

    #[test]
    fn the_content_hash_covers_paths_content_and_mode_but_not_the_signature() {
        let of = |path: &str, text: &str, executable| {
            let mut files = PackageFiles::new();
            files.add(PackagePath::new(path).unwrap(), text.to_owned(), executable).unwrap();
            files
        };
        let base = of("a", "1", false);
        for other in [of("b", "1", false), of("a", "2", false), of("a", "1", true)] {
            assert_ne!(base.content_hash(), other.content_hash());
        }
        let mut signed = base.clone();
        signed.put_text(SIGNATURE, "x").unwrap();
        assert_eq!(base.content_hash(), signed.content_hash());
        assert_eq!(base.content_hash(), hash::of_bytes(format!("{} - a\n", hash::of_bytes(b"1")).as_bytes()));
    }

    #[test]
    fn a_folder_around_everything_is_removed_only_if_it_is_a_package() {
        let names = |files: PackageFiles| files.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>();
        for (paths, expected) in [
            (&["x/toolset.yaml", "x/tools/a.py"][..], &["tools/a.py", "toolset.yaml"][..]),
            (&["x/SKILL.md"], &["SKILL.md"]),
            (&["x/toolset.yaml", "y"], &["x/toolset.yaml", "y"]),
            (&["x/a", "x/b"], &["x/a", "x/b"]),
            (&["toolset.yaml"], &["toolset.yaml"]),
        ] {
            assert_eq!(names(files(paths).unwrap().without_wrapping_folder()), expected);
        }
    }

    #[test]
    fn limits_hold() {
        let mut files = PackageFiles::new();
        let big = Bytes::from(vec![0; 64 << 20]);
        for number in 0..4 {
            files.add(PackagePath::new(&format!("{number}")).unwrap(), big.clone(), false).unwrap();
        }
        let one_more = files.add(PackagePath::new("x").unwrap(), vec![0], false).unwrap_err();
        assert_eq!(one_more.code, "package_too_large");
        let mut files = PackageFiles::new();
        let larger = files.add(PackagePath::new("x").unwrap(), vec![0; (64 << 20) + 1], false).unwrap_err();
        assert_eq!(larger.code, "file_too_large");
        for number in 0..MAX_FILES {
            files.add(PackagePath::new(&format!("f/{number}")).unwrap(), vec![], false).unwrap();
        }
        let one_more = files.add(PackagePath::new("x").unwrap(), vec![], false).unwrap_err();
        assert_eq!(one_more.code, "too_many_files");
    }

    #[test]
    fn kinds_follow_the_folders() {
        for (path, kind) in [
            ("tools/a.py", "python"),
            ("helper.py", "python"),
            ("artifacts/a.html", "artifact"),
            ("assets/x.py", "asset"),
            ("wheels/x.whl", "asset"),
            ("toolset.yaml", "config"),
            ("requirements.txt", "config"),
            ("tools/data.json", "asset"),
            ("SKILL.md", "config"),
        ] {
            assert_eq!(FileKind::of(&PackagePath::new(path).unwrap()).as_str(), kind, "{path}");
        }
    }
}
