//! A haft tool in WebAssembly that counts the words of a text.

use std::collections::HashMap;

use exports::example::text::stats::{Frequency, Guest, Summary};

wit_bindgen::generate!({ world: "text-stats" });

struct TextStats;

impl Guest for TextStats {
    fn summarise(text: String, most: Option<u32>) -> Result<Summary, String> {
        if text.trim().is_empty() {
            return Err("the text is empty".to_owned());
        }
        let mut counts: HashMap<String, u32> = HashMap::new();
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        for word in words {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
        let total = counts.values().sum();
        let mut frequent: Vec<_> =
            counts.into_iter().map(|(word, count)| Frequency { word, count }).collect();
        frequent.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
        frequent.truncate(most.unwrap_or(3) as usize);
        Ok(Summary {
            characters: text.chars().count() as u32,
            words: total,
            most_frequent: frequent,
        })
    }
}

export!(TextStats);
