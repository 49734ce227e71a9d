use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::union::MAX_RANKED;

fn id(number: usize) -> ToolId {
    ToolId(Uuid::from_u128(number as u128 + 1))
}

fn time(second: usize) -> Timestamp {
    Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
}

fn document(name: &str, description: &str) -> Document {
    Document { name: name.to_owned(), description: description.to_owned(), ..Document::default() }
}

/// Indexes documents, each newer than the one before.
fn index(documents: &[Document]) -> Index {
    let mut index = Index::default();
    for (number, document) in documents.iter().enumerate() {
        index.put(id(number), document, time(number));
    }
    index
}

fn names(documents: &[Document], hits: &[Hit]) -> Vec<String> {
    hits.iter()
        .map(|hit| {
            documents.iter().enumerate().find(|(number, _)| id(*number) == hit.id).unwrap().1.name.clone()
        })
        .collect()
}

#[test]
fn keywords_are_found_by_prefix_then_word_then_similarity_then_recency() {
    let with = |title: &str, tags: &str, document: Document| Document {
        title: title.to_owned(),
        tags: tags.to_owned(),
        ..document
    };
    let documents = [
        document("forecast", "The weather of tomorrow"),
        document("wether", "A spelling mistake"),
        document("weather-check", "Current conditions"),
        document("old-news", "The news"),
        document("new-news", "The news"),
        with("Weather help", "", document("umbrella", "Take one")),
        with("", "weather", document("rain", "Rain radar")),
        with("Ärger", "", document("straße", "Über alles")),
    ];
    let index = index(&documents);
    for (query, expected) in [
        ("weather", vec!["weather-check", "umbrella", "rain", "forecast", "wether"]),
        ("WEATHER", vec!["weather-check", "umbrella", "rain", "forecast", "wether"]),
        ("wea", vec!["weather-check", "umbrella", "rain", "forecast"]),
        ("weather check", vec!["weather-check"]),
        ("forcast", vec!["forecast"]),
        ("news", vec!["new-news", "old-news"]),
        ("ärger", vec!["straße"]),
        ("über", vec!["straße"]),
        ("", vec![]),
        ("  - ", vec![]),
    ] {
        assert_eq!(names(&documents, &index.search(query, 10, |_| true)), expected, "{query}");
    }
}

#[cfg(feature = "embedding")]
#[test]
fn plain_language_finds_what_no_keyword_finds() {
    let documents = [
        document("convert_time", "Convert time between timezones"),
        document("send_email", "Send a message to one or more recipients"),
        document("create_issue", "Create an issue in a repository"),
    ];
    let index = index(&documents);
    for (query, expected) in [
        ("what is 5 pm in Tokyo when I am in Berlin, time zone wise", "convert_time"),
        ("mail my boss that I am late", "send_email"),
        ("report a bug in the repository", "create_issue"),
        ("please call createIssue for me", "create_issue"),
        ("SEND-EMAIL", "send_email"),
    ] {
        let best = index.rank(query, 1, |_| true);
        assert_eq!(names(&documents, &best), [expected], "{query}");
    }
    assert_eq!(index.rank("", 10, |_| true), []);
    assert_eq!(index.rank("send mail", 10, |_| false), []);
}

#[test]
fn a_misspelt_word_is_corrected() {
    let documents = [document("weather", "Current weather"), document("stock", "Stock prices")];
    let index = index(&documents);
    let matcher = Union::new([&index]).matcher("wether prises");
    assert_eq!(matcher.words(["Prices and weather of today"]), ["prices", "weather"]);
    assert_eq!(names(&documents, &index.rank("the curent wether outside", 1, |_| true)), ["weather"]);
}

// A word that every tool has decides nothing without the embedding.
#[cfg(feature = "embedding")]
#[test]
fn the_ranker_orders_tools_of_one_tier_and_recency_equal_ones() {
    let documents = [
        document("x-send", "Send it: sending of messages"),
        document("y-send", "Waters the plants of the garden on rainy days in spring"),
        document("z-send", "Waters the plants of the garden on rainy days in autumn"),
    ];
    let found = index(&documents).search("send", 10, |_| true);
    // By recency alone the first would be the last.
    assert_eq!(names(&documents, &found), ["x-send", "z-send", "y-send"]);
}

#[test]
fn ranking_by_meaning_is_bounded() {
    let documents: Vec<_> =
        (0..250).map(|number| document(&format!("tool-{number}"), "Reads the weather report")).collect();
    let index = index(&documents);
    assert_eq!(index.search("what is the weather like today", 1000, |_| true).len(), MAX_RANKED);
    assert_eq!(index.search("weather", 1000, |_| true).len(), 250);
}

#[test]
fn rejected_tools_make_room_for_the_next_best() {
    let documents: Vec<Document> =
        (0..40).map(|number| document(&format!("report_{number}"), "Reports")).collect();
    let index = index(&documents);
    let all: Vec<ToolId> = index.search("report", 40, |_| true).into_iter().map(|hit| hit.id).collect();
    assert_eq!(all.len(), 40);
    // One rejected tool is within the spare ones, the best thirty are not.
    for rejected in [1, 30] {
        let hits = index.search("report", 8, |id| !all[..rejected].contains(&id));
        let found: Vec<ToolId> = hits.into_iter().map(|hit| hit.id).collect();
        assert_eq!(found, all[rejected..rejected + 8], "{rejected}");
    }
}

#[test]
fn a_union_ranks_like_one_index() {
    let documents: Vec<Document> = [
        ("send_email", "Sends an email message to a person"),
        ("list_messages", "Lists the messages of a channel"),
        ("convert_time", "Converts a time between time zones"),
        ("create_invoice", "Creates an invoice for a customer"),
        ("weather", "Returns the weather forecast of a city"),
        ("send_invoice", "Sends an invoice by email"),
    ]
    .map(|(name, description)| document(name, description))
    .into();
    let one = index(&documents);
    let (mut left, mut right) = (Index::default(), Index::default());
    for (number, document) in documents.iter().enumerate() {
        let part = if number % 3 == 0 { &mut left } else { &mut right };
        part.put(id(number), document, time(number));
    }
    let union = Union::new([&left, &right]);
    for query in ["email", "send", "invoce", "send an invoice to a customer", "time in another zone", "x"] {
        let rounded = |hits: Vec<Hit>| -> Vec<(ToolId, i64)> {
            #[expect(clippy::cast_possible_truncation, reason = "scores are small")]
            hits.iter().map(|hit| (hit.id, (hit.score * 1000.0).round() as i64)).collect()
        };
        assert_eq!(rounded(union.rank(query, 4, |_| true)), rounded(one.rank(query, 4, |_| true)), "{query}");
        let found = |hits: Vec<Hit>| -> Vec<ToolId> { hits.iter().map(|hit| hit.id).collect() };
        assert_eq!(found(union.search(query, 4, |_| true)), found(one.search(query, 4, |_| true)), "{query}");
    }
}

#[test]
fn a_replaced_tool_is_found_by_its_new_text_only() {
    let mut index = index(&[document("a", "alpha"), document("b", "beta")]);
    index.put(id(0), &document("a", "gamma"), time(9));
    assert!(index.search("alpha", 10, |_| true).iter().all(|hit| hit.score <= 100.0));
    assert_eq!(index.search("gamma", 10, |_| true).first().map(|hit| hit.id), Some(id(0)));
    index.remove(id(0));
    index.remove(id(0));
    assert_eq!((index.len(), index.search("gamma", 10, |found| found == id(0))), (1, vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever was put and removed before: scores depend on what is there now.
    #[test]
    fn history_does_not_matter(
        steps in proptest::collection::vec((0_usize..6, proptest::option::of("[a-d]{1,3}( [a-d]{1,3}){0,4}")), 0..40),
        query in "[a-d]{1,4}( [a-d]{1,4}){0,3}",
    ) {
        let mut lived = Index::default();
        let mut now = std::collections::BTreeMap::new();
        for (number, text) in steps {
            if let Some(text) = text {
                let document = document(&format!("tool-{number}"), &text);
                lived.put(id(number), &document, time(number));
                now.insert(number, document);
            } else {
                lived.remove(id(number));
                now.remove(&number);
            }
        }
        let mut fresh = Index::default();
        for (number, document) in &now {
            fresh.put(id(*number), document, time(*number));
        }
        let (a, b) = (lived.rank(&query, 10, |_| true), fresh.rank(&query, 10, |_| true));
        prop_assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(&b) {
            prop_assert!((a.score - b.score).abs() < 1e-4, "{:?} {:?}", a, b);
        }
    }
}
