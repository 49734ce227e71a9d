use proptest::prelude::*;

use crate::{
    Chunk, Filter, Index, IndexError, Language, MAX_QUERY, MAX_TOP_K, Metadata, MetadataValue, Position,
    SearchRequest,
};

pub(crate) fn chunk(id: &str, text: &str, metadata: &str) -> Chunk {
    Chunk {
        id: id.to_owned(),
        document: id.split('/').next().unwrap().to_owned(),
        ordinal: 0,
        headings: Vec::new(),
        text: text.to_owned(),
        position: Position { bytes: 0..text.len(), lines: None, pages: None },
        hash: String::new(),
        language: Language::detect(text),
        metadata: serde_json::from_str(metadata).unwrap(),
    }
}

pub(crate) fn index(chunks: &[Chunk]) -> Index {
    let index = Index::in_memory().unwrap();
    let mut update = index.update().unwrap();
    for chunk in chunks {
        update.add(chunk).unwrap();
    }
    update.commit().unwrap();
    index
}

fn ids(index: &Index, query: &str, filter: Option<&Filter>) -> Vec<String> {
    let request = SearchRequest { query, top_k: 10, filter };
    index.search(&request).unwrap().into_iter().map(|hit| hit.chunk).collect()
}

#[test]
fn stems_match_in_english_and_german() {
    let index = index(&[
        chunk("en/1", "The engines of the aircraft were running at full power.", "{}"),
        chunk("en/2", "A recipe for bread with the best of flour.", "{}"),
        chunk("de/1", "Die Häuser in der Stadt sind alt und nicht gebaut worden.", "{}"),
    ]);
    assert_eq!(ids(&index, "how does an engine run", None), ["en/1"]);
    assert_eq!(ids(&index, "Haus", None), ["de/1"]);
    assert_eq!(ids(&index, "AIRCRAFTS, bread", None).len(), 2);
    assert_eq!(ids(&index, "zeppelin", None), Vec::<String>::new());
    assert_eq!(ids(&index, "?!", None), Vec::<String>::new());
    assert_eq!(ids(&index, "", None), Vec::<String>::new());
}

#[test]
fn headings_count_as_text() {
    let mut with_heading = chunk("a/1", "Run the script.", "{}");
    with_heading.headings = vec!["Installation".to_owned()];
    let index = index(&[with_heading, chunk("a/2", "Run the tests.", "{}")]);
    assert_eq!(ids(&index, "installation", None), ["a/1"]);
}

#[test]
fn rare_words_and_short_texts_rank_higher() {
    let index = index(&[
        chunk("a/1", "wing wing flutter", "{}"),
        chunk("a/2", "wing", "{}"),
        chunk("a/3", "wing of a plane with many other words in the text", "{}"),
    ]);
    let request = SearchRequest { query: "wing flutter", top_k: 2, filter: None };
    let hits = index.search(&request).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.chunk.as_str()).collect::<Vec<_>>(), ["a/1", "a/2"]);
    assert!(hits[0].score > hits[1].score && hits[1].score > 0.0);
    assert_eq!(hits[0].document, "a");
}

#[test]
fn an_update_touches_one_document_and_is_visible_after_its_commit() {
    let index =
        index(&[chunk("a/1", "alpha", "{}"), chunk("a/2", "beta", "{}"), chunk("b/1", "alpha", "{}")]);
    let mut update = index.update().unwrap();
    assert!(matches!(index.update(), Err(IndexError::Busy)));
    update.remove_document("a");
    update.add(&chunk("a/3", "gamma", "{}")).unwrap();
    assert_eq!(ids(&index, "alpha", None).len(), 2);
    update.commit().unwrap();
    assert_eq!(ids(&index, "alpha", None), ["b/1"]);
    assert_eq!(ids(&index, "beta", None), Vec::<String>::new());
    assert_eq!(ids(&index, "gamma", None), ["a/3"]);
    assert_eq!(index.len(), 2);
    let mut update = index.update().unwrap();
    update.add(&chunk("a/3", "delta", "{}")).unwrap();
    update.remove("b/1");
    update.commit().unwrap();
    assert_eq!(ids(&index, "gamma alpha delta", None), ["a/3"]);
    let mut dropped = index.update().unwrap();
    dropped.remove("a/3");
    drop(dropped);
    assert_eq!(index.len(), 1);
}

#[test]
fn an_index_in_a_folder_survives_and_a_damaged_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let first = Index::open(&path).unwrap();
    let mut update = first.update().unwrap();
    update.add(&chunk("a/1", "alpha", r#"{"year":2026}"#)).unwrap();
    update.commit().unwrap();
    drop(first);
    let second = Index::open(&path).unwrap();
    assert_eq!(ids(&second, "alpha", None), ["a/1"]);
    drop(second);
    std::fs::write(path.join("meta.json"), "{").unwrap();
    assert!(matches!(Index::open(&path), Err(IndexError::Outdated(_))));
}

#[test]
fn hostile_requests_are_rejected_by_name() {
    let index = index(&[chunk("a/1", "alpha", "{}")]);
    let search =
        |query: &str, top_k| index.search(&SearchRequest { query, top_k, filter: None }).unwrap_err();
    assert!(matches!(search("a", 0), IndexError::TopK(0)));
    assert!(matches!(search("a", MAX_TOP_K + 1), IndexError::TopK(_)));
    assert!(matches!(search(&"x".repeat(MAX_QUERY + 1), 1), IndexError::QueryTooLong(_)));
    let deep = (0..50).fold(Filter::All(Vec::new()), |inner, _| Filter::Not(Box::new(inner)));
    let request = SearchRequest { query: "a", top_k: 1, filter: Some(&deep) };
    assert!(matches!(index.search(&request), Err(IndexError::Filter(_))));
    let many: Vec<String> = (0..2000).map(|n| format!("w{n} ")).collect();
    assert_eq!(ids(&index, &many.concat(), None), Vec::<String>::new());
    let mut invalid = chunk("a/2", "beta", "{}");
    invalid.metadata.insert("n".into(), f64::INFINITY.into());
    assert!(matches!(index.update().unwrap().add(&invalid), Err(IndexError::Metadata(_))));
}

#[test]
fn filters_narrow_a_search() {
    let index = index(&[
        chunk("a/1", "alpha", r#"{"team":"core","year":2024,"tags":["x","y"]}"#),
        chunk("a/2", "alpha", r#"{"team":"web","year":-3.5,"draft":true}"#),
        chunk("a/3", "alpha", r#"{"year":10}"#),
    ]);
    let with = |json: &str| {
        let mut found = ids(&index, "alpha", Some(&serde_json::from_str(json).unwrap()));
        found.sort();
        found.join(" ")
    };
    assert_eq!(with(r#"{"equals":{"key":"team","value":"core"}}"#), "a/1");
    assert_eq!(with(r#"{"equals":{"key":"tags","value":"y"}}"#), "a/1");
    assert_eq!(with(r#"{"range":{"key":"year","min":9}}"#), "a/1 a/3");
    assert_eq!(with(r#"{"range":{"key":"year","max":10}}"#), "a/2 a/3");
    assert_eq!(with(r#"{"range":{"key":"year","min":11,"max":10}}"#), "");
    assert_eq!(with(r#"{"not":{"exists":{"key":"team"}}}"#), "a/3");
    assert_eq!(with(r#"{"in":{"key":"team","values":["web","core",1]}}"#), "a/1 a/2");
    assert_eq!(with(r#"{"all":[{"exists":{"key":"team"}},{"equals":{"key":"draft","value":true}}]}"#), "a/2");
}

fn scalar() -> impl Strategy<Value = MetadataValue> {
    prop_oneof![
        any::<bool>().prop_map(MetadataValue::Bool),
        prop_oneof![(-3_i8..3).prop_map(f64::from), prop::num::f64::NORMAL, Just(-0.0)]
            .prop_map(MetadataValue::Number),
        "[ab\u{1}]{0,2}".prop_map(MetadataValue::String),
    ]
}

fn key() -> impl Strategy<Value = String> {
    "[ab]{1,2}"
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let value = prop_oneof![scalar(), prop::collection::vec(scalar(), 0..3).prop_map(MetadataValue::Array)];
    prop::collection::btree_map(key(), value, 0..4)
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        (key(), scalar()).prop_map(|(key, value)| Filter::Equals { key, value }),
        (key(), prop::collection::vec(scalar(), 0..3)).prop_map(|(key, values)| Filter::In { key, values }),
        (key(), prop::option::of(scalar()), prop::option::of(scalar()))
            .prop_map(|(key, min, max)| Filter::Range { key, min, max }),
        key().prop_map(|key| Filter::Exists { key }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::All),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_index_filters_as_the_rule_says(
        documents in prop::collection::vec(metadata(), 1..6),
        filters in prop::collection::vec(filter(), 1..20),
    ) {
        let mut chunks = Vec::new();
        for (number, metadata) in documents.iter().enumerate() {
            let mut one = chunk(&format!("d/{number}"), "word", "{}");
            one.metadata = metadata.clone();
            chunks.push(one);
        }
        let index = index(&chunks);
        for filter in filters.iter().filter(|filter| filter.check().is_ok()) {
            let expected: std::collections::HashSet<String> = chunks
                .iter()
                .filter(|chunk| filter.matches(&chunk.metadata))
                .map(|chunk| chunk.id.clone())
                .collect();
            prop_assert_eq!(index.matching(filter).unwrap(), expected, "{:?}", filter);
        }
    }
}
