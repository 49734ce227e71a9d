use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use crate::{
    Chunk, Filter, Hit, Index, IndexError, Language, MAX_QUERY, MAX_TOP_K, Metadata, MetadataValue, Position,
    SearchRequest, analyzer,
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
    let index = Index::new();
    let mut update = index.update().unwrap();
    for chunk in chunks {
        update.add(chunk).unwrap();
    }
    update.commit();
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
    update.commit();
    assert_eq!(ids(&index, "alpha", None), ["b/1"]);
    assert_eq!(ids(&index, "beta", None), Vec::<String>::new());
    assert_eq!(ids(&index, "gamma", None), ["a/3"]);
    assert_eq!(index.len(), 2);
    let mut update = index.update().unwrap();
    update.add(&chunk("a/3", "delta", "{}")).unwrap();
    update.remove("b/1");
    update.commit();
    assert_eq!(ids(&index, "gamma alpha delta", None), ["a/3"]);
    let mut dropped = index.update().unwrap();
    dropped.remove("a/3");
    drop(dropped);
    assert_eq!(index.len(), 1);
}

#[test]
fn a_chunk_is_replaced_and_removed_within_one_update() {
    let index = Index::new();
    let mut update = index.update().unwrap();
    for text in ["alpha", "beta", "gamma"] {
        update.add(&chunk("a/1", text, "{}")).unwrap();
    }
    update.add(&chunk("b/1", "gamma", "{}")).unwrap();
    update.remove("b/1");
    update.add(&chunk("c/1", "gamma", "{}")).unwrap();
    update.remove_document("c");
    update.add(&chunk("c/2", "gamma", "{}")).unwrap();
    update.remove("unknown");
    update.commit();
    assert_eq!(ids(&index, "alpha beta gamma", None), ["a/1", "c/2"]);
    assert_eq!(index.len(), 2);
}

#[test]
fn a_search_reads_one_state_while_updates_go_on() {
    let index = index(&[chunk("a/1", "alpha beta", "{}")]);
    std::thread::scope(|scope| {
        let searching = scope.spawn(|| {
            // Every state has exactly one chunk, whichever words it has.
            (0..2_000).all(|_| ids(&index, "alpha beta", None) == ["a/1"])
        });
        for round in 0..200 {
            let mut update = index.update().unwrap();
            update.add(&chunk("a/1", if round % 2 == 0 { "alpha" } else { "beta" }, "{}")).unwrap();
            update.commit();
        }
        assert!(searching.join().unwrap());
    });
}

#[test]
fn chunks_of_equal_scores_come_in_the_order_of_their_ids() {
    let numbers = [7, 3, 9, 1, 5, 8, 2, 6, 4];
    let index = Index::new();
    for number in numbers {
        let mut update = index.update().unwrap();
        update.add(&chunk(&format!("a/{number}"), "alpha", "{}")).unwrap();
        update.commit();
    }
    let request = SearchRequest { query: "alpha", top_k: 4, filter: None };
    let hits = index.search(&request).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.chunk.as_str()).collect::<Vec<_>>(), ["a/1", "a/2", "a/3", "a/4"]);
    assert!(hits.iter().all(|hit| hit.score.to_bits() == hits[0].score.to_bits()));
}

#[test]
fn words_of_other_scripts_are_found() {
    let index = index(&[
        chunk("a/1", "東京都の天気", "{}"),
        chunk("a/2", "Погода в Москве", "{}"),
        chunk("a/3", "Καιρός στην Αθήνα", "{}"),
        chunk("a/4", "cafe\u{301} 🦀 ﬁne", "{}"),
    ]);
    for (query, expected) in
        [("京都", "a/1"), ("МОСКВЕ", "a/2"), ("ΑΘΉΝΑ", "a/3"), ("café", "a/4"), ("fine", "a/4")]
    {
        assert_eq!(ids(&index, query, None), [expected], "{query}");
    }
    assert_eq!(ids(&index, "🦀", None), Vec::<String>::new());
}

#[test]
fn a_long_query_counts_its_first_words_only() {
    let index = index(&[chunk("a/1", "first", "{}"), chunk("a/2", "last", "{}")]);
    let fillers: Vec<String> = (0..1_000).map(|number| format!("w{number} ")).collect();
    let query = format!("first {}last", fillers.concat());
    assert!(query.len() <= MAX_QUERY);
    assert_eq!(ids(&index, &query, None), ["a/1"]);
}

#[test]
fn memory_follows_what_the_index_holds() {
    let index = Index::new();
    assert_eq!(index.memory(), 0);
    let text = |number: usize| {
        let words: Vec<String> = (0..100).map(|word| format!("w{}", number * 50 + word)).collect();
        words.join(" ")
    };
    let mut update = index.update().unwrap();
    for number in 0..100 {
        update.add(&chunk(&format!("a/{number}"), &text(number), "{}")).unwrap();
    }
    update.commit();
    let full = index.memory();
    // 10,000 postings and 5,050 terms.
    assert!((10_000..1_000_000).contains(&full), "{full}");
    let mut update = index.update().unwrap();
    (10..100).for_each(|number| update.remove(&format!("a/{number}")));
    update.commit();
    assert!(index.memory() < full / 4, "{} of {full}", index.memory());
    let mut update = index.update().unwrap();
    update.remove_document("a");
    update.commit();
    assert_eq!((index.len(), index.memory()), (0, 0));
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

/// The score of every chunk that has one of the words, by the formula.
fn expected_scores(chunks: &BTreeMap<String, Chunk>, query: &str) -> HashMap<String, f64> {
    #[expect(clippy::cast_precision_loss, reason = "a few chunks")]
    let number = |count: usize| count as f64;
    let used = |language: &Language| chunks.values().any(|chunk| chunk.language == *language);
    let languages: Vec<Language> = Language::ALL.into_iter().filter(used).collect();
    let texts: HashMap<&String, Vec<String>> =
        chunks.iter().map(|(id, chunk)| (id, analyzer::terms(&chunk.text, chunk.language))).collect();
    let average = number(texts.values().map(Vec::len).sum()) / number(texts.len());
    let score = |text: &Vec<String>, stem: &String| {
        let with = number(texts.values().filter(|text| text.contains(stem)).count());
        let count = number(text.iter().filter(|term| *term == stem).count());
        let rarity = (1.0 + (number(texts.len()) - with + 0.5) / (with + 0.5)).ln();
        rarity * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * number(text.len()) / average))
    };
    let words = analyzer::query_terms(query, &languages);
    let of_text = |text: &Vec<String>| -> f64 {
        words.iter().map(|stems| stems.iter().map(|stem| score(text, stem)).fold(0.0, f64::max)).sum()
    };
    let scores = texts.iter().map(|(id, text)| ((*id).clone(), of_text(text)));
    scores.filter(|(_, score)| *score > 0.0).collect()
}

fn text() -> impl Strategy<Value = String> {
    // The common words decide the language; some of the others differ in their stems.
    let word = prop::sample::select(vec![
        "the",
        "of",
        "und",
        "der",
        "meetings",
        "meeting",
        "wing",
        "wings",
        "häuser",
        "haus",
        "東京都",
        "42",
        "engine",
    ]);
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_updated_index_ranks_by_the_formula_and_as_a_rebuilt_one(
        updates in prop::collection::vec(
            prop::collection::vec((0_u8..30, prop::option::weighted(0.7, text())), 1..12), 1..12),
        queries in prop::collection::vec(text(), 1..6),
        top_k in 1_usize..12,
    ) {
        let updated = Index::new();
        let mut chunks = BTreeMap::new();
        for changes in updates {
            let mut update = updated.update().unwrap();
            for (number, text) in changes {
                let id = format!("{}/{number}", number % 4);
                if let Some(text) = text {
                    let chunk = chunk(&id, &text, "{}");
                    update.add(&chunk).unwrap();
                    chunks.insert(id, chunk);
                } else {
                    update.remove(&id);
                    chunks.remove(&id);
                }
            }
            update.commit();
        }
        prop_assert_eq!(updated.len(), chunks.len());
        let rebuilt = index(&chunks.values().cloned().collect::<Vec<_>>());
        for query in &queries {
            let request = SearchRequest { query, top_k, filter: None };
            let hits = updated.search(&request).unwrap();
            prop_assert_eq!(&hits, &rebuilt.search(&request).unwrap());
            let expected = expected_scores(&chunks, query);
            prop_assert_eq!(hits.len(), expected.len().min(top_k));
            for hit in &hits {
                prop_assert!((f64::from(hit.score) - expected[&hit.chunk]).abs() < 1e-4, "{:?} {}", hit, expected[&hit.chunk]);
            }
            let is_before =
                |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then_with(|| a.chunk.cmp(&b.chunk)).is_lt();
            prop_assert!(hits.is_sorted_by(is_before));
            let worst = hits.last().map_or(0.0, |hit| f64::from(hit.score));
            let missed = expected.iter().filter(|(id, _)| hits.iter().all(|hit| hit.chunk != **id));
            prop_assert!(missed.map(|(_, score)| *score).fold(0.0, f64::max) < worst + 1e-4);
        }
    }
}
