//! Selects operations of a document.

use super::import::Selectable;

/// Selects operations: every non-empty list must have a matching entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Tags.
    pub tags: Vec<String>,
    /// Path prefixes, by whole segments: `/repos` matches `/repos/{id}` but not `/repositories`.
    pub paths: Vec<String>,
    /// Patterns with `*` and `?` for the operation id or `METHOD /path`.
    pub include: Vec<String>,
    /// Patterns of operations to exclude.
    pub exclude: Vec<String>,
}

impl OperationFilter {
    /// Returns whether all operations match.
    pub fn matches_all(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn matches(&self, operation: &impl Selectable) -> bool {
        let has_tag = self.tags.is_empty()
            || operation.tags().into_iter().any(|tag| self.tags.iter().any(|own| own == tag));
        let has_path =
            self.paths.is_empty() || self.paths.iter().any(|start| is_below(operation.path(), start));
        let fits = |pattern: &String| {
            glob(pattern, operation.key()) || operation.id().is_some_and(|id| glob(pattern, id))
        };
        let included = self.include.is_empty() || self.include.iter().any(fits);
        has_tag && has_path && included && !self.exclude.iter().any(fits)
    }
}

fn is_below(path: &str, start: &str) -> bool {
    let start = start.trim_end_matches('/');
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Matches `*` (anything) and `?` (one character), ignoring case, in linear memory and without exponential backtracking.
fn glob(pattern: &str, text: &str) -> bool {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (pattern, text) = (lower(pattern), lower(text));
    let (mut p, mut t) = (0, 0);
    // The position of the last star, and how much text it has matched.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || text.get(t) == Some(c) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, reached)) = star else { return false };
                star = Some((at, reached + 1));
                p = at + 1;
                t = reached + 1;
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("repos/*", "repos/get", true),
            ("GET /repos/*", "get /repos/{owner}/{repo}", true),
            ("*pets*", "listPetsByOwner", true),
            ("get?et", "getPet", true),
            ("get?et", "getPlanet", false),
            ("", "x", false),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            (&"*a".repeat(50), &"a".repeat(5000), true),
            (&format!("{}b", "*a".repeat(50)), &"a".repeat(5000), false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
        for (path, start, expected) in [
            ("/repos/{id}", "/repos", true),
            ("/repos", "/repos/", true),
            ("/repositories", "/repos", false),
            ("/pets", "/", true),
        ] {
            assert_eq!(is_below(path, start), expected, "{path} {start}");
        }
    }
}
