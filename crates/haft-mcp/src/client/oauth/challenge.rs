//! Parses the header `WWW-Authenticate` of a server that requires a login (RFC 9110, 6750, 9728).

/// How many bytes of the header are parsed.
const MAX_LENGTH: usize = 8 * 1024;

/// The challenge of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::client) struct Challenge {
    /// The URL of its metadata.
    pub(in crate::client) resource_metadata: Option<String>,
    /// The required scope.
    pub(in crate::client) scope: Option<String>,
    /// Why it rejected a token.
    pub(in crate::client) error: Option<String>,
}

impl Challenge {
    /// Parses the header. Challenges of other schemes than `Bearer` are ignored.
    pub(in crate::client) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut rest = header.get(..MAX_LENGTH).unwrap_or(header);
        let mut bearer = false;
        while !rest.is_empty() {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let Some(value) = after.trim_start().strip_prefix('=').filter(|_| !word.is_empty()) else {
                // A word without a value names a scheme.
                bearer = word.eq_ignore_ascii_case("bearer");
                rest = after.trim_start_matches('=');
                continue;
            };
            let (value, after) = parse_value(value.trim_start());
            rest = after;
            if bearer {
                challenge.set(word, value);
            }
        }
        challenge
    }

    fn set(&mut self, name: &str, value: String) {
        let field = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        if !value.trim().is_empty() {
            field.get_or_insert(value);
        }
    }

    /// Returns whether the token is valid, but lacks a scope.
    pub(in crate::client) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Parses a value, quoted or not, and returns the rest.
fn parse_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(header: &str, expected: [Option<&str>; 3]) {
        let [resource_metadata, scope, error] = expected.map(|text| text.map(str::to_owned));
        assert_eq!(Challenge::parse(header), Challenge { resource_metadata, scope, error }, "{header}");
    }

    #[test]
    fn parses_headers() {
        check("", [None; 3]);
        check("Bearer", [None; 3]);
        check("Basic realm=\"x\", scope=\"no\"", [None; 3]);
        check(
            "Bearer resource_metadata=\"https://a.test/x?y=1,2\", scope=\"one two\"",
            [Some("https://a.test/x?y=1,2"), Some("one two"), None],
        );
        check(
            "Basic realm=\"a, Bearer scope=b\", bearer error=insufficient_scope,scope = \"w\"",
            [None, Some("w"), Some("insufficient_scope")],
        );
        check("Bearer error=\"a\\\"b\", error=\"second\"", [None, None, Some("a\"b")]);
        check("Bearer scope=\"never ends", [None, Some("never ends"), None]);
        check("Bearer scope=\"\", =, ==", [None; 3]);
        check("Bearer abc==, Bearer scope=s", [None, Some("s"), None]);
    }

    proptest! {
        #[test]
        fn never_panics(header in "[ -~é]{0,60}") {
            Challenge::parse(&header);
        }

        #[test]
        fn keeps_values(scope in "[a-z:/]{1,10}( [a-z:/]{1,10}){0,3}") {
            let read = Challenge::parse(&format!("Bearer realm=\"x\", scope=\"{scope}\""));
            prop_assert_eq!(read.scope, Some(scope));
        }
    }
}
