//! What is known about the elements of HTML.

/// How an element shapes a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// Its content is no text for a reader.
    Hidden,
    /// It surrounds the content of a page: menus, notices.
    Around,
    /// A paragraph, or another block with an empty line around it.
    Block,
    /// A line of its own.
    Line,
    /// `br`.
    Break,
    /// `hr`.
    Rule,
    /// `h1` to `h6`.
    Heading(usize),
    /// `ul`, and whether it counts (`ol`).
    List { counts: bool },
    /// `li`.
    Item,
    /// `blockquote`.
    Quote,
    /// `pre`.
    Verbatim,
    /// `code` and its kin.
    Code,
    /// `a`.
    Link,
    /// `img`.
    Image,
    /// `table`.
    Table,
    /// `tr`.
    Row,
    /// `td`, and whether it is a heading (`th`).
    Cell { heads: bool },
    /// Anything else: a part of its line.
    Inline,
}

impl Element {
    /// Tells what the element of a name is.
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"script" | b"style" | b"noscript" | b"template" | b"svg" | b"math" | b"iframe" | b"object"
            | b"canvas" | b"select" | b"button" | b"textarea" | b"audio" | b"video" | b"dialog"
            | b"title" | b"head" => Self::Hidden,
            b"nav" | b"footer" | b"aside" => Self::Around,
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
            b"ul" | b"menu" => Self::List { counts: false },
            b"ol" => Self::List { counts: true },
            b"li" => Self::Item,
            b"blockquote" => Self::Quote,
            b"pre" => Self::Verbatim,
            b"code" | b"kbd" | b"samp" | b"tt" => Self::Code,
            b"a" => Self::Link,
            b"img" => Self::Image,
            b"table" => Self::Table,
            b"tr" => Self::Row,
            b"td" => Self::Cell { heads: false },
            b"th" => Self::Cell { heads: true },
            _ => Self::Inline,
        }
    }
}

/// Tells whether an element never has an end.
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
