//! Names of tools and arguments that every model supports.

use haft_core::hash;

/// The maximum length of a name that every model accepts.
const MAX_LENGTH: usize = 64;

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Gemini rejects names that start with a digit or a dash.
fn has_valid_start(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns whether every model accepts a name: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
pub fn is_model_name(name: &str) -> bool {
    has_valid_start(name) && name.len() <= MAX_LENGTH && name.chars().all(is_name_char)
}

/// Returns a name that every model accepts. A changed name gets a hash, so that different names stay different.
pub fn model_name(name: &str) -> String {
    if is_model_name(name) { name.to_owned() } else { distinct_name(name, name) }
}

/// Returns whether a name ends like those of [`distinct_name`].
pub fn looks_distinct(name: &str) -> bool {
    let is_hash = |hash: &[u8]| hash.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    name.as_bytes().last_chunk::<7>().is_some_and(|[line, hash @ ..]| *line == b'_' && is_hash(hash))
}

/// Returns a name that every model accepts, with a hash of `distinct` that distinguishes tools of the same name.
pub fn distinct_name(name: &str, distinct: &str) -> String {
    let mut suffix = hash::of_bytes(distinct.as_bytes());
    suffix.truncate(6);
    let start = if has_valid_start(name) { "" } else { "_" };
    let kept = name.chars().map(|c| if is_name_char(c) { c } else { '_' });
    let kept: String = start.chars().chain(kept).take(MAX_LENGTH - 7).collect();
    format!("{kept}_{suffix}")
}

/// Returns whether every model accepts the name of an argument: `[A-Za-z0-9_.-]{1,64}`, the rule of Anthropic.
fn is_argument_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_LENGTH && name.chars().all(|c| is_name_char(c) || c == '.')
}

/// Returns the name under which models see an argument; `None` if that is its own name.
pub(super) fn argument_alias(name: &str) -> Option<String> {
    (!is_argument_name(name)).then(|| distinct_name(name, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_plain_short_and_distinct() {
        assert_eq!(model_name("weather-check"), "weather-check");
        let names = [
            model_name("天気"),
            model_name("天氣"),
            model_name("3d-print"),
            model_name("-x"),
            distinct_name("wetter", "a:wetter@1"),
            distinct_name("wetter", "b:wetter@1"),
            distinct_name(&"9".repeat(80), ""),
        ];
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for name in &names {
            assert!(is_model_name(name), "{name}");
        }
    }

    #[test]
    fn arguments_keep_their_names_where_every_model_takes_them() {
        for name in ["city", "filter.name", "2fa", "-x"] {
            assert_eq!(argument_alias(name), None, "{name}");
        }
        for (name, start) in [("$top", "__top_"), ("filter[id]", "filter_id__"), ("größe", "gr__e_")] {
            let alias = argument_alias(name).unwrap();
            assert!(alias.starts_with(start) && is_argument_name(&alias), "{name} {alias}");
        }
        assert!(argument_alias("").is_some_and(|alias| is_argument_name(&alias)));
        assert!(argument_alias(&"x".repeat(65)).is_some_and(|alias| is_argument_name(&alias)));
    }
}
