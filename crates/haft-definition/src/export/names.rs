//! Names that every model takes, for tools and for their arguments.

use haft_core::hash;

/// The longest name that every model accepts.
const MAX_LENGTH: usize = 64;

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Gemini takes no name that begins with a digit or a dash.
fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Tells whether every model accepts a name: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
pub fn is_model_name(name: &str) -> bool {
    begins_well(name) && name.len() <= MAX_LENGTH && name.chars().all(is_plain)
}

/// Makes a name that every model accepts. What had to be changed gets a hash, so that two names never fall together.
pub fn model_name(name: &str) -> String {
    if is_model_name(name) { name.to_owned() } else { distinct_name(name, name) }
}

/// Tells whether a name ends as those that [`distinct_name`] makes.
pub fn looks_distinct(name: &str) -> bool {
    let is_hash = |hash: &[u8]| hash.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    name.as_bytes().last_chunk::<7>().is_some_and(|[line, hash @ ..]| *line == b'_' && is_hash(hash))
}

/// Makes a name that every model accepts and that tells a tool from all others of its name, by a hash of what is
/// distinct about it.
pub fn distinct_name(name: &str, distinct: &str) -> String {
    let mut suffix = hash::of_bytes(distinct.as_bytes());
    suffix.truncate(6);
    let start = if begins_well(name) { "" } else { "_" };
    let kept = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let kept: String = start.chars().chain(kept).take(MAX_LENGTH - 7).collect();
    format!("{kept}_{suffix}")
}

/// Tells whether every model accepts the name of an argument: `[A-Za-z0-9_.-]{1,64}`, as Anthropic has it.
fn is_argument_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_LENGTH && name.chars().all(|c| is_plain(c) || c == '.')
}

/// Returns the name under which models are told an argument, where that is not its own.
pub(super) fn told_argument(name: &str) -> Option<String> {
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
            assert_eq!(told_argument(name), None, "{name}");
        }
        for (name, start) in [("$top", "__top_"), ("filter[id]", "filter_id__"), ("größe", "gr__e_")] {
            let told = told_argument(name).unwrap();
            assert!(told.starts_with(start) && is_argument_name(&told), "{name} {told}");
        }
        assert!(told_argument("").is_some_and(|told| is_argument_name(&told)));
        assert!(told_argument(&"x".repeat(65)).is_some_and(|told| is_argument_name(&told)));
    }
}
