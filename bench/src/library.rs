//! A tool of the library called in this process, compared with a call of its function; and a folder of many definitions.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use haft::{ToolDef, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The number of calls per measurement, because one is too short for the clock.
const BATCH: u32 = 1_000;
const BATCHES: usize = 200;
/// The number of definitions in the folder.
const FILES: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    city: String,
    days: u8,
}

async fn forecast(args: Forecast) -> usize {
    args.city.len() + usize::from(args.days)
}

/// Prints the tables.
pub async fn run() -> Result<()> {
    println!("\n## A function of the program, called in this process\n");
    println!("| variant | p50 ns | p99 ns |");
    println!("| --- | ---: | ---: |");
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let started = Instant::now();
        for _ in 0..BATCH {
            let args = Forecast { city: black_box("Berlin").to_owned(), days: black_box(3) };
            black_box(forecast(args).await);
        }
        times.push(started.elapsed() / BATCH);
    }
    row("the function itself", times);
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let started = Instant::now();
        for _ in 0..BATCH {
            let args: Forecast = serde_json::from_value(json!({"city": black_box("Berlin"), "days": 3}))?;
            black_box(json!(forecast(args).await));
        }
        times.push(started.elapsed() / BATCH);
    }
    row("the function, with arguments deserialized from JSON", times);
    let tools = Tools::builder().tool(ToolDef::new("forecast", forecast)).build()?;
    row("`execute_json`: validated, typed, limited", execute_times(&tools).await?);
    let view = tools.filter(["forecast"])?;
    row("`execute_json` through a filter", execute_times(&view).await?);
    folder()
}

async fn execute_times(tools: &Tools) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let started = Instant::now();
        for _ in 0..BATCH {
            let value =
                tools.execute_json("forecast", json!({"city": black_box("Berlin"), "days": 3})).await?;
            black_box(value);
        }
        times.push(started.elapsed() / BATCH);
    }
    Ok(times)
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0, Duration::as_nanos);
    println!("| {name} | {} | {} |", at(50), at(99));
}

/// Loads a folder of many definitions twice.
fn folder() -> Result<()> {
    let home = tempfile::tempdir()?;
    for number in 0..FILES {
        let text = format!(
            "name: tool_{number}\ndescription: Forecast number {number}\nparams:\n  - name: city\n    type: string\n    \
             description: The name of the city\n    required: true\nimplementation:\n  type: http\n  \
             url: https://api.example.com/forecast/{number}\n  query:\n    city: \"{{{{city}}}}\"\n"
        );
        std::fs::write(home.path().join(format!("tool_{number}.yaml")), text)?;
    }
    let tools = Tools::new();
    let before = resident(Path::new("/proc/self/statm"))?;
    let started = Instant::now();
    let report = tools.load_directory(home.path())?;
    let first = started.elapsed();
    ensure!(report.is_clean() && report.loaded.len() == FILES, "{report}");
    let memory = resident(Path::new("/proc/self/statm"))?.saturating_sub(before) / 1024;
    let started = Instant::now();
    tools.load_directory(home.path())?;
    let again = started.elapsed();
    println!("\n## A folder of {FILES} YAML definitions\n");
    println!("| first load ms | memory MB | reload without changes ms |\n| ---: | ---: | ---: |");
    println!("| {} | {memory} | {} |", first.as_millis(), again.as_millis());
    Ok(())
}

/// Returns the resident memory in KiB.
fn resident(statm: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(statm)?;
    Ok(text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4)
}
