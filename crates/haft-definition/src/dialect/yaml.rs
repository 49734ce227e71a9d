//! YAML: a strict and bounded parser, and a tree that knows the source position of every node.
//!
//! The parser does not recurse: a hostile text must exhaust neither the memory nor the stack, and a recursive
//! deserializer needs 40 KB of stack per level.
//!
//! Scalars are those of the core schema of YAML 1.2, with merge keys as the only part of YAML 1.1: `yes` is a string, and
//! only `true` and `false` are booleans.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Tag};

use super::fields::join;
use haft_core::problem::{Problem, excerpt};

/// The maximum nesting depth of a definition.
pub(super) const MAX_DEPTH: usize = 64;

/// A node and its position.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) position: SourcePosition,
}

/// A line and a column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourcePosition {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A key of a map.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) position: SourcePosition,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Null,
    Bool(bool),
    /// A number and its source text.
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// The path from the root to a node. Formatted only if needed, because a long key above many nodes would otherwise be
/// copied for each of them.
struct NodePath<'a> {
    parent: Option<&'a NodePath<'a>>,
    step: PathStep<'a>,
}

enum PathStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl NodePath<'_> {
    fn path(&self) -> String {
        let above = self.parent.map(NodePath::path).unwrap_or_default();
        match self.step {
            PathStep::Key(key) => join(&above, &excerpt(key, 60)),
            PathStep::Index(index) => format!("{above}[{index}]"),
        }
    }
}

impl SourcePosition {
    pub(super) fn problem(self, code: &str, message: impl Into<String>) -> Problem {
        Problem::new("", code, message).at(self.line, Some(self.column))
    }
}

impl Node {
    /// Returns the plain value.
    pub(super) fn to_value(&self) -> Result<Value, Problem> {
        self.convert(None)
    }

    /// Returns the plain value of a foreign document, in which a number with leading zeros is ambiguous and becomes a
    /// string.
    pub(super) fn into_foreign_value(self) -> Value {
        match self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(flag),
            Content::Number(_, text) if has_leading_zero(&text) => Value::String(text),
            Content::Number(number, _) => Value::Number(number),
            Content::Text(text) => Value::String(text),
            Content::List(items) => items.into_iter().map(Self::into_foreign_value).collect(),
            Content::Map(entries) => {
                entries.into_iter().map(|(key, item)| (key.text, item.into_foreign_value())).collect()
            }
        }
    }

    fn convert(&self, path: Option<&NodePath<'_>>) -> Result<Value, Problem> {
        Ok(match &self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(*flag),
            Content::Number(number, text) => return self.number(number, text, path),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(item.convert(Some(&NodePath { parent: path, step: PathStep::Index(index) }))?);
                }
                Value::Array(list)
            }
            Content::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, item) in entries {
                    let path = NodePath { parent: path, step: PathStep::Key(&key.text) };
                    map.insert(key.text.clone(), item.convert(Some(&path))?);
                }
                Value::Object(map)
            }
        })
    }

    /// Converts a number; version labels and permission bits keep their source text.
    fn number(&self, number: &Number, text: &str, path: Option<&NodePath<'_>>) -> Result<Value, Problem> {
        let key = match path {
            Some(NodePath { step: PathStep::Key(key), .. }) => *key,
            _ => "",
        };
        if key == "version" && path.is_some_and(|path| path.parent.is_none()) {
            return Ok(Value::String(text.to_owned()));
        }
        if !has_leading_zero(text) {
            return Ok(Value::Number(number.clone()));
        }
        if key == "mode" {
            return Ok(Value::String(text.to_owned()));
        }
        let message = format!(
            "`{}` is ambiguous: YAML 1.1 and YAML 1.2 read it as different numbers; \
             quote it or remove the leading zeros",
            excerpt(text, 40)
        );
        let mut problem = self.position.problem("ambiguous_number", message);
        problem.field = path.map(NodePath::path).unwrap_or_default();
        Err(problem)
    }

    /// Returns the node at a dotted path.
    pub(super) fn descendant(&self, path: &str) -> Option<&Node> {
        let (step, rest) = path.split_once('.').unwrap_or((path, ""));
        let node = match &self.content {
            Content::Map(entries) => {
                entries.iter().find(|(key, _)| key.text == step).map(|(_, node)| node)?
            }
            Content::List(items) => items.get(step.parse::<usize>().ok()?)?,
            Content::Null | Content::Bool(_) | Content::Number(..) | Content::Text(_) => return None,
        };
        if rest.is_empty() { Some(node) } else { node.descendant(rest) }
    }

    /// Returns the position of a dotted path, or of its nearest ancestor.
    pub(super) fn locate(&self, path: &str) -> Option<SourcePosition> {
        if path.is_empty() {
            return None;
        }
        match &self.content {
            Content::Map(entries) => {
                // Keys may contain dots, so the longest matching key wins.
                let fits = |key: &Key| {
                    let rest = path.strip_prefix(key.text.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                let (key, node) =
                    entries.iter().filter(|(key, _)| fits(key)).max_by_key(|(key, _)| key.text.len())?;
                let rest = path.get(key.text.len() + 1..).unwrap_or_default();
                node.locate(rest).or(Some(key.position))
            }
            Content::List(items) => {
                let (index, rest) = path.split_once('.').unwrap_or((path, ""));
                let node = items.get(index.parse::<usize>().ok()?)?;
                node.locate(rest).or(Some(node.position))
            }
            Content::Null | Content::Bool(_) | Content::Number(..) | Content::Text(_) => None,
        }
    }
}

fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The maximum size of a document, with aliases expanded.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum number of nodes.
    pub nodes: usize,
    /// The maximum number of bytes of all texts.
    pub bytes: usize,
}

/// The bounds of a tool definition.
pub(super) const DEFINITION_BOUNDS: Bounds = Bounds { nodes: 100_000, bytes: 4 * 1024 * 1024 };
/// The maximum nesting while parsing: control lines and the parts around a schema add some levels.
const MAX_STACK: usize = MAX_DEPTH + 32;

/// The maximum number of warnings of one kind.
const MAX_WARNINGS: usize = 10;

/// A parsed document with warnings.
#[derive(Debug)]
pub(super) struct ParsedYaml {
    pub(super) root: Node,
    pub(super) warnings: Vec<Problem>,
}

/// Parses a definition.
pub(super) fn parse(text: &str) -> Result<ParsedYaml, Problem> {
    parse_within(text, DEFINITION_BOUNDS)
}

/// Parses a document with other bounds.
pub(super) fn parse_within(text: &str, bounds: Bounds) -> Result<ParsedYaml, Problem> {
    let mut options = Options::default();
    // The text is bounded already; long comments are fine.
    options.max_buffered_comment_events = text.len();
    let mut loader = Loader::new(bounds);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        if let Event::Comment(comment, _) = &event {
            loader.comment(comment, position(span.start));
            continue;
        }
        let plain = matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..));
        loader.plain_scalar_end = plain.then(|| position(span.end).line);
        loader.take(event, position(span.start))?;
    }
    let empty = Node { content: Content::Null, position: SourcePosition { line: 1, column: 1 } };
    Ok(ParsedYaml { root: loader.root.unwrap_or(empty), warnings: loader.warnings })
}

fn syntax(error: &ScanError) -> Problem {
    position(*error.marker()).problem("syntax", format!("invalid YAML: {}", error.info()))
}

fn position(marker: Marker) -> SourcePosition {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    SourcePosition { line: narrow(marker.line()).max(1), column: narrow(marker.col().saturating_add(1)) }
}

fn invalid(position: SourcePosition, message: &str) -> Problem {
    position.problem("syntax", format!("invalid YAML: {message}"))
}

/// The size of a node, including its descendants.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A list or map that is not complete yet.
struct OpenNode {
    content: OpenContent,
    position: SourcePosition,
    anchor: usize,
    weight: Weight,
}

enum OpenContent {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, names: HashSet<String>, key: Option<(Key, bool)>, merged: Vec<Node> },
}

struct Loader {
    bounds: Bounds,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, (Rc<Node>, Weight)>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    bytes: usize,
    /// The line on which a plain scalar ended, if that was the last event.
    plain_scalar_end: Option<u32>,
    warnings: Vec<Problem>,
}

impl Loader {
    fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            open: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            documents: 0,
            nodes: 0,
            bytes: 0,
            plain_scalar_end: None,
            warnings: Vec::new(),
        }
    }

    /// Warns of a `#` that is probably not meant as a comment, such as in `Channel name (without #)`.
    fn comment(&mut self, comment: &str, position: SourcePosition) {
        let is_comment = !comment.starts_with(|c: char| c.is_alphanumeric() || ")]}'\".,;".contains(c));
        if is_comment || self.plain_scalar_end != Some(position.line) || self.warnings.len() == MAX_WARNINGS {
            return;
        }
        let message = "a `#` after a space starts a comment, which ends the value; \
                       quote the value to keep the `#`";
        self.warnings.push(position.problem("comment_in_value", message));
    }

    fn take(&mut self, event: Event<'_>, position: SourcePosition) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(invalid(
                        position,
                        "more than one document; a line `---` starts a second one",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let content = scalar(text.into_owned(), style, tag.as_deref(), position)?;
                let bytes = if let Content::Text(text) = &content { text.len() } else { 8 };
                let weight = Weight { nodes: 1, bytes, depth: 0 };
                self.add(Node { content, position }, weight, anchor, plain)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq", position)?;
                self.begin(OpenContent::List(Vec::new()), position, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", position)?;
                let map = OpenContent::Map {
                    entries: Vec::new(),
                    names: HashSet::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.begin(map, position, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(id) => self.alias(id, position),
            _ => Ok(()),
        }
    }

    fn alias(&mut self, id: usize, position: SourcePosition) -> Result<(), Problem> {
        let Some((node, weight)) = self.anchors.get(&id).cloned() else {
            return Err(invalid(position, "an alias refers to a value that contains it"));
        };
        if self.open.len() + weight.depth > MAX_STACK {
            return Err(too_deep(position));
        }
        // Checks the bounds before copying, because the target may be large.
        self.count(weight, position)?;
        self.attach(Node { content: node.content.clone(), position }, weight, false)
    }

    fn count(&mut self, weight: Weight, position: SourcePosition) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(weight.nodes);
        self.bytes = self.bytes.saturating_add(weight.bytes);
        if self.nodes > self.bounds.nodes || self.bytes > self.bounds.bytes {
            let Bounds { nodes, bytes, .. } = self.bounds;
            let message = format!(
                "the document is too large: the limit is {nodes} values and {bytes} bytes of text, with aliases \
                 expanded; move large data to a separate file"
            );
            return Err(position.problem("too_large", message));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        content: OpenContent,
        position: SourcePosition,
        anchor: usize,
    ) -> Result<(), Problem> {
        if self.open.len() >= MAX_STACK {
            return Err(too_deep(position));
        }
        let weight = Weight { nodes: 1, bytes: 0, depth: 0 };
        self.count(weight, position)?;
        self.open.push(OpenNode { content, position, anchor, weight });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let content = match open.content {
            OpenContent::List(items) => Content::List(items),
            OpenContent::Map { mut entries, mut names, merged, .. } => {
                for node in merged {
                    merge(node, &mut entries, &mut names)?;
                }
                Content::Map(entries)
            }
        };
        let node = Node { content, position: open.position };
        self.anchor(&node, open.weight, open.anchor)?;
        self.attach(node, open.weight, false)
    }

    fn add(&mut self, node: Node, weight: Weight, anchor: usize, plain: bool) -> Result<(), Problem> {
        self.count(weight, node.position)?;
        self.anchor(&node, weight, anchor)?;
        self.attach(node, weight, plain)
    }

    /// Stores a copy for aliases. Copies count towards the bounds, because anchors can be nested.
    fn anchor(&mut self, node: &Node, weight: Weight, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.count(weight, node.position)?;
            self.anchors.insert(anchor, (Rc::new(node.clone()), weight));
        }
        Ok(())
    }

    /// Adds a complete node to its parent.
    fn attach(&mut self, node: Node, weight: Weight, plain: bool) -> Result<(), Problem> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.weight.nodes += weight.nodes;
        open.weight.bytes += weight.bytes;
        open.weight.depth = open.weight.depth.max(weight.depth + 1);
        match &mut open.content {
            OpenContent::List(items) => items.push(node),
            OpenContent::Map { entries, names, key, merged } => match key.take() {
                None => *key = Some((as_key(node)?, plain)),
                Some((name, true)) if name.text == "<<" => merged.push(node),
                Some((name, _)) => {
                    if !names.insert(name.text.clone()) {
                        let shown = excerpt(&name.text, 60);
                        let message = format!("duplicate key `{shown}`; remove one of them");
                        return Err(name.position.problem("duplicate_key", message));
                    }
                    entries.push((name, node));
                }
            },
        }
        Ok(())
    }
}

fn too_deep(position: SourcePosition) -> Problem {
    position
        .problem("too_deep", format!("the nesting of the definition exceeds the limit of {MAX_DEPTH} levels"))
}

fn as_key(node: Node) -> Result<Key, Problem> {
    let text = match node.content {
        Content::Text(text) | Content::Number(_, text) => text,
        Content::Bool(flag) => flag.to_string(),
        Content::Null => "null".to_owned(),
        Content::List(_) | Content::Map(_) => {
            return Err(invalid(node.position, "expected a key, found a map or list"));
        }
    };
    Ok(Key { text, position: node.position })
}

/// Applies `<<: *defaults`: adds the entries that the map does not have.
fn merge(node: Node, entries: &mut Vec<(Key, Node)>, names: &mut HashSet<String>) -> Result<(), Problem> {
    match node.content {
        Content::Map(more) => {
            for (key, value) in more {
                if names.insert(key.text.clone()) {
                    entries.push((key, value));
                }
            }
            Ok(())
        }
        Content::List(maps) if maps.iter().all(|map| matches!(map.content, Content::Map(_))) => {
            maps.into_iter().try_for_each(|map| merge(map, entries, names))
        }
        _ => Err(invalid(node.position, "`<<` must be a map or a list of maps")),
    }
}

fn check_tag(tag: Option<&Tag>, expected: &str, position: SourcePosition) -> Result<(), Problem> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema_tag(expected) => Err(unknown_tag(tag, position)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, position: SourcePosition) -> Problem {
    invalid(position, &format!("unknown tag `{}`; remove it", excerpt(&tag.original(), 40)))
}

fn scalar(
    text: String,
    style: ScalarStyle,
    tag: Option<&Tag>,
    position: SourcePosition,
) -> Result<Content, Problem> {
    let plain = style == ScalarStyle::Plain;
    match tag {
        None if plain => resolve(text, position),
        None => Ok(Content::Text(text)),
        Some(tag) if tag.is_yaml_core_schema_tag("str") || tag.original() == "!" => Ok(Content::Text(text)),
        Some(tag)
            if ["int", "float", "bool", "null"].iter().any(|kind| tag.is_yaml_core_schema_tag(kind)) =>
        {
            resolve(text, position)
        }
        Some(tag) => Err(unknown_tag(tag, position)),
    }
}

/// Resolves a plain scalar by the core schema of YAML 1.2.
fn resolve(text: String, position: SourcePosition) -> Result<Content, Problem> {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "true" | "True" | "TRUE" => return Ok(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Content::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let is_infinite =
        matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text.as_str(), ".nan" | ".NaN" | ".NAN");
    if is_infinite {
        return Err(invalid(position, "the number is not finite; quote it if it is a string"));
    }
    let number = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(octal), _) => {
            u64::from_str_radix(octal, 8).ok().filter(|_| !octal.starts_with('+')).map(Number::from)
        }
        (_, Some(hex)) => {
            u64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')).map(Number::from)
        }
        _ if is_decimal(digits) => decimal(&text, position)?,
        _ => None,
    };
    Ok(match number {
        Some(number) => Content::Number(number, text),
        None => Content::Text(text),
    })
}

/// Returns whether a text is `1`, `1.5`, `.5`, `1.` or one of these with an exponent.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.map(|e| e.strip_prefix(['-', '+']).unwrap_or(e));
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && all_digits(e))
}

fn decimal(text: &str, position: SourcePosition) -> Result<Option<Number>, Problem> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<u64>() {
        return Ok(Some(number.into()));
    }
    if let Ok(number) = unsigned.parse::<i64>() {
        return Ok(Some(number.into()));
    }
    let number = unsigned.parse::<f64>().ok().and_then(Number::from_f64);
    if number.is_none() {
        return Err(invalid(position, "the number is too large; quote it if it is a string"));
    }
    Ok(number)
}
