//! Numbers that are written out, as in `range = 1..=50`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

/// A number that is written out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Reads a literal, with or without a minus.
    pub(crate) fn read(expression: &Expr) -> Option<Self> {
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok().map(Self::Whole),
            Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok().map(Self::Real),
            Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
                Self::read(expr).map(|number| match number {
                    Self::Whole(number) => Self::Whole(number.saturating_neg()),
                    Self::Real(number) => Self::Real(-number),
                })
            }
            Expr::Group(group) => Self::read(&group.expr),
            _ => None,
        }
    }

    /// Returns it for comparisons.
    #[expect(clippy::cast_precision_loss, reason = "only the order matters")]
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

/// Returns an expression of a type that has a JSON form; a literal gets the widest one.
pub(crate) fn with_type(expression: &Expr) -> TokenStream {
    match Number::read(expression) {
        Some(Number::Whole(number)) => match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => quote!(#number),
            (_, Ok(number)) => quote!(#number),
            _ => quote!(#expression),
        },
        Some(Number::Real(number)) => quote!(#number),
        None => quote!(#expression),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn literals_are_read() {
        for (expression, number) in [
            (parse_quote!(50), Some(Number::Whole(50))),
            (parse_quote!(1_000u32), Some(Number::Whole(1000))),
            (parse_quote!(-5), Some(Number::Whole(-5))),
            (parse_quote!(0.5), Some(Number::Real(0.5))),
            (parse_quote!(MAX), None),
            (parse_quote!("5"), None),
        ] {
            assert_eq!(Number::read(&expression), number);
        }
    }
}
