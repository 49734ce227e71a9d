//! The links of a page to files and headings of the repository.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Returns the broken links of a page.
pub(crate) fn broken(root: &Path, path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut broken = Vec::new();
    for (number, line) in prose(&text) {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let target = if file.is_empty() { PathBuf::from(path) } else { normal(&folder.join(file)) };
            let is_found = root.join(&target).exists()
                && (anchor.is_empty() || headings(&root.join(&target)).contains(anchor));
            if !is_found {
                broken.push(format!("{path}:{number}: `{link}` leads nowhere"));
            }
        }
    }
    broken
}

/// Returns the lines outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

fn headings(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap_or_default();
    prose(&text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| anchor(line)).collect()
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Resolves `..` without accessing the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[test]
fn links_to_missing_files_and_headings_are_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    let page = "# One\n\n## `Two`, and three\n\n[a](#one) [b](../README.md#two-and-three) [c](https://x.example/#y)\n\
                [d](nothing.md) [e](#four)\n\n```\n[f](none.md)\n# Five\n```\n";
    for name in ["README.md", "docs/page.md"] {
        std::fs::write(folder.path().join(name), page).unwrap();
    }
    let expected = ["docs/page.md:6: `nothing.md` leads nowhere", "docs/page.md:6: `#four` leads nowhere"];
    assert_eq!(broken(folder.path(), "docs/page.md"), expected);
}
