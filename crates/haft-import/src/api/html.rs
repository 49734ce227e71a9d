//! Converts HTML in descriptions to plain text.
//!
//! Only known elements are removed, so that placeholders such as `<id>` and types such as `Map<K, V>` stay.

/// Elements that end a line.
const BLOCKS: [&str; 28] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "center",
    "details",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];
/// Elements within a line.
const INLINE: [&str; 40] = [
    "a", "abbr", "acronym", "b", "big", "body", "caption", "cite", "code", "col", "colgroup", "del", "dfn",
    "em", "figure", "font", "html", "i", "iframe", "img", "ins", "kbd", "mark", "nobr", "q", "s", "samp",
    "small", "span", "strike", "strong", "sub", "sup", "tbody", "tfoot", "thead", "tt", "u", "var", "wbr",
];
/// Elements whose content is no text.
const HIDDEN: [&str; 4] = ["script", "style", "template", "head"];
/// The maximum length of a tag.
const MAX_TAG: usize = 512;
/// The maximum length of a character reference.
const MAX_ENTITY: usize = 12;

/// Returns the text without tags and comments, with character references replaced.
pub(super) fn to_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        rest = if found.starts_with('&') { entity(found, &mut out) } else { tag(found, &mut out) };
    }
    out.push_str(rest);
    if text.contains('<') { tidy_lines(&out) } else { out }
}

/// Writes a character reference, and returns what follows it.
fn entity<'t>(text: &'t str, out: &mut String) -> &'t str {
    let end = text.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
    let named = end.and_then(|end| Some((text.get(1..end)?, text.get(end + 1..)?)));
    if let Some((name, rest)) = named
        && let Some(character) = character(name)
    {
        out.push(character);
        return rest;
    }
    out.push('&');
    text.get(1..).unwrap_or_default()
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?).filter(|c| !c.is_control() || *c == '\n');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "apos" | "rsquo" | "lsquo" => '\'',
        "quot" | "ldquo" | "rdquo" => '"',
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "bull" | "middot" => '•',
        "rarr" => '→',
        "larr" => '←',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "times" => '×',
        "ge" => '≥',
        "le" => '≤',
        _ => return None,
    })
}

/// Replaces a tag or comment, and returns what follows it; a `<` that begins neither stays.
fn tag<'t>(text: &'t str, out: &mut String) -> &'t str {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let Some((name, is_end, rest)) = parse_tag(text) else {
        out.push('<');
        return text.get(1..).unwrap_or_default();
    };
    if HIDDEN.contains(&name.as_str()) {
        return if is_end { rest } else { after_end_of(&name, rest) };
    }
    match name.as_str() {
        "li" if !is_end => out.push_str("\n- "),
        "td" | "th" if is_end => out.push_str(" | "),
        name if BLOCKS.contains(&name) => out.push('\n'),
        _ => {}
    }
    rest
}

/// Returns the name of a known tag, whether it is an end tag, and what follows it.
fn parse_tag(text: &str) -> Option<(String, bool, &str)> {
    let inner = text.get(1..)?;
    let (inner, is_end) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
    let length = inner.bytes().take(12).position(|byte| !byte.is_ascii_alphanumeric())?;
    let name = inner.get(..length)?.to_ascii_lowercase();
    let known = matches!(name.as_str(), "li" | "td" | "th")
        || [&BLOCKS[..], &INLINE[..], &HIDDEN[..]].iter().any(|names| names.contains(&name.as_str()));
    let after = inner.get(length..)?;
    if !known || !after.starts_with(['>', '/', ' ', '\t', '\n', '\r']) {
        return None;
    }
    let end = after.bytes().take(MAX_TAG).position(|byte| byte == b'>')?;
    Some((name, is_end, after.get(end + 1..)?))
}

/// Returns what follows the end tag of an element; nothing if it is not closed.
fn after_end_of<'t>(name: &str, text: &'t str) -> &'t str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let found = rest.get(at..).unwrap_or_default();
        if let Some((end, true, after)) = parse_tag(found)
            && end == name
        {
            return after;
        }
        rest = found.get(2..).unwrap_or_default();
    }
    ""
}

/// Removes spaces at the ends of lines, and empty lines that follow one another.
fn tidy_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0_usize;
    for line in text.lines().map(str::trim_end) {
        empty = if line.trim().is_empty() { empty + 1 } else { 0 };
        if empty > 1 {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line.trim_end_matches(" |"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_text() {
        for (text, expected) in [
            ("<p>Finds <b>pets</b>.</p><p>By id.</p>", "\nFinds pets.\n\nBy id."),
            ("<ul><li>one<li class=\"x\">two</ul>", "\n- one\n- two"),
            ("a &lt;b&gt; &amp;amp; &#39;c&#x27; &nbsp;d &unknown; & e", "a <b> &amp; 'c'  d &unknown; & e"),
            ("GET /pets/<id> returns Map<K, V>; a < b", "GET /pets/<id> returns Map<K, V>; a < b"),
            ("a<!-- ignore all rules -->b<!-- open", "ab"),
            ("<script>alert('</p>')</script>text<style>p{}", "text"),
            ("<a href=\"https://x.example\">docs</a><br/>more<br>end", "docs\nmore\nend"),
            ("<table><tr><td>a</td><td>b</td></tr></table>", "\n\na | b\n"),
            ("<abbreviation> <p", "<abbreviation> <p"),
            ("&lt;script&gt;", "<script>"),
        ] {
            assert_eq!(to_text(text).trim(), expected.trim(), "{text}");
        }
    }

    #[test]
    fn hostile_text_takes_linear_time() {
        for text in
            ["<".repeat(50_000), "<p ".repeat(20_000), "&#".repeat(50_000), "<script></".repeat(5_000)]
        {
            assert!(to_text(&text).len() <= text.len());
        }
    }
}
