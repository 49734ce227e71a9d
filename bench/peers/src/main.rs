//! Calls one tool that does nothing, in one process, through haft and through its peers, and prints a table.
//!
//! All get the same function, the same schema and the same arguments, each made anew for every call, in the form that
//! the library takes: an object of JSON, or its text. Rounds alternate between the libraries of Rust; those of Python run
//! in an interpreter of theirs, between two halves of the rounds. A time is the median of the rounds.

mod python;
mod ways;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::ways::Ways;

/// How many calls are taken together: one is too short for the clock, and many are longer than a process runs without
/// another one in between.
const BATCH: u32 = 100;
/// How many rounds come before and after those of Python.
const ROUNDS: usize = 1_000;

/// A row of the table.
struct Row {
    name: &'static str,
    given: &'static str,
    checks: &'static str,
    /// Nothing where the library is not installed.
    time: Option<Duration>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let ways = Ways::new()?;
    // Warms caches, and what libraries make on first use.
    measure(&ways, ROUNDS / 10).await?;
    let mut times = measure(&ways, ROUNDS).await?;
    let python = python::measure();
    for (all, more) in times.iter_mut().zip(measure(&ways, ROUNDS).await?) {
        all.extend(more);
    }
    let mut rows: Vec<Row> = Ways::ROWS
        .into_iter()
        .zip(times)
        .map(|((name, given, checks), times)| Row { name, given, checks, time: Some(median(times)) })
        .collect();
    rows.extend(python);
    print(&rows);
    Ok(())
}

/// Returns what each way took in each round.
async fn measure(ways: &Ways, rounds: usize) -> Result<Vec<Vec<Duration>>> {
    let mut times = vec![Vec::with_capacity(rounds); Ways::ROWS.len()];
    for _ in 0..rounds {
        for (way, times) in times.iter_mut().enumerate() {
            let started = Instant::now();
            ways.call(way, BATCH).await?;
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
    let haft = rows.iter().find(|row| row.name == ways::HAFT).and_then(|row| row.time);
    println!("\n## A tool that does nothing, called in this process: haft and its peers\n");
    println!("| way | arguments | checks | p50 ns | of haft |");
    println!("| --- | --- | --- | ---: | ---: |");
    for Row { name, given, checks, time } in rows {
        let (nanos, part) = match (time, haft) {
            (Some(time), Some(haft)) => {
                (time.as_nanos().to_string(), format!("{:.2}", time.as_secs_f64() / haft.as_secs_f64()))
            }
            _ => ("not installed".to_owned(), String::new()),
        };
        println!("| {name} | {given} | {checks} | {nanos} | {part} |");
    }
}
