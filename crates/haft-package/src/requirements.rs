//! Requirements of Python tools: lines of `dependencies` and of `requirements.txt`.
//!
//! Only named packages of an index are accepted (PEP 508 without URLs): everything else would install code that the
//! manifest does not name.

use std::fmt;

use haft_core::problem::{Problem, excerpt};
use serde::Serialize;

use crate::files::REQUIREMENTS;
use crate::problems::Problems;

/// The maximum number of requirements.
pub const MAX_REQUIREMENTS: usize = 200;
/// The maximum length of one requirement, in bytes.
pub const MAX_REQUIREMENT: usize = 512;
/// The maximum size of `requirements.txt`, in bytes: every requirement may have many hashes.
const MAX_TEXT: usize = 1 << 20;
/// The maximum number of hashes of one requirement.
const MAX_HASHES: usize = 100;

/// One requirement, such as `requests>=2.31`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Requirement(String);

/// Why a line is not an accepted requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// It is empty.
    #[error("is empty; remove it")]
    Empty,
    /// It is too long.
    #[error("has more than {MAX_REQUIREMENT} bytes")]
    TooLong,
    /// It is an option of pip.
    #[error(
        "`{0}` is not allowed in a package: the index and the installer are settings of the installation"
    )]
    Option(String),
    /// It includes another file.
    #[error("`{0}` includes another file, which is not allowed; list its requirements here")]
    Include(String),
    /// It is an editable installation.
    #[error(
        "`{0}` installs source code in place, which is not allowed; build a wheel and add it to `wheels/`"
    )]
    Editable(String),
    /// It is a URL.
    #[error(
        "installs from a URL, which is not allowed; name a package of the index, or add a wheel to `wheels/`"
    )]
    Url,
    /// It is a path.
    #[error(
        "installs from a path, which is not allowed; name a package of the index, or add a wheel to `wheels/`"
    )]
    Path,
    /// The name is invalid.
    #[error("invalid package name `{0}`; expected a requirement such as `requests>=2.31`")]
    Name(String),
    /// The rest is invalid.
    #[error("unexpected `{0}`; expected a requirement such as `requests>=2.31` or `rich[all]==13.0`")]
    Syntax(String),
    /// A hash is invalid.
    #[error("invalid hash `{0}`; expected `--hash=sha256:` and 64 hexadecimal digits")]
    Hash(String),
}

impl Requirement {
    /// Parses a requirement of `dependencies`, which has no hashes.
    ///
    /// ```
    /// use haft_package::requirements::Requirement;
    ///
    /// assert_eq!(Requirement::new(" requests >= 2.31 ").unwrap().as_str(), "requests >= 2.31");
    /// assert!(Requirement::new("--index-url https://example.com").is_err());
    /// assert!(Requirement::new("x @ https://example.com/x.whl").is_err());
    /// ```
    pub fn new(line: &str) -> Result<Self, RequirementError> {
        check(line.trim()).map(|()| Self(line.trim().to_owned()))
    }

    /// Parses a line of `requirements.txt`, which may have hashes.
    fn with_hashes(line: &str) -> Result<Self, RequirementError> {
        let (requirement, options) = match line.find(" --").filter(|_| !line.starts_with('-')) {
            Some(at) => line.split_at_checked(at).unwrap_or((line, "")),
            None => (line, ""),
        };
        let mut all = Self::new(requirement)?.0;
        for (number, option) in options.split_whitespace().enumerate() {
            let Some(hash) = option.strip_prefix("--hash=") else {
                return Err(RequirementError::Option(excerpt(option, 40)));
            };
            let digits = hash.strip_prefix("sha256:").unwrap_or_default();
            let is_hash = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hash || number >= MAX_HASHES {
                return Err(RequirementError::Hash(excerpt(hash, 40)));
            }
            all.push(' ');
            all.push_str(option);
        }
        Ok(Self(all))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the package, normalised as indexes do.
    pub fn package(&self) -> String {
        let end = self.0.find(|c: char| !is_name_char(c)).unwrap_or(self.0.len());
        let mut name = String::new();
        for c in self.0.get(..end).unwrap_or_default().chars() {
            match c {
                '-' | '_' | '.' if name.ends_with('-') => {}
                '-' | '_' | '.' => name.push('-'),
                c => name.push(c.to_ascii_lowercase()),
            }
        }
        name
    }

    /// Returns whether it has hashes.
    pub fn has_hashes(&self) -> bool {
        self.0.contains(" --hash=")
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads `requirements.txt`. The fields of problems are `requirements.txt`, with the line.
pub fn read(text: &str) -> Result<Vec<Requirement>, Vec<Problem>> {
    if text.len() > MAX_TEXT {
        let message = format!("has {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(vec![Problem::new(REQUIREMENTS, "too_large", message)]);
    }
    let mut problems = Problems::default();
    let mut found = Vec::new();
    for (number, line) in logical_lines(text) {
        let mut report = |code: &str, message: String| {
            problems.push(Problem::new(REQUIREMENTS, code, message).at(number, None));
        };
        if found.len() >= MAX_REQUIREMENTS {
            report("too_large", format!("has more than {MAX_REQUIREMENTS} requirements"));
            break;
        }
        match Requirement::with_hashes(&line) {
            Ok(requirement) => found.push(requirement),
            Err(error) => report("invalid_requirement", error.to_string()),
        }
    }
    problems.or(found)
}

/// Checks that either all requirements have hashes or none: pip rejects a mixture.
pub fn check_hashes(requirements: &[&Requirement]) -> Option<Problem> {
    let hashed = requirements.iter().filter(|requirement| requirement.has_hashes()).count();
    let plain = requirements.iter().find(|requirement| !requirement.has_hashes())?;
    (hashed > 0).then(|| {
        let message = format!(
            "`{}` has no `--hash`, but others have; add hashes to all requirements, in `{REQUIREMENTS}`, or to none",
            excerpt(plain.as_str(), 60)
        );
        Problem::new(REQUIREMENTS, "mixed_hashes", message)
    })
}

/// Returns the lines without comments and with continued lines joined, each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(u32, String)> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    let mut continued = false;
    for (number, line) in (1u32..).zip(text.lines()) {
        let line = line.trim_end();
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        let part = without_comment(part).trim();
        match lines.last_mut().filter(|_| continued) {
            Some((_, joined)) => {
                joined.push(' ');
                joined.push_str(part);
            }
            None => lines.push((number, part.to_owned())),
        }
        continued = more;
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines.into_iter().map(|(number, line)| (number, line.trim().to_owned())).collect()
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(before, _)| before)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn check(line: &str) -> Result<(), RequirementError> {
    if line.is_empty() {
        return Err(RequirementError::Empty);
    }
    if line.len() > MAX_REQUIREMENT {
        return Err(RequirementError::TooLong);
    }
    check_source(line)?;
    let end = line.find(|c: char| !is_name_char(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at_checked(end).unwrap_or((line, ""));
    let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !ends_well(name.chars().next()) || !ends_well(name.chars().last()) {
        return Err(RequirementError::Name(excerpt(line, 40)));
    }
    let unexpected = |text: &str| RequirementError::Syntax(excerpt(text.trim(), 40));
    let (rest, marker) = rest.split_once(';').map_or((rest, None), |(rest, marker)| (rest, Some(marker)));
    if marker.is_some_and(|marker| !is_marker(marker)) {
        return Err(unexpected(marker.unwrap_or_default()));
    }
    let rest = extras(rest.trim()).ok_or_else(|| unexpected(rest))?.trim();
    let rest = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest).trim();
    if rest.is_empty() || rest.split(',').all(is_version_clause) { Ok(()) } else { Err(unexpected(rest)) }
}

/// Rejects everything that is not a package of the index, with the reason.
fn check_source(line: &str) -> Result<(), RequirementError> {
    let first = line.split([' ', '=']).next().unwrap_or_default();
    match first {
        "-r" | "--requirement" | "-c" | "--constraint" => {
            return Err(RequirementError::Include(first.to_owned()));
        }
        "-e" | "--editable" => return Err(RequirementError::Editable(first.to_owned())),
        _ if line.starts_with('-') => return Err(RequirementError::Option(excerpt(first, 40))),
        _ => {}
    }
    if line.contains("://") || line.contains(" @") || line.contains('@') {
        return Err(RequirementError::Url);
    }
    let target = line.split(';').next().unwrap_or_default();
    let lower = target.trim().to_ascii_lowercase();
    let is_path = target.contains(['/', '\\']) || line.starts_with(['.', '~']);
    if is_path || [".whl", ".zip", ".tar.gz", ".tgz"].iter().any(|end| lower.ends_with(end)) {
        return Err(RequirementError::Path);
    }
    Ok(())
}

/// Removes `[extra,other]` from the start; `None` if it is malformed.
fn extras(rest: &str) -> Option<&str> {
    let Some(inner) = rest.strip_prefix('[') else { return Some(rest) };
    let (names, rest) = inner.split_once(']')?;
    let is_name = |name: &str| !name.trim().is_empty() && name.trim().chars().all(is_name_char);
    names.split(',').all(is_name).then_some(rest)
}

fn is_version_clause(clause: &str) -> bool {
    const OPERATORS: [&str; 8] = ["===", "==", "!=", "<=", ">=", "~=", "<", ">"];
    let clause = clause.trim();
    let Some(version) = OPERATORS.iter().find_map(|operator| clause.strip_prefix(operator)) else {
        return false;
    };
    let version = version.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '+' | '!' | '-' | '_');
    !version.is_empty() && version.chars().all(fits)
}

/// Returns whether a text can be an environment marker; pip parses it exactly.
fn is_marker(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || " _.'\"<>=!~()-+,*".contains(c);
    !text.trim().is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_packages_are_accepted() {
        for good in [
            "requests",
            "requests>=2.31",
            "requests >= 2.31, < 3",
            "rich[all]==13.*",
            "a.b_c-d (~=1.0)",
            "numpy==1!2.0+local",
            "tomli; python_version < '3.11'",
            "x[a, b]>1 ; sys_platform == \"linux\" and python_version >= '3.9'",
        ] {
            assert_eq!(Requirement::new(good).map(|r| r.to_string()), Ok(good.to_owned()));
        }
        assert_eq!(Requirement::new("Foo__Bar.baz>1").unwrap().package(), "foo-bar-baz");
    }

    #[test]
    fn everything_that_is_not_a_package_of_the_index_is_rejected_with_a_reason() {
        let reason = |line: &str| Requirement::new(line).unwrap_err().to_string();
        for (line, expected) in [
            ("", "is empty"),
            ("-r other.txt", "includes another file"),
            ("--requirement=x", "includes another file"),
            ("-e .", "installs source code in place"),
            ("--index-url https://evil.test", "`--index-url` is not allowed"),
            ("--extra-index-url=https://evil.test", "`--extra-index-url` is not allowed"),
            ("-i https://evil.test", "`-i` is not allowed"),
            ("x @ https://evil.test/x.whl", "from a URL"),
            ("x@file:///x", "from a URL"),
            ("git+https://evil.test/x", "from a URL"),
            ("./x", "from a path"),
            ("../x", "from a path"),
            ("/x", "from a path"),
            ("~/x", "from a path"),
            ("x.whl", "from a path"),
            ("C:\\x", "from a path"),
            ("x==1.0 --hash=sha256:00", "unexpected"),
            ("x; import os; os.system('x')", "unexpected"),
            ("x y", "unexpected"),
            ("x=1", "unexpected"),
            ("x[", "unexpected"),
            ("x>=", "unexpected"),
            ("-", "not allowed"),
            ("é", "invalid package name"),
            ("x-", "invalid package name"),
            ("x$(id)", "unexpected"),
            ("x\n--index-url y", "unexpected"),
        ] {
            assert!(reason(line).contains(expected), "{line:?}: {}", reason(line));
        }
        assert_eq!(Requirement::new(&"x".repeat(600)), Err(RequirementError::TooLong));
    }

    #[test]
    fn requirements_txt_may_have_comments_continued_lines_and_hashes() {
        let digits = "0f".repeat(32);
        let text = format!(
            "# comment\n\nrequests==2.31 \\\n    --hash=sha256:{digits} \\\n    --hash=sha256:{digits}\nrich>=13  # why\n"
        );
        let found = read(&text).unwrap();
        assert_eq!(
            found.iter().map(Requirement::as_str).collect::<Vec<_>>(),
            [format!("requests==2.31 --hash=sha256:{digits} --hash=sha256:{digits}").as_str(), "rich>=13"]
        );
        assert_eq!(check_hashes(&found.iter().collect::<Vec<_>>()).unwrap().code, "mixed_hashes");
        assert_eq!(check_hashes(&[&found[0]]), None);
        assert_eq!(check_hashes(&[&found[1]]), None);
        let problems = read("ok\n-r x\nb --hash=md5:1\nc --no-deps\n--index-url x\n").unwrap_err();
        insta::assert_snapshot!(haft_core::problem::join(&problems), @"line 2: `requirements.txt`: `-r` includes another file, which is not allowed; list its requirements here; line 3: `requirements.txt`: invalid hash `md5:1`; expected `--hash=sha256:` and 64 hexadecimal digits; line 4: `requirements.txt`: `--no-deps` is not allowed in a package: the index and the installer are settings of the installation; line 5: `requirements.txt`: `--index-url` is not allowed in a package: the index and the installer are settings of the installation");
    }
}
