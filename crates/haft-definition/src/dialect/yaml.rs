//! A YAML document as a tree that knows where everything stands.

use serde_json::{Map, Number, Value};

use super::fields::join;
use haft_core::problem::{Problem, excerpt};

/// The deepest nesting that a definition may have.
pub(super) const MAX_DEPTH: usize = 64;

/// One node and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) place: Place,
}

/// A line and a column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A key of a map.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) place: Place,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Null,
    Bool(bool),
    /// A number and how it is spelled.
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// The way from the root to a node. Spelled out only where it is needed: a long key above many nodes
/// would otherwise be copied once for each of them.
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Trail<'_> {
    fn path(&self) -> String {
        let above = self.parent.map(Trail::path).unwrap_or_default();
        match self.step {
            Step::Key(key) => join(&above, &excerpt(key, 60)),
            Step::Index(index) => join(&above, &index.to_string()),
        }
    }
}

impl Place {
    pub(super) fn problem(self, code: &str, message: impl Into<String>) -> Problem {
        Problem::new("", code, message).at(self.line, Some(self.column))
    }
}

impl Node {
    /// Returns the plain value.
    pub(super) fn to_value(&self) -> Result<Value, Problem> {
        self.convert(None)
    }

    /// Returns the plain value of a document that others wrote: a number with leading zeros, which means different
    /// things to different readers, is taken as the text that it is.
    pub(super) fn into_foreign_value(self) -> Value {
        match self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(flag),
            Content::Number(_, spelled) if has_leading_zero(&spelled) => Value::String(spelled),
            Content::Number(number, _) => Value::Number(number),
            Content::Text(text) => Value::String(text),
            Content::List(items) => items.into_iter().map(Self::into_foreign_value).collect(),
            Content::Map(entries) => {
                entries.into_iter().map(|(key, item)| (key.text, item.into_foreign_value())).collect()
            }
        }
    }

    fn convert(&self, trail: Option<&Trail<'_>>) -> Result<Value, Problem> {
        Ok(match &self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(*flag),
            Content::Number(number, spelled) => return self.number(number, spelled, trail),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(item.convert(Some(&Trail { parent: trail, step: Step::Index(index) }))?);
                }
                Value::Array(list)
            }
            Content::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, item) in entries {
                    let trail = Trail { parent: trail, step: Step::Key(&key.text) };
                    map.insert(key.text.clone(), item.convert(Some(&trail))?);
                }
                Value::Object(map)
            }
        })
    }

    /// A number keeps its spelling where that matters: version labels and permission bits.
    fn number(&self, number: &Number, spelled: &str, trail: Option<&Trail<'_>>) -> Result<Value, Problem> {
        let key = match trail {
            Some(Trail { step: Step::Key(key), .. }) => *key,
            _ => "",
        };
        if key == "version" && trail.is_some_and(|trail| trail.parent.is_none()) {
            return Ok(Value::String(spelled.to_owned()));
        }
        if !has_leading_zero(spelled) {
            return Ok(Value::Number(number.clone()));
        }
        if key == "mode" {
            return Ok(Value::String(spelled.to_owned()));
        }
        let message = format!(
            "`{}` is another number in YAML 1.1 than in YAML 1.2; \
             put it in quotes, or leave out the leading zeros",
            excerpt(spelled, 40)
        );
        let mut problem = self.place.problem("ambiguous_number", message);
        problem.field = trail.map(Trail::path).unwrap_or_default();
        Err(problem)
    }

    /// Finds where a dotted path stands, or the nearest thing around it.
    pub(super) fn locate(&self, path: &str) -> Option<Place> {
        if path.is_empty() {
            return None;
        }
        match &self.content {
            Content::Map(entries) => {
                // Keys may contain dots themselves: the longest one that fits is meant.
                let fits = |key: &Key| {
                    let rest = path.strip_prefix(key.text.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                let (key, node) =
                    entries.iter().filter(|(key, _)| fits(key)).max_by_key(|(key, _)| key.text.len())?;
                let rest = path.get(key.text.len() + 1..).unwrap_or_default();
                node.locate(rest).or(Some(key.place))
            }
            Content::List(items) => {
                let (index, rest) = path.split_once('.').unwrap_or((path, ""));
                let node = items.get(index.parse::<usize>().ok()?)?;
                node.locate(rest).or(Some(node.place))
            }
            Content::Null | Content::Bool(_) | Content::Number(..) | Content::Text(_) => None,
        }
    }
}

fn has_leading_zero(spelled: &str) -> bool {
    let digits = spelled.strip_prefix(['-', '+']).unwrap_or(spelled);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit())
}
