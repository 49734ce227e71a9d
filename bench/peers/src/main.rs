//! Calls a no-op tool in one process through haft and its peers, and prints a table.
//!
//! All use the same function, schema and arguments. The arguments are created for every call in the form that the library
//! takes: a JSON object or JSON text. Rounds alternate between the Rust libraries; the Python libraries run in their own
//! interpreter between two halves of the rounds. A time is the median of the rounds.

mod python;
mod variants;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::variants::Variants;

/// The number of calls per measurement: one is too short for the clock, and too many would include preemptions.
const BATCH: u32 = 100;
/// The number of rounds before and after those of Python.
const ROUNDS: usize = 1_000;

/// A row of the table.
struct Row {
    name: &'static str,
    arguments: &'static str,
    checks: &'static str,
    /// `None` if the library is not installed.
    time: Option<Duration>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let variants = Variants::new()?;
    // Warms up caches and lazily created parts.
    measure(&variants, ROUNDS / 10).await?;
    let mut times = measure(&variants, ROUNDS).await?;
    let python = python::measure();
    for (all, more) in times.iter_mut().zip(measure(&variants, ROUNDS).await?) {
        all.extend(more);
    }
    let mut rows: Vec<Row> = Variants::ROWS
        .into_iter()
        .zip(times)
        .map(|((name, arguments, checks), times)| Row { name, arguments, checks, time: Some(median(times)) })
        .collect();
    rows.extend(python);
    print(&rows);
    Ok(())
}

/// Returns the time of each variant in each round.
async fn measure(variants: &Variants, rounds: usize) -> Result<Vec<Vec<Duration>>> {
    let mut times = vec![Vec::with_capacity(rounds); Variants::ROWS.len()];
    for _ in 0..rounds {
        for (variant, times) in times.iter_mut().enumerate() {
            let started = Instant::now();
            variants.call(variant, BATCH).await?;
            times.push(started.elapsed() / BATCH);
        }
    }
    Ok(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn print(rows: &[Row]) {
    let haft = rows.iter().find(|row| row.name == variants::HAFT).and_then(|row| row.time);
    println!("\n## A no-op tool, called in this process: haft and its peers\n");
    println!("| variant | arguments | checks | p50 ns | ratio to haft |");
    println!("| --- | --- | --- | ---: | ---: |");
    for Row { name, arguments, checks, time } in rows {
        let (nanos, ratio) = match (time, haft) {
            (Some(time), Some(haft)) => {
                (time.as_nanos().to_string(), format!("{:.2}", time.as_secs_f64() / haft.as_secs_f64()))
            }
            _ => ("not installed".to_owned(), String::new()),
        };
        println!("| {name} | {arguments} | {checks} | {nanos} | {ratio} |");
    }
}
