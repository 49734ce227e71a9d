use haft_core::BoxFuture;

use crate::index_tests::{chunk, index};
use crate::{EmbedError, Embedder, Filter, Retriever, SearchRequest, VectorIndex, embed_all};

/// Embeds by counting letters: deterministic, and alike for words that are alike.
struct Letters {
    extra: usize,
}

impl Embedder for Letters {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        let vector = |text: &String| {
            let count = |letter: u8| text.bytes().filter(|byte| *byte == letter).count();
            (b'a'..=b'z').map(|letter| f32::from(u8::try_from(count(letter)).unwrap())).collect()
        };
        let vectors = texts.iter().chain(texts.iter().take(self.extra)).map(vector).collect();
        Box::pin(async move { Ok(vectors) })
    }

    fn max_batch(&self) -> usize {
        2
    }
}

#[tokio::test]
async fn hybrid_search_finds_what_words_miss() {
    let chunks = [
        chunk("a/1", "car repair", r#"{"team":"x"}"#),
        chunk("a/2", "cars", r#"{"team":"y"}"#),
        chunk("a/3", "zzz yyy", "{}"),
    ];
    let texts: Vec<String> = chunks.iter().map(|chunk| chunk.text.clone()).collect();
    let vectors = embed_all(&Letters { extra: 0 }, &texts).await.unwrap();
    let mut index_of_vectors = VectorIndex::new(26, 1 << 20);
    for (chunk, vector) in chunks.iter().zip(&vectors) {
        index_of_vectors.add(&chunk.id, &chunk.document, vector).unwrap();
    }
    let mut retriever = Retriever { index: index(&chunks), vectors: Some(index_of_vectors) };
    let request = SearchRequest { query: "repair", top_k: 2, filter: None };
    let query = embed_all(&Letters { extra: 0 }, &["repair".to_owned()]).await.unwrap();
    let hits = retriever.search(&request, Some(&query[0])).unwrap();
    assert_eq!(hits[0].chunk, "a/1");
    assert!(hits[0].bm25.is_some() && hits[0].cosine.is_some());
    assert_eq!((hits[1].chunk.as_str(), hits[1].bm25), ("a/2", None));
    let filter: Filter = serde_json::from_str(r#"{"equals":{"key":"team","value":"y"}}"#).unwrap();
    let filtered =
        retriever.search(&SearchRequest { filter: Some(&filter), ..request.clone() }, Some(&query[0]));
    assert_eq!(filtered.unwrap().iter().map(|hit| hit.chunk.as_str()).collect::<Vec<_>>(), ["a/2"]);
    let lexical = retriever.search(&request, None).unwrap();
    assert_eq!((lexical.len(), lexical[0].cosine), (1, None));
    assert!(retriever.search(&SearchRequest { top_k: 0, ..request.clone() }, Some(&query[0])).is_err());
    assert!(retriever.search(&request, Some(&[1.0])).is_err());
    retriever.vectors = None;
    assert_eq!(retriever.search(&request, Some(&query[0])).unwrap(), lexical);
}

#[tokio::test]
async fn a_model_that_returns_too_many_vectors_is_an_error() {
    let texts = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let error = embed_all(&Letters { extra: 1 }, &texts).await.unwrap_err();
    assert!(matches!(error, EmbedError::Count { requested: 2, returned: 3 }), "{error}");
}
