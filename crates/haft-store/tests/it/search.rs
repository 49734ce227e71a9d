//! The ranking of searches.

use haft_core::catalog::Backup;
use haft_core::spec::ToolSpec;

use crate::harness::{Harness, new_tool, on_both, spec};

on_both![prefix_then_whole_word_then_fuzzy_then_recency, the_search_index_is_updated_with_every_change];

fn names(harness: &Harness, query: &str) -> Vec<String> {
    let mirror = harness.mirror();
    let hits = harness.store.search().search(query, 10, |id| mirror.tools[&id].enabled);
    hits.iter().map(|hit| mirror.tools[&hit.id].spec.name.to_string()).collect()
}

async fn prefix_then_whole_word_then_fuzzy_then_recency(harness: Harness) {
    for (name, title, tags, description) in [
        ("forecast", "", vec![], "The weather of tomorrow"),
        ("wether", "", vec![], "A spelling mistake"),
        ("weather-check", "", vec![], "Current conditions"),
        ("old-news", "", vec![], "The news"),
        ("new-news", "", vec![], "The news"),
        ("umbrella", "Weather help", vec![], "Take one"),
        ("rain", "", vec!["weather".to_owned()], "Rain radar"),
        ("straße", "Ärger", vec![], "Über alles"),
    ] {
        let spec = ToolSpec { display_name: title.into(), tags, ..spec(name, description) };
        harness.store.create_tool(new_tool("web", spec)).await.unwrap();
    }
    for (query, expected) in [
        ("weather", vec!["weather-check", "umbrella", "rain", "forecast", "wether"]),
        ("WEATHER", vec!["weather-check", "umbrella", "rain", "forecast", "wether"]),
        ("wea", vec!["weather-check", "umbrella", "rain", "forecast"]),
        ("weather check", vec!["weather-check"]),
        ("forcast", vec!["forecast"]),
        ("news", vec!["new-news", "old-news"]),
        ("ärger", vec!["straße"]),
        ("STRASSE", vec![]),
        ("über", vec!["straße"]),
        ("nothing-of-the-kind", vec![]),
        ("", vec![]),
        ("  - ", vec![]),
    ] {
        assert_eq!(names(&harness, query), expected, "{query}");
    }
}

async fn the_search_index_is_updated_with_every_change(mut harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    assert_eq!(names(&harness, "one"), ["weather"]);
    harness.store.update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    assert_eq!((names(&harness, "one").len(), names(&harness, "two").len()), (0, 1));
    harness.store.enable_tool(tool.id, false).await.unwrap();
    assert_eq!(names(&harness, "two").len(), 0);
    harness.store.enable_tool(tool.id, true).await.unwrap();
    harness.restart().await;
    assert_eq!(names(&harness, "two"), ["weather"]);
    harness.store.delete_tool(tool.id, Backup::Discard).await.unwrap();
    assert_eq!(harness.store.search().search("two", 10, |_| true), []);
}
