//! Finds secrets in text, plain or in any mixture of escape sequences.
//!
//! The text is decoded while it is compared: every byte of a secret may be itself or an escape sequence. A whole text
//! can be encoded several times, such as a URL in JSON in JSON; the decoded text is then searched again.
//!
//! Programs change white space: they print a tab as spaces, or wrap a line. The search therefore also compares secrets
//! with the text while ignoring the white space of both.

use std::collections::HashSet;
use std::ops::Range;

use memchr::{memchr_iter, memchr3_iter, memmem};

use super::Secret;
use super::escape::{self, Escape, STARTS};

/// Shorter secrets are not searched: that would corrupt unrelated text without hiding anything.
const MIN_LENGTH: usize = 4;
/// The minimum length of a secret without white space that is searched in wrapped text: parts of shorter ones may be words.
const MIN_WRAPPED_LENGTH: usize = 16;
/// The number of contiguous bytes at one end of a secret that locate candidates.
const ANCHOR: usize = 4;
/// How many encodings may be nested.
const MAX_NESTING: usize = 3;
/// The limit of compared bytes per text and secret. A text that exceeds it, such as one long repetition, counts as secret.
const MAX_STEPS: usize = 10_000_000;

/// Returns the parts of a text that are secrets, in order and without overlaps.
pub(super) fn find(text: &[u8], secrets: &[Secret]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for secret in searchable(secrets) {
        found.extend(memmem::find_iter(text, secret).map(|start| start..start + secret.len()));
    }
    let mut search = Search::default();
    let spaced: Vec<CompactSecret> = spaced(secrets, text.len()).collect();
    for secret in &spaced {
        if search.spaced(text, secret, &mut found).is_err() {
            return std::iter::once(0..text.len()).collect();
        }
    }
    for layer in layers(text, secrets) {
        for secret in searchable(secrets) {
            if search.encoded(&layer, secret, &mut found).is_err() {
                return std::iter::once(0..text.len()).collect();
            }
        }
        let mut inner = Vec::new();
        // The original text has already been searched.
        for secret in spaced.iter().filter(|_| !layer.sources.is_empty()) {
            if search.spaced(&layer.bytes, secret, &mut inner).is_err() {
                return std::iter::once(0..text.len()).collect();
            }
        }
        found.extend(inner.into_iter().map(|range| layer.source(range.start)..layer.source(range.end)));
    }
    merged(found)
}

/// Returns where the text ends if its last bytes may be the beginning of a secret.
pub(super) fn partial_at_end(text: &[u8], secrets: &[Secret]) -> usize {
    let window = window(secrets);
    let from = text.len().saturating_sub(window);
    let tail = text.get(from..).unwrap_or_default();
    let mut first = tail.len();
    let mut search = Search::default();
    for layer in std::iter::once(Layer::new(tail)).chain(layers(tail, secrets)) {
        for secret in searchable(secrets) {
            let mut starts = first_start(&layer, secret)..layer.bytes.len();
            let start = starts.find(|start| search.reaches_end(&layer.bytes, *start, secret));
            first = first.min(start.map_or(tail.len(), |start| layer.source(start)));
        }
        for secret in spaced(secrets, usize::MAX) {
            let mut starts = first_start(&layer, &secret.bytes)..layer.bytes.len();
            let start = starts.find(|start| search.spaced_reaches_end(&layer.bytes, *start, &secret));
            first = first.min(start.map_or(tail.len(), |start| layer.source(start)));
        }
    }
    from + first
}

/// Returns the offset of the first possible beginning of a secret that extends beyond the end of a text.
fn first_start(layer: &Layer, secret: &[u8]) -> usize {
    layer.bytes.len().saturating_sub(secret.len().saturating_add(1).saturating_mul(escape::MAX_LENGTH))
}

/// Returns how many of the first bytes may be the end of a secret.
pub(super) fn partial_at_start(text: &[u8], secrets: &[Secret]) -> usize {
    let head = text.get(..text.len().min(window(secrets))).unwrap_or(text);
    let mut last = 0;
    let mut search = Search::default();
    for layer in std::iter::once(Layer::new(head)).chain(layers(head, secrets)) {
        for secret in searchable(secrets) {
            let suffixes = (1..secret.len()).filter_map(|start| secret.get(start..));
            for suffix in suffixes {
                for start in std::iter::once(0).chain(escape::endings(&layer.bytes)) {
                    let end = search.compare(&layer.bytes, start, suffix, Goal::Whole).unwrap_or(None);
                    last = last.max(end.map_or(0, |end| layer.source(end)));
                }
            }
        }
    }
    last
}

fn searchable(secrets: &[Secret]) -> impl Iterator<Item = &[u8]> {
    secrets.iter().map(|secret| secret.expose().as_bytes()).filter(|secret| secret.len() >= MIN_LENGTH)
}

/// A secret without its white space.
struct CompactSecret {
    bytes: Vec<u8>,
    /// Whether it contained a space, which form encoding writes as `+`.
    has_space: bool,
}

/// Returns the secrets to search without white space in a text of at most this length.
fn spaced(secrets: &[Secret], max_length: usize) -> impl Iterator<Item = CompactSecret> {
    searchable(secrets).filter_map(move |secret| {
        let bytes = secret.iter().copied().filter(|byte| !is_space(*byte));
        let length = bytes.clone().count();
        let minimum = if length == secret.len() { MIN_WRAPPED_LENGTH } else { MIN_LENGTH };
        (minimum..=max_length)
            .contains(&length)
            .then(|| CompactSecret { bytes: bytes.collect(), has_space: secret.contains(&b' ') })
    })
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the number of bytes of white space, plain or encoded, at the start of a text.
fn space_length(rest: &[u8], plus: bool) -> Option<usize> {
    match rest.first()? {
        byte if is_space(*byte) || (plus && *byte == b'+') => Some(1),
        _ => Escape::read(rest)
            .filter(|escape| matches!(escape.decoded(), [byte] if is_space(*byte)))
            .map(|escape| escape.length),
    }
}

/// Returns how many bytes of text the longest secret may take.
fn window(secrets: &[Secret]) -> usize {
    let longest = searchable(secrets).map(<[u8]>::len).max().unwrap_or_default();
    longest.saturating_add(1).saturating_mul(escape::MAX_LENGTH)
}

/// Sorts ranges and joins those that overlap.
fn merged(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// A text, decoded zero or more times.
struct Layer {
    bytes: Vec<u8>,
    /// Where each byte is in the original text, and the end of that text; empty in the original text.
    sources: Vec<usize>,
    escapes: Escapes,
}

/// The escape sequences of a text.
#[derive(Default)]
struct Escapes {
    /// Where each one is, and the first byte that it stands for.
    found: Vec<(usize, u8)>,
    /// Whether the decoded text may contain further ones.
    nested: bool,
}

impl Escapes {
    fn of(bytes: &[u8]) -> Self {
        let [percent, backslash, ampersand] = STARTS;
        let mut escapes = Self::default();
        for at in memchr3_iter(percent, backslash, ampersand, bytes) {
            let first =
                bytes.get(at..).and_then(Escape::read).and_then(|escape| escape.decoded().first().copied());
            escapes.nested |= first.is_none_or(|first| STARTS.contains(&first));
            escapes.found.extend(first.map(|first| (at, first)));
        }
        escapes
    }
}

/// Returns the text and what is left of it after decoding it, as long as it contains escape sequences.
fn layers(text: &[u8], secrets: &[Secret]) -> impl Iterator<Item = Layer> {
    let spaces = searchable(secrets).any(|secret| secret.contains(&b' '));
    let relevant =
        move |layer: &Layer| !layer.escapes.found.is_empty() || (spaces && layer.bytes.contains(&b'+'));
    // No copy of a text without escape sequences.
    let plain = STARTS.iter().all(|start| !text.contains(start)) && !(spaces && text.contains(&b'+'));
    let first = if plain || searchable(secrets).next().is_none() { None } else { Some(Layer::new(text)) };
    let has_more = |layer: &Layer| layer.escapes.nested && !layer.escapes.found.is_empty();
    let next = move |layer: &Layer| has_more(layer).then(|| layer.decoded());
    std::iter::successors(first.filter(relevant), next).take(MAX_NESTING)
}

impl Layer {
    fn new(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), sources: Vec::new(), escapes: Escapes::of(text) }
    }

    fn source(&self, index: usize) -> usize {
        self.sources.get(index).copied().unwrap_or(index)
    }

    fn decoded(&self) -> Self {
        let bytes = Vec::with_capacity(self.bytes.len());
        let mut decoded = Self { bytes, sources: Vec::new(), escapes: Escapes::default() };
        let mut at = 0;
        for (start, _) in &self.escapes.found {
            // It may be a part of the one before, as in `\\n`.
            if *start >= at
                && let Some(escape) = self.bytes.get(*start..).and_then(Escape::read)
            {
                decoded.copy(self, at..*start);
                decoded.bytes.extend_from_slice(escape.decoded());
                decoded.sources.extend(escape.decoded().iter().map(|_| self.source(*start)));
                at = start + escape.length;
            }
        }
        decoded.copy(self, at..self.bytes.len());
        decoded.sources.push(self.source(self.bytes.len()));
        decoded.escapes = Escapes::of(&decoded.bytes);
        decoded
    }

    /// Appends a part of another layer.
    fn copy(&mut self, from: &Self, range: Range<usize>) {
        self.sources.extend(range.clone().map(|at| from.source(at)));
        self.bytes.extend_from_slice(from.bytes.get(range).unwrap_or_default());
    }
}

/// The limit of compared bytes was exceeded.
struct StepLimit;

/// What a comparison looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// All of the secret.
    Whole,
    /// A part of the secret up to the end of the text.
    Beginning,
}

/// Compares secrets with text. A byte such as `%` may be itself or start an escape sequence; both are tried.
#[derive(Default)]
struct Search {
    steps: usize,
    /// Further readings of the text: a position in the secret and one in the text.
    untried: Vec<(usize, usize)>,
    /// The positions at which both readings were tried.
    forks: HashSet<(usize, usize)>,
}

impl Search {
    /// Finds a secret that contains at least one escape sequence. What precedes its first one is plain, which limits
    /// where it can start.
    fn encoded(
        &mut self,
        layer: &Layer,
        secret: &[u8],
        found: &mut Vec<Range<usize>>,
    ) -> Result<(), StepLimit> {
        self.steps = 0;
        let bytes = &layer.bytes;
        let mut contained = [false; 256];
        for byte in secret {
            if let Some(entry) = contained.get_mut(usize::from(*byte)) {
                *entry = true;
            }
        }
        let is_contained = |byte: u8| contained.get(usize::from(byte)) == Some(&true);
        let spaces = is_contained(b' ');
        let pluses = memchr_iter(b'+', bytes).filter(|_| spaces).map(|at| (at, b' '));
        let escapes = layer.escapes.found.iter().copied().filter(|(_, first)| is_contained(*first));
        for (at, first) in pluses.chain(escapes) {
            for before in memchr_iter(first, secret) {
                let Some(start) = at.checked_sub(before) else { break };
                // Comparing a long plain beginning takes time, too.
                self.steps += before / 64;
                if bytes.get(start..at) == secret.get(..before)
                    && let Some(rest) = secret.get(before..)
                    && let Some(end) = self.compare(bytes, at, rest, Goal::Whole)?
                {
                    found.push(layer.source(start)..layer.source(end));
                }
            }
        }
        Ok(())
    }

    /// Returns whether the text from `start` to its end may be the beginning of a secret.
    fn reaches_end(&mut self, bytes: &[u8], start: usize, secret: &[u8]) -> bool {
        !matches!(self.compare(bytes, start, secret, Goal::Beginning), Ok(None))
    }

    /// Compares a secret with the text at `start` and returns where it ends.
    fn compare(
        &mut self,
        bytes: &[u8],
        start: usize,
        secret: &[u8],
        goal: Goal,
    ) -> Result<Option<usize>, StepLimit> {
        self.forks.clear();
        self.untried.clear();
        self.untried.push((0, start));
        while let Some((mut done, mut at)) = self.untried.pop() {
            while let Some(expected) = secret.get(done) {
                self.step()?;
                let rest = bytes.get(at..).unwrap_or_default();
                if goal == Goal::Beginning && ((rest.is_empty() && done > 0) || escape::is_incomplete(rest)) {
                    return Ok(Some(at));
                }
                let Some(byte) = rest.first() else { break };
                let plain = byte == expected || (*byte == b'+' && *expected == b' ');
                let escape = Escape::read(rest).filter(|escape| {
                    secret.get(done..).is_some_and(|rest| rest.starts_with(escape.decoded()))
                });
                match escape {
                    Some(escape) => {
                        if plain && self.forks.insert((done, at)) {
                            self.untried.push((done + 1, at + 1));
                        }
                        (done, at) = (done + escape.decoded().len(), at + escape.length);
                    }
                    None if plain => (done, at) = (done + 1, at + 1),
                    None => break,
                }
            }
            if goal == Goal::Whole && done == secret.len() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Finds a secret with different white space. Candidates are located by an end of the secret without white space.
    fn spaced(
        &mut self,
        bytes: &[u8],
        secret: &CompactSecret,
        found: &mut Vec<Range<usize>>,
    ) -> Result<(), StepLimit> {
        self.steps = 0;
        let (Some(head), Some(tail)) =
            (secret.bytes.first_chunk::<ANCHOR>(), secret.bytes.last_chunk::<ANCHOR>())
        else {
            return Ok(());
        };
        for start in memmem::find_iter(bytes, head) {
            found.extend(self.compare_spaced(bytes, start, secret, Goal::Whole)?.map(|end| start..end));
        }
        // White space and indentation may double its length.
        let reach = 2 * secret.bytes.len() + 64;
        for anchor in memmem::find_iter(bytes, tail) {
            let from = anchor.saturating_sub(reach);
            for before in memchr_iter(head[0], bytes.get(from..anchor).unwrap_or_default()) {
                let start = from + before;
                let end = self.compare_spaced(bytes, start, secret, Goal::Whole)?;
                found.extend(end.filter(|end| *end == anchor + ANCHOR).map(|end| start..end));
            }
        }
        Ok(())
    }

    /// Returns whether the text from `start` to its end may be the beginning of a secret with different white space.
    fn spaced_reaches_end(&mut self, bytes: &[u8], start: usize, secret: &CompactSecret) -> bool {
        bytes.get(start) == secret.bytes.first()
            && !matches!(self.compare_spaced(bytes, start, secret, Goal::Beginning), Ok(None))
    }

    /// Compares a secret with the text at `start`, ignoring white space, and returns the end of the match.
    fn compare_spaced(
        &mut self,
        bytes: &[u8],
        start: usize,
        secret: &CompactSecret,
        goal: Goal,
    ) -> Result<Option<usize>, StepLimit> {
        let (mut done, mut at) = (0, start);
        while let Some(expected) = secret.bytes.get(done) {
            self.step()?;
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(byte) = rest.first() else {
                return Ok((goal == Goal::Beginning && done >= ANCHOR).then_some(at));
            };
            let escape = Escape::read(rest).filter(|escape| {
                secret.bytes.get(done..).is_some_and(|rest| rest.starts_with(escape.decoded()))
            });
            if let Some(escape) = escape {
                (done, at) = (done + escape.decoded().len(), at + escape.length);
            } else if byte == expected {
                (done, at) = (done + 1, at + 1);
            } else if let Some(length) = space_length(rest, secret.has_space).filter(|_| done > 0) {
                at += length;
            } else {
                return Ok(None);
            }
        }
        Ok((goal == Goal::Whole).then_some(at))
    }

    fn step(&mut self) -> Result<(), StepLimit> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err(StepLimit) } else { Ok(()) }
    }
}
