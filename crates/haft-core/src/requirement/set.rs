//! All requirements of a tool, and the file `requirements.txt`.

use super::{INVALID_REQUIREMENT, MAX_FILE_BYTES, MAX_REQUIREMENTS, Requirement};
use crate::problem::Problem;

/// All requirements of a tool, sorted; equal ones count once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    list: Vec<Requirement>,
}

impl Requirements {
    /// Parses the requirement lines of a definition; `field` is their field.
    pub fn parse_lines(lines: &[String], field: &str) -> Result<Self, Vec<Problem>> {
        let numbered = lines.iter().enumerate().map(|(index, line)| {
            let field = format!("{field}[{index}]");
            (line.clone(), Problem::new(field, INVALID_REQUIREMENT, ""))
        });
        Self::parse(numbered, field)
    }

    /// Parses the text of a file `requirements.txt`; `field` is its name.
    pub fn parse_file(text: &str, field: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > MAX_FILE_BYTES {
            let message = format!("the file has {} bytes; the limit is {MAX_FILE_BYTES}", text.len());
            return Err(vec![Problem::new(field, "too_large", message)]);
        }
        let numbered = file_lines(text).map(|(number, line)| {
            let problem = Problem::new(field, INVALID_REQUIREMENT, "");
            (line, problem.at(number, None))
        });
        Self::parse(numbered, field)
    }

    /// Parses lines, each with the problem that it becomes if it is invalid.
    fn parse(lines: impl Iterator<Item = (String, Problem)>, field: &str) -> Result<Self, Vec<Problem>> {
        let (mut list, mut problems) = (Vec::new(), Vec::new());
        for (line, problem) in lines {
            if list.len() + problems.len() >= MAX_REQUIREMENTS {
                let message = format!("the limit is {MAX_REQUIREMENTS} requirements");
                problems.push(Problem::new(field, "too_large", message));
                break;
            }
            match Requirement::parse(&line) {
                Ok(requirement) => list.push(requirement),
                Err(error) => problems.push(Problem { message: error.to_string(), ..problem }),
            }
        }
        if problems.is_empty() { Self::new(list, field) } else { Err(problems) }
    }

    /// Joins the requirements of a definition and of its folder; the hashes must be complete.
    pub fn join(&self, other: &Self, field: &str) -> Result<Self, Vec<Problem>> {
        Self::new(self.list.iter().chain(&other.list).cloned().collect(), field)
    }

    /// Collects requirements; the hashes must be complete.
    pub fn new(mut list: Vec<Requirement>, field: &str) -> Result<Self, Vec<Problem>> {
        list.sort();
        list.dedup();
        let mut problems = Vec::new();
        if list.iter().any(Requirement::has_hashes) {
            for requirement in &list {
                let name = requirement.name();
                if !requirement.has_hashes() {
                    let message =
                        format!("`{name}` has no `--hash`; if one requirement has a hash, all need one");
                    problems.push(Problem::new(field, "missing_hash", message));
                } else if !requirement.is_pinned() {
                    let message =
                        format!("`{name}` has a hash and needs an exact version, such as `{name}==1.0`");
                    problems.push(Problem::new(field, INVALID_REQUIREMENT, message));
                }
            }
        }
        if problems.is_empty() { Ok(Self { list }) } else { Err(problems) }
    }

    /// Returns whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the requirements.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.list.iter()
    }

    /// Returns whether the hashes of all packages are checked.
    pub fn has_hashes(&self) -> bool {
        self.list.iter().any(Requirement::has_hashes)
    }
}

/// Returns the lines of `requirements.txt` without comments, joined where they end with `\`, each with its number.
pub fn file_lines(text: &str) -> impl Iterator<Item = (u32, String)> + '_ {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (index, first) = lines.next()?;
        let mut line = first.to_owned();
        while line.ends_with('\\') {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next);
        }
        Some((u32::try_from(index + 1).unwrap_or(u32::MAX), without_comment(&line).trim().to_owned()))
    })
    .filter(|(_, line)| !line.is_empty())
}

/// Removes a comment, which begins with `#` at the start of the line or after a space.
fn without_comment(line: &str) -> &str {
    let is_start =
        |at: usize| line.get(..at).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']));
    let start = line.match_indices('#').map(|(at, _)| at).find(|at| is_start(*at));
    line.get(..start.unwrap_or(line.len())).unwrap_or(line)
}
