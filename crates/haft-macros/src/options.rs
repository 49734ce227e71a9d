//! The options of `#[tool(…)]`.

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, Parser as _};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit, LitInt, LitStr, Meta, MetaList, MetaNameValue, Path, Token};

use crate::duration;
use crate::errors::Errors;

const OPTIONS: &str = "expected one of: name = \"…\", description = \"…\", pure, timeout = \"30s\", \
                       retry(attempts = 3, backoff = \"1s\"), max_parallel = 4, elevated, crate = path";

/// The default delay before the first retry, as in definitions.
const DEFAULT_BACKOFF: Duration = Duration::from_millis(200);

/// The maximum number of retries, as in definitions.
const MAX_RETRIES: u32 = 10;

/// The parsed options.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    is_pure: bool,
    timeout: Option<Duration>,
    retry: Option<(u32, Duration)>,
    max_parallel: Option<u32>,
    is_elevated: bool,
    path: Option<Path>,
}

impl Options {
    /// Parses the tokens in the parentheses.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let items = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens);
        let mut seen: Vec<Ident> = Vec::new();
        for item in errors.ok(items).into_iter().flatten() {
            let Some(key) = key(&item, &mut seen, OPTIONS, errors) else { continue };
            let parsed = options.parse_option(&key, &item);
            errors.ok(parsed);
        }
        options
    }

    fn parse_option(&mut self, key: &Ident, item: &Meta) -> syn::Result<()> {
        match key.to_string().as_str() {
            "name" => self.name = Some(literal(item, "a string: `name = \"…\"`")?),
            "description" => self.description = Some(description(item)?),
            "pure" => self.is_pure = flag(item)?,
            "elevated" => self.is_elevated = flag(item)?,
            "timeout" => {
                let text: LitStr = literal(item, "a duration: `timeout = \"30s\"`")?;
                let time = duration::from_literal(&text)?;
                if time.is_zero() {
                    return Err(syn::Error::new_spanned(
                        text,
                        "the timeout must be greater than zero; omit it for the default",
                    ));
                }
                self.timeout = Some(time);
            }
            "retry" => self.retry = Some(retry(item)?),
            "max_parallel" => {
                let max: LitInt = literal(item, "a number: `max_parallel = 4`")?;
                self.max_parallel = Some(positive(&max)?);
            }
            "crate" => self.path = Some(path(item)?),
            unknown => {
                return Err(syn::Error::new_spanned(key, format!("unknown option `{unknown}`; {OPTIONS}")));
            }
        }
        Ok(())
    }

    /// Returns the path of haft in the generated code.
    pub(crate) fn haft(&self) -> TokenStream {
        self.path.as_ref().map_or_else(|| quote!(::haft), |path| quote_spanned!(path.span()=> #path))
    }

    /// Returns the calls of `ToolDef` methods that set the options.
    pub(crate) fn setters(&self) -> TokenStream {
        let pure = self.is_pure.then(|| quote!(.pure()));
        let elevated = self.is_elevated.then(|| quote!(.elevated()));
        let timeout = self.timeout.map(|time| {
            let time = millis(time);
            quote!(.timeout(#time))
        });
        let retry = self.retry.map(|(attempts, backoff)| {
            let backoff = millis(backoff);
            quote!(.retry(#attempts, #backoff))
        });
        let max_parallel = self.max_parallel.map(|max| quote!(.max_parallel(#max)));
        quote!(#pure #elevated #timeout #retry #max_parallel)
    }
}

/// Returns the name of an option; reports duplicates.
pub(crate) fn key(item: &Meta, seen: &mut Vec<Ident>, expected: &str, errors: &mut Errors) -> Option<Ident> {
    let Some(key) = item.path().get_ident() else {
        errors.at(item.path(), format!("unknown option; {expected}"));
        return None;
    };
    if seen.contains(key) {
        errors.at(key, format!("duplicate option `{key}`"));
        return None;
    }
    seen.push(key.clone());
    Some(key.clone())
}

/// Parses the literal after `=`.
pub(crate) fn literal<L: Parse>(item: &Meta, expected: &str) -> syn::Result<L> {
    let wrong = |tokens: TokenStream| syn::Error::new_spanned(tokens, format!("expected {expected}"));
    let Meta::NameValue(MetaNameValue { value, .. }) = item else { return Err(wrong(quote!(#item))) };
    syn::parse2(quote!(#value)).map_err(|_| wrong(quote!(#value)))
}

fn description(item: &Meta) -> syn::Result<LitStr> {
    let text: LitStr = literal(item, "a string: `description = \"…\"`")?;
    if text.value().trim().is_empty() {
        return Err(syn::Error::new_spanned(text, "the description is empty; describe what the tool does"));
    }
    Ok(text)
}

fn flag(item: &Meta) -> syn::Result<bool> {
    match item {
        Meta::Path(_) => Ok(true),
        Meta::NameValue(MetaNameValue {
            value: Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }), ..
        }) => Ok(value.value),
        Meta::List(_) | Meta::NameValue(_) => {
            Err(syn::Error::new_spanned(item, "expected a flag without a value"))
        }
    }
}

fn path(item: &Meta) -> syn::Result<Path> {
    match item {
        Meta::NameValue(MetaNameValue { value: Expr::Path(path), .. }) => Ok(path.path.clone()),
        _ => Err(syn::Error::new_spanned(item, "expected the path of haft: `crate = renamed_haft`")),
    }
}

fn positive(number: &LitInt) -> syn::Result<u32> {
    match number.base10_parse() {
        Ok(0) => Err(syn::Error::new_spanned(number, "`max_parallel` must be at least 1")),
        Ok(value) => Ok(value),
        Err(_) => Err(syn::Error::new_spanned(number, format!("expected a number from 1 to {}", u32::MAX))),
    }
}

fn retry(item: &Meta) -> syn::Result<(u32, Duration)> {
    let expected = "expected `retry(attempts = 3, backoff = \"1s\")`";
    let Meta::List(MetaList { tokens, .. }) = item else {
        return Err(syn::Error::new_spanned(item, expected));
    };
    let (mut attempts, mut backoff) = (None, DEFAULT_BACKOFF);
    let items = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens.clone());
    for item in items.map_err(|_| syn::Error::new_spanned(tokens, expected))? {
        if item.path().is_ident("attempts") {
            let number: LitInt = literal(&item, "a number: `attempts = 3`")?;
            let message = format!("`attempts` must be at most {MAX_RETRIES}");
            let allowed = number.base10_parse().ok().filter(|attempts| *attempts <= MAX_RETRIES);
            attempts = Some(allowed.ok_or_else(|| syn::Error::new_spanned(&number, message))?);
        } else if item.path().is_ident("backoff") {
            backoff = duration::from_literal(&literal(&item, "a duration: `backoff = \"1s\"`")?)?;
        } else {
            return Err(syn::Error::new_spanned(item.path(), expected));
        }
    }
    let attempts = attempts.ok_or_else(|| syn::Error::new_spanned(item, expected))?;
    Ok((attempts, backoff))
}

fn millis(time: Duration) -> TokenStream {
    // At most an hour, so the conversion cannot fail.
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    quote!(::core::time::Duration::from_millis(#millis))
}
