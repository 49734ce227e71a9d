//! Filters (RFC 7644, section 3.4.2.2): `userName eq "ann@example.com" and not (emails[type eq "work"])`.
//!
//! A filter is read by recursive descent, bounded in length, depth and number of comparisons, and evaluated against the
//! JSON of a resource.

use std::cmp::Ordering;

use haft_core::Timestamp;
use haft_core::problem::excerpt;
use serde_json::{Map, Value};

use crate::error::{ScimError, ScimType};
use crate::json;
use crate::path::{AttributePath, Schema};
use crate::schema::{is_boolean, is_case_exact};

/// The longest filter, in bytes.
const MAX_LENGTH: usize = 4096;
/// The deepest nesting of parentheses and brackets.
const MAX_DEPTH: usize = 16;
/// The most comparisons.
const MAX_TERMS: usize = 64;

/// A filter of resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Expression);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Present(AttributePath),
    Compare(AttributePath, Operator, Value),
    /// One value of an attribute matches a filter.
    Value(AttributePath, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "co" => Operator::Contains,
            "sw" => Operator::StartsWith,
            "ew" => Operator::EndsWith,
            "gt" => Operator::Greater,
            "ge" => Operator::GreaterOrEqual,
            "lt" => Operator::Less,
            "le" => Operator::LessOrEqual,
            _ => return None,
        })
    }
}

impl Filter {
    /// Parses a filter.
    pub fn parse(text: &str) -> Result<Self, ScimError> {
        let mut parser = Parser::new(text)?;
        let expression = parser.any(0)?;
        parser.end()?;
        Ok(Self(expression))
    }

    /// Returns whether a resource matches.
    pub fn matches(&self, resource: &Map<String, Value>) -> bool {
        self.0.matches(resource, None)
    }

    /// Returns the text that an attribute must equal for a resource to match, so that it can be looked up.
    pub fn required_text(&self, attribute: &str) -> Option<&str> {
        let terms = match &self.0 {
            Expression::All(terms) => terms.as_slice(),
            term => std::slice::from_ref(term),
        };
        terms.iter().find_map(|term| match term {
            Expression::Compare(path, Operator::Equal, Value::String(text))
                if path.schema == Schema::Core
                    && path.sub.is_none()
                    && path.name.eq_ignore_ascii_case(attribute) =>
            {
                Some(text.as_str())
            }
            _ => None,
        })
    }
}

impl Expression {
    /// Returns whether an object matches: a resource, or a value of the attribute `parent`.
    pub(crate) fn matches(&self, object: &Map<String, Value>, parent: Option<&str>) -> bool {
        match self {
            Expression::All(terms) => terms.iter().all(|term| term.matches(object, parent)),
            Expression::Any(terms) => terms.iter().any(|term| term.matches(object, parent)),
            Expression::Not(term) => !term.matches(object, parent),
            Expression::Present(path) => values(object, path).iter().any(|value| is_present(value)),
            Expression::Compare(path, operator, expected) => {
                let is_exact = match parent {
                    Some(parent) => is_case_exact(parent, Some(&path.name)),
                    None => is_case_exact(&path.name, path.sub.as_deref()),
                };
                let found = values(object, path);
                let any = |operator| found.iter().any(|value| compare(value, operator, expected, is_exact));
                match (operator, expected) {
                    (Operator::Equal, Value::Null) => !found.iter().any(|value| is_present(value)),
                    (Operator::NotEqual, Value::Null) => found.iter().any(|value| is_present(value)),
                    // What has no value differs from every value.
                    (Operator::NotEqual, _) => !any(Operator::Equal),
                    (operator, _) => any(*operator),
                }
            }
            Expression::Value(path, filter) => {
                let objects = elements(object, path).into_iter().filter_map(Value::as_object);
                objects.into_iter().any(|value| filter.matches(value, Some(&path.name)))
            }
        }
    }

    /// Returns the texts that a value must have, if the filter says nothing else.
    pub(crate) fn required_values(&self) -> Option<Vec<(&str, &Value)>> {
        match self {
            Expression::All(terms) => {
                let parts: Option<Vec<_>> = terms.iter().map(Expression::required_values).collect();
                Some(parts?.into_iter().flatten().collect())
            }
            Expression::Compare(path, Operator::Equal, value) if path.sub.is_none() => {
                Some(vec![(path.name.as_str(), value)])
            }
            _ => None,
        }
    }
}

/// Returns the values of an attribute; those of a list, or a single one.
fn elements<'a>(object: &'a Map<String, Value>, path: &AttributePath) -> Vec<&'a Value> {
    if path.schema != Schema::Core {
        return Vec::new();
    }
    match json::get(object, &path.name) {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
        None => Vec::new(),
    }
}

/// Returns what a comparison compares: the named part of each value, or its `value`.
fn values<'a>(object: &'a Map<String, Value>, path: &AttributePath) -> Vec<&'a Value> {
    let part = |value: &'a Value| match (value, &path.sub) {
        (Value::Object(value), Some(sub)) => json::get(value, sub),
        (Value::Object(object), None) => json::get(object, "value").or(Some(value)),
        (_, Some(_)) => None,
        (value, None) => Some(value),
    };
    elements(object, path).into_iter().filter_map(part).collect()
}

fn is_present(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn compare(value: &Value, operator: Operator, expected: &Value, is_exact: bool) -> bool {
    match (value, expected) {
        (Value::Bool(value), expected) => {
            operator == Operator::Equal && json::boolean(expected) == Some(*value)
        }
        (Value::Number(value), Value::Number(expected)) => {
            let order = value.as_f64().zip(expected.as_f64()).and_then(|(a, b)| a.partial_cmp(&b));
            order.is_some_and(|order| is_in_order(order, operator))
        }
        (Value::String(value), Value::String(expected)) if is_exact => {
            compare_texts(value, operator, expected)
        }
        (Value::String(value), Value::String(expected)) => {
            compare_texts(&value.to_lowercase(), operator, &expected.to_lowercase())
        }
        _ => false,
    }
}

fn compare_texts(value: &str, operator: Operator, expected: &str) -> bool {
    match operator {
        Operator::Contains => value.contains(expected),
        Operator::StartsWith => value.starts_with(expected),
        Operator::EndsWith => value.ends_with(expected),
        Operator::Equal | Operator::NotEqual => is_in_order(value.cmp(expected), operator),
        Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual => {
            // Times have several spellings.
            let times = value.to_uppercase().parse::<Timestamp>().ok();
            let times = times.zip(expected.to_uppercase().parse::<Timestamp>().ok());
            is_in_order(times.map_or_else(|| value.cmp(expected), |(a, b)| a.cmp(&b)), operator)
        }
    }
}

fn is_in_order(order: Ordering, operator: Operator) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Contains | Operator::StartsWith | Operator::EndsWith => false,
    }
}

/// Reads a filter, or the path of a patch.
pub(crate) struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    terms: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, ScimError> {
        if text.len() > MAX_LENGTH {
            let detail = format!("the filter has {} bytes; the limit is {MAX_LENGTH}", text.len());
            return Err(ScimError::new(ScimType::InvalidFilter, detail));
        }
        Ok(Self { text, rest: text, terms: 0 })
    }

    /// Reads terms with `or`.
    pub(crate) fn any(&mut self, depth: usize) -> Result<Expression, ScimError> {
        let first = self.all(depth)?;
        let mut terms = vec![first];
        while self.keyword("or") {
            terms.push(self.all(depth)?);
        }
        Ok(one_or(terms, Expression::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Expression, ScimError> {
        let first = self.term(depth)?;
        let mut terms = vec![first];
        while self.keyword("and") {
            terms.push(self.term(depth)?);
        }
        Ok(one_or(terms, Expression::All))
    }

    fn term(&mut self, depth: usize) -> Result<Expression, ScimError> {
        if depth >= MAX_DEPTH {
            return Err(self.fail(&format!("nested more than {MAX_DEPTH} levels deep")));
        }
        if self.keyword("not") {
            self.expect("(")?;
            let term = self.any(depth + 1)?;
            self.expect(")")?;
            return Ok(Expression::Not(Box::new(term)));
        }
        if self.symbol("(") {
            let term = self.any(depth + 1)?;
            self.expect(")")?;
            return Ok(term);
        }
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(self.fail(&format!("more than {MAX_TERMS} comparisons")));
        }
        let path = self.attribute()?;
        if self.rest.starts_with('[') {
            return Ok(Expression::Value(path, Box::new(self.value_filter(depth)?)));
        }
        self.comparison(path)
    }

    /// Reads the name of an attribute.
    pub(crate) fn attribute(&mut self) -> Result<AttributePath, ScimError> {
        self.skip_spaces();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_:.$".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let path = AttributePath::parse(word).filter(|path| !path.name.is_empty());
        let path = path.ok_or_else(|| self.fail("expected the name of an attribute"))?;
        self.rest = rest;
        Ok(path)
    }

    /// Reads the filter of a list of values, in brackets. It has none itself.
    pub(crate) fn value_filter(&mut self, depth: usize) -> Result<Expression, ScimError> {
        self.expect("[")?;
        let filter = self.any(depth + 1)?;
        self.expect("]")?;
        Ok(filter)
    }

    fn comparison(&mut self, path: AttributePath) -> Result<Expression, ScimError> {
        let word = self.word();
        if word.eq_ignore_ascii_case("pr") {
            return Ok(Expression::Present(path));
        }
        let Some(operator) = Operator::parse(word) else {
            let expected = "expected `eq`, `ne`, `co`, `sw`, `ew`, `gt`, `ge`, `lt`, `le` or `pr`";
            return Err(self.fail(expected));
        };
        let value = self.literal()?;
        if is_boolean(&path.name, path.sub.as_deref()) {
            let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
            if !is_equality || (json::boolean(&value).is_none() && !value.is_null()) {
                return Err(self.fail(&format!("`{}` is compared with `eq true` or `eq false`", path.name)));
            }
        }
        Ok(Expression::Compare(path, operator, value))
    }

    fn literal(&mut self) -> Result<Value, ScimError> {
        self.skip_spaces();
        let end = if self.rest.starts_with('"') {
            let mut is_escaped = false;
            let end = self.rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !is_escaped;
                is_escaped = *c == '\\' && !is_escaped;
                ends
            });
            end.map(|(index, _)| index + 1)
        } else {
            let end = self.rest.find(|c: char| c.is_whitespace() || c == ')' || c == ']');
            Some(end.unwrap_or(self.rest.len()))
        };
        let (text, rest) = end
            .and_then(|end| self.rest.split_at_checked(end))
            .ok_or_else(|| self.fail("a text that does not end"))?;
        let value = match text.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => serde_json::from_str(text).ok(),
        };
        let value = value.filter(|value: &Value| !value.is_array() && !value.is_object());
        let expected = "expected a text in double quotes, a number, `true`, `false` or `null`";
        let value = value.ok_or_else(|| self.fail(expected))?;
        self.rest = rest;
        Ok(value)
    }

    /// Reads letters.
    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Reads a keyword if it is next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let before = self.rest;
        let is_whole =
            |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '(');
        if self.word().eq_ignore_ascii_case(keyword) && is_whole(self.rest) {
            return true;
        }
        self.rest = before;
        false
    }

    /// Reads a symbol if it is next.
    pub(crate) fn symbol(&mut self, symbol: &str) -> bool {
        self.skip_spaces();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ScimError> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.fail(&format!("expected `{symbol}`"))) }
    }

    /// Fails unless everything was read.
    pub(crate) fn end(&mut self) -> Result<(), ScimError> {
        self.skip_spaces();
        if self.rest.is_empty() { Ok(()) } else { Err(self.fail("expected `and`, `or` or the end")) }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn fail(&self, reason: &str) -> ScimError {
        let position = self.text.len() - self.rest.len();
        let text = excerpt(self.text, 120);
        ScimError::new(
            ScimType::InvalidFilter,
            format!("invalid filter `{text}`: {reason} at byte {position}"),
        )
    }
}

fn one_or(mut terms: Vec<Expression>, several: fn(Vec<Expression>) -> Expression) -> Expression {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        last => {
            terms.extend(last);
            several(terms)
        }
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
