//! Converts HTML to Markdown of the visible content.
//!
//! It processes the tokens of a standard-conforming tokenizer and builds no tree. The tree of hostile HTML can be far
//! larger and deeper than its source; tokens need time and memory in proportion to the size of the page.

use std::collections::{BTreeMap, HashSet};

use haft_core::problem::excerpt;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, Spanned, Token, Tokenizer};
use url::Url;

use super::element::{Element, is_void};
use super::writer::Writer;

/// The maximum number of links.
const MAX_LINKS: usize = 200;
/// The maximum length of the title, the description and the text of a link.
const MAX_TEXT: usize = 500;
/// The maximum length of a link's URL.
const MAX_URL: usize = 2000;
/// The minimum length of the text in `main` or `article` to be used as the content.
const MIN_CONTENT: usize = 200;

/// The visible parts of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) content: String,
    pub(super) links: Vec<Link>,
}

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) url: String,
}

/// The part of a page that is used as its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The elements `main` and `article`.
    Main,
    /// Everything except navigation, footer and asides.
    Body,
    /// Everything.
    All,
}

/// Converts a page; relative URLs are resolved against `base`.
pub(super) fn read(html: &str, base: &Url) -> Page {
    let convert = |extent| Reader::new(extent, base.clone()).read(html);
    let main = convert(Extent::Main);
    if main.content.len() >= MIN_CONTENT {
        return main;
    }
    let body = convert(Extent::Body);
    // Fall back to navigation only if there is nothing else.
    if body.content.is_empty() { convert(Extent::All) } else { body }
}

/// Returns the text of an HTML fragment.
pub(crate) fn plain_text(html: &str) -> String {
    let Ok(base) = Url::parse("about:blank") else { return String::new() };
    Reader::new(Extent::All, base).read(html).content
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

struct Reader {
    extent: Extent,
    base: Url,
    has_base_element: bool,
    page: Page,
    writer: Writer,
    /// The element that is being skipped, and its nesting depth.
    skipping: Option<(Vec<u8>, usize)>,
    /// The number of open `main` and `article` elements.
    main_depth: usize,
    in_title: bool,
    link: Option<(usize, String)>,
    seen_urls: HashSet<String>,
}

impl Reader {
    fn new(extent: Extent, base: Url) -> Self {
        Self {
            extent,
            base,
            has_base_element: false,
            page: Page::default(),
            writer: Writer::default(),
            skipping: None,
            main_depth: 0,
            in_title: false,
            link: None,
            seen_urls: HashSet::new(),
        }
    }

    fn read(mut self, html: &str) -> Page {
        let mut emitter = DefaultEmitter::<()>::default();
        // Treats the content of scripts and styles as text, as browsers do.
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Ok(Token::StartTag(tag)) => self.start(&tag.name, &tag.attributes, tag.self_closing),
                Ok(Token::EndTag(tag)) => self.end(&tag.name),
                Ok(Token::String(text)) => self.text(&text),
                Ok(Token::Comment(_) | Token::Doctype(_) | Token::Error(_)) | Err(_) => {}
            }
        }
        self.close_link();
        self.page.content = self.writer.finish();
        self.page
    }

    fn is_content(&self) -> bool {
        self.skipping.is_none() && (self.extent != Extent::Main || self.main_depth > 0)
    }

    fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if self.in_title && self.page.title.len() < MAX_TEXT {
            let title = format!("{} {text}", self.page.title);
            self.page.title = excerpt(&title.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TEXT);
        }
        if self.is_content() {
            self.writer.words(&text);
        }
    }

    fn start(&mut self, name: &[u8], attributes: &Attributes, closed: bool) {
        if let Some((skipped, depth)) = &mut self.skipping {
            if skipped == name && !closed {
                *depth += 1;
            }
            // The title is inside the head, which is skipped.
            if name == b"title" && skipped == b"head" {
                self.in_title = self.page.title.is_empty();
            }
            match name {
                b"meta" => self.meta(attributes),
                b"base" => self.set_base(attributes),
                _ => {}
            }
            // The end tag of the head is optional.
            if !(is_skipping_head(self.skipping.as_ref())
                && matches!(name, b"body" | b"main" | b"div" | b"p" | b"h1" | b"article"))
            {
                return;
            }
            self.skipping = None;
        }
        let element = Element::from_name(name);
        match name {
            b"main" | b"article" => self.main_depth += 1,
            b"title" => self.in_title = self.page.title.is_empty(),
            b"meta" => self.meta(attributes),
            b"base" => self.set_base(attributes),
            _ => {}
        }
        let is_skipped = element == Element::Hidden
            || (element == Element::Boilerplate && self.extent != Extent::All)
            || is_hidden(attributes);
        if is_skipped && !closed && !is_void(name) {
            self.skipping = Some((name.to_vec(), 1));
            return;
        }
        if self.is_content() {
            self.open(element, attributes);
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name == b"title" {
            self.in_title = false;
        }
        if let Some((skipped, depth)) = &mut self.skipping {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipping = None;
                }
            }
            return;
        }
        if self.is_content() {
            self.close(Element::from_name(name));
        }
        if matches!(name, b"main" | b"article") {
            self.main_depth = self.main_depth.saturating_sub(1);
        }
    }

    fn open(&mut self, element: Element, attributes: &Attributes) {
        let writer = &mut self.writer;
        match element {
            Element::Block => writer.line_breaks(2),
            Element::Line | Element::Break => writer.line_breaks(1),
            Element::Rule => {
                writer.line_breaks(2);
                writer.mark("---");
                writer.line_breaks(2);
            }
            Element::Heading(level) => writer.heading(level),
            Element::List { ordered: false } => writer.open_list(None),
            Element::List { ordered: true } => {
                let start = attribute(attributes, b"start").and_then(|start| start.trim().parse().ok());
                writer.open_list(Some(start.unwrap_or(1)));
            }
            Element::Item => writer.item(),
            Element::Quote => writer.open_quote(),
            Element::Preformatted => writer.open_preformatted(),
            Element::Code if !writer.is_preformatted() => writer.mark("`"),
            Element::Table => writer.open_table(),
            Element::Row => writer.open_row(),
            Element::Cell { is_header } => writer.open_cell(is_header),
            Element::Link => self.open_link(attributes),
            Element::Image => {
                if let Some(words) = attribute(attributes, b"alt").filter(|words| !words.trim().is_empty()) {
                    writer.words(&format!(" [image: {}] ", excerpt(words.trim(), MAX_TEXT)));
                }
            }
            Element::Code | Element::Boilerplate | Element::Hidden | Element::Inline => {}
        }
    }

    fn close(&mut self, element: Element) {
        let writer = &mut self.writer;
        match element {
            Element::Block | Element::Heading(_) => writer.line_breaks(2),
            Element::Line | Element::Item => writer.line_breaks(1),
            Element::List { .. } => writer.close_list(),
            Element::Quote => writer.close_quote(),
            Element::Preformatted => writer.close_preformatted(),
            Element::Code if !writer.is_preformatted() => writer.close("`"),
            Element::Link => self.close_link(),
            Element::Table => writer.close_table(),
            Element::Row => writer.close_row(),
            Element::Cell { .. } => writer.close_cell(),
            Element::Code
            | Element::Break
            | Element::Rule
            | Element::Image
            | Element::Boilerplate
            | Element::Hidden
            | Element::Inline => {}
        }
    }

    fn open_link(&mut self, attributes: &Attributes) {
        self.close_link();
        let url = attribute(attributes, b"href").and_then(|href| self.base.join(href.trim()).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
        let Some(url) = url.map(String::from).filter(|url| url.len() <= MAX_URL) else { return };
        self.writer.mark("[");
        self.link = Some((self.writer.len(), url));
    }

    fn close_link(&mut self) {
        let Some((start, url)) = self.link.take() else { return };
        let text = self.writer.since(start).trim().to_owned();
        if text.is_empty() {
            return self.writer.truncate(start - 1);
        }
        self.writer.close(&format!("]({url})"));
        if self.page.links.len() < MAX_LINKS && self.seen_urls.insert(url.clone()) {
            let text = excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TEXT);
            self.page.links.push(Link { text, url });
        }
    }

    /// Applies the first `base` element.
    fn set_base(&mut self, attributes: &Attributes) {
        let url = attribute(attributes, b"href").and_then(|href| self.base.join(href.trim()).ok());
        let url = url.filter(|url| !self.has_base_element && matches!(url.scheme(), "http" | "https"));
        if let Some(url) = url {
            self.base = url;
            self.has_base_element = true;
        }
    }

    fn meta(&mut self, attributes: &Attributes) {
        let name = attribute(attributes, b"name").or_else(|| attribute(attributes, b"property"));
        let is_description = name.is_some_and(|name| {
            matches!(name.to_ascii_lowercase().as_str(), "description" | "og:description")
        });
        if is_description && self.page.description.is_empty() {
            let words = attribute(attributes, b"content").unwrap_or_default();
            self.page.description =
                excerpt(&words.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TEXT);
        }
    }
}

fn is_skipping_head(skipping: Option<&(Vec<u8>, usize)>) -> bool {
    skipping.is_some_and(|(name, _)| name == b"head")
}

fn attribute(attributes: &Attributes, name: &[u8]) -> Option<String> {
    attributes.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Returns whether a browser would hide the element. Hidden text may be an instruction aimed at models only.
fn is_hidden(attributes: &Attributes) -> bool {
    if attributes.is_empty() {
        return false;
    }
    let style = attribute(attributes, b"style").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
    attributes.contains_key(&b"hidden"[..])
        || attribute(attributes, b"aria-hidden").is_some_and(|value| value == "true")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
