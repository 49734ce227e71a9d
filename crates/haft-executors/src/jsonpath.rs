//! `JSONPath` (RFC 9535) with a limit on its work.
//!
//! The library parses paths and applies single selectors. The walk itself is done here, because the library stores the
//! path to every match as text: a hostile response with long keys would take gigabytes. For the same reason, filters
//! are restricted.

use haft_core::problem::excerpt;
use jsonpath_rust::parser::model::{
    Comparable, Filter, FilterAtom, FnArg, JpQuery, Segment, Selector, SingularQuery, Test, TestFunction,
};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// The maximum number of `..` in a path.
const MAX_DESCENTS: usize = 2;

/// The maximum number of values that one search visits.
const BUDGET: usize = 2_000_000;

/// How many bytes of text count as one more value.
const BYTES_PER_VALUE: usize = 64;

/// The cost of a filter per value.
const FILTER_COST: usize = 20;

/// The maximum length of a path in bytes, because the parser is recursive.
const MAX_PATH_BYTES: usize = 1000;

/// Returns the message of the parser without the names of its rules.
fn parser_message(error: &impl ToString) -> String {
    const RULES: [(&str, &str); 10] = [
        ("comparable", "a value to compare with"),
        ("EOI", "the end"),
        ("wildcard_selector", "`*`"),
        ("child_segment", "`.name` or `[…]`"),
        ("segment", "`.name` or `[…]`"),
        ("selector", "a name in quotes, an index or `*`"),
        ("member_name_shorthand", "a name"),
        ("name_first", "a name"),
        ("ALPHA", "a name"),
        ("jp_query", "a path"),
    ];
    let mut text = one_line(&error.to_string());
    for (rule, words) in RULES {
        text = text.replace(rule, words);
    }
    text
}

/// A compiled path.
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

/// One segment of a path.
struct Step {
    /// Whether it starts from all depths.
    descend: bool,
    /// The selectors as separate queries, each with its cost per child.
    selectors: Vec<(JpQuery, usize)>,
}

/// The value is too large for this path.
#[derive(Debug, PartialEq, Eq)]
pub struct PathBudgetExceeded;

impl JsonPath {
    /// Compiles a path; the error is a message for people.
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("the path exceeds the limit of {MAX_PATH_BYTES} bytes"));
        }
        if !text.starts_with('$') {
            return Err("invalid JSONPath: must start with `$`, as in `$.items[0].id`".to_owned());
        }
        let query =
            parse_json_path(text).map_err(|error| format!("invalid JSONPath: {}", parser_message(&error)))?;
        let descents =
            query.segments.iter().filter(|segment| matches!(segment, Segment::Descendant(_))).count();
        if descents > MAX_DESCENTS {
            return Err(format!("a JSONPath may contain `..` at most {MAX_DESCENTS} times"));
        }
        if !query.segments.iter().flat_map(selectors).all(is_bounded) {
            return Err(
                "inside a filter only `@` with names, indexes and one `*`, and literal patterns are \
                        supported, not `$`, `..` or another filter"
                    .to_owned(),
            );
        }
        Ok(Self { text: text.to_owned(), steps: query.segments.iter().map(Step::new).collect() })
    }

    /// Returns the path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns every match, in the order of the document.
    pub fn find<'v>(&self, root: &'v Value) -> Result<Vec<&'v Value>, PathBudgetExceeded> {
        let mut walk = Walk { left: BUDGET };
        let mut nodes = vec![root];
        for step in &self.steps {
            if step.descend {
                let mut all = Vec::new();
                for node in nodes {
                    walk.descend(node, &mut all)?;
                }
                nodes = all;
            }
            nodes = walk.select(&step.selectors, &nodes)?;
        }
        // Matches may be nested; what the caller copies must be limited as well.
        if nodes.len() > 1 {
            nodes.iter().try_for_each(|node| walk.weigh(node))?;
        }
        Ok(nodes)
    }
}

impl Step {
    fn new(segment: &Segment) -> Self {
        let alone = |selector: &Selector| {
            let cost = match selector {
                Selector::Name(_) | Selector::Index(_) => 0,
                Selector::Wildcard | Selector::Slice(..) => 1,
                Selector::Filter(_) => FILTER_COST,
            };
            (JpQuery::new(vec![Segment::Selector(selector.clone())]), cost)
        };
        Self {
            descend: matches!(segment, Segment::Descendant(_)),
            selectors: selectors(segment).iter().map(alone).collect(),
        }
    }
}

/// Returns the selectors of a segment, whatever its form.
fn selectors(segment: &Segment) -> &[Selector] {
    match segment {
        Segment::Descendant(inner) => selectors(inner),
        Segment::Selector(one) => std::slice::from_ref(one),
        Segment::Selectors(several) => several,
    }
}

struct Walk {
    left: usize,
}

impl Walk {
    fn spend(&mut self, cost: usize) -> Result<(), PathBudgetExceeded> {
        self.left = self.left.checked_sub(cost).ok_or(PathBudgetExceeded)?;
        Ok(())
    }

    /// Collects a container and all containers inside it; the JSON parser limits the depth.
    fn descend<'v>(&mut self, node: &'v Value, out: &mut Vec<&'v Value>) -> Result<(), PathBudgetExceeded> {
        self.spend(1)?;
        match node {
            Value::Array(items) => {
                out.push(node);
                items.iter().try_for_each(|item| self.descend(item, out))
            }
            Value::Object(map) => {
                out.push(node);
                map.values().try_for_each(|item| self.descend(item, out))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn weigh(&mut self, node: &Value) -> Result<(), PathBudgetExceeded> {
        self.spend(1)?;
        match node {
            Value::Array(items) => items.iter().try_for_each(|item| self.weigh(item)),
            Value::Object(map) => map.iter().try_for_each(|(key, item)| {
                self.spend(key.len() / BYTES_PER_VALUE)?;
                self.weigh(item)
            }),
            Value::String(text) => self.spend(text.len() / BYTES_PER_VALUE),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn select<'v>(
        &mut self,
        selectors: &[(JpQuery, usize)],
        nodes: &[&'v Value],
    ) -> Result<Vec<&'v Value>, PathBudgetExceeded> {
        let mut out = Vec::new();
        for node in nodes {
            let children = match node {
                Value::Array(items) => items.len(),
                Value::Object(map) => map.len(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            };
            for (selector, cost) in selectors {
                self.spend(1 + children * cost)?;
                let found = js_path_process(selector, *node).unwrap_or_default();
                out.extend(found.into_iter().map(|found| found.val));
            }
        }
        Ok(out)
    }
}

/// Returns whether the cost of a selector depends only on the children that it visits.
fn is_bounded(selector: &Selector) -> bool {
    match selector {
        Selector::Filter(filter) => filter_is_bounded(filter),
        Selector::Slice(_, _, step) => step.is_none_or(|step| step.unsigned_abs() < 1 << 32),
        Selector::Name(_) | Selector::Wildcard | Selector::Index(_) => true,
    }
}

fn filter_is_bounded(filter: &Filter) -> bool {
    match filter {
        Filter::Or(all) | Filter::And(all) => all.iter().all(filter_is_bounded),
        Filter::Atom(FilterAtom::Filter { expr, .. }) => filter_is_bounded(expr),
        Filter::Atom(FilterAtom::Test { expr, .. }) => test_is_bounded(expr),
        Filter::Atom(FilterAtom::Comparison(comparison)) => {
            let (left, right) = comparison.vals();
            [left, right].into_iter().all(|side| match side {
                Comparable::Function(function) => function_is_bounded(function),
                Comparable::SingularQuery(query) => matches!(query, SingularQuery::Current(_)),
                Comparable::Literal(_) => true,
            })
        }
    }
}

fn test_is_bounded(test: &Test) -> bool {
    match test {
        Test::RelQuery(segments) => wildcards(segments).is_some_and(|count| count <= 1),
        // Selectors are applied to one value at a time, which is not the root of the document.
        Test::AbsQuery(_) => false,
        Test::Function(function) => function_is_bounded(function),
    }
}

fn function_is_bounded(function: &TestFunction) -> bool {
    let argument = |argument: &FnArg| match argument {
        FnArg::Literal(_) => true,
        FnArg::Test(test) => test_is_bounded(test),
        FnArg::Filter(filter) => filter_is_bounded(filter),
    };
    match function {
        TestFunction::Length(one) => argument(one),
        TestFunction::Value(one) | TestFunction::Count(one) => argument(one),
        TestFunction::Search(text, pattern) | TestFunction::Match(text, pattern) => {
            argument(text) && pattern.is_lit()
        }
        TestFunction::Custom(..) => false,
    }
}

/// Counts the segments that may match more than once; `None` if one is not supported in a filter.
fn wildcards(segments: &[Segment]) -> Option<usize> {
    segments.iter().try_fold(0, |count, segment| match segment {
        Segment::Selector(Selector::Name(_) | Selector::Index(_)) => Some(count),
        Segment::Selector(Selector::Wildcard | Selector::Slice(..)) => Some(count + 1),
        Segment::Selector(Selector::Filter(_)) | Segment::Selectors(_) | Segment::Descendant(_) => None,
    })
}

/// Returns position and reason from the multi-line message of the parser.
fn one_line(message: &str) -> String {
    let column = message.split_once("--> 1:").and_then(|(_, rest)| rest.lines().next());
    match (column, message.rsplit_once("= ")) {
        (Some(column), Some((_, reason))) => {
            format!("at character {column}: {}", excerpt(reason.trim(), 200))
        }
        _ => excerpt(message, 200),
    }
}

#[cfg(test)]
mod tests {
    use jsonpath_rust::JsonPath as _;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn matches_equal_those_of_the_library() {
        let store = json!({"store": {
            "book": [
                {"category": "reference", "author": "Rees", "title": "Sayings", "price": 8.95},
                {"category": "fiction", "author": "Waugh", "title": "Sword", "price": 12.99},
                {"category": "fiction", "author": "Melville", "title": "Moby Dick", "isbn": "0-553", "price": 8.99}
            ],
            "bicycle": {"color": "red", "price": 399}
        }, "limit": 10});
        for path in [
            "$",
            "$.store.book[0].title",
            "$.store.book[*].author",
            "$..author",
            "$.store.*",
            "$.store..price",
            "$..book[2]",
            "$..book[-1]",
            "$..book[:2]",
            "$..book[0,1]",
            "$..book[?@.isbn]",
            "$..book[?@.price<10]",
            "$..*",
            "$..book[::-1].price",
            "$.nope",
            "$..nope",
            "$['store']['bicycle']",
            "$..book[?@.category=='fiction' && @.price < 10].title",
            "$..[?length(@.author) == 4]",
            "$..book[?match(@.author, 'M.*')]",
            "$..book[?count(@.*) > 4].title",
            "$.store[?@.color, ?@[0]]",
        ] {
            let compiled = JsonPath::compile(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(compiled.find(&store), Ok(store.query(path).unwrap()), "{path}");
        }
    }

    #[test]
    fn expensive_paths_are_rejected() {
        for path in [
            "$..a..b..c",
            "$[?@..a]",
            "$[?@.*.*]",
            "$[?@.a[?@.b]]",
            "$[?$.*]",
            "$[?match(@.a, @.b)]",
            "$[?$..a == 1]",
            "$..book[?@.price<$.limit]",
            "$[?$.a]",
            "$[0:9:9223372036854775807]",
        ] {
            assert!(JsonPath::compile(path).is_err(), "{path}");
        }
        let wide = Value::from(vec![1; 200_000]);
        let mut nested = wide.clone();
        for _ in 0..60 {
            nested = json!([nested]);
        }
        let find =
            |path: &str, value: &Value| JsonPath::compile(path).unwrap().find(value).map(|found| found.len());
        assert_eq!(find("$..*..*", &nested), Err(PathBudgetExceeded));
        assert_eq!(find("$..*", &nested), Err(PathBudgetExceeded));
        assert_eq!(find("$[?@ > 0]", &wide), Err(PathBudgetExceeded));
        assert_eq!(find("$[*]", &wide), Ok(200_000));
        let long_key = json!({"k".repeat(1_000_000): vec![1; 100_000]});
        assert_eq!(find("$.*[*]", &long_key), Ok(100_000));
        assert_eq!(find("$..*", &long_key), Ok(100_001));
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "\\$[.\\[\\]a-c0-9*?@:,()'\"!<>=&| -]{0,20}", any in any::<String>()) {
            let value = json!({"a": [1, {"b": "x", "c": [null, true]}], "b": {"a": -1.5}});
            for path in [path, format!("${any}")] {
                if let Ok(path) = JsonPath::compile(&path) {
                    let _ = path.find(&value);
                }
            }
        }
    }
}
