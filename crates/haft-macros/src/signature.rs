//! Parses the signature of a function and rejects what a tool cannot have.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{FnArg, ItemFn, LitStr, Pat, PatType, ReturnType, Signature, Type, TypeParamBound};

use crate::argument::{Argument, inside, is_arg};
use crate::docs;
use crate::errors::Errors;
use crate::types::{self, ContextBy};

/// A parameter of the function.
pub(crate) enum Parameter {
    /// The context of the call.
    Context(ContextBy),
    /// All arguments as one value of this type.
    All(Box<Type>),
    /// One argument.
    One(Box<Argument>),
}

/// Parses the parameters and removes the macro's attributes from them.
pub(crate) fn parse(function: &mut ItemFn, errors: &mut Errors) -> Vec<Parameter> {
    check(&function.sig, errors);
    let inputs = function.sig.inputs.iter_mut();
    let parameters: Vec<_> = inputs
        .map(|input| match input {
            FnArg::Receiver(receiver) => {
                let message = "a tool function cannot take `self`; keep state in a `static`, or register a closure: \
                               `ToolDef::new(\"…\", move |args: Arguments| …)`";
                errors.at(receiver, message);
                None
            }
            FnArg::Typed(input) => parameter(input, errors),
        })
        .collect();
    check_combination(&function.sig, &parameters, errors);
    parameters.into_iter().flatten().collect()
}

/// Reports unsupported parts of the signature.
fn check(signature: &Signature, errors: &mut Errors) {
    let Signature { constness, unsafety, abi, generics, variadic, output, .. } = signature;
    if let Some(constness) = constness {
        errors.at(constness, "a tool function cannot be `const`");
    }
    if let Some(unsafety) = unsafety {
        errors.at(unsafety, "a tool function cannot be `unsafe`, because a model chooses its arguments");
    }
    if let Some(abi) = abi {
        errors.at(abi, "a tool function cannot be `extern`");
    }
    if let Some(variadic) = variadic {
        errors.at(variadic, "a tool function cannot be variadic");
    }
    if !generics.params.is_empty() {
        let message = "a tool function cannot be generic or name lifetimes, because its schema is generated from its \
                       parameter types; write one function for each type";
        errors.at(&generics.params, message);
    } else if let Some(condition) = &generics.where_clause {
        errors.at(condition, "a tool function cannot have a `where` clause");
    }
    if let ReturnType::Type(_, output) = output
        && let Type::ImplTrait(output) = &**output
        && output.bounds.iter().any(is_future)
    {
        errors.at(output, "write `async fn` and return the output of the future");
    }
}

fn is_future(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound)
        if bound.path.segments.last().is_some_and(|segment| segment.ident == "Future"))
}

fn parameter(input: &mut PatType, errors: &mut Errors) -> Option<Parameter> {
    let (ours, others) = std::mem::take(&mut input.attrs)
        .into_iter()
        .partition::<Vec<_>, _>(|attribute| docs::is_doc(attribute) || is_arg(attribute));
    input.attrs = others;
    for attribute in &input.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            errors.at(attribute, "`cfg` is not supported on parameters; put it on the function");
        }
    }
    let special = types::context(&input.ty).map(Parameter::Context);
    let special =
        special.or_else(|| types::all_arguments(&input.ty).map(|ty| Parameter::All(Box::new(ty.clone()))));
    if let Some(special) = special {
        for attribute in ours.iter().filter(|attribute| is_arg(attribute)) {
            errors.at(attribute, "`#[arg]` is not supported on `Context` and `Args<…>`");
        }
        check_special(&special, &input.ty, errors);
        return Some(special);
    }
    if let Type::Reference(reference) = &*input.ty
        && types::all_arguments(&reference.elem).is_some()
    {
        errors.at(reference.and_token, "take `Args<…>` by value");
        return None;
    }
    let name = name(&input.pat, errors)?;
    Some(Parameter::One(Box::new(Argument::parse(name, (*input.ty).clone(), &ours, errors))))
}

fn check_special(special: &Parameter, ty: &Type, errors: &mut Errors) {
    match special {
        Parameter::All(ty) => types::check(ty, errors),
        Parameter::Context(_) => {
            if let Type::Reference(reference) = ty
                && let Some(mutability) = &reference.mutability
            {
                errors.at(mutability, "the context is immutable; take it as `&Context`");
            }
        }
        Parameter::One(_) => {}
    }
}

/// Returns the name of the parameter, which is that of the argument.
fn name(pattern: &Pat, errors: &mut Errors) -> Option<LitStr> {
    match pattern {
        Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
            Some(LitStr::new(&ident.ident.unraw().to_string(), ident.ident.span()))
        }
        Pat::Wild(wild) => {
            errors.at(wild, "an argument needs a name, because calls pass arguments by name");
            None
        }
        pattern => {
            let message = "a parameter must be a plain name; destructure the value inside the function (only \
                           `Args(…): Args<…>` can be destructured here)";
            errors.at(pattern, message);
            None
        }
    }
}

/// Reports parameters that exclude each other.
fn check_combination(signature: &Signature, parameters: &[Option<Parameter>], errors: &mut Errors) {
    let has_all = parameters.iter().flatten().any(|parameter| matches!(parameter, Parameter::All(_)));
    let (mut context, mut all) = (false, false);
    let mut names: Vec<String> = Vec::new();
    for (parameter, input) in parameters.iter().zip(&signature.inputs) {
        let Some(parameter) = parameter else { continue };
        match parameter {
            Parameter::Context(_) if std::mem::replace(&mut context, true) => {
                errors.at(input, "duplicate `Context` parameter");
            }
            Parameter::All(_) if std::mem::replace(&mut all, true) => {
                errors.at(input, "duplicate `Args<…>` parameter; one already holds all arguments");
            }
            Parameter::One(_) if has_all => {
                errors.at(input, "`Args<…>` already holds all arguments; make this one a field of its type");
            }
            Parameter::One(argument) => {
                let name = argument.name.value();
                if names.contains(&name) {
                    errors.at(&argument.name, format!("duplicate argument name `{name}`"));
                }
                names.push(name);
            }
            Parameter::Context(_) | Parameter::All(_) => {}
        }
    }
}

impl Parameter {
    /// Returns the expression of the value that is passed to the function.
    pub(crate) fn value(&self, call: &Ident, args: &Ident, private: &TokenStream) -> TokenStream {
        match self {
            Self::Context(ContextBy::Reference) => quote!(#call),
            Self::Context(ContextBy::Value) => quote!(::core::clone::Clone::clone(#call)),
            Self::All(ty) => {
                quote::quote_spanned!(inside(ty)=> #private::Args(#args.all::<#ty>()?))
            }
            Self::One(argument) => argument.getter(args),
        }
    }

    /// Returns whether the function borrows the value.
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self, Self::One(argument) if argument.is_borrowed)
    }
}
