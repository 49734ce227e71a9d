//! Numeric literals, as in `range = 1..=50`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

/// A numeric literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// Parses a literal with an optional minus sign.
    pub(crate) fn parse(expression: &Expr) -> Option<Self> {
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok().map(Self::Integer),
            Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok().map(Self::Float),
            Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
                Self::parse(expr).map(|number| match number {
                    Self::Integer(number) => Self::Integer(number.saturating_neg()),
                    Self::Float(number) => Self::Float(-number),
                })
            }
            Expr::Group(group) => Self::parse(&group.expr),
            _ => None,
        }
    }

    /// Returns the number as a float, for comparisons.
    #[expect(clippy::cast_precision_loss, reason = "only the order matters")]
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// Returns an expression that converts to a JSON value; an untyped literal gets the widest type.
pub(crate) fn with_type(expression: &Expr) -> TokenStream {
    match Number::parse(expression) {
        Some(Number::Integer(number)) => match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => quote!(#number),
            (_, Ok(number)) => quote!(#number),
            _ => quote!(#expression),
        },
        Some(Number::Float(number)) => quote!(#number),
        None => quote!(#expression),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn literals_are_parsed() {
        for (expression, number) in [
            (parse_quote!(50), Some(Number::Integer(50))),
            (parse_quote!(1_000u32), Some(Number::Integer(1000))),
            (parse_quote!(-5), Some(Number::Integer(-5))),
            (parse_quote!(0.5), Some(Number::Float(0.5))),
            (parse_quote!(MAX), None),
            (parse_quote!("5"), None),
        ] {
            assert_eq!(Number::parse(&expression), number);
        }
    }
}
