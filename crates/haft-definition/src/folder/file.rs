//! Recognising and reading definition files that anyone may have put there.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use rustix::fs::OFlags;

use crate::check;
use crate::dialect::{self, Defaults, MAX_TEXT, ParsedDefinition};

/// The file that describes a bundle; not a tool.
pub const BUNDLE_FILE: &str = "bundle.yaml";
/// The manifest of an installed toolset; not a tool.
pub const TOOLSET_FILE: &str = "toolset.yaml";
/// The largest definition file.
pub const MAX_BYTES: u64 = MAX_TEXT as u64;

/// Returns the form of a definition file by its name.
///
/// `None` for other files, including hidden files and the backup and swap files of editors.
pub fn file_form(file_name: &str) -> Option<FileForm> {
    let hidden = file_name.starts_with(['.', '#']) || file_name.ends_with(['~', '#']);
    if hidden || file_name == BUNDLE_FILE || file_name == TOOLSET_FILE {
        return None;
    }
    let (stem, extension) = file_name.rsplit_once('.')?;
    if stem.is_empty() { None } else { dialect::form_of_extension(extension) }
}

/// Returns the tool name in a file name, and the version after `@`.
pub fn name_and_version(path: &str) -> (&str, Option<&str>) {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match stem.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (stem, None),
    }
}

/// Parses and checks a definition; errors and warnings name the line where it is known.
pub fn read_definition(
    text: &str,
    form: FileForm,
    defaults: &Defaults,
) -> Result<ParsedDefinition, Vec<Problem>> {
    let mut parsed = dialect::read(text, form, defaults)?;
    let check::CheckReport { mut errors, mut warnings } = check::definition(&parsed.spec);
    if !errors.is_empty() {
        dialect::locate(text, form, &mut errors);
        return Err(errors);
    }
    if !warnings.is_empty() {
        dialect::locate(text, form, &mut warnings);
        parsed.warnings.extend(warnings);
    }
    Ok(parsed)
}

/// Whether a symbolic link is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolicLinks {
    /// The target is read.
    Follow,
    /// A link is an error.
    Reject,
}

/// Why a file could not be read as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The file does not exist.
    NotFound,
    /// The file exists but is unusable.
    Unreadable {
        /// A stable code: `unreadable`, `too_large` or `not_utf8`.
        code: &'static str,
        /// The reason, and the fix where there is one.
        message: String,
    },
}

impl ReadError {
    fn unreadable(message: impl Into<String>) -> Self {
        Self::Unreadable { code: "unreadable", message: message.into() }
    }
}

/// Reads a regular file of bounded size, without waiting for a pipe.
pub fn read_text(path: &Path, links: SymbolicLinks) -> Result<(String, Metadata), ReadError> {
    let mut flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    if links == SymbolicLinks::Reject {
        flags |= OFlags::NOFOLLOW;
    }
    let file = File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)
        .map_err(|error| explain(&error))?;
    let metadata = file.metadata().map_err(|error| explain(&error))?;
    if metadata.is_dir() {
        return Err(ReadError::unreadable("expected a file, found a folder"));
    }
    if !metadata.is_file() {
        return Err(ReadError::unreadable("not a regular file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    (&file).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| explain(&error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, metadata)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
            Err(ReadError::Unreadable { code: "not_utf8", message: format!("line {line}: not valid UTF-8") })
        }
    }
}

fn too_large() -> ReadError {
    let message = format!("the file exceeds the limit of {} KiB for a definition", MAX_BYTES / 1024);
    ReadError::Unreadable { code: "too_large", message }
}

fn explain(error: &io::Error) -> ReadError {
    if error.kind() == io::ErrorKind::NotFound {
        return ReadError::NotFound;
    }
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return ReadError::unreadable("symbolic links are not followed; replace the link by the file");
    }
    if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        return ReadError::unreadable("not a regular file");
    }
    ReadError::unreadable(format!("cannot read the file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_editors_are_not_definitions() {
        for (file, expected) in [
            ("a.skill", Some(FileForm::Skill)),
            ("a.yaml", Some(FileForm::Yaml)),
            ("a.yml", Some(FileForm::Yaml)),
            ("a@1.0.0.json", Some(FileForm::Json)),
            ("a.SKILL", Some(FileForm::Skill)),
            ("a.Yml", Some(FileForm::Yaml)),
            ("A.JSON", Some(FileForm::Json)),
            ("天気.skill", Some(FileForm::Skill)),
            (".a.skill.swp", None),
            (".a.skill", None),
            ("a.skill~", None),
            ("#a.skill#", None),
            (".#a.skill", None),
            ("a.skill.tmp", None),
            ("a.skill.bak", None),
            ("4913", None),
            ("bundle.yaml", None),
            ("toolset.yaml", None),
            ("README.md", None),
            (".json", None),
        ] {
            assert_eq!(file_form(file), expected, "{file}");
        }
    }

    #[test]
    fn a_file_name_gives_name_and_version() {
        assert_eq!(name_and_version("skills/b/a@1.0.0.json"), ("a", Some("1.0.0")));
        assert_eq!(name_and_version("skills/a.skill"), ("a", None));
    }

    fn check_unreadable(path: &Path, expected: (&str, &str)) {
        match read_text(path, SymbolicLinks::Reject) {
            Err(ReadError::Unreadable { code, message }) => assert_eq!((code, message.as_str()), expected),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("good"), "text").unwrap();
        assert_eq!(read_text(&path("good"), SymbolicLinks::Reject).unwrap().0, "text");
        assert_eq!(read_text(&path("none"), SymbolicLinks::Reject).unwrap_err(), ReadError::NotFound);
        std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
        assert_eq!(read_text(&path("link"), SymbolicLinks::Follow).unwrap().0, "text");
        check_unreadable(
            &path("link"),
            ("unreadable", "symbolic links are not followed; replace the link by the file"),
        );
        std::fs::create_dir(path("folder")).unwrap();
        check_unreadable(&path("folder"), ("unreadable", "expected a file, found a folder"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        check_unreadable(&path("pipe"), ("unreadable", "not a regular file"));
        File::create(path("large")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        check_unreadable(
            &path("large"),
            ("too_large", "the file exceeds the limit of 1024 KiB for a definition"),
        );
        std::fs::write(path("latin"), b"a\nb\xff").unwrap();
        check_unreadable(&path("latin"), ("not_utf8", "line 2: not valid UTF-8"));
    }
}
