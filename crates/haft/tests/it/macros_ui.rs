//! Compiler errors of functions that cannot be tools.
//!
//! The compiler runs with the library that was built for this test program, so nothing is built for these tests. Compared
//! are the message, the places and their labels; the help that the compiler adds depends on all types it knows.
#![expect(clippy::panic, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::Deserialize;

/// The error codes of a library that the compiler cannot use: another compiler built it, or a part of it is gone.
const UNUSABLE: [&str; 7] = ["E0460", "E0461", "E0462", "E0463", "E0464", "E0514", "E0786"];

/// What the compiler reports, as JSON.
#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    code: Option<Code>,
    level: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    column_start: usize,
    is_primary: bool,
    label: Option<String>,
}

#[test]
fn errors_of_the_attribute() {
    insta::assert_snapshot!(compile("tests/ui/attribute.rs"));
}

#[test]
#[cfg_attr(
    not(all(feature = "builtins", feature = "server")),
    ignore = "the compiler names types by paths that depend on the features"
)]
fn errors_in_the_generated_code() {
    insta::assert_snapshot!(compile("tests/ui/types.rs"));
}

/// Compiles a file that is no valid program, and returns its errors.
fn compile(file: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let mut rejected = Vec::new();
    for library in libraries(folder) {
        let diagnostics = diagnostics(file, &library);
        let Some(reason) = diagnostics.iter().find(|found| UNUSABLE.contains(&found.code())) else {
            let errors: Vec<String> = diagnostics.iter().filter_map(|found| found.render(file)).collect();
            return errors.join("\n\n");
        };
        rejected.push(format!("{}: {}", library.display(), reason.message));
    }
    panic!("no build of the library in {} can be used: {rejected:#?}", folder.display());
}

/// Returns the builds of the library, the newest first. Cargo has just brought the one of this program up to date, so any
/// newer one has the same sources, and possibly other features.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("libhaft-")))
        // Lints leave metadata only.
        .filter(|path| path.extension().is_some_and(|extension| extension == "rlib"))
        .map(|path| (path.metadata().unwrap().modified().unwrap(), path))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Runs the compiler and returns what it reports.
fn diagnostics(file: &str, library: &Path) -> Vec<Diagnostic> {
    let out = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a compiler needs no sandbox")]
    let output = Command::new("rustc")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--error-format=json", file])
        .arg("--out-dir")
        .arg(out.path())
        .arg(format!("--extern=haft={}", library.display()))
        .arg(format!("-Ldependency={}", library.parent().unwrap().display()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{file} compiles: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"))).collect()
}

impl Diagnostic {
    fn code(&self) -> &str {
        self.code.as_ref().map_or("", |code| &code.code)
    }

    /// Returns an error as its message and its places in the file; `^` marks the main one.
    fn render(&self, file: &str) -> Option<String> {
        if self.level != "error" || self.spans.is_empty() {
            return None;
        }
        let mut spans: Vec<&Span> = self.spans.iter().filter(|span| span.file_name == file).collect();
        spans.sort_by_key(|span| (span.line_start, span.column_start, span.is_primary));
        let kind = match self.code() {
            "" => "error".to_owned(),
            code => format!("error[{code}]"),
        };
        let places: Vec<String> = spans.into_iter().map(Span::render).collect();
        Some(format!("{kind}: {}\n{}", self.message, places.join("\n")))
    }
}

impl Span {
    fn render(&self) -> String {
        let mark = if self.is_primary { '^' } else { '-' };
        let label = self.label.as_deref().unwrap_or_default();
        format!("  {}:{} {mark} {label}", self.line_start, self.column_start).trim_end().to_owned()
    }
}
