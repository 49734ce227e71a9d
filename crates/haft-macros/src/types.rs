//! Classifies parameter types and rejects unsupported ones.

use syn::spanned::Spanned as _;
use syn::visit_mut::VisitMut;
use syn::{
    GenericArgument, Lifetime, PathArguments, PathSegment, Type, TypeImplTrait, TypePath, TypeReference,
    TypeSlice, parse_quote_spanned,
};

use crate::errors::Errors;

/// How a function takes the context of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextBy {
    Value,
    Reference,
}

/// Returns how a parameter of this type takes the context; `None` if it is not the context.
pub(crate) fn context(ty: &Type) -> Option<ContextBy> {
    match ty {
        Type::Reference(reference) if context(&reference.elem) == Some(ContextBy::Value) => {
            Some(ContextBy::Reference)
        }
        Type::Path(path) => {
            let last = last(path)?;
            (last.ident == "Context" && last.arguments.is_none()).then_some(ContextBy::Value)
        }
        Type::Group(group) => context(&group.elem),
        _ => None,
    }
}

/// Returns the `T` of `Args<T>`.
pub(crate) fn all_arguments(ty: &Type) -> Option<&Type> {
    within(ty, "Args")
}

/// Returns the `T` of `Option<T>`.
pub(crate) fn optional(ty: &Type) -> Option<&Type> {
    within(ty, "Option")
}

/// Returns the last segment of a type's path, such as `Vec`.
pub(crate) fn last_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => last(path).map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => last_name(&reference.elem),
        Type::Group(group) => last_name(&group.elem),
        Type::Slice(_) | Type::Array(_) => Some("Vec".to_owned()),
        _ => None,
    }
}

fn within<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let path = match ty {
        Type::Path(path) => path,
        Type::Group(group) => return within(&group.elem, name),
        _ => return None,
    };
    let last = last(path).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(generic) = &last.arguments else { return None };
    match (generic.args.first(), generic.args.len()) {
        (Some(GenericArgument::Type(inner)), 1) => Some(inner),
        _ => None,
    }
}

fn last(path: &TypePath) -> Option<&PathSegment> {
    path.path.segments.last()
}

/// Returns the owned type that is deserialized for a parameter that the function borrows.
pub(crate) fn owned(ty: &Type) -> Option<Type> {
    let Type::Reference(TypeReference { lifetime: None, mutability: None, elem, .. }) = ty else {
        return None;
    };
    match &**elem {
        // Borrowed from the arguments of the call.
        Type::Path(path) if path.path.is_ident("str") => None,
        Type::Slice(TypeSlice { elem, .. }) => {
            Some(parse_quote_spanned!(elem.span()=> ::std::vec::Vec<#elem>))
        }
        Type::Path(path) if last_name(elem).as_deref() == Some("Path") => {
            Some(parse_quote_spanned!(path.span()=> ::std::path::PathBuf))
        }
        Type::Path(_) => Some((**elem).clone()),
        _ => None,
    }
}

/// Reports parts of a parameter type that are not supported.
pub(crate) fn check(ty: &Type, errors: &mut Errors) {
    // Only the mutable visitor is enabled in syn; the copy is discarded.
    Check(errors).visit_type_mut(&mut ty.clone());
}

struct Check<'a>(&'a mut Errors);

impl VisitMut for Check<'_> {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let owned = match &*reference.elem {
            Type::Slice(_) => "take a `Vec<…>`".to_owned(),
            elem => match last_name(elem).as_deref() {
                Some("Path") => "take a `PathBuf`".to_owned(),
                Some(name) => format!("take a `{name}` by value"),
                None => "take it by value".to_owned(),
            },
        };
        if reference.mutability.is_some() {
            self.0.at(&*reference, format!("an argument cannot be a mutable reference; {owned}"));
        } else if matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str")) {
            syn::visit_mut::visit_type_reference_mut(self, reference);
        } else {
            self.0.at(
                &*reference,
                format!("only `&str` references are supported inside an argument type; {owned}"),
            );
        }
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident != "_" {
            let message =
                "an argument type cannot name a lifetime; omit it, or use an owned type such as `String`";
            self.0.at(&*lifetime, message);
        }
    }

    fn visit_type_impl_trait_mut(&mut self, many: &mut TypeImplTrait) {
        let message = "an argument type cannot be `impl Trait`, because the schema needs a concrete type";
        self.0.at(&*many, message);
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn the_context_is_recognized_by_its_name() {
        for (ty, by) in [
            (parse_quote!(Context), Some(ContextBy::Value)),
            (parse_quote!(&Context), Some(ContextBy::Reference)),
            (parse_quote!(&::haft::Context), Some(ContextBy::Reference)),
            (parse_quote!(Context<u8>), None),
            (parse_quote!(Option<Context>), None),
            (parse_quote!(String), None),
        ] {
            assert_eq!(context(&ty), by);
        }
    }

    #[test]
    fn references_are_deserialized_as_owned_types() {
        for (ty, read) in [
            (parse_quote!(&[u8]), Some(parse_quote!(::std::vec::Vec<u8>))),
            (parse_quote!(&Path), Some(parse_quote!(::std::path::PathBuf))),
            (parse_quote!(&my::Filter), Some(parse_quote!(my::Filter))),
            (parse_quote!(&str), None),
            (parse_quote!(&mut Filter), None),
            (parse_quote!(&'static Filter), None),
            (parse_quote!(Filter), None),
        ] {
            assert_eq!(owned(&ty), read);
        }
    }

    #[test]
    fn types_that_cannot_be_arguments() {
        let error = |ty: Type| {
            let mut errors = Errors::default();
            check(&ty, &mut errors);
            errors.report().map(|report| report.to_string())
        };
        for fine in [parse_quote!(String), parse_quote!(&str), parse_quote!(Option<Vec<&str>>)] {
            assert_eq!(error(fine), None);
        }
        for (ty, part) in [
            (parse_quote!(Option<&[u8]>), "take a `Vec<…>`"),
            (parse_quote!(Option<&Path>), "take a `PathBuf`"),
            (parse_quote!(Vec<&Filter>), "take a `Filter` by value"),
            (parse_quote!(&mut Filter), "cannot be a mutable reference"),
            (parse_quote!(Option<&'static str>), "cannot name a lifetime"),
            (parse_quote!(Vec<impl Into<String>>), "needs a concrete type"),
        ] {
            let message = error(ty).unwrap();
            assert!(message.contains(part), "{message}");
        }
    }
}
