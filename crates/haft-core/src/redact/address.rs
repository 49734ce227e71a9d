//! Secrets in URLs: their origin, and the masking of query parameters.

use url::Url;

use super::{is_literal, is_sensitive_parameter};
use crate::secret::MASK;

/// Returns the origin of a URL template: scheme, host and port, or the whole text if a template value may be part of
/// them. Two URL templates with the same result lead to the same server.
pub(super) fn origin(text: &str) -> String {
    let masked = masked(text).unwrap_or_else(|| text.to_owned());
    let literal_end = [masked.find("${"), masked.find("{{")].into_iter().flatten().min();
    let literal = masked.get(..literal_end.unwrap_or(masked.len())).unwrap_or_default();
    let after_scheme = literal.split_once("://").map_or("", |(_, rest)| rest);
    let complete = after_scheme.trim_start_matches(['/', '\\']).contains(['/', '\\', '?', '#']);
    if (literal_end.is_none() || complete)
        && let Ok(url) = Url::parse(literal.trim())
        && matches!(url.scheme(), "http" | "https")
    {
        return url.origin().ascii_serialization();
    }
    masked
}

/// Masks the values of sensitive parameters; `None` if there are none.
pub(super) fn masked(text: &str) -> Option<String> {
    let mut any = false;
    let out = with_pairs(text, |name, value| {
        let hide = is_sensitive_parameter(name) && is_literal(value);
        any |= hide;
        hide.then(|| MASK.to_owned())
    });
    any.then_some(out)
}

/// Restores the values of masked parameters.
pub(super) fn restored(text: &str, earlier: Option<&str>) -> Restored {
    let earlier = earlier.filter(|before| origin(before) == origin(text));
    let mut known = Vec::new();
    if let Some(before) = earlier {
        with_pairs(before, |name, value| {
            known.push((name.to_owned(), value.to_owned()));
            None
        });
    }
    let (mut found, mut lost) = (false, false);
    let out = with_pairs(text, |name, value| {
        if value != MASK || !is_sensitive_parameter(name) {
            return None;
        }
        found = true;
        let at = known.iter().position(|(other, _)| other == name);
        let before = at.map(|at| known.remove(at).1);
        lost |= before.is_none();
        before
    });
    match (found, lost) {
        (false, _) => Restored::Unchanged,
        (true, false) => Restored::Whole(out),
        (true, true) => Restored::Lost,
    }
}

/// The result of restoring a URL.
pub(super) enum Restored {
    Unchanged,
    Whole(String),
    Lost,
}

/// Rewrites the values of the query parameters of a URL.
fn with_pairs(text: &str, mut change: impl FnMut(&str, &str) -> Option<String>) -> String {
    let (address, fragment) = fragment_start(text).map_or((text, ""), |at| text.split_at(at));
    let Some((before, query)) = address.split_once('?') else { return text.to_owned() };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => match change(name, value) {
                Some(value) => format!("{name}={value}"),
                None => pair.to_owned(),
            },
            None => pair.to_owned(),
        })
        .collect();
    format!("{before}?{}{fragment}", pairs.join("&"))
}

/// Returns where the fragment of a URL begins. A `#` within `${…}` is part of a reference.
fn fragment_start(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = rest.find('#')?;
        match rest.find("${").filter(|open| *open < at) {
            Some(open) => from += open + rest.get(open..)?.find('}')? + 1,
            None => return Some(from + at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_secrets_outside_of_haft_are_no_literals() {
        for (url, expected) in [
            ("https://a.test/?api_key=${vault:apps/x#key}", None),
            ("https://a.test/${vault:apps/x#key}?token=${cmd:a}#top", None),
            ("https://a.test/?api_key=in-url#${vault:a#b}", Some("https://a.test/?api_key=***#${vault:a#b}")),
            ("https://a.test/?q=${vault:a#b}&key=in-url#x", Some("https://a.test/?q=${vault:a#b}&key=***#x")),
            ("https://a.test/?key=x${unclosed#x", Some("https://a.test/?key=***")),
        ] {
            assert_eq!(masked(url).as_deref(), expected, "{url}");
        }
    }
}
