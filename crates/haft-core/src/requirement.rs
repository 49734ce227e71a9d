//! Python requirements: the lines of `dependencies` and of `requirements.txt`.
//!
//! Only packages of an index can be required, by name, extras, versions and marker (PEP 508), and with hashes. Options,
//! paths and URLs are rejected: they would let a definition read files or choose servers. Nothing here installs anything.

mod marker;
mod set;

use std::fmt;

use crate::problem::excerpt;

pub use set::{Requirements, file_lines};

/// The maximum number of requirements of a tool.
pub const MAX_REQUIREMENTS: usize = 500;
/// The maximum size of `requirements.txt`, in bytes: every requirement may have many hashes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// The code of a requirement that is invalid.
pub const INVALID_REQUIREMENT: &str = "invalid_requirement";

/// The maximum length of a requirement without its hashes, in bytes.
const MAX_LINE_BYTES: usize = 500;
/// The maximum number of hashes of a requirement.
const MAX_HASHES: usize = 200;
/// The maximum length of a requirement with its hashes, in bytes.
const MAX_HASHED_BYTES: usize = 64 * 1024;
/// The operators of versions; one that is the start of another comes later.
const OPERATORS: [&str; 8] = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"];
/// The hashes that installers accept, and the number of their hexadecimal digits.
const HASHES: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];
/// The ends of names of files that contain a package.
const ARCHIVES: [&str; 6] = [".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz", ".egg"];

/// A required package: its name, its versions, and for which machines it is required.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The name in lower case, with `-` between words.
    name: String,
    extras: Vec<String>,
    /// The operator and the version, such as `>=` and `13`.
    versions: Vec<(&'static str, String)>,
    marker: Option<String>,
    /// Such as `sha256:…`.
    hashes: Vec<String>,
}

/// Why a requirement is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// It has no text.
    #[error("empty requirement; expected a package such as `rich>=13`")]
    Empty,
    /// It is too long.
    #[error(
        "the requirement has {0} bytes; the limit is {MAX_LINE_BYTES}, and {MAX_HASHED_BYTES} with its hashes"
    )]
    TooLong(usize),
    /// It is an option of an installer.
    #[error("option `{0}` is not supported; list each package in a line of its own, such as `rich>=13`")]
    Option(String),
    /// It is a path or a URL.
    #[error(
        "`{0}` is a path or a URL, which is not supported; require the package by its name, and put its wheel \
         into the folder `wheels` if no index has it"
    )]
    Location(String),
    /// The name is invalid.
    #[error("invalid package name `{0}`; expected letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The extras are invalid.
    #[error("invalid extras `{0}`; expected names in brackets, such as `httpx[http2]`")]
    Extras(String),
    /// The versions are invalid.
    #[error("invalid version `{0}`; expected an operator and a version, such as `>=13,<15`")]
    Versions(String),
    /// The marker is invalid.
    #[error("invalid marker `{0}`; expected a condition such as `python_version < \"3.12\"`")]
    Marker(String),
    /// A hash is invalid.
    #[error("invalid hash `{0}`; expected `--hash=sha256:` and 64 hexadecimal digits")]
    Hash(String),
    /// There are too many hashes.
    #[error("the requirement has {0} hashes; the limit is {MAX_HASHES}")]
    TooManyHashes(usize),
}

impl Requirement {
    /// Parses a requirement, such as `httpx[http2]>=0.27,<1; python_version >= "3.9"`, with its hashes.
    pub fn parse(line: &str) -> Result<Self, RequirementError> {
        if line.len() > MAX_HASHED_BYTES {
            return Err(RequirementError::TooLong(line.len()));
        }
        let (text, hashes) = match line.split_once(" --hash").or_else(|| line.split_once("\t--hash")) {
            Some((text, _)) => (text, self::hashes(line.get(text.len()..).unwrap_or_default())?),
            None => (line, Vec::new()),
        };
        let text = text.trim();
        check_form(text)?;
        let (head, marker) = match text.split_once(';') {
            Some((head, marker)) => (head.trim_end(), Some(marker::normalize(marker)?)),
            None => (text, None),
        };
        let name_end = head.find(|c: char| !is_name_char(c)).unwrap_or(head.len());
        let (name, rest) = head.split_at(name_end);
        let name = normalize_name(name).ok_or_else(|| RequirementError::Name(excerpt(head, 60)))?;
        let (extras, rest) = extras(rest.trim_start())?;
        let versions = versions(rest)?;
        Ok(Self { name, extras, versions, marker, hashes })
    }

    /// Returns the name of the package in lower case, with `-` between words.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it has hashes.
    pub fn has_hashes(&self) -> bool {
        !self.hashes.is_empty()
    }

    /// Returns whether exactly one version is accepted.
    pub fn is_pinned(&self) -> bool {
        self.versions
            .iter()
            .any(|(operator, version)| *operator == "===" || *operator == "==" && !version.contains('*'))
    }
}

/// Writes the line of a requirements file; equal requirements have equal lines.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.extras.is_empty() {
            write!(f, "[{}]", self.extras.join(","))?;
        }
        for (index, (operator, version)) in self.versions.iter().enumerate() {
            write!(f, "{}{operator}{version}", if index == 0 { "" } else { "," })?;
        }
        if let Some(marker) = &self.marker {
            write!(f, " ; {marker}")?;
        }
        self.hashes.iter().try_for_each(|hash| write!(f, " --hash={hash}"))
    }
}

/// Rejects what is not a requirement of a package by its name.
fn check_form(text: &str) -> Result<(), RequirementError> {
    if text.is_empty() {
        return Err(RequirementError::Empty);
    }
    if text.len() > MAX_LINE_BYTES {
        return Err(RequirementError::TooLong(text.len()));
    }
    if text.starts_with('-') || text.contains(" --") {
        let option = text.split_whitespace().find(|word| word.starts_with('-')).unwrap_or(text);
        let name = option.split('=').next().unwrap_or(option);
        return Err(RequirementError::Option(excerpt(name, 60)));
    }
    let head = text.split(';').next().unwrap_or(text).trim_end();
    let is_archive = ARCHIVES.iter().any(|end| head.to_ascii_lowercase().ends_with(end));
    if is_archive || head.contains([':', '/', '\\', '@']) || head.starts_with(['.', '~']) {
        // The text may have credentials.
        let shown = head.split(['@', ':']).next().unwrap_or_default().trim();
        return Err(RequirementError::Location(excerpt(shown, 60)));
    }
    Ok(())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Returns the normalized form of a name (PEP 503); `None` if it is invalid.
fn normalize_name(name: &str) -> Option<String> {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !name.chars().all(is_name_char) || !is_end(name.chars().next()) || !is_end(name.chars().next_back()) {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    Some(out)
}

/// Parses `[http2,brotli]` and returns the rest of the text.
fn extras(text: &str) -> Result<(Vec<String>, &str), RequirementError> {
    let Some(inner) = text.strip_prefix('[') else { return Ok((Vec::new(), text)) };
    let invalid = || RequirementError::Extras(excerpt(text, 60));
    let (inner, rest) = inner.split_once(']').ok_or_else(invalid)?;
    let mut extras = Vec::new();
    for extra in inner.split(',').map(str::trim).filter(|_| !inner.trim().is_empty()) {
        extras.push(normalize_name(extra).ok_or_else(invalid)?);
    }
    extras.sort();
    extras.dedup();
    Ok((extras, rest))
}

/// Parses `>=13,<15`, also in parentheses.
fn versions(text: &str) -> Result<Vec<(&'static str, String)>, RequirementError> {
    let invalid = |part: &str| RequirementError::Versions(excerpt(part.trim(), 60));
    let text = text.trim();
    let text = match text.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').ok_or_else(|| invalid(text))?.trim(),
        None => text,
    };
    let mut versions = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let found =
            OPERATORS.iter().find_map(|operator| Some((*operator, part.trim().strip_prefix(operator)?)));
        let (operator, version) = found.ok_or_else(|| invalid(part))?;
        let version = version.trim();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '+' | '!' | '-' | '_');
        if version.is_empty() || !version.chars().all(fits) {
            return Err(invalid(part));
        }
        versions.push((operator, version.to_owned()));
    }
    versions.sort();
    versions.dedup();
    Ok(versions)
}

/// Parses `--hash=sha256:… --hash=…`.
fn hashes(text: &str) -> Result<Vec<String>, RequirementError> {
    let mut hashes = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--hash") {
            Some("") => words.next().unwrap_or_default(),
            Some(value) => value.strip_prefix('=').unwrap_or_default(),
            None => "",
        };
        let is_known = value.split_once(':').is_some_and(|(name, digits)| {
            HASHES.contains(&(name, digits.len())) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if !is_known {
            return Err(RequirementError::Hash(excerpt(word, 60)));
        }
        hashes.push(value.to_ascii_lowercase());
    }
    hashes.sort();
    hashes.dedup();
    if hashes.len() > MAX_HASHES { Err(RequirementError::TooManyHashes(hashes.len())) } else { Ok(hashes) }
}

#[cfg(test)]
#[path = "requirement/requirement_tests.rs"]
mod tests;
