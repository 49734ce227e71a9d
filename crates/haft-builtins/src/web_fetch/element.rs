//! Classifies the elements of HTML.

/// How an element is converted to Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// Its content is not text for a reader.
    Hidden,
    /// Navigation and other parts around the content of a page.
    Boilerplate,
    /// A paragraph or another block, separated by empty lines.
    Block,
    /// A block without empty lines around it.
    Line,
    /// `br`.
    Break,
    /// `hr`.
    Rule,
    /// `h1` to `h6`.
    Heading(usize),
    /// `ul`, or `ol` if ordered.
    List { ordered: bool },
    /// `li`.
    Item,
    /// `blockquote`.
    Quote,
    /// `pre`.
    Preformatted,
    /// `code`, `kbd`, `samp` or `tt`.
    Code,
    /// `a`.
    Link,
    /// `img`.
    Image,
    /// `table`.
    Table,
    /// `tr`.
    Row,
    /// `td`, or `th` if it is a header.
    Cell { is_header: bool },
    /// Any other element, which is part of the current line.
    Inline,
}

impl Element {
    /// Returns the class of the element with this name.
    pub(super) fn from_name(name: &[u8]) -> Self {
        match name {
            b"script" | b"style" | b"noscript" | b"template" | b"svg" | b"math" | b"iframe" | b"object"
            | b"canvas" | b"select" | b"button" | b"textarea" | b"audio" | b"video" | b"dialog"
            | b"title" | b"head" => Self::Hidden,
            b"nav" | b"footer" | b"aside" => Self::Boilerplate,
            b"p" | b"dl" | b"figure" | b"section" | b"article" | b"main" | b"header" | b"fieldset"
            | b"details" => Self::Block,
            b"div" | b"dt" | b"dd" | b"form" | b"address" | b"body" | b"html" | b"caption"
            | b"figcaption" | b"summary" | b"legend" | b"option" | b"thead" | b"tbody" | b"tfoot"
            | b"hgroup" | b"center" => Self::Line,
            b"br" => Self::Break,
            b"hr" => Self::Rule,
            b"h1" => Self::Heading(1),
            b"h2" => Self::Heading(2),
            b"h3" => Self::Heading(3),
            b"h4" => Self::Heading(4),
            b"h5" => Self::Heading(5),
            b"h6" => Self::Heading(6),
            b"ul" | b"menu" => Self::List { ordered: false },
            b"ol" => Self::List { ordered: true },
            b"li" => Self::Item,
            b"blockquote" => Self::Quote,
            b"pre" => Self::Preformatted,
            b"code" | b"kbd" | b"samp" | b"tt" => Self::Code,
            b"a" => Self::Link,
            b"img" => Self::Image,
            b"table" => Self::Table,
            b"tr" => Self::Row,
            b"td" => Self::Cell { is_header: false },
            b"th" => Self::Cell { is_header: true },
            _ => Self::Inline,
        }
    }
}

/// Returns whether an element has no end tag.
pub(super) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
    )
}
