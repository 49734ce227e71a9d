//! The quality of BM25 on the Cranfield collection, next to the Python package `bm25s` with the same texts and the same k.
//!
//! The benchmark takes a folder with its three files, which many
//! universities offer: `cran.all.1400`, `cran.qry` and `cranqrel`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use haft_retrieval::{
    ChunkOptions, Index, Metadata, ReadOptions, SearchRequest, SizeUnit, Source, chunk, read,
};
use serde_json::json;

/// The number of documents that each system returns.
const K: usize = 100;

/// The peer, in its own interpreter.
const PEER: &str = include_str!("../peers/retrieval.py");

/// Documents by id, queries, and the ids that are relevant to each query.
struct Collection {
    documents: Vec<(String, String)>,
    queries: Vec<String>,
    relevant: Vec<HashSet<String>>,
}

/// Measures and prints the table.
pub fn run(folder: &Path) -> Result<()> {
    let collection = Collection::read(folder)?;
    println!(
        "\n## Retrieval: Cranfield, {} documents, {} queries\n",
        collection.documents.len(),
        collection.queries.len()
    );
    println!("| system | nDCG@10 | recall@10 | recall@100 | ms per query |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let (rankings, milliseconds) = haft(&collection)?;
    collection.print("haft", &rankings, &format!("{milliseconds:.2}"));
    for (name, stem) in [("bm25s", false), ("bm25s with PyStemmer", true)] {
        match peer(&collection, stem) {
            Ok(rankings) => collection.print(name, &rankings, ""),
            Err(error) => println!("| {name} | not installed ({error}) | | | |"),
        }
    }
    Ok(())
}

impl Collection {
    fn read(folder: &Path) -> Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let documents = records(&file("cran.all.1400")?);
        // The judgements count the queries; the numbers in the file of queries have gaps.
        let queries: Vec<String> = records(&file("cran.qry")?).into_iter().map(|(_, text)| text).collect();
        let mut relevant = vec![HashSet::new(); queries.len()];
        for line in file("cranqrel")?.lines() {
            let mut words = line.split_whitespace();
            let (Some(query), Some(document), Some(grade)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let place = query.parse::<usize>()?.checked_sub(1).and_then(|query| relevant.get_mut(query));
            if let Some(relevant) = place.filter(|_| grade != "-1" && grade != "5") {
                relevant.insert(document.to_owned());
            }
        }
        if documents.is_empty() || relevant.iter().all(HashSet::is_empty) {
            bail!("the files are not those of the Cranfield collection");
        }
        Ok(Self { documents, queries, relevant })
    }

    fn print(&self, name: &str, rankings: &[Vec<String>], milliseconds: &str) {
        let judged = || rankings.iter().zip(&self.relevant).filter(|(_, relevant)| !relevant.is_empty());
        let mean = |measure: &dyn Fn(&[String], &HashSet<String>) -> f64| {
            let values: Vec<f64> = judged().map(|(ranking, relevant)| measure(ranking, relevant)).collect();
            #[expect(clippy::cast_precision_loss, reason = "a few hundred queries")]
            let count = values.len() as f64;
            values.iter().sum::<f64>() / count
        };
        println!(
            "| {name} | {:.4} | {:.4} | {:.4} | {milliseconds} |",
            mean(&|ranking, relevant| ndcg(ranking, relevant, 10)),
            mean(&|ranking, relevant| recall(ranking, relevant, 10)),
            mean(&|ranking, relevant| recall(ranking, relevant, 100)),
        );
    }
}

/// Returns the records of a file as id and text (`.W`); a record without text is left out.
fn records(file: &str) -> Vec<(String, String)> {
    let mut records: Vec<(String, String)> = Vec::new();
    let mut in_text = false;
    for line in file.lines() {
        if let Some(id) = line.strip_prefix(".I ") {
            records.push((id.trim().to_owned(), String::new()));
            in_text = false;
        } else if line.len() == 2 && line.starts_with('.') {
            in_text = line == ".W";
        } else if let Some((_, text)) = records.last_mut().filter(|_| in_text) {
            text.push_str(line);
            text.push('\n');
        }
    }
    records.retain(|(_, text)| !text.trim().is_empty());
    records
}

/// Returns the rankings of haft and the milliseconds of a query.
fn haft(collection: &Collection) -> Result<(Vec<Vec<String>>, f64)> {
    // One chunk per document, as the peer has it.
    let options = ChunkOptions { unit: SizeUnit::Characters, target: 32_000, max: 32_000, overlap: 0 };
    let index = Index::new();
    let mut update = index.update()?;
    for (id, text) in &collection.documents {
        let document =
            read(text.as_bytes(), &ReadOptions { file_name: Some("a.txt"), ..ReadOptions::default() })?;
        let source = Source { document: id.clone(), metadata: Metadata::new() };
        for chunk in chunk(&document, &source, &options)? {
            update.add(&chunk)?;
        }
    }
    update.commit();
    let started = Instant::now();
    let mut rankings = Vec::new();
    for query in &collection.queries {
        let hits = index.search(&SearchRequest { query, top_k: K, filter: None })?;
        rankings.push(hits.into_iter().map(|hit| hit.document).collect());
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred queries")]
    let milliseconds = started.elapsed().as_secs_f64() * 1000.0 / collection.queries.len() as f64;
    Ok((rankings, milliseconds))
}

fn peer(collection: &Collection, stem: bool) -> Result<Vec<Vec<String>>> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-peers/retrieval/bin/python");
    let mut child = Command::new(python)
        .args(["-c", PEER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("run tools/setup peers retrieval")?;
    let request =
        json!({"documents": collection.documents, "queries": collection.queries, "k": K, "stem": stem})
            .to_string();
    // Dropped after the write, so that the peer sees the end.
    child.stdin.take().context("standard input")?.write_all(request.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the peer failed: {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns the normalised discounted cumulative gain of binary relevance.
fn ndcg(ranking: &[String], relevant: &HashSet<String>, k: usize) -> f64 {
    let gains: HashMap<usize, f64> =
        (1..).zip((2_u32..).map(|rank| 1.0 / f64::from(rank).log2())).take(k).collect();
    let gain = |rank: usize| gains.get(&rank).copied().unwrap_or_default();
    let ideal: f64 = (1..=relevant.len().min(k)).map(gain).sum();
    let actual: f64 = (1..)
        .zip(ranking)
        .filter(|(_, document)| relevant.contains(*document))
        .map(|(rank, _)| gain(rank))
        .sum();
    actual / ideal
}

/// Returns the share of the relevant documents among the first k.
fn recall(ranking: &[String], relevant: &HashSet<String>, k: usize) -> f64 {
    let found = ranking.iter().take(k).filter(|document| relevant.contains(*document)).count();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred documents")]
    let share = found as f64 / relevant.len() as f64;
    share
}
