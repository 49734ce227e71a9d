//! An argument of the tool: a parameter with its doc comment and its `#[arg(…)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, ExprRange, Lit, LitStr, Meta, MetaList, MetaNameValue, RangeLimits, Token, Type,
};

use crate::docs;
use crate::errors::Errors;
use crate::number::{self, Number};
use crate::options::{key, literal};
use crate::types;

const OPTIONS: &str =
    "expected one of: default = value, range = 1..=50, one_of(\"a\", \"b\"), rename = \"…\"";

/// An argument that a call passes by name.
pub(crate) struct Argument {
    pub(crate) name: LitStr,
    ty: Type,
    /// Whether the function takes a reference to the deserialized value.
    pub(crate) is_borrowed: bool,
    description: String,
    default: Option<Expr>,
    range: Option<ExprRange>,
    one_of: Vec<Expr>,
}

impl Argument {
    /// Parses a parameter's type and attributes.
    pub(crate) fn parse(name: LitStr, ty: Type, attributes: &[Attribute], errors: &mut Errors) -> Self {
        let (ty, is_borrowed) = types::owned(&ty).map_or((ty, false), |owned| (owned, true));
        types::check(&ty, errors);
        let description = docs::paragraphs(attributes).join("\n\n");
        let mut argument =
            Self { name, ty, is_borrowed, description, default: None, range: None, one_of: Vec::new() };
        let mut seen: Vec<Ident> = Vec::new();
        for attribute in attributes.iter().filter(|attribute| is_arg(attribute)) {
            let items = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            for item in errors.ok(items).into_iter().flatten() {
                let Some(key) = key(&item, &mut seen, OPTIONS, errors) else { continue };
                let parsed = argument.parse_option(&key, item);
                errors.ok(parsed);
            }
        }
        argument.check(errors);
        argument
    }

    fn parse_option(&mut self, key: &Ident, item: Meta) -> syn::Result<()> {
        match (key.to_string().as_str(), item) {
            ("rename", item) => self.name = literal(&item, "a string: `rename = \"…\"`")?,
            ("default", Meta::NameValue(MetaNameValue { value, .. })) => self.default = Some(value),
            ("range", Meta::NameValue(MetaNameValue { value: Expr::Range(range), .. })) => {
                self.range = Some(range);
            }
            ("one_of", Meta::List(MetaList { tokens, .. })) => {
                let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens)?;
                self.one_of = values.into_iter().collect();
                if self.one_of.is_empty() {
                    return Err(syn::Error::new_spanned(
                        key,
                        "expected at least one value: `one_of(\"a\", \"b\")`",
                    ));
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
                return Err(syn::Error::new_spanned(key, format!("unknown option `{unknown}`; {OPTIONS}")));
            }
        }
        Ok(())
    }

    /// Reports contradictions that are visible in the tokens.
    fn check(&self, errors: &mut Errors) {
        let kind = types::last_name(types::optional(&self.ty).unwrap_or(&self.ty));
        let kind = kind.as_deref().unwrap_or_default();
        if let Some(default) = &self.default
            && types::optional(&self.ty).is_some()
        {
            errors
                .at(default, "an argument with a default is already optional; remove `Option` from its type");
        }
        if let Some(range) = &self.range {
            if matches!(kind, "String" | "str" | "bool" | "char" | "Vec" | "PathBuf") {
                errors.at(range, format!("`range` applies to numbers only, and this argument is a `{kind}`"));
            }
            self.check_range(range, errors);
        }
        if let (Some(first), "Vec") = (self.one_of.first(), kind) {
            let message = "`one_of` applies to the whole value; to restrict the items of a list, use an enum that \
                           derives `Deserialize` and `JsonSchema`";
            errors.at(first, message);
        }
    }

    fn check_range(&self, range: &ExprRange, errors: &mut Errors) {
        let end = |end: &Option<Box<Expr>>| end.as_deref().and_then(Number::parse).map(Number::to_f64);
        let (start, stop) = (end(&range.start), end(&range.end));
        if range.start.is_none() && range.end.is_none() {
            errors.at(range, "a range needs at least one bound, such as `1..=50`");
        }
        if let (Some(start), Some(stop)) = (start, stop)
            && (start > stop || (start >= stop && matches!(range.limits, RangeLimits::HalfOpen(_))))
        {
            errors.at(range, "the range is empty; write the lower bound first, such as `1..=50`");
            return;
        }
        let Some((expression, value)) = self
            .default
            .as_ref()
            .and_then(|default| Number::parse(default).map(|number| (default, number.to_f64())))
        else {
            return;
        };
        let above = stop.is_some_and(|stop| match range.limits {
            RangeLimits::HalfOpen(_) => value >= stop,
            RangeLimits::Closed(_) => value > stop,
        });
        if above || start.is_some_and(|start| value < start) {
            errors.at(expression, "the default is outside the range");
        }
    }

    /// Returns the expression that deserializes the argument of a call.
    pub(crate) fn getter(&self, args: &Ident) -> TokenStream {
        let Self { name, ty, .. } = self;
        let getter = self.default_value().map(|default| quote!(get_or::<#ty>(#name, || #default)));
        let getter = getter.unwrap_or_else(|| quote!(get::<#ty>(#name)));
        quote_spanned!(inside(ty)=> #args.#getter?)
    }

    /// Returns the statement that adds the argument to the properties of the schema.
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
                let default = #private::DefaultValue::<#ty>(#default);
                (&default).to_json()
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

    /// Returns the default as an expression of the parameter's type.
    fn default_value(&self) -> Option<TokenStream> {
        let default = self.default.as_ref()?;
        Some(match default {
            // `Into` covers `String`, `&str` and other types that hold a string.
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                quote_spanned!(inside(text)=> ::core::convert::Into::into(#text))
            }
            other => quote!(#other),
        })
    }
}

/// Returns whether an attribute is `#[arg]`.
pub(crate) fn is_arg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("arg")
}

/// Returns the span of some tokens for generated code: errors point there, but lints treat it as macro code.
pub(crate) fn inside(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}
