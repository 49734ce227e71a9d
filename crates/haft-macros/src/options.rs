//! The options of `#[tool(…)]`.

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, Parser as _};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit, LitInt, LitStr, Meta, MetaList, MetaNameValue, Path, Token};

use crate::duration;
use crate::faults::Faults;

const KNOWN: &str = "known are: name = \"…\", description = \"…\", pure, timeout = \"30s\", \
                     retry(attempts = 3, backoff = \"1s\"), max_parallel = 4, elevated, crate = path";

/// The first wait before a repetition where none is said, as in definitions.
const DEFAULT_BACKOFF: Duration = Duration::from_millis(200);

/// The most further attempts after a failed one, as in definitions.
const MAX_RETRIES: u32 = 10;

/// What was said besides the function.
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
    /// Reads what stands in the parentheses.
    pub(crate) fn read(tokens: TokenStream, faults: &mut Faults) -> Self {
        let mut options = Self::default();
        let items = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens);
        let mut seen: Vec<Ident> = Vec::new();
        for item in faults.take(items).into_iter().flatten() {
            let Some(key) = key(&item, &mut seen, KNOWN, faults) else { continue };
            let read = options.read_one(&key, &item);
            faults.take(read);
        }
        options
    }

    fn read_one(&mut self, key: &Ident, item: &Meta) -> syn::Result<()> {
        match key.to_string().as_str() {
            "name" => self.name = Some(literal(item, "a text: `name = \"…\"`")?),
            "description" => self.description = Some(said(item)?),
            "pure" => self.is_pure = flag(item)?,
            "elevated" => self.is_elevated = flag(item)?,
            "timeout" => {
                let text: LitStr = literal(item, "a duration: `timeout = \"30s\"`")?;
                let time = duration::read(&text)?;
                if time.is_zero() {
                    return Err(syn::Error::new_spanned(
                        text,
                        "is no time at all; leave it out for the default",
                    ));
                }
                self.timeout = Some(time);
            }
            "retry" => self.retry = Some(retry(item)?),
            "max_parallel" => {
                let most: LitInt = literal(item, "a number: `max_parallel = 4`")?;
                self.max_parallel = Some(above_zero(&most)?);
            }
            "crate" => self.path = Some(path(item)?),
            unknown => {
                return Err(syn::Error::new_spanned(key, format!("unknown option `{unknown}`; {KNOWN}")));
            }
        }
        Ok(())
    }

    /// Returns where the written code finds haft.
    pub(crate) fn haft(&self) -> TokenStream {
        self.path.as_ref().map_or_else(|| quote!(::haft), |path| quote_spanned!(path.span()=> #path))
    }

    /// Returns the calls on the definition that say the rest.
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
        let max_parallel = self.max_parallel.map(|most| quote!(.max_parallel(#most)));
        quote!(#pure #elevated #timeout #retry #max_parallel)
    }
}

/// Returns the name of an option that was not there before.
pub(crate) fn key(item: &Meta, seen: &mut Vec<Ident>, known: &str, faults: &mut Faults) -> Option<Ident> {
    let Some(key) = item.path().get_ident() else {
        faults.at(item.path(), format!("unknown option; {known}"));
        return None;
    };
    if seen.contains(key) {
        faults.at(key, format!("`{key}` is said twice"));
        return None;
    }
    seen.push(key.clone());
    Some(key.clone())
}

/// Reads the literal behind `=`.
pub(crate) fn literal<L: Parse>(item: &Meta, expected: &str) -> syn::Result<L> {
    let wrong = |tokens: TokenStream| syn::Error::new_spanned(tokens, format!("expected {expected}"));
    let Meta::NameValue(MetaNameValue { value, .. }) = item else { return Err(wrong(quote!(#item))) };
    syn::parse2(quote!(#value)).map_err(|_| wrong(quote!(#value)))
}

fn said(item: &Meta) -> syn::Result<LitStr> {
    let text: LitStr = literal(item, "a text: `description = \"…\"`")?;
    if text.value().trim().is_empty() {
        return Err(syn::Error::new_spanned(text, "the description is empty; say what the tool does"));
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
            Err(syn::Error::new_spanned(item, "this option has no value: its name says all"))
        }
    }
}

fn path(item: &Meta) -> syn::Result<Path> {
    match item {
        Meta::NameValue(MetaNameValue { value: Expr::Path(path), .. }) => Ok(path.path.clone()),
        _ => Err(syn::Error::new_spanned(item, "expected where haft is found: `crate = my_name_of_haft`")),
    }
}

fn above_zero(number: &LitInt) -> syn::Result<u32> {
    match number.base10_parse() {
        Ok(0) => Err(syn::Error::new_spanned(number, "expected 1 or more: with 0, no call would ever run")),
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
            let most = format!("at most {MAX_RETRIES} are allowed");
            let allowed = number.base10_parse().ok().filter(|attempts| *attempts <= MAX_RETRIES);
            attempts = Some(allowed.ok_or_else(|| syn::Error::new_spanned(&number, most))?);
        } else if item.path().is_ident("backoff") {
            backoff = duration::read(&literal(&item, "a duration: `backoff = \"1s\"`")?)?;
        } else {
            return Err(syn::Error::new_spanned(item.path(), expected));
        }
    }
    let attempts = attempts.ok_or_else(|| syn::Error::new_spanned(item, expected))?;
    Ok((attempts, backoff))
}

fn millis(time: Duration) -> TokenStream {
    // Not above an hour, so it fits.
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    quote!(::core::time::Duration::from_millis(#millis))
}
