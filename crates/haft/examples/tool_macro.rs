//! Functions of a program as tools: `cargo run -p haft --example tool_macro`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::{Args, Context, Failure, Tools, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Greets someone by name.
#[tool]
fn greet(
    /// The person to greet
    name: &str,
    /// The number of repetitions
    #[arg(default = 1, range = 1..=3)]
    times: usize,
) -> String {
    vec![format!("Hello, {name}!"); times].join(" ")
}

/// The unit of a temperature.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Serialize)]
struct Weather {
    degrees: f64,
    unit: Unit,
}

/// Returns the temperature in a city.
#[tool(pure, timeout = "10s", retry(attempts = 2, backoff = "100ms"))]
async fn temperature(
    context: &Context,
    /// The name of the city
    city: &str,
    #[arg(default = Unit::Celsius)] unit: Unit,
) -> Result<Weather, Failure> {
    context.progress(0.5, format!("looking at {city}"));
    tokio::task::yield_now().await;
    let celsius = match city {
        "Oslo" => 4.0,
        "Rome" => 18.5,
        "Atlantis" if context.attempt == 0 => {
            return Err(Failure::new("the weather station does not respond").retryable());
        }
        unknown => return Err(Failure::new(format!("no weather station in `{unknown}`"))),
    };
    let degrees = match unit {
        Unit::Celsius => celsius,
        Unit::Fahrenheit => celsius * 1.8 + 32.0,
    };
    Ok(Weather { degrees, unit })
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The text of the note
    text: String,
    /// Tags for searching
    #[serde(default)]
    tags: Vec<String>,
}

/// Keeps a note.
#[tool(name = "keep-note")]
fn keep_note(Args(note): Args<Note>) -> String {
    format!("kept {} characters under {}", note.text.len(), note.tags.join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Tools::new();
    for def in [greet::tool(), temperature::tool(), keep_note::tool()] {
        tools.register(def)?;
    }
    for (name, args) in [
        ("greet", json!({"name": "Ada", "times": 2})),
        ("temperature", json!({"city": "Rome", "unit": "fahrenheit"})),
        ("temperature", json!({"city": "Atlantis"})),
        ("keep-note", json!({"text": "buy milk", "tags": ["shop"]})),
        ("greet", json!({"name": "Ada", "times": 50})),
    ] {
        match tools.execute(name, args).await {
            Ok(value) => println!("{name}: {value}"),
            Err(error) => println!("{name}: {}", error.model_text()),
        }
    }
    Ok(())
}
