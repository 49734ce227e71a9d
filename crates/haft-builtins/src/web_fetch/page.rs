//! From HTML to what a reader sees of it.
//!
//! The tokenizer is a library that follows the standard; no tree is built from its tokens. A tree of hostile HTML is
//! far larger than its text, and every walk through it may be as deep as the text is long. Tokens take time and memory
//! in proportion to the page, whatever is in it.

use std::collections::{BTreeMap, HashSet};

use haft_core::problem::excerpt;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, Spanned, Token, Tokenizer};
use url::Url;

use super::element::{Element, is_void};
use super::writer::Writer;

/// The most links that are listed.
const MAX_LINKS: usize = 200;
/// The longest title, description, and text of a link.
const MAX_WORDS: usize = 500;
/// The longest address that is shown.
const MAX_ADDRESS: usize = 2000;
/// A part of a page with less text than this is not taken for its content.
const LEAST_CONTENT: usize = 200;

/// A page as a reader sees it.
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

/// How much of a page is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// What is in `main` or `article`.
    Main,
    /// Everything but what surrounds the content.
    Body,
    /// Everything.
    All,
}

/// Reads a page; addresses are relative to `base`.
pub(super) fn read(html: &str, base: &Url) -> Page {
    let taken = |extent| Reader::new(extent, base.clone()).read(html);
    let main = taken(Extent::Main);
    if main.content.len() >= LEAST_CONTENT {
        return main;
    }
    let body = taken(Extent::Body);
    // A menu is the content only where there is no other.
    if body.content.is_empty() { taken(Extent::All) } else { body }
}

/// Returns the text of a bit of HTML.
pub(crate) fn plain_text(html: &str) -> String {
    let Ok(base) = Url::parse("about:blank") else { return String::new() };
    Reader::new(Extent::All, base).read(html).content
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

struct Reader {
    extent: Extent,
    base: Url,
    is_rebased: bool,
    page: Page,
    writer: Writer,
    /// The element that is left out, and how often it was opened within itself.
    skipping: Option<(Vec<u8>, usize)>,
    /// How many `main` or `article` are open.
    inside: usize,
    in_title: bool,
    link: Option<(usize, String)>,
    seen: HashSet<String>,
}

impl Reader {
    fn new(extent: Extent, base: Url) -> Self {
        Self {
            extent,
            base,
            is_rebased: false,
            page: Page::default(),
            writer: Writer::default(),
            skipping: None,
            inside: 0,
            in_title: false,
            link: None,
            seen: HashSet::new(),
        }
    }

    fn read(mut self, html: &str) -> Page {
        let mut emitter = DefaultEmitter::<()>::default();
        // Scripts and styles are read as browsers do: what looks like a tag in them is none.
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

    fn takes(&self) -> bool {
        self.skipping.is_none() && (self.extent != Extent::Main || self.inside > 0)
    }

    fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if self.in_title && self.page.title.len() < MAX_WORDS {
            let title = format!("{} {text}", self.page.title);
            self.page.title = excerpt(&title.split_whitespace().collect::<Vec<_>>().join(" "), MAX_WORDS);
        }
        if self.takes() {
            self.writer.words(&text);
        }
    }

    fn start(&mut self, name: &[u8], attributes: &Attributes, closed: bool) {
        if let Some((skipped, depth)) = &mut self.skipping {
            if skipped == name && !closed {
                *depth += 1;
            }
            // The title is inside of the head.
            if name == b"title" && skipped == b"head" {
                self.in_title = self.page.title.is_empty();
            }
            match name {
                b"meta" => self.meta(attributes),
                b"base" => self.rebase(attributes),
                _ => {}
            }
            // A head may end without saying so.
            if !(skipped_head(self.skipping.as_ref())
                && matches!(name, b"body" | b"main" | b"div" | b"p" | b"h1" | b"article"))
            {
                return;
            }
            self.skipping = None;
        }
        let element = Element::of(name);
        match name {
            b"main" | b"article" => self.inside += 1,
            b"title" => self.in_title = self.page.title.is_empty(),
            b"meta" => self.meta(attributes),
            b"base" => self.rebase(attributes),
            _ => {}
        }
        let left_out = element == Element::Hidden
            || (element == Element::Around && self.extent != Extent::All)
            || is_hidden(attributes);
        if left_out && !closed && !is_void(name) {
            self.skipping = Some((name.to_vec(), 1));
            return;
        }
        if self.takes() {
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
        if self.takes() {
            self.close(Element::of(name));
        }
        if matches!(name, b"main" | b"article") {
            self.inside = self.inside.saturating_sub(1);
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
            Element::List { counts: false } => writer.open_list(None),
            Element::List { counts: true } => {
                let start = attribute(attributes, b"start").and_then(|start| start.trim().parse().ok());
                writer.open_list(Some(start.unwrap_or(1)));
            }
            Element::Item => writer.item(),
            Element::Quote => writer.open_quote(),
            Element::Verbatim => writer.open_verbatim(),
            Element::Code if !writer.is_verbatim() => writer.mark("`"),
            Element::Table => writer.open_table(),
            Element::Row => writer.open_row(),
            Element::Cell { heads } => writer.open_cell(heads),
            Element::Link => self.open_link(attributes),
            Element::Image => {
                if let Some(words) = attribute(attributes, b"alt").filter(|words| !words.trim().is_empty()) {
                    writer.words(&format!(" [image: {}] ", excerpt(words.trim(), MAX_WORDS)));
                }
            }
            Element::Code | Element::Around | Element::Hidden | Element::Inline => {}
        }
    }

    fn close(&mut self, element: Element) {
        let writer = &mut self.writer;
        match element {
            Element::Block | Element::Heading(_) => writer.line_breaks(2),
            Element::Line | Element::Item => writer.line_breaks(1),
            Element::List { .. } => writer.close_list(),
            Element::Quote => writer.close_quote(),
            Element::Verbatim => writer.close_verbatim(),
            Element::Code if !writer.is_verbatim() => writer.close("`"),
            Element::Link => self.close_link(),
            Element::Table => writer.close_table(),
            Element::Row => writer.close_row(),
            Element::Cell { .. } => writer.close_cell(),
            Element::Code
            | Element::Break
            | Element::Rule
            | Element::Image
            | Element::Around
            | Element::Hidden
            | Element::Inline => {}
        }
    }

    fn open_link(&mut self, attributes: &Attributes) {
        self.close_link();
        let address = attribute(attributes, b"href").and_then(|href| self.base.join(href.trim()).ok());
        let usable = address.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
        let Some(url) = usable.map(String::from).filter(|url| url.len() <= MAX_ADDRESS) else { return };
        self.writer.mark("[");
        self.link = Some((self.writer.len(), url));
    }

    fn close_link(&mut self) {
        let Some((start, url)) = self.link.take() else { return };
        let text = self.writer.since(start).trim().to_owned();
        if text.is_empty() {
            return self.writer.cut(start - 1);
        }
        self.writer.close(&format!("]({url})"));
        if self.page.links.len() < MAX_LINKS && self.seen.insert(url.clone()) {
            let text = excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_WORDS);
            self.page.links.push(Link { text, url });
        }
    }

    /// The first `base` says what addresses are relative to.
    fn rebase(&mut self, attributes: &Attributes) {
        let address = attribute(attributes, b"href").and_then(|href| self.base.join(href.trim()).ok());
        if let Some(url) = address.filter(|url| !self.is_rebased && matches!(url.scheme(), "http" | "https"))
        {
            self.base = url;
            self.is_rebased = true;
        }
    }

    fn meta(&mut self, attributes: &Attributes) {
        let name = attribute(attributes, b"name").or_else(|| attribute(attributes, b"property"));
        let describes = name.is_some_and(|name| {
            matches!(name.to_ascii_lowercase().as_str(), "description" | "og:description")
        });
        if describes && self.page.description.is_empty() {
            let words = attribute(attributes, b"content").unwrap_or_default();
            self.page.description =
                excerpt(&words.split_whitespace().collect::<Vec<_>>().join(" "), MAX_WORDS);
        }
    }
}

fn skipped_head(skipping: Option<&(Vec<u8>, usize)>) -> bool {
    skipping.is_some_and(|(name, _)| name == b"head")
}

fn attribute(attributes: &Attributes, name: &[u8]) -> Option<String> {
    attributes.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Tells whether a reader does not see an element; what stands there is often meant for nobody, or for a model alone.
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
