//! Extracts the text of doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the paragraphs of a doc comment, each joined into one line.
pub(crate) fn paragraphs(attributes: &[Attribute]) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut current = String::new();
    for line in attributes.iter().filter_map(text).flat_map(|text| lines(&text)) {
        if line.is_empty() {
            paragraphs.extend(Some(std::mem::take(&mut current)).filter(|text| !text.is_empty()));
            continue;
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(&line);
    }
    paragraphs.extend(Some(current).filter(|text| !text.is_empty()));
    paragraphs
}

/// Returns whether an attribute is part of a doc comment.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    text(attribute).is_some()
}

fn text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn lines(text: &str) -> Vec<String> {
    // A block comment is one string in which each line may start with `*`.
    let is_block = text.contains('\n');
    let clean = |line: &str| {
        let line = line.trim();
        let line = if is_block { line.strip_prefix('*').unwrap_or(line).trim() } else { line };
        line.to_owned()
    };
    // `str::lines` returns nothing for the empty string, but an empty line separates paragraphs.
    if text.is_empty() { vec![String::new()] } else { text.lines().map(clean).collect() }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn lines_are_joined_into_paragraphs() {
        let item: syn::ItemFn = parse_quote! {
            /// Finds pages
            /// on the web.
            ///
            ///
            /// Not for pictures.
            #[inline]
            fn f() {}
        };
        assert_eq!(paragraphs(&item.attrs), ["Finds pages on the web.", "Not for pictures."]);
    }

    #[test]
    fn block_comments() {
        let item: syn::ItemFn =
            syn::parse_str("/**\n * Finds pages\n * on the web.\n *\n * More.\n */ fn f() {}").unwrap();
        assert_eq!(paragraphs(&item.attrs), ["Finds pages on the web.", "More."]);
    }

    #[test]
    fn empty_comments_have_no_paragraphs() {
        let item: syn::ItemFn = parse_quote! {
            ///
            #[doc(hidden)]
            #[doc = include_str!("x.md")]
            fn f() {}
        };
        assert_eq!(paragraphs(&item.attrs), Vec::<String>::new());
    }
}
