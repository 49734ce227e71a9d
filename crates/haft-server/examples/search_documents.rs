//! Prints what tool search indexes of an OpenAPI description, to compare the ranking with another implementation.
//!
//! `search_documents FILE` prints a JSON list of `{"name", "desc", "params": [[names, descriptions]], "tags"}`, the form
//! that the example `rank` of haft-search reads.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example fails loudly and prints its result"
)]

use haft_import::{api::ImportOptions, openapi::read};
use haft_search::Document;
use serde_json::{Value, json};

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        println!("usage: search_documents FILE");
        return;
    };
    let import = read(&std::fs::read_to_string(path).unwrap(), &ImportOptions::default()).unwrap();
    let documents = import.tools.iter().map(|tool| {
        let document = Document::from(&tool.spec);
        json!({
            "name": document.name,
            "desc": document.description,
            "params": [[document.parameters, document.parameter_descriptions]],
            "tags": [document.tags],
        })
    });
    println!("{}", Value::Array(documents.collect()));
}
