//! The types of a schema.

use std::collections::HashMap;

/// The maximum length of a name.
const MAX_NAME: usize = 100;

/// A schema.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) types: HashMap<String, TypeDef>,
    pub(super) query: Option<String>,
    pub(super) mutation: Option<String>,
}

/// A named type.
#[derive(Debug, Default)]
pub(super) struct TypeDef {
    pub(super) kind: TypeKind,
    pub(super) description: String,
    /// The fields of an object or interface.
    pub(super) fields: Vec<FieldDef>,
    /// The fields of an input object.
    pub(super) inputs: Vec<InputDef>,
    /// The values of an enum, or the members of a union.
    pub(super) names: Vec<String>,
}

/// The kind of a type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TypeKind {
    #[default]
    Scalar,
    Object,
    Interface,
    Union,
    Enum,
    Input,
}

/// A field of an object or interface.
#[derive(Debug)]
pub(super) struct FieldDef {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) arguments: Vec<InputDef>,
    pub(super) ty: TypeRef,
    pub(super) is_deprecated: bool,
}

/// An argument, or a field of an input object.
#[derive(Debug)]
pub(super) struct InputDef {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) ty: TypeRef,
    pub(super) default: Option<String>,
}

impl InputDef {
    /// Returns whether a value must be given.
    pub(super) fn is_required(&self) -> bool {
        matches!(self.ty, TypeRef::NonNull(_)) && self.default.is_none()
    }
}

/// A reference to a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeRef {
    Named(String),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

impl TypeRef {
    /// Returns the name of the innermost type.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::List(inner) | Self::NonNull(inner) => inner.name(),
        }
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => out.write_str(name),
            Self::List(inner) => write!(out, "[{inner}]"),
            Self::NonNull(inner) => write!(out, "{inner}!"),
        }
    }
}

/// Returns whether a text is a name, so that it can be written into a query.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= MAX_NAME
        && bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
