//! The types of a component's functions that JSON can represent.
//!
//! Converted once from wasmtime's types, so that calls need no look-up and unsupported types are reported when a tool is
//! saved.

use std::fmt;

use wasmtime::component::types::Type;

/// How many types the arguments or the result of a function can contain, counting each use.
const MAX_COUNT: usize = 10_000;
/// How deep types can nest.
const MAX_DEPTH: usize = 64;

/// A type with a JSON representation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    String,
    List(Box<Shape>),
    /// A list whose length is part of the type.
    Fixed(Box<Shape>, usize),
    Record(Vec<Field>),
    Tuple(Vec<Shape>),
    Variant(Vec<Case>),
    Enum(Vec<String>),
    Option(Box<Shape>),
    Result(Option<Box<Shape>>, Option<Box<Shape>>),
    Flags(Vec<String>),
}

/// An argument of a function, or a field of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) shape: Option<Shape>,
}

/// Why a type is unsupported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShapeError {
    #[error("contains the type `{0}`, which JSON cannot represent")]
    Unsupported(&'static str),
    #[error("exceeds the limit of {MAX_COUNT} types or {MAX_DEPTH} levels")]
    TooLarge,
}

impl Shape {
    /// Converts a type.
    pub(crate) fn of(ty: &Type) -> Result<Self, ShapeError> {
        Builder { left: MAX_COUNT }.shape(ty, MAX_DEPTH)
    }

    /// Returns whether a value is optional.
    pub(crate) const fn optional(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// Counts types: shared types can expand to far more than the size of the component.
struct Builder {
    left: usize,
}

impl Builder {
    fn shape(&mut self, ty: &Type, depth: usize) -> Result<Shape, ShapeError> {
        let (Some(left), Some(depth)) = (self.left.checked_sub(1), depth.checked_sub(1)) else {
            return Err(ShapeError::TooLarge);
        };
        self.left = left;
        Ok(match ty {
            Type::Bool => Shape::Bool,
            Type::S8 => Shape::S8,
            Type::U8 => Shape::U8,
            Type::S16 => Shape::S16,
            Type::U16 => Shape::U16,
            Type::S32 => Shape::S32,
            Type::U32 => Shape::U32,
            Type::S64 => Shape::S64,
            Type::U64 => Shape::U64,
            Type::Float32 => Shape::F32,
            Type::Float64 => Shape::F64,
            Type::Char => Shape::Char,
            Type::String => Shape::String,
            Type::List(list) => Shape::List(self.boxed(&list.ty(), depth)?),
            Type::FixedLengthList(list) => {
                let length = usize::try_from(list.len()).unwrap_or(usize::MAX);
                Shape::Fixed(self.boxed(&list.ty(), depth)?, length)
            }
            Type::Record(record) => Shape::Record(
                record
                    .fields()
                    .map(|field| {
                        Ok(Field { name: field.name.to_owned(), shape: self.shape(&field.ty, depth)? })
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Type::Tuple(tuple) => {
                Shape::Tuple(tuple.types().map(|ty| self.shape(&ty, depth)).collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => Shape::Variant(
                variant
                    .cases()
                    .map(|case| {
                        let shape = case.ty.map(|ty| self.shape(&ty, depth)).transpose()?;
                        Ok(Case { name: case.name.to_owned(), shape })
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Type::Enum(names) => Shape::Enum(names.names().map(str::to_owned).collect()),
            Type::Option(option) => Shape::Option(self.boxed(&option.ty(), depth)?),
            Type::Result(result) => {
                let ok = result.ok().map(|ty| self.boxed(&ty, depth)).transpose()?;
                let err = result.err().map(|ty| self.boxed(&ty, depth)).transpose()?;
                Shape::Result(ok, err)
            }
            Type::Flags(flags) => Shape::Flags(flags.names().map(str::to_owned).collect()),
            Type::Map(_) => return Err(ShapeError::Unsupported("map")),
            Type::Own(_) | Type::Borrow(_) => return Err(ShapeError::Unsupported("resource")),
            Type::Future(_) => return Err(ShapeError::Unsupported("future")),
            Type::Stream(_) => return Err(ShapeError::Unsupported("stream")),
            Type::ErrorContext => return Err(ShapeError::Unsupported("error-context")),
        })
    }

    fn boxed(&mut self, ty: &Type, depth: usize) -> Result<Box<Shape>, ShapeError> {
        self.shape(ty, depth).map(Box::new)
    }
}

/// Writes the type in WIT notation.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shape: &Option<Box<Shape>>| shape.as_ref().map_or("_".to_owned(), ToString::to_string);
        match self {
            Self::Bool => f.write_str("bool"),
            Self::S8 => f.write_str("s8"),
            Self::U8 => f.write_str("u8"),
            Self::S16 => f.write_str("s16"),
            Self::U16 => f.write_str("u16"),
            Self::S32 => f.write_str("s32"),
            Self::U32 => f.write_str("u32"),
            Self::S64 => f.write_str("s64"),
            Self::U64 => f.write_str("u64"),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("string"),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Fixed(item, length) => write!(f, "list<{item}, {length}>"),
            Self::Record(fields) => write!(f, "record {{{}}}", fields_text(fields)),
            Self::Tuple(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", items.join(", "))
            }
            Self::Variant(cases) => {
                let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
                write!(f, "variant {{{}}}", names.join(", "))
            }
            Self::Enum(names) => write!(f, "enum {{{}}}", names.join(", ")),
            Self::Option(inner) => write!(f, "option<{inner}>"),
            Self::Result(ok, err) => write!(f, "result<{}, {}>", part(ok), part(err)),
            Self::Flags(names) => write!(f, "flags {{{}}}", names.join(", ")),
        }
    }
}

/// Writes arguments or fields.
pub(crate) fn fields_text(fields: &[Field]) -> String {
    fields.iter().map(|field| format!("{}: {}", field.name, field.shape)).collect::<Vec<_>>().join(", ")
}

/// Writes names in backticks.
pub(crate) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns whether a JSON key matches a WIT name: equal, or with `_` in place of `-`.
pub(crate) fn same_name(wit: &str, json: &str) -> bool {
    wit.len() == json.len()
        && wit.bytes().zip(json.bytes()).all(|(wit, json)| wit == json || (wit == b'-' && json == b'_'))
}
