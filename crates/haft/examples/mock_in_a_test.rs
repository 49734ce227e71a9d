//! Tests of code that uses tools. Program: `cargo run -p haft --example mock_in_a_test`; tests: `cargo test -p haft
//! --example mock_in_a_test`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::{CallError, Tools, tool};
use serde_json::json;

/// Returns the URLs of pages about a topic.
#[tool]
fn web_search(query: &str, #[arg(default = 10, range = 1..=50)] limit: usize) -> Vec<String> {
    (1..=limit).map(|number| format!("https://example.com/{query}/{number}")).collect()
}

/// Sends an email.
#[tool]
fn send_email(to: &str, body: &str) -> String {
    format!("{} characters sent to {to}", body.len())
}

/// The code under test: searches for a topic and mails the result.
async fn report(tools: &Tools, subject: &str, to: &str) -> Result<String, CallError> {
    let pages: Vec<String> = match tools.execute("web_search", json!({"query": subject, "limit": 2})).await {
        Ok(pages) => serde_json::from_value(pages).unwrap_or_default(),
        Err(error) => vec![error.model_text()],
    };
    let sent = tools.execute("send_email", json!({"to": to, "body": pages.join("\n")})).await?;
    Ok(sent.as_str().unwrap_or_default().to_owned())
}

fn tools() -> Result<Tools, haft::RegisterError> {
    let tools = Tools::new();
    tools.register(web_search::tool())?;
    tools.register(send_email::tool())?;
    Ok(tools)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", report(&tools()?, "rust", "ada@example.com").await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use haft::MockTools;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn pages_are_mailed() {
        let mock = MockTools::from_tools(&tools().unwrap());
        mock.on("web_search").with(json!({"query": "rust", "limit": 2})).returns(["a", "b"]);
        mock.on("send_email").with(json!({"to": "ada", "body": "a\nb"})).returns("sent").times(1);
        assert_eq!(report(&mock.tools(), "rust", "ada").await.unwrap(), "sent");
    }

    #[tokio::test]
    async fn the_error_of_a_failed_search_is_mailed() {
        let mock = MockTools::from_tools(&tools().unwrap());
        mock.on("web_search").fails("no network");
        mock.on("send_email")
            .with(|args: &Value| args["body"] == "Tool call failed: no network")
            .returns("sent");
        assert_eq!(report(&mock.tools(), "rust", "ada").await.unwrap(), "sent");
    }
}
