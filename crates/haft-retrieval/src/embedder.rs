//! Embeddings from a model that the caller provides.

use haft_core::BoxFuture;
use thiserror::Error;

/// Turns texts into vectors; the server implements it over an OpenAI-compatible endpoint.
pub trait Embedder: Send + Sync {
    /// Returns one vector per text, in order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;

    /// Returns the largest number of texts of one request.
    fn max_batch(&self) -> usize {
        64
    }
}

/// Embeddings that could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The model failed.
    #[error("embedding request failed")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The model returned another number of vectors than there were texts.
    #[error("embedding model returned {returned} vectors for {requested} texts")]
    Count {
        /// The number of texts.
        requested: usize,
        /// The number of vectors.
        returned: usize,
    },
    /// Two vectors of one model have different lengths.
    #[error("embedding model returned vectors of {first} and of {other} dimensions")]
    Dimensions {
        /// The dimensions of the first vector.
        first: usize,
        /// The dimensions of another one.
        other: usize,
    },
}

/// Embeds texts in batches, and checks what the model returns.
pub async fn embed_all(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
    for batch in texts.chunks(embedder.max_batch().max(1)) {
        let returned = embedder.embed(batch).await?;
        if returned.len() != batch.len() {
            return Err(EmbedError::Count { requested: batch.len(), returned: returned.len() });
        }
        vectors.extend(returned);
    }
    let first = vectors.first().map_or(0, Vec::len);
    match vectors.iter().map(Vec::len).find(|length| *length != first) {
        Some(other) => Err(EmbedError::Dimensions { first, other }),
        None => Ok(vectors),
    }
}
