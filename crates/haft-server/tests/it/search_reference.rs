//! The ranking next to that of the reference implementation, on the tools of GitHub's API as haft imports them.
//!
//! `github-ranking.json` has the twelve best tools with their scores for each of the 200 queries of haft-search, as the
//! Python reference of the recipe ranks the output of the example `search_documents`.

use std::collections::HashMap;

use haft_core::Timestamp;
use haft_core::id::ToolId;
use haft_import::{api::ImportOptions, openapi::read};
use haft_search::{Document, Index};
use haft_testkit::prerequisite::{Prerequisite, skip};
use uuid::Uuid;

/// How many hits are compared.
const TOP: usize = 10;
/// Scores that differ by less are equal but for rounding.
const ROUNDING: f32 = 0.001;

fn read_data(path: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_ranking_is_that_of_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-data/github-openapi.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        skip(Prerequisite::GithubDescription, "the description of GitHub's API has not been fetched");
        return;
    };
    let import = read(&text, &ImportOptions::default()).unwrap();
    let mut index = Index::default();
    let mut names = HashMap::new();
    for (number, tool) in (0_u128..).zip(&import.tools) {
        let id = ToolId(Uuid::from_u128(number));
        index.put(id, &Document::from(&tool.spec), Timestamp::UNIX_EPOCH);
        names.insert(id, tool.spec.name.as_str());
    }
    let queries = read_data("../haft-search/tests/data/queries.txt");
    let expected: Vec<Vec<(String, f32)>> =
        serde_json::from_str(&read_data("tests/data/github-ranking.json")).unwrap();
    assert_eq!((queries.lines().count(), expected.len()), (200, 200));
    for (query, expected) in queries.lines().zip(&expected) {
        let hits = index.rank(query, TOP, |_| true);
        assert_eq!(hits.len(), TOP, "{query}");
        for (hit, (best, score)) in hits.iter().zip(expected) {
            let name = names[&hit.id];
            // Tools with equal scores may change places.
            let own = expected.iter().find(|(other, _)| other == name).map(|(_, score)| *score);
            let is_same = own.is_some_and(|own| {
                (own - score).abs() <= ROUNDING && (own - hit.score).abs() <= ROUNDING * own.max(1.0)
            });
            assert!(is_same, "{query}: `{name}` {} instead of `{best}` {score}", hit.score);
        }
    }
}
