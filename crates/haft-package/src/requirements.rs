//! Requirements of Python tools: lines of `dependencies` and of `requirements.txt`, as their author wrote them.
//!
//! [`haft_core::requirement`] decides what is accepted: named packages of an index, with versions, markers and hashes.

use std::fmt;

use haft_core::problem::Problem;
use haft_core::requirement::{self, INVALID_REQUIREMENT, MAX_FILE_BYTES, Requirements, file_lines};
use serde::Serialize;

use crate::files::REQUIREMENTS;
use crate::problems::Problems;

pub use haft_core::requirement::{MAX_REQUIREMENTS, RequirementError};

/// One requirement, such as `requests>=2.31`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Requirement(String);

impl Requirement {
    /// Parses a requirement.
    ///
    /// ```
    /// use haft_package::requirements::Requirement;
    ///
    /// assert_eq!(Requirement::new(" requests >= 2.31 ").unwrap().as_str(), "requests >= 2.31");
    /// assert!(Requirement::new("--index-url https://example.com").is_err());
    /// assert!(Requirement::new("x @ https://example.com/x.whl").is_err());
    /// ```
    pub fn new(line: &str) -> Result<Self, RequirementError> {
        let line = line.trim();
        requirement::Requirement::parse(line).map(|_| Self(line.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parsed(&self) -> Option<requirement::Requirement> {
        requirement::Requirement::parse(&self.0).ok()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads `requirements.txt`. The fields of problems are `requirements.txt`, with the line.
pub fn read(text: &str) -> Result<Vec<Requirement>, Vec<Problem>> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("has {} bytes; the limit is {MAX_FILE_BYTES}", text.len());
        return Err(vec![Problem::new(REQUIREMENTS, "too_large", message)]);
    }
    let mut problems = Problems::default();
    let mut found = Vec::new();
    for (number, line) in file_lines(text) {
        let mut report = |code: &str, message: String| {
            problems.push(Problem::new(REQUIREMENTS, code, message).at(number, None));
        };
        if found.len() >= MAX_REQUIREMENTS {
            report("too_large", format!("has more than {MAX_REQUIREMENTS} requirements"));
            break;
        }
        // Continued lines are indented.
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match Requirement::new(&line) {
            Ok(requirement) => found.push(requirement),
            Err(error) => report(INVALID_REQUIREMENT, error.to_string()),
        }
    }
    problems.or(found)
}

/// Checks that either all requirements have hashes or none, and that those with hashes have one version: installers
/// reject anything else.
pub fn check_hashes(requirements: &[&Requirement]) -> Option<Problem> {
    let parsed = requirements.iter().filter_map(|requirement| requirement.parsed()).collect();
    Requirements::new(parsed, REQUIREMENTS).err()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_stay_as_their_author_wrote_them() {
        for good in [
            "requests",
            "requests >= 2.31, < 3",
            "rich[all]==13.*",
            "a.b_c-d (~=1.0)",
            "numpy==1!2.0+local",
            "tomli; python_version < '3.11'",
            "x[a, b]>1 ; sys_platform == \"linux\" and python_version >= '3.9'",
        ] {
            assert_eq!(Requirement::new(good).map(|r| r.to_string()), Ok(good.to_owned()));
        }
        for bad in
            ["", "-r other.txt", "-e .", "x @ https://evil.test/x.whl", "./x", "x.whl", "x$(id)", "x\n-r y"]
        {
            assert!(Requirement::new(bad).is_err(), "{bad}");
        }
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
        assert_eq!(check_hashes(&found.iter().collect::<Vec<_>>()).unwrap().code, "missing_hash");
        assert_eq!(check_hashes(&[&found[0]]), None);
        assert_eq!(check_hashes(&[&found[1]]), None);
        let loose = Requirement::new(&format!("x>=1 --hash=sha256:{digits}")).unwrap();
        assert_eq!(check_hashes(&[&loose]).unwrap().code, INVALID_REQUIREMENT);
        let problems = read("ok\n-r x\nb --hash=md5:1\nc --no-deps\n--index-url x\n").unwrap_err();
        let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(3), Some(4), Some(5)]);
    }
}
