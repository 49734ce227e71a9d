//! Reads the result of an introspection query.

use haft_core::problem::Problem;
use serde_json::Value;

use super::schema::{FieldDef, InputDef, Schema, TypeDef, TypeKind, TypeRef, is_name};

/// The maximum nesting of lists in a type.
const MAX_DEPTH: usize = 16;

/// The query that returns a schema.
pub const INTROSPECTION: &str = "query IntrospectionQuery { __schema { queryType { name } mutationType { name } \
    types { kind name description fields(includeDeprecated: true) { name description args { ...Input } \
    type { ...Ref } isDeprecated } inputFields { ...Input } enumValues(includeDeprecated: false) { name } \
    possibleTypes { name } } } } \
    fragment Input on __InputValue { name description type { ...Ref } defaultValue } \
    fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name \
    ofType { kind name ofType { kind name } } } } } } }";

/// Reads the value of `__schema`.
pub(super) fn read(schema: &Value) -> Result<Schema, Problem> {
    let Some(types) = schema.get("types").and_then(Value::as_array) else {
        let message = "not a GraphQL introspection result: missing `__schema.types`";
        return Err(Problem::new("__schema.types", "not_graphql", message));
    };
    let mut out = Schema {
        query: schema.pointer("/queryType/name").and_then(Value::as_str).map(str::to_owned),
        mutation: schema.pointer("/mutationType/name").and_then(Value::as_str).map(str::to_owned),
        ..Schema::default()
    };
    for value in types {
        let name = text(value, "name");
        if is_name(&name) {
            out.types.insert(name, type_def(value));
        }
    }
    Ok(out)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn type_def(value: &Value) -> TypeDef {
    let kind = match text(value, "kind").as_str() {
        "OBJECT" => TypeKind::Object,
        "INTERFACE" => TypeKind::Interface,
        "UNION" => TypeKind::Union,
        "ENUM" => TypeKind::Enum,
        "INPUT_OBJECT" => TypeKind::Input,
        _ => TypeKind::Scalar,
    };
    let names = if kind == TypeKind::Enum { list(value, "enumValues") } else { list(value, "possibleTypes") };
    TypeDef {
        kind,
        description: text(value, "description"),
        fields: list(value, "fields").filter_map(field).collect(),
        inputs: list(value, "inputFields").filter_map(input).collect(),
        names: names.map(|value| text(value, "name")).filter(|name| is_name(name)).collect(),
    }
}

fn field(value: &Value) -> Option<FieldDef> {
    let name = text(value, "name");
    is_name(&name).then_some(())?;
    Some(FieldDef {
        name,
        description: text(value, "description"),
        arguments: list(value, "args").filter_map(input).collect(),
        ty: type_ref(value.get("type")?, 0)?,
        is_deprecated: value.get("isDeprecated") == Some(&Value::Bool(true)),
    })
}

fn input(value: &Value) -> Option<InputDef> {
    let name = text(value, "name");
    is_name(&name).then_some(())?;
    Some(InputDef {
        name,
        description: text(value, "description"),
        ty: type_ref(value.get("type")?, 0)?,
        default: value.get("defaultValue").and_then(Value::as_str).map(str::to_owned),
    })
}

fn type_ref(value: &Value, depth: usize) -> Option<TypeRef> {
    if depth > MAX_DEPTH {
        return None;
    }
    let inner = || value.get("ofType").and_then(|inner| type_ref(inner, depth + 1)).map(Box::new);
    match value.get("kind").and_then(Value::as_str) {
        Some("NON_NULL") => inner().map(TypeRef::NonNull),
        Some("LIST") => inner().map(TypeRef::List),
        _ => Some(text(value, "name")).filter(|name| is_name(name)).map(TypeRef::Named),
    }
}
