//! What kind of parameter a type says, and which types cannot be one.

use syn::spanned::Spanned as _;
use syn::visit_mut::VisitMut;
use syn::{
    GenericArgument, Lifetime, PathArguments, PathSegment, Type, TypeImplTrait, TypePath, TypeReference,
    TypeSlice, parse_quote_spanned,
};

use crate::faults::Faults;

/// How the context of the call is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextBy {
    Value,
    Reference,
}

/// Returns how a type takes the context, where it is the context.
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

/// Returns the last name of a type's path, such as `Vec`.
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

/// Returns what is read of a call for a parameter of this type, where the function borrows it.
pub(crate) fn owned(ty: &Type) -> Option<Type> {
    let Type::Reference(TypeReference { lifetime: None, mutability: None, elem, .. }) = ty else {
        return None;
    };
    match &**elem {
        // It is part of the call already.
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

/// Says what keeps a type from being a parameter, as far as its letters tell.
pub(crate) fn check(ty: &Type, faults: &mut Faults) {
    // The visitor is made for changes; the copy is thrown away.
    Check(faults).visit_type_mut(&mut ty.clone());
}

struct Check<'a>(&'a mut Faults);

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
            self.0.at(&*reference, format!("an argument is not there to be changed; {owned}"));
        } else if matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str")) {
            syn::visit_mut::visit_type_reference_mut(self, reference);
        } else {
            self.0.at(&*reference, format!("only a `&str` can stand inside of an argument's type; {owned}"));
        }
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident != "_" {
            let message = "an argument lives as long as its call; leave the lifetime out, or take an owned type \
                           such as `String`";
            self.0.at(&*lifetime, message);
        }
    }

    fn visit_type_impl_trait_mut(&mut self, many: &mut TypeImplTrait) {
        let message = "the schema is made of one type, and `impl …` stands for many; name the type";
        self.0.at(&*many, message);
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn the_context_is_known_by_its_name() {
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
    fn what_is_borrowed_is_owned_by_the_call() {
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
        let fault = |ty: Type| {
            let mut faults = Faults::default();
            check(&ty, &mut faults);
            faults.report().map(|report| report.to_string())
        };
        for fine in [parse_quote!(String), parse_quote!(&str), parse_quote!(Option<Vec<&str>>)] {
            assert_eq!(fault(fine), None);
        }
        for (ty, part) in [
            (parse_quote!(Option<&[u8]>), "take a `Vec<…>`"),
            (parse_quote!(Option<&Path>), "take a `PathBuf`"),
            (parse_quote!(Vec<&Filter>), "take a `Filter` by value"),
            (parse_quote!(&mut Filter), "not there to be changed"),
            (parse_quote!(Option<&'static str>), "lives as long as its call"),
            (parse_quote!(Vec<impl Into<String>>), "stands for many"),
        ] {
            let found = fault(ty).unwrap();
            assert!(found.contains(part), "{found}");
        }
    }
}
