//! Reads YAML to a tree. Strict, bounded, and without recursion: a hostile text must neither fill the
//! memory nor the stack, and a deserialiser that recurses takes 40 KB of stack for every level.
//!
//! Scalars are those of the core schema of YAML 1.2, with nothing of YAML 1.1 but merge keys: `yes`
//! is a text, and only `true` and `false` are booleans.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::Number;
use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Tag};

use super::yaml::{Content, Key, MAX_DEPTH, Node, Place};
use haft_core::problem::{Problem, excerpt};

/// How large a document may be, each alias counted as all that it stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most nodes.
    pub(crate) nodes: usize,
    /// The most bytes of all texts.
    pub(crate) bytes: usize,
}

/// The bounds of the definition of one tool.
const OF_DEFINITION: Bounds = Bounds { nodes: 100_000, bytes: 4 * 1024 * 1024 };
/// Control lines and the parts around a schema may add some levels to what a definition is allowed.
const MAX_STACK: usize = MAX_DEPTH + 32;

/// More warnings of one kind help nobody.
const MAX_WARNINGS: usize = 10;

/// A document, and doubts about its text.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) root: Node,
    pub(super) warnings: Vec<Problem>,
}

/// Reads one definition.
pub(super) fn parse(text: &str) -> Result<Loaded, Problem> {
    parse_within(text, OF_DEFINITION)
}

/// Reads a document of another size.
pub(super) fn parse_within(text: &str, bounds: Bounds) -> Result<Loaded, Problem> {
    let mut options = Options::default();
    // The text is bounded already; a long comment is no fault.
    options.max_buffered_comment_events = text.len();
    let mut loader = Loader::new(bounds);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        if let Event::Comment(comment, _) = &event {
            loader.comment(comment, place(span.start));
            continue;
        }
        let plain = matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..));
        loader.plain_until = plain.then(|| place(span.end).line);
        loader.take(event, place(span.start))?;
    }
    let empty = Node { content: Content::Null, place: Place { line: 1, column: 1 } };
    Ok(Loaded { root: loader.root.unwrap_or(empty), warnings: loader.warnings })
}

fn syntax(error: &ScanError) -> Problem {
    place(*error.marker()).problem("syntax", format!("this is not valid YAML: {}", error.info()))
}

fn place(marker: Marker) -> Place {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: narrow(marker.line()).max(1), column: narrow(marker.col().saturating_add(1)) }
}

fn invalid(place: Place, message: &str) -> Problem {
    place.problem("syntax", format!("this is not valid YAML: {message}"))
}

/// How much a node weighs, with everything below it.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A list or a map that is not closed yet.
struct Open {
    content: Collected,
    place: Place,
    anchor: usize,
    weight: Weight,
}

enum Collected {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, names: HashSet<String>, key: Option<(Key, bool)>, merged: Vec<Node> },
}

struct Loader {
    bounds: Bounds,
    open: Vec<Open>,
    anchors: HashMap<usize, (Rc<Node>, Weight)>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    bytes: usize,
    /// The line on which a plain scalar ended, if that was the last thing.
    plain_until: Option<u32>,
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
            plain_until: None,
            warnings: Vec::new(),
        }
    }

    /// Notices a `#` that was hardly meant as a comment, as in `Channel name (without #)`.
    fn comment(&mut self, comment: &str, place: Place) {
        let meant = !comment.starts_with(|c: char| c.is_alphanumeric() || ")]}'\".,;".contains(c));
        if meant || self.plain_until != Some(place.line) || self.warnings.len() == MAX_WARNINGS {
            return;
        }
        let message = "a `#` after a space starts a comment, so the value ends before it; \
                       put the value in quotes if that is not meant";
        self.warnings.push(place.problem("comment_in_value", message));
    }

    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(invalid(
                        place,
                        "a file holds one document; a line `---` starts a second one",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let content = scalar(text.into_owned(), style, tag.as_deref(), place)?;
                let bytes = if let Content::Text(text) = &content { text.len() } else { 8 };
                let weight = Weight { nodes: 1, bytes, depth: 0 };
                self.add(Node { content, place }, weight, anchor, plain)
            }
            Event::SequenceStart(_, anchor, tag) => {
                known(tag.as_deref(), "seq", place)?;
                self.begin(Collected::List(Vec::new()), place, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                known(tag.as_deref(), "map", place)?;
                let map = Collected::Map {
                    entries: Vec::new(),
                    names: HashSet::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.begin(map, place, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(id) => self.alias(id, place),
            _ => Ok(()),
        }
    }

    fn alias(&mut self, id: usize, place: Place) -> Result<(), Problem> {
        let Some((node, weight)) = self.anchors.get(&id).cloned() else {
            return Err(invalid(place, "an alias stands inside what it refers to"));
        };
        if self.open.len() + weight.depth > MAX_STACK {
            return Err(too_deep(place));
        }
        // The bounds come before the copy: what an alias stands for may be large.
        self.count(weight, place)?;
        self.attach(Node { content: node.content.clone(), place }, weight, false)
    }

    fn count(&mut self, weight: Weight, place: Place) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(weight.nodes);
        self.bytes = self.bytes.saturating_add(weight.bytes);
        if self.nodes > self.bounds.nodes || self.bytes > self.bounds.bytes {
            let Bounds { nodes, bytes, .. } = self.bounds;
            let message = format!(
                "the document is too large: it has more than {nodes} values or {bytes} bytes of text, each alias counted \
                 as all that it stands for; keep large data in a file of its own"
            );
            return Err(place.problem("too_large", message));
        }
        Ok(())
    }

    fn begin(&mut self, content: Collected, place: Place, anchor: usize) -> Result<(), Problem> {
        if self.open.len() >= MAX_STACK {
            return Err(too_deep(place));
        }
        let weight = Weight { nodes: 1, bytes: 0, depth: 0 };
        self.count(weight, place)?;
        self.open.push(Open { content, place, anchor, weight });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let content = match open.content {
            Collected::List(items) => Content::List(items),
            Collected::Map { mut entries, mut names, merged, .. } => {
                for node in merged {
                    merge(node, &mut entries, &mut names)?;
                }
                Content::Map(entries)
            }
        };
        let node = Node { content, place: open.place };
        self.anchor(&node, open.weight, open.anchor)?;
        self.attach(node, open.weight, false)
    }

    fn add(&mut self, node: Node, weight: Weight, anchor: usize, plain: bool) -> Result<(), Problem> {
        self.count(weight, node.place)?;
        self.anchor(&node, weight, anchor)?;
        self.attach(node, weight, plain)
    }

    /// Keeps a copy for aliases; copies count too, since anchors may stand inside each other.
    fn anchor(&mut self, node: &Node, weight: Weight, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.count(weight, node.place)?;
            self.anchors.insert(anchor, (Rc::new(node.clone()), weight));
        }
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn attach(&mut self, node: Node, weight: Weight, plain: bool) -> Result<(), Problem> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.weight.nodes += weight.nodes;
        open.weight.bytes += weight.bytes;
        open.weight.depth = open.weight.depth.max(weight.depth + 1);
        match &mut open.content {
            Collected::List(items) => items.push(node),
            Collected::Map { entries, names, key, merged } => match key.take() {
                None => *key = Some((as_key(node)?, plain)),
                Some((name, true)) if name.text == "<<" => merged.push(node),
                Some((name, _)) => {
                    if !names.insert(name.text.clone()) {
                        let shown = excerpt(&name.text, 60);
                        let message =
                            format!("the key `{shown}` stands here a second time; keep one of them");
                        return Err(name.place.problem("duplicate_key", message));
                    }
                    entries.push((name, node));
                }
            },
        }
        Ok(())
    }
}

fn too_deep(place: Place) -> Problem {
    place.problem(
        "too_deep",
        format!("the definition is nested more than {MAX_DEPTH} levels deep; make it flatter"),
    )
}

fn as_key(node: Node) -> Result<Key, Problem> {
    let text = match node.content {
        Content::Text(text) | Content::Number(_, text) => text,
        Content::Bool(flag) => flag.to_string(),
        Content::Null => "null".to_owned(),
        Content::List(_) | Content::Map(_) => {
            return Err(invalid(node.place, "a map or a list stands where a key is expected"));
        }
    };
    Ok(Key { text, place: node.place })
}

/// `<<: *defaults` adds the entries that the map does not have itself.
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
        _ => Err(invalid(node.place, "`<<` takes a map, or a list of maps")),
    }
}

fn known(tag: Option<&Tag>, expected: &str, place: Place) -> Result<(), Problem> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema_tag(expected) => Err(unknown_tag(tag, place)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, place: Place) -> Problem {
    invalid(place, &format!("the tag `{}` is not known; leave it out", excerpt(&tag.original(), 40)))
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Result<Content, Problem> {
    let plain = style == ScalarStyle::Plain;
    match tag {
        None if plain => resolve(text, place),
        None => Ok(Content::Text(text)),
        Some(tag) if tag.is_yaml_core_schema_tag("str") || tag.original() == "!" => Ok(Content::Text(text)),
        Some(tag)
            if ["int", "float", "bool", "null"].iter().any(|kind| tag.is_yaml_core_schema_tag(kind)) =>
        {
            resolve(text, place)
        }
        Some(tag) => Err(unknown_tag(tag, place)),
    }
}

/// Tells what a plain scalar is, by the core schema of YAML 1.2.
fn resolve(text: String, place: Place) -> Result<Content, Problem> {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "true" | "True" | "TRUE" => return Ok(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Content::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let infinite =
        matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text.as_str(), ".nan" | ".NaN" | ".NAN");
    if infinite {
        return Err(invalid(place, "a number is not finite; put it in quotes if it is a text"));
    }
    let number = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(octal), _) => {
            u64::from_str_radix(octal, 8).ok().filter(|_| !octal.starts_with('+')).map(Number::from)
        }
        (_, Some(hex)) => {
            u64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')).map(Number::from)
        }
        _ if is_decimal(digits) => decimal(&text, place)?,
        _ => None,
    };
    Ok(match number {
        Some(number) => Content::Number(number, text),
        None => Content::Text(text),
    })
}

/// Tells whether a text is `1`, `1.5`, `.5`, `1.` or one of these with an exponent.
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

fn decimal(text: &str, place: Place) -> Result<Option<Number>, Problem> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<u64>() {
        return Ok(Some(number.into()));
    }
    if let Ok(number) = unsigned.parse::<i64>() {
        return Ok(Some(number.into()));
    }
    let number = unsigned.parse::<f64>().ok().and_then(Number::from_f64);
    if number.is_none() {
        return Err(invalid(place, "a number is too large; put it in quotes if it is a text"));
    }
    Ok(number)
}
