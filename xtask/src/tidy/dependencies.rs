//! Rules about dependencies, read from `cargo metadata`: each one is used, has an accepted licence, and is built in one
//! version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::finding::Finding;

/// Licences that a dependency may have.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Packages that our dependencies need in two or more versions. Remove a name as soon as `tidy` asks for it.
const DUPLICATES: &[&str] = &[
    "atoi",
    "base64",
    "bit-set",
    "bit-vec",
    "bitflags",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "embedded-io",
    "getrandom",
    "hashbrown",
    "io-lifetimes",
    "itertools",
    "nom",
    "proc-macro-crate",
    "rand",
    "rand_core",
    "sha1",
    "sha2",
    "spin",
    "syn",
    "synstructure",
    "thiserror",
    "thiserror-impl",
    "toml_datetime",
    "toml_edit",
    "tower-http",
    "wast",
    "winnow",
];

/// Checks the output of `cargo metadata`, dependencies included.
pub(crate) fn check(metadata: &Value, root: &Path) -> anyhow::Result<Vec<Finding>> {
    let packages =
        metadata.get("packages").and_then(Value::as_array).context("`packages` in the metadata")?;
    let members: BTreeSet<&str> = metadata
        .get("workspace_members")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (ours, theirs): (Vec<&Value>, Vec<&Value>) =
        packages.iter().partition(|package| members.contains(text(package, "id")));
    let mut findings = licences(&theirs);
    findings.extend(duplicates(&theirs, DUPLICATES));
    for package in ours {
        findings.extend(unused(package, root)?);
    }
    Ok(findings)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn in_lock_file(rule: String, remedy: &'static str) -> Finding {
    Finding { file: "Cargo.lock".to_owned(), line: 1, rule, remedy }
}

fn licences(packages: &[&Value]) -> Vec<Finding> {
    let refused = packages.iter().filter(|package| !is_accepted(text(package, "license")));
    refused
        .map(|package| {
            let (name, licence) = (text(package, "name"), text(package, "license"));
            in_lock_file(
                format!("`{name}` has the licence `{licence}`, which is not in the list of accepted ones"),
                "use another package, or add the licence to LICENCES in xtask/src/tidy/dependencies.rs",
            )
        })
        .collect()
}

/// Evaluates an SPDX expression of `AND`, `OR` and parentheses; `/` is an old spelling of `OR`.
fn is_accepted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(rest: &mut &[&str]) -> bool {
    let mut accepted = all(rest);
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        accepted |= all(rest);
    }
    accepted
}

fn all(rest: &mut &[&str]) -> bool {
    let mut accepted = one(rest);
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        accepted &= one(rest);
    }
    accepted
}

fn one(rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let accepted = any(rest);
            *rest = rest.get(1..).unwrap_or_default();
            accepted
        }
        [licence, "WITH", exception, after @ ..] => {
            *rest = after;
            LICENCES.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, after @ ..] => {
            *rest = after;
            LICENCES.contains(licence)
        }
        [] => false,
    }
}

fn duplicates(packages: &[&Value], allowed: &[&str]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(text(package, "name")).or_default().push(text(package, "version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let new = versions.iter().filter(|(name, _)| !allowed.contains(name)).map(|(name, versions)| {
        in_lock_file(
            format!("`{name}` is built in {} versions: {}", versions.len(), versions.join(", ")),
            "align the versions (`cargo tree --invert --package NAME@VERSION`), or add it to DUPLICATES in \
             xtask/src/tidy/dependencies.rs",
        )
    });
    let gone = allowed.iter().filter(|name| !versions.contains_key(*name)).map(|name| {
        in_lock_file(
            format!("`{name}` is built in one version only"),
            "remove it from DUPLICATES in xtask/src/tidy/dependencies.rs",
        )
    });
    new.chain(gone).collect()
}

/// Finds the dependencies of a package whose name does not occur in its sources.
fn unused(package: &Value, root: &Path) -> anyhow::Result<Vec<Finding>> {
    let manifest = Path::new(text(package, "manifest_path"));
    let folder = manifest.parent().context("the folder of a manifest")?;
    let production = words(&[folder.join("src"), folder.join("build.rs")])?;
    let tests = words(&[folder.join("tests"), folder.join("examples"), folder.join("benches")])?;
    let name = manifest.strip_prefix(root).unwrap_or(manifest).to_string_lossy().into_owned();
    let lines = fs::read_to_string(manifest).with_context(|| format!("read {name}"))?;
    let mut findings = Vec::new();
    for dependency in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
        let key = dependency.get("rename").and_then(Value::as_str).unwrap_or(text(dependency, "name"));
        let word = key.replace('-', "_");
        let dev = text(dependency, "kind") == "dev";
        if production.contains(&word) || (dev && tests.contains(&word)) {
            continue;
        }
        let line = lines.lines().position(|line| line.starts_with(key)).map_or(1, |index| index + 1);
        let rule = format!("the dependency `{key}` is not used");
        findings.push(Finding { file: name.clone(), line, rule, remedy: "remove it" });
    }
    Ok(findings)
}

/// Collects the words of all Rust files below some paths.
fn words(paths: &[std::path::PathBuf]) -> anyhow::Result<BTreeSet<String>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_file() {
            files.push(path.clone());
        } else {
            super::run::collect(path, &mut files)?;
        }
    }
    let mut words = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        words.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        for accepted in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0",
            "GPL-3.0 OR Apache-2.0 WITH LLVM-exception",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
        ] {
            assert!(is_accepted(accepted), "{accepted}");
        }
        for refused in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MIT)", "Apache-2.0 WITH x"]
        {
            assert!(!is_accepted(refused), "{refused}");
        }
    }

    #[test]
    fn new_and_resolved_duplicates_are_reported() {
        let package = |name: &str, version: &str| json!({"name": name, "version": version});
        let packages =
            [package("a", "1.0.0"), package("a", "2.0.0"), package("b", "1.0.0"), package("b", "2.0.0")];
        let packages: Vec<&Value> = packages.iter().collect();
        let rules: Vec<String> =
            duplicates(&packages, &["b", "c"]).into_iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["`a` is built in 2 versions: 1.0.0, 2.0.0", "`c` is built in one version only"]);
    }

    #[test]
    fn an_unused_dependency_is_reported_at_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let package = json!({
            "manifest_path": root.join("Cargo.toml"),
            "dependencies": [{"name": "anyhow"}, {"name": "not-here"}],
        });
        let findings = unused(&package, root).unwrap();
        assert_eq!(
            findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["Cargo.toml:1: the dependency `not-here` is not used\n    remedy: remove it"]
        );
    }
}
