//! What a signature tells, and what a tool's function cannot be.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{FnArg, ItemFn, LitStr, Pat, PatType, ReturnType, Signature, Type, TypeParamBound};

use crate::argument::{Argument, inside, is_arg};
use crate::docs;
use crate::faults::Faults;
use crate::types::{self, ContextBy};

/// What a function takes, in its order.
pub(crate) enum Parameter {
    /// The context of the call.
    Context(ContextBy),
    /// All arguments as one value of this type.
    All(Box<Type>),
    /// One argument.
    One(Box<Argument>),
}

/// Reads the parameters, takes our attributes off them, and says what cannot be a tool.
pub(crate) fn read(function: &mut ItemFn, faults: &mut Faults) -> Vec<Parameter> {
    check(&function.sig, faults);
    let inputs = function.sig.inputs.iter_mut();
    let parameters: Vec<_> = inputs
        .map(|input| match input {
            FnArg::Receiver(receiver) => {
                let message = "a tool is a free function, without `self`; put what it needs in a `static`, or \
                               register a closure: `ToolDef::new(\"…\", move |args: Arguments| …)`";
                faults.at(receiver, message);
                None
            }
            FnArg::Typed(input) => parameter(input, faults),
        })
        .collect();
    check_together(&function.sig, &parameters, faults);
    parameters.into_iter().flatten().collect()
}

/// Says what a tool's function cannot be.
fn check(signature: &Signature, faults: &mut Faults) {
    let Signature { constness, unsafety, abi, generics, variadic, output, .. } = signature;
    if let Some(constness) = constness {
        faults.at(constness, "a tool's function is called at run time; take `const` away");
    }
    if let Some(unsafety) = unsafety {
        let message = "a model calls a tool with whatever it likes, so it has to be safe; take `unsafe` away";
        faults.at(unsafety, message);
    }
    if let Some(abi) = abi {
        faults.at(abi, "a tool's function is a plain Rust function; take `extern` away");
    }
    if let Some(variadic) = variadic {
        faults.at(variadic, "a tool's parameters are known one by one");
    }
    if !generics.params.is_empty() {
        let message = "a tool's function cannot be generic: its schema is made of the types of its parameters; \
                       write one function for each type (of lifetimes, only those left out are possible)";
        faults.at(&generics.params, message);
    } else if let Some(condition) = &generics.where_clause {
        faults.at(condition, "a tool's function is not generic, so it needs no `where`");
    }
    if let ReturnType::Type(_, output) = output
        && let Type::ImplTrait(output) = &**output
        && output.bounds.iter().any(is_future)
    {
        faults.at(output, "write `async fn`, and return what the future comes to");
    }
}

fn is_future(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound)
        if bound.path.segments.last().is_some_and(|segment| segment.ident == "Future"))
}

fn parameter(input: &mut PatType, faults: &mut Faults) -> Option<Parameter> {
    let (ours, others) = std::mem::take(&mut input.attrs)
        .into_iter()
        .partition::<Vec<_>, _>(|attribute| docs::is_doc(attribute) || is_arg(attribute));
    input.attrs = others;
    for attribute in &input.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            faults.at(attribute, "a tool has the same parameters in every build; use `cfg` on the function");
        }
    }
    let special = types::context(&input.ty).map(Parameter::Context);
    let special =
        special.or_else(|| types::all_arguments(&input.ty).map(|ty| Parameter::All(Box::new(ty.clone()))));
    if let Some(special) = special {
        for attribute in ours.iter().filter(|attribute| is_arg(attribute)) {
            faults.at(attribute, "this is not one argument of the model; `#[arg]` goes to those");
        }
        check_special(&special, &input.ty, faults);
        return Some(special);
    }
    if let Type::Reference(reference) = &*input.ty
        && types::all_arguments(&reference.elem).is_some()
    {
        faults.at(reference.and_token, "take `Args<…>` by value");
        return None;
    }
    let name = name(&input.pat, faults)?;
    Some(Parameter::One(Box::new(Argument::read(name, (*input.ty).clone(), &ours, faults))))
}

fn check_special(special: &Parameter, ty: &Type, faults: &mut Faults) {
    match special {
        Parameter::All(ty) => types::check(ty, faults),
        Parameter::Context(_) => {
            if let Type::Reference(reference) = ty
                && let Some(mutability) = &reference.mutability
            {
                faults.at(mutability, "the context is shared; take it as `&Context`");
            }
        }
        Parameter::One(_) => {}
    }
}

/// Returns the argument's name, which is the parameter's.
fn name(pattern: &Pat, faults: &mut Faults) -> Option<LitStr> {
    match pattern {
        Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
            Some(LitStr::new(&ident.ident.unraw().to_string(), ident.ident.span()))
        }
        Pat::Wild(wild) => {
            faults.at(wild, "an argument needs a name, for the model to say it");
            None
        }
        pattern => {
            let message = "an argument is known by its name; write a plain one here, and take the value apart \
                           inside of the function (only `Args(…): Args<…>` may be taken apart here)";
            faults.at(pattern, message);
            None
        }
    }
}

/// Says which parameters do not go together.
fn check_together(signature: &Signature, parameters: &[Option<Parameter>], faults: &mut Faults) {
    let has_all = parameters.iter().flatten().any(|parameter| matches!(parameter, Parameter::All(_)));
    let (mut context, mut all) = (false, false);
    let mut names: Vec<String> = Vec::new();
    for (parameter, input) in parameters.iter().zip(&signature.inputs) {
        let Some(parameter) = parameter else { continue };
        match parameter {
            Parameter::Context(_) if std::mem::replace(&mut context, true) => {
                faults.at(input, "the context is there already; once is enough");
            }
            Parameter::All(_) if std::mem::replace(&mut all, true) => {
                faults.at(input, "`Args<…>` is there already, and holds all arguments");
            }
            Parameter::One(_) if has_all => {
                faults.at(input, "`Args<…>` holds all arguments; make this one a field of its type");
            }
            Parameter::One(argument) => {
                let name = argument.name.value();
                if names.contains(&name) {
                    faults.at(&argument.name, format!("another argument has the name `{name}` already"));
                }
                names.push(name);
            }
            Parameter::Context(_) | Parameter::All(_) => {}
        }
    }
}

impl Parameter {
    /// Returns the expression of what the function is given for it.
    pub(crate) fn value(&self, call: &Ident, given: &Ident, private: &TokenStream) -> TokenStream {
        match self {
            Self::Context(ContextBy::Reference) => quote!(#call),
            Self::Context(ContextBy::Value) => quote!(::core::clone::Clone::clone(#call)),
            Self::All(ty) => {
                quote::quote_spanned!(inside(ty)=> #private::Args(#given.all::<#ty>()?))
            }
            Self::One(argument) => argument.reading(given),
        }
    }

    /// Tells whether the function borrows the value.
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self, Self::One(argument) if argument.is_borrowed)
    }
}
