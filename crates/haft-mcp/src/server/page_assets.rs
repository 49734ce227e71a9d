//! The assets of a page, written into it: a page of an MCP App has no origin to load them from.
//!
//! Scripts and style sheets become elements with their text, images and media become data URLs. Only attributes of tags
//! are looked at; what a script loads itself is not found.

use std::collections::HashMap;

/// The most assets of a page.
const MAX_REFERENCES: usize = 100;
/// The size of a page above which no more assets are written into it.
const MAX_OUTPUT: usize = 16 << 20;
/// The folder of assets in a package.
const FOLDER: &str = "assets/";

/// Returns the paths in the package that a page refers to.
pub(super) fn references(page: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for tag in Tags(page) {
        if let Some(path) = tag.asset()
            && paths.len() < MAX_REFERENCES
            && !paths.contains(&path)
        {
            paths.push(path);
        }
    }
    paths
}

/// Returns the page with its assets in it. References to other files stay as they are.
pub(super) fn inlined(
    page: &str,
    assets: &HashMap<String, Vec<u8>>,
    data_url: impl Fn(&str, &[u8]) -> String,
) -> String {
    let lower = page.to_ascii_lowercase();
    let mut out = String::with_capacity(page.len());
    let mut position = 0;
    for tag in Tags(page) {
        let Some((path, bytes)) = tag.asset().and_then(|path| assets.get_key_value(&path)) else { continue };
        // An element within the text of another one that was replaced.
        if tag.start < position || out.len() + bytes.len() > MAX_OUTPUT {
            continue;
        }
        out.push_str(page.get(position..tag.start).unwrap_or_default());
        match tag.name.as_str() {
            "script" => {
                out.push_str(&tag.without_source());
                push_text(&mut out, bytes, "</script");
                out.push_str("</script>");
                position = end_of_script(&lower, tag.end);
            }
            "link" => {
                out.push_str("<style>");
                push_text(&mut out, bytes, "</style");
                out.push_str("</style>");
                position = tag.end;
            }
            _ => {
                out.push_str(&tag.with_source(&data_url(path, bytes)));
                position = tag.end;
            }
        }
    }
    out.push_str(page.get(position..).unwrap_or_default());
    out
}

/// Returns where a script element ends whose opening tag ends at a position.
fn end_of_script(lower: &str, position: usize) -> usize {
    const END: &str = "</script>";
    let rest = lower.get(position..).unwrap_or_default();
    rest.find(END).map_or(position, |at| position + at + END.len())
}

/// Appends the text of an element; what would end the element is escaped, as JavaScript and CSS allow it in strings.
fn push_text(out: &mut String, bytes: &[u8], end: &str) {
    let text = String::from_utf8_lossy(bytes);
    let lower = text.to_ascii_lowercase();
    let mut position = 0;
    for (at, _) in lower.match_indices(end) {
        out.push_str(text.get(position..at).unwrap_or_default());
        out.push_str("<\\/");
        position = at + "</".len();
    }
    out.push_str(text.get(position..).unwrap_or_default());
}

/// An opening tag.
struct Tag<'a> {
    text: &'a str,
    /// The name, in lower case.
    name: String,
    start: usize,
    end: usize,
    /// Where the value of `src` or `href` is in the text, with its quotes.
    source: Option<(usize, usize)>,
}

impl Tag<'_> {
    /// Returns the path of the asset that the tag refers to.
    fn asset(&self) -> Option<String> {
        let (from, to) = self.source?;
        let value = self.text.get(from..to)?.trim_matches(['"', '\'']);
        let path = value.strip_prefix("./").unwrap_or(value);
        let path = path.split(['?', '#']).next()?;
        let is_asset = path.starts_with(FOLDER) && !path.contains("..");
        let is_style = self.name != "link" || self.text.to_ascii_lowercase().contains("stylesheet");
        let is_inlined =
            matches!(self.name.as_str(), "script" | "link" | "img" | "source" | "audio" | "video");
        (is_asset && is_style && is_inlined).then(|| path.to_owned())
    }

    fn with_source(&self, value: &str) -> String {
        let Some((from, to)) = self.source else { return self.text.to_owned() };
        let (before, after) = (self.text.get(..from), self.text.get(to..));
        format!("{}\"{value}\"{}", before.unwrap_or_default(), after.unwrap_or_default())
    }

    fn without_source(&self) -> String {
        let Some((from, to)) = self.source else { return self.text.to_owned() };
        let before = self.text.get(..from).unwrap_or_default();
        // `src=` before the value.
        let before = before.trim_end().strip_suffix('=').unwrap_or(before).trim_end();
        let before = before.get(..before.len().saturating_sub("src".len())).unwrap_or_default();
        format!("{}{}", before.trim_end(), self.text.get(to..).unwrap_or_default())
    }
}

/// The opening tags of a page.
struct Tags<'a>(&'a str);

impl<'a> IntoIterator for Tags<'a> {
    type Item = Tag<'a>;
    type IntoIter = TagIter<'a>;

    fn into_iter(self) -> TagIter<'a> {
        TagIter { page: self.0, position: 0 }
    }
}

struct TagIter<'a> {
    page: &'a str,
    position: usize,
}

impl<'a> Iterator for TagIter<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let start = self.position + self.page.get(self.position..)?.find('<')?;
            self.position = start + 1;
            let rest = self.page.get(start..)?;
            if !rest.get(1..2).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_alphabetic())) {
                continue;
            }
            let length = tag_length(rest)?;
            self.position = start + length;
            let text = rest.get(..length)?;
            let name =
                text.get(1..)?.split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_ascii_lowercase();
            let attribute = if name == "link" { "href" } else { "src" };
            let source = attribute_value(text, attribute);
            return Some(Tag { text, name, start, end: start + length, source });
        }
    }
}

/// Returns the length of a tag with its brackets; a bracket in a quoted value does not end it.
fn tag_length(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns where the quoted value of an attribute is.
fn attribute_value(tag: &str, name: &str) -> Option<(usize, usize)> {
    let lower = tag.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let at = from + lower.get(from..)?.find(name)?;
        from = at + name.len();
        let is_start = lower.get(..at)?.ends_with(|c: char| c.is_ascii_whitespace());
        let rest = lower.get(from..)?;
        let value = rest.trim_start().strip_prefix('=').map(str::trim_start);
        let Some(value) = value.filter(|_| is_start) else { continue };
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let start = lower.len() - value.len();
        let length = value.get(1..)?.find(quote)? + 2;
        return Some((start, start + length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &str) {
        let assets = HashMap::from([
            ("assets/a.js".to_owned(), b"let x = '</script>';".to_vec()),
            ("assets/a.css".to_owned(), b"p { color: red }".to_vec()),
            ("assets/a.png".to_owned(), b"png".to_vec()),
        ]);
        let written = inlined(page, &assets, |path, bytes| format!("data:{path},{}", bytes.len()));
        assert_eq!(written, expected);
    }

    #[test]
    fn assets_are_written_into_the_page() {
        check(
            "<head><script type=\"module\" src=\"assets/a.js\"></script><p>",
            "<head><script type=\"module\">let x = '<\\/script>';</script><p>",
        );
        check("<LINK rel='stylesheet' href='./assets/a.css'>x", "<style>p { color: red }</style>x");
        check(
            "<img alt=\"a > b\" src='assets/a.png?v=1' width=3>",
            "<img alt=\"a > b\" src=\"data:assets/a.png,3\" width=3>",
        );
    }

    #[test]
    fn everything_else_stays() {
        for page in [
            "",
            "<",
            "a < b",
            "<script>let a = 1 < 2;</script>",
            "<script src=\"https://example.com/a.js\"></script>",
            "<script src=\"assets/other.js\"></script>",
            "<script src=\"assets/../a.js\"></script>",
            "<link rel=icon href=\"assets/a.css\">",
            "<img src=assets/a.png>",
            "<a href=\"assets/a.png\">",
            "<img src=\"assets/a.png",
            "<ü src=\"assets/a.png\">",
        ] {
            check(page, page);
        }
    }

    #[test]
    fn a_page_that_repeats_a_large_asset_stays_bounded() {
        let assets = HashMap::from([("assets/a.js".to_owned(), vec![b' '; 1 << 20])]);
        let page = "<script src=\"assets/a.js\"></script>".repeat(1000);
        let written = inlined(&page, &assets, |_, _| String::new());
        assert!(written.len() <= MAX_OUTPUT + page.len() + 1000, "{}", written.len());
    }

    #[test]
    fn references_are_listed_once() {
        let page = "<img src=\"assets/a.png\"><img src=\"assets/a.png\"><script src='assets/b.js'></script>";
        assert_eq!(references(page), ["assets/a.png", "assets/b.js"]);
        let many: Vec<String> = (0..500).map(|n| format!("<img src=\"assets/{n}.png\">")).collect();
        assert_eq!(references(&many.concat()).len(), MAX_REFERENCES);
    }
}
