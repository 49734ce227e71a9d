//! From a function to the function and its tool.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Item, ItemFn, ReturnType};

use crate::argument::inside;
use crate::docs;
use crate::faults::Faults;
use crate::name;
use crate::options::Options;
use crate::signature::{self, Parameter};

/// Writes the function, without our attributes, and a type of the same name that holds `tool()`.
///
/// The two do not meet: a braced type lives among types, a function among values, and `use` takes both.
pub(crate) fn tool(options: TokenStream, item: &TokenStream) -> TokenStream {
    let mut function = match function(item) {
        Ok(function) => function,
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let mut faults = Faults::default();
    let options = Options::read(options, &mut faults);
    let parameters = signature::read(&mut function, &mut faults);
    let tool = Tool {
        name: name::of_tool(options.name.as_ref(), &function.sig.ident, &mut faults),
        description: description(&options, &function, &mut faults),
        options,
        parameters,
    };
    let body = match faults.report() {
        // The function and the type are there all the same, or every use of them would be an error of its own.
        Some(report) => quote!({ #report ::core::unreachable!() }),
        None => tool.definition(&function),
    };
    let (haft, companion) = (tool.options.haft(), companion(&function));
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let cfg = function.attrs.iter().filter(|attribute| is_cfg(attribute));
    let about = format!(" Makes the tool of the function [`{ident}()`].");
    quote! {
        #function
        #companion
        #(#cfg)*
        #[allow(deprecated, clippy::all, clippy::pedantic, reason = "written by #[tool]")]
        impl #ident {
            #[doc = #about]
            #visibility fn tool() -> #haft::ToolDef #body
        }
    }
}

fn function(item: &TokenStream) -> syn::Result<ItemFn> {
    syn::parse2(item.clone()).map_err(|error| match syn::parse2::<Item>(item.clone()) {
        Ok(other) if !matches!(other, Item::Verbatim(_)) => {
            syn::Error::new_spanned(other, "`#[tool]` goes on a function: `fn` or `async fn`")
        }
        _ => error,
    })
}

fn description(options: &Options, function: &ItemFn, faults: &mut Faults) -> String {
    let said = options.description.as_ref().map(|text| text.value().trim().to_owned());
    let first = said.or_else(|| docs::paragraphs(&function.attrs).into_iter().next());
    first.unwrap_or_else(|| {
        let name = &function.sig.ident;
        let message = format!(
            "the model has to know what `{name}` does: say it in a doc comment (`/// …`) above the function, or in \
             `#[tool(description = \"…\")]`"
        );
        faults.at(name, message);
        String::new()
    })
}

/// Returns the type that holds `tool()`.
fn companion(function: &ItemFn) -> TokenStream {
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let cfg = function.attrs.iter().filter(|attribute| is_cfg(attribute));
    quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, reason = "it has the name of its function")]
        #visibility struct #ident {}
    }
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// Puts tokens to another place, so that an error about them is told there.
fn moved(tokens: &TokenStream, place: Span) -> TokenStream {
    let tokens = tokens.clone().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(place);
            token
        })
        .collect()
}

/// A tool, as far as its function tells.
struct Tool {
    name: String,
    description: String,
    options: Options,
    parameters: Vec<Parameter>,
}

impl Tool {
    fn definition(&self, function: &ItemFn) -> TokenStream {
        let Self { name, description, options, .. } = self;
        let haft = options.haft();
        let private = quote!(#haft::__private);
        let (declared, arguments) = self.arguments(&private);
        let (runner, setters) = (self.runner(function, &private), options.setters());
        quote! {{
            #[allow(unused_imports, reason = "which of them fit is for the compiler to find")]
            use #private::{FailingKind as _, PlainKind as _, Sampled as _, Unsampled as _};
            #declared
            #haft::ToolDef::of_type::<#arguments>(#name, #description, #runner) #setters
        }}
    }

    /// Returns the type that has the schema of the arguments, and its declaration where it has to be written.
    fn arguments(&self, private: &TokenStream) -> (TokenStream, TokenStream) {
        let all = self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::All(ty) => {
                let private = moved(private, inside(ty));
                Some(quote_spanned!(inside(ty)=> #private::Args::<#ty>))
            }
            _ => None,
        });
        if let Some(all) = all {
            return (TokenStream::new(), all);
        }
        let properties = Ident::new("properties", Span::mixed_site());
        let adding = self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::One(argument) => Some(argument.property(&properties, private)),
            _ => None,
        });
        let name = &self.name;
        let declared = quote! {
            struct __HaftArguments {}
            impl #private::schemars::JsonSchema for __HaftArguments {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(#name)
                }
                fn json_schema(
                    generator: &mut #private::schemars::SchemaGenerator,
                ) -> #private::schemars::Schema {
                    #[allow(unused_mut, reason = "not every function has parameters")]
                    let mut #properties = #private::Properties::new(generator);
                    #(#adding)*
                    #properties.schema()
                }
            }
        };
        (declared, quote!(__HaftArguments))
    }

    /// Returns the expression of what runs.
    fn runner(&self, function: &ItemFn, private: &TokenStream) -> TokenStream {
        let call = Ident::new("_call", Span::mixed_site());
        let given = Ident::new("_given", Span::mixed_site());
        let locals: Vec<_> = (0..self.parameters.len())
            .map(|number| format_ident!("argument_{number}", span = Span::mixed_site()))
            .collect();
        let values = self.parameters.iter().map(|parameter| parameter.value(&call, &given, private));
        let passed = self.parameters.iter().zip(&locals).map(|(parameter, local)| {
            let borrow = parameter.is_borrowed().then(|| quote!(&));
            quote!(#borrow #local)
        });
        let ident = &function.sig.ident;
        let output = match &function.sig.output {
            ReturnType::Type(_, output) => inside(output),
            ReturnType::Default => inside(ident),
        };
        let returned = Ident::new("returned", output);
        let wait = function.sig.asyncness.map(|_| quote!(.await));
        let outcome = quote_spanned! {output=>
            (&#returned).kind().outcome(#returned.0)
        };
        let body = quote! {
            #(let #locals = #values;)*
            let #returned = #private::Returned(#ident(#(#passed),*)#wait);
            #outcome
        };
        if function.sig.asyncness.is_some() {
            let run = quote_spanned!(inside(ident)=> ::std::boxed::Box::pin(async move { #body }));
            quote!(#private::asynchronous(|#call, #given| #run))
        } else {
            quote!(#private::blocking(|#call, #given| { #body }))
        }
    }
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
