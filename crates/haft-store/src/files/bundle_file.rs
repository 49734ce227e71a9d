//! `bundle.yaml`: the description of a bundle in its folder.

use std::fmt::Write as _;

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::id::BundleId;
use serde::Deserialize;

/// The fields of `bundle.yaml`; all are optional.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct BundleFile {
    pub(crate) id: Option<BundleId>,
    pub(crate) display_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) enabled: Option<bool>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) soft_deleted_at: Option<Timestamp>,
}

/// The names of the fields.
const FIELDS: [&str; 6] = ["id", "display_name", "description", "enabled", "created_at", "soft_deleted_at"];

/// Parses the file.
pub(crate) fn parse(source: &str) -> Result<BundleFile, String> {
    if source.trim().is_empty() {
        return Ok(BundleFile::default());
    }
    serde_saphyr::from_str(source).map_err(|error| {
        // Further lines show an excerpt of the source.
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        // The option of the parser is no help to the author of the file.
        let first = first.replace(", set DuplicateKeyPolicy in Options if acceptable", "");
        haft_core::problem::excerpt(&with_field(&first, source), 400)
    })
}

/// Adds the field name to an error such as `line 2 column 14: …`.
fn with_field(error: &str, source: &str) -> String {
    let parts = error.split_once(": ").and_then(|(position, reason)| {
        let line: usize = position.strip_prefix("line ")?.split(' ').next()?.parse().ok()?;
        Some((position, reason, line))
    });
    let Some((position, reason, line)) = parts else { return error.to_owned() };
    // The key is in that line, or in the last line above that is not indented.
    let above: Vec<&str> = source.lines().take(line).collect();
    let key = above.into_iter().rev().find(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()));
    match key.and_then(|line| line.split_once(':')).map(|(key, _)| key.trim_end()) {
        Some(key) if FIELDS.contains(&key) => format!("{position}: `{key}`: {reason}"),
        _ => error.to_owned(),
    }
}

/// The new text of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BundleText {
    /// The old text with the changed values; comments and unknown keys are preserved.
    Edited(String),
    /// A new text, because the old one could not be edited.
    Rewritten(String),
}

/// Writes the values of a bundle into the existing text, and verifies the result by parsing it.
pub(crate) fn write(text: &str, bundle: &Bundle) -> Result<BundleText, String> {
    let expected = BundleFile {
        id: Some(bundle.id),
        display_name: Some(bundle.display_name.clone()),
        description: Some(bundle.description.clone()),
        enabled: Some(bundle.enabled),
        created_at: Some(bundle.created_at),
        soft_deleted_at: bundle.soft_deleted_at,
    };
    let edited = edit(text, bundle);
    if parse(&edited).is_ok_and(|file| file == expected) {
        return Ok(BundleText::Edited(edited));
    }
    let rewritten = edit("", bundle);
    match parse(&rewritten) {
        Ok(file) if file == expected => Ok(BundleText::Rewritten(rewritten)),
        Ok(_) => Err("the values do not survive a round trip through YAML".into()),
        Err(reason) => Err(reason),
    }
}

fn edit(text: &str, bundle: &Bundle) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    set(&mut lines, "id", Some(bundle.id.to_string()));
    set(&mut lines, "display_name", Some(quoted(&bundle.display_name)));
    set(&mut lines, "description", Some(quoted(&bundle.description)));
    set(&mut lines, "enabled", Some(bundle.enabled.to_string()));
    set(&mut lines, "created_at", Some(bundle.created_at.to_string()));
    set(&mut lines, "soft_deleted_at", bundle.soft_deleted_at.map(|at| at.to_string()));
    let mut out = lines.join("\n");
    out.push('\n');
    out
}

/// Quotes a text for YAML: as JSON, with escapes for the characters that YAML does not allow or reads as a line break.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out
}

/// Sets one top-level key and removes the lines of its old value.
fn set(lines: &mut Vec<String>, key: &str, value: Option<String>) {
    let starts = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let line = value.map(|value| format!("{key}: {value}"));
    match lines.iter().position(|line| starts(line)) {
        Some(at) => {
            // Empty lines within a multi-line value belong to it; empty lines after it do not.
            let rest = lines.iter().skip(at + 1);
            let own = rest.take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty());
            let more =
                own.enumerate().filter(|(_, line)| !line.trim().is_empty()).last().map_or(0, |(n, _)| n + 1);
            lines.splice(at..=at + more, line);
        }
        None => lines.extend(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        let at: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        Bundle {
            id: "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap(),
            tenant: haft_core::name::TenantId::default_tenant(),
            slug: haft_core::name::BundleSlug::new("web").unwrap(),
            display_name: "Web: \"tools\"".into(),
            description: "two\nlines # no comment".into(),
            enabled: false,
            kind: haft_core::bundle::BundleKind::User,
            created_at: at,
            modified_at: at,
            soft_deleted_at: None,
        }
    }

    fn edited(text: &str, bundle: &Bundle) -> String {
        match write(text, bundle).unwrap() {
            BundleText::Edited(text) => text,
            BundleText::Rewritten(text) => panic!("{text}"),
        }
    }

    #[test]
    fn written_values_are_read_back() {
        let bundle = bundle();
        let expected = BundleFile {
            id: Some(bundle.id),
            display_name: Some(bundle.display_name.clone()),
            description: Some(bundle.description.clone()),
            enabled: Some(false),
            created_at: Some(bundle.created_at),
            soft_deleted_at: None,
        };
        assert_eq!(parse(&edited("", &bundle)).unwrap(), expected);
        let deleted = Bundle { soft_deleted_at: Some(bundle.created_at), ..bundle.clone() };
        let text = edited("", &deleted);
        assert_eq!(parse(&text).unwrap().soft_deleted_at, Some(bundle.created_at));
        assert_eq!(parse(&edited(&text, &bundle)).unwrap(), expected);
    }

    #[test]
    fn every_character_is_written() {
        let all: String = (0..=0x1_ffff).filter_map(char::from_u32).collect();
        let bundle = Bundle { display_name: all.clone(), description: format!("a\n{all}"), ..bundle() };
        let read = parse(&edited("", &bundle)).unwrap();
        assert!(
            read.display_name == Some(bundle.display_name) && read.description == Some(bundle.description)
        );
    }

    #[test]
    fn comments_and_unknown_keys_are_preserved() {
        let text = "# ours\nowner: me\nenabled: true   # on\ndescription: |\n  old\n  text\n# end\n";
        let written = edited(text, &bundle());
        for kept in ["# ours", "owner: me", "# end", "enabled: false"] {
            assert!(written.contains(kept), "{written}");
        }
        assert!(!written.contains("old"), "{written}");
        assert_eq!(parse(&written).unwrap().enabled, Some(false));
    }

    #[test]
    fn any_existing_text_gets_the_new_values() {
        let bundle = bundle();
        let clean = edited("", &bundle);
        for (text, kept) in [
            ("description: |\n  one\n\n  two\n\nowner: me\n", true),
            ("description: >-\n  one\n\n\n  two\n", true),
            ("enabled: true\n\n# end\n", true),
            ("{enabled: true, description: old}\n", false),
            ("{\n  enabled: true\n}\n", false),
            ("\"description\": old\n", false),
            ("? description\n: old\n", false),
            ("---\nenabled: true\n...\n", false),
            ("- a\n- b\n", false),
            ("enabled: [\n", true),
            ("owner: [\n", false),
            ("id: none\n", true),
            ("\tx", false),
        ] {
            match write(text, &bundle).unwrap() {
                BundleText::Edited(written) => {
                    assert!(kept, "{text:?} gave {written:?}");
                    assert_eq!(parse(&written), parse(&clean), "{text:?}");
                }
                BundleText::Rewritten(written) => {
                    assert!(!kept, "{text:?}");
                    assert_eq!(written, clean);
                }
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(parse("").unwrap(), BundleFile::default());
        assert!(parse("enabled: perhaps").unwrap_err().contains("line 1"), "{:?}", parse("enabled: perhaps"));
        assert_eq!(
            parse("a: 1\ndescription: [\n").unwrap_err(),
            "line 2 column 14: `description`: expected string scalar"
        );
        let twice = parse("enabled: true\nenabled: false\n").unwrap_err();
        assert!(twice.contains("duplicate") && !twice.contains("Options"), "{twice}");
    }
}
