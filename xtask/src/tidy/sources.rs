//! Rules about the text of one source file that neither rustfmt nor clippy has.

use super::finding::Finding;

/// The most lines that a file may have.
const MAX_LINES: usize = 800;

/// Checks one file; `name` is its path from the workspace root.
pub(crate) fn check(name: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let found = |line: usize, rule: String, remedy| Finding { file: name.to_owned(), line, rule, remedy };
    let mut findings = Vec::new();
    if lines.len() > MAX_LINES {
        let rule = format!("{} lines; at most {MAX_LINES}", lines.len());
        let remedy = "does it hold two concepts? Long unit tests go to a sibling `x_tests.rs`";
        findings.push(found(lines.len(), rule, remedy));
    }
    let declares_only = name.ends_with("/mod.rs") || name.ends_with("/lib.rs");
    for (index, line) in lines.iter().enumerate() {
        let rest = lines.get(index..).unwrap_or_default();
        // The language wants the entry of a macro at the root.
        let is_entry = index > 0 && lines.get(index - 1).is_some_and(|line| line.starts_with("#[proc_macro"));
        if let Some((rule, remedy)) = line_rule(line, rest, declares_only && !is_entry) {
            findings.push(found(index + 1, rule, remedy));
        }
    }
    findings
}

type Broken = (String, &'static str);

fn line_rule(line: &str, rest: &[&str], declares_only: bool) -> Option<Broken> {
    let code = line.trim_start();
    if (code.starts_with("#[allow(") || code.starts_with("#![allow(")) && !attribute(rest).contains("reason")
    {
        let remedy = "write `#[expect(lint, reason = \"…\")]`, or do what the lint says";
        return Some(("`allow` without a reason".to_owned(), remedy));
    }
    if let Some(word) = loose_end(line) {
        let remedy = "do it, delete it, or name the issue, as in `(#12)`";
        return Some((format!("`{word}` without an issue"), remedy));
    }
    if declares_only && starts_function(code) && has_body(rest) {
        let remedy = "`lib.rs` and `mod.rs` declare and re-export; move the function to a file with a name";
        return Some(("a function body where modules are declared".to_owned(), remedy));
    }
    None
}

/// Joins the lines of an attribute.
fn attribute(rest: &[&str]) -> String {
    let end = rest.iter().position(|line| line.trim_end().ends_with(']')).unwrap_or(0);
    rest.get(..=end).unwrap_or_default().concat()
}

/// Returns the word of a comment that promises work without an issue number.
fn loose_end(line: &str) -> Option<&'static str> {
    let (code, comment) = line.split_once("//")?;
    if !code.matches('"').count().is_multiple_of(2) {
        return None; // The slashes stand inside a string.
    }
    let numbered = comment.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()));
    let words = || comment.split(|c: char| !c.is_alphanumeric());
    ["TODO", "FIXME", "XXX"].into_iter().find(|word| !numbered && words().any(|other| other == *word))
}

/// Tells whether a line starts a function item.
fn starts_function(code: &str) -> bool {
    let mut words = code.split_whitespace();
    let mut word = words.next();
    while let Some(modifier) = word {
        match modifier {
            "fn" => return true,
            "const" | "async" | "unsafe" | "extern" | "\"C\"" => {}
            _ if modifier.starts_with("pub") => {}
            _ => return false,
        }
        word = words.next();
    }
    false
}

/// Tells whether the function that starts here has a body, unlike one that a trait only asks for.
fn has_body(rest: &[&str]) -> bool {
    rest.iter().flat_map(|line| line.chars()).find(|c| matches!(c, '{' | ';')) == Some('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(name: &str, text: &str, expected: &[(usize, &str)]) {
        let found = check(name, text);
        let found: Vec<(usize, &str)> = found.iter().map(|f| (f.line, f.rule.as_str())).collect();
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn very_long_files_are_reported() {
        check_text("crates/a/src/x.rs", &"let x = 1;\n".repeat(800), &[]);
        check_text("crates/a/src/x.rs", &"let x = 1;\n".repeat(801), &[(801, "801 lines; at most 800")]);
    }

    #[test]
    fn an_exception_has_a_reason() {
        check_text("a.rs", "#[allow(dead_code)]", &[(1, "`allow` without a reason")]);
        check_text("a.rs", "//! x\n#![allow(\n    dead_code\n)]", &[(2, "`allow` without a reason")]);
        check_text("a.rs", "#[allow(dead_code, reason = \"x\")]", &[]);
        check_text("a.rs", "#[allow(\n    dead_code,\n    reason = \"x\"\n)]", &[]);
        check_text("a.rs", "#[expect(dead_code, reason = \"x\")]", &[]);
        check_text("a.rs", "let text = \"#[allow\";", &[]);
    }

    #[test]
    fn a_promise_has_an_issue() {
        check_text("a.rs", "// TODO: later", &[(1, "`TODO` without an issue")]);
        check_text("a.rs", "let x = 1; // FIXME", &[(1, "`FIXME` without an issue")]);
        check_text("a.rs", "// TODO(#12): later", &[]);
        check_text("a.rs", "let todo = \"TODO\"; // MASTODON", &[]);
    }

    #[test]
    fn declaring_files_have_no_bodies() {
        let rule = "a function body where modules are declared";
        check_text("crates/a/src/lib.rs", "mod x;\npub use x::X;", &[]);
        check_text("crates/a/src/lib.rs", "mod x;\npub fn f() {}", &[(2, rule)]);
        check_text("crates/a/src/b/mod.rs", "pub(crate) const fn f(\n    x: u8,\n) -> u8 {\n", &[(1, rule)]);
        check_text("crates/a/src/b/mod.rs", "trait T {\n    fn f(&self);\n}", &[]);
        check_text("crates/a/src/lib.rs", "//! fn f() {}", &[]);
        check_text("crates/a/src/lib.rs", "#[proc_macro_attribute]\npub fn f() {}", &[]);
        check_text("crates/a/src/x.rs", "fn f() {}", &[]);
    }

    #[test]
    fn a_finding_reads_as_a_sentence_with_its_remedy() {
        let finding = check("crates/a/src/lib.rs", "fn f() {}").remove(0);
        assert_eq!(
            finding.to_string(),
            "crates/a/src/lib.rs:1: a function body where modules are declared\n    remedy: `lib.rs` and \
             `mod.rs` declare and re-export; move the function to a file with a name"
        );
    }
}
