//! Derives the names of tools, arguments, secrets and bundles from a document.

use std::collections::HashMap;

use haft_core::hash;
use haft_core::name::{BundleSlug, MAX_LENGTH, NameError, ToolName};

/// The length of the digest in a suffix.
const SUFFIX: usize = 6;

/// Returns the tool names of operations, given as their plain names and keys. If several would have the same name, each gets a suffix that depends only on its
/// key, so that it is stable when the document changes.
pub(crate) fn tool_names(operations: &[(String, &str)]) -> Result<Vec<ToolName>, NameError> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for (name, _) in operations {
        *uses.entry(name).or_default() += 1;
    }
    let named = operations.iter().map(|(name, key)| {
        let unique = uses.get(name.as_str()) == Some(&1) && name.chars().count() <= MAX_LENGTH;
        if unique { ToolName::new(name) } else { with_suffix(name, key) }
    });
    named.collect()
}

/// Returns a name with a suffix that depends on the operation.
pub(super) fn with_suffix(name: &str, operation: &str) -> Result<ToolName, NameError> {
    let digest = hash::of_bytes(operation.as_bytes());
    let start: String = name.chars().take(MAX_LENGTH - SUFFIX - 1).collect();
    let start = start.trim_end_matches(['-', '_']);
    ToolName::new(&format!("{start}-{}", digest.get(..SUFFIX).unwrap_or_default()))
}

/// Returns the name of an operation: its id, or its method and path.
pub(crate) fn plain(id: Option<&str>, method: &str, path: &str) -> String {
    let own = id.map(|id| words(id, '-')).filter(|name| !name.is_empty());
    own.unwrap_or_else(|| {
        let path = words(path, '-');
        format!("{method}-{}", if path.is_empty() { "root" } else { &path })
    })
}

/// Keeps letters, digits, `-` and `_`; everything else becomes a separator.
fn words(text: &str, separator: char) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '_') {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(separator) {
            out.push(separator);
        }
    }
    out.trim_end_matches(separator).to_owned()
}

/// Returns an argument name that every model accepts.
pub(crate) fn argument_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let text: String = name.chars().map(|c| if fits(c) { c } else { ' ' }).collect();
    let mut out = words(&text, '_');
    out.truncate(MAX_LENGTH - 4);
    if out.is_empty() { "value".to_owned() } else { out }
}

/// Returns the name of a secret, such as `GITHUB_BEARER_AUTH`.
pub(crate) fn secret_name(parts: &[&str]) -> String {
    let mut out = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let mut after_small = false;
        if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        for c in part.chars() {
            if !c.is_ascii_alphanumeric() {
                if !out.is_empty() && !out.ends_with('_') {
                    out.push('_');
                }
                after_small = false;
                continue;
            }
            if c.is_ascii_uppercase() && after_small {
                out.push('_');
            }
            after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
            out.push(c.to_ascii_uppercase());
        }
    }
    out.truncate(100);
    let name = out.trim_end_matches('_');
    if name.is_empty() { "CREDENTIAL".to_owned() } else { name.to_owned() }
}

/// Returns the default bundle for a document title.
pub(crate) fn bundle_slug(title: &str) -> BundleSlug {
    let title = title.to_lowercase();
    let words: Vec<&str> =
        title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(40).collect();
    BundleSlug::new(short.trim_matches('-')).unwrap_or_else(|_| BundleSlug::user_created())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_arguments_and_bundles_are_named_after_what_they_are() {
        for (parts, expected) in [
            (vec!["github", "bearerAuth"], "GITHUB_BEARER_AUTH"),
            (vec!["pet-store", "api_key"], "PET_STORE_API_KEY"),
            (vec!["", "X-API-Key"], "X_API_KEY"),
            (vec!["a", "basic", "username"], "A_BASIC_USERNAME"),
            (vec!["a", "OAuth2"], "A_OAUTH2"),
            (vec!["ü", "é"], "CREDENTIAL"),
        ] {
            assert_eq!(secret_name(&parts), expected, "{parts:?}");
        }
        for (name, expected) in [
            ("petId", "petId"),
            ("filter[status]", "filter_status"),
            ("X-Request-ID", "X-Request-ID"),
            ("a.b", "a_b"),
            ("größe", "gr_e"),
            ("$}", "value"),
        ] {
            assert_eq!(argument_name(name), expected, "{name}");
        }
        for (title, expected) in [
            ("Swagger Petstore - OpenAPI 3.0", "swagger-petstore-openapi-3-0"),
            ("GitHub v3 REST API", "github-v3-rest-api"),
            ("!!", "user-created"),
        ] {
            assert_eq!(bundle_slug(title).as_str(), expected, "{title}");
        }
    }
}
