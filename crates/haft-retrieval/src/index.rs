//! The BM25 index over chunks, by tantivy.
//!
//! The index holds terms and ids; texts live in the store, and every node builds its own index from them. Metadata is
//! indexed as terms in an order that ranges follow, so that every filter is a lookup in the term dictionary.

use std::collections::HashSet;
use std::ops::Bound;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::LockError;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery, InvertedIndexRangeQuery, Occur,
    Query, TermQuery, TermSetQuery,
};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{
    DocAddress, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term,
};
use thiserror::Error;

use crate::analyzer;
use crate::filter::{Filter, FilterError};
use crate::metadata::{self, Metadata, MetadataError, MetadataValue};
use crate::{Chunk, Language};

/// The maximum length of a query in bytes.
pub const MAX_QUERY: usize = 16 * 1024;
/// The maximum number of hits of a search.
pub const MAX_TOP_K: usize = 1000;
/// The number of distinct words of a query that count.
const MAX_QUERY_WORDS: usize = 256;
/// The memory that one update may use before it writes a segment.
const UPDATE_MEMORY: usize = 32 << 20;

/// A search by words.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest<'a> {
    /// The words to search for.
    pub query: &'a str,
    /// The maximum number of hits.
    pub top_k: usize,
    /// The condition on metadata, if any.
    pub filter: Option<&'a Filter>,
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The id of the chunk.
    pub chunk: String,
    /// The id of its document.
    pub document: String,
    /// How well it matches; comparable within one search only.
    pub score: f32,
}

/// An index that failed, or a request that it rejects.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The query is too long.
    #[error("`query` has {0} bytes; the limit is {MAX_QUERY}")]
    QueryTooLong(usize),
    /// The number of hits is zero or too large.
    #[error("`top_k` is {0}; use 1 to {MAX_TOP_K}")]
    TopK(usize),
    /// The filter is invalid.
    #[error("invalid filter")]
    Filter(#[from] FilterError),
    /// The metadata of a chunk is invalid.
    #[error("invalid metadata")]
    Metadata(#[from] MetadataError),
    /// Another update is open.
    #[error("the index is being updated")]
    Busy,
    /// The folder holds an index of another version, or a damaged one: rebuild it from the chunks.
    #[error("the index cannot be opened; remove its folder and build it again")]
    Outdated(#[source] TantivyError),
    /// The engine failed.
    #[error("the index failed")]
    Engine(#[from] TantivyError),
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    chunk: Field,
    document: Field,
    text: Field,
    metadata: Field,
}

/// A BM25 index of chunks.
pub struct Index {
    inner: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("chunks", &self.len()).finish_non_exhaustive()
    }
}

impl Index {
    /// Makes an empty index in memory.
    pub fn in_memory() -> Result<Self, IndexError> {
        let (schema, fields) = schema();
        Self::new(tantivy::Index::create_in_ram(schema), fields)
    }

    /// Opens the index in a folder, which is created if it is missing; the files are mapped, not loaded.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let (schema, fields) = schema();
        std::fs::create_dir_all(folder).map_err(TantivyError::from)?;
        let directory = MmapDirectory::open(folder).map_err(TantivyError::from)?;
        let index = tantivy::Index::open_or_create(directory, schema).map_err(IndexError::Outdated)?;
        Self::new(index, fields).map_err(|error| match error {
            IndexError::Engine(source) => IndexError::Outdated(source),
            other => other,
        })
    }

    fn new(inner: tantivy::Index, fields: Fields) -> Result<Self, IndexError> {
        // Without a watcher: a commit reloads the reader, and nobody else writes.
        let reader = inner.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { inner, reader, fields })
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        usize::try_from(self.reader.searcher().num_docs()).unwrap_or(usize::MAX)
    }

    /// Tells whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts an update; searches see it after [`Update::commit`]. One update is open at a time. It has its own threads,
    /// so an index that is only read has none.
    pub fn update(&self) -> Result<Update<'_>, IndexError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(UPDATE_MEMORY)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer = self.inner.writer_with_options(options).map_err(|error| match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => IndexError::Busy,
            other => IndexError::Engine(other),
        })?;
        Ok(Update { index: self, writer })
    }

    /// Returns the best chunks for a query, best first.
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<Vec<Hit>, IndexError> {
        check(request)?;
        let searcher = self.reader.searcher();
        let mut words = analyzer::query_terms(request.query, &self.languages(&searcher)?);
        words.truncate(MAX_QUERY_WORDS);
        let words = words.into_iter().map(|stems| (Occur::Should, self.word_query(&stems))).collect();
        let mut clauses: Vec<(Occur, Box<dyn Query>)> =
            vec![(Occur::Must, Box::new(BooleanQuery::new(words)))];
        if let Some(filter) = request.filter {
            clauses.push((Occur::Must, Box::new(ConstScoreQuery::new(self.filter_query(filter), 0.0))));
        }
        let top = TopDocs::with_limit(request.top_k).order_by_score();
        let hits = searcher.search(&BooleanQuery::new(clauses), &top)?;
        hits.into_iter().map(|(score, address)| self.hit(&searcher, address, score)).collect()
    }

    /// Returns the ids of all chunks whose metadata matches.
    pub fn matching(&self, filter: &Filter) -> Result<HashSet<String>, IndexError> {
        filter.check()?;
        let searcher = self.reader.searcher();
        let addresses = searcher.search(&self.filter_query(filter), &DocSetCollector)?;
        addresses.into_iter().map(|address| Ok(self.hit(&searcher, address, 0.0)?.chunk)).collect()
    }

    fn hit(&self, searcher: &Searcher, address: DocAddress, score: f32) -> Result<Hit, IndexError> {
        let document: TantivyDocument = searcher.doc(address)?;
        let value = |field| {
            document.get_first(field).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        Ok(Hit { chunk: value(self.fields.chunk), document: value(self.fields.document), score })
    }

    /// Returns the languages that chunks have, so that a query is stemmed for these only.
    fn languages(&self, searcher: &Searcher) -> Result<Vec<Language>, IndexError> {
        let mut languages = Vec::new();
        for language in Language::ALL {
            let term = Term::from_field_text(self.fields.metadata, &language_term(language));
            if searcher.doc_freq(&term)? > 0 {
                languages.push(language);
            }
        }
        Ok(languages)
    }

    fn word_query(&self, stems: &[String]) -> Box<dyn Query> {
        let mut queries: Vec<Box<dyn Query>> = stems
            .iter()
            .map(|stem| Term::from_field_text(self.fields.text, stem))
            .map(|term| Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>)
            .collect();
        match queries.pop() {
            Some(only) if queries.is_empty() => only,
            Some(last) => {
                queries.push(last);
                Box::new(DisjunctionMaxQuery::new(queries))
            }
            None => Box::new(EmptyQuery),
        }
    }

    fn filter_query(&self, filter: &Filter) -> Box<dyn Query> {
        let term = |text: String| Term::from_field_text(self.fields.metadata, &text);
        let one = |text| Box::new(TermQuery::new(term(text), IndexRecordOption::Basic)) as Box<dyn Query>;
        let queries =
            |filters: &[Filter]| filters.iter().map(|filter| self.filter_query(filter)).collect::<Vec<_>>();
        match filter {
            Filter::Equals { key, value } => one(value_term(key, value)),
            Filter::In { key, values } => {
                Box::new(TermSetQuery::new(values.iter().map(|value| term(value_term(key, value)))))
            }
            Filter::Range { key, min, max } => {
                let Some(bound) = min.as_ref().or(max.as_ref()) else { return Box::new(EmptyQuery) };
                let prefix = type_prefix(key, bound);
                let lower = min.as_ref().map_or_else(|| prefix.clone(), |min| value_term(key, min));
                // The last byte of the prefix is a separator; its successor is beyond all values of the key and type.
                let upper = max.as_ref().map_or_else(
                    || Bound::Excluded(term(format!("{}\u{2}", prefix.trim_end_matches('\u{1}')))),
                    |max| Bound::Included(term(value_term(key, max))),
                );
                Box::new(InvertedIndexRangeQuery::new(Bound::Included(term(lower)), upper))
            }
            Filter::Exists { key } => one(exists_term(key)),
            Filter::All(filters) if filters.is_empty() => Box::new(AllQuery),
            Filter::All(filters) => Box::new(BooleanQuery::intersection(queries(filters))),
            Filter::Any(filters) if filters.is_empty() => Box::new(EmptyQuery),
            Filter::Any(filters) => Box::new(BooleanQuery::union(queries(filters))),
            Filter::Not(filter) => Box::new(BooleanQuery::new(vec![
                (Occur::Must, Box::new(AllQuery)),
                (Occur::MustNot, self.filter_query(filter)),
            ])),
        }
    }
}

fn check(request: &SearchRequest<'_>) -> Result<(), IndexError> {
    if request.query.len() > MAX_QUERY {
        return Err(IndexError::QueryTooLong(request.query.len()));
    }
    if request.top_k == 0 || request.top_k > MAX_TOP_K {
        return Err(IndexError::TopK(request.top_k));
    }
    Ok(request.filter.map_or(Ok(()), Filter::check)?)
}

/// A set of changes that become visible together.
pub struct Update<'a> {
    index: &'a Index,
    writer: IndexWriter,
}

impl std::fmt::Debug for Update<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Update").finish_non_exhaustive()
    }
}

impl Update<'_> {
    /// Adds a chunk, or replaces the one of the same id.
    pub fn add(&mut self, chunk: &Chunk) -> Result<(), IndexError> {
        metadata::check(&chunk.metadata)?;
        let fields = self.index.fields;
        self.remove(&chunk.id);
        let mut document = TantivyDocument::new();
        document.add_text(fields.chunk, &chunk.id);
        document.add_text(fields.document, &chunk.document);
        document.add_pre_tokenized_text(fields.text, tokens(chunk));
        for term in metadata_terms(&chunk.metadata) {
            document.add_text(fields.metadata, term);
        }
        document.add_text(fields.metadata, language_term(chunk.language));
        self.writer.add_document(document)?;
        Ok(())
    }

    /// Removes a chunk.
    pub fn remove(&mut self, chunk: &str) {
        self.writer.delete_term(Term::from_field_text(self.index.fields.chunk, chunk));
    }

    /// Removes all chunks of a document.
    pub fn remove_document(&mut self, document: &str) {
        self.writer.delete_term(Term::from_field_text(self.index.fields.document, document));
    }

    /// Makes the changes durable and visible.
    pub fn commit(mut self) -> Result<(), IndexError> {
        self.writer.commit()?;
        self.writer.wait_merging_threads()?;
        self.index.reader.reload()?;
        Ok(())
    }
}

/// Returns the schema. The names carry a version: an index of another version is rejected when it is opened.
fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs);
    let fields = Fields {
        chunk: builder.add_text_field("chunk", STRING | STORED),
        document: builder.add_text_field("document", STRING | STORED),
        text: builder.add_text_field("text_v1", TextOptions::default().set_indexing_options(text)),
        metadata: builder.add_text_field("metadata_v1", STRING),
    };
    (builder.build(), fields)
}

fn tokens(chunk: &Chunk) -> PreTokenizedString {
    let headings = chunk.headings.iter().flat_map(|heading| analyzer::terms(heading, chunk.language));
    let tokens = headings
        .chain(analyzer::terms(&chunk.text, chunk.language))
        .enumerate()
        .map(|(position, text)| Token { position, text, ..Token::default() })
        .collect();
    PreTokenizedString { text: String::new(), tokens }
}

fn metadata_terms(metadata: &Metadata) -> impl Iterator<Item = String> {
    metadata.iter().flat_map(|(key, value)| {
        std::iter::once(exists_term(key)).chain(value.scalars().iter().map(|scalar| value_term(key, scalar)))
    })
}

/// Keys have no control characters, so the separator cannot occur in them.
fn exists_term(key: &str) -> String {
    format!("{key}\u{1}e")
}

/// A key that no metadata can have.
fn language_term(language: Language) -> String {
    format!("\u{1}language\u{1}{}", language.as_str())
}

/// Returns what all terms of a key and type start with.
fn type_prefix(key: &str, value: &MetadataValue) -> String {
    let kind = match value {
        MetadataValue::Bool(_) => 'b',
        MetadataValue::Number(_) => 'n',
        MetadataValue::String(_) => 's',
        MetadataValue::Array(_) => 'a',
    };
    format!("{key}\u{1}{kind}\u{1}")
}

/// Returns the term of a value; terms of one key and type are in the order of their values.
fn value_term(key: &str, value: &MetadataValue) -> String {
    let prefix = type_prefix(key, value);
    match value {
        MetadataValue::Bool(value) => format!("{prefix}{value}"),
        MetadataValue::Number(value) => format!("{prefix}{:016x}", sortable(*value)),
        MetadataValue::String(value) => format!("{prefix}{value}"),
        // Arrays do not nest, so no term is ever made of one.
        MetadataValue::Array(_) => prefix,
    }
}

/// Maps a number to an integer of the same order.
fn sortable(value: f64) -> u64 {
    // Negative zero equals zero.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}
