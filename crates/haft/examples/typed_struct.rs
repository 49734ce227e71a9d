//! A struct as the arguments, another one as the value, and a hand-written schema.
//!
//! `cargo run -p haft --example typed_struct`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::{Failure, Param, Params, ToolDef, Tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The arguments of the search.
#[derive(Serialize, Deserialize, JsonSchema)]
struct SearchParams {
    /// The search query
    query: String,
    /// Max results
    #[serde(default = "ten")]
    limit: usize,
}

fn ten() -> usize {
    10
}

/// A search result.
#[derive(Debug, Serialize, Deserialize)]
struct Hit {
    title: String,
}

async fn search(params: SearchParams) -> Result<Vec<Hit>, Failure> {
    if params.query.is_empty() {
        return Err(Failure::new("the query is empty"));
    }
    let titles = (1..=params.limit.min(3)).map(|number| Hit { title: format!("{} {number}", params.query) });
    Ok(titles.collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let complex = ToolDef::new("complex_tool", |args: Value| async move { args })
        .description("A tool with complex schema")
        .params(
            Params::new()
                .with(
                    "action",
                    Param::string()
                        .describe("Action to perform")
                        .required()
                        .one_of(["create", "update", "delete"]),
                )
                .with(
                    "data",
                    Param::object(Params::new().with("id", Param::string()).with("name", Param::string()))
                        .describe("Action payload"),
                ),
        );
    let tools = Tools::builder()
        .tool(ToolDef::new("search", search).description("Searches the catalogue.").pure())
        .tool(complex)
        .build()?;

    let hits: Vec<Hit> = tools.execute_as("search", SearchParams { query: "rust".into(), limit: 2 }).await?;
    println!("{hits:?}");
    if let Err(error) = tools.execute("complex_tool", json!({"action": "destroy"})).await {
        println!("{}", error.model_text());
    }
    Ok(())
}
