//! Reads YAML to a tree that knows where everything stands. Strict and bounded.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use crate::problem::Problem;

/// The deepest nesting that a definition may have.
pub(super) const MAX_DEPTH: usize = 64;

/// One node and its place, counted from 1.
#[derive(Debug)]
pub(super) struct Node {
    content: Content,
    place: Place,
    /// The bytes of a scalar in the text.
    bytes: Option<(usize, usize)>,
}

/// A line and a column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Debug)]
enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Place, Node)>),
}

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH + 32,
            max_documents: 1,
            max_nodes: 100_000,
            max_events: 250_000,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 100_000,
            max_total_scalar_bytes: 4 * 1024 * 1024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 1_000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Merge,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| problem(&error))
}

fn problem(error: &serde_saphyr::Error) -> Problem {
    let rendered = error.render();
    let location = error.location();
    // The place is carried beside the message; the parser's own words for it would say it twice.
    let message = match rendered.find(" at line ") {
        Some(at) => rendered.get(..at).unwrap_or(&rendered).to_owned(),
        None => rendered,
    };
    let problem = Problem::new("", "syntax", format!("this is not valid YAML: {}", message.trim()));
    match location {
        Some(place) if place.line() > 0 => problem.at(narrow(place.line()), Some(narrow(place.column()))),
        _ => problem,
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Node {
    /// Returns the plain value. `source` is the text that the node was read from.
    pub(super) fn to_value(&self, source: &str) -> Result<Value, Problem> {
        self.convert(source, "", 0)
    }

    fn convert(&self, source: &str, path: &str, depth: usize) -> Result<Value, Problem> {
        let value = match &self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(*flag),
            Content::Number(number) => return self.number(number, source, path, depth),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(item.convert(
                        source,
                        &super::fields::join(path, &index.to_string()),
                        depth + 1,
                    )?);
                }
                Value::Array(list)
            }
            Content::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, _, item) in entries {
                    let value = item.convert(source, &super::fields::join(path, key), depth + 1)?;
                    map.insert(key.clone(), value);
                }
                Value::Object(map)
            }
        };
        Ok(value)
    }

    /// A number keeps its spelling where that matters: version labels and permission bits.
    fn number(&self, number: &Number, source: &str, path: &str, depth: usize) -> Result<Value, Problem> {
        let spelled = self.bytes.and_then(|(from, to)| source.get(from..to)).unwrap_or_default().trim();
        if (depth == 1 && path == "version") && !spelled.is_empty() {
            return Ok(Value::String(spelled.to_owned()));
        }
        let digits = spelled.strip_prefix(['-', '+']).unwrap_or(spelled);
        let leading_zero =
            digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        if !leading_zero {
            return Ok(Value::Number(number.clone()));
        }
        if path.rsplit('.').next() == Some("mode") {
            return Ok(Value::String(spelled.to_owned()));
        }
        let message = format!(
            "`{spelled}` is another number in YAML 1.1 than in YAML 1.2; put it in quotes, or leave out the leading zeros"
        );
        Err(Problem::new(path, "ambiguous_number", message).at(self.place.line, Some(self.place.column)))
    }

    /// Finds where a dotted path stands, or the nearest thing around it.
    pub(super) fn locate(&self, path: &str) -> Option<Place> {
        if path.is_empty() {
            return None;
        }
        match &self.content {
            Content::Map(entries) => {
                // Keys may contain dots themselves: the longest one that fits is meant.
                let (key, place, node) = entries
                    .iter()
                    .filter(|(key, _, _)| {
                        path.strip_prefix(key.as_str())
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                    })
                    .max_by_key(|(key, _, _)| key.len())?;
                let rest = path.get(key.len() + 1..).unwrap_or_default();
                node.locate(rest).or(Some(*place))
            }
            Content::List(items) => {
                let (index, rest) = path.split_once('.').unwrap_or((path, ""));
                let node = items.get(index.parse::<usize>().ok()?)?;
                node.locate(rest).or(Some(node.place))
            }
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        let at = spanned.referenced;
        let span = at.span();
        let bytes = match (span.byte_offset(), span.byte_len()) {
            (Some(from), Some(length)) => {
                usize::try_from(from).ok().zip(usize::try_from(from.saturating_add(length)).ok())
            }
            _ => None,
        };
        let place = Place { line: narrow(at.line()), column: narrow(at.column()) };
        Ok(Self { content: spanned.value, place, bytes })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Content, E> {
        Ok(Content::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Content, E> {
        Number::from_f64(number).map(Content::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries: Vec<(String, Place, Node)> = Vec::new();
        while let Some(key) = access.next_key::<Node>()? {
            let text = match key.content {
                Content::Text(text) => text,
                Content::Number(number) => number.to_string(),
                Content::Bool(flag) => flag.to_string(),
                Content::Null => "null".to_owned(),
                Content::List(_) | Content::Map(_) => {
                    return Err(A::Error::custom("a map or a list stands where a key is expected"));
                }
            };
            entries.push((text, key.place, access.next_value()?));
        }
        Ok(Content::Map(entries))
    }
}
