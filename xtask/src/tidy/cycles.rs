//! Import cycles between the modules of a crate: a module never imports, directly or through others, one that imports it.
//!
//! Checks the modules that `lib.rs` declares, each with its folder, and single files. Imports are read from the text: paths
//! that start with `crate`, `super` or `self`. Tests are skipped.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;

/// A crate whose modules are checked.
struct Checked {
    /// The folder of its sources.
    sources: &'static str,
    /// Whether single files are checked, too.
    files: bool,
    /// The modules that may be in a cycle.
    allowed: &'static [&'static str],
}

const CRATES: &[Checked] = &[
    Checked { sources: "crates/haft-platform/src/", files: true, allowed: &[] },
    Checked { sources: "crates/haft-server/src/", files: true, allowed: &[] },
    Checked { sources: "crates/haft-store/src/", files: false, allowed: &[] },
];

const REMEDY: &str = "move what both need into a module below them, or hand it over as an argument";

/// Which modules each module imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks all files of the repository, each with its path from the workspace root.
pub(crate) fn check(files: &[(String, String)]) -> Vec<Finding> {
    CRATES.iter().flat_map(|checked| check_crate(checked, files)).collect()
}

fn check_crate(checked: &Checked, files: &[(String, String)]) -> Vec<Finding> {
    let modules = Modules::of(checked.sources, files);
    let graph = modules.graph();
    let mut findings = Vec::new();
    let folders = by_folder(&graph);
    let cycles = cycles(&folders);
    for cycle in &cycles {
        if cycle.iter().any(|module| !checked.allowed.contains(&module.as_str())) {
            findings.push(finding(checked, &folders, cycle));
        }
    }
    for module in checked.allowed {
        if !cycles.iter().flatten().any(|found| found == module) {
            let file = "xtask/src/tidy/cycles.rs".to_owned();
            let rule = format!("module `{module}` of `{}` is in no cycle any more", checked.sources);
            findings.push(Finding { file, line: 1, rule, remedy: "remove it from `allowed`" });
        }
    }
    if checked.files {
        findings.extend(self::cycles(&graph).iter().map(|cycle| finding(checked, &graph, cycle)));
    }
    findings
}

fn finding(checked: &Checked, graph: &Graph, cycle: &BTreeSet<String>) -> Finding {
    let imports = cycle.iter().map(|module| {
        let imported = graph.get(module).into_iter().flatten().filter(|other| cycle.contains(*other));
        format!("{module} imports {}", imported.cloned().collect::<Vec<_>>().join(", "))
    });
    let rule =
        format!("{} modules import each other: {}", cycle.len(), imports.collect::<Vec<_>>().join("; "));
    Finding { file: checked.sources.to_owned(), line: 1, rule, remedy: REMEDY }
}

/// The modules of a crate.
struct Modules<'a> {
    /// The text of each module, by its path without `crate`, separated by `/`.
    texts: BTreeMap<String, &'a str>,
    /// The modules whose `mod.rs` or `lib.rs` has no code of its own.
    declaring: BTreeSet<String>,
}

impl<'a> Modules<'a> {
    fn of(sources: &str, files: &'a [(String, String)]) -> Self {
        let mut modules = Self { texts: BTreeMap::new(), declaring: BTreeSet::new() };
        for (name, text) in files {
            let Some(module) = name.strip_prefix(sources).and_then(|path| path.strip_suffix(".rs")) else {
                continue;
            };
            if module == "lib" || module.ends_with("tests") {
                continue;
            }
            let path = match module.strip_suffix("/mod") {
                Some(folder) => {
                    modules.declaring.insert(folder.to_owned());
                    folder
                }
                None => module,
            };
            modules.texts.insert(path.to_owned(), text.as_str());
        }
        modules
    }

    fn graph(&self) -> Graph {
        let reexports = self.reexports();
        let mut graph = Graph::new();
        for (module, text) in &self.texts {
            let imported = graph.entry(module.clone()).or_default();
            for path in paths(&code_of(text)) {
                let Some(target) = self.resolve(module, &path, &reexports) else { continue };
                // A parent module without code of its own is no dependency of its files.
                let is_parent = self.declaring.contains(&target) && module.starts_with(&format!("{target}/"));
                if target != *module && !is_parent {
                    imported.insert(target);
                }
            }
        }
        graph
    }

    /// Returns the modules that the re-exported names of declaring modules come from.
    fn reexports(&self) -> BTreeMap<(String, String), String> {
        let mut found = BTreeMap::new();
        for module in &self.declaring {
            let code = code_of(self.texts.get(module).copied().unwrap_or_default());
            let mut paths = Vec::new();
            for (at, keyword) in code.match_indices("use ") {
                read_tree(code.get(at + keyword.len()..).unwrap_or_default(), &[], &mut paths);
            }
            for path in paths {
                let (Some(first), Some(name)) = (path.first(), path.last()) else { continue };
                let child = format!("{module}/{first}");
                if path.len() > 1 && self.texts.contains_key(&child) {
                    found.insert((module.clone(), name.clone()), child);
                }
            }
        }
        found
    }

    /// Returns the module that a path in `module` leads to; `None` for the root of the crate.
    fn resolve(
        &self,
        module: &str,
        path: &[String],
        reexports: &BTreeMap<(String, String), String>,
    ) -> Option<String> {
        let mut segments = path.iter();
        let mut current: Vec<&str> = match segments.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => module.split('/').collect(),
            _ => {
                let mut parent: Vec<&str> = module.split('/').collect();
                parent.pop();
                parent
            }
        };
        for segment in segments {
            if segment == "super" {
                current.pop();
                continue;
            }
            let here = current.join("/");
            let child = if here.is_empty() { segment.clone() } else { format!("{here}/{segment}") };
            if !self.texts.contains_key(&child) {
                let target = reexports.get(&(here.clone(), segment.clone())).cloned().unwrap_or(here);
                return Some(target).filter(|found| !found.is_empty());
            }
            current.push(segment);
        }
        Some(current.join("/")).filter(|found| !found.is_empty())
    }
}

/// Returns the graph of the modules that `lib.rs` declares.
fn by_folder(graph: &Graph) -> Graph {
    let top = |module: &str| module.split('/').next().unwrap_or_default().to_owned();
    let mut folders = Graph::new();
    for (module, imported) in graph {
        let from = top(module);
        let imported = imported.iter().map(|other| top(other)).filter(|other| *other != from);
        folders.entry(from.clone()).or_default().extend(imported.collect::<Vec<_>>());
    }
    folders
}

/// Returns the sets of modules that import each other, directly or through others.
fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let reaches = |from: &String, to: &String| reached.get(from).is_some_and(|found| found.contains(to));
    let mut cycles: Vec<BTreeSet<String>> = Vec::new();
    for module in graph.keys().filter(|module| reaches(module, module)) {
        if cycles.iter().all(|cycle| !cycle.contains(module)) {
            let both = graph.keys().filter(|other| reaches(module, other) && reaches(other, module));
            cycles.push(both.cloned().collect());
        }
    }
    cycles
}

/// Returns the modules that a module imports, directly or through others.
fn reachable<'a>(graph: &'a Graph, start: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = graph.get(start).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

/// Returns the text without comments and without the tests at its end.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let starts_tests = |next: &&str| next.starts_with("mod ") || next.starts_with("#[path");
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(starts_tests) {
            break;
        }
        code.push_str(line.split_once("//").map_or(line, |(code, _)| code));
        code.push('\n');
    }
    code
}

/// Returns the paths in a text that start with `crate`, `super` or `self`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code.get(..at).and_then(|text| text.chars().next_back());
            if before.is_some_and(|c| is_word(c) || c == ':' || c == '$') {
                continue;
            }
            read_tree(code.get(at..).unwrap_or_default(), &[], &mut found);
        }
    }
    found
}

/// Reads the path, or the tree of a `use` declaration, at the start of a text; adds each path to `found`. Returns the rest.
fn read_tree<'a>(text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            let before = rest.trim_start();
            if let Some(after) = before.strip_prefix('}') {
                return after;
            }
            let after = read_tree(before, prefix, found).trim_start();
            rest = after.strip_prefix(',').unwrap_or(after);
            if rest.len() == before.len() {
                return rest;
            }
        }
    }
    if let Some(rest) = text.strip_prefix('*') {
        found.push(prefix.to_vec());
        return rest;
    }
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return rest;
    }
    let mut path = prefix.to_vec();
    if word != "self" || path.is_empty() {
        path.push(word.to_owned());
    }
    let continues = |after: &&str| after.starts_with(|c: char| is_word(c) || c == '{' || c == '*');
    if let Some(after) = rest.strip_prefix("::").filter(continues) {
        return read_tree(after, &path, found);
    }
    found.push(path);
    match rest.trim_start().strip_prefix("as ") {
        Some(name) => name.trim_start().trim_start_matches(is_word),
        None => rest,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_CRATE: Checked = Checked { sources: "crates/a/src/", files: true, allowed: &[] };

    fn rules(checked: &Checked, files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), (*text).to_owned())).collect();
        check_crate(checked, &files).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn trees_are_read_as_paths() {
        let read = |text: &str| {
            let mut found = Vec::new();
            read_tree(text, &[], &mut found);
            found.into_iter().map(|path| path.join("::")).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("crate::a::B;", vec!["crate::a::B"]),
            ("crate::a::b(x, crate::c)", vec!["crate::a::b"]),
            (
                "crate::a::{self, B as C, d::{E, F},};",
                vec!["crate::a", "crate::a::B", "crate::a::d::E", "crate::a::d::F"],
            ),
            ("crate::{a, b::*};", vec!["crate::a", "crate::b"]),
            ("crate::a::B::<C>::new()", vec!["crate::a::B"]),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cycle_is_reported_with_its_imports() {
        let files = [
            ("lib.rs", "use crate::a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "mod c;\npub use c::B;"),
            ("b/c.rs", "fn f() { crate::a::g() }"),
            ("d.rs", "use crate::a::A; // use crate::e::E"),
        ];
        let cycle = "2 modules import each other: ";
        assert_eq!(
            rules(&TEST_CRATE, &files),
            [format!("{cycle}a imports b; b imports a"), format!("{cycle}a imports b/c; b/c imports a")]
        );
    }

    #[test]
    fn files_of_a_folder_are_compared_if_the_crate_is_checked_by_file() {
        let files =
            [("a/mod.rs", "mod b;\nmod c;"), ("a/b.rs", "use super::c::C;"), ("a/c.rs", "use super::b::B;")];
        assert_eq!(
            rules(&TEST_CRATE, &files),
            ["2 modules import each other: a/b imports a/c; a/c imports a/b"]
        );
        assert_eq!(rules(&Checked { files: false, ..TEST_CRATE }, &files), [""; 0]);
    }

    #[test]
    fn tests_and_modules_that_only_declare_make_no_cycle() {
        let files = [
            ("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests {}"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
            ("b_tests.rs", "use crate::a::A;"),
            ("c/mod.rs", "mod d;\nmod e;\npub use d::D;"),
            ("c/d.rs", "use super::e::E;"),
            ("c/e.rs", "use super::missing;"),
        ];
        assert_eq!(rules(&TEST_CRATE, &files), [""; 0]);
    }

    #[test]
    fn allowed_cycles_must_exist() {
        let files = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
        let allowed = |allowed| Checked { files: false, allowed, ..TEST_CRATE };
        assert_eq!(rules(&allowed(&["a", "b"]), &files), [""; 0]);
        assert_eq!(
            rules(&allowed(&["a"]), &files),
            ["2 modules import each other: a imports b; b imports a"]
        );
        let gone = "module `c` of `crates/a/src/` is in no cycle any more";
        assert_eq!(rules(&allowed(&["a", "b", "c"]), &files), [gone]);
    }
}
