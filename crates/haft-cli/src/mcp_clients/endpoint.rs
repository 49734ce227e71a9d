//! How a client reaches haft.

use haft_core::secret::Secret;
use url::Url;

/// What every token of haft starts with.
const TOKEN_PREFIX: &str = "haft_";

/// How a client reaches haft.
pub(crate) enum Endpoint {
    /// By streamable HTTP.
    Http {
        /// The URL of the MCP server.
        url: Url,
        /// The token that the client sends; without one it logs in by itself.
        token: Option<Secret>,
    },
    /// By a program that the client starts.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// The token in its environment, if it needs one.
        token: Option<Secret>,
    },
}

/// Returns the URL and the token of haft in the text of an entry; `None` where it has none.
pub(crate) fn url_of_entry(entry: &str) -> (Option<Url>, Option<Secret>) {
    let url = ["https://", "http://"].iter().find_map(|scheme| {
        let text = entry.get(entry.find(scheme)?..)?;
        let end = text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ','));
        Url::parse(text.get(..end.unwrap_or(text.len()))?).ok()
    });
    let token = entry.find(TOKEN_PREFIX).and_then(|start| entry.get(start..)).map(|text| {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        Secret::new(text.chars().take_while(is_part).collect::<String>())
    });
    (url, token.filter(|token| token.expose().len() > TOKEN_PREFIX.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_and_the_token_of_an_entry_are_found_in_every_form() {
        let found = |entry| {
            let (url, token) = url_of_entry(entry);
            (url.map(String::from), token.map(|token| token.expose().to_owned()))
        };
        let both = (Some("http://127.0.0.1:18789/mcp".to_owned()), Some("haft_Ab-1_c".to_owned()));
        let json = r#"{"url":"http://127.0.0.1:18789/mcp","headers":{"Authorization":"Bearer haft_Ab-1_c"}}"#;
        assert_eq!(found(json), both);
        let yaml = "haft:\n  uri: 'http://127.0.0.1:18789/mcp'\n  headers:\n    Authorization: \"Bearer haft_Ab-1_c\"\n";
        assert_eq!(found(yaml), both);
        let program = r#"{"command":"/usr/bin/haft","args":["mcp","--context","local"]}"#;
        assert_eq!(found(program), (None, None));
    }
}
