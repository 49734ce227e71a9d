//! One argument of the model: a parameter, its doc comment, and its `#[arg(…)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, ExprRange, Lit, LitStr, Meta, MetaList, MetaNameValue, RangeLimits, Token, Type,
};

use crate::docs;
use crate::faults::Faults;
use crate::number::{self, Number};
use crate::options::{key, literal};
use crate::types;

const KNOWN: &str = "known are: default = value, range = 1..=50, one_of(\"a\", \"b\"), rename = \"…\"";

/// What a call says by name.
pub(crate) struct Argument {
    pub(crate) name: LitStr,
    ty: Type,
    /// Whether the function borrows what was read.
    pub(crate) is_borrowed: bool,
    description: String,
    default: Option<Expr>,
    range: Option<ExprRange>,
    one_of: Vec<Expr>,
}

impl Argument {
    /// Reads it of the parameter's name, type and attributes.
    pub(crate) fn read(name: LitStr, ty: Type, attributes: &[Attribute], faults: &mut Faults) -> Self {
        let (ty, is_borrowed) = types::owned(&ty).map_or((ty, false), |owned| (owned, true));
        types::check(&ty, faults);
        let description = docs::paragraphs(attributes).join("\n\n");
        let mut argument =
            Self { name, ty, is_borrowed, description, default: None, range: None, one_of: Vec::new() };
        let mut seen: Vec<Ident> = Vec::new();
        for attribute in attributes.iter().filter(|attribute| is_arg(attribute)) {
            let items = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            for item in faults.take(items).into_iter().flatten() {
                let Some(key) = key(&item, &mut seen, KNOWN, faults) else { continue };
                let read = argument.read_one(&key, item);
                faults.take(read);
            }
        }
        argument.check(faults);
        argument
    }

    fn read_one(&mut self, key: &Ident, item: Meta) -> syn::Result<()> {
        match (key.to_string().as_str(), item) {
            ("rename", item) => self.name = literal(&item, "a text: `rename = \"…\"`")?,
            ("default", Meta::NameValue(MetaNameValue { value, .. })) => self.default = Some(value),
            ("range", Meta::NameValue(MetaNameValue { value: Expr::Range(range), .. })) => {
                self.range = Some(range);
            }
            ("one_of", Meta::List(MetaList { tokens, .. })) => {
                let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens)?;
                self.one_of = values.into_iter().collect();
                if self.one_of.is_empty() {
                    return Err(syn::Error::new_spanned(key, "expected the values: `one_of(\"a\", \"b\")`"));
                }
            }
            (known @ ("default" | "range" | "one_of"), item) => {
                let form = match known {
                    "default" => "`default = value`",
                    "range" => "`range = 1..=50`",
                    _ => "`one_of(\"a\", \"b\")`",
                };
                return Err(syn::Error::new_spanned(item, format!("expected {form}")));
            }
            (unknown, _) => {
                return Err(syn::Error::new_spanned(key, format!("unknown option `{unknown}`; {KNOWN}")));
            }
        }
        Ok(())
    }

    /// Says what cannot be meant, as far as the letters tell.
    fn check(&self, faults: &mut Faults) {
        let kind = types::last_name(types::optional(&self.ty).unwrap_or(&self.ty));
        let kind = kind.as_deref().unwrap_or_default();
        if let Some(default) = &self.default
            && types::optional(&self.ty).is_some()
        {
            faults.at(
                default,
                "an argument with a default can be left out already; take the type without `Option`",
            );
        }
        if let Some(range) = &self.range {
            if matches!(kind, "String" | "str" | "bool" | "char" | "Vec" | "PathBuf") {
                faults.at(range, format!("a range is for numbers, and this is a `{kind}`"));
            }
            self.check_range(range, faults);
        }
        if let (Some(first), "Vec") = (self.one_of.first(), kind) {
            let message = "`one_of` is about the whole value; for the items of a list, make them an enum that \
                           derives `Deserialize` and `JsonSchema`";
            faults.at(first, message);
        }
    }

    fn check_range(&self, range: &ExprRange, faults: &mut Faults) {
        let end = |end: &Option<Box<Expr>>| end.as_deref().and_then(Number::read).map(Number::real);
        let (start, stop) = (end(&range.start), end(&range.end));
        if range.start.is_none() && range.end.is_none() {
            faults.at(range, "the range has no end on either side; write it like `1..=50`");
        }
        if let (Some(start), Some(stop)) = (start, stop)
            && (start > stop || (start >= stop && matches!(range.limits, RangeLimits::HalfOpen(_))))
        {
            faults.at(range, "no number is in this range; the smaller end comes first");
            return;
        }
        let Some((expression, value)) = self
            .default
            .as_ref()
            .and_then(|default| Number::read(default).map(|number| (default, number.real())))
        else {
            return;
        };
        let above = stop.is_some_and(|stop| match range.limits {
            RangeLimits::HalfOpen(_) => value >= stop,
            RangeLimits::Closed(_) => value > stop,
        });
        if above || start.is_some_and(|start| value < start) {
            faults.at(expression, "the default is not in the range");
        }
    }

    /// Returns the expression that reads it of what a call has given.
    pub(crate) fn reading(&self, given: &Ident) -> TokenStream {
        let Self { name, ty, .. } = self;
        let reading = self.default_value().map(|default| quote!(get_or::<#ty>(#name, || #default)));
        let reading = reading.unwrap_or_else(|| quote!(get::<#ty>(#name)));
        quote_spanned!(inside(ty)=> #given.#reading?)
    }

    /// Returns the statement that adds it to the properties of the schema.
    pub(crate) fn property(&self, properties: &Ident, private: &TokenStream) -> TokenStream {
        let Self { name, ty, description, .. } = self;
        let description = (!description.is_empty()).then(|| quote!(.keyword("description", #description)));
        let one_of = (!self.one_of.is_empty()).then(|| {
            let values = self.one_of.iter().map(number::with_type);
            quote!(.one_of(::std::vec![#(#private::Value::from(#values)),*]))
        });
        let range = self.range_keywords();
        let default = self.default_value().map(|default| {
            quote_spanned!(inside(ty)=> .default_value({
                let sample = #private::Sample::<#ty>(#default);
                (&sample).value()
            }))
        });
        quote_spanned! {inside(ty)=>
            #properties.add::<#ty>(#private::Property::new(#name) #description #one_of #range #default);
        }
    }

    fn range_keywords(&self) -> TokenStream {
        let Some(range) = &self.range else { return TokenStream::new() };
        let minimum = range.start.as_deref().map(|start| {
            let start = number::with_type(start);
            quote!(.keyword("minimum", #start))
        });
        let maximum = range.end.as_deref().map(|end| {
            let end = number::with_type(end);
            match range.limits {
                RangeLimits::HalfOpen(_) => quote!(.keyword("exclusiveMaximum", #end)),
                RangeLimits::Closed(_) => quote!(.keyword("maximum", #end)),
            }
        });
        quote!(#minimum #maximum)
    }

    /// Returns the default as a value of the parameter's type.
    fn default_value(&self) -> Option<TokenStream> {
        let default = self.default.as_ref()?;
        Some(match default {
            // Whatever holds a text can be made of one; `&str` is its own.
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                quote_spanned!(inside(text)=> ::core::convert::Into::into(#text))
            }
            other => quote!(#other),
        })
    }
}

/// Tells whether an attribute is ours.
pub(crate) fn is_arg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("arg")
}

/// Returns the place of some tokens, for code that the macro writes: errors point there, lints know better.
pub(crate) fn inside(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}
