//! The fields that a tool selects of its result.

use std::collections::HashMap;

use super::schema::{FieldDef, InputDef, Schema, TypeKind, TypeRef};

/// The maximum nesting of objects.
const MAX_DEPTH: usize = 3;
/// The maximum number of fields of a selection.
const MAX_FIELDS: usize = 80;
/// The maximum number of fields of an object within another one.
const MAX_NESTED_FIELDS: usize = 20;
/// The maximum number of members of a union.
const MAX_MEMBERS: usize = 10;

/// Writes selections.
pub(super) struct Selector<'s> {
    schema: &'s Schema,
    left: usize,
    /// The types around the current one.
    open: Vec<&'s str>,
    /// Whether fields were left out because of the limits, or because their type contains itself.
    pub(super) is_cut: bool,
}

impl<'s> Selector<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, left: MAX_FIELDS, open: Vec::new(), is_cut: false }
    }

    /// Returns the selection of a type with a space before it, or an empty text for a value without fields.
    pub(super) fn select(&mut self, ty: &'s TypeRef) -> String {
        let inner = self.fields_of(ty.name());
        if inner.is_empty() { String::new() } else { format!(" {{ {} }}", inner.join(" ")) }
    }

    /// Returns the fields of a type; none if it is a scalar or an enum.
    fn fields_of(&mut self, name: &'s str) -> Vec<String> {
        let Some(def) = self.schema.types.get(name) else { return Vec::new() };
        self.open.push(name);
        let mut out = match def.kind {
            TypeKind::Scalar | TypeKind::Enum | TypeKind::Input => {
                self.open.pop();
                return Vec::new();
            }
            TypeKind::Object | TypeKind::Interface => self.fields(&def.fields),
            TypeKind::Union => self.members(&def.names),
        };
        self.open.pop();
        if out.is_empty() || matches!(def.kind, TypeKind::Interface | TypeKind::Union) {
            out.insert(0, "__typename".to_owned());
        }
        out
    }

    /// Returns whether a field can be selected without arguments.
    fn is_plain(field: &FieldDef) -> bool {
        !field.is_deprecated && !field.arguments.iter().any(InputDef::is_required)
    }

    fn is_leaf(&self, field: &FieldDef) -> bool {
        let def = self.schema.types.get(field.ty.name());
        def.is_none_or(|def| matches!(def.kind, TypeKind::Scalar | TypeKind::Enum))
    }

    /// Selects values first, then objects, as far as the limits allow.
    fn fields(&mut self, fields: &'s [FieldDef]) -> Vec<String> {
        let mut out = Vec::new();
        let limit = if self.open.len() > 1 { MAX_NESTED_FIELDS } else { MAX_FIELDS };
        let (leaves, objects): (Vec<&FieldDef>, Vec<&FieldDef>) =
            fields.iter().filter(|field| Self::is_plain(field)).partition(|field| self.is_leaf(field));
        for field in leaves {
            if self.left == 0 || out.len() >= limit {
                self.is_cut = true;
                return out;
            }
            self.left -= 1;
            out.push(field.name.clone());
        }
        for field in objects {
            let is_circle = self.open.contains(&field.ty.name());
            if is_circle || self.left == 0 || self.open.len() >= MAX_DEPTH || out.len() >= limit {
                self.is_cut = true;
                continue;
            }
            self.left -= 1;
            let inner = self.select(&field.ty);
            out.push(format!("{}{inner}", field.name));
        }
        out
    }

    /// Selects the fields of the members of a union. Fields of the same name with different types would conflict; only the
    /// first one is selected.
    fn members(&mut self, names: &'s [String]) -> Vec<String> {
        let mut out = Vec::new();
        let mut types: HashMap<&'s str, &'s TypeRef> = HashMap::new();
        let schema = self.schema;
        self.is_cut |= names.len() > MAX_MEMBERS;
        for name in names.iter().take(MAX_MEMBERS) {
            let Some(def) = schema.types.get(name) else { continue };
            let mut selected = Vec::new();
            for field in def.fields.iter().filter(|field| Self::is_plain(field)) {
                if !self.is_leaf(field) || types.get(field.name.as_str()).is_some_and(|ty| **ty != field.ty) {
                    continue;
                }
                if self.left == 0 {
                    self.is_cut = true;
                    break;
                }
                self.left -= 1;
                types.insert(&field.name, &field.ty);
                selected.push(field.name.as_str());
            }
            if !selected.is_empty() {
                out.push(format!("... on {name} {{ {} }}", selected.join(" ")));
            }
        }
        out
    }
}
