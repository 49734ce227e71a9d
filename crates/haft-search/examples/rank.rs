//! Ranks a catalogue for queries and prints the ten best tools of each, to compare with another ranker.
//!
//! `rank CATALOGUE QUERIES`: a JSON list of `{"name", "desc", "params": [[name, description]], "tags"}`, and a text file
//! with one query per line. Prints a JSON list per query: `[[name, score], …]`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example fails loudly and prints its result"
)]

use haft_core::Timestamp;
use haft_core::id::ToolId;
use haft_search::{Document, Index};
use serde_json::{Value, json};

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [catalogue, queries] = paths.as_slice() else {
        println!("usage: rank CATALOGUE QUERIES");
        return;
    };
    let tools: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(catalogue).unwrap()).unwrap();
    let mut index = Index::default();
    let mut names = std::collections::HashMap::new();
    for (number, tool) in (0_u128..).zip(&tools) {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let column = |at: usize| {
            let list = tool.get("params").and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|pair| pair.get(at)?.as_str()).collect::<Vec<_>>().join(" ")
        };
        let tags = tool.get("tags").and_then(Value::as_array).into_iter().flatten();
        let document = Document {
            name: text("name"),
            title: String::new(),
            description: text("desc"),
            parameters: column(0),
            parameter_descriptions: column(1),
            tags: tags.filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        };
        let id = ToolId(uuid::Uuid::from_u128(number));
        names.insert(id, document.name.clone());
        index.put(id, &document, Timestamp::UNIX_EPOCH);
    }
    for query in std::fs::read_to_string(queries).unwrap().lines() {
        let hits = index.rank(query, 10, |_| true);
        let rows: Vec<Value> = hits.iter().map(|hit| json!([names.get(&hit.id), hit.score])).collect();
        println!("{}", json!(rows));
    }
}
